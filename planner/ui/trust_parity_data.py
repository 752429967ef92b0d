"""Rows behind the parity plot and its table: numbers for the scales, finished text for the tooltips."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

import pyarrow as pa

from planner.accuracy import Compared, Grouping
from planner.catalog.evidence import MetricName
from planner.ui.data import Row, rows
from planner.ui.marks import Datasets
from planner.ui.trust_parity import OTHER, TIPS, series
from planner.units import DASH, show, significant, whole

NEAR: Final = 0.2
"""Error of the lines beside the diagonal, as a share."""

MARGIN: Final = 1.1
"""How far the plot reaches beyond its outermost point, as a factor."""

UNITS: Final[dict[MetricName, str]] = {"TPOT": "ms", "TTFT": "ms", "output tokens/s per GPU": "tok/s"}

POINTS: Final = pa.schema(
    [
        *((name, pa.float64()) for name in ("measured", "predicted")),
        *((name, pa.string()) for name in ("series", *TIPS)),
    ]
)
LINES: Final = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("line", pa.string()), ("dashed", pa.string())])
NAMES: Final = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("name", pa.string())])


def parity_data(found: Sequence[Compared], metric: MetricName, by: Grouping) -> Datasets:
    """Rows of the plot: of at least one point."""
    values = [value for each in found for value in (each.measured, each.predicted)]
    low, high = min(values) / MARGIN, max(values) * MARGIN
    return {
        "points": rows(POINTS, [_point(each, metric, by) for each in found]),
        "lines": rows(LINES, _lines(low, high)),
        "names": rows(NAMES, [(low / (1 - NEAR), low, "±20 %")]),
    }


def _lines(low: float, high: float) -> list[Row]:
    """Both ends of each line, inside the square from `low` to `high`."""
    above, below = 1 + NEAR, 1 - NEAR
    lines = (
        ("exact", "no", (low, low), (high, high)),
        ("above", "yes", (low, low * above), (high / above, high)),
        ("below", "yes", (low / below, low), (high, high * below)),
    )
    return [(*end, name, dashed) for name, dashed, *ends in lines for end in ends]


def _point(each: Compared, metric: MetricName, by: Grouping) -> Row:
    """One point with its tooltip, in the order of `TIPS`."""
    value = str(getattr(each.point, by))
    return (
        each.measured,
        each.predicted,
        value if value in series(by) else OTHER,
        *_run(each),
        *_figures(each, metric),
        *_says(each),
    )


def _run(each: Compared) -> tuple[str, ...]:
    """What was run."""
    point = each.point
    return (
        point.model,
        f"{point.devices} × {point.accelerator}",
        f"{point.engine} {point.version}".strip(),
        point.precision or DASH,
        point.layout,
        f"{_count(point.isl)}, {_count(point.osl)}",
        _count(point.concurrency),
    )


def _figures(each: Compared, metric: MetricName) -> tuple[str, ...]:
    """Both figures, the error of one against the other, and the band where the metric has one."""
    unit, low, high = UNITS[metric], each.point.low_ms, each.point.high_ms
    band = DASH if metric != "TPOT" or low is None else f"{significant(low)} to {show(high, 'ms')}"
    return show(each.measured, unit), show(each.predicted, unit), signed(each.ratio - 1.0), band


def _says(each: Compared) -> tuple[str, ...]:
    """What the prediction rests on, who measured, and when."""
    return each.point.grounds, each.point.source, each.point.date


def signed(share: float) -> str:
    """An error with its sign: −12 %."""
    return f"{100 * share:+.0f} %".replace("-", "−")


def _count(value: float | None) -> str:
    """A mean count: whole from ten on."""
    if value is None:
        return DASH
    return whole(value) if value >= 10 or value == int(value) else significant(value)


def parity_table(found: Sequence[Compared], metric: MetricName) -> pa.Table:
    """Every point of the plot, farthest from the diagonal first; figures as numbers, so that a column can be sorted."""
    ordered = sorted(found, key=lambda each: -abs(log(each.ratio)))
    titles, unit = list(TIPS.values()), UNITS[metric]
    run = dict(zip(titles, zip(*map(_run, ordered), strict=True), strict=False))
    says = dict(zip(titles[-3:], zip(*map(_says, ordered), strict=True), strict=True))
    figures = {
        f"Measured, {unit}": [each.measured for each in ordered],
        f"Predicted, {unit}": [each.predicted for each in ordered],
        "Error, %": [100 * (each.ratio - 1.0) for each in ordered],
    }
    first = {title: run.pop(title) for title in titles[:3]}
    return pa.table({**first, **figures, **run, **says})
