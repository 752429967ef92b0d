"""Specification of the Fleet page's chart: constant per theme, as all of them (see `planner.ui.charts`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from planner.ui.marks import Spec, axis, chart, legend, text, tip
from planner.ui.theme import Mode, palette

BAR_PIXELS: Final = 18
STEP_PIXELS: Final = 46
"""Height of a bar with the name of its class above it."""

LABEL_PIXELS: Final = 16


@cache
def bill(shown: Mode) -> Spec:
    """Dollars an hour of each class, cut by the kind of GPUs; hues are given to kinds in their order."""
    ink = palette(shown)
    hues = [ink.weights, ink.kv, ink.prompt, ink.machinery, ink.experts, ink.promise, ink.host, ink.free]
    y: Spec = {"field": "name", "type": "nominal", "sort": None, "scale": {"padding": 0}, "axis": None}
    x = {
        "type": "quantitative",
        "scale": {"nice": False, "zero": True},
        "axis": axis(ink, "Dollars an hour", format="$,~r", tickCount=6, grid=False),
    }
    tips = {"name": "Class", "stock": "GPUs", "plan": "Plan", "many": "Replicas", "cost": "An hour"}
    bars = {
        "data": {"name": "parts"},
        "mark": {"type": "bar", "height": BAR_PIXELS, "yOffset": 10, "stroke": ink.paper, "strokeWidth": 1},
        "encoding": {
            "y": y,
            "x": {"field": "start", **x},
            "x2": {"field": "end"},
            "color": {
                "field": "stock",
                "type": "nominal",
                "sort": None,
                "scale": {"range": hues},
                "legend": legend(ink, columns=1),
            },
            "tooltip": [tip(*pair) for pair in tips.items()],
        },
    }
    said = [
        {
            "data": {"name": "totals"},
            "mark": {
                **text(ink.ink),
                "fontWeight": weight,
                "align": align,
                "baseline": "middle",
                "dy": -LABEL_PIXELS + 6,
            },
            "encoding": {"y": y, "x": {"value": where}, "text": {"field": field}},
        }
        for field, align, where, weight in (("name", "left", 0, 600), ("label", "right", "width", 400))
    ]
    return chart(ink, 0, [bars, *said]) | {"height": {"step": STEP_PIXELS}}
