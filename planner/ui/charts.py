"""Chart specifications: constant per theme, so that a change of numbers swaps rows and never redraws a chart.

Data come in named datasets (`planner.ui.data`); findings stand as text above a chart, never inside it.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from planner.ui.marks import Spec, axis, chart, legend, text, tip
from planner.ui.theme import Mode, Palette, palette

PARTS: Final = ("Weights", "KV pool", "Activations", "Runtime", "CUDA graphs", "Withheld")
"""What a device's memory holds, in the order of the bar."""

GROUPS: Final = {
    "weights": "Weights",
    "experts": "Experts",
    "kv": "KV cache",
    "collectives": "Collectives",
    "host": "Host",
    "prefill": "Prefill of others",
}
"""What a step's time goes into, in the order of the bars."""


@cache
def memory(shown: Mode) -> Spec:
    """Memory of one device as one bar, with the usable and the physical mark."""
    ink = palette(shown)
    hues = [ink.weights, ink.kv, ink.prompt, ink.machinery, ink.host, ink.free]
    x = {
        "type": "quantitative",
        "scale": {"nice": False},
        "axis": axis(ink, "GB per GPU (10⁹ bytes)", format=",~r", tickCount=8, grid=False),
    }
    bar: Spec = {
        "data": {"name": "parts"},
        "mark": {"type": "rect", "stroke": ink.paper, "strokeWidth": 1},
        "encoding": {
            "x": {"field": "start", **x},
            "x2": {"field": "end"},
            "y": {"value": 22},
            "y2": {"value": 72},
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": list(PARTS), "range": hues},
                "legend": legend(ink, columns=3),
            },
            "tooltip": [tip("part", "Part"), tip("gb", "GB"), tip("gib", "GiB"), tip("share", "Share of physical")],
        },
    }
    names = {
        "data": {"name": "parts"},
        "mark": {
            "type": "text",
            "fontSize": 12,
            "fontWeight": 600,
            "lineBreak": "\n",
            "lineHeight": 15,
            "baseline": "middle",
        },
        "encoding": {
            "x": {"field": "middle", "type": "quantitative"},
            "y": {"value": 40},
            "text": {"field": "label"},
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": list(PARTS), "range": _part_inks(ink)},
                "legend": None,
            },
        },
    }
    return chart(
        ink, 96, [bar, names, *_memory_marks(ink), *_overrun(ink)], resolve={"scale": {"color": "independent"}}
    )


def _part_inks(ink: Palette) -> list[str]:
    return [ink.on_weights, ink.on_kv, ink.on_kv, ink.on_kv, ink.on_kv, ink.on_free]


def _memory_marks(ink: Palette) -> list[Spec]:
    """The usable and the physical mark, a label beside each: one above the bar, one below, on the side with room."""
    x = {"field": "gb", "type": "quantitative"}
    rule = {
        "data": {"name": "marks"},
        "mark": {"type": "rule", "strokeWidth": 2, "color": ink.ink},
        "encoding": {
            "x": x,
            "y": {"value": 14},
            "y2": {"value": 80},
            "strokeDash": {
                "field": "mark",
                "scale": {"domain": ["usable", "physical"], "range": [[5, 3], [1, 0]]},
                "legend": None,
            },
        },
    }
    side = {"align": {"expr": "datum.side"}, "dx": {"expr": "datum.side === 'left' ? -1 : 1"}, "baseline": "middle"}
    labels = {
        "data": {"name": "marks"},
        "mark": {**text(ink.ink), **side},
        "encoding": {
            "x": x,
            "y": {"value": {"expr": "datum.mark === 'usable' ? 7 : 88"}},
            "text": {"field": "label"},
        },
    }
    return [rule, labels]


def _overrun(ink: Palette) -> list[Spec]:
    """By how much the device is overrun: a stroke from the usable mark to the end of the bar."""
    x = {"field": "start", "type": "quantitative"}
    stroke = {
        "data": {"name": "overrun"},
        "mark": {"type": "rule", "strokeWidth": 4, "color": ink.promise},
        "encoding": {"x": x, "x2": {"field": "end"}, "y": {"value": 76}},
    }
    mark = {**text(ink.promise), "align": "right", "baseline": "middle"}
    label = {
        "data": {"name": "overrun"},
        "mark": mark,
        "encoding": {"x": {"field": "end", "type": "quantitative"}, "y": {"value": 7}, "text": {"field": "label"}},
    }
    return [stroke, label]


@cache
def step(shown: Mode) -> Spec:
    """Where the time of one step goes: a bar a group, cut by operator, with what bounds it."""
    ink = palette(shown)
    hues = [ink.weights, ink.experts, ink.kv, ink.machinery, ink.host, ink.prompt]
    order = list(GROUPS.values())
    y = {"field": "group", "type": "nominal", "scale": {"domain": order, "padding": 0}, "axis": None}
    x = {
        "type": "quantitative",
        "scale": {"nice": False, "zero": True},
        "axis": axis(ink, "Milliseconds of one step", format=",~r", tickCount=6, grid=False),
    }
    tips = {
        "operator": "Operator",
        "time": "Time",
        "bound": "Bound by",
        "flops": "FLOP",
        "bytes": "HBM bytes",
        "link": "Link bytes",
    }
    bars = {
        "data": {"name": "operators"},
        "mark": {"type": "bar", "height": 16, "yOffset": 10, "stroke": ink.paper, "strokeWidth": 1},
        "encoding": {
            "y": y,
            "x": {"field": "start", **x},
            "x2": {"field": "end"},
            "color": {"field": "group", "type": "nominal", "scale": {"domain": order, "range": hues}, "legend": None},
            "tooltip": [tip(*pair) for pair in tips.items()],
        },
    }
    said = [
        {
            "data": {"name": "totals"},
            "mark": {**text(ink.ink), "fontWeight": weight, "align": align, "baseline": "middle", "dy": -9},
            "encoding": {"y": y, "x": {"value": where}, "text": {"field": field}},
        }
        for field, align, where, weight in (("group", "left", 0, 600), ("label", "right", "width", 400))
    ]
    return chart(ink, 300, [bars, *said])
