"""Specification of the Fleet page's chart: constant per theme, as all of them (see `planner.ui.charts`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from planner.ui.marks import Spec, axis, chart, legend, text, tip
from planner.ui.theme import Mode, Palette, palette

BAR_PIXELS: Final = 18
STEP_PIXELS: Final = 46
"""Height of a bar with the name of its class above it."""

LABEL_PIXELS: Final = 16
NAMED_PIXELS: Final = 56
"""Least width of a segment that has the name of its GPUs in it; it is cut to the segment, the legend has all of it."""

NUMBERED_PIXELS: Final = 14
"""Least width of a segment that has their number in it, where there is one."""

_WIDTH: Final = "(scale('x', datum.end) - scale('x', datum.start))"
_NUMBER: Final = "(test(/^[0-9]+ /, datum.stock) ? split(datum.stock, ' ')[0] : '')"
_NAME: Final = f"{_WIDTH} > {NAMED_PIXELS} ? datum.stock : {_WIDTH} > {NUMBERED_PIXELS} ? {_NUMBER} : ''"


@cache
def bill(shown: Mode) -> Spec:
    """Dollars an hour of each class, cut by the kind of GPUs; hues are given to kinds in their order."""
    ink = palette(shown)
    x = {
        "type": "quantitative",
        "scale": {"nice": False, "zero": True},
        "axis": axis(ink, "$/h", format="$,f", tickCount=6, grid=False),
    }
    y: Spec = {"field": "name", "type": "nominal", "sort": None, "scale": {"padding": 0}, "axis": None}
    where: Spec = {"y": y, "x": {"field": "start", **x}}
    layers = [_bars(ink, where), _names(ink, where), *_totals(ink, y)]
    apart = {"resolve": {"scale": {"color": "independent"}}}
    return chart(ink, 0, layers) | {"height": {"step": STEP_PIXELS}} | apart


def _bars(ink: Palette, where: Spec) -> Spec:
    """A segment for each plan that costs something."""
    hues = [ink.weights, ink.kv, ink.prompt, ink.machinery, ink.experts, ink.promise, ink.host, ink.free]
    tips = {"name": "Class", "stock": "GPUs", "plan": "Plan", "many": "Replicas", "cost": "$/h"}
    return {
        "data": {"name": "parts"},
        "mark": {"type": "bar", "height": BAR_PIXELS, "yOffset": 10, "stroke": ink.paper, "strokeWidth": 1},
        "encoding": {
            **where,
            "x2": {"field": "end"},
            "color": _coloured(hues, legend(ink, columns=1)),
            "tooltip": [tip(*pair) for pair in tips.items()],
        },
    }


def _coloured(colours: list[str], shown: Spec | None) -> Spec:
    """A colour for each kind of GPUs, in their order."""
    return {"field": "stock", "type": "nominal", "sort": None, "scale": {"range": colours}, "legend": shown}


def _names(ink: Palette, where: Spec) -> Spec:
    """The name of its GPUs in each segment that has room for it."""
    place = {"fontSize": 11, "align": "left", "baseline": "middle", "dx": 5, "dy": 10}
    return {
        "data": {"name": "parts"},
        "mark": {**text(ink.on_weights), **place, "limit": {"expr": f"{_WIDTH} - 8"}},
        "encoding": {
            **where,
            "text": {"value": {"expr": _NAME}},
            "color": _coloured(_on(ink), None),
        },
    }


def _totals(ink: Palette, y: Spec) -> list[Spec]:
    """Name and total of each bar, above it."""
    return [
        {
            "data": {"name": "totals"},
            "mark": {
                **text(ink.ink),
                "fontWeight": weight,
                "align": align,
                "baseline": "middle",
                "dy": -LABEL_PIXELS + 6,
            },
            "encoding": {"y": y, "x": {"value": at}, "text": {"field": field}},
        }
        for field, align, at, weight in (("name", "left", 0, 600), ("label", "right", "width", 400))
    ]


def _on(ink: Palette) -> list[str]:
    """Ink on top of each hue."""
    return [ink.on_weights, ink.on_kv, ink.on_kv, ink.on_kv, ink.on_kv, ink.on_weights, ink.on_kv, ink.on_free]
