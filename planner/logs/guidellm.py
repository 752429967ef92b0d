"""Results of GuideLLM: `benchmarks.json` and CSV of versions 0.2 and 0.3, and of 0.4 and later.

GuideLLM's TPOT divides by every output token; its ITL is (last token − first token) / (output tokens − 1), which is
what TPOT means here. Times to first token are in ms, request latencies in seconds.
Source: vllm-project/guidellm `benchmark/output.py` (v0.2.0, v0.3.0), `benchmark/outputs/` (v0.5.0, v0.7.3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from planner.logs.benchmark_words import UNUSED_TPOT, Note
from planner.logs.cells import Row, csv_rows
from planner.logs.conclusions import Run
from planner.logs.documents import Document
from planner.logs.figures import LONGEST_MS, SECONDS, Column, Figures, figures_of
from planner.logs.naming import model_name
from planner.logs.statements import MOST_POINTS, Statement, Statements, refusal, statements

GUIDELLM: Final = "GuideLLM"

_STRATEGY: Final = ("config.strategy", "args.strategy")


def _metric(name: str, statistic: str, *, everything: bool = False) -> tuple[str, ...]:
    """Names of a statistic in `benchmarks.json`: of all requests, or of the completed ones alone."""
    statuses = ("total", "successful") if everything else ("successful",)
    return tuple(f"metrics.{name}.{status}.{statistic}" for status in statuses)


COLUMNS: Final = (
    Column("concurrency", tuple(f"{place}.streams" for place in _STRATEGY)),
    Column("mean_concurrency", _metric("request_concurrency", "mean", everything=True)),
    Column("request_rate", tuple(f"{place}.rate" for place in _STRATEGY)),
    Column("served_rate", _metric("requests_per_second", "mean")),
    Column("isl", _metric("prompt_token_count", "mean")),
    Column("osl", _metric("output_token_count", "mean")),
    Column("tpot_ms", _metric("inter_token_latency_ms", "mean")),
    Column("ttft_ms", _metric("time_to_first_token_ms", "mean")),
    Column("e2e_ms", _metric("request_latency", "mean"), SECONDS),
    Column("tpot_median_ms", _metric("inter_token_latency_ms", "median")),
    Column("ttft_median_ms", _metric("time_to_first_token_ms", "median")),
    Column("tpot_p99_ms", _metric("inter_token_latency_ms", "percentiles.p99")),
    Column("ttft_p99_ms", _metric("time_to_first_token_ms", "percentiles.p99")),
    Column("output_tok_s", _metric("output_tokens_per_second", "mean", everything=True)),
    Column("requests", ("metrics.request_totals.successful", "request_totals.successful")),
    Column("failed", ("metrics.request_totals.errored", "request_totals.errored")),
)
OLD_CSV_COLUMNS: Final = (
    Column("mean_concurrency", ("Total Request concurrency mean", "Successful Request concurrency mean")),
    Column("served_rate", ("Successful Requests per second mean",)),
    Column("isl", ("Successful Prompt token count mean",)),
    Column("osl", ("Successful Output token count mean",)),
    Column("tpot_ms", ("Successful Inter token latency ms mean",)),
    Column("ttft_ms", ("Successful Time to first token ms mean",)),
    Column("e2e_ms", ("Successful Request latency mean",), SECONDS),
    Column("tpot_median_ms", ("Successful Inter token latency ms median",)),
    Column("ttft_median_ms", ("Successful Time to first token ms median",)),
    Column("output_tok_s", ("Total Output tokens per second mean", "Successful Output tokens per second mean")),
    Column("requests", ("Successful Requests",)),
    Column("failed", ("Errored Requests",)),
)
CSV_COLUMNS: Final = (
    Column("mean_concurrency", ("Server Throughput|Successful Concurrency|Mean", "Server Throughput|Concurrency|Mean")),
    Column("served_rate", ("Server Throughput|Successful Requests/Sec|Mean",)),
    Column("isl", ("Token Metrics|Successful Input Tokens|Mean",)),
    Column("osl", ("Token Metrics|Successful Output Tokens|Mean",)),
    Column("tpot_ms", ("Inter Token Latency|Successful ms|Mean",)),
    Column("ttft_ms", ("Time to First Token|Successful ms|Mean",)),
    Column("e2e_ms", ("Request Latency|Successful Sec|Mean",), SECONDS),
    Column("tpot_median_ms", ("Inter Token Latency|Successful ms|Median",)),
    Column("ttft_median_ms", ("Time to First Token|Successful ms|Median",)),
    Column("output_tok_s", ("Token Throughput|Successful Output Tokens/Sec|Mean",)),
    Column("requests", ("Request Counts|Successful|",)),
    Column("failed", ("Request Counts|Errored|",)),
)

_OLD_HEAD: Final = re.compile(r"^\ufeff?Type,Run Id,Id,Name,", re.MULTILINE)
_HEAD: Final = re.compile(r"^\ufeff?Run Info,Run Info,", re.MULTILINE)
_STREAMS: Final = re.compile(r"concurrent@([0-9]{1,7})")
_RATE: Final = re.compile(r"(?:constant|poisson)@([0-9]{1,7}(?:\.[0-9]{1,6})?)")
_MODELS: Final = (
    "config.backend.model", "config.backend.backend_model", "worker.backend_model", "config.backend.model_name",
)  # fmt: skip
_HEAD_ROWS: Final = 3


def is_report(document: Document) -> bool:
    """Whether a JSON object is a report of GuideLLM."""
    return isinstance(document.value.get("benchmarks"), list)


def is_csv(text: str) -> bool:
    """Whether a text holds GuideLLM's CSV, of either era."""
    return _OLD_HEAD.search(text) is not None or _HEAD.search(text) is not None


def report_runs(document: Document) -> tuple[Run, ...]:
    """The runs of one report.

    Raises:
        InputError: for a report without benchmarks, or a figure that cannot be believed.
    """
    found: list[Any] = document.value["benchmarks"]
    if not 1 <= len(found) <= MOST_POINTS or not all(isinstance(item, dict) for item in found):
        wanted = f"from 1 to {MOST_POINTS:,} finished benchmarks are expected"
        raise refusal("a report without benchmarks, or with too many", wanted, document.line)
    return tuple(_run(statements(item, document.line), COLUMNS) for item in found)


def csv_runs(text: str) -> tuple[Run, ...]:
    """The runs of GuideLLM's CSV, one a row.

    Raises:
        InputError: for a row that is cut off, or a figure that cannot be believed.
    """
    rows = csv_rows(text)
    if _HEAD.search(text):
        return tuple(_run(said, CSV_COLUMNS) for said in _under(rows, _HEAD_ROWS))
    return tuple(_run(said, OLD_CSV_COLUMNS) for said in _under(rows, 1))


def named_load(figures: Figures, strategy: str) -> Figures:
    """Figures with the load that a strategy's name states (`concurrent@16`, `constant@2.50`, `synchronous`)."""
    if match := _STREAMS.fullmatch(strategy):
        return replace(figures, concurrency=float(match[1]) or None)
    if match := _RATE.fullmatch(strategy):
        return replace(figures, request_rate=float(match[1]) or None)
    return replace(figures, concurrency=1.0) if strategy == "synchronous" else figures


def run_of(line: int, figures: Figures, notes: tuple[Note, ...] = (), model: str = "") -> Run:
    """A run of GuideLLM with what is said of its TPOT."""
    said: tuple[Note, ...] = ("itl_is_guidellm",) if figures.tpot_ms or figures.tpot_median_ms else ()
    return Run(GUIDELLM, line, figures, (*said, *notes), model, (), (UNUSED_TPOT,))


def _run(said: Statements, columns: tuple[Column, ...]) -> Run:
    strategy = said.text(*(f"{place}.type_" for place in _STRATEGY), "Name", "Benchmark|Strategy|")
    named = said.text(*_MODELS)
    model = model_name(named)
    hidden: tuple[Note, ...] = ("model_hidden",) if named and not model else ()
    return run_of(said.line, _with_tails(named_load(figures_of(said, columns), strategy), said), hidden, model)


def _with_tails(figures: Figures, said: Statements) -> Figures:
    """Figures with the 99th percentiles that the CSV keeps in lists of eleven."""
    found = {
        "tpot_p99_ms": _tail(said, ("Successful Inter token latency ms", "Inter Token Latency|Successful ms|")),
        "ttft_p99_ms": _tail(said, ("Successful Time to first token ms", "Time to First Token|Successful ms|")),
    }
    return replace(figures, **{field: value for field, value in found.items() if value is not None})


def _tail(said: Statements, starts: tuple[str, ...]) -> float | None:
    old = f"{starts[0]} [min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
    row = said.find(old, f"{starts[1]}Percentiles")
    try:
        value = json.loads(str(row.value))[9] if row else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < LONGEST_MS:
        return float(value)
    return None


def _under(rows: tuple[Row, ...], heads: int) -> Iterator[Statements]:
    """Statements of every row below the header rows, whose cells are joined by bars."""
    if not heads < len(rows) <= heads + MOST_POINTS:
        raise refusal(f"{max(0, len(rows) - heads):,} rows", f"from 1 to {MOST_POINTS:,} are expected below the header")
    names = ["|".join(cells) for cells in zip(*(row.cells for row in rows[:heads]), strict=False)]
    for row in rows[heads:]:
        if len(row.cells) != len(names):
            raise refusal(f"number of cells {len(row.cells)}", f"the header names {len(names)} columns", row.line)
        pairs = zip(names, row.cells, strict=True)
        yield Statements(row.line, tuple(Statement(name, value, row.line) for name, value in pairs))
