"""Specifications of the Traffic page's charts: constant per theme, as all of them (see `planner.ui.charts`).

Datasets are those of a line chart (`planner.ui.line_chart`); of `routing`: `ways` (x, router, limit, look and the texts of
the tooltip), `spans` (low, high, router) and `promise` (x, label, toward).
"""

from __future__ import annotations

from functools import cache
from typing import Final

from planner.simulate.traffic import ROUTERS
from planner.ui.line_chart import Scale, Series, lines
from planner.ui.marks import Spec, axis, chart, legend, log_ticks, text, tip
from planner.ui.theme import Mode, Palette, palette

RUNNING, WAITING, CACHE = "Running", "In the queue", "KV cache"
SIMULATED, THEORY = "Simulated", "Queue theory"
TTFT, TPOT, E2E = "TTFT", "TPOT", "E2E"
TIMES: Final = {"ttft": TTFT, "tpot": TPOT, "e2e": E2E}
PLANNED, SPARED, HEALTHY = "As planned", "One replica more", "No failure"
LIMITS: Final = ("half", "limit set", "double")
"""What the dots of a router differ in."""

LOG_X, LOG_Y = log_ticks("x"), log_ticks("y")
TIME_AXIS: Final = "Time since the first arrival, s"
SPACED: Final = "replace(datum.label, '-', ' ')"
"""A router's id as words."""

ROW_PIXELS: Final = 48


@cache
def state(shown: Mode) -> Spec:
    """Requests that run and wait, over time."""
    ink = palette(shown)
    series = [Series(RUNNING, ink.weights), Series(WAITING, ink.promise, (7, 4))]
    tips = {"at": "Time", "running": "Running, mean", "waiting": "In the queue, most"}
    return lines(ink, 210, (Scale(TIME_AXIS), Scale("Requests, all replicas")), series, tips)


@cache
def cache_used(shown: Mode) -> Spec:
    """Share of the cache in use, over time."""
    ink = palette(shown)
    tips = {"at": "Time", "used": "KV cache in use, most"}
    return lines(ink, 210, (Scale(TIME_AXIS), Scale("% of KV blocks")), [Series(CACHE, ink.kv)], tips, quiet=True)


@cache
def spread(shown: Mode, name: str) -> Spec:
    """Share of requests that are as fast, over a time."""
    ink = palette(shown)
    hue = {"ttft": ink.prompt, "tpot": ink.weights, "e2e": ink.machinery}[name]
    titles = {
        "ttft": "Time to first token, ms",
        "tpot": "Time per output token, ms",
        "e2e": "Time to the last token, ms",
    }
    scales = (Scale(titles[name], LOG_X), Scale("% of requests as fast"))
    tips = {"share": "Requests", "time": "Take at most"}
    return lines(ink, 210, scales, [Series(TIMES[name], hue)], tips, quiet=True)


@cache
def knee(shown: Mode, *, theory: bool = True) -> Spec:
    """Good tokens a second over requests a second; `theory`: whether it has a line, which is named at its end."""
    ink = palette(shown)
    series = [Series(SIMULATED, ink.weights), Series(THEORY, ink.ink, (5, 4))][: 1 + theory]
    tips = {"at": "Offered", "good": "Good tokens", "share": "Within the SLA"}
    tips |= {"theory": "Queue theory"} if theory else {}
    scales = (Scale("Requests/s offered, all replicas"), Scale("Good output tok/s, all replicas"))
    spec = lines(ink, 250, scales, series, tips, rows=2, quiet=not theory)
    return (
        {**spec, "layer": [*spec["layer"][:-1], _end_label(ink, spec["layer"][0]), spec["layer"][-1]]}
        if theory
        else spec
    )


def _end_label(ink: Palette, curves: Spec) -> Spec:
    """The name of theory's line at its right end, below it: simulated points lie on it or above."""
    where = {key: curves["encoding"][key] for key in ("x", "y")}
    last = {"joinaggregate": [{"op": "max", "field": "x", "as": "last"}], "groupby": ["series"]}
    return {
        "data": {"name": "lines"},
        "transform": [last, {"filter": f"datum.series === '{THEORY}' && datum.x === datum.last"}],
        "mark": {**text(ink.ink), "align": "left", "baseline": "top", "dx": 8, "dy": 4, "aria": False},
        "encoding": {**where, "text": {"field": "series"}},
    }


@cache
def ratio(shown: Mode) -> Spec:
    """TTFT and TPOT over their SLA, over requests a second."""
    ink = palette(shown)
    series = [Series(TTFT, ink.prompt), Series(TPOT, ink.weights, (7, 4))]
    tips = {"at": "Offered", "ttft": "TTFT", "tpot": "TPOT"}
    scales = (Scale("Requests/s offered, all replicas"), Scale("Time over its SLA", LOG_Y, "~g"))
    return lines(ink, 250, scales, series, tips, rows=2)


@cache
def outage(shown: Mode) -> Spec:
    """TTFT over time around a failure."""
    ink = palette(shown)
    series = [
        Series(PLANNED, ink.promise),
        Series(SPARED, ink.weights, (7, 4)),
        Series(HEALTHY, ink.host, (2, 3)),
    ]
    tips = {"at": "Since the failure", "planned": PLANNED, "spared": SPARED, "healthy": HEALTHY}
    scales = (Scale("Time since the failure, s"), Scale("TTFT at the promised percentile, ms", LOG_Y))
    return lines(ink, 250, scales, series, tips, steps=True)


@cache
def routing(shown: Mode, routers: tuple[str, ...] = ROUTERS) -> Spec:
    """TTFT of each router under each limit: dots on a line each, with the SLA."""
    ink = palette(shown)
    y: Spec = {
        "field": "router", "type": "nominal", "scale": {"domain": list(routers), "padding": 0.25},
        "axis": axis(ink, "", grid=False, ticks=False, domain=False, labelFontSize=13, labelExpr=SPACED),
    }  # fmt: skip
    title = "TTFT at the promised percentile, ms"
    shown_axis = axis(ink, title, values={"expr": LOG_X}, format=",~r", labelOverlap="greedy", ticks=True)
    log = {"type": "log", "nice": False, "padding": 18}
    x = {"field": "x", "type": "quantitative", "scale": log, "axis": shown_axis}
    kind = {"field": "look", "type": "nominal"}
    hues, shapes = [ink.kv, ink.weights, ink.prompt], ["triangle-up", "circle", "square"]
    tips = {"name": "Router", "limit": "In flight", "ttft": "TTFT", "tpot": "TPOT", "share": "Within the SLA"}
    legend_of = {key: value for key, value in legend(ink, 3).items() if key != "symbolType"}
    dots = {
        "data": {"name": "ways"},
        "mark": {"type": "point", "filled": True, "size": 100, "opacity": 1, "stroke": ink.paper, "strokeWidth": 1},
        "encoding": {
            "x": x, "y": y, "yOffset": {**kind, "scale": {"domain": list(LIMITS)}},
            "color": {**kind, "scale": {"domain": list(LIMITS), "range": hues}, "legend": legend_of},
            "shape": {**kind, "scale": {"domain": list(LIMITS), "range": shapes}},
            "tooltip": [tip(*pair) for pair in tips.items()],
        },
    }  # fmt: skip
    rule = {
        "data": {"name": "promise"},
        "mark": {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 1.5, "color": ink.ink},
        "encoding": {"x": x, "y": {"value": 0}, "y2": {"value": "height"}},
    }
    beside = {"align": {"expr": "datum.toward"}, "dx": {"expr": "datum.toward === 'left' ? 6 : -6"}, "baseline": "top"}
    label = {
        "data": {"name": "promise"},
        "mark": {**text(ink.ink), **beside},
        "encoding": {"x": x, "y": {"value": 2}, "text": {"field": "label"}},
    }
    return chart(ink, 30 + ROW_PIXELS * len(routers), [rule, label, dots])
