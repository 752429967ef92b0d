"""How fast the planner is: ratios within one run, so that a slow machine fails nothing; the figures are printed."""

from __future__ import annotations

import resource
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from planner.candidates import Candidates, candidates
from planner.evaluate import evaluate_setting
from planner.setting import Setting, resolve
from planner.single import plan_setting
from planner.specs.layout import Layout, layout
from planner.specs.scenario import Scenario
from tests.asking import setting

MODELS = ["llama-3.1-70b", "deepseek-v3", "glm-5.2", "qwen3-next-80b-a3b", "gpt-oss-120b"]
"""One of each kind of attention."""

Remark = Callable[[str], None]


def served(name: str, tp: int = 8) -> Setting:
    return setting(model=name, weights="fp8", gpu="b200-sxm", tp=tp)


def many_layouts(count: int) -> Layout:
    """Layouts in a mixture: degrees that stand and degrees that do not."""
    grid = np.array(np.meshgrid([1, 2, 4, 8], [1, 2], [1, 2, 4, 8], [1, 2, 4, 8])).reshape(4, -1)
    tp, pp, dp, ep = np.tile(grid, -(-count // grid.shape[1]))[:, :count].astype(float)
    return layout(tp=tp, pp=pp, dp=dp, ep=ep)


def crossed(layouts: int, batches: int) -> Candidates:
    return candidates(many_layouts(layouts), np.arange(1.0, batches + 1.0)[None, :])


@pytest.mark.parametrize("name", MODELS)
def test_a_table(name: str, benchmark: Any, remark: Remark) -> None:
    """200 layouts × 500 batches."""
    at, asked = served(name), crossed(200, 500)
    benchmark(lambda: evaluate_setting(at, asked))
    if benchmark.stats:
        remark(f"table of {name}: {asked.rows / benchmark.stats['min']:,.0f} rows/s")


@pytest.mark.parametrize("name", MODELS)
def test_one_plan(name: str, benchmark: Any, remark: Remark) -> None:
    """A plan with its curve, ledger and notes."""
    at = served(name)
    benchmark(lambda: plan_setting(at))
    if benchmark.stats:
        remark(f"plan of {name}: {benchmark.stats['min'] * 1e3:.1f} ms")


@pytest.mark.parametrize("name", ["llama-3.1-70b", "deepseek-v3"])
def test_a_row_of_a_table_is_50_times_cheaper_than_a_row_alone(
    name: str, best_of: Callable[..., float], remark: Remark
) -> None:
    at, asked = served(name), crossed(128, 256)
    alone = candidates(layout(tp=8), np.full((1, 1), 32.0))
    row_in_table = best_of(lambda: evaluate_setting(at, asked), 3) / asked.rows
    row_alone = best_of(lambda: evaluate_setting(at, alone), 5)
    remark(f"row of {name}: {row_alone / row_in_table:,.0f} times cheaper in a table ({1 / row_in_table:,.0f} rows/s)")
    assert row_alone > 50 * row_in_table


def test_time_grows_with_the_table_and_no_faster(best_of: Callable[..., float]) -> None:
    at = served("llama-3.1-70b")
    small, large = (best_of(lambda n=n: evaluate_setting(at, crossed(n, 500)), 3) for n in (100, 400))
    assert large < 4 * small * 1.6


def test_more_layers_of_a_kind_cost_no_more_time(best_of: Callable[..., float]) -> None:
    """Equal layers are one: 126 layers of Llama-405B against 32 of the 8B."""
    names = ("llama-3.1-405b", "llama-3.1-8b")
    deep, shallow = (best_of(lambda n=n: evaluate_setting(served(n), crossed(100, 200))) for n in names)
    assert deep < 2 * shallow


def test_working_memory_does_not_grow_with_the_table(remark: Remark) -> None:
    """Beside the table itself; in blocks, two at a time."""

    def beside(layouts: int) -> float:
        asked = crossed(layouts, 500)
        tracemalloc.start()
        found = evaluate_setting(served("llama-3.1-70b"), asked)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        kept = sum(getattr(found, name).nbytes for name in found.__dataclass_fields__ if name != "reasons")
        remark(f"{asked.rows:,} rows: peak {peak / 1e6:,.0f} MB, table {kept / 1e6:,.0f} MB")
        return peak / kept

    small, large = beside(400), beside(1600)
    assert large < small * 1.1 + 0.1
    assert large < 3.0


def test_two_million_rows_in_blocks(remark: Remark) -> None:
    """A search keeps what it needs of each table: 20 tables of 100,000 rows take the memory of one."""
    at, asked = served("llama-3.1-70b"), crossed(200, 500)
    evaluate_setting(at, asked)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = max(float(np.nanmax(evaluate_setting(at, asked).goodput_tok_s)) for _ in range(20))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    remark(f"2,000,000 rows in 20 tables: resident memory grew by {grown / 1024:,.0f} MB")
    assert best > 0
    assert grown < 300 * 1024


def test_resolving_is_remembered(best_of: Callable[..., float]) -> None:
    asked = Scenario(model="deepseek-v3", weights="fp8", gpu="b200-sxm", tp=8)
    known = best_of(lambda: resolve(asked))
    new = best_of(lambda: resolve.__wrapped__(asked))
    assert known < new
