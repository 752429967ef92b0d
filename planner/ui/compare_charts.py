"""Charts of the Compare page: constant per theme and number of plans. A plan has its hue, dash and symbol everywhere."""

from __future__ import annotations

from functools import cache
from typing import Final

from planner.compare.link import LETTERS
from planner.ui.curve_chart import BATCHES
from planner.ui.line_chart import DASHES, Scale, Series, lines, symbols
from planner.ui.marks import Spec, axis, chart, log_ticks, text, tip
from planner.ui.theme import Mode, Palette, palette

SHAPES: Final = ("circle", "square", "triangle-up", "diamond")
"""Symbols of the plans, in the order of their letters."""

SYMBOLS: Final = ("●", "■", "▲", "◆")
"""The same symbols in text."""

BAR_PIXELS: Final = 44
"""Height that one plan's bar takes, its label above it included."""


def hues(ink: Palette) -> list[str]:
    """Hues of the plans, in the order of their letters: Okabe and Ito's, far apart for every eye."""
    return [ink.weights, ink.kv, ink.prompt, ink.machinery]


@cache
def curves(shown: Mode, count: int) -> Spec:
    """TPOT over batch of every plan on log axes, the SLA, and where each operates."""
    ink = palette(shown)
    series = [
        Series(name, hue, dash, shape)
        for name, hue, dash, shape in zip(LETTERS[:count], hues(ink), DASHES, SHAPES, strict=False)
    ]
    scales = (
        Scale("Batch: concurrent requests per replica", tuple(map(float, BATCHES)), ",d"),
        Scale("TPOT (ms)", log_ticks("y")),
    )
    tips = {"at": "Batch"} | {name: f"TPOT of {name}" for name in LETTERS[:count]}
    drawn = symbols(ink, lines(ink, 400, scales, series, tips, quiet=True), series)
    return {**drawn, "layer": [_placed(ink, layer) for layer in drawn["layer"]]}


def _placed(ink: Palette, layer: Spec) -> Spec:
    """The SLA in its own hue; the names of points above and to their left, where a rising line is not."""
    mark = layer["mark"]
    if layer["data"]["name"] == "levels":
        return {**layer, "mark": {**mark, "color": ink.promise}}
    if layer["data"]["name"] == "points" and mark["type"] == "text":
        beside = {**mark, "align": "right", "baseline": "bottom", "dx": -5, "dy": -4}
        return {**layer, "mark": beside, "encoding": {**layer["encoding"], "text": {"field": "name"}}}
    return layer


@cache
def bars(shown: Mode, count: int, title: str, form: str) -> Spec:
    """One figure of every plan as a bar, in the order of the rows, its label above it and its band across its end."""
    ink, names = palette(shown), list(LETTERS[:count])
    y = {"field": "plan", "type": "nominal", "sort": None, "scale": {"padding": 0}, "axis": None}
    x = {
        "field": "value",
        "type": "quantitative",
        "scale": {"nice": False, "zero": True},
        "axis": axis(ink, title, format=form, tickCount=5, grid=False),
    }
    colour = {
        "field": "plan",
        "type": "nominal",
        "scale": {"domain": names, "range": hues(ink)[:count]},
        "legend": None,
    }
    bar = {
        "data": {"name": "bars"},
        "mark": {"type": "bar", "height": 16, "yOffset": 10},
        "encoding": {
            "y": y,
            "x": x,
            "color": colour,
            "tooltip": [tip("plan", "Plan"), tip("label", title), tip("band", "80 % band")],
        },
    }
    label = {
        "data": {"name": "bars"},
        "mark": {**text(ink.ink), "align": "left", "baseline": "middle", "dy": -9},
        "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"}},
    }
    return chart(ink, BAR_PIXELS * count, [bar, _whisker(ink, y), label])


def _whisker(ink: Palette, y: Spec) -> Spec:
    """The 80 % band of a figure, a line across the end of its bar; none where the row has no band."""
    ends = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
    return {
        "data": {"name": "bars"},
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 2, "color": ink.ink, "yOffset": 10},
        "encoding": {"y": y, **ends, "tooltip": [tip("plan", "Plan"), tip("band", "80 % band")]},
    }
