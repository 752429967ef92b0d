"""Candidates as columns: what a search keeps of the rows that it evaluated."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from planner.specs.layout import Column

DIGITS = 9
"""Values that agree to so many significant digits are a tie: the same sum in another order."""

WORKER_SIZES = 16
"""Numbers of prefill pools that belong to one accelerator, whatever the size of its workers."""

BINS_A_DECADE = 40
"""Steps of the front along interactivity, of 6 % each."""


@dataclass(frozen=True)
class Found:
    """Rows of candidates, each column of shape (n,).

    Attributes:
        source: which category, index into the question's; pool: which prefill pool, index into the search's; −1 = none.
        tp, pp, dp, ep, cp, dcp, batch: layout and operating point of a replica.
        serving, workers: replicas that serve, and prefill workers.
        value: of the objective, made so that less is better; inf where the row does not stand.
        gpus: of the deployment; good: good tokens a second of one device; tpot: [s]; keeps: whether TPOT keeps its promise.
        by_gpu: output tokens a second of one device; by_dollar: millions of output tokens a dollar, 0 without a price.
    """

    source: npt.NDArray[np.int64]
    pool: npt.NDArray[np.int64]
    tp: Column
    pp: Column
    dp: Column
    ep: Column
    cp: Column
    dcp: Column
    batch: Column
    serving: Column
    workers: Column
    value: Column
    gpus: Column
    good: Column
    tpot: Column
    keeps: npt.NDArray[np.bool_]
    by_gpu: Column
    by_dollar: Column

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.source)

    def at(self, rows: np.ndarray) -> Found:
        """Some of the rows, by index or flag."""
        return Found(*(getattr(self, field.name)[rows] for field in fields(Found)))


def nothing() -> Found:
    """A table without rows."""
    whole, flags, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_), np.zeros(0)
    return Found(
        whole, whole, none, none, none, none, none, none, none, none, none, none, none, none, none, flags, none, none
    )


def joined(parts: list[Found]) -> Found:
    """Tables one after another; there is at least one."""
    return Found(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Found)))


def rounded(value: Column) -> Column:
    """Values to `DIGITS` significant digits, so that ties are ties."""
    finite = np.isfinite(value) & (value != 0.0)
    size = np.floor(np.log10(np.abs(np.where(finite, value, 1.0))))
    scale = 10.0 ** (DIGITS - 1 - size)
    return np.where(finite, np.round(value * scale) / scale, value)


def order(found: Found) -> npt.NDArray[np.int64]:
    """Best first.

    Ties: fewer GPUs, more good tokens a device, lower TPOT, earlier category and pool, fewer devices a replica, degrees.
    """
    devices = found.tp * found.pp * found.dp * found.cp
    keys = (
        found.serving, found.batch, found.tp, found.dp, found.ep, found.cp, found.dcp, found.pp, devices, found.pool,
        found.source, rounded(found.tpot), -rounded(found.good), found.gpus, rounded(found.value),
    )  # fmt: skip
    return np.asarray(np.lexsort(keys), dtype=np.int64)


def kinds(found: Found) -> npt.NDArray[np.int64]:
    """A number for the kind of each row: category, prefill pool and parallel style, sizes left out."""
    split = found.tp * found.dp * found.cp > found.ep
    style = np.zeros(len(found), dtype=np.int64)
    for flag in (found.dp > 1, found.ep > 1, found.pp > 1, found.cp > 1, found.dcp > 1, split & (found.ep > 1)):
        style = 2 * style + flag
    return ((found.source + 1) * 4096 + found.pool // WORKER_SIZES + 1) * 64 + style


def best_rows(found: Found, layouts: int) -> Found:
    """The best row of every layout that stands, of a table of so many layouts with as many rows each, batches ascending."""
    columns = (found.value, found.gpus, -found.good, found.tpot)
    value, *others = (column.reshape(layouts, -1) for column in columns)
    tied = _smallest(value)
    for column in others:
        tied &= _smallest(np.where(tied, column, np.inf))
    at = tied.argmax(axis=1) + np.arange(layouts) * value.shape[1]
    return found.at(at[np.isfinite(found.value[at])])


def _smallest(table: Column) -> npt.NDArray[np.bool_]:
    """Cells of a table that are as small as the smallest of their row, to `DIGITS` digits."""
    least = table.min(axis=1, keepdims=True)
    flags: npt.NDArray[np.bool_] = table <= least + np.abs(np.where(np.isfinite(least), least, 0.0)) * 10.0**-DIGITS
    return flags


def worth_keeping(found: Found, top: int) -> npt.NDArray[np.int64]:
    """Rows of which `top` choices can be made: the best of every kind, and the best few of all layouts."""
    kind = kinds(found)
    ranked = np.lexsort((found.value, kind))
    first = np.sort(found.value[ranked[firsts(kind[ranked])]])[:top]
    last = first[-1] if len(first) == top else np.inf
    if np.isfinite(last):
        return np.flatnonzero(found.value <= _above(float(last)))
    few = min(TWICE * top, len(found)) - 1
    bar = np.partition(found.value, few)[few] if few >= 0 else np.inf
    return np.union1d(ranked[firsts(kind[ranked])], np.flatnonzero(found.value <= _above(float(bar))))


def firsts(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each key of a sorted column stands first."""
    return np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))


TWICE = 2
"""A layout may stand twice: on the grid, and worked out."""


def _above(value: float) -> float:
    """A little more than a value, so that ties are kept."""
    return value + abs(value) * 1e-6


def best_of_layouts(found: Found) -> Found:
    """Every layout of every category and pool once, with its best row, best first."""
    ranked = found.at(order(found))
    names = ("source", "pool", "tp", "pp", "dp", "ep", "cp", "dcp")
    table = np.stack([getattr(ranked, name).astype(np.int64) for name in names], axis=1)
    first = np.unique(table, axis=0, return_index=True)[1] if len(ranked) else np.zeros(0, dtype=np.int64)
    return ranked.at(np.sort(first))


def bins(found: Found) -> npt.NDArray[np.int64]:
    """Step of the front that each row stands on."""
    step: npt.NDArray[np.int64] = np.floor(-np.log10(found.tpot) * BINS_A_DECADE).astype(np.int64)
    return step


def front_rows(found: Found) -> Found:
    """On every step of the front the best by GPU and the best by dollar; rows without a rate have no place on it."""
    timed = found.at(np.isfinite(found.tpot) & (found.tpot > 0.0) & (found.by_gpu > 0.0))
    if not len(timed):
        return timed
    step = bins(timed)
    step -= step.min()
    kept = np.full((2, int(step.max()) + 1), -1)
    for row, measure in zip(kept, (timed.by_gpu, timed.by_dollar), strict=True):
        ranked = np.argsort(measure)
        row[step[ranked]] = ranked
    return timed.at(np.unique(kept[kept >= 0]))


def undominated(speed: Column, measure: Column) -> npt.NDArray[np.bool_]:
    """Rows for which no other is at least as fast and better by the measure (or faster and as good)."""
    ranked = np.lexsort((-measure, -speed))
    best = np.maximum.accumulate(measure[ranked])
    on = np.zeros(len(speed), dtype=np.bool_)
    on[ranked] = measure[ranked] > np.concatenate(([0.0], best[:-1]))
    return on
