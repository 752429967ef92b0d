"""The front's specification: constant per theme and view, as all of them (see `planner.ui.charts`).

Datasets: `points` (x, y, series, look, plan, texts of the tooltip), `line` (x, y), `promise` (x, label, side) and `marks`
(x, y, label, side, shape).
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

from planner.ui.marks import Spec, axis, chart, log_ticks, text, tip
from planner.ui.theme import Mode, Palette, palette

View = Literal["gpu", "usd"]
TITLES: Final = {
    "gpu": "Output tok/s of one GPU (more is better)",
    "usd": "$ per million output tokens (less is better)",
}
SERIES: Final = ("1", "2", "3", "4", "5", "6", "other")
"""Kinds by how often they are on the front; the chart knows them by number, the legend beside it by name."""

SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "circle")
SIGNS: Final = ("●", "■", "▲", "◆", "▼", "✚", "●")
"""The same shapes as characters, for the legend."""

PICK: Final = "front_pick"
HEAD_PIXELS: Final = 22
"""Height above the points for the label of the promise."""


def hues(ink: Palette) -> list[str]:
    """A hue of Okabe and Ito's for each series, grey for the rest."""
    return [ink.weights, ink.kv, ink.prompt, ink.machinery, ink.experts, ink.promise, ink.host]


@cache
def front(shown: Mode, view: View) -> Spec:
    """What a GPU (a dollar) gives over how fast it is for a user, on log axes."""
    ink = palette(shown)
    layers = [_line(ink, view), *_promise(ink), _points(ink, view), *_marks(ink, view)]
    return chart(ink, 400, layers)


def _x(ink: Palette) -> Spec:
    shown = axis(
        ink, "Speed for a user: tok/s, 1 / TPOT", values={"expr": log_ticks("x")}, format=",~r", labelOverlap="greedy",
        grid=False, ticks=True,
    )  # fmt: skip
    return {"field": "x", "type": "quantitative", "scale": {"type": "log", "nice": False, "padding": 16}, "axis": shown}


def _y(ink: Palette, view: View) -> Spec:
    shown = axis(ink, TITLES[view], values={"expr": log_ticks("y")}, format=",~r", labelOverlap="greedy")
    scale = {"type": "log", "nice": False, "padding": 12, "rangeMax": HEAD_PIXELS}
    return {"field": "y", "type": "quantitative", "scale": scale, "axis": shown}


def _line(ink: Palette, view: View) -> Spec:
    """The front as steps: whoever needs a speed gets what the next faster plan gives."""
    return {
        "data": {"name": "line"},
        "mark": {"type": "line", "interpolate": "step-before", "strokeWidth": 1.5, "color": ink.host},
        "encoding": {"x": _x(ink), "y": _y(ink, view)},
    }


def _promise(ink: Palette) -> list[Spec]:
    """The promised TPOT as an upright rule with its label above the points."""
    rule = {
        "data": {"name": "promise"},
        "mark": {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 1.5, "color": ink.promise},
        "encoding": {"x": _x(ink), "y": {"value": 2}, "y2": {"value": "height"}},
    }
    beside = {"align": {"expr": "datum.side"}, "dx": {"expr": "datum.side === 'left' ? 6 : -6"}, "baseline": "middle"}
    label = {
        "data": {"name": "promise"},
        "mark": {**text(ink.promise), **beside},
        "encoding": {"x": _x(ink), "y": {"value": 9}, "text": {"field": "label"}},
    }
    return [rule, label]


def _points(ink: Palette, view: View) -> Spec:
    """Every plan of the front; what breaks the SLA is hollow. The nearest answers pointer and click."""
    tips = {
        "kind": "Kind",
        "speed": "For a user",
        "rate": "Of a GPU",
        "cost": "Cost",
        "at": "Batch, GPUs",
        "kept": "SLA on TPOT",
    }
    series = {"field": "series", "type": "nominal", "legend": None}
    hue = {**series, "scale": {"domain": list(SERIES), "range": hues(ink)}}
    chosen = {"param": PICK, "empty": False}
    return {
        "data": {"name": "points"},
        "params": [{"name": PICK, "select": {"type": "point", "fields": ["plan"], "nearest": True, "on": "click"}}],
        "mark": {"type": "point", "filled": True, "cursor": "pointer", "opacity": 1},
        "encoding": {
            "x": _x(ink),
            "y": _y(ink, view),
            "fill": hue,
            "shape": {**series, "scale": {"domain": list(SERIES), "range": list(SHAPES)}},
            "fillOpacity": {"field": "look", "type": "quantitative", "scale": None, "legend": None},
            "size": {"condition": {**chosen, "value": 260}, "value": 75},
            "stroke": {"condition": {**chosen, "value": ink.ink}, **hue},
            "strokeWidth": {"condition": {**chosen, "value": 2.5}, "value": 1.25},
            "tooltip": [tip(*pair) for pair in tips.items()],
        },
    }


def _marks(ink: Palette, view: View) -> list[Spec]:
    """The winner and the plan of the sidebar, each with a ring of its own shape and a label."""
    where = {"x": _x(ink), "y": _y(ink, view)}
    shape = {"field": "shape", "type": "nominal", "scale": None, "legend": None}
    ring = {
        "data": {"name": "marks"},
        "mark": {"type": "point", "filled": False, "size": 330, "strokeWidth": 2.5, "opacity": 1, "color": ink.ink},
        "encoding": {**where, "shape": shape},
    }
    beside = {"align": {"expr": "datum.side"}, "dx": {"expr": "datum.side === 'left' ? 14 : -14"}, "baseline": "middle"}
    halo = {**text(ink.paper), "stroke": ink.paper, "strokeWidth": 4}
    labels = [
        {"data": {"name": "marks"}, "mark": {**look, **beside}, "encoding": {**where, "text": {"field": "label"}}}
        for look in (halo, text(ink.ink))
    ]
    return [ring, *labels]
