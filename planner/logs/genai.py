"""Results of NVIDIA genai-perf and of its successor AIPerf: JSON, CSV and the table that they print.

Both name metrics alike; AIPerf's JSON follows genai-perf's on purpose. Their inter-token latency is (request latency −
time to first token) / (output tokens − 1) of each request, which is what TPOT means here.
Sources: triton-inference-server/perf_analyzer `genai-perf/genai_perf/export_data`, ai-dynamo/aiperf `exporters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from planner.logs.benchmark_words import Note
from planner.logs.cells import Row, csv_rows, drawn_cells
from planner.logs.conclusions import Run
from planner.logs.documents import Document
from planner.logs.figures import Column, figures_of
from planner.logs.naming import model_name
from planner.logs.statements import Stated, Statement, Statements, amount, refusal, statements

GENAI_PERF: Final = "genai-perf"
AIPERF: Final = "AIPerf"

_GENERATOR: Final = ("input_config.", "input_config.perf_analyzer.stimulus.", "input_config.loadgen.")
COLUMNS: Final = (
    Column("concurrency", tuple(f"{place}concurrency" for place in _GENERATOR)),
    Column("request_rate", tuple(f"{place}request_rate" for place in _GENERATOR)),
    Column("served_rate", ("request_throughput.avg",)),
    Column("isl", ("input_sequence_length.avg",)),
    Column("osl", ("output_sequence_length.avg",)),
    Column("tpot_ms", ("inter_token_latency.avg",)),
    Column("ttft_ms", ("time_to_first_token.avg",)),
    Column("e2e_ms", ("request_latency.avg",)),
    Column("tpot_median_ms", ("inter_token_latency.p50",)),
    Column("ttft_median_ms", ("time_to_first_token.p50",)),
    Column("tpot_p99_ms", ("inter_token_latency.p99",)),
    Column("ttft_p99_ms", ("time_to_first_token.p99",)),
    Column("output_tok_s", ("output_token_throughput.avg",)),
    Column("requests", ("request_count.avg",)),
    Column("failed", ("error_request_count.avg",)),
)
TIMES: Final = ("inter_token_latency", "time_to_first_token", "request_latency")
UNITS: Final = {"ms": 1.0, "milliseconds": 1.0, "s": 1e3, "sec": 1e3, "us": 1e-3, "ns": 1e-6}
"""Milliseconds in each unit of time that the tools may name beside a metric."""

_MODELS: Final = ("input_config.endpoint.model_names", "input_config.model_names", "input_config.model")
_AIPERF_KEYS: Final = ("aiperf_version", "was_cancelled", "error_summary", "total_osl", "benchmark_duration")
_AIPERF_HEAD: Final = re.compile(r"^\ufeff?Metric,avg,min,max,(?!p99,p95,p90,p75)", re.MULTILINE)
_GENAI_HEAD: Final = re.compile(r"^\ufeff?Metric,avg,min,max,p99,p95,p90,p75", re.MULTILINE)
_TITLE: Final = re.compile(r"NVIDIA (GenAI-Perf|AIPerf) \|")
_NAME: Final = re.compile(r"([A-Za-z][A-Za-z ]{2,60}?)\s*(?:\(([^()]{1,30})\))?")


def is_genai_csv(text: str) -> bool:
    """Whether a text holds genai-perf's CSV."""
    return _GENAI_HEAD.search(text) is not None


def is_aiperf_csv(text: str) -> bool:
    """Whether a text holds AIPerf's CSV, whose percentiles come in another order."""
    return _AIPERF_HEAD.search(text) is not None


def is_genai_table(text: str) -> bool:
    """Whether a text holds the table that genai-perf prints."""
    return any(match[1] == "GenAI-Perf" for match in _TITLE.finditer(text))


def is_aiperf_table(text: str) -> bool:
    """Whether a text holds the table that AIPerf prints."""
    return any(match[1] == "AIPerf" for match in _TITLE.finditer(text))


def is_export(document: Document) -> bool:
    """Whether a JSON object is a profile export of either tool."""
    value = document.value
    found = (value.get(name) for name in (*TIMES, "output_token_throughput"))
    return any(isinstance(metric, dict) and "avg" in metric for metric in found)


def is_aiperf_export(document: Document) -> bool:
    """Whether it is one of AIPerf."""
    config = document.value.get("input_config")
    return any(key in document.value for key in _AIPERF_KEYS) or (isinstance(config, dict) and "loadgen" in config)


def export_run(document: Document) -> Run:
    """The run of one profile export.

    Raises:
        InputError: for a figure that cannot be believed or a unit that is not known.
    """
    said = statements(document.value, document.line)
    units = {name: said.text(f"{name}.unit") or "ms" for name in TIMES}
    rows = tuple(_in_ms(row, units.get(row.name.rpartition(".")[0], "")) for row in said.rows)
    named = said.text(*_MODELS)
    run = _run(Statements(document.line, rows), AIPERF if is_aiperf_export(document) else GENAI_PERF, model_name(named))
    return run if run.model or not named else _without_model(run)


def csv_runs(text: str) -> tuple[Run, ...]:
    """The runs of CSV text of either tool; each begins with its own header.

    Raises:
        InputError: for text that is cut off, or a figure that cannot be believed.
    """
    tool = AIPERF if is_aiperf_csv(text) else GENAI_PERF
    return tuple(_run(said, tool, "") for said in _csv_statements(csv_rows(text)))


def table_runs(text: str) -> tuple[Run, ...]:
    """The runs of every table that either tool printed.

    Raises:
        InputError: for a table that is cut off, or a figure that cannot be believed.
    """
    tool = AIPERF if is_aiperf_table(text) else GENAI_PERF
    return tuple(_run(said, tool, "") for said in _table_statements(text))


def _run(said: Statements, tool: str, model: str) -> Run:
    figures = figures_of(said, COLUMNS)
    notes: tuple[Note, ...] = ("itl_is_tpot",) if figures.tpot_ms else ()
    return Run(tool, said.line, figures, notes, model)


def _without_model(run: Run) -> Run:
    return Run(run.tool, run.line, run.figures, (*run.notes, "model_hidden"))


def _in_ms(row: Statement, unit: str) -> Statement:
    """A time in milliseconds; the unit beside the metric decides, never the size of the number."""
    if not unit or row.name.endswith(".unit") or row.value is None:
        return row
    if unit not in UNITS:
        raise refusal(f"unit of {row.name}", "times are read in ms, s, us or ns", row.line)
    return Statement(row.name, amount(row) * UNITS[unit], row.line) if UNITS[unit] != 1 else row


def _csv_statements(rows: tuple[Row, ...]) -> Iterator[Statements]:
    """Statements of each run: a header with statistics, metrics, a header `Metric,Value`, metrics of the system."""
    found: list[Statement] = []
    head: tuple[str, ...] = ()
    start = 0
    for row in rows:
        if row.cells[0] == "Metric":
            if row.cells[1:2] == ("avg",):
                if start:
                    yield _whole(found, start, head)
                found, start = [], row.line
            head = row.cells
        elif start:
            found.extend(_metric(row.cells[0], head, row))
    if start:
        yield _whole(found, start, head)


def _whole(found: list[Statement], start: int, head: tuple[str, ...]) -> Statements:
    if head[1:2] != ("Value",) or not any(row.name.endswith("throughput.avg") for row in found):
        raise refusal("CSV without its section Metric,Value", "it is cut off; paste the whole file", start)
    return Statements(start, tuple(found))


def _metric(name: str, head: tuple[str, ...], row: Row) -> Iterator[Statement]:
    """Statements of one metric: its name without the unit, joined by a dot with each statistic."""
    match = _NAME.fullmatch(name)
    if match is None:
        return
    slug = "_".join(match[1].lower().split())
    unit = (match[2] or "").strip() if slug in TIMES else ""
    if slug in TIMES and not unit:
        raise refusal(f"{name} without a unit", "times need a unit beside their name", row.line)
    for statistic, cell in zip(head[1:], row.cells[1:], strict=False):
        value: Stated = None if cell in ("", "N/A") else cell
        stat = "avg" if statistic == "Value" else statistic
        yield _in_ms(Statement(f"{slug}.{stat}", value, row.line), unit)


def _table_statements(text: str) -> Iterator[Statements]:
    """Statements of every drawn table, from its title to its lower edge."""
    rows: list[Row] = []
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        if _TITLE.search(line):
            if start:
                raise refusal("a table without its lower edge", "it is cut off; paste it whole", start)
            rows, start = [], number
        elif start and line.lstrip()[:1] in ("┃", "│", "|"):
            _add(rows, Row(drawn_cells(line), number))
        elif start and rows and line.lstrip()[:1] in ("└", "╰"):
            yield _drawn(rows, start)
            start = 0
    if start:
        raise refusal("a table without its lower edge", "it is cut off; paste it whole", start)


def _add(rows: list[Row], row: Row) -> None:
    """A row with a name only is the rest of the name above it."""
    if rows and row.cells and row.cells[0] and not any(row.cells[1:]):
        above = rows.pop()
        row = Row((f"{above.cells[0]} {row.cells[0]}", *above.cells[1:]), above.line)
    if row.cells:
        rows.append(row)


def _drawn(rows: list[Row], start: int) -> Statements:
    head = rows[0].cells
    found = tuple(statement for row in rows[1:] for statement in _metric(row.cells[0], head, row))
    return Statements(start, found)
