"""Results of `vllm bench serve` (earlier `benchmark_serving.py`) and of `sglang.bench_serving`: tables and JSON.

Both print a table of labelled lines and save one flat JSON object a run, under names that differ little. The names also
stand as columns of CSV, which `vllm bench sweep` and data frames write.
Sources: vllm-project/vllm `vllm/benchmarks/serve.py`, sgl-project/sglang `python/sglang/bench_serving.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from planner.logs.benchmark_words import Note
from planner.logs.cells import csv_rows, table_statements
from planner.logs.conclusions import Run
from planner.logs.documents import Document
from planner.logs.figures import Column, figures_of
from planner.logs.naming import degrees, engine_of, model_name
from planner.logs.statements import Statement, Statements, amount, refusal, statements

VLLM: Final = "vllm bench serve"
SGLANG: Final = "sglang.bench_serving"

COLUMNS: Final = (
    Column("concurrency", ("max_concurrency", "Maximum request concurrency", "Max request concurrency")),
    Column("mean_concurrency", ("concurrency", "Concurrency")),
    Column("request_rate", ("request_rate", "Request rate configured (RPS)", "Traffic request rate")),
    Column("served_rate", ("request_throughput", "Request throughput (req/s)")),
    Column("duration_s", ("duration", "Benchmark duration (s)")),
    Column("input_tokens", ("total_input_tokens", "total_input", "Total input tokens")),
    Column("output_tokens", ("total_output_tokens", "total_output", "Total generated tokens")),
    Column("tpot_ms", ("mean_tpot_ms", "Mean TPOT (ms)")),
    Column("itl_ms", ("mean_itl_ms", "Mean ITL (ms)")),
    Column("ttft_ms", ("mean_ttft_ms", "Mean TTFT (ms)")),
    Column("e2e_ms", ("mean_e2el_ms", "mean_e2e_latency_ms", "Mean E2EL (ms)", "Mean E2E Latency (ms)")),
    Column("tpot_median_ms", ("median_tpot_ms", "Median TPOT (ms)")),
    Column("ttft_median_ms", ("median_ttft_ms", "Median TTFT (ms)")),
    Column("tpot_p99_ms", ("p99_tpot_ms", "P99 TPOT (ms)")),
    Column("ttft_p99_ms", ("p99_ttft_ms", "P99 TTFT (ms)")),
    Column("output_tok_s", ("output_throughput", "Output token throughput (tok/s)")),
    Column("requests", ("completed", "Successful requests")),
    Column("failed", ("failed", "Failed requests")),
    Column("prompts", ("num_prompts",)),
)
_DRAFTED_KEYS: Final = ("accept_length", "spec_decode_acceptance_length", "spec_decode_acceptance_rate")
_DRAFTED_LABELS: Final = ("Accept length", "Acceptance length", "Acceptance rate (%)")
_OTHERS: Final = ("Backend", "Total generated tokens (retokenized)", *_DRAFTED_LABELS)
_LABELS: Final = tuple(name for column in COLUMNS for name in column.names if name[0].isupper()) + _OTHERS

_START: Final = "= Serving Benchmark Result ="
_END: Final = "=" * 30
_CSV_HEAD: Final = re.compile(r"^\ufeff?(?:[\w .()/%-]{0,64},){0,200}(?:mean|median)_ttft_ms\b", re.MULTILINE)
_LINE: Final = re.compile(rf"(?:^|[\s#>])({'|'.join(map(re.escape, _LABELS))}):\s+(\S[^\r\n]*)")
_BEFORE: Final = frozenset({"Traffic request rate", "Maximum request concurrency"})
"""Labels that vLLM prints before a table; the tables of older versions do not repeat them."""
_MODEL: Final = re.compile(r"\bmodel='([^'\n]{1,200})'")
_LONGEST: Final = 4000
"""Characters of a line that is looked at; a table's lines have 60, the line of arguments before it some 2,000."""


def is_table(text: str) -> bool:
    """Whether a text holds a table of either tool."""
    return _START in text


def is_sglang_table(text: str) -> bool:
    """Whether a text holds a table with the lines that only `sglang.bench_serving` prints."""
    return any(_is_sglang(said) for said, _ in _blocks(text))


def is_vllm_table(text: str) -> bool:
    """Whether a text holds a table without the lines that only `sglang.bench_serving` prints."""
    return any(not _is_sglang(said) for said, _ in _blocks(text))


def is_result(document: Document) -> bool:
    """Whether a JSON object is a saved result of either tool."""
    keys = document.value.keys()
    return "output_throughput" in keys and ("completed" in keys or "mean_ttft_ms" in keys or "median_ttft_ms" in keys)


def is_sglang_result(document: Document) -> bool:
    """Whether it is one of `sglang.bench_serving`."""
    return "total_output_tokens_retokenized" in document.value or "server_info" in document.value


def table_runs(text: str) -> tuple[Run, ...]:
    """The runs of every table of a text.

    Raises:
        InputError: for a table that is cut off, or a figure that cannot be believed.
    """
    found = []
    for said, whole in _blocks(text):
        if not whole:
            raise refusal("a table without its last line of =", "it is cut off; paste it whole", said.line)
        found.append(_run(said, SGLANG if _is_sglang(said) else VLLM))
    return tuple(found)


def result_run(document: Document) -> Run:
    """The run of one saved result.

    Raises:
        InputError: for a figure that cannot be believed.
    """
    said = statements(document.value, document.line)
    return _run(said, SGLANG if is_sglang_result(document) else VLLM)


def is_csv(text: str) -> bool:
    """Whether a text holds the names of saved results as columns, as `vllm bench sweep` and data frames write them."""
    return _CSV_HEAD.search(text) is not None


def csv_runs(text: str) -> tuple[Run, ...]:
    """The runs of a CSV with the names of saved results as columns, one a row.

    Raises:
        InputError: for a row that is cut off, or a figure that cannot be believed.
    """
    found = table_statements(csv_rows(text))
    sglang = "total_output_tokens_retokenized" in found[0].names
    return tuple(_run(said, SGLANG if sglang else VLLM) for said in found)


def _run(said: Statements, tool: str) -> Run:
    named = said.text("model_id", "model", "server_info.model_path", "server_info.served_model_name")
    model = model_name(named)
    figures = figures_of(said, COLUMNS)
    notes: tuple[Note, ...] = ("tpot",) if figures.tpot_ms else ()
    hidden: tuple[Note, ...] = ("model_hidden",) if named and not model else ()
    accepted = said.find(*_DRAFTED_KEYS, *_DRAFTED_LABELS)
    drafted: tuple[Note, ...] = ("drafted",) if accepted is not None and amount(accepted) > 0.0 else ()
    stated = (*engine_of(said.text("backend", "Backend")), *degrees(said))
    return Run(tool, said.line, figures, (*notes, *drafted, *hidden), model, stated)


def _is_sglang(said: Statements) -> bool:
    return said.find("Backend", "Concurrency", "Total generated tokens (retokenized)") is not None


def _blocks(text: str) -> Iterator[tuple[Statements, bool]]:
    """Every table with what is said since the one before it, and whether its end is there."""
    rows: list[Statement] = []
    start = 0
    for number, line in enumerate(text.splitlines() if _START in text else (), 1):
        line = line[:_LONGEST]
        if _START in line:
            if start:
                yield Statements(start, tuple(rows)), False
                rows = []
            start = number
        elif start and line.rstrip().endswith(_END):
            yield Statements(start, tuple(rows)), True
            rows, start = [], 0
        else:
            rows.extend(row for row in _statements(line, number) if start or row.name in (*_BEFORE, "model"))
    if start:
        yield Statements(start, tuple(rows)), False


def _statements(line: str, number: int) -> Iterator[Statement]:
    if match := _LINE.search(line):
        yield Statement(match[1], match[2].rstrip(" |│#"), number)
    elif match := _MODEL.search(line):
        yield Statement("model", match[1], number)
