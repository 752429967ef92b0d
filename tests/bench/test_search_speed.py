"""How fast a search is: ratios within one run; the figures are printed, and budgets of time fail only far beyond them."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

from planner.catalog.accelerators import accelerator_ids
from planner.evaluate import evaluate_setting
from planner.optimise import Answer, Question, optimise
from planner.optimise.second import second
from planner.specs.scenario import Scenario
from tests.bench.test_speed import crossed, served

Remark = Callable[[str], None]

SMALL = Question(scenario=Scenario(model="llama-3.1-70b", gpu="h200-sxm", weights="fp8"), max_gpus=16)
LARGE = Question(
    scenario=Scenario(model="deepseek-v3", gpu="h200-sxm", sla_ttft_ms=1000.0),
    accelerators=accelerator_ids(), precisions=("fp8", "fp8-block", "int4"), modes=("colocated", "disaggregated"),
    max_gpus=512,
)  # fmt: skip
ROWS = Question(
    scenario=Scenario(model="deepseek-v3", gpu="h200-sxm", weights="fp8", prefill="excluded"),
    accelerators=("h100-sxm", "h200-sxm", "b200-sxm", "gb200-nvl72"), precisions=("fp8",), max_gpus=512,
)  # fmt: skip

SECONDS_SMALL, SECONDS_LARGE, ROWS_A_SECOND = 0.2, 3.0, 1e6
"""What a planner waits for, and rows a second on two idle cores: printed beside what was measured; a busy machine fails
nothing, what fails is a search that has become slow beside a table made in the same run."""


def said(name: str, answer: Answer, seconds: float, budget: float) -> str:
    rate = answer.considered / seconds
    rows = f"{answer.considered:,} rows, {rate:,.0f} rows/s, {answer.candidates:,} candidates"
    return f"{name}: {seconds:.3f} s (budget {budget:.3g} s), {rows}"


def test_llama_70b_on_16_h200(benchmark: Any, remark: Remark) -> None:
    answer = benchmark(lambda: optimise(SMALL))
    if benchmark.stats:
        best = benchmark.stats["min"]
        remark(said("Llama 3.1 70B on 16 H200", answer, best, SECONDS_SMALL))
    assert answer.winner is not None


def test_deepseek_v3_on_every_accelerator(best_of: Callable[..., float], remark: Remark) -> None:
    """49 accelerators, three precisions, up to 512 GPUs, colocated and disaggregated, in two processes; under 1 GB each."""
    pool = second()
    answer = optimise(LARGE, executor=pool)
    taken = best_of(lambda: optimise(LARGE, executor=pool), 2)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    remark(
        said("DeepSeek-V3 on every accelerator", answer, taken, SECONDS_LARGE) + f", most memory so far {held:,.0f} MB"
    )
    assert answer.winner is not None
    row = taken / answer.considered
    assert row < 8 * table_row(best_of)
    assert held < 1000


def table_row(best_of: Callable[..., float]) -> float:
    """Seconds of one row of a table of 100,000 in this run."""
    at, asked = served("deepseek-v3"), crossed(200, 500)
    evaluate_setting(at, asked)
    return best_of(lambda: evaluate_setting(at, asked), 3) / asked.rows


def test_rows_a_second_on_two_cores(best_of: Callable[..., float], remark: Remark) -> None:
    """Layout × batch with full laws: decode of a mixture of experts on four accelerators."""
    pool = second()
    answer = optimise(ROWS, executor=pool)
    taken = best_of(lambda: optimise(ROWS, executor=pool), 5)
    remark(said("DeepSeek-V3 decode", answer, taken, answer.considered / ROWS_A_SECOND))
    assert taken / answer.considered < 4 * table_row(best_of)
