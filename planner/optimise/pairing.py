"""Replicas and, where prefill is apart, the pools that feed them: worked out in the order of what they can come to.

A pair costs at least what its decode pool costs a token when nothing is rounded up, plus what its prefill pool costs a
prompt. Candidates are worked out in the order of that bound, every number of replicas with the workers that feed them,
until the bound of what is left is above everything that is still asked for: exact, without pricing every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from planner.catalog.accelerators import accelerator
from planner.optimise.bounds import pool_share, together
from planner.optimise.found import WORKER_SIZES, Found, best_rows, front_rows
from planner.optimise.grid import BLOCK_LAYOUTS, UNPRICED, Side, Tally, distinct, filled, grid, rows_of
from planner.optimise.question import Question
from planner.optimise.rows import flat_rows, why_none
from planner.optimise.space import prefill_gpus
from planner.pools import Pool, every_pool, price_of
from planner.rows import REASONS, SLOW_FIRST, Bounds, Speed, open_ended, promised, room, speed_at
from planner.setting import Setting
from planner.specs.layout import Column, Layout
from planner.tabulate import judged

SEED_LAYOUTS: Final = 24
"""Layouts that are worked out before the others, so that there is something to beat."""

BLOCK_CELLS: Final = 200_000
"""Cells (layout × batch × replicas) that are worked out at a time."""


@dataclass(frozen=True)
class Pair:
    """The replicas of a category with the prefill pool that feeds them (None = prompts are read where tokens are decoded).

    Attributes:
        side, pool: as named; number: of the pool, −1 for none.
        bound: below every value that a layout can reach, shape (n,).
    """

    side: Side
    pool: Pool | None
    number: int
    bound: Column


@dataclass(frozen=True)
class Worked:
    """Some layouts of a pair worked out."""

    best: Found
    front: Found
    considered: int
    refused: Tally


@dataclass
class Pools:
    """Prefill pools by what sets them apart, each worked out once."""

    question: Question
    met: dict[Hashable, tuple[Pool, ...]] = field(default_factory=dict)

    def ready(self, side: Side) -> None:
        """Work out the pools of a category beforehand, beside others."""
        if len(side.least) and side.setting.scenario.prefill == "disaggregated":
            for name in prefill_gpus(self.question):
                self.of(side.setting, name)

    def of(self, setting: Setting, name: str) -> tuple[Pool, ...]:
        """Every pool of an accelerator that could feed a category; dear or late ones too."""
        s, gpu = setting.scenario, accelerator(name)
        if gpu.vendor != setting.gpu.vendor:
            return ()
        what = (setting.prompt, setting.utilisation, setting.allocation, setting.machine.routing, setting.machine.wire)
        key = (name, *what, s.weights, s.kv)
        if key not in self.met:
            self.met[key] = every_pool(setting, gpu)
        return tuple(replace(pool, price=price_of(setting, gpu)) for pool in self.met[key])

    def number(self, pool: Pool) -> int:
        """The number of a pool, by its accelerator's place in the question and its worker's size."""
        tp, dp = float(pool.at.tp[0, 0]), float(pool.at.dp[0, 0])
        size = int(np.log2(tp)) if dp == 1.0 else APART + int(np.log2(dp))
        return prefill_gpus(self.question).index(pool.gpu.id) * WORKER_SIZES + size


APART: Final = 8
"""Sizes below are those of tensor-parallel workers, from here on those of the planner's own with attention apart."""


def named_pool(question: Question, number: int) -> tuple[str, int | None]:
    """Accelerator and `prefill_tp` of a pool by its number; no `prefill_tp` where the planner's own choice is meant."""
    gpu, size = divmod(number, WORKER_SIZES)
    return prefill_gpus(question)[gpu], (1 << size) if size < APART else None


FOREIGN: Final = ("maker", "no engine is known to move a cache between accelerators of different makers")


def pairs(side: Side, question: Question, pools: Pools) -> tuple[list[Pair], Tally]:
    """The pairs of a category, and how many of its candidates fell with their prefill pool."""
    if not len(side.least):
        return [], Tally()
    if side.setting.scenario.prefill != "disaggregated":
        return [Pair(side, None, -1, together(question, side.least))], Tally()
    found, tally, many = [], Tally(), len(side.least)
    promise = side.setting.scenario.sla_ttft_ms / 1e3
    for name in prefill_gpus(question):
        if accelerator(name).vendor != side.setting.gpu.vendor:
            tally[FOREIGN] += many
        for pool in pools.of(side.setting, name):
            if pool.prompt > promise:
                tally["promise", REASONS[SLOW_FIRST]] += many
            elif pool.price is None and question.objective.startswith("usd"):
                tally[UNPRICED] += many
            else:
                share = pool_share(question, side.setting.scenario, pool)
                found.append(Pair(side, pool, pools.number(pool), together(question, side.least + share)))
    return found, +tally


def exact(pair: Pair, question: Question, threshold: Callable[[], float]) -> Iterator[Worked]:
    """The layouts of a pair that may beat the threshold, best bound first; the threshold may fall while this runs."""
    ranked = np.argsort(pair.bound, kind="stable")
    start, size = 0, SEED_LAYOUTS
    while start < len(ranked):
        some = ranked[start : start + size]
        some = some[pair.bound[some] <= _above(threshold())]
        if not len(some):
            return
        yield from _worked(pair, question, rows_of(pair.side.layout, np.sort(some)))
        start, size = start + len(some), BLOCK_LAYOUTS


def _above(value: float) -> float:
    """A little more than a value, so that ties are worked out too."""
    return value + abs(value) * 1e-6


def _worked(pair: Pair, question: Question, layout: Layout) -> Iterator[Worked]:
    """Layouts of a pair at all their batches and numbers of replicas, a few at a time where there are many of these."""
    counts = replicas(pair, question, layout)
    across = 12 * (1 if counts is None else counts.shape[1])
    tall = max(1, BLOCK_CELLS // across)
    for start in range(0, len(layout.tp), tall):
        some = rows_of(layout, np.arange(start, min(start + tall, len(layout.tp))))
        yield _piece(pair, question, some, counts)


def _piece(pair: Pair, question: Question, layout: Layout, counts: Column | None) -> Worked:
    """A few layouts of a pair."""
    setting = replace(pair.side.setting, pool=pair.pool) if pair.pool is not None else pair.side.setting
    known = promised(setting, open_ended(setting, layout, room(setting, layout)))
    batch = batches(setting, known)
    speed = speed_at(setting, known.clock, batch, known.unloaded)
    if counts is None:
        made = judged(setting, known, batch, filled(setting, question, layout), speed)
    else:
        wide, serving = np.repeat(batch, counts.shape[1], axis=1), np.tile(counts, (1, batch.shape[1]))
        made = judged(setting, known, wide, serving, _repeated(speed, counts.shape[1]))
    found = flat_rows(setting, question, layout, made, pair.side.source, pair.number)
    many = len(layout.tp)
    refused = why_none(setting, question, made, found, many)
    return Worked(best_rows(found, many), front_rows(found), distinct(batch), refused)


def batches(setting: Setting, known: Bounds) -> Column:
    """The grid's batches, the largest that keeps the promise, and the largest below it that fills all ranks evenly."""
    coarse = grid(setting, known)
    if setting.scenario.at_batch is not None:
        return coarse
    layout, own = known.clock.placed.layout, np.maximum(known.limits.largest, 1.0)
    ways = layout.dp * layout.pp
    even = np.where(own >= ways, np.floor(own / ways) * ways, own)
    return np.sort(np.concatenate([coarse, even, own], axis=1), axis=1)


def replicas(pair: Pair, question: Question, layout: Layout) -> Column | None:
    """Numbers of decode replicas that are tried, shape (1, k): all that leave room for a prefill worker; None = as the
    scenario's rate or its fixed number says."""
    asked = pair.side.setting.scenario
    if pair.pool is None or asked.qps > 0 or asked.fix_replicas is not None:
        return None
    most = int((question.max_gpus - pair.pool.devices) // float(layout.devices.min())) - asked.spare
    return np.arange(1.0, max(most, 1) + 1.0)[None, :]


def _repeated(speed: Speed, times: int) -> Speed:
    """Speeds with every batch so many times."""
    columns = np.broadcast_arrays(speed.tpot, speed.ttft, speed.rate, speed.good)
    tpot, ttft, rate, good = (np.repeat(column, times, axis=1) for column in columns)
    return Speed(tpot, ttft, speed.unloaded, rate, good)
