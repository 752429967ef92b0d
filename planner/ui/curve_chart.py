"""The TPOT curve's specification: constant per theme, as all of them (see `planner.ui.charts`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from planner.ui.marks import Spec, axis, chart, log_ticks, text, tip
from planner.ui.theme import Mode, Palette, palette

BATCHES: Final = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]
ROWS: Final = 3
"""Rows above the plot for the labels of the limits, so that no label lies on a line."""

ROW_PIXELS: Final = 16
HEAD_PIXELS: Final = ROWS * ROW_PIXELS + 6


@cache
def curve(shown: Mode) -> Spec:
    """TPOT over batch on log axes: band, line, the promise, the limits and the operating point."""
    ink = palette(shown)
    layers = [_band(ink), _line(ink), *_promise(ink), *_limits(ink), *_hover(ink), _measured(ink), _point(ink)]
    return chart(ink, 372, layers)


def _batch_axis(ink: Palette) -> Spec:
    title = "Batch: concurrent requests per replica"
    scale_axis = axis(ink, title, values=BATCHES, format=",d", labelOverlap="greedy", grid=False, ticks=True)
    return {"field": "batch", "type": "quantitative", "scale": {"type": "log", "nice": False}, "axis": scale_axis}


def _time_axis(ink: Palette, field: str) -> Spec:
    scale_axis = axis(ink, "TPOT (ms)", values={"expr": log_ticks("y")}, format=",~r", labelOverlap="greedy")
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 12, "rangeMax": HEAD_PIXELS},
        "axis": scale_axis,
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
    label: Spec = {**text(ink.promise), "align": "left", "baseline": "bottom", "dx": 6, "dy": -3}
    return [
        {
            "data": {"name": "promise"},
            "mark": {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 1.5, "color": ink.promise},
            "encoding": {"y": y},
        },
        {
            "data": {"name": "promise"},
            "mark": label,
            "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "label"}},
        },
    ]


def _limits(ink: Palette) -> list[Spec]:
    """The largest batch under each limit as a rule that ends at its label, a row each above the plot; the binding one is bold."""
    x = {"field": "batch", "type": "quantitative"}
    rules = {
        "data": {"name": "limits"},
        "mark": {"type": "rule"},
        "encoding": {
            "x": x,
            "y": {"value": {"expr": f"datum.row * {ROW_PIXELS} + 2"}},
            "y2": {"value": "height"},
            "color": _by_rank([ink.ink, ink.host]),
            "strokeWidth": _by_rank([2.5, 1.25]),
            "strokeDash": _by_rank([[2, 3], [6, 4]]),
        },
    }
    beside = {"align": {"expr": "datum.side"}, "dx": {"expr": "datum.side === 'left' ? 6 : -6"}, "baseline": "middle"}
    middle = {"expr": f"datum.row * {ROW_PIXELS} + {ROW_PIXELS // 2}"}
    labels = {
        "data": {"name": "limits"},
        "mark": {**text(ink.ink), **beside},
        "encoding": {"x": x, "y": {"value": middle}, "text": {"field": "label"}},
    }
    return [rules, labels]


def _by_rank(values: list[object]) -> Spec:
    """A look for the limit that binds first, and one for those that lie beyond it."""
    scale = {"domain": ["first", "later"], "range": values}
    return {"field": "binds", "type": "nominal", "scale": scale, "legend": None}


def _symbol(shape: str, size: int, fill: str, edge: str, width: float) -> Spec:
    """A filled symbol, set off from the curve by an edge."""
    look = {"shape": shape, "filled": True, "size": size, "opacity": 1}
    return {"type": "point", **look, "color": fill, "stroke": edge, "strokeWidth": width}


def _measured(ink: Palette) -> Spec:
    """Public measurements of the same configuration, beside the estimate and never blended with it."""
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
        "mark": _symbol("triangle-up", 80, ink.ink, ink.paper, 0.75),
        "encoding": {**where, "tooltip": [tip(*pair) for pair in tips.items()]},
    }


def _point(ink: Palette) -> Spec:
    """Where the plan operates."""
    where = {"x": _batch_axis(ink), "y": _time_axis(ink, "tpot")}
    mark = _symbol("circle", 130, ink.weights, ink.paper, 2)
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
    return [tip(field, title) for field, title in titles.items()]
