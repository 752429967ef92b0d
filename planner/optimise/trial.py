"""One plan on trial: its traffic simulated, and whether it keeps TTFT and TPOT at the promised percentile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.optimise.margin import Share, share_of
from planner.serving.cost import dollars_per_million
from planner.simulate.outcome import WARM_UP
from planner.simulate.run import Run, offered, simulate
from planner.simulate.summary import summarised
from planner.simulate.traffic import MOST_REQUESTS, Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.variants import outcome

BROKEN: Final = 20
"""Requests that may break the promise: so many are waited for, so that their share is known to about a fifth."""

FEWEST, MOST = 2_000, 20_000
"""Bounds of the requests that are counted at first."""

TIMES_LONGER: Final = 3
"""How many times as many requests are counted where a share is too close to call."""

ROUNDS: Final = 3
"""Most simulations of one plan."""

FILLINGS: Final = 2
"""How many times over the requests in flight are replaced before any is counted."""


@dataclass(frozen=True)
class Trial:
    """What a simulation said of one plan.

    Attributes:
        scenario: the whole of it; `plan_of` says what was simulated. kind: what it is called.
        rank: place in the answer's list of the choice that it is made of, 1 = the winner.
        more: replicas that it has beyond that choice's; negative where the question does not allow so many.
        holds: whether TTFT and TPOT each keep the promise at its percentile; None where it is too close to call.
        rate: requests a second offered; requests, counted: simulated, and in the figures; seeds: of every round.
        replicas, gpus: of the deployment.
        ttft_at_pct_ms, tpot_at_pct_ms: smallest times that the promised share of requests keeps [ms].
        ttft, tpot: share of requests that kept each, with its margin; good: share that kept both.
        good_tok_s: output tokens a second of these, all replicas.
        usd_per_hour: the plan's bill; usd_per_m_good: that over simulated good tokens [$ per million].
        usd_per_m_goodput: what the plan itself says; billed: the bill over all tokens of the traffic [$ per million].
    """

    scenario: Scenario
    kind: str
    rank: int
    more: int
    holds: bool | None
    rate: float
    requests: int
    counted: int
    seeds: tuple[int, ...]
    replicas: int
    gpus: int
    ttft_at_pct_ms: float | None
    tpot_at_pct_ms: float | None
    ttft: Share
    tpot: Share
    good: float
    good_tok_s: float
    usd_per_hour: float | None
    usd_per_m_good: float | None
    usd_per_m_goodput: float | None
    billed: float | None

    @property
    def least(self) -> Share:
        """The promise that is kept least."""
        return min(self.ttft, self.tpot, key=lambda share: share.value)

    @property
    def over(self) -> float:
        """The worse of TTFT and TPOT at the percentile, as a multiple of what is promised; inf where nothing was served."""
        asked = self.scenario
        tpot = 0.0 if asked.osl == 1 else self.tpot_at_pct_ms
        if self.ttft_at_pct_ms is None or tpot is None:
            return math.inf
        return max(self.ttft_at_pct_ms / asked.sla_ttft_ms, tpot / asked.sla_tpot_ms)


@dataclass(frozen=True)
class Candidate:
    """A plan to try: `scenario`, `kind`, `rank` and `more` as of a trial."""

    scenario: Scenario
    kind: str
    rank: int
    more: int = 0


def tried(candidate: Candidate, traffic: Traffic, cancelled: Callable[[], bool] | None = None) -> Trial:
    """Simulate a plan; where its share is too close to call with more requests, twice at most.

    Raises:
        InputError: where the plan holds no request, or the traffic cannot be made.
        Cancelled: when `cancelled` says so.
    """
    scenario, wanted = candidate.scenario, candidate.scenario.sla_pct / 100
    counted, filling = enough(scenario, traffic)
    rate = rate_of(scenario, traffic)
    for at in range(ROUNDS):
        seed = (traffic.seed + at) % 2**32
        wished = counted * TIMES_LONGER**at
        length = min(max(wished + filling, math.ceil(wished / (1 - WARM_UP))), MOST_REQUESTS)
        sized = traffic.model_copy(update={"requests": length, "seed": seed, "rate": rate})
        run = _settled(simulate(scenario, sized, None, None, cancelled), length - wished)
        shares = _shares(run)
        holds = _both(*(share.reaches(wanted) for share in shares))
        if holds is not None:
            break
    seeds = tuple((traffic.seed + each) % 2**32 for each in range(at + 1))
    return _trial(candidate, run, shares, holds, seeds)


def enough(scenario: Scenario, traffic: Traffic) -> tuple[int, int]:
    """Requests to count first, so that a percentile means something, and those before them, until the system is full."""
    rare = 1 - scenario.sla_pct / 100
    counted = min(max(math.ceil(BROKEN / rare - 1e-6), FEWEST), MOST)
    if traffic.arrival == "closed":
        return max(counted, traffic.requests), 0
    stay = inside(scenario, traffic)
    filling = min(math.ceil(FILLINGS * stay), MOST)
    return max(counted, traffic.requests - filling), filling


def inside(scenario: Scenario, traffic: Traffic) -> float:
    """Requests in flight, by Little's law, were every one as slow as the plan at its batch."""
    plan = outcome(scenario)
    seconds = ((plan.ttft_ms or 0.0) + (scenario.osl - 1) * (plan.tpot_ms or 0.0)) / 1e3
    return rate_of(scenario, traffic) * seconds


def rate_of(scenario: Scenario, traffic: Traffic) -> float:
    """Requests a second that a plan is offered; where nobody names them, `load` of what it says that it carries.

    Raises:
        InputError: where the plan carries nothing.
    """
    return offered(scenario, traffic, plan_of(scenario))


def _settled(run: Run, filling: int) -> Run:
    """A run whose figures leave out the requests that filled the system, where these are more than its warm-up."""
    kept = replace(run.outcome, warm=max(run.outcome.warm, filling))
    return replace(run, outcome=kept, summary=summarised(kept, run.scenario))


def _shares(run: Run) -> tuple[Share, Share]:
    """Shares of the requests that kept TTFT, and TPOT; those that were not served kept neither."""
    found, asked = run.outcome, run.scenario
    tpot = np.nan_to_num(found.tpot, nan=0.0)
    kept = (found.ttft * 1e3 <= asked.sla_ttft_ms, tpot * 1e3 <= asked.sla_tpot_ms)
    ttft, rest = (share_of((found.served & each)[found.warm :]) for each in kept)
    return ttft, rest


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Whether both hold: not, as soon as one does not."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _trial(
    candidate: Candidate, run: Run, shares: tuple[Share, Share], holds: bool | None, seeds: tuple[int, ...]
) -> Trial:
    """A run as a trial."""
    plan, found, asked = run.plan, run.summary, run.scenario
    good = found.good_tok_s * run.outcome.replicas
    return Trial(
        scenario=asked,
        kind=candidate.kind,
        rank=candidate.rank,
        more=candidate.more,
        holds=holds,
        rate=run.rate,
        requests=len(run.outcome.state),
        counted=found.counted,
        seeds=seeds,
        replicas=run.outcome.replicas,
        gpus=round(plan.gpus or plan.gpus_per_replica),
        ttft_at_pct_ms=found.ttft.at_pct,
        tpot_at_pct_ms=found.tpot.at_pct,
        ttft=shares[0],
        tpot=shares[1],
        good=found.share_good,
        good_tok_s=good,
        usd_per_hour=plan.usd_per_hour,
        usd_per_m_good=per_million(plan.usd_per_hour, good),
        usd_per_m_goodput=plan.usd_per_m_goodput,
        billed=per_million(plan.usd_per_hour, run.rate * asked.osl),
    )


def per_million(dollars: float | None, rate: float) -> float | None:
    """Dollars a million tokens at so many a second; None where there is no price, or no token."""
    if dollars is None or rate <= 0:
        return None
    return float(dollars_per_million(np.full(1, dollars), np.full(1, rate))[0])
