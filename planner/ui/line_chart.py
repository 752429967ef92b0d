"""A line chart with levels, limits, points and the nearest answer to the pointer; constant, as all specifications are.

Datasets: `lines` and `points` (x, y, series), `levels` (level, label, place), `limits` (limit, label, toward, row) and
`stops` (x, from, to, and the texts of the tooltip).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from planner.ui.marks import Spec, axis, chart, legend, text, tip
from planner.ui.theme import Palette

DASHES: Final = ([1, 0], [7, 4], [2, 3], [9, 3, 2, 3])
HEAD_PIXELS: Final = 20
"""Height above a plot for the label of a limit."""

ROW_PIXELS: Final = 16
"""Height of one more row of labels."""

ASIDE_PIXELS: Final = 6
"""How far the names of points stand apart, so that those of points at one place can be told apart."""


@dataclass(frozen=True)
class Scale:
    """One axis of a line chart: its title, and the ticks of a logarithmic scale (none: it starts at zero).

    Ticks are values, or an expression that finds them where the chart is drawn.
    """

    title: str
    ticks: tuple[float, ...] | str = ()
    form: str = ",~r"


@dataclass(frozen=True)
class Series:
    """A line: its name, its hue, its dash (none: that of its place) and the shape of its points."""

    name: str
    hue: str
    dash: Sequence[int] = ()
    shape: str = "circle"


def channel(ink: Palette, field: str, scale: Scale, *, vertical: bool = False, head: int = HEAD_PIXELS) -> Spec:
    """A channel on one scale; a vertical one leaves room for labels above the plot."""
    grid = {"grid": vertical, "ticks": not vertical}
    if not scale.ticks:
        linear = (
            {"zero": True, "nice": True, "padding": 4, "rangeMax": head} if vertical else {"zero": True, "nice": False}
        )
        shown = axis(ink, scale.title, format=scale.form, tickCount=5, **grid)
        return {"field": field, "type": "quantitative", "scale": linear, "axis": shown}
    log: dict[str, Any] = {
        "type": "log",
        "nice": False,
        **({"padding": 10, "rangeMax": head} if vertical else {}),
    }
    values = {"expr": scale.ticks} if isinstance(scale.ticks, str) else list(scale.ticks)
    shown = axis(ink, scale.title, values=values, format=scale.form, labelOverlap="greedy", **grid)
    return {"field": field, "type": "quantitative", "scale": log, "axis": shown}


def lines(
    ink: Palette,
    height: int,
    scales: tuple[Scale, Scale],
    series: list[Series],
    tips: dict[str, str],
    *,
    quiet: bool = False,
    rows: int = 1,
    steps: bool = False,
) -> Spec:
    """Lines over batch or context, levels and limits with labels, a point or more, and the nearest answer to the pointer.

    `rows`: of labels above the plot; `steps`: each value holds from its place to the next one's.
    """
    head = HEAD_PIXELS + ROW_PIXELS * (rows - 1)
    x, y = channel(ink, "x", scales[0]), channel(ink, "y", scales[1], vertical=True, head=head)
    names = [each.name for each in series]
    scale = {"domain": names, "range": [each.hue for each in series]}
    look = (
        None
        if quiet
        else {**legend(ink, columns=2), "symbolType": "stroke", "symbolStrokeWidth": 2.5, "symbolSize": 300}
    )
    colour = {"field": "series", "type": "nominal", "scale": scale, "legend": look}
    dash = {
        **colour,
        "scale": {"domain": names, "range": [list(each.dash or DASHES[at]) for at, each in enumerate(series)]},
    }
    curves = {
        "data": {"name": "lines"},
        "mark": {"type": "line", "strokeWidth": 2.5, **({"interpolate": "step-after"} if steps else {})},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
    }
    points = {
        "data": {"name": "points"},
        "mark": {"type": "point", "filled": True, "size": 120, "opacity": 1, "stroke": ink.paper, "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": {**colour, "legend": None}},
    }
    return chart(ink, height, [curves, *_levels(ink, y), *_limits(ink, x), points, *_hover(ink, tips, head)])


def symbols(ink: Palette, spec: Spec, series: Sequence[Series]) -> Spec:
    """A quiet chart of lines whose points differ in shape too, each with the name of its series above it."""
    names = [each.name for each in series]
    scale = {"domain": names, "range": [each.shape for each in series]}
    shape = {"field": "series", "type": "nominal", "scale": scale, "legend": None}
    (points,) = (layer for layer in spec["layer"] if layer["data"]["name"] == "points")
    shaped = {**points, "encoding": {**points["encoding"], "shape": shape}}
    aside = f"(indexof({names}, datum.series) - {(len(names) - 1) / 2}) * {ASIDE_PIXELS}"
    where = {key: points["encoding"][key] for key in ("x", "y")}
    label = {
        "data": {"name": "points"},
        "mark": {**text(ink.ink), "baseline": "bottom", "dy": -8, "dx": {"expr": aside}, "aria": False},
        "encoding": {**where, "text": {"field": "series"}},
    }
    others = [layer for layer in spec["layer"] if layer is not points]
    return {**spec, "layer": [*others[:-1], shaped, label, others[-1]]}


def _levels(ink: Palette, y: Spec) -> list[Spec]:
    """Levels across the plot, each with its label at the left end above or below the line, or at the right end above it."""
    field = {**y, "field": "level"}
    rule = {
        "data": {"name": "levels"},
        "mark": {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 1.5, "color": ink.ink},
        "encoding": {"y": field},
    }
    place = {
        "baseline": {"expr": "datum.place === 'right' ? 'bottom' : datum.place"},
        "dy": {"expr": "datum.place === 'top' ? 4 : -4"},
        "dx": {"expr": "datum.place === 'right' ? width - 4 : 6"},
        "align": {"expr": "datum.place === 'right' ? 'right' : 'left'"},
    }
    label = {
        "data": {"name": "levels"},
        "mark": {**text(ink.ink), **place},
        "encoding": {"x": {"value": 0}, "y": field, "text": {"field": "label"}},
    }
    return [rule, label]


def _limits(ink: Palette, x: Spec) -> list[Spec]:
    """Batches or contexts that matter, as dotted rules with a label above the plot."""
    field = {**x, "field": "limit"}
    rule = {
        "data": {"name": "limits"},
        "mark": {"type": "rule", "strokeDash": [1, 3], "strokeWidth": 2, "color": ink.ink},
        "encoding": {"x": field, "y": {"value": {"expr": f"datum.row * {ROW_PIXELS} + 2"}}, "y2": {"value": "height"}},
    }
    beside = {
        "align": {"expr": "datum.toward"},
        "dx": {"expr": "datum.toward === 'left' ? 6 : -6"},
        "baseline": "middle",
    }
    label = {
        "data": {"name": "limits"},
        "mark": {**text(ink.ink), **beside},
        "encoding": {
            "x": {"field": "limit", "type": "quantitative"},
            "y": {"value": {"expr": f"datum.row * {ROW_PIXELS} + 8"}},
            "text": {"field": "label"},
        },
    }
    return [rule, label]


def _hover(ink: Palette, tips: dict[str, str], head: int) -> list[Spec]:
    """The nearest stop answers the pointer, wherever in the plot it is: its stripe shows, and says what is there."""
    select = {"type": "point", "on": "pointerover", "clear": "pointerout", "fields": ["x"]}
    return [
        {
            "data": {"name": "stops"},
            "params": [{"name": "near", "select": select}],
            "mark": {"type": "rect", "color": ink.muted},
            "encoding": {
                "x": {"field": "from", "type": "quantitative"},
                "x2": {"field": "to"},
                "y": {"value": head},
                "y2": {"value": "height"},
                "opacity": {"condition": {"param": "near", "empty": False, "value": 0.14}, "value": 0},
                "tooltip": [tip(*pair) for pair in tips.items()],
            },
        }
    ]
