"""Sweeps on threads, processes and a Dask cluster: the same answers as one after the other, and errors that stay their own."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.catalog.prices import default_price
from planner.errors import InputError
from planner.optimise.answer import Cancelled, Progress
from planner.optimise.draws import Draw, monte_carlo
from planner.optimise.question import Question
from planner.optimise.search import optimise
from planner.optimise.sweep import Swept, quantiles, sweep
from planner.specs.scenario import Scenario
from planner.variants import outcome
from tests.executors import EXECUTORS, threads

ASKED = Scenario(tp=4, qps=12.0, sla_ttft_ms=800.0)
SPREAD = {"price": Draw(0.3), "qps": Draw(0.5), "isl": Draw(0.2), "osl": Draw(0.4)}


def drawn(count: int) -> list[Scenario]:
    return list(monte_carlo(ASKED, count, seed=3, **SPREAD))


# --- the same answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_same_answers_as_one_after_the_other(executor: Any) -> None:
    items = [*drawn(60), ASKED.with_(model="no-such-model"), ASKED.with_(sla_ttft_ms=1.0)]
    serial = sweep(items)
    with executor() as pool:
        assert sweep(items, pool, batch=7) == serial
    assert [each.item for each in serial] == items
    assert serial[0].outcome == outcome(items[0])


def test_order_is_that_of_the_items_whatever_comes_back_first() -> None:
    items = drawn(30)
    with ThreadPoolExecutor(4) as pool:
        found = sweep(items, Backwards(pool), batch=1)
    assert [each.item for each in found] == items


class Backwards(Executor):
    """An executor whose first batches take longest."""

    def __init__(self, pool: Executor) -> None:
        self.pool, self.sent = pool, 0

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:
        self.sent += 1
        wait = max(0.0, 0.05 - 0.005 * self.sent)

        def late() -> Any:
            time.sleep(wait)
            return function(*args, **named)

        return self.pool.submit(late)


def test_any_iterable_will_do() -> None:
    assert sweep(iter(drawn(3))) == sweep(drawn(3))
    assert sweep([]) == ()


# --- questions ------------------------------------------------------------------------------------------------------


def test_questions_are_searched() -> None:
    questions = [Question(scenario=ASKED.with_(qps=qps), max_gpus=16) for qps in (2.0, 6.0, 12.0)]
    with ThreadPoolExecutor(2) as pool:
        found = sweep(questions, pool)
    answers = [optimise(question) for question in questions]
    assert [replace(each.answer, seconds=0.0) for each in found] == [replace(each, seconds=0.0) for each in answers]
    costs = sorted(answer.winner.outcome.usd_per_m_goodput for answer in answers)
    assert quantiles(found, shares=(0.0, 0.5, 1.0)).values == pytest.approx(tuple(costs))


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_an_error_is_that_of_its_item() -> None:
    items = [ASKED, ASKED.with_(gpu="no-such-gpu"), ASKED.with_(qps=3.0)]
    good, bad, other = sweep(items)
    assert (good.error, other.error) == ("", "")
    assert bad.outcome is None
    assert "no-such-gpu" in bad.error


def test_an_error_that_is_not_ours_names_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    def slip(_: Scenario) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(sys.modules["planner.optimise.sweep"], "outcome", slip)
    assert sweep([ASKED])[0].error == "ZeroDivisionError: by zero"


def test_a_plan_that_does_not_stand_is_an_outcome() -> None:
    (found,) = sweep([ASKED.with_(sla_ttft_ms=1.0)])
    assert not found.outcome.stands
    assert found.error == ""


class Losing(Executor):
    """Batches that hold one item are lost, as when it kills its worker."""

    def __init__(self, deadly: Scenario) -> None:
        self.deadly = deadly

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:  # noqa: ARG002
        future: Future[Any] = Future()
        (items,) = args
        if self.deadly in items:
            future.set_exception(BrokenProcessPool("a worker died"))
        else:
            future.set_result(function(items))
        return future


def test_a_lost_batch_is_sent_again_item_by_item() -> None:
    items = drawn(10)
    found = sweep(items, Losing(items[4]), batch=5)
    assert [each.error for each in found] == ["BrokenProcessPool: a worker died" if at == 4 else "" for at in range(10)]
    assert [each for at, each in enumerate(found) if at != 4] == [
        each for at, each in enumerate(sweep(items)) if at != 4
    ]


class Broken(Executor):
    """Takes nothing any more."""

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:  # noqa: ARG002
        raise BrokenProcessPool("broken")


def test_an_executor_that_takes_nothing_leaves_errors() -> None:
    assert {each.error for each in sweep(drawn(5), Broken(), batch=2)} == {"BrokenProcessPool: broken"}


def test_batches_have_items() -> None:
    with pytest.raises(InputError, match="batch = 0"):
        sweep([ASKED], batch=0)


# --- progress and cancel --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", [nullcontext, threads])
def test_progress_counts_items(executor: Any) -> None:
    seen: list[Progress] = []
    with executor() as pool:
        sweep(drawn(10), pool, batch=4, on_progress=seen.append)
    assert {each.total for each in seen} == {10}
    assert (len(seen), seen[-1].done) == (3, 10)


@pytest.mark.parametrize("executor", [nullcontext, threads])
def test_cancel_withdraws_what_has_not_begun(executor: Any) -> None:
    seen: list[Progress] = []
    with executor() as pool, pytest.raises(Cancelled):
        sweep(drawn(40), pool, batch=1, on_progress=seen.append, cancelled=lambda: len(seen) >= 2)
    assert len(seen) == 2


# --- draws ----------------------------------------------------------------------------------------------------------


def test_draws_have_the_mean_and_spread_asked_for() -> None:
    """20,000 draws: the mean is known to cv/√20,000, under half a percent; rounding of lengths adds 1/12 to the variance."""
    found = list(monte_carlo(ASKED, 20_000, seed=1, **SPREAD))
    for name, mean in (
        ("price", default_price("h100-sxm").usd_per_hour),
        ("qps", 12.0),
        ("isl", 1024.0),
        ("osl", 256.0),
    ):
        values = np.array([getattr(each, name) for each in found], dtype=float)
        assert values.mean() == pytest.approx(mean, rel=0.015)
        assert values.std() / values.mean() == pytest.approx(SPREAD[name].cv, rel=0.03)
        assert np.median(values) == pytest.approx(mean / np.sqrt(1 + SPREAD[name].cv ** 2), rel=0.02)


def test_equal_seeds_are_equal_and_one_more_field_changes_no_other() -> None:
    assert drawn(5) == drawn(5)
    assert drawn(5) != list(monte_carlo(ASKED, 5, seed=4, **SPREAD))
    alone = list(monte_carlo(ASKED, 5, seed=3, qps=SPREAD["qps"]))
    assert [each.qps for each in alone] == [each.qps for each in drawn(5)]
    assert {each.isl for each in alone} == {1024}


def test_no_spread_is_the_scenario() -> None:
    (found,) = monte_carlo(ASKED, 1, qps=Draw(0.0), isl=Draw(0.0), osl=Draw(0.0, mean=100.0))
    assert found == ASKED.with_(osl=100)


def test_values_stay_within_what_a_field_allows() -> None:
    wide = list(monte_carlo(ASKED.with_(isl=2, osl=2, max_len=6), 200, isl=Draw(3.0), osl=Draw(3.0)))
    assert min(each.osl for each in wide) == 2
    assert max(each.isl + each.osl for each in wide) <= 6


@pytest.mark.parametrize(
    ("asked", "draws"),
    [
        (ASKED.with_(qps=0.0), {"qps": Draw(0.3)}),
        (ASKED, {"price": Draw(-0.1)}),
        (ASKED, {"isl": Draw(0.1, mean=-5.0)}),
        (ASKED, {"osl": Draw(float("nan"))}),
    ],
)
def test_what_cannot_be_drawn_is_refused_at_once(asked: Scenario, draws: dict[str, Draw]) -> None:
    with pytest.raises(InputError) as refused:
        monte_carlo(asked, 3, **draws)
    assert [fault.field for fault in refused.value.faults] == list(draws)


# --- quantiles ------------------------------------------------------------------------------------------------------


def test_quantiles_by_hand() -> None:
    """Costs of 1, 2, 3, 4 $: the median is 2.5, the quarter 1.75; what fell or failed is counted and not averaged."""
    base = outcome(ASKED)
    costs = [replace(base, usd_per_m_goodput=float(cost)) for cost in (4, 1, 3, 2)]
    found = [Swept(ASKED, cost) for cost in costs]
    found += [Swept(ASKED, replace(base, meets_sla=False)), Swept(ASKED, error="no")]
    told = quantiles(found, shares=(0.0, 0.25, 0.5, 1.0))
    assert told.values == pytest.approx((1.0, 1.75, 2.5, 4.0))
    assert (told.known, told.fallen, told.failed) == (4, 1, 1)


def test_quantiles_of_nothing() -> None:
    assert quantiles([]).values == ()


@pytest.mark.parametrize("field", ["nonsense", "reason", "fits"])
def test_only_numbers_have_quantiles(field: str) -> None:
    with pytest.raises(InputError, match=r"field = "):
        quantiles([], field)


def test_shares_lie_between_zero_and_one() -> None:
    with pytest.raises(InputError, match="shares"):
        quantiles([], shares=(0.5, 1.5))


# --- an optional requirement ----------------------------------------------------------------------------------------


def test_the_planner_does_not_load_dask(root: Path) -> None:
    question = "import sys, planner.optimise.sweep; sys.exit(' '.join({'dask', 'distributed'} & set(sys.modules)) or 0)"
    done = subprocess.run(
        (sys.executable, "-c", question), cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
