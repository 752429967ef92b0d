"""Headroom's own CSV: one row a point, columns under Headroom's own names; lines that begin with # are comments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from planner.catalog.accelerators import find_accelerator
from planner.errors import InputError
from planner.logs.benchmark_words import Note
from planner.logs.cells import csv_rows, table_statements
from planner.logs.conclusions import POINT_FIELDS, Run
from planner.logs.figures import Column, figures_of
from planner.logs.naming import model_name
from planner.logs.statements import Statement, Statements, is_number, refusal
from planner.specs.spelling import Value, read

TEMPLATE: Final = "Headroom CSV"
FIGURE_COLUMNS: Final = ("concurrency", "isl", "osl", "tpot_ms", "ttft_ms", "output_tok_s")
DRAFT_COLUMNS: Final = ("spec", "accept")
"""Drafted tokens and the share of them that is accepted, as a scenario has them; read where tokens were drafted."""
SCENARIO_COLUMNS: Final = ("model", "gpu", "engine", "weights", "kv", "tp", "pp", "dp", "ep")
COLUMNS: Final = (
    Column("mean_concurrency", ("concurrency",)),
    *(Column(field, (field,)) for field in POINT_FIELDS if field != "concurrency"),
)
"""The concurrency that a person states is taken as it is, whatever the other figures imply."""
_ABOVE_ZERO: Final = frozenset({"mean_concurrency", "isl", "osl"})
"""What a person may leave empty, and does not mean by 0."""

_NAMED: Final[dict[str, Callable[[str], object]]] = {"model": model_name, "gpu": find_accelerator}
"""What tells a name that may be shown from anything else that a cell may hold."""

_HEAD: Final = re.compile(
    r"^\ufeff?(?:[a-z0-9_]{1,24},){0,24}(?:tpot_ms|ttft_ms|output_tok_s)(?:,[a-z0-9_]{1,24}){0,24}\s*$", re.MULTILINE
)
_NOTES: Final = (
    "# One row a measured point; all rows of one deployment. Leave empty what was not measured.",
    "# concurrency: requests in flight; isl, osl: mean input and output tokens of a request.",
    "# tpot_ms: mean time per output token without the first; ttft_ms: mean time to first token; both in ms.",
    "# output_tok_s: output tokens a second of the whole service. The columns from model on are optional.",
    "# The row below is an example; replace it.",
)
_EXAMPLE: Final = "64,1024,256,24.5,180,2480,llama-3.1-70b,h100-sxm,vllm,fp8,bf16,4,1,1,1"


def template_csv() -> str:
    """The template with its comments and one example row, ready to be saved and filled in."""
    return "\n".join((*_NOTES, ",".join((*FIGURE_COLUMNS, *SCENARIO_COLUMNS)), _EXAMPLE)) + "\n"


def is_template(text: str) -> bool:
    """Whether a text holds a header of this CSV."""
    return _HEAD.search(text) is not None


def template_runs(text: str) -> tuple[Run, ...]:
    """The runs of the filled-in template.

    Raises:
        InputError: for an unknown column, a row that is cut off, or a value that is refused.
    """
    found = table_statements(csv_rows(text))
    for number, name in enumerate(found[0].names, 1):
        if name not in (*POINT_FIELDS, *SCENARIO_COLUMNS, *DRAFT_COLUMNS):
            raise refusal(f"column {number}", f"columns are {', '.join((*FIGURE_COLUMNS, *SCENARIO_COLUMNS))}")
    return tuple(_run(said) for said in found)


def _run(said: Statements) -> Run:
    columns = (*SCENARIO_COLUMNS, *DRAFT_COLUMNS)
    stated = tuple((name, _value(row)) for name in columns if (row := said.find(name)))
    figures = figures_of(said, COLUMNS, above_zero=_ABOVE_ZERO)
    notes: tuple[Note, ...] = ("tpot",) if figures.tpot_ms else ()
    drafted: tuple[Note, ...] = ("drafted",) if dict(stated).get("spec") else ()
    return Run(TEMPLATE, said.line, figures, (*notes, *drafted), str(dict(stated).get("model") or ""), stated)


def _value(row: Statement) -> Value:
    if row.name in _NAMED and not _NAMED[row.name](str(row.value)):
        raise refusal(row.name, "must be an id of the catalogue or a public name", row.line)
    try:
        return read(row.name, str(row.value))
    except InputError as error:
        what = f"{row.name} {row.value}" if is_number(row) else row.name
        raise refusal(what, error.faults[0].allowed[:150], row.line) from None
