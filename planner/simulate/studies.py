"""Studies made of several runs: which rate still holds, and which router and limit serve the same requests best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from planner.errors import Fault, InputError
from planner.optimise.answer import Progress
from planner.plan import Plan
from planner.simulate.requests import Requests
from planner.simulate.run import Run, offered, simulate
from planner.simulate.summary import Summary
from planner.simulate.traffic import ROUTERS, Router, Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario

LOADS: Final = (0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.1)
"""Rates that are tried first, as parts of what full batches of all replicas carry."""

HALVINGS: Final = 4
"""Further rates, each in the middle of the largest that holds and the smallest that does not."""

WIDENINGS: Final = 4
"""Further rates where all of the first hold, or none does."""

WIDER: Final = 1.5
"""How many times as large (or as small) each of those is."""

STEADY: Final = 10.0
"""A run is long enough where so many times what all replicas hold arrive."""

MOST_STEADY: Final = 30_000
"""Requests up to which a run of a study is made that long."""

SAME_SHARE: Final = 0.003
"""Difference in the share of good requests below which two ways are equal."""

SAME_TIME: Final = 0.02
"""Difference in TTFT, as a share of it, below which they are."""

PARTS: Final = 1000
"""Parts of a run in which progress is told."""


@dataclass(frozen=True)
class Watch:
    """Who is told how far a study of several runs is, and asked whether to stop."""

    on_progress: Callable[[Progress], None] | None = None
    cancelled: Callable[[], bool] | None = None

    def part(self, at: int, of: int) -> Callable[[Progress], None] | None:
        """Whom one run of several tells."""
        tell = self.on_progress
        if tell is None:
            return None
        return lambda now: tell(
            Progress(PARTS * at + PARTS * now.done // max(now.total, 1), PARTS * max(of, at + 1), now.considered, None)
        )

    def run(self, at: int, of: int, scenario: Scenario, traffic: Traffic, requests: Requests | None) -> Run:
        """One run of several."""
        tell = self.part(at, of)
        if tell is not None:
            tell(Progress(0, 1, 0, None))
        return simulate(scenario, traffic, requests, tell, self.cancelled)


@dataclass(frozen=True)
class RatePoint:
    """What a rate comes to. `rate`: requests a second offered to the whole deployment [1/s]."""

    rate: float
    summary: Summary


@dataclass(frozen=True)
class Knee:
    """Rates tried, and the largest that holds.

    Attributes:
        points: rates, rising, each with what it came to.
        knee: the largest rate below the first that breaks the promise [1/s]; None where the smallest tried breaks it.
        broken: the first rate that breaks it [1/s]; None where none does.
        now: rate that was asked about [1/s]; replicas: how many serve it.
        requests: of each run.
    """

    points: tuple[RatePoint, ...]
    knee: float | None
    broken: float | None
    now: float
    replicas: int
    requests: int

    @property
    def at_knee(self) -> RatePoint | None:
        """What the knee comes to."""
        return next((each for each in self.points if each.rate == self.knee), None)

    @property
    def at_broken(self) -> RatePoint | None:
        """What the first rate that breaks the promise comes to."""
        return next((each for each in self.points if each.rate == self.broken), None)


def open_only(traffic: Traffic, requests: Requests | None) -> None:
    """Refuse a closed loop, which has no rate of its own.

    Raises:
        InputError: where clients set the rate.
    """
    if traffic.arrival == "closed" and requests is None:
        raise InputError((Fault("arrival", "closed", "sets clients, not a rate: choose another kind of arrivals"),))


def carried(plan: Plan, output: float) -> float:
    """Requests a second that all replicas of a plan carry at full batches; `output`: mean output [tokens]."""
    return (plan.output_tok_s or 0.0) * (plan.replicas or 0) / max(output, 1.0)


def rate_of(requests: Requests) -> float | None:
    """Mean rate of a trace [1/s]; None where all arrive at once."""
    span = float(requests.arrival[-1] - requests.arrival[0])
    return (len(requests) - 1) / span if span > 0 else None


def steady(traffic: Traffic, plan: Plan) -> Traffic:
    """Traffic with as many requests as show a steady state at full batches, at least those asked for."""
    held = (plan.replicas or 0) * (traffic.in_flight or max(plan.batch, 1))
    return traffic.model_copy(update={"requests": max(traffic.requests, int(min(STEADY * held, MOST_STEADY)))})


def knee(
    scenario: Scenario,
    traffic: Traffic,
    requests: Requests | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Knee:
    """Goodput against rate, and the largest rate that keeps the promise; the same chances at every rate.

    Args:
        scenario, traffic: as `simulate` takes them; the traffic's rate is one of those tried, and there are at least as many
            requests as show a steady state.
        requests: a trace, played faster and slower.

    Raises:
        InputError: where there is no rate to vary, or the plan holds no request.
        Cancelled: when `cancelled` says so.
    """
    open_only(traffic, requests)
    plan, watch = plan_of(scenario), Watch(on_progress, cancelled)
    traffic = steady(traffic, plan)
    now = offered(scenario, traffic, plan)
    if requests is not None and traffic.rate is None:
        now = rate_of(requests) or now
    most = carried(plan, float(scenario.osl) if requests is None else float(requests.osl.mean()))
    found: dict[float, Summary] = {}

    def tried(rate: float) -> bool:
        """Whether a rate holds."""
        if rate not in found:
            asked = traffic.model_copy(update={"rate": rate})
            found[rate] = watch.run(len(found), len(LOADS) + 1 + HALVINGS, scenario, asked, requests).summary
        return found[rate].meets_sla

    for rate in sorted({*(load * most for load in LOADS), now}):
        tried(rate)
    _narrowed(found, tried)
    good, bad = _ends(found)
    points = tuple(RatePoint(rate, found[rate]) for rate in sorted(found))
    count = traffic.requests if requests is None else len(requests)
    return Knee(points, good, bad, now, plan.replicas or 0, count)


def _narrowed(found: dict[float, Summary], tried: Callable[[float], bool]) -> None:
    """Try rates until the knee lies between two that are close."""
    for _ in range(WIDENINGS):
        good, bad = _ends(found)
        if good is not None and bad is not None:
            break
        tried(max(found) * WIDER if bad is None else min(found) / WIDER)
    for _ in range(HALVINGS):
        good, bad = _ends(found)
        if good is None or bad is None:
            break
        tried((good + bad) / 2.0)


def _ends(found: dict[float, Summary]) -> tuple[float | None, float | None]:
    """The largest rate below the first that breaks the promise, and that one."""
    bad = min((rate for rate, each in found.items() if not each.meets_sla), default=None)
    good = max((rate for rate in found if bad is None or rate < bad), default=None)
    return good, bad


@dataclass(frozen=True)
class Way:
    """One router under one limit. `limit`: requests that each replica is given at a time."""

    router: Router
    limit: int
    summary: Summary


@dataclass(frozen=True)
class Routing:
    """The same requests under several routers and limits.

    Attributes:
        ways: each router under each limit; limits: rising; router, now: router and limit that were asked about.
        replicas: how many there were; sharing: whether requests shared anything that affinity goes by.
    """

    ways: tuple[Way, ...]
    limits: tuple[int, ...]
    router: Router
    now: int
    replicas: int
    sharing: bool

    @property
    def best(self) -> Way:
        """The way that most requests find good, then the one with the shortest TTFT; of equals the one nearest to what is set."""
        good = max(way.summary.share_good for way in self.ways)
        fine = [way for way in self.ways if way.summary.share_good >= good - SAME_SHARE]
        first = min(_first(way) for way in fine)
        quick = [way for way in fine if _first(way) <= first * (1.0 + SAME_TIME)]
        return min(quick, key=lambda way: (way.router != self.router, way.limit != self.now, _first(way)))

    @property
    def one_limit(self) -> bool:
        """Whether every router comes to the same under all limits."""
        return all(
            _alike([way for way in self.ways if way.router == name]) for name in {way.router for way in self.ways}
        )

    @property
    def as_set(self) -> Way:
        """The way that is set now."""
        return next(way for way in self.ways if (way.router, way.limit) == (self.router, self.now))


def _alike(ways: list[Way]) -> bool:
    """Whether ways differ in nothing that counts."""
    shares, times = [way.summary.share_good for way in ways], [_first(way) for way in ways]
    return max(shares) - min(shares) <= SAME_SHARE and max(times) <= min(times) * (1.0 + SAME_TIME)


def _first(way: Way) -> float:
    """TTFT at the promise [ms]; endless where nothing is served."""
    return inf if way.summary.ttft.at_pct is None else way.summary.ttft.at_pct


def routing(
    scenario: Scenario,
    traffic: Traffic,
    requests: Requests | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Routing:
    """The same requests, as many as show a steady state, under every router and half, all and twice the limit in flight.

    One replica needs no router: its limits alone are compared.

    Raises:
        InputError: where the plan holds no request.
        Cancelled: when `cancelled` says so.
    """
    plan, watch = plan_of(scenario), Watch(on_progress, cancelled)
    offered(scenario, traffic, plan)
    traffic = steady(traffic, plan)
    now = traffic.in_flight or max(plan.batch, 1)
    limits = tuple(sorted({max(now // 2, 1), now, 2 * now}))
    routers: tuple[str, ...] = ROUTERS if (plan.replicas or 1) > 1 else (traffic.router,)
    asked = [(router, limit) for router in routers for limit in limits]
    ways, sharing = [], False
    for at, (router, limit) in enumerate(asked):
        here = traffic.model_copy(update={"router": router, "in_flight": limit})
        run = watch.run(at, len(asked), scenario, here, requests)
        ways.append(Way(here.router, limit, run.summary))
        sharing = run.outcome.requests.sharing
    return Routing(tuple(ways), limits, traffic.router, now, plan.replicas or 1, sharing)
