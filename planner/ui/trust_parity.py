"""The parity plot: predicted against measured on log axes; the specification is constant per theme, metric and colour.

Datasets: `points` (measured, predicted, series, texts of the tooltip), `lines` (x, y, line, dash) and `names` (x, y, name).
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final

from planner.accuracy import Grouping, compared
from planner.catalog.evidence import MetricName
from planner.predicted import served_points
from planner.ui.marks import Spec, axis, chart, legend, log_ticks, text, tip
from planner.ui.optimise_chart import SHAPES, hues
from planner.ui.theme import Mode, Palette, palette

OTHER: Final = "other"
HEIGHT: Final = 520
CANVAS: Final = {"embedOptions": {"renderer": "canvas", "actions": False}}
"""2,000 marks and the cells of their nearest-point search are too many elements for SVG."""

TITLES: Final[dict[MetricName, str]] = {
    "TPOT": "TPOT (ms)",
    "TTFT": "TTFT (ms)",
    "output tokens/s per GPU": "output tokens/s per GPU",
}
TIPS: Final = {
    "model": "Model",
    "part": "Accelerator",
    "engine": "Engine",
    "precision": "Weights",
    "layout": "Layout",
    "tokens": "Tokens in, out",
    "load": "Concurrent requests",
    "here": "Measured",
    "there": "Predicted",
    "error": "Error",
    "band": "80 % band of TPOT",
    "grounds": "Constants",
    "source": "Says who",
    "date": "Date",
}
"""Lines of the tooltip by column."""


@cache
def series(by: Grouping) -> tuple[str, ...]:
    """What has a hue of its own: the values with the most points, then the rest together."""
    counted = Counter(getattr(each.point, by) for each in compared(served_points(), "TPOT"))
    common = [value for value, _ in counted.most_common(len(SHAPES) - 1)]
    return (*common, *([OTHER] if len(counted) > len(common) else []))


@cache
def parity(shown: Mode, metric: MetricName, by: Grouping) -> Spec:
    """Points by series, the diagonal and the lines beside it; a click in the legend dims all but one series."""
    ink = palette(shown)
    spec = chart(ink, HEIGHT, [_points(ink, metric, series(by)), *_lines(ink, metric), _names(ink)])
    return {**spec, "usermeta": CANVAS}


def _channel(ink: Palette, metric: MetricName, field: str, side: str) -> Spec:
    """One of the two axes: ticks by its span."""
    scale = "y" if side == "Predicted" else "x"
    shown = axis(
        ink, f"{side} {TITLES[metric]}", values={"expr": log_ticks(scale)}, format=",~r", labelOverlap="greedy"
    )
    return {"field": field, "type": "quantitative", "scale": {"type": "log", "nice": False}, "axis": shown}


def _lines(ink: Palette, metric: MetricName) -> list[Spec]:
    """The diagonal, where a prediction is the measurement, and the errors beside it: above the points, which hide them."""
    dash = {"field": "dashed", "type": "nominal", "legend": None}
    return [
        {
            "data": {"name": "lines"},
            "mark": {"type": "line", "strokeWidth": 1.5, "color": ink.ink},
            "encoding": {
                "x": _channel(ink, metric, "x", "Measured"),
                "y": _channel(ink, metric, "y", "Predicted"),
                "detail": {"field": "line"},
                "strokeDash": {**dash, "scale": {"domain": ["no", "yes"], "range": [[1, 0], [5, 4]]}},
            },
        }
    ]


def _names(ink: Palette) -> Spec:
    """What the dashed lines are, at the lower end of one."""
    return {
        "data": {"name": "names"},
        "mark": {**text(ink.ink), "align": "left", "baseline": "middle", "dx": 8},
        "encoding": {
            "x": {"field": "x", "type": "quantitative"},
            "y": {"field": "y", "type": "quantitative"},
            "text": {"field": "name"},
        },
    }


def _points(ink: Palette, metric: MetricName, names: tuple[str, ...]) -> Spec:
    """Every point; the nearest answers the pointer."""
    look = {**legend(ink, columns=4), "columns": {"expr": "width < 480 ? 2 : 4"}, "labelLimit": 190, "symbolOpacity": 1}
    look = {key: value for key, value in look.items() if key not in ("symbolType", "symbolStrokeWidth")}
    range_of = [*hues(ink)[: len(names) - 1], ink.host] if OTHER in names else hues(ink)[: len(names)]
    field = {"field": "series", "type": "nominal", "legend": look}
    nearest = {"type": "point", "nearest": True, "on": "pointerover", "clear": "pointerout"}
    return {
        "data": {"name": "points"},
        "params": [
            {"name": "near", "select": nearest},
            {"name": "kind", "select": {"type": "point", "fields": ["series"]}, "bind": "legend"},
        ],
        "mark": {"type": "point", "filled": True, "strokeWidth": 1.5},
        "encoding": {
            "x": _channel(ink, metric, "measured", "Measured"),
            "y": _channel(ink, metric, "predicted", "Predicted"),
            "color": {**field, "scale": {"domain": list(names), "range": range_of}},
            "shape": {**field, "scale": {"domain": list(names), "range": list(SHAPES[: len(names)])}},
            "opacity": {"condition": {"param": "kind", "value": 0.72}, "value": 0.06},
            "size": {"condition": {"param": "near", "empty": False, "value": 170}, "value": 30},
            "tooltip": [tip(*pair) for pair in TIPS.items()],
        },
    }
