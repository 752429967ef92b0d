"""Replications: the same on every executor, and intervals that are Student's."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planner
from planner import simulate
from planner.errors import InputError
from planner.optimise.answer import Cancelled, Progress
from planner.simulate.figures import FIGURES, digest, figures
from planner.simulate.replicate import Estimate, RunsLostError, estimate, replicate
from planner.simulate.requests import requests
from planner.simulate.traffic import Traffic
from planner.specs.scenario import Scenario
from tests.executors import EXECUTORS, threads

ASKED = Scenario(model="llama-3.1-8b", osl=16, qps=20.0, sla_pct=90.0)
TRAFFIC = Traffic(requests=120, arrival="gamma", isl_cv=0.5, seed=11)


# --- the package ----------------------------------------------------------------------------------------------------


def test_the_package_is_what_it_does() -> None:
    assert planner.simulate is simulate
    assert "simulate" in planner.__all__
    assert len(planner.__all__) <= 12
    run = simulate(ASKED, TRAFFIC)
    assert isinstance(run, simulate.Run)
    assert simulate.Traffic is Traffic
    assert simulate.replicate is replicate
    trace = simulate.read_trace(b"time_s,input_tokens,output_tokens\n0,10,2\n1.5,20,3\n", "two")
    assert trace.requests.isl.tolist() == [10, 20]


# --- the same answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_same_as_one_after_the_other(executor: Any) -> None:
    serial = replicate(ASKED, TRAFFIC, runs=4)
    with executor() as pool:
        assert replicate(ASKED, TRAFFIC, runs=4, executor=pool) == serial


def test_runs_are_those_of_the_seeds_that_follow() -> None:
    found = replicate(ASKED, TRAFFIC, runs=3)
    for at, each in enumerate(found.runs):
        alone = simulate(ASKED, TRAFFIC.model_copy(update={"seed": 11 + at}))
        assert each == digest(alone)
    assert len({each.summary.ttft.mean for each in found.runs}) == 3


def test_after_the_last_seed_comes_the_first() -> None:
    found = replicate(ASKED, TRAFFIC.model_copy(update={"seed": 2**32 - 1}), runs=2)
    assert [each.traffic.seed for each in found.runs] == [2**32 - 1, 0]


def test_a_trace_travels_with_its_runs() -> None:
    trace = requests(np.arange(40) * 0.1, np.full(40, 300), np.full(40, 8))
    serial = replicate(ASKED, None, trace, runs=2)
    assert serial.runs[0].summary.requests == 40
    with threads() as pool:
        assert replicate(ASKED, None, trace, runs=2, executor=pool) == serial


# --- figures --------------------------------------------------------------------------------------------------------


def test_every_number_of_a_summary_has_a_name() -> None:
    run = simulate(ASKED, TRAFFIC)
    found = figures(run.summary)
    assert tuple(found) == FIGURES
    assert found["ttft_p95_ms"] == run.summary.ttft.p95
    assert found["e2e_pct_ms"] == run.summary.e2e.at_pct == run.summary.e2e.p90
    assert (found["kv_used"], found["prefix_hit"]) == (run.summary.used, run.summary.hit)


def test_an_interval_by_hand() -> None:
    """1, 2, 3, 4: s = √(5/3); t(0.975; 3) = 3.182 of every table; half = 3.182 · 1.291 / 2."""
    found = estimate([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.deviation == pytest.approx((5 / 3) ** 0.5, rel=1e-12)
    assert found.half == pytest.approx(3.182 * (5 / 3) ** 0.5 / 2, rel=2e-4)
    assert (found.low + found.high) / 2 == pytest.approx(2.5, rel=1e-12)
    assert found.runs == 4


def test_two_values_by_hand() -> None:
    """0 and 2: s = √2, t(0.975; 1) = 12.706; half = 12.706 · √2 / √2."""
    assert estimate([0.0, 2.0]).half == pytest.approx(12.706, rel=1e-4)


def test_what_is_missing_is_not_made_up() -> None:
    assert estimate([]) == Estimate(None, None, None, None, 0)
    assert estimate([3.0]) == Estimate(3.0, None, None, None, 1)


def test_nineteen_of_twenty_intervals_hold_the_mean() -> None:
    """4,000 samples of five normal numbers: the share is known to √(0.95 · 0.05 / 4,000) = 0.0034; three of these."""
    values = np.random.default_rng(5).normal(7.0, 2.0, (4000, 5))
    found = [estimate(row) for row in values]
    assert np.mean([each.low <= 7.0 <= each.high for each in found]) == pytest.approx(0.95, abs=0.0104)


def test_estimates_are_those_of_the_runs() -> None:
    found = replicate(ASKED, TRAFFIC, runs=3)
    means = [each.summary.ttft.p99 for each in found.runs]
    assert found.estimates["ttft_p99_ms"] == estimate(means)
    assert tuple(found.estimates) == FIGURES
    assert found.share_meets == np.mean([each.summary.meets_sla for each in found.runs])


def test_requests_of_one_token_have_no_tpot() -> None:
    found = replicate(ASKED.with_(osl=1), TRAFFIC, runs=2)
    assert found.estimates["tpot_p99_ms"] == Estimate(None, None, None, None, 0)
    assert found.estimates["ttft_p99_ms"].runs == 2


# --- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1, 0, -3, 10_001, True])
def test_one_run_is_no_replication(runs: int) -> None:
    with pytest.raises(InputError, match="must be a whole number from 2 to 10,000"):
        replicate(ASKED, TRAFFIC, runs=runs)


@pytest.mark.parametrize("executor", [nullcontext, threads])
def test_a_refusal_is_everybodys(executor: Any) -> None:
    with executor() as pool, pytest.raises(InputError, match="turns = 100"):
        replicate(ASKED.with_(osl=256), TRAFFIC.model_copy(update={"turns": 100}), runs=3, executor=pool)


class Losing(Executor):
    """Runs of some seeds are lost, as when a worker dies, so many times."""

    def __init__(self, seeds: set[int], times: int) -> None:
        self.left = dict.fromkeys(seeds, times)

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:  # noqa: ARG002
        future: Future[Any] = Future()
        seed = args[1].seed
        if self.left.get(seed, 0):
            self.left[seed] -= 1
            future.set_exception(BrokenProcessPool("a worker died"))
        else:
            future.set_result(function(*args))
        return future


def test_a_lost_run_is_sent_once_more() -> None:
    assert replicate(ASKED, TRAFFIC, runs=3, executor=Losing({12}, 1)) == replicate(ASKED, TRAFFIC, runs=3)


def test_a_run_that_is_lost_twice_is_named_and_in_no_figure() -> None:
    whole = replicate(ASKED, TRAFFIC, runs=3)
    found = replicate(ASKED, TRAFFIC, runs=3, executor=Losing({12}, 2))
    assert found.lost == (12,)
    assert found.runs == (whole.runs[0], whole.runs[2])
    assert found.estimates["ttft_mean_ms"].runs == 2


class Broken(Executor):
    """Takes nothing any more."""

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:  # noqa: ARG002
        raise BrokenProcessPool("broken")


def test_an_executor_that_takes_nothing() -> None:
    with pytest.raises(RunsLostError, match=r"3 were lost by the workers \(BrokenProcessPool: broken\)"):
        replicate(ASKED, TRAFFIC, runs=3, executor=Broken())


# --- progress and cancel --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", [nullcontext, threads])
def test_progress_counts_runs_and_requests(executor: Any) -> None:
    seen: list[Progress] = []
    with executor() as pool:
        replicate(ASKED, TRAFFIC, runs=3, executor=pool, on_progress=seen.append)
    assert [each.done for each in seen] == [1, 2, 3]
    assert {each.total for each in seen} == {3}
    assert seen[-1].considered == 360


def test_progress_within_a_run_counts_the_runs_before_it() -> None:
    seen: list[Progress] = []
    replicate(ASKED, of(2500), runs=2, on_progress=seen.append)
    assert [(each.done, each.total) for each in seen if each.considered in (2500, 5000)] == [(1, 2), (2, 2)]
    assert any(each.done == 1 and 2500 < each.considered < 5000 for each in seen)


def of(count: int) -> Traffic:
    return TRAFFIC.model_copy(update={"requests": count})


@pytest.mark.parametrize("executor", [nullcontext, threads])
def test_cancel_withdraws_what_has_not_begun(executor: Any) -> None:
    seen: list[Progress] = []
    with executor() as pool, pytest.raises(Cancelled):
        replicate(ASKED, TRAFFIC, None, 40, pool, seen.append, lambda: len(seen) >= 2)
    assert len(seen) == 2


def test_digests_hold_no_requests() -> None:
    run = simulate(ASKED, TRAFFIC)
    assert digest(digest(run)) == digest(replace(run)) == digest(run)
    assert (digest(run).rate, digest(run).limit, digest(run).replicas) == (20.0, run.limit, run.plan.replicas)
