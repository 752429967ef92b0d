"""Replicas and, where prefill is apart, the pools that feed them: worked out in the order of what they can come to.

A pair costs at least what its decode pool costs a token when nothing is rounded up, plus what its prefill pool costs a
prompt. Candidates are worked out in the order of that bound, every number of replicas with the workers that feed them,
until the bound of what is left is above everything that is still asked for: exact, without pricing every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.candidates import Flags
from planner.layouts import every_layout
from planner.optimise.bounds import least, pool_share, together
from planner.optimise.found import Found, best_rows, front_rows
from planner.optimise.grid import BLOCK_LAYOUTS, Side, distinct, filled, grid, most_of, open_setting, rows_of
from planner.optimise.offers import Tally, named_pool
from planner.optimise.question import Question
from planner.optimise.rows import flat_rows, why_none
from planner.rows import Bounds, Speed, open_ended, promised, room, speed_at
from planner.serving import decode
from planner.serving.goodput import output_rate
from planner.setting import Setting, resolve
from planner.specs.layout import Column, Layout
from planner.tabulate import Judged, judged

SEED_LAYOUTS: Final = 24
"""Layouts that are worked out before the others, so that there is something to beat."""

BLOCK_CELLS: Final = 200_000
"""Cells (layout × batch × replicas) that are worked out at a time."""


@dataclass(frozen=True)
class Pair:
    """The replicas of a category with the prefill pool that feeds them (prompts may also be read where tokens are decoded).

    Attributes:
        side: the replicas; number: of the pool, −1 for none.
        bound: below every value that a layout can reach, shape (n,).
    """

    side: Side
    number: int
    bound: Column

    def setting(self, question: Question) -> Setting:
        """The setting with the pool named."""
        if self.number < 0:
            return open_setting(self.side.scenario)
        gpu, tp = named_pool(question, self.number)
        return resolve(self.side.scenario.with_(prefill_gpu=gpu, prefill_tp=tp))


@dataclass(frozen=True)
class Worked:
    """Some layouts of a pair worked out."""

    best: Found
    front: Found
    considered: int
    refused: Tally


def pairs(side: Side, question: Question) -> list[Pair]:
    """A category with every pool that could feed it, or alone."""
    if not len(side.least):
        return []
    if not side.apart:
        return [Pair(side, -1, together(question, side.least))]
    return [Pair(side, number, together(question, side.least + share)) for number, share in side.offers]


def exact(pair: Pair, question: Question, threshold: Callable[[], float]) -> Iterator[Worked]:
    """The layouts of a pair that may beat the threshold, best bound first; the threshold may fall while this runs."""
    setting = pair.setting(question)
    whole = every_layout(setting.model, question.max_gpus)
    ranked, start, size = np.argsort(pair.bound, kind="stable"), 0, SEED_LAYOUTS
    while start < len(ranked):
        some = ranked[start : start + size]
        some = np.sort(some[pair.bound[some] <= _above(threshold())])
        if not len(some):
            return
        layout = rows_of(whole, pair.side.rows[some])
        if setting.pool is None:
            yield from _worked(pair, setting, question, layout)
        else:
            yield from _tightened(pair, setting, question, layout, threshold)
        start, size = start + len(some), BLOCK_LAYOUTS


def _tightened(
    pair: Pair, setting: Setting, question: Question, layout: Layout, threshold: Callable[[], float]
) -> Iterator[Worked]:
    """Layouts of two pools, a few at a time in the order of a closer bound: that at their own largest batch.

    Every number of replicas has batches of its own to be found, which costs more than all else: few layouts get that far.
    """
    share = pool_share(question, setting.scenario, setting.pool)
    bound = together(question, least_at_largest(setting, question, layout) + share)
    ranked = np.argsort(bound, kind="stable")
    for start in range(0, len(ranked), SEED_LAYOUTS):
        some = ranked[start : start + SEED_LAYOUTS]
        some = some[bound[some] <= _above(threshold())]
        if not len(some):
            return
        yield from _worked(pair, setting, question, rows_of(layout, np.sort(some)))


def least_at_largest(setting: Setting, question: Question, layout: Layout) -> Column:
    """A replica's share of the objective at best, by the largest batch that keeps the promise; shape (n,).

    What is best at the smallest batch (a time) is not bounded so: nothing then.
    """
    if question.aim is not None or question.objective in ("tpot_ms", "ttft_ms"):
        return np.zeros(len(layout.tp))
    known = promised(setting, open_ended(setting, layout, room(setting, layout)))
    own = np.maximum(known.limits.largest, 1.0)
    batch = (
        batches(question, known)
        if question.scenario.at_batch is not None
        else np.concatenate([_even(known, own), own], axis=1)
    )
    speed = speed_at(setting, known.clock, batch, known.unloaded)
    return least(setting, question, layout.devices, speed, np.ones(batch.shape, dtype=np.bool_))


def _above(value: float) -> float:
    """A little more than a value, so that ties are worked out too."""
    return value + abs(value) * 1e-6


def _worked(pair: Pair, setting: Setting, question: Question, layout: Layout) -> Iterator[Worked]:
    """Layouts of a pair at all their batches and numbers of replicas, a few at a time where there are many of these."""
    counts = replicas(setting, question, layout)
    across = 12 * (1 if counts is None else counts.shape[1])
    tall = max(1, BLOCK_CELLS // across)
    for start in range(0, len(layout.tp), tall):
        some = rows_of(layout, np.arange(start, min(start + tall, len(layout.tp))))
        yield _piece(pair, setting, question, some, counts)


def best_batch(setting: Setting, question: Question, layout: Layout, serving: float) -> Found:
    """The best row of one layout that breaks no rule, with a prefill pool and so many decode replicas; none where it fails."""
    known = promised(setting, open_ended(setting, layout, room(setting, layout)))
    made = _crossed(setting, question, known, batches(question, known), np.full((1, 1), serving))
    return best_rows(flat_rows(setting, question, layout, made, 0), 1)


def _piece(pair: Pair, setting: Setting, question: Question, layout: Layout, counts: Column | None) -> Worked:
    """A few layouts of a pair."""
    known = promised(setting, open_ended(setting, layout, room(setting, layout)))
    batch = batches(question, known)
    made = _crossed(setting, question, known, batch, counts)
    found = flat_rows(setting, question, layout, made, pair.side.source, pair.number)
    many = len(layout.tp)
    refused = why_none(setting, question, made, found, many)
    return Worked(best_rows(found, many), front_rows(found), distinct(batch), refused)


def _crossed(setting: Setting, question: Question, known: Bounds, batch: Column, counts: Column | None) -> Judged:
    """Layouts at their batches, each with every number of replicas; and at the batch that fills whole workers with it."""
    speed = speed_at(setting, known.clock, batch, known.unloaded)
    if counts is None:
        layout = known.clock.placed.layout
        return judged(setting, known, batch, filled(setting, question, layout), speed=speed)
    wide, serving = np.repeat(batch, counts.shape[1], axis=1), np.tile(counts, (1, batch.shape[1]))
    speed = _repeated(speed, counts.shape[1])
    if question.scenario.at_batch is None:
        full = whole_workers(setting, question, known, counts)
        full = np.concatenate([full, _even(known, full)], axis=1)
        wide, serving = np.concatenate([wide, full], axis=1), np.tile(counts, (1, batch.shape[1] + 2 * len(FEWER)))
        speed = _beside(speed, speed_at(setting, known.clock, full, known.unloaded))
    return judged(setting, known, wide, serving, speed=speed)


FEWER: Final = (0, 1)
"""How many whole prefill workers fewer than the largest batch fills are tried; between two of them cost falls with workers."""


def whole_workers(setting: Setting, question: Question, known: Bounds, counts: Column) -> Column:
    """For every number of replicas the largest batches that keep no more whole prefill workers busy than the largest of all
    fills, or one fewer: between two such batches a good token only costs more. Shape (n, k · 2)."""
    asked, pool, clock = setting.scenario, setting.pool, known.clock
    own = np.maximum(known.limits.largest, 1.0)
    if pool is None:
        return np.broadcast_to(own, (len(own), counts.shape[1] * len(FEWER)))
    devices, prompt = clock.placed.layout.devices, pool.busy / (asked.osl * asked.load)  # [worker·s/token]
    room_left = np.floor((question.max_gpus - (counts + asked.spare) * devices) / pool.devices)
    needed = np.floor(counts * output_rate(own, decode.tpot(clock, own)[0]) * prompt)
    workers = np.concatenate([np.minimum(needed - fewer, room_left) for fewer in FEWER], axis=1)
    target = workers / (np.tile(counts, (1, len(FEWER))) * prompt)  # [tokens/s]
    found = nearest_below(lambda batch: output_rate(batch, decode.tpot(clock, batch)[0]), target, own)
    return np.where(target > 0.0, found, own)


KNOTS: Final = 64
"""Batches at which the rate of a layout is known before any target is looked at."""

WAYS: Final = 8
"""Parts into which the stretch between two knots is cut."""

WINDOW: Final = 12
"""Whole batches in a row that are looked at last: the rate falls a little wherever one more opens a new rank."""


def nearest_below(rate: Callable[[Column], Column], target: Column, most: Column) -> Column:
    """The batch, at most `most`, whose rate comes nearest to a target from below; 1 where none does.

    Args:
        rate: of batches of shape (n, anything); it rises with the batch but for small falls.
        target: shape (n, k); most: shape (n, 1).
    """
    rows, many = target.shape
    knots = np.floor(1.0 + (most - 1.0) * np.linspace(0.0, 1.0, KNOTS)[None, :])
    at = _last(rate(knots)[:, None, :] <= target[:, :, None])
    low, high = (np.take_along_axis(knots, np.minimum(at + more, KNOTS - 1), axis=1) for more in (0, 1))

    def rates(tried: Column) -> Column:
        return rate(tried.reshape(rows, -1)).reshape(tried.shape)

    tried = np.floor(low[:, :, None] + (high - low)[:, :, None] * np.arange(WAYS) / WAYS)
    at = _last(rates(tried) <= target[:, :, None])
    low = np.take_along_axis(tried, at[:, :, None], axis=2)[:, :, 0]
    tried = np.minimum(low[:, :, None] + np.arange(WINDOW), most[:, :, None])
    got = rates(tried)
    best = np.argmax(np.where(got <= target[:, :, None], got, -1.0), axis=2)
    return np.take_along_axis(tried, best[:, :, None], axis=2).reshape(rows, many)


def _last(flags: Flags) -> npt.NDArray[np.int64]:
    """Where the last true cell along the last axis stands; 0 where none is."""
    length = flags.shape[-1]
    return np.where(flags.any(axis=-1), length - 1 - np.argmax(flags[..., ::-1], axis=-1), 0)


def batches(question: Question, known: Bounds) -> Column:
    """The grid's batches, the largest that keeps the promise, and the largest below it that fills all ranks evenly."""
    coarse = grid(question, known)
    if question.scenario.at_batch is not None:
        return coarse
    own = np.minimum(np.maximum(known.limits.largest, 1.0), most_of(question, known))
    return np.sort(np.concatenate([coarse, _even(known, own), own], axis=1), axis=1)


def _even(known: Bounds, batch: Column) -> Column:
    """The largest batches up to some that fill all ranks and stages alike."""
    ways = known.clock.placed.layout.dp * known.clock.placed.layout.pp
    return np.where(batch >= ways, np.floor(batch / ways) * ways, batch)


def replicas(setting: Setting, question: Question, layout: Layout) -> Column | None:
    """Numbers of decode replicas that are tried, shape (1, k): all that leave room for a prefill worker; None = as the
    scenario's rate or its fixed number says."""
    asked, pool = setting.scenario, setting.pool
    if pool is None or asked.qps > 0:
        return None
    if asked.fix_replicas is not None:
        return np.full((1, 1), float(asked.fix_replicas))
    most = int((question.max_gpus - pool.devices) // float(layout.devices.min())) - asked.spare
    return np.arange(1.0, max(most, 1) + 1.0)[None, :]


def _repeated(speed: Speed, times: int) -> Speed:
    """Speeds with every batch so many times."""
    columns = np.broadcast_arrays(speed.tpot, speed.ttft, speed.rate, speed.good)
    tpot, ttft, rate, good = (np.repeat(column, times, axis=1) for column in columns)
    return Speed(tpot, ttft, speed.unloaded, rate, good)


def _beside(one: Speed, two: Speed) -> Speed:
    """Speeds of two tables of batches of the same layouts, side by side."""
    names = ("tpot", "ttft", "rate", "good")
    tables = [np.broadcast_arrays(*(getattr(each, name) for name in names)) for each in (one, two)]
    tpot, ttft, rate, good = (np.concatenate(columns, axis=1) for columns in zip(*tables, strict=True))
    return Speed(tpot, ttft, one.unloaded, rate, good)
