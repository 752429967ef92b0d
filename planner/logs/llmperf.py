"""Results of LLMPerf: the `*_summary.json`, the same names as columns of a CSV, and NVIDIA's published tables as CSV.

LLMPerf's inter-token latency is the request's time over all its output tokens, so TPOT is worked out from its other
means. NVIDIA's tables have `Concurrency,TTFT (ms),ITL (ms),Throughput(Tokens/s)`, measured as genai-perf does.
Sources: ray-project/llmperf `token_benchmark_ray.py`; docs.nvidia.com/nim/benchmarking/llm/1.0.0/performance.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from planner.logs.benchmark_words import UNUSED_ITL, Note
from planner.logs.cells import csv_rows, table_statements
from planner.logs.conclusions import Run
from planner.logs.documents import Document
from planner.logs.figures import SECONDS, Column, Figures, figures_of
from planner.logs.naming import model_name
from planner.logs.statements import Statement, Statements, statements

LLMPERF: Final = "LLMPerf"
NVIDIA_TABLE: Final = "NVIDIA benchmark table"

COLUMNS: Final = (
    Column("concurrency", ("num_concurrent_requests",)),
    Column("isl", ("results_number_input_tokens_mean", "mean_input_tokens")),
    Column("osl", ("results_number_output_tokens_mean", "mean_output_tokens")),
    Column("ttft_ms", ("results_ttft_s_mean",), SECONDS),
    Column("e2e_ms", ("results_end_to_end_latency_s_mean",), SECONDS),
    Column("ttft_median_ms", ("results_ttft_s_quantiles_p50",), SECONDS),
    Column("ttft_p99_ms", ("results_ttft_s_quantiles_p99",), SECONDS),
    Column("output_tok_s", ("results_mean_output_throughput_token_per_s",)),
    Column("requests", ("results_num_completed_requests",)),
    Column("failed", ("results_number_errors",)),
)
NVIDIA_COLUMNS: Final = (
    Column("concurrency", ("concurrency",)),
    Column("isl", ("isl", "inputtokens", "inputlength")),
    Column("osl", ("osl", "outputtokens", "outputlength")),
    Column("ttft_ms", ("ttft(ms)",)),
    Column("tpot_ms", ("itl(ms)", "tpot(ms)")),
    Column("output_tok_s", ("throughput(tokens/s)", "throughput(tokens/sec)")),
)
_CSV_HEAD: Final = re.compile(
    r"^\ufeff?(?:[\w ]{1,64},){0,80}results_(?:ttft_s|end_to_end_latency_s)_\w+", re.MULTILINE
)
_NVIDIA_HEAD: Final = re.compile(
    r"^\ufeff?[^\n{]{0,80}\bconcurrency\b[^\n{]{0,80}\bttft ?\(ms\),", re.MULTILINE | re.IGNORECASE
)


def is_summary(document: Document) -> bool:
    """Whether a JSON object is a summary of LLMPerf, flat as it is saved or nested as it is returned."""
    return "num_concurrent_requests" in document.value or any(
        name.startswith(("results_ttft_s", "results_end_to_end")) for name in document.value
    )


def is_csv(text: str) -> bool:
    """Whether a text holds LLMPerf's names as columns."""
    return _CSV_HEAD.search(text) is not None


def is_nvidia_csv(text: str) -> bool:
    """Whether a text holds a table with the columns that NVIDIA publishes."""
    return _NVIDIA_HEAD.search(text) is not None


def summary_run(document: Document) -> Run:
    """The run of one summary.

    Raises:
        InputError: for a figure that cannot be believed.
    """
    said = statements(document.value, document.line)
    rows = tuple(Statement(row.name.replace(".", "_"), row.value, row.line) for row in said.rows)
    return _run(Statements(document.line, rows))


def csv_runs(text: str) -> tuple[Run, ...]:
    """The runs of a CSV with LLMPerf's names as columns, one a row.

    Raises:
        InputError: for a row that is cut off, or a figure that cannot be believed.
    """
    return tuple(_run(said) for said in table_statements(csv_rows(text)))


def nvidia_runs(text: str) -> tuple[Run, ...]:
    """The runs of a table with the columns that NVIDIA publishes, one a row.

    Raises:
        InputError: for a row that is cut off, or a figure that cannot be believed.
    """
    found = []
    for said in table_statements(csv_rows(text)):
        rows = tuple(Statement("".join(row.name.lower().split()), row.value, row.line) for row in said.rows)
        figures = figures_of(Statements(said.line, rows), NVIDIA_COLUMNS)
        found.append(Run(NVIDIA_TABLE, said.line, figures, ("itl_is_tpot",)))
    return tuple(found)


def _run(said: Statements) -> Run:
    figures = figures_of(said, COLUMNS)
    tpot = _tpot_ms(figures)
    named = said.text("model")
    model = model_name(named)
    notes: tuple[Note, ...] = ("from_latency",) if tpot else ()
    hidden: tuple[Note, ...] = ("model_hidden",) if named and not model else ()
    ignored = (UNUSED_ITL,) if said.find("results_inter_token_latency_s_mean") else ()
    return Run(LLMPERF, said.line, replace(figures, tpot_ms=tpot), (*notes, *hidden), model, (), ignored)


def _tpot_ms(said: Figures) -> float | None:
    """Mean time of an output token after the first [ms]; None without the means that it takes."""
    if said.e2e_ms is None or said.ttft_ms is None or said.osl is None or said.osl <= 1:
        return None
    rest = said.e2e_ms - said.ttft_ms
    return rest / (said.osl - 1) if rest > 0 else None
