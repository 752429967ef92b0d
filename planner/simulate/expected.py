"""What queue theory expects of a deployment's traffic, at once: a glance before a run, and a curve beside simulated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.plan import Plan
from planner.queueing import Tails, curve
from planner.rows import bounds
from planner.setting import resolve
from planner.simulate.traffic import Traffic
from planner.specs.layout import layout
from planner.specs.scenario import Scenario


@dataclass(frozen=True)
class Expected:
    """What is expected at one rate of the whole deployment.

    Attributes:
        rate: requests a second offered to all replicas; most: from which on queues grow without end [1/s].
        ttft_ms, tpot_ms: at the promised percentile [ms]; infinite where queues grow.
        share: share of requests that keep both promises; holds: whether each keeps its own at the percentile.
        sure: whether theory covers this traffic; why: what it does not cover otherwise.
    """

    rate: float
    most: float
    ttft_ms: float
    tpot_ms: float
    share: float
    holds: bool
    sure: bool
    why: str


def expected(
    scenario: Scenario, traffic: Traffic, plan: Plan, rates: Sequence[float], *, given: bool = False
) -> tuple[Expected, ...]:
    """What each of some rates comes to; every replica is taken by itself, with its even part of the requests.

    `given`: requests are a trace. Nothing where the plan has no replica, or none may be given a request.
    """
    count = plan.replicas or 0
    if not count or plan.batch < 1 or not plan.output_tok_s:
        return ()
    asked, setting = scenario, resolve(scenario)
    known = bounds(setting, layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp).tall)
    limit = float(traffic.in_flight or plan.batch)
    each = [rate / count for rate in rates]
    found = curve(setting, known, each, batch=limit, pct=asked.sla_pct, isl_cv=traffic.isl_cv, osl_cv=traffic.osl_cv)
    why = beyond(traffic, given=given)
    return tuple(_of_all(one, rate, count, why) for one, rate in zip(found, rates, strict=True))


def _of_all(one: Tails, rate: float, count: int, why: str) -> Expected:
    """One replica's tails, of all."""
    return Expected(
        rate, one.saturation * count, 1e3 * one.ttft, 1e3 * one.tpot, one.share, one.holds, one.sure and not why,
        why or one.why,
    )  # fmt: skip


def beyond(traffic: Traffic, *, given: bool) -> str:
    """What about some traffic queue theory does not cover; empty where it covers it."""
    if given:
        return "arrivals and lengths are a trace's"
    if traffic.arrival != "poisson":
        return "arrivals are not Poisson"
    if traffic.turns > 1:
        return "requests of a session follow each other"
    if traffic.policy == "static":
        return "whole batches are not what it describes"
    if traffic.fail_at_s is not None:
        return "a replica fails"
    return "requests are turned away" if traffic.over == "reject" else ""
