"""Chart specifications: constant per theme, so that a change of numbers swaps rows and never redraws a chart.

Data come in named datasets (`planner.ui.data`); findings stand as text above a chart, never inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias

import pyarrow as pa
import streamlit as st

from planner.ui.theme import Mode, Palette, palette

Spec: TypeAlias = dict[str, Any]
Datasets: TypeAlias = Mapping[str, pa.Table]

SVG: Final = {"embedOptions": {"renderer": "svg", "actions": False}}
BATCHES: Final = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]
MILLISECONDS: Final = [float(f"{digit}e{power}") for power in range(-2, 6) for digit in (1, 2, 5)]

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


def draw(spec: Spec, data: Datasets, alt: str) -> None:
    """Put a chart on the page."""
    st.vega_lite_chart({**spec, "datasets": dict(data)}, alt=alt)


@cache
def memory(shown: Mode) -> Spec:
    """Memory of one device as one bar, with the usable and the physical mark."""
    ink = palette(shown)
    hues = [ink.weights, ink.kv, ink.prompt, ink.machinery, ink.host, ink.free]
    x = {
        "type": "quantitative",
        "scale": {"nice": False},
        "axis": _axis(ink, "GB per GPU (10⁹ bytes)", format=",~r", tickCount=8),
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
                "legend": _legend(ink, columns=3),
            },
            "tooltip": [_tip("part", "Part"), _tip("gb", "GB"), _tip("gib", "GiB"), _tip("share", "Share of physical")],
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
    return _chart(
        ink, 96, [bar, names, *_memory_marks(ink), *_overrun(ink)], resolve={"scale": {"color": "independent"}}
    )


def _part_inks(ink: Palette) -> list[str]:
    return [ink.on_weights, ink.on_kv, ink.on_kv, ink.on_kv, ink.on_kv, ink.on_free]


def _memory_marks(ink: Palette) -> list[Spec]:
    """The usable and the physical mark, their labels ending at them: one above the bar, one below."""
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
    texts = [
        {
            "data": {"name": "marks"},
            "transform": [{"filter": f"datum.mark === '{mark}'"}],
            "mark": {
                "type": "text",
                "fontSize": 12,
                "fontWeight": 600,
                "align": "right",
                "baseline": "middle",
                "dx": 1,
                "color": ink.ink,
            },
            "encoding": {"x": x, "y": {"value": y}, "text": {"field": "label"}},
        }
        for mark, y in (("usable", 7), ("physical", 88))
    ]
    return [rule, *texts]


def _overrun(ink: Palette) -> list[Spec]:
    """By how much the device is overrun: a stroke from the usable mark to the end of the bar."""
    x = {"field": "start", "type": "quantitative"}
    stroke = {
        "data": {"name": "overrun"},
        "mark": {"type": "rule", "strokeWidth": 4, "color": ink.promise},
        "encoding": {"x": x, "x2": {"field": "end"}, "y": {"value": 76}},
    }
    mark = {**_text(ink.promise), "align": "right", "baseline": "middle"}
    text = {
        "data": {"name": "overrun"},
        "mark": mark,
        "encoding": {"x": {"field": "end", "type": "quantitative"}, "y": {"value": 7}, "text": {"field": "label"}},
    }
    return [stroke, text]


@cache
def curve(shown: Mode) -> Spec:
    """TPOT over batch on log axes: band, line, the promise, both limits and the operating point."""
    ink = palette(shown)
    layers = [_band(ink), _line(ink), *_promise(ink), *_limits(ink), *_hover(ink), _measured(ink), _point(ink)]
    return _chart(ink, 392, layers)


def _batch_axis(ink: Palette) -> Spec:
    title = "Batch: concurrent requests per replica"
    axis = _axis(ink, title, values=BATCHES, format=",d", labelOverlap="greedy")
    return {"field": "batch", "type": "quantitative", "scale": {"type": "log", "nice": False}, "axis": axis}


def _time_axis(ink: Palette, field: str) -> Spec:
    axis = _axis(ink, "TPOT (ms)", values=MILLISECONDS, format=",~r", labelOverlap="greedy")
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 12},
        "axis": axis,
    }


def _band(ink: Palette) -> Spec:
    encoding = {"x": _batch_axis(ink), "y": _time_axis(ink, "low"), "y2": {"field": "high"}}
    return {
        "data": {"name": "curve"},
        "mark": {"type": "area", "color": ink.weights, "opacity": 0.16},
        "encoding": encoding,
    }


def _line(ink: Palette) -> Spec:
    encoding = {"x": _batch_axis(ink), "y": _time_axis(ink, "tpot")}
    return {
        "data": {"name": "curve"},
        "mark": {"type": "line", "color": ink.weights, "strokeWidth": 2.5},
        "encoding": encoding,
    }


def _promise(ink: Palette) -> list[Spec]:
    """The SLA as a dashed line with its label on it."""
    y = _time_axis(ink, "ms")
    text: Spec = {**_text(ink.promise), "align": "left", "baseline": "bottom", "dx": 6, "dy": -3}
    return [
        {
            "data": {"name": "promise"},
            "mark": {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 1.5, "color": ink.promise},
            "encoding": {"y": y},
        },
        {
            "data": {"name": "promise"},
            "mark": text,
            "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "label"}},
        },
    ]


def _limits(ink: Palette) -> list[Spec]:
    """B_max by SLA and by KV as dotted rules, each label on the side where it has room, one row each."""
    x = {"field": "batch", "type": "quantitative"}
    rules = {
        "data": {"name": "limits"},
        "mark": {"type": "rule", "strokeDash": [1, 3], "strokeWidth": 2, "color": ink.ink},
        "encoding": {"x": x},
    }
    halo = _text(ink.ink) | {"stroke": ink.paper, "strokeWidth": 4, "strokeOpacity": 0.9}
    looks = (halo, _text(ink.ink))
    places = [(row, side) for row in (0, 1) for side in ("left", "right")]
    return [rules, *(_limit_label(ink, row, side, look) for row, side in places for look in looks)]


def _limit_label(ink: Palette, row: int, side: str, look: Spec) -> Spec:
    """Labels of the limits of one row that lie on one side of their rules, in the free corner under the curve."""
    place: Spec = {"align": side, "baseline": "bottom", "dx": -6 if side == "right" else 6, "dy": -16 * row}
    return {
        "data": {"name": "limits"},
        "transform": [{"filter": f"datum.row === {row} && datum.side === '{side}'"}],
        "mark": look | place,
        "encoding": {
            "x": {"field": "batch", "type": "quantitative"},
            "y": _time_axis(ink, "floor"),
            "text": {"field": "label"},
        },
    }


def _measured(ink: Palette) -> Spec:
    """Public measurements of the same configuration, beside the estimate and never blended with it."""
    mark = {
        "type": "point",
        "shape": "triangle-up",
        "filled": True,
        "size": 75,
        "opacity": 1,
        "color": ink.promise,
        "stroke": ink.paper,
    }
    tips = {
        "at": "Batch",
        "time": "TPOT, measured",
        "lengths": "Tokens in, out",
        "engine": "Engine",
        "source": "Says who",
    }
    where = {"x": _batch_axis(ink), "y": _time_axis(ink, "tpot")}
    return {
        "data": {"name": "measured"},
        "mark": mark,
        "encoding": {**where, "tooltip": [_tip(*pair) for pair in tips.items()]},
    }


def _point(ink: Palette) -> Spec:
    """Where the plan operates."""
    mark = {
        "type": "point",
        "shape": "circle",
        "filled": True,
        "size": 130,
        "opacity": 1,
        "color": ink.weights,
        "stroke": ink.paper,
        "strokeWidth": 2,
    }
    where = {"x": _batch_axis(ink), "y": _time_axis(ink, "tpot")}
    return {"data": {"name": "point"}, "mark": mark, "encoding": {**where, "tooltip": _curve_tips()}}


def _hover(ink: Palette) -> list[Spec]:
    """The nearest batch answers the pointer, wherever in the plot it is; stripes cost a tenth of a Voronoi diagram."""
    select = {"type": "point", "on": "pointerover", "clear": "pointerout", "fields": ["batch"]}
    stripes = {
        "data": {"name": "curve"},
        "params": [{"name": "near", "select": select}],
        "mark": {"type": "rect", "opacity": 0},
        "encoding": {
            "x": {"field": "from", "type": "quantitative"},
            "x2": {"field": "to"},
            "y": {"value": 0},
            "y2": {"value": "height"},
            "tooltip": _curve_tips(),
        },
    }
    dot = {
        "data": {"name": "curve"},
        "transform": [{"filter": {"param": "near", "empty": False}}],
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "color": ink.ink, "tooltip": None},
        "encoding": {"x": _batch_axis(ink), "y": _time_axis(ink, "tpot")},
    }
    return [dot, stripes]


def _curve_tips() -> list[Spec]:
    titles = {
        "at": "Batch",
        "time": "TPOT",
        "range": "80 % band",
        "rate": "Throughput",
        "cost": "Cost",
        "held": "Fits the pool",
    }
    return [_tip(field, title) for field, title in titles.items()]


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
        "axis": _axis(ink, "Milliseconds of one step", format=",~r", tickCount=6),
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
        "mark": {"type": "bar", "height": 14, "yOffset": 9, "stroke": ink.paper, "strokeWidth": 1},
        "encoding": {
            "y": y,
            "x": {"field": "start", **x},
            "x2": {"field": "end"},
            "color": {"field": "group", "type": "nominal", "scale": {"domain": order, "range": hues}, "legend": None},
            "tooltip": [_tip(*pair) for pair in tips.items()],
        },
    }
    said = [
        {
            "data": {"name": "totals"},
            "mark": {**_text(ink.ink), "fontWeight": weight, "align": align, "baseline": "middle", "dy": -8},
            "encoding": {"y": y, "x": {"value": where}, "text": {"field": field}},
        }
        for field, align, where, weight in (("group", "left", 0, 600), ("label", "right", "width", 400))
    ]
    return _chart(ink, 264, [bars, *said])


def _chart(ink: Palette, height: int, layers: list[Spec], **more: object) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 2, "right": 8, "top": 2, "bottom": 2},
        "layer": [_silent(layer) for layer in layers],
        "usermeta": SVG,
        "background": "transparent",
        "config": {"view": {"stroke": None}, "axis": {"gridColor": ink.grid, "domainColor": ink.grid}},
        **more,
    }


def _silent(layer: Spec) -> Spec:
    """A layer whose marks a screen reader skips: the chart's `alt` and the table behind it say it better."""
    return {**layer, "mark": {**layer["mark"], "aria": False}}


def _axis(ink: Palette, title: str, **more: object) -> Spec:
    text = {
        "labelColor": ink.muted,
        "titleColor": ink.muted,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 400,
    }
    return {"title": title, "gridColor": ink.grid, "tickColor": ink.grid, "domainColor": ink.grid, **text, **more}


def _legend(ink: Palette, columns: int) -> Spec:
    return {
        "title": None,
        "orient": "bottom",
        "columns": columns,
        "labelColor": ink.ink,
        "labelFontSize": 12,
        "symbolType": "square",
        "symbolSize": 110,
        "symbolStrokeWidth": 0,
    }


def _text(colour: str) -> Spec:
    return {"type": "text", "fontSize": 12, "fontWeight": 600, "color": colour}


def _tip(field: str, title: str) -> Spec:
    return {"field": field, "type": "nominal", "title": title}
