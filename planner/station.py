"""One replica as a queue: seats, steps, and what a sample of its requests meets at a rate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.rows import Bounds
from planner.serving import chain as chains
from planner.serving import prefill
from planner.serving.chain import Chain, departures, mean_wait, wait_shape
from planner.serving.draws import draws, gamma, lengths
from planner.serving.first_token import Met, boundaries, first_token
from planner.serving.queue import probability_of_waiting
from planner.serving.residence import Pace, stay, token_seconds
from planner.serving.step_table import Steps, step_table
from planner.setting import Setting

Grid = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Groups = npt.NDArray[np.int64]

GROUPS, JOINED = 6, 2
"""Batches that are told apart, equally likely parts of the distribution, and how many share a chain of waiting prompts."""

ROUNDS, CLOSE = 12, 1e-4
"""Rounds, of two steps and a leap each, in which mean steps settle, and the change at which they have."""

FULL = 0.999
"""Share of what a full replica ends a second from which on it counts as carrying too much."""


@dataclass(frozen=True)
class Station:
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


def station(setting: Setting, known: Bounds, batch: float, isl_cv: float = 0.0, osl_cv: float = 0.0) -> Station:
    """One replica of a layout at a largest batch."""
    budget = float(setting.token_budget) if setting.convention.overheads else np.inf
    late = setting.scenario.osl * osl_cv**2 / 2.0
    decoded = replace(known.clock.decoding, context=known.clock.decoding.context + late)
    clock = replace(known.clock, decoding=decoded)
    steps = step_table(clock, setting.prompt, batch, budget, float(setting.scenario.chunk))
    here = steps.part > 0.0
    decoding = (
        max(float(setting.scenario.osl) - 1.0, 0.0) / steps.tokens if here else setting.scenario.osl / steps.tokens
    )
    reading = float(np.ceil(1.0 / steps.part)) if here else 0.0
    seats = chains.seats(max(batch, 1.0))
    made = Station(setting, known, steps, seats, decoding, reading, _front(setting, known), np.ones(1), isl_cv, osl_cv)
    return replace(made, ending=_full_rates(made))


def _full_rates(of: Station) -> Grid:
    """Requests that end a second when so many have a seat and each that ends is followed by the next, shape (n,)."""
    steps, taken = of.steps, of.deciding(of.seats)
    if steps.part == 0.0:
        return departures(of.seats, of.residence * steps.at(taken, np.zeros(len(taken))))
    inside = steps.batches * of.residence / max(of.decoding, 1.0)
    read, room = inside / of.residence / steps.stages, steps.admits
    stay = of.residence * steps.averaged(np.minimum(read, room)) + _reader_wait(steps, read)
    full = departures(of.seats, np.interp(taken, steps.batches, stay))
    limit = room / steps.at(steps.batches, room) * steps.stages
    full = np.minimum(full, np.interp(taken, steps.batches, limit))
    over = np.flatnonzero(np.interp(taken, steps.batches, read - room) > 0.0)
    if len(over):
        full[over[0] :] = full[max(over[0] - 1, 0)]
    return np.asarray(full)


def _reader_wait(steps: Steps, reads: Grid) -> Grid:
    """Mean wait for others' prompts when a step admits few, beside every batch of the table [s]: an M/D/1 queue."""
    room = np.maximum(steps.admits, 1e-9)
    if steps.part == 0.0:
        return np.zeros(len(room))
    busy = np.minimum(reads / room, 0.9)
    one = steps.at(steps.batches, room) / room
    return np.asarray(busy * one / (2.0 * (1.0 - busy)) / np.maximum(room, 1.0))


def _front(setting: Setting, known: Bounds) -> float:
    """TTFT that no engine step accounts for: the front end, a prompt read elsewhere and what its cache takes to come [s]."""
    unloaded = float(known.unloaded[0, 0])
    if setting.decoding.prompt is None:
        return unloaded
    placed = known.clock.placed
    return unloaded - float(np.asarray(prefill.prompt_seconds(placed, setting.profile, setting.prompt)).reshape(-1)[0])


def _fronts(of: Station, sizes: Grid) -> Grid | float:
    """The same for requests of the sample: what first steps take beyond their kernels grows with the prompt [s]."""
    served, steps = of.setting.profile, of.steps
    if of.isl_cv == 0.0 or steps.part == 0.0:
        return of.front
    lone = float(of.known.unloaded[0, 0]) - of.front
    most = float(steps.prompts[-1])
    over = np.maximum(sizes / most, 1.0)
    taken = steps.at(np.zeros(len(sizes)), np.minimum(sizes, most)) * over
    taken = taken * lone / float(steps.at(np.zeros(1), np.full(1, min(1.0, most)))[0] * max(1.0 / most, 1.0))
    return np.asarray(prefill.unloaded_ttft(taken, served.ttft_fixed, served.ttft_factor, served.ttft_ceiling) - taken)


def _mean_steps(of: Station, rate: float) -> Grid:
    """Mean step beside each batch of the step table when prompts arrive at the rate [s]."""
    steps = of.steps
    seconds = steps.alone(steps.batches)
    if steps.part == 0.0:
        return seconds
    room = np.maximum(steps.admits, 1e-9)
    longest = np.maximum(steps.at(steps.batches, room), seconds)
    for _ in range(ROUNDS):
        once = steps.averaged(np.minimum(rate * seconds / steps.stages, room))
        twice = steps.averaged(np.minimum(rate * once / steps.stages, room))
        moved = once - seconds
        ratio = np.clip((twice - once) / np.where(moved == 0.0, 1.0, moved), 0.0, 0.97)
        # A leap along a curve may overshoot; a mean step is never longer than one that reads all that its budget admits.
        seconds = np.clip(twice + (twice - once) * ratio / (1.0 - ratio), steps.seconds[:, 0], longest)
        if float(np.max(np.abs(twice - once) / once)) < CLOSE:
            break
    return seconds


def _chain(of: Station, rate: float) -> Chain:
    """The chain over seats at a rate below saturation."""
    steps = of.steps
    mean, bare = _mean_steps(of, rate), steps.alone(steps.batches)
    reads = rate * mean / steps.stages
    busy = np.minimum(1.0 - bare / mean, 0.98)
    own = steps.at(steps.batches, np.minimum(1.0 + reads, np.maximum(steps.admits, 1e-9))) if of.reading else 0.0 * bare
    more = (mean - bare) / np.maximum(reads, 1e-12) * rate * (own * of.reading - mean) if of.reading else 0.0 * bare
    decoding = (of.decoding * bare + more) / (1.0 - busy)
    residence = own * max(of.reading, 1.0) + decoding + _reader_wait(steps, reads)
    at = of.deciding(of.seats)
    ending = departures(of.seats, np.interp(at, steps.batches, residence))
    ending = np.minimum(ending, np.maximum(of.ending[-1], ending[0]))
    ending[-1] = of.ending[-1]
    regular = 1.0 / (1.0 + of.osl_cv**2)
    bursts = regular * np.interp(at, steps.batches, 1.0 / (1.0 - busy)) ** 2 + 1.0 - regular
    return chains.chain(rate, of.seats, ending, of.osl_cv, bursts)


@dataclass(frozen=True)
class Sample:
    """What equally likely requests of one replica meet at one rate.

    Attributes:
        chain: running requests; ttft, tpot: of each request, its wait for a seat left out of the first [s].
        seat: wait for a seat of a request if it has to [s]; place: how full each finds the replica, 0 to 1.
        reading: share of the time that goes into prompts.
    """

    chain: Chain
    ttft: Grid
    tpot: Grid
    seat: Grid
    place: Grid
    reading: float

    def first(self, waits: float | None = None, among: int = 1) -> Grid:
        """TTFT of each request when a share of them waits for a seat (None: the chain's) [s].

        `among`: replicas behind one gateway, where requests wait in one line for a seat at any of them.
        """
        share = self.waits(among) if waits is None else waits
        return self.ttft + np.where(self.place > 1.0 - share, self.seat / among, 0.0)

    def waits(self, among: int) -> float:
        """Share of requests that wait for a seat at any of so many replicas: by Erlang C less than at one."""
        if among <= 1 or self.chain.waits <= 0.0:
            return self.chain.waits
        most, running = float(self.chain.running[-1]), self.chain.mean
        alone = probability_of_waiting(most, running)
        together = probability_of_waiting(among * most, among * running)
        return self.chain.waits * together / alone if alone > 0.0 else 0.0


def sample(of: Station, rate: float) -> Sample | None:
    """A sample at a rate; None where the replica does not carry it, or theory finds no steady state."""
    if rate >= FULL * of.ending[-1] or _pool_load(of, rate) >= 1.0:
        return None
    found = _chain(of, rate)
    place = draws()[0]
    group = np.minimum((place * GROUPS).astype(np.int64), GROUPS - 1)
    present = found.quantile(place)
    batches = of.deciding(np.array([present[group == each].mean() for each in range(GROUPS)]))
    sizes, outputs = lengths(of.isl_cv, 9), lengths(of.osl_cv, 10)
    met, longer, pace = _steps(of, batches, group, rate, sizes, present == 0.0)
    steps = np.maximum(of.decoding * outputs, 1.0)
    beside, most = stay(of.osl_cv, outputs), float(of.seats[-1])
    taken = token_seconds(pace, of.deciding(present), steps, rate, beside, most, longer, met.beside, of.isl_cv)
    seat = float(mean_wait(np.asarray(rate), np.asarray(of.ending[-1]), of.osl_cv)) * gamma(
        float(wait_shape(of.osl_cv)), 5
    )
    ttft = _fronts(of, sizes) + _pool_wait(of, rate) + met.seconds
    if not (np.isfinite(found.mean) and np.all(np.isfinite(taken)) and np.all(np.isfinite(ttft))):
        return None
    reading = float(np.mean(rate * pace.prompt / of.steps.stages)) if of.steps.part > 0.0 else 0.0
    return Sample(found, ttft, taken / of.steps.tokens, seat, place, min(reading, 1.0))


def _pool_servers(of: Station, rate: float) -> tuple[float, float]:
    """Places that read prompts in a prefill pool, and how many of them the deployment keeps busy; none without a pool."""
    pool, asked = of.setting.pool, of.setting.scenario
    if pool is None:
        return 1.0, 0.0
    replicas = asked.fix_replicas or asked.decode_workers
    offered = asked.qps if replicas is None and asked.qps > 0.0 else rate * (replicas or 1)
    planned = asked.qps if asked.qps > 0.0 else of.saturation * (replicas or 1)
    workers = asked.prefill_workers or np.ceil(planned * pool.busy / asked.load)
    ranks = float(pool.at.dp[0, 0])
    return max(float(workers), 1.0) * ranks, offered * pool.busy * ranks


def _pool_load(of: Station, rate: float) -> float:
    """Share of a prefill pool that is busy."""
    servers, busy = _pool_servers(of, rate)
    return busy / servers


def _pool_wait(of: Station, rate: float) -> Grid | float:
    """Wait for a worker of a prefill pool [s]: their times are all alike."""
    servers, busy = _pool_servers(of, rate)
    if of.setting.pool is None or busy == 0.0:
        return 0.0
    one = of.setting.pool.busy * float(of.setting.pool.at.dp[0, 0])
    waits = probability_of_waiting(servers, busy)
    mean = float(mean_wait(np.asarray(busy / one), np.asarray(servers / one), of.isl_cv))
    return np.where(draws()[1] > 1.0 - waits, mean * gamma(float(wait_shape(of.isl_cv)), 3), 0.0)


def _steps(of: Station, batches: Grid, group: Groups, rate: float, sizes: Grid, alone: Flags) -> tuple[Met, Grid, Pace]:
    """What requests meet up to their first token, the time whose arrivals hit them later, and the pace of decoding."""
    steps = of.steps
    low, high = np.maximum(batches * 0.9 - 1.0, 0.0), batches * 1.1 + 1.0
    bare = steps.alone(batches)
    slope = (steps.alone(high) - steps.alone(low)) / (high - low)
    if steps.part == 0.0:
        none = np.zeros(len(group))
        waited = np.where(alone, 0.0, (1.0 - draws()[2]) * bare[group]) * of.setting.convention.overheads
        still = Pace(bare[group], slope[group], batches[group], none, np.array([0.0, 1.0]), np.ones(2))
        return Met(waited, none, none, none), none, still
    found = boundaries(steps, batches.reshape(-1, JOINED).mean(axis=1), rate, of.isl_cv)
    part = group // JOINED
    met = first_token(steps, found, part, rate, sizes, alone, of.isl_cv)
    reads = rate * found.mean_step / steps.stages
    prompt = ((found.mean_step - steps.alone(found.batches)) / reads)[np.arange(GROUPS) // JOINED]
    longer = met.last + met.left / rate - (found.mean_step + found.mean_left / rate)[part]
    curve = _sharing(steps, float(batches.mean()), float(reads.mean()))
    return met, longer, Pace(bare[group], slope[group], batches[group], prompt[group], *curve)


def _sharing(steps: Steps, batch: float, mean: float) -> tuple[Grid, Grid]:
    """What each of several prompts a step adds, over what each of the mean number does."""
    reads = mean * np.array([0.2, 0.5, 0.75, 1.0, 1.4, 2.0, 3.0, 5.0])
    row = np.full(len(reads), int(np.argmin(np.abs(steps.batches - batch))))
    each = (steps.averaged(reads, row) - steps.seconds[row, 0]) / reads
    return reads, each / max(float(each[3]), 1e-12)
