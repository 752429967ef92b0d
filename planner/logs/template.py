"""Headroom's own CSV: one row a point, columns under Headroom's own names; lines that begin with # are comments."""

from __future__ import annotations

import re
from typing import Final

from planner.errors import InputError
from planner.logs.cells import csv_rows, table_statements
from planner.logs.conclusions import POINT_FIELDS, Run
from planner.logs.figures import Column, figures_of
from planner.logs.statements import Statement, Statements, refusal
from planner.specs.spelling import Value, read

TEMPLATE: Final = "Headroom CSV"
FIGURE_COLUMNS: Final = ("concurrency", "isl", "osl", "tpot_ms", "ttft_ms", "output_tok_s")
SCENARIO_COLUMNS: Final = ("model", "gpu", "engine", "weights", "kv", "tp", "pp", "dp", "ep")
COLUMNS: Final = (
    Column("mean_concurrency", ("concurrency",)),
    *(Column(field, (field,)) for field in POINT_FIELDS if field != "concurrency"),
)
"""The concurrency that a person states is taken as it is, whatever the other figures imply."""

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
    for name in found[0].names:
        if name not in (*POINT_FIELDS, *SCENARIO_COLUMNS):
            raise refusal(f"column {name}", f"columns are {', '.join((*FIGURE_COLUMNS, *SCENARIO_COLUMNS))}")
    return tuple(_run(said) for said in found)


def _run(said: Statements) -> Run:
    stated = tuple((name, _value(row)) for name in SCENARIO_COLUMNS if (row := said.find(name)))
    model = said.text("model")
    return Run(TEMPLATE, said.line, figures_of(said, COLUMNS), ("tpot",), model, stated)


def _value(row: Statement) -> Value:
    try:
        return read(row.name, str(row.value))
    except InputError as error:
        fault = error.faults[0]
        raise refusal(f"{row.name} {fault.value}", fault.allowed[:150], row.line) from None
