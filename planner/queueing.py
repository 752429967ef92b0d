"""Queues in front of and inside one replica: what its requests see at a percentile, without simulating one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.rows import Bounds, promised_tpot
from planner.setting import Setting
from planner.station import Sample, Station, sample, station

Grid = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tails:
    """One replica at one rate: what its requests see, at the percentile that was asked.

    Attributes:
        rate, saturation: requests/s that arrive, and from which on queues grow; load: their ratio.
        batch_mean, batch_at: running requests, mean and at the percentile.
        waits: probability that a request waits for a seat.
        ttft_mean, ttft, tpot_mean, tpot: mean and at the percentile [s].
        share: share of requests that keep both promises.
        holds: whether each promise is kept at the percentile.
        sure: whether theory is known to hold here; why: what it does not know otherwise.
    """

    rate: float
    saturation: float
    load: float
    batch_mean: float
    batch_at: float
    waits: float
    ttft_mean: float
    ttft: float
    tpot_mean: float
    tpot: float
    share: float
    holds: bool
    sure: bool
    why: str


def tails(
    setting: Setting,
    known: Bounds,
    rate: float,
    *,
    batch: float,
    pct: float,
    isl_cv: float = 0.0,
    osl_cv: float = 0.0,
    among: int = 1,
) -> Tails:
    """What requests see when they arrive at random at one replica.

    Args:
        setting, known: what is asked, and the bounds of its one layout, which holds the batch.
        rate: requests/s at this replica.
        batch: most requests that run at a time.
        pct: percentile of the promise [%].
        isl_cv, osl_cv: standard deviation over mean of prompt and output lengths (lognormal).
        among: replicas behind one gateway, where requests wait in one line for a seat at any of them.
    """
    return curve(setting, known, (rate,), batch=batch, pct=pct, isl_cv=isl_cv, osl_cv=osl_cv, among=among)[0]


def curve(
    setting: Setting,
    known: Bounds,
    rates: Sequence[float],
    *,
    batch: float,
    pct: float,
    isl_cv: float = 0.0,
    osl_cv: float = 0.0,
    among: int = 1,
) -> tuple[Tails, ...]:
    """The same at several rates."""
    of = station(setting, known, max(batch, 1.0), isl_cv, osl_cv)
    return tuple(at_rate(of, rate, pct, among) for rate in rates)


def saturation(setting: Setting, known: Bounds, *, batch: float) -> float:
    """The rate of one replica from which on queues grow without end [requests/s]."""
    return station(setting, known, max(batch, 1.0), 0.0, 0.0).saturation


HALVINGS = 11
"""How often the search for the largest rate halves it: to a two-thousandth of the rate at which queues grow."""


def largest_rate(
    setting: Setting,
    known: Bounds,
    *,
    batch: float,
    pct: float,
    isl_cv: float = 0.0,
    osl_cv: float = 0.0,
    among: int = 1,
) -> float:
    """The largest rate of one replica at which TTFT and TPOT each keep the promise at the percentile [requests/s].

    0 where not even rare requests keep it.
    """
    of = station(setting, known, max(batch, 1.0), isl_cv, osl_cv)
    low, high = of.saturation / 2.0**HALVINGS, of.saturation
    if not _holds(of, low, pct, among):
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _holds(of, middle, pct, among) else (low, middle)
    return low


def replicas_at(
    setting: Setting,
    known: Bounds,
    *,
    batch: float,
    pct: float,
    qps: float,
    isl_cv: float = 0.0,
    osl_cv: float = 0.0,
) -> int | None:
    """Fewest replicas that keep the promise at the percentile at a total rate [requests/s]; None where none do.

    A gateway gives each its share of the arrivals at random; requests wait in one line for a seat at any of them. One that
    looks for the least loaded does better: this number is on the safe side.
    """
    of = station(setting, known, max(batch, 1.0), isl_cv, osl_cv)
    alone = largest_rate(setting, known, batch=batch, pct=pct, isl_cv=isl_cv, osl_cv=osl_cv)
    if alone <= 0.0:
        return None
    high = max(1, int(np.ceil(qps / alone * (1.0 - 1e-12))))
    low = max(0, int(np.ceil(qps / of.saturation)) - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _holds(of, qps / middle, pct, middle) else (middle, high)
    return high


def at_rate(of: Station, rate: float, pct: float, among: int = 1) -> Tails:
    """What requests see at one of `among` replicas whose steps are known, when so many arrive a second; `pct` in %."""
    met = sample(of, rate)
    return _overloaded(of, rate) if met is None else _tails(of, rate, pct / 100.0, met, among)


def _holds(of: Station, rate: float, pct: float, among: int = 1) -> bool:
    """Whether TTFT and TPOT each keep the promise at the percentile."""
    met, asked = sample(of, rate), of.setting.scenario
    if met is None:
        return False
    token = float(np.quantile(met.tpot, pct / 100.0))
    first = float(np.quantile(met.first(among=among), pct / 100.0))
    return token <= promised_tpot(of.setting) and first <= asked.sla_ttft_ms / 1e3


def _tails(of: Station, rate: float, pct: float, met: Sample, among: int) -> Tails:
    """The numbers of a sample."""
    sla_ttft, sla_tpot = of.setting.scenario.sla_ttft_ms / 1e3, promised_tpot(of.setting)
    ttft, tpot = met.first(among=among), met.tpot
    first, token = float(np.quantile(ttft, pct)), float(np.quantile(tpot, pct))
    why = _doubt(of, rate, pct * 100.0, met, first)
    return Tails(
        rate=rate,
        saturation=of.saturation,
        load=rate / of.saturation,
        batch_mean=met.chain.mean,
        batch_at=float(met.chain.quantile(pct)),
        waits=met.waits(among),
        ttft_mean=float(ttft.mean()),
        ttft=first,
        tpot_mean=float(tpot.mean()),
        tpot=token,
        share=_share(ttft, tpot, sla_ttft, sla_tpot),
        holds=first <= sla_ttft and token <= sla_tpot,
        sure=not why,
        why=why,
    )


def _share(ttft: Grid, tpot: Grid, sla_ttft: float, sla_tpot: float) -> float:
    """Share of requests that keep both promises."""
    return float(np.mean((ttft <= sla_ttft) & (tpot <= sla_tpot)))


def _overloaded(of: Station, rate: float) -> Tails:
    """A rate that the replica does not carry: everybody waits without end."""
    most, never = float(of.seats[-1]), float("inf")
    full = most / float(of.ending[-1]) / of.residence / of.steps.tokens
    return Tails(
        rate, of.saturation, rate / of.saturation, most, most, 1.0, never, never, full, full, 0.0, False, True, ""
    )


MOST_LOAD = 0.9
"""Share of saturation beyond which theory has not been held against simulations."""

TTFT_OFF, TPOT_OFF, SHARE_OFF = 0.05, 0.03, 0.05
"""How far times may be off where theory holds, and how far the share of kept promises may then be."""

READING_OFF = 1.0
"""What prompts add to the error of TPOT: so many times the share of time that they take, over the root of a request's steps."""

MOST_JUMPS, MOST_UNEVEN, SOME_KEPT = 0.05, 0.4, 0.02
"""Where it matters who keeps the promise (a share between), that error at most; and spread of prompts · their share of time."""

UNEVEN_ROOM = 4.0
"""Largest prompts, about, that a step must have room for where their lengths vary."""

FULL_STEP = 2.0
"""Prompts that a step must have room for, so that what one leaves of its budget does not matter."""

MOST_READING = 0.25
"""Share of the time that goes into prompts up to which attention ranks are taken to read side by side."""

HELD = 0.8
"""Share of the cache's seats up to which requests of uneven length do not push each other out."""


def _doubt(of: Station, rate: float, pct: float, met: Sample, first: float) -> str:
    """Why theory is not known to hold; empty where it is."""
    asked = of.setting.scenario
    if asked.pp > 1 or asked.spec > 0 or of.setting.engine.id == "sglang":
        return "Pipelines, drafts and engines that read prompts first are simulated, not worked out."
    if rate > MOST_LOAD * of.saturation:
        return "Above 90 % of saturation queues are long and slow to settle."
    return _length_doubt(of, pct, met) or _seat_doubt(of, pct, met, first) or _promise_doubt(of, met)


def _length_doubt(of: Station, pct: float, met: Sample) -> str:
    """Whether lengths of prompts and outputs are beyond what the chain of prompts sees."""
    steps, chunk = of.steps, of.setting.scenario.chunk
    if steps.part > 0.0 and 0 < chunk < min(of.setting.prompt.tokens, of.setting.token_budget):
        return "Prompts in chunks smaller than the token budget are read side by side, which only a simulation follows."
    ranks = float(of.known.clock.placed.layout.dp[0, 0])
    if ranks > 1.0 and met.reading > MOST_READING:
        return "Attention ranks that read prompts much of the time wait for each other, as only a simulation follows."
    if steps.part > 0.0 and _room(of, met) < FULL_STEP:
        return "One prompt fills most of a step's budget, and what is left of it goes to the next: only a simulation counts that."
    uneven = of.isl_cv > 0.0 and steps.part > 0.0
    if uneven and (ranks > 1.0 or _room(of, met) < UNEVEN_ROOM * (1.0 + of.isl_cv)):
        return "Prompts of uneven length, some longer than a step's budget, hold each other up."
    held = HELD * float(of.known.space.held[0, 0])
    if max(of.isl_cv, of.osl_cv) > 0.0 and float(met.chain.quantile(pct / 100.0)) > held:
        return "Requests of uneven length fill the cache and push each other out."
    return ""


def _room(of: Station, met: Sample) -> float:
    """Prompts that a step has room for beside the mean batch."""
    return float(of.steps.room(np.array([of.deciding(np.array([met.chain.mean]))[0]]))[0])


def _promise_doubt(of: Station, met: Sample) -> str:
    """Whether a small error of a time changes how many requests keep the promise."""
    asked = of.setting.scenario
    sla_ttft, sla_tpot = asked.sla_ttft_ms / 1e3, promised_tpot(of.setting)
    kept = _share(met.first(), met.tpot, sla_ttft, sla_tpot)
    jumps = met.reading / float(np.sqrt(max(of.decoding, 1.0)))
    if SOME_KEPT < kept < 1.0 - SOME_KEPT and (jumps > MOST_JUMPS or of.isl_cv * met.reading > MOST_UNEVEN):
        return "A few prompts decide on the tokens of a request here: who keeps the promise is only simulated."
    off = TPOT_OFF + READING_OFF * jumps
    for up in (1.0, -1.0):
        other = _share(met.first() * (1.0 + up * TTFT_OFF), met.tpot * (1.0 + up * off), sla_ttft, sla_tpot)
        if abs(other - kept) > SHARE_OFF:
            return "The promise lies where requests crowd: a few percent of time decide on many of them."
    return ""


FEW_WAIT = 0.2
"""Waiting for a seat counts from this share of what the percentile leaves out on."""


def _seat_doubt(of: Station, pct: float, met: Sample, first: float) -> str:
    """Whether the percentile hinges on who waits for a seat."""
    waits, some = met.chain.waits, FEW_WAIT * (1.0 - pct / 100.0)
    if waits > some and (of.osl_cv > 0.0 or (of.steps.part > 0.0 and _room(of, met) < 2.0)):
        return "Seats are short while lengths vary or prompts fill whole steps: who waits is only simulated."
    if waits < some:
        return ""
    low, high = (first / 1.25, first * 1.25)
    for times in (0.4, 2.0):
        other = float(np.quantile(met.first(min(waits * times, 1.0)), pct / 100.0))
        if not low <= other <= high:
            return "About as many requests wait for a seat as the percentile leaves out: it hinges on a few."
    return ""
