"""Results of load tests, read: which tool wrote a text, and the operating points that it measured.

Read are the tables, JSON and CSV of `vllm bench serve`, `sglang.bench_serving`, GuideLLM, genai-perf, AIPerf and LLMPerf,
tables as NVIDIA publishes them, and Headroom's own CSV. Kept are figures, a model's public name and parallel degrees;
hosts, paths, addresses, keys and prompts are neither kept nor shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from planner.logs import genai, guidellm, guidellm_tables, llmperf, serving_bench, template
from planner.logs.conclusions import Run, benchmark_of
from planner.logs.documents import Document, documents, is_json
from planner.logs.readings import Benchmark
from planner.logs.statements import MOST_POINTS, refusal
from planner.logs.template import template_csv

__all__ = ["FORMATS", "MOST_CHARACTERS", "MOST_POINTS", "looks_like_benchmark", "read_benchmark", "template_csv"]

MOST_CHARACTERS: Final = 4 * 2**20
"""Largest text that is read; UTF-8 text of 4 MiB has at most so many characters."""

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")


@dataclass(frozen=True)
class _TextFormat:
    tool: str
    seen: Callable[[str], bool]
    runs: Callable[[str], tuple[Run, ...]]


@dataclass(frozen=True)
class _JsonFormat:
    tool: str
    keys: tuple[str, ...]
    seen: Callable[[Document], bool]
    runs: Callable[[Document], tuple[Run, ...]]


_TEXT_FORMATS: Final = (
    _TextFormat(serving_bench.VLLM, serving_bench.is_vllm_table, serving_bench.table_runs),
    _TextFormat(serving_bench.SGLANG, serving_bench.is_sglang_table, serving_bench.table_runs),
    _TextFormat(f"{serving_bench.VLLM} (CSV)", serving_bench.is_csv, serving_bench.csv_runs),
    _TextFormat(guidellm.GUIDELLM, guidellm_tables.is_table, guidellm_tables.table_runs),
    _TextFormat(guidellm.GUIDELLM, guidellm.is_csv, guidellm.csv_runs),
    _TextFormat(genai.GENAI_PERF, genai.is_genai_table, genai.table_runs),
    _TextFormat(genai.AIPERF, genai.is_aiperf_table, genai.table_runs),
    _TextFormat(genai.GENAI_PERF, genai.is_genai_csv, genai.csv_runs),
    _TextFormat(genai.AIPERF, genai.is_aiperf_csv, genai.csv_runs),
    _TextFormat(llmperf.LLMPERF, llmperf.is_csv, llmperf.csv_runs),
    _TextFormat(llmperf.NVIDIA_TABLE, llmperf.is_nvidia_csv, llmperf.nvidia_runs),
    _TextFormat(template.TEMPLATE, template.is_template, template.template_runs),
)
_JSON_FORMATS: Final = (
    _JsonFormat(guidellm.GUIDELLM, ('"benchmarks"',), guidellm.is_report, guidellm.report_runs),
    _JsonFormat(
        llmperf.LLMPERF, ('"num_concurrent_requests"', '"results_ttft_s'), llmperf.is_summary,
        lambda document: (llmperf.summary_run(document),),
    ),
    _JsonFormat(
        f"{genai.GENAI_PERF} or {genai.AIPERF}",
        ('"inter_token_latency"', '"request_latency"', '"output_token_throughput"', '"time_to_first_token"'),
        genai.is_export,
        lambda document: (genai.export_run(document),),
    ),
    _JsonFormat(
        f"{serving_bench.VLLM} or {serving_bench.SGLANG}",
        ('"output_throughput"', '"mean_ttft_ms"', '"median_ttft_ms"'),
        serving_bench.is_result,
        lambda document: (serving_bench.result_run(document),),
    ),
)  # fmt: skip
FORMATS: Final = (
    serving_bench.VLLM, serving_bench.SGLANG, guidellm.GUIDELLM, genai.GENAI_PERF, genai.AIPERF, llmperf.LLMPERF,
    template.TEMPLATE,
)  # fmt: skip
"""Tools whose results are read, as shown."""


def looks_like_benchmark(text: str) -> bool:
    """Whether a text shows the marks of a load test's result, whole or not; never raises."""
    if len(text) > MOST_CHARACTERS:
        return False
    text = text.removeprefix("\ufeff")
    if is_json(text):
        return any(key in text for kind in _JSON_FORMATS for key in kind.keys)
    plain = _COLOURS.sub("", text)
    return serving_bench.is_table(plain) or any(kind.seen(plain) for kind in _TEXT_FORMATS)


def read_benchmark(text: str) -> Benchmark:
    """The operating points that a text holds, with how each figure was taken.

    Raises:
        InputError: when it is too large, empty, of no format that is read, cut off, of two tools or deployments, or
            holds a figure that cannot be believed. Its one fault names the line, or `results`.
    """
    if len(text) > MOST_CHARACTERS:
        raise refusal(f"{len(text):,} characters", f"at most {MOST_CHARACTERS:,}; save it without single requests")
    text = text.removeprefix("\ufeff")
    if not text.strip(" \t\r\n\0"):
        raise refusal("", "paste the result of a load test")
    found = _json_runs(text) if is_json(text) else _text_runs(_COLOURS.sub("", text))
    return benchmark_of(_of_one_tool(found))


def _json_runs(text: str) -> tuple[Run, ...]:
    return tuple(run for document in documents(text) for run in _document_runs(document))


def _document_runs(document: Document) -> tuple[Run, ...]:
    kind = next((kind for kind in _JSON_FORMATS if kind.seen(document)), None)
    if kind is None:
        raise refusal("JSON of another kind", f"results of {', '.join(FORMATS[:-1])} are read", document.line)
    return kind.runs(document)


def _text_runs(text: str) -> tuple[Run, ...]:
    kinds = [kind for kind in _TEXT_FORMATS if kind.seen(text)]
    if not kinds:
        raise refusal("text of another kind", f"results of {', '.join(FORMATS)} are read")
    if len(kinds) > 1:
        raise _mixed(kinds[0].tool, kinds[1].tool)
    return kinds[0].runs(text)


def _of_one_tool(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    tools = list(dict.fromkeys(run.tool for run in runs))
    if len(tools) > 1:
        raise _mixed(tools[0], tools[1])
    if not 1 <= len(runs) <= MOST_POINTS:
        raise refusal(f"{len(runs):,} points", f"from 1 to {MOST_POINTS:,} are read")
    return runs


def _mixed(first: str, second: str) -> Exception:
    if first == second:
        return refusal(f"two results of {first} in different forms", "read one at a time")
    return refusal(f"results of {first} and of {second} in one text", "read one at a time")
