"""What one failed replica does: the same requests without it, with it, and with a spare replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

import numpy as np

from planner.optimise.answer import Progress
from planner.plan import Plan
from planner.simulate.outcome import Outcome
from planner.simulate.requests import Requests
from planner.simulate.run import Run, offered
from planner.simulate.studies import Watch
from planner.simulate.summary import Summary
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario

LEAD_S: Final = 60.0
"""Time before the failure, at least [s]."""

LEAD_STAYS: Final = 5.0
"""The same, in times that a request stays."""

AFTER: Final = 1.5
"""Time after the repair that is watched, in times that the repair takes."""

LEAST_AFTER: Final = 1.0
"""The same, at least: where a run is shorter than it was meant to be, the repair is."""

MOST_REQUESTS: Final = 60_000
"""Most requests of one of the three runs; with more a second the repair is watched for a shorter time."""

A_WINDOW: Final = 100.0
"""Requests that arrive within one window, about."""

WIDTHS_S: Final = (2.0, 5.0, 10.0, 20.0, 30.0, 60.0)
"""Widths that a window may have [s]."""


@dataclass(frozen=True)
class Course:
    """One run over time, in windows by arrival; who arrived before the failure and has no first token yet counts after it.

    Attributes:
        start: of each window [s]; ttft: at the promised percentile [ms], None where a window is empty or not served.
        good: share of its requests that kept the promise.
        replicas: how many there were, the failed one counted; restarted: requests that had to begin again.
        caught_ms: longest TTFT of requests that arrived before the failure and have their first token after it [ms]; None where
            there are none.
        worst_ms: longest TTFT of a window from the failure on [ms]; None where a request of one is not served.
        recovered_s: time from the failure to the end of the last window whose TTFT is beyond the promise and beyond every
            window of the run without a failure [s]; 0 where none is; None where the run ends so.
        summary: of the whole run.
    """

    start: tuple[float, ...]
    ttft: tuple[float | None, ...]
    good: tuple[float, ...]
    replicas: int
    restarted: int
    caught_ms: float | None
    worst_ms: float | None
    recovered_s: float | None
    summary: Summary


@dataclass(frozen=True)
class Outage:
    """A failure and what a spare replica makes of it.

    Attributes:
        fail_at, repair_s: when one replica fails, and how long it is away [s]; width_s: of a window [s].
        rate: requests a second [1/s].
        healthy: the same requests without a failure; failed: with it; spared: with it and one replica more.
    """

    fail_at: float
    repair_s: float
    width_s: float
    rate: float
    healthy: Course
    failed: Course
    spared: Course


def outage(
    scenario: Scenario,
    traffic: Traffic,
    requests: Requests | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Outage:
    """One replica fails, and is repaired.

    An open run is made long enough for both; a trace or a closed loop has the failure after a third of it.

    Raises:
        InputError: where the plan holds no request.
        Cancelled: when `cancelled` says so.
    """
    plan, watch = plan_of(scenario), Watch(on_progress, cancelled)
    rate = offered(scenario, traffic, plan)
    fixed = requests is not None or traffic.arrival == "closed"
    asked = traffic.model_copy(update={"fail_at_s": None, "rate": traffic.rate if requests is not None else rate})
    if not fixed:
        asked = asked.model_copy(update={"requests": _enough(traffic, plan, rate)})
    healthy = watch.run(0, 3, scenario, asked, requests)
    arrival = healthy.outcome.requests.arrival
    begin, span = float(arrival[0]), float(arrival[-1] - arrival[0])
    fail_at, repair = _moments(traffic, plan, begin, span, fixed=fixed)
    broken = asked.model_copy(update={"fail_at_s": fail_at, "repair_s": repair})
    failed = watch.run(1, 3, scenario, broken, requests)
    spared = watch.run(2, 3, scenario.with_(spare=scenario.spare + 1), broken, requests)
    rate = (len(arrival) - 1) / span if span > 0 else rate
    width = next((each for each in WIDTHS_S if each * rate >= A_WINDOW), WIDTHS_S[-1])
    calm = _course(healthy, width, fail_at, inf, begin + span)
    limit = max([scenario.sla_ttft_ms, *(each for each in calm.ttft if each is not None)])
    courses = (_course(run, width, fail_at, limit, begin + span) for run in (failed, spared))
    return Outage(fail_at, repair, width, rate, calm, *courses)


def _enough(traffic: Traffic, plan: Plan, rate: float) -> int:
    """Requests that last from before a failure to long after its repair."""
    span = _lead(traffic, plan) + traffic.repair_s * (1.0 + AFTER)
    return int(min(max(ceil(rate * span), 1), MOST_REQUESTS))


def _lead(traffic: Traffic, plan: Plan) -> float:
    """Time before the failure [s]."""
    if traffic.fail_at_s is not None:
        return traffic.fail_at_s
    stay = ((plan.ttft_ms or 0.0) + (plan.tpot_ms or 0.0) * plan.scenario.osl) / 1e3
    return max(LEAD_S, LEAD_STAYS * stay)


def _moments(traffic: Traffic, plan: Plan, begin: float, span: float, *, fixed: bool) -> tuple[float, float]:
    """When the failure happens and how long the repair takes, so that both are over before the last request [s]."""
    lead = traffic.fail_at_s if fixed else _lead(traffic, plan)
    fail_at = begin + span / 3.0 if lead is None or lead > begin + 0.8 * span else lead
    return fail_at, min(traffic.repair_s, max((begin + span - fail_at) / (1.0 + LEAST_AFTER), 1e-3))


def _course(run: Run, width: float, fail_at: float, limit: float, until: float) -> Course:
    """A run in windows counted from the failure, so that one of them begins with it."""
    found = run.outcome
    arrival, asked = found.requests.arrival, run.scenario
    caught = (arrival < fail_at) & ~(found.first <= fail_at)
    counted = np.where(caught, fail_at, arrival)
    order = np.argsort(counted, kind="stable")
    counted, good = counted[order], _good(found, asked)[order]
    ttft = (np.where(np.isfinite(found.ttft), found.ttft, inf) * 1e3)[order]
    first = -ceil((fail_at - float(arrival[0])) / width)
    starts, times, shares = [], [], []
    for at in range(first, max(ceil((until - fail_at) / width), 1)):
        low = fail_at + at * width
        here = slice(*np.searchsorted(counted, (low, low + width)))
        if here.stop - here.start == 0:
            continue
        time = float(np.percentile(ttft[here], asked.sla_pct, method="inverted_cdf"))
        starts.append(low)
        times.append(time)
        shares.append(float(good[here].mean()))
    after = [(time, start) for time, start in zip(times, starts, strict=True) if start >= fail_at - 1e-9]
    worst = max((time for time, _ in after), default=inf)
    late = 1e3 * found.ttft[caught & np.isfinite(found.ttft)]
    return Course(
        start=tuple(starts),
        ttft=tuple(time if time < inf else None for time in times),
        good=tuple(shares),
        replicas=found.replicas,
        restarted=found.restarted,
        caught_ms=float(late.max()) if len(late) else None,
        worst_ms=worst if worst < inf else None,
        recovered_s=_recovered(after, width, fail_at, limit),
        summary=run.summary,
    )


def _good(found: Outcome, asked: Scenario) -> np.ndarray:
    """Which requests kept both promises."""
    tpot = found.tpot * 1e3
    return np.asarray(
        (found.ttft * 1e3 <= asked.sla_ttft_ms) & ((tpot <= asked.sla_tpot_ms) | np.isnan(tpot)) & found.served
    )


def _recovered(after: list[tuple[float, float]], width: float, fail_at: float, limit: float) -> float | None:
    """Time from the failure to the end of the last disturbed window [s]."""
    disturbed = [start for time, start in after if time > limit]
    if not disturbed:
        return 0.0
    return None if disturbed[-1] == after[-1][1] else disturbed[-1] + width - fail_at
