"""TPOT over concurrent requests: measured points, the plan before and after a calibration; constant per theme.

Datasets are those of `planner.ui.line_chart`; the measured points are its `points`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import pairwise
from math import sqrt
from typing import Final

import numpy as np
import pyarrow as pa

from planner.calibrate.correction import Compared, Fit
from planner.calibrate.loads import largest
from planner.calibrate.points import uncalibrated
from planner.specs.scenario import Scenario
from planner.ui.curve_chart import BATCHES
from planner.ui.data import Row, rows
from planner.ui.line_chart import Scale, Series, lines
from planner.ui.marks import Datasets, Spec, log_ticks
from planner.ui.theme import Mode, palette
from planner.units import DASH, show, whole
from planner.variants import tpots

HEIGHT: Final = 340
STOPS: Final = 40
"""Batches at which the chart answers the pointer, spread geometrically; measured ones are among them too."""

BEFORE, AFTER = "Plan", "Calibrated plan"
TIPS: Final = {"at": "Requests per replica", "measured": "Measured", "before": "Plan", "after": "Calibrated plan"}

SERIES: Final = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("series", pa.string())])
LEVELS: Final = pa.schema([("level", pa.float64()), ("label", pa.string()), ("place", pa.string())])
LIMITS: Final = pa.schema(
    [("limit", pa.float64()), ("label", pa.string()), ("toward", pa.string()), ("row", pa.int64())]
)
STRIPES: Final = pa.schema(
    [*((name, pa.float64()) for name in ("x", "from", "to")), *((name, pa.string()) for name in TIPS)]
)


@cache
def chart_of(shown: Mode) -> Spec:
    """Two curves, told apart by dash too, and measured points as triangles, as on the Plan page."""
    ink = palette(shown)
    series = [Series(BEFORE, ink.muted, (6, 4)), Series(AFTER, ink.weights, (1, 0))]
    scales = (
        Scale("Concurrent requests per replica", tuple(map(float, BATCHES)), ",d"),
        Scale("TPOT (ms)", log_ticks("y")),
    )
    spec = lines(ink, HEIGHT, scales, series, TIPS)
    triangle = {
        "type": "point", "shape": "triangle-up", "filled": True, "size": 90, "opacity": 1, "color": ink.ink,
        "stroke": ink.paper, "strokeWidth": 0.75, "aria": False,
    }  # fmt: skip
    return {**spec, "layer": [_marked(layer, triangle) for layer in spec["layer"]]}


def _marked(layer: Spec, triangle: Spec) -> Spec:
    """The layer of points with the mark of measurements, which belong to neither curve."""
    if layer["data"]["name"] != "points":
        return layer
    return {**layer, "mark": triangle, "encoding": {key: layer["encoding"][key] for key in ("x", "y")}}


def lengths(fit: Fit) -> tuple[int, int]:
    """Lengths that the curves are drawn for: those of the point in the middle [tokens]."""
    middle = fit.points[len(fit.points) // 2]
    return middle.isl, middle.osl


@lru_cache(maxsize=32)
def rows_of(fit: Fit) -> Datasets:
    """Both curves, the points, and what the pointer is told; kept for all sessions."""
    isl, osl = lengths(fit)
    at = {"isl": isl, "osl": osl, "at_batch": None}
    batches = _batches(fit)
    before = _times(uncalibrated(fit.scenario).with_(**at), batches)
    after = _times(fit.scenario.with_(**at), batches)
    drawn = [(x, y, name) for name, ys in ((BEFORE, before), (AFTER, after)) for x, y in zip(batches, ys, strict=True)]
    return {
        "lines": rows(SERIES, drawn),
        "points": rows(SERIES, [(float(p.batch), p.measured_ms, "") for p in fit.points]),
        "levels": rows(LEVELS, []),
        "limits": rows(LIMITS, []),
        "stops": rows(STRIPES, _stops(fit.points, batches, before, after)),
    }


def _batches(fit: Fit) -> list[float]:
    """Batches from one to the most that the replica holds, spread on a logarithm, with the measured ones."""
    measured = {point.batch for point in fit.points}
    top = max(largest(fit), *measured, 2)
    spread = {max(1, round(float(batch))) for batch in np.geomspace(1.0, top, STOPS)}
    return [float(batch) for batch in sorted(spread | measured)]


def _times(scenario: Scenario, batches: list[float]) -> list[float]:
    """TPOT of the plan at some batches [ms]."""
    return [float(value) for value in tpots(scenario, np.array([batches]))[0]]


def _stops(points: tuple[Compared, ...], batches: list[float], before: list[float], after: list[float]) -> list[Row]:
    """Stripes of the axis, halfway on its logarithm to their neighbours, with what is at each."""
    edges = [batches[0], *(sqrt(one * other) for one, other in pairwise(batches)), batches[-1]]
    return [
        (x, left, right, whole(x), _measured(points, x), show(without, "ms"), show(with_it, "ms"))
        for x, left, right, without, with_it in zip(batches, edges, edges[1:], before, after, strict=False)
    ]


def _measured(points: tuple[Compared, ...], batch: float) -> str:
    """What was measured at a batch."""
    said = [show(point.measured_ms, "ms") for point in points if point.batch == batch]
    return ", ".join(said) or DASH
