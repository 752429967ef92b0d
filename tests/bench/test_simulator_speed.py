"""How fast a simulation is: ratios within one run, so that a slow machine fails nothing; the figures are printed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from planner.setting import resolve
from planner.simulate import workload
from planner.simulate.run import Ready, offered, ready, simulate
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario

INSTANCE = Scenario(model="llama-3.1-8b", gpu="h100-sxm", isl=1024, osl=256)

Remark = Callable[[str], None]


def prepared(count: int, **changes: Any) -> Ready:
    """A run at the plan's own load, ready to begin."""
    traffic, plan = Traffic(requests=count, **changes), plan_of(INSTANCE)
    table = workload.made(INSTANCE, traffic, offered(INSTANCE, traffic, plan))
    return ready(resolve(INSTANCE), plan, traffic, table)


def served(count: int, **changes: Any) -> Callable[[], None]:
    """A whole run, made and measured."""

    def run() -> None:
        simulate(INSTANCE, Traffic(requests=count, **changes))

    return run


def test_cost_of_a_request_does_not_grow_with_their_number(best_of: Callable[..., float], remark: Remark) -> None:
    small, large = best_of(served(10_000), 3) / 10_000, best_of(served(100_000), 1) / 100_000
    remark(f"simulation of 100,000 requests of 256 tokens on one instance: {large * 1e5:.1f} s ({1 / large:,.0f}/s)")
    assert large < 1.5 * small


@pytest.mark.parametrize("changes", [{"osl_cv": 1.0}, {"isl_cv": 1.0, "osl_cv": 1.0, "arrival": "gamma", "cv": 3.0}])
def test_spread_lengths_cost_little_more(
    changes: dict[str, Any], best_of: Callable[..., float], remark: Remark
) -> None:
    """More boundaries, since requests that came together end apart."""
    equal, spread = best_of(served(10_000), 3), best_of(served(10_000, **changes), 3)
    remark(
        f"simulation with {', '.join(changes)}: {10_000 / spread:,.0f} requests/s, {spread / equal:.1f} times as long"
    )
    assert spread < 4 * equal


def test_a_jump_is_worth_it(best_of: Callable[..., float], remark: Remark) -> None:
    """Where little else happens, one request a second: against the same run in which every step is taken by itself."""

    def stepped() -> None:
        run = prepared(500, rate=1.0)
        for engine in run.loop.engines:
            engine.running.jump = lambda _: 1  # type: ignore[method-assign]
        run.loop.run(None, None)

    def jumped() -> None:
        prepared(500, rate=1.0).loop.run(None, None)

    single, jump = best_of(stepped, 2), best_of(jumped, 2)
    remark(f"simulation in jumps: {single / jump:.1f} times faster than step by step")
    assert 2 * jump < single


def test_memory_of_a_request_does_not_grow_with_their_number(remark: Remark) -> None:
    def peak(count: int) -> float:
        tracemalloc.start()
        prepared(count).loop.run(None, None)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most / count

    prepared(100)
    small, large = peak(4_000), peak(16_000)
    remark(f"simulation: at most {large:,.0f} bytes a request")
    assert large < 1.1 * small
