"""Rows behind the charts and tables of the Model page: numbers for the scales, finished text for labels and tooltips."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import log, sqrt
from typing import Final

import numpy as np
import pyarrow as pa

from planner.anatomy import Anatomy
from planner.anatomy_steps import Reads, Steps
from planner.ui.data import LABEL_ROWS, Row, rows
from planner.ui.marks import Datasets
from planner.ui.model_charts import EVERYTHING, FILLS, READS, WEIGHTS_ONLY
from planner.units import DASH, GB, gigabytes, show, significant, whole
from planner.work import Column

MEGA: Final = 1e6
STOPS: Final = 15
"""Points of a curve that answer the pointer: over batch every power of two."""

TEXTS: Final = {
    "growth": ("at", "experts", "weights", "token"),
    "intensity": ("at", "with", "without", "flops", "bytes"),
    "reads": ("at", "kv", "index", "state", "stored"),
    "tiles": ("at", "mean", "large", "small"),
}
"""Columns of words, by chart."""

LINES: Final = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("series", pa.string())])
LEVELS: Final = pa.schema([("level", pa.float64()), ("label", pa.string()), ("place", pa.string())])
LIMITS: Final = pa.schema(
    [("limit", pa.float64()), ("label", pa.string()), ("toward", pa.string()), ("row", pa.int64())]
)


def schema(numbers: Sequence[str], words: Sequence[str]) -> pa.Schema:
    """Columns of numbers, then columns of words."""
    return pa.schema([*((name, pa.float64()) for name in numbers), *((name, pa.string()) for name in words)])


# --- experts and weights over batch -----------------------------------------------------------------


@lru_cache(maxsize=32)
def experts(found: Anatomy) -> Datasets:
    """Distinct experts over batch."""
    if found.routing is None or found.routing_here is None:
        return {}
    count = found.routing.count
    points = [(found.batch, float(found.routing_here.distinct[0]), "Experts hit")]
    return _growth(found, found.routing.distinct, "Experts hit", (float(count), f"all {count}"), points)


@lru_cache(maxsize=32)
def weights(found: Anatomy) -> Datasets:
    """Weight bytes over batch."""
    full, here = found.stored_weights / GB, float(found.here.weights[0]) / GB
    points = [(found.batch, here, "Weights read")]
    return _growth(found, found.steps.weights / GB, "Weights read", (full, f"all {significant(full)} GB"), points)


def _growth(found: Anatomy, curve: Column, name: str, level: tuple[float, str], points: list[Row]) -> Datasets:
    """A curve over batch that ends at a level."""
    stops = _stops(found.steps.batch, growth_texts(found))
    return datasets(
        _line(found.steps.batch, curve, name), stops, TEXTS["growth"], levels=[(*level, "bottom")], points=points
    )


def growth_texts(found: Anatomy) -> list[Row]:
    """What the tooltips of both curves say."""
    hit = found.steps.batch * np.nan if found.routing is None else found.routing.distinct
    each = found.steps.weights / found.steps.batch
    columns = zip(found.steps.batch, hit, found.steps.weights, each, strict=True)
    return [(whole(b), show(float(h)), gigabytes(w), f"{gigabytes(e)} of weights") for b, h, w, e in columns]


def growth_table(found: Anatomy) -> pa.Table:
    """Both curves as a table, one row a power of two."""
    at = _powers(found.steps.batch)
    distinct = None if found.routing is None else found.routing.distinct[at]
    hit = {} if distinct is None else {"Experts hit": distinct}
    read = found.steps.weights[at] / GB
    return pa.table({
        "Batch": found.steps.batch[at].astype(int), **hit, "Weights, GB": read,
        "Of all, %": 100 * read * GB / found.stored_weights, "GB per sequence": read / found.steps.batch[at],
    })  # fmt: skip


# --- intensity --------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def intensity(found: Anatomy) -> Datasets:
    """Both intensities over batch, the ridge, the limit below it, where they meet, and the batch that is looked at."""
    steps, here = found.steps, found.here
    lines = [
        *_line(steps.batch, steps.intensity, EVERYTHING),
        *_line(steps.batch, steps.weights_intensity, WEIGHTS_ONLY),
    ]
    levels = [(found.roof.ridge, f"ridge {significant(found.roof.ridge)} FLOP/B", "bottom")]
    if found.never:
        levels.append((found.limit, f"limit with cache {significant(found.limit)}", "top"))
    limits = []
    if found.crossing is not None and found.crossing <= steps.batch[-1]:
        limits.append(_limit(float(found.crossing), f"ridge at {whole(found.crossing)}", steps.batch))
    points = [
        (found.batch, float(here.intensity[0]), EVERYTHING),
        (found.batch, float(here.weights_intensity[0]), WEIGHTS_ONLY),
    ]
    stops = _stops(steps.batch, _intensity_texts(steps))
    return datasets(lines, stops, TEXTS["intensity"], levels=levels, limits=limits, points=points)


def _intensity_texts(steps: Steps) -> list[Row]:
    columns = zip(steps.batch, steps.intensity, steps.weights_intensity, steps.flops, steps.moved, strict=True)
    return [
        (whole(b), show(float(i), "FLOP/B"), show(float(w), "FLOP/B"), show(f / 1e12, "TFLOP"), gigabytes(m))
        for b, i, w, f, m in columns
    ]


def intensity_table(found: Anatomy) -> pa.Table:
    """The step's operations and bytes as a table, one row a power of two."""
    steps, at = found.steps, _powers(found.steps.batch)
    return pa.table({
        "Batch": steps.batch[at].astype(int), "TFLOP": steps.flops[at] / 1e12, "Weights, GB": steps.weights[at] / GB,
        "Activations, GB": steps.activations[at] / GB, "Cache, GB": steps.cache[at] / GB, "Index, GB": steps.index[at] / GB,
        "FLOP/B, weights": steps.weights_intensity[at], "FLOP/B, all": steps.intensity[at],
    })  # fmt: skip


# --- cache ------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def reads(found: Anatomy) -> Datasets:
    """Bytes that a sequence reads and stores over context; what a model does not have is left out."""
    curves = {name: curve / MEGA for name, curve in named_reads(found.reads).items()}
    lines = [row for name, curve in curves.items() if curve.any() for row in _line(found.reads.context, curve, name)]
    here = {name: float(curve[0]) / MEGA for name, curve in named_reads(found.reads_here).items()}
    points = [(found.context, mb, name) for name, mb in here.items() if mb]
    limits = _marks(found)
    stops = _stops(found.reads.context, _reads_texts(found.reads))
    return datasets(lines, stops, TEXTS["reads"], limits=limits, points=points)


def kinds(found: Anatomy) -> tuple[str, ...]:
    """What a model reads or stores, by the name that the chart gives it."""
    return tuple(name for name, curve in named_reads(found.reads).items() if curve.any())


def _marks(found: Anatomy) -> list[Row]:
    """Contexts that matter: the scenario's, the knee of sparse attention, where its index overtakes.

    A rule begins at its own label's row, so labels that reach far over other marks stand above theirs.
    """
    shown = [(found.context, f"context {whole(found.context)}")]
    if READS[1] not in kinds(found):
        return [_limit(*shown[0], found.reads.context)]
    if found.knee is not None:
        shown.append((float(found.knee), f"knee at {whole(found.knee)}"))
    if found.overtaken is not None:
        shown.append((found.overtaken, f"index ahead from {significant(found.overtaken)}"))
    limits = [_limit(*mark, found.reads.context) for mark in sorted(shown)]
    right = [limit for limit in reversed(limits) if limit[2] == "right"]
    ordered = [*right, *(limit for limit in limits if limit[2] == "left")]
    return [(*limit[:3], LABEL_ROWS - len(ordered) + row) for row, limit in enumerate(ordered)]


def named_reads(reads: Reads) -> dict[str, Column]:
    """Bytes by the name that the chart gives them."""
    return dict(zip(READS, (reads.cache, reads.index, reads.state, reads.stored), strict=True))


def megabytes(size: float) -> str:
    """Bytes in decimal megabytes, gigabytes from one on, named; an en dash for none."""
    if size >= GB:
        return gigabytes(size)
    return f"{significant(size / MEGA)} MB" if size else DASH


def _reads_texts(reads: Reads) -> list[Row]:
    columns = zip(reads.context, *named_reads(reads).values(), strict=True)
    return [(whole(context), *(megabytes(size) for size in sizes)) for context, *sizes in columns]


def reads_table(found: Anatomy) -> pa.Table:
    """Bytes a sequence over context as a table, every fourth point."""
    at = np.arange(0, found.reads.context.size, 4)
    sizes = {f"{name}, MB": curve[at] / MEGA for name, curve in named_reads(found.reads).items() if curve.any()}
    return pa.table({"Context": found.reads.context[at].astype(int), **sizes})


# --- tiles ------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def tiles(found: Anatomy) -> Datasets:
    """Fill of both tiles over batch; nothing without experts."""
    if found.routing is None or found.routing_here is None:
        return {}
    routing, here = found.routing, found.routing_here
    fills = [100 * fill for fill in routing.fills]
    lines = [row for name, fill in zip(FILLS, fills, strict=True) for row in _line(routing.batch, fill, name)]
    limits = (
        [_limit(routing.full, f"mean 64 tokens at {whole(routing.full)}", routing.batch)]
        if routing.full <= routing.batch[-1]
        else []
    )
    points = [(found.batch, 100 * float(fill[0]), name) for name, fill in zip(FILLS, here.fills, strict=True)]
    columns = zip(routing.batch, routing.mean, *fills, strict=True)
    said = [
        (whole(b), significant(mean), f"{significant(large)} %", f"{significant(small)} %")
        for b, mean, large, small in columns
    ]
    return datasets(lines, _stops(routing.batch, said), TEXTS["tiles"], limits=limits, points=points)


def tiles_table(found: Anatomy) -> pa.Table:
    """Tokens on an expert and fill as a table, one row a power of two."""
    if found.routing is None:
        return pa.table({})
    routing, at = found.routing, _powers(found.routing.batch)
    fills = {f"{name}, %": 100 * fill[at] for name, fill in zip(FILLS, routing.fills, strict=True)}
    return pa.table({"Batch": routing.batch[at].astype(int), "Tokens on an expert": routing.mean[at], **fills})


# --- what line charts share -------------------------------------------------------------------------


def _line(x: Column, y: Column, name: str) -> list[Row]:
    return [(a, b, name) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def _stops(x: Column, texts: Sequence[Row]) -> list[Row]:
    """Every so many points, with the stretch of a logarithmic axis that each answers for, and its texts."""
    wanted = np.round(np.geomspace(x[0], x[-1], STOPS))
    at = np.unique(np.abs(x[:, None] - wanted).argmin(axis=0)).tolist()
    spots = [float(x[each]) for each in at]
    edges = [spots[0], *(sqrt(one * other) for one, other in pairwise(spots)), spots[-1]]
    return [(spot, *edge, *texts[each]) for spot, edge, each in zip(spots, pairwise(edges), at, strict=True)]


def _limit(at: float, label: str, x: Column) -> Row:
    """A limit's label on the side with room."""
    return at, label, "left" if log(at / x[0]) < 0.5 * log(x[-1] / x[0]) else "right", 0


def _powers(batch: Column) -> list[int]:
    """Where a column of batches holds a power of two."""
    return [int(at) for at in np.flatnonzero(np.exp2(np.round(np.log2(batch))) == batch)]


def datasets(
    lines: list[Row],
    stops: list[Row],
    texts: Sequence[str],
    levels: Sequence[Row] = (),
    limits: Sequence[Row] = (),
    points: Sequence[Row] = (),
) -> Datasets:
    """All datasets of a line chart, empty ones with their columns too."""
    return {
        "lines": rows(LINES, lines),
        "levels": rows(LEVELS, levels),
        "limits": rows(LIMITS, limits),
        "points": rows(LINES, points),
        "stops": rows(schema(("x", "from", "to"), texts), stops),
    }
