"""What a run comes to: percentiles, goodput, queues, and the laws that every run must keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.plan import Column
from planner.simulate.outcome import REJECTED, TOO_LONG, Outcome
from planner.specs.scenario import Scenario

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0)
"""Percentiles that are always told, beside the one that was promised."""


@dataclass(frozen=True)
class Spread:
    """How one time is spread over requests [ms]; None where there is none.

    Attributes:
        mean, p50, p90, p95, p99: as named; at_pct: at the promised percentile.
    """

    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    at_pct: float | None


@dataclass(frozen=True)
class Summary:
    """What a run comes to. Times in ms; rates per second over the whole deployment unless said.

    Attributes:
        requests, served, rejected, too_long, counted: requests that arrived, were served, turned away, did not fit the
            cache, and are in the figures (without the warm-up).
        ttft, tpot, e2e: how times are spread over counted requests.
        share_good: share of requests (those turned away included) that kept TTFT and TPOT.
        meets_sla: whether TTFT and TPOT each keep the promise at its percentile, and nobody is turned away beyond it.
        output_tok_s: output tokens a second of one replica; good_tok_s: those of requests that kept the promise;
            goodput_tok_s: all of the output where `meets_sla`, else 0.
        qps: requests a second served.
        running, waiting: requests that decode or are read by the replicas, and those in any line: means over time.
        used, used_peak: share of the cache blocks that requests hold: mean over time, and the most of any replica.
        preemptions: requests that had to leave, times.
        hit: share of prompt tokens that the prefix cache served.
        little: requests in the system over arrival rate times mean time in it; 1 by Little's law.
        duration_s: time from the first arrival to the last end [s].
    """

    requests: int
    served: int
    rejected: int
    too_long: int
    counted: int
    ttft: Spread
    tpot: Spread
    e2e: Spread
    share_good: float
    meets_sla: bool
    output_tok_s: float
    good_tok_s: float
    goodput_tok_s: float
    qps: float
    running: float
    waiting: float
    used: float
    used_peak: float
    preemptions: int
    hit: float
    little: float
    duration_s: float


def summarised(outcome: Outcome, scenario: Scenario) -> Summary:
    """The summary of a run under a scenario's promise."""
    counted = outcome.counted
    asked = np.arange(len(outcome.state)) >= outcome.warm
    ttft, tpot, e2e = (values[counted] * 1e3 for values in (outcome.ttft, outcome.tpot, outcome.e2e))
    good = (ttft <= scenario.sla_ttft_ms) & ((tpot <= scenario.sla_tpot_ms) | np.isnan(tpot))
    asked_count = max(int(asked.sum()), 1)
    share = float(good.sum()) / asked_count
    kept = scenario.sla_pct / 100.0
    meets = counted.any() and all(
        float((values <= limit).sum() + np.isnan(values).sum()) / asked_count >= kept
        for values, limit in ((ttft, scenario.sla_ttft_ms), (tpot, scenario.sla_tpot_ms))
    )
    osl = outcome.requests.osl[counted]
    rate, tokens = _yield(outcome)
    output = tokens / outcome.replicas
    good_rate = output * float(osl[good].sum()) / float(osl.sum()) if osl.sum() else 0.0
    at, whole = scenario.sla_pct, outcome.span or 1.0
    return Summary(
        requests=len(outcome.state),
        served=int(outcome.served.sum()),
        rejected=int((outcome.state == REJECTED).sum()),
        too_long=int((outcome.state == TOO_LONG).sum()),
        counted=int(counted.sum()),
        ttft=_spread(ttft, at),
        tpot=_spread(tpot, at),
        e2e=_spread(e2e, at),
        share_good=share,
        meets_sla=bool(meets),
        output_tok_s=output,
        good_tok_s=good_rate,
        goodput_tok_s=output if meets else 0.0,
        qps=rate,
        running=outcome.busy / whole,
        waiting=max(outcome.area - outcome.busy - outcome.elsewhere, 0.0) / whole,
        used=outcome.filled / (whole * outcome.blocks * outcome.replicas),
        used_peak=outcome.fullest / outcome.blocks,
        preemptions=int(outcome.preempted.sum()),
        hit=outcome.hit / max(outcome.hit + outcome.read, 1),
        little=_little(outcome),
        duration_s=outcome.span,
    )


FEWEST_ENDS = 20
"""Ends from which on a window tells a rate."""


def _yield(outcome: Outcome) -> tuple[float, float]:
    """Requests and output tokens a second of all replicas.

    Of an open run: what ends while the counted requests arrive, whoever it is; neither the filling nor the emptying of the
    system is in it. Of a closed loop, a trace, and a run so short that hardly anything ends before its last arrival: all of it.
    """
    served, arrival = outcome.served, outcome.requests.arrival
    begin, stop = float(arrival[min(outcome.warm, len(arrival) - 1)]), float(arrival[-1])
    inside = served & (outcome.end > begin) & (outcome.end <= stop)
    if outcome.warm and stop > begin and inside.sum() >= FEWEST_ENDS:
        whole = stop - begin
    else:
        inside, whole = served, outcome.span
    if whole <= 0.0:
        return 0.0, 0.0
    return float(inside.sum()) / whole, float(outcome.requests.osl[inside].sum()) / whole


def _spread(values: Column, at: float) -> Spread:
    """Mean and percentiles of times; the smallest time that so many requests keep."""
    known = values[np.isfinite(values)]
    if not len(known):
        return Spread(None, None, None, None, None, None)
    found = np.percentile(known, [*PERCENTILES, at], method="inverted_cdf")
    return Spread(float(known.mean()), *(float(value) for value in found))


def _little(outcome: Outcome) -> float:
    """Requests in the system over arrivals times mean time in it: the integral counted by events over the sum of times."""
    inside = outcome.end - outcome.requests.arrival
    total = float(inside[outcome.served].sum())
    return outcome.area / total if total > 0 else 1.0
