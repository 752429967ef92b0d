"""Studies of several runs: the knee, routers and limits, one failed replica; tiny runs, judged by what must be so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.errors import InputError
from planner.optimise.answer import Cancelled, Progress
from planner.simulate import outage as outages
from planner.simulate.expected import beyond, expected
from planner.simulate.outage import outage
from planner.simulate.requests import requests
from planner.simulate.run import simulate
from planner.simulate.studies import Knee, RatePoint, Routing, Way, carried, knee, rate_of, routing, steady
from planner.simulate.summary import Spread
from planner.simulate.traffic import ROUTERS, Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario

TWO = Scenario(weights="fp8", tp=4, fix_replicas=2, osl=32, sla_ttft_ms=500.0, sla_pct=95.0)
ONE = TWO.with_(fix_replicas=1)
FEW = Traffic(requests=300)


@pytest.fixture(scope="module")
def found() -> Knee:
    return knee(TWO, FEW)


def test_the_knee_lies_between_a_rate_that_holds_and_one_that_does_not(found: Knee) -> None:
    assert [each.rate for each in found.points] == sorted(each.rate for each in found.points)
    traffic = steady(FEW, plan_of(TWO))
    at = {each.rate: simulate(TWO, traffic.model_copy(update={"rate": each.rate})).summary for each in found.points}
    assert all(at[each.rate] == each.summary for each in found.points), "each point is a run of that rate"
    assert at[found.knee].meets_sla
    assert not at[found.broken].meets_sla
    below = [each for each in found.points if each.rate <= found.knee]
    assert all(each.summary.meets_sla for each in below), "and every smaller rate holds"


def test_the_knee_is_found_closely(found: Knee) -> None:
    """The widest gap between first rates is 0.15 of what is carried, and it is halved four times."""
    full = carried(plan_of(TWO), TWO.osl)
    assert found.broken - found.knee <= full * 0.15 / 2**4 + 1e-9


def test_below_the_knee_all_that_is_offered_is_good(found: Knee) -> None:
    """Conservation: at a low rate good tokens a second are requests a second times their tokens."""
    first = found.points[0]
    assert first.summary.good_tok_s * found.replicas == pytest.approx(first.rate * TWO.osl, rel=0.25)
    assert found.points[0].rate == pytest.approx(0.25 * carried(plan_of(TWO), TWO.osl))


def test_what_full_batches_carry_is_throughput_over_output() -> None:
    plan = plan_of(TWO)
    assert carried(plan, 32.0) == pytest.approx(plan.output_tok_s * 2 / 32)


def test_a_study_has_ten_times_the_requests_that_all_replicas_hold() -> None:
    """2 replicas of 8 in flight hold 16: 160; more where more are asked for; at most 30,000 of its own accord."""
    plan = plan_of(TWO.with_(at_batch=8))
    assert steady(Traffic(requests=40), plan).requests == 160
    assert steady(Traffic(requests=500), plan).requests == 500
    assert steady(Traffic(requests=40, in_flight=2), plan).requests == 40
    assert steady(Traffic(requests=40, in_flight=100_000), plan).requests == 30_000


def test_a_promise_that_nothing_keeps_has_no_knee_and_one_that_all_keep_no_end() -> None:
    never = knee(TWO.with_(sla_ttft_ms=0.001, at_batch=8), Traffic(requests=40))
    assert never.knee is None
    assert never.broken == never.points[0].rate
    always = knee(TWO.with_(sla_ttft_ms=3_600_000.0, sla_tpot_ms=3_600_000.0, at_batch=8), Traffic(requests=40))
    assert always.broken is None
    assert always.knee == always.points[-1].rate


def test_the_rate_asked_is_among_those_tried() -> None:
    found = knee(TWO.with_(at_batch=8), Traffic(requests=40, rate=7.0))
    assert found.now == 7.0
    assert 7.0 in [each.rate for each in found.points]


def test_a_trace_is_played_faster_and_slower() -> None:
    """Four arrivals a second apart are (4 − 1) / 3 s = 1 request a second."""
    trace = requests(np.arange(4.0), np.full(4, 100), np.full(4, 8))
    assert rate_of(trace) == 1.0
    assert rate_of(requests(np.zeros(3), np.full(3, 1), np.full(3, 1))) is None
    assert knee(ONE, Traffic(), trace).now == 1.0


def test_a_load_test_has_no_rate_to_vary() -> None:
    with pytest.raises(InputError, match="sets clients"):
        knee(TWO, Traffic(arrival="closed"))


def test_every_router_is_tried_under_every_limit() -> None:
    found = routing(TWO.with_(at_batch=8), Traffic(requests=60))
    assert [(way.router, way.limit) for way in found.ways] == [
        (name, limit) for name in ROUTERS for limit in (4, 8, 16)
    ]
    assert (found.as_set.router, found.as_set.limit) == ("least-loaded", 8)
    assert not found.sharing
    same = {way.router: way.summary for way in found.ways if way.limit == 8}
    assert same["affinity"] == same["least-loaded"], "without sessions there is nothing to go by"
    assert [way.limit for way in routing(ONE.with_(at_batch=8), Traffic(requests=40)).ways] == [4, 8, 16]


def made_up(*figures: tuple[str, int, float, float]) -> Routing:
    """A comparison of made-up ways: router, limit, share of good requests, TTFT [ms]."""
    summary = simulate(ONE, Traffic(requests=20)).summary
    ways = tuple(
        Way(router, limit, replace(summary, share_good=good, ttft=Spread(*(6 * [ttft]))))
        for router, limit, good, ttft in figures
    )
    return Routing(ways, (4, 8), "least-loaded", 8, 2, False)


def test_the_best_way_serves_most_then_soonest_and_of_equals_it_is_the_one_set() -> None:
    found = made_up(("round-robin", 8, 0.99, 300.0), ("least-loaded", 8, 0.90, 100.0))
    assert found.best.router == "round-robin"
    found = made_up(("round-robin", 8, 0.99, 100.0), ("least-loaded", 8, 0.99, 300.0))
    assert found.best.router == "round-robin"
    found = made_up(("round-robin", 4, 0.99, 100.0), ("least-loaded", 4, 0.99, 99.5), ("least-loaded", 8, 0.99, 100.5))
    assert (found.best.router, found.best.limit) == ("least-loaded", 8)


def test_a_failed_replica_holds_what_is_restarted() -> None:
    """With room for everybody a request is on its replica from arrival to end: those on the failed one begin again."""
    asked = Traffic(rate=30.0, requests=400, in_flight=400)
    whole = simulate(TWO, asked).outcome
    at = 5.0
    held = (whole.replica == 0) & (whole.requests.arrival < at) & (whole.end > at)
    broken = simulate(TWO, asked.model_copy(update={"fail_at_s": at, "repair_s": 3.0})).outcome
    restarted, on_it = broken.restarted, int(held.sum())
    assert restarted == on_it > 0
    assert whole.restarted == 0
    before = whole.end < at
    assert np.array_equal(whole.ttft[before], broken.ttft[before]), "nothing before the failure changes"


def test_an_outage_of_the_only_replica_makes_requests_wait_for_its_repair() -> None:
    asked = Traffic(rate=5.0, repair_s=20.0, fail_at_s=20.0)
    found = outage(ONE, asked)
    assert (found.failed.replicas, found.spared.replicas, found.fail_at, found.repair_s) == (1, 2, 20.0, 20.0)
    assert found.width_s == 20.0, "the least width with 100 arrivals"
    assert found.failed.worst_ms > 1e3 * 17.0, "whoever comes at once waits for nearly all of the repair"
    assert found.failed.worst_ms < 1e3 * 30.0
    assert found.spared.worst_ms < 1e3
    assert found.failed.recovered_s >= 20.0
    assert found.spared.recovered_s == 0.0
    assert found.healthy.restarted == 0
    assert len(found.failed.start) == len(found.failed.ttft) == len(found.failed.good)
    at = found.failed.start.index(20.0)
    assert found.failed.good[at] == 0.0, "nobody who comes in the first window keeps the promise"


def test_a_failure_changes_nothing_that_is_drawn_before_it() -> None:
    """With everybody at work from arrival on, windows before the failure are those without it, to the digit."""
    found = outage(TWO, Traffic(rate=30.0, repair_s=20.0, fail_at_s=20.0, in_flight=400))
    before = [at for at, start in enumerate(found.failed.start) if start < found.fail_at]
    assert len(before) == 20 // found.width_s
    assert [found.failed.ttft[at] for at in before] == [found.healthy.ttft[at] for at in before]
    assert found.failed.restarted > 0
    after = [time for start, time in zip(found.failed.start, found.failed.ttft, strict=True) if start >= found.fail_at]
    assert found.failed.worst_ms == max(after), "the worst is the worst of what is drawn from the failure on"


def test_a_request_that_a_failure_catches_is_counted_after_it() -> None:
    """One request a second, the failure at 10.5 s. Who came at 10 s has a first token at 16 s, the others 0.1 s after they came:
    at P100 the ten seconds before the failure have 0.1 s, those after it 6 s."""
    base = simulate(ONE.with_(sla_pct=99.99), Traffic(requests=20, rate=1.0))
    arrival = np.arange(20.0)
    first = arrival + 0.1
    first[10] = 16.0
    table = replace(base.outcome.requests, arrival=arrival)
    outcome = replace(base.outcome, requests=table, first=first, ttft=first - arrival, end=first + 1.0)
    course = outages._course(replace(base, outcome=outcome), 10.0, 10.5, np.inf, 19.0)
    assert course.start == pytest.approx((-9.5, 0.5, 10.5))
    assert course.ttft == pytest.approx((100.0, 100.0, 6000.0))
    assert (course.worst_ms, course.caught_ms) == pytest.approx((6000.0, 6000.0))


def test_the_limit_does_not_matter_where_every_router_comes_to_the_same_under_all() -> None:
    same = made_up(("round-robin", 4, 0.99, 192.0), ("round-robin", 8, 0.99, 193.0), ("least-loaded", 8, 0.99, 228.0))
    assert same.one_limit
    assert not made_up(("round-robin", 4, 0.99, 192.0), ("round-robin", 8, 0.99, 228.0)).one_limit


def test_time_to_recover_is_counted_to_the_end_of_the_last_disturbed_window() -> None:
    windows = [(100.0, 60.0), (900.0, 70.0), (100.0, 80.0), (700.0, 90.0), (100.0, 100.0)]
    assert outages._recovered(windows, 10.0, 60.0, 500.0) == 40.0
    assert outages._recovered(windows[:1], 10.0, 60.0, 500.0) == 0.0
    assert outages._recovered(windows[:4], 10.0, 60.0, 500.0) is None


def test_a_trace_has_its_failure_after_a_third() -> None:
    trace = requests(np.arange(0.0, 30.0, 0.1), np.full(300, 200), np.full(300, 8))
    found = outage(TWO, Traffic(), trace)
    assert found.fail_at == pytest.approx(29.9 / 3)
    assert found.fail_at + found.repair_s < 29.9


@pytest.mark.parametrize("study", [knee, routing, outage])
def test_a_study_tells_how_far_it_is_and_stops_when_told_to(study) -> None:
    told: list[Progress] = []
    study(TWO.with_(at_batch=8), Traffic(requests=1200, rate=20.0, repair_s=10.0, fail_at_s=5.0), None, told.append)
    shares = [each.done / each.total for each in told]
    assert len(shares) >= 3
    assert all(0.0 <= each <= 1.0 for each in shares)
    with pytest.raises(Cancelled):
        study(TWO.with_(at_batch=8), Traffic(requests=1200, rate=20.0, fail_at_s=60.0), None, None, lambda: True)


def test_theory_takes_every_replica_by_itself() -> None:
    plan, one = plan_of(TWO), plan_of(ONE)
    both = expected(TWO, Traffic(), plan, (4.0, 8.0))
    alone = expected(ONE, Traffic(), one, (2.0, 4.0))
    assert [each.ttft_ms for each in both] == pytest.approx([each.ttft_ms for each in alone])
    assert both[0].most == pytest.approx(2 * alone[0].most)
    assert both[0].sure
    assert expected(TWO, Traffic(), replace(plan, replicas=None), (1.0,)) == ()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"arrival": "gamma"}, "not Poisson"), ({"turns": 3}, "session"), ({"policy": "static"}, "whole batches"),
        ({"fail_at_s": 3.0}, "fails"), ({"over": "reject"}, "turned away"), ({}, ""),
    ],
)  # fmt: skip
def test_what_theory_does_not_cover_is_named(changed: dict, why: str) -> None:
    assert why in beyond(Traffic(**changed), given=False)
    assert bool(beyond(Traffic(**changed), given=False)) == bool(why)
    assert "trace" in beyond(Traffic(**changed), given=True)


def test_points_of_a_knee_are_found_again() -> None:
    summary = simulate(ONE, Traffic(requests=20)).summary
    points = tuple(RatePoint(rate, summary) for rate in (1.0, 2.0, 3.0))
    found = Knee(points, 2.0, 3.0, 1.5, 1, 20)
    assert found.at_knee == points[1]
    assert found.at_broken == points[2]
    assert Knee(points, None, None, 1.5, 1, 20).at_knee is None
