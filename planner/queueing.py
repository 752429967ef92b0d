"""Queues in front of and inside one replica: what its requests see at a percentile, without simulating one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.pools import transfer
from planner.rows import Bounds, promised_tpot
from planner.serving import chain as chains
from planner.serving import prefill
from planner.serving.chain import Chain, departures, mean_wait
from planner.serving.draws import draws, lengths
from planner.serving.first_token import Met, boundaries, first_token
from planner.serving.residence import Pace, stay, token_seconds
from planner.serving.step_table import Steps, step_table
from planner.setting import Setting

Grid = npt.NDArray[np.float64]

GROUPS = 6
"""Batches for which the chain of waiting prompts is worked out: equally likely parts of the distribution."""


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


@dataclass(frozen=True)
class Replica:
    """What does not depend on the rate.

    Attributes:
        setting, known: what is asked, and the layout.
        steps: step table; seats: numbers of running requests that are told apart.
        decoding: steps that a request decodes; reading: steps in which its prompt is read.
        front: TTFT that no step accounts for [s].
        ending: requests that end a second when so many run, and each that ends is followed by the next.
        isl_cv, osl_cv: spread of lengths.
    """

    setting: Setting
    known: Bounds
    steps: Steps
    seats: Grid
    decoding: float
    reading: float
    front: float
    ending: Grid
    isl_cv: float
    osl_cv: float

    @property
    def residence(self) -> float:
        """Steps that a request has a seat."""
        return self.decoding + self.reading

    @property
    def saturation(self) -> float:
        """Requests a second from which on queues grow."""
        return float(self.ending.max())

    def deciding(self, running: Grid) -> Grid:
        """Sequences that decode among so many that have a seat."""
        return running * (self.decoding / self.residence)


def replica(setting: Setting, known: Bounds, batch: float, isl_cv: float = 0.0, osl_cv: float = 0.0) -> Replica:
    """One replica of a layout at a largest batch."""
    budget = float(setting.token_budget) if setting.convention.overheads else np.inf
    steps = step_table(known.clock, setting.prompt, batch, budget)
    here = steps.chunks > 0.0
    decoding = max(float(setting.scenario.osl) - 1.0, 0.0) / steps.tokens if here else setting.scenario.osl / steps.tokens
    reading = float(np.ceil(steps.chunks)) if here else 0.0
    seats = chains.seats(max(batch, 1.0))
    made = Replica(setting, known, steps, seats, decoding, reading, _front(setting, known), np.ones(1), isl_cv, osl_cv)
    return replace(made, ending=_full_rates(made))


def _full_rates(of: Replica) -> Grid:
    """Requests that end a second when so many have a seat and each that ends is followed by the next, shape (n,)."""
    steps, taken = of.steps, of.deciding(of.seats)
    if steps.chunks == 0.0:
        return departures(of.seats, of.residence * steps.at(taken, np.zeros(len(taken))))
    inside = steps.batches * of.residence / max(of.decoding, 1.0)
    read, room = inside / of.residence / steps.stages, steps.admits
    full = departures(of.seats, of.residence * np.interp(taken, steps.batches, steps.averaged(steps.batches, np.minimum(read, room))))
    limit = room / steps.at(steps.batches, room) * steps.stages
    full = np.minimum(full, np.interp(taken, steps.batches, limit))
    over = np.flatnonzero(np.interp(taken, steps.batches, read - room) > 0.0)
    if len(over):
        full[over[0] :] = full[max(over[0] - 1, 0)]
    return full


def _front(setting: Setting, known: Bounds) -> float:
    """TTFT that no engine step accounts for: the front end, a prompt read elsewhere and what its cache takes to come [s]."""
    unloaded = float(known.unloaded[0, 0])
    if setting.decoding.prompt is None:
        return unloaded
    placed = known.clock.placed
    return unloaded - float(np.asarray(prefill.prompt_seconds(placed, setting.profile, setting.prompt)).reshape(-1)[0])


def _mean_steps(of: Replica, rate: float) -> Grid:
    """Mean step beside each batch of the step table when prompts arrive at the rate [s]."""
    steps = of.steps
    seconds = steps.alone(steps.batches)
    if steps.chunks == 0.0:
        return seconds
    room = np.maximum(steps.admits, 1e-9)
    for _ in range(40):
        mean = np.minimum(rate * seconds / steps.stages, room)
        after = steps.averaged(steps.batches, mean)
        moved = float(np.max(np.abs(after / seconds - 1.0)))
        seconds = after
        if moved < 1e-4:
            break
    return seconds


def _chain(of: Replica, rate: float) -> Chain:
    """The chain over seats at a rate below saturation."""
    steps = of.steps
    mean, bare = _mean_steps(of, rate), steps.alone(steps.batches)
    reads = rate * mean / steps.stages
    busy = np.minimum(1.0 - bare / mean, 0.98)
    own = steps.at(steps.batches, np.minimum(1.0 + reads, np.maximum(steps.admits, 1e-9))) if of.reading else 0.0 * bare
    more = (mean - bare) / np.maximum(reads, 1e-12) * rate * (own * of.reading - mean) if of.reading else 0.0 * bare
    decoding = (of.decoding * bare + more) / (1.0 - busy)
    residence = own * max(of.reading, 1.0) + decoding
    at = of.deciding(of.seats)
    ending = departures(of.seats, np.interp(at, steps.batches, residence))
    ending = np.minimum(ending, np.maximum(of.ending[-1], ending[0]))
    ending[-1] = of.ending[-1]
    regular = 1.0 / (1.0 + of.osl_cv**2)
    bursts = regular * np.interp(at, steps.batches, 1.0 / (1.0 - busy)) ** 2 + 1.0 - regular
    return chains.chain(rate, of.seats, ending, of.osl_cv, bursts)


def tails(
    setting: Setting,
    known: Bounds,
    rate: float,
    *,
    batch: float,
    pct: float,
    isl_cv: float = 0.0,
    osl_cv: float = 0.0,
) -> Tails:
    """One replica at one rate."""
    return at_rate(replica(setting, known, batch, isl_cv, osl_cv), rate, pct)


def at_rate(of: Replica, rate: float, pct: float) -> Tails:
    """The same for a replica whose steps are known."""
    if rate >= 0.999 * of.ending[-1]:
        return _overloaded(of, rate)
    found = _chain(of, rate)
    u = draws()
    group = np.minimum((u[0] * GROUPS).astype(np.int64), GROUPS - 1)
    present = found.quantile(u[0])
    batches = np.array([present[group == each].mean() for each in range(GROUPS)])
    sizes, outputs = lengths(of.isl_cv, 9), lengths(of.osl_cv, 10)
    met, longer, pace = _steps(of, of.deciding(batches), group, rate, sizes, present == 0.0)
    ttft = of.front + _seat_wait(of, found, rate, u[5], u[0]) + met.seconds
    beside = stay(of.osl_cv, outputs)
    steps = np.maximum(of.decoding * outputs, 1.0)
    taken = token_seconds(pace, of.deciding(present), steps, rate, beside, float(of.seats[-1]), longer, met.beside)
    return _tails(of, rate, found, pct / 100.0, ttft, taken / of.steps.tokens)


def _steps(
    of: Replica, batches: Grid, group: npt.NDArray[np.int64], rate: float, sizes: Grid, alone: npt.NDArray[np.bool_]
) -> tuple[Met, Grid, Pace]:
    """What requests meet up to their first token, the time whose arrivals hit them later, and the pace of decoding."""
    steps = of.steps
    low, high = np.maximum(batches * 0.9 - 1.0, 0.0), batches * 1.1 + 1.0
    bare = steps.alone(batches)
    slope = (steps.alone(high) - steps.alone(low)) / (high - low)
    found = boundaries(steps, batches, rate)
    met = first_token(steps, found, group, rate, sizes, alone)
    reads = rate * found.mean_step / steps.stages
    prompt = (found.mean_step - bare) / reads
    longer = met.last + met.left / rate - (found.mean_step + found.mean_left / rate)[group]
    curve = _sharing(steps, float(batches.mean()), float(reads.mean()))
    return met, longer, Pace(bare[group], slope[group], batches[group], prompt[group], *curve)


def _sharing(steps: Steps, batch: float, mean: float) -> tuple[Grid, Grid]:
    """What each of several prompts a step adds, over what each of the mean number does."""
    if steps.chunks == 0.0:
        return np.array([0.0, 1.0]), np.ones(2)
    reads = mean * np.array([0.2, 0.5, 0.75, 1.0, 1.4, 2.0, 3.0, 5.0])
    beside = np.full(len(reads), batch)
    each = (steps.averaged(beside, reads) - steps.alone(beside)) / reads
    return reads, each / max(float(each[3]), 1e-12)


def _seat_wait(of: Replica, found: Chain, rate: float, u: Grid, place: Grid) -> Grid:
    """Wait for a seat, for requests of the sample: those that meet the fullest replica wait [s]."""
    mean = float(mean_wait(np.asarray(rate), np.asarray(of.ending[-1]), of.osl_cv))
    return np.where(place > 1.0 - found.waits, -np.log(u) * mean, 0.0)


def _tails(of: Replica, rate: float, found: Chain, share: float, ttft: Grid, tpot: Grid) -> Tails:
    """The numbers of a sample."""
    asked = of.setting.scenario
    sla_ttft, sla_tpot = asked.sla_ttft_ms / 1e3, promised_tpot(of.setting)
    first, token = float(np.quantile(ttft, share)), float(np.quantile(tpot, share))
    return Tails(
        rate=rate,
        saturation=of.saturation,
        load=rate / of.saturation,
        batch_mean=found.mean,
        batch_at=float(found.quantile(share)),
        waits=found.waits,
        ttft_mean=float(ttft.mean()),
        ttft=first,
        tpot_mean=float(tpot.mean()),
        tpot=token,
        share=float(np.mean((ttft <= sla_ttft) & (tpot <= sla_tpot))),
        holds=first <= sla_ttft and token <= sla_tpot,
        sure=True,
        why="",
    )


def _overloaded(of: Replica, rate: float) -> Tails:
    """A rate that the replica does not carry: everybody waits without end."""
    most, never = float(of.seats[-1]), float("inf")
    full = float(of.residence * most / of.ending[-1] / of.residence) / most
    return Tails(
        rate, of.saturation, rate / of.saturation, most, most, 1.0, never, never, full, full, 0.0, False, True, ""
    )
