"""What a worker does for the Traffic page, and what the page keeps of it; knows nothing of pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.simulate import studies
from planner.simulate.figures import Digest, digest
from planner.simulate.outage import Outage
from planner.simulate.outage import outage as failing
from planner.simulate.outcome import Line
from planner.simulate.requests import Requests
from planner.simulate.run import Run, simulate
from planner.simulate.studies import Knee, Routing, rate_of
from planner.simulate.summary import Summary
from planner.simulate.traffic import Traffic
from planner.specs.scenario import Scenario
from planner.ui.worker import Report, Stop

Curve = npt.NDArray[np.float64]

MOST_KEPT: Final = 50_000
"""Requests up to which a run is kept whole, for its CSV; of a longer one the page keeps what it draws."""

BINS: Final = 240
"""Stretches of time that the state over time is drawn in."""

SHARES: Final = np.concatenate((np.linspace(0.0, 0.98, 99), np.linspace(0.981, 1.0, 20)))
"""Shares of requests at which times are told: closer together where the tail is."""


@dataclass(frozen=True)
class Asked:
    """What was asked. `trace`: which trace it replays, by a digest of it; empty for made requests."""

    scenario: Scenario
    traffic: Traffic
    trace: str = ""


@dataclass(frozen=True)
class Subject:
    """What a worker is handed: what is asked, and the trace."""

    asked: Asked
    requests: Requests | None = None


@dataclass(frozen=True)
class Told:
    """What the page keeps of a run.

    Attributes:
        asked: what it answers.
        rate: requests a second that arrived [1/s]; limit: requests that each replica was given at a time.
        replicas, steps: how many replicas there were, and engine steps they took.
        isl, osl: mean lengths of the requests [tokens]; warm: how many of the first are left out of figures.
        last: when the last request arrived, from the first on [s].
        summary: of the run; restarted: requests that a failed replica held.
        state: replicas over time from the first arrival on: running is a mean of a stretch, waiting and used its most.
        times: TTFT, TPOT and time to the last token at `SHARES` [ms]; empty where no request has one.
        digest: what files say of it; run: the whole of it, unless it is too long.
    """

    asked: Asked
    rate: float
    limit: int
    replicas: int
    steps: int
    isl: float
    osl: float
    warm: int
    last: float
    summary: Summary
    state: Line
    times: dict[str, Curve]
    digest: Digest
    run: Run | None


def run(subject: Subject, report: Report, stop: Stop) -> Told:
    """A run."""
    asked = subject.asked
    found = simulate(asked.scenario, asked.traffic, subject.requests, report, stop)
    return told(asked, found, given=subject.requests is not None)


def told(asked: Asked, found: Run, *, given: bool) -> Told:
    """What the page keeps of a run; `given`: its requests are a trace."""
    outcome, summary = found.outcome, found.summary
    arrival = outcome.requests.arrival
    rate = found.rate
    if given or asked.traffic.arrival == "closed":
        rate = (rate_of(outcome.requests) if given else summary.qps) or found.rate
    counted = outcome.counted
    times = {"ttft": outcome.ttft, "tpot": outcome.tpot, "e2e": outcome.e2e}
    return Told(
        asked=asked,
        rate=rate,
        limit=found.limit,
        replicas=outcome.replicas,
        steps=outcome.steps,
        isl=float(outcome.requests.isl.mean()),
        osl=float(outcome.requests.osl.mean()),
        warm=outcome.warm,
        last=float(arrival[-1] - arrival[0]),
        summary=summary,
        state=_binned(outcome.line, float(arrival[0])),
        times={name: _shares(1e3 * each[counted]) for name, each in times.items()},
        digest=digest(found),
        run=found if len(outcome.state) <= MOST_KEPT else None,
    )


def _shares(values: Curve) -> Curve:
    """Times at `SHARES`."""
    known = values[np.isfinite(values)]
    return np.percentile(known, 100.0 * SHARES, method="inverted_cdf") if len(known) else np.empty(0)


def _binned(line: Line, begin: float) -> Line:
    """The state in at most `BINS` stretches of time."""
    time = line.time - begin
    if len(time) <= BINS:
        return Line(time, line.running, line.waiting, line.used)
    edges = np.linspace(time[0], time[-1], BINS + 1)
    start = np.unique(np.searchsorted(time, edges[:-1]))
    count = np.diff(np.append(start, len(time)))
    return Line(
        np.add.reduceat(time, start) / count,
        np.add.reduceat(line.running, start) / count,
        np.maximum.reduceat(line.waiting, start),
        np.maximum.reduceat(line.used, start),
    )


@dataclass(frozen=True)
class Studied:
    """What a study found, and what it was asked."""

    asked: Asked
    found: Knee | Routing | Outage


def knee(subject: Subject, report: Report, stop: Stop) -> Studied:
    """Which rate still holds."""
    asked = subject.asked
    return Studied(asked, studies.knee(asked.scenario, asked.traffic, subject.requests, report, stop))


def routing(subject: Subject, report: Report, stop: Stop) -> Studied:
    """Which router and limit serve best."""
    asked = subject.asked
    return Studied(asked, studies.routing(asked.scenario, asked.traffic, subject.requests, report, stop))


def outage(subject: Subject, report: Report, stop: Stop) -> Studied:
    """What one failed replica does."""
    asked = subject.asked
    return Studied(asked, failing(asked.scenario, asked.traffic, subject.requests, report, stop))
