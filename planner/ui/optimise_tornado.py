"""What moves an answer: a bar to either side for each input. The specification is constant, as all of them are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, TypeAlias

import pyarrow as pa

from planner.optimise.answer import Answer
from planner.optimise.question import LARGEST, Objective
from planner.optimise.sensitivity import End, Swing
from planner.ui.marks import Datasets, Spec, axis, chart, log_ticks, text, tip
from planner.ui.optimise_data import in_words
from planner.ui.optimise_sentences import figure
from planner.ui.optimise_words import known_word, word
from planner.ui.theme import Mode, Palette, palette
from planner.units import DASH, dollars, show, significant

MOST: Final = 12
"""Inputs that the chart has rows for; the table has all."""

ROW_PIXELS: Final = 36
NAME_PIXELS: Final = 146
"""Width of the column of names, left of the axis."""

LANES: Final = (-7, 7)
"""Where in its row the bar of the lower end is, and that of the higher [pixels]."""

NOTHING: Final = 0.0005
"""Relative change of the objective that is none."""

LEAST_REACH: Final = 1.25
MANY_TIMES: Final = 3.0
"""The axis reaches as far as thrice the middle one of all bars, a quarter at least; longer bars are cut off there."""

TITLES: Final = {
    "usd_per_m_goodput": "$ per million good tokens",
    "usd_per_hour": "$ an hour",
    "gpus": "GPUs",
    "tpot_ms": "TPOT, ms",
    "ttft_ms": "TTFT, ms",
    "goodput_tok_s": "Good tokens/s",
}
BARS: Final = pa.schema(
    [
        ("rank", pa.int64()),
        *((n, pa.float64()) for n in ("base", "to", "lane")),
        *((n, pa.string()) for n in ("name", "at", "value", "basis")),
    ]
)
NAMES: Final = pa.schema([("rank", pa.int64()), ("name", pa.string()), ("label", pa.string())])
ENDS: Final = pa.schema(
    [
        ("rank", pa.int64()),
        *((n, pa.float64()) for n in ("to", "at", "lane")),
        *((n, pa.string()) for n in ("shape", "label")),
    ]
)
SHORTER: Final = {
    "latent decode attention": "latent decode",
    "latent prefill attention": "latent prefill",
    "norms and activations": "norms",
    "launch floor": "floor",
    " and sparse index": "",
    " and latent decode": "",
    "reached share of the NIC": "NIC share reached",
}
"""Words of a name that are too long for the column of names."""

TIMES: Final = "× "
"""What a factor begins with."""

Row: TypeAlias = dict[str, str | float]
AXIS: Final = pa.schema([("x", pa.float64()), ("label", pa.string())])


@cache
def tornado(shown: Mode, objective: Objective = "usd_per_m_goodput") -> Spec:
    """The objective at both ends of each input, largest change first, on a log axis."""
    ink = palette(shown)
    y = {"field": "rank", "type": "ordinal", "scale": {"padding": 0}, "axis": None}
    layers = [
        _reach(_x(ink, objective, "x")),
        *(_bars(ink, y, _x(ink, objective, "to"), lane) for lane in LANES),
        *_base(ink, _x(ink, objective, "x")),
        *(layer for lane in LANES for layer in _ends(ink, y, _x(ink, objective, "to"), lane)),
        _name(ink.ink, y, "name", 600, -7),
        _name(ink.muted, y, "label", 400, 8),
    ]
    room = {"left": 2, "right": 8, "top": 4, "bottom": 2}
    return {**chart(ink, ROW_PIXELS, layers), "height": {"step": ROW_PIXELS}, "padding": room}


def _x(ink: Palette, objective: Objective, field: str) -> Spec:
    form = "$,~r" if objective.startswith("usd") else ",~r"
    ticks = {"values": {"expr": log_ticks("x")}, "labelOverlap": "greedy", "labelBound": True}
    shown = axis(ink, TITLES[objective], format=form, grid=True, **ticks)
    return {"field": field, "type": "quantitative", "scale": {"type": "log", "nice": False}, "axis": shown}


def _reach(x: Spec) -> Spec:
    """Both ends of the axis, unseen."""
    return {"data": {"name": "reach"}, "mark": {"type": "point", "opacity": 0}, "encoding": {"x": x}}


def _base(ink: Palette, x: Spec) -> list[Spec]:
    """Where the objective is now, with its label above the bars."""
    rule = {"type": "rule", "color": ink.ink}
    return [
        {"data": {"name": "base"}, "mark": rule, "encoding": {"x": x}},
        {
            "data": {"name": "base"},
            "mark": {**text(ink.ink), "baseline": "bottom"},
            "encoding": {"x": x, "y": {"value": -4}, "text": {"field": "label"}},
        },
    ]


def _bars(ink: Palette, y: Spec, x: Spec, lane: int) -> Spec:
    """Bars of one end: hollow for the lower, full for the higher, each in its own lane of a row."""
    tips = {"name": "Input", "at": "Then", "value": "Answer", "basis": "Range from"}
    hue = ink.kv if lane < 0 else ink.weights
    mark = {"type": "bar", "height": 10, "yOffset": lane, "color": hue, "stroke": hue, "strokeWidth": 1.5}
    return {
        "data": {"name": "bars"},
        "transform": [{"filter": f"datum.lane === {lane}"}],
        "mark": {**mark, "fillOpacity": 0.12 if lane < 0 else 1.0},
        "encoding": {
            "y": y,
            "x": {**x, "field": "base"},
            "x2": {"field": "to"},
            "tooltip": [tip(*t) for t in tips.items()],
        },
    }


def _ends(ink: Palette, y: Spec, x: Spec, lane: int) -> list[Spec]:
    """Marks at the edge of the chart: a cross where there is no answer, a triangle where a bar goes on."""
    picked: Spec = {"data": {"name": "ends"}, "transform": [{"filter": f"datum.lane === {lane}"}]}
    place: Spec = {"y": y, "x": x}
    mark = {
        "type": "point",
        "filled": True,
        "size": 110,
        "yOffset": lane,
        "opacity": 1,
        "fill": ink.ink,
        "stroke": ink.paper,
    }
    beside: Spec = {"align": "left", "baseline": "middle", "dx": 11, "dy": lane}
    shape = {"field": "shape", "type": "nominal", "scale": None, "legend": None}
    said = {"y": y, "x": {**x, "field": "at"}, "text": {"field": "label"}}
    words = {**picked, "mark": {**text(ink.ink), **beside}, "encoding": said}
    return [{**picked, "mark": mark, "encoding": {**place, "shape": shape}}, words]


def _name(colour: str, y: Spec, field: str, weight: int, down: int) -> Spec:
    """A text in the column of names."""
    place = {"align": "left", "baseline": "middle", "dy": down, "limit": NAME_PIXELS, "fontWeight": weight}
    return {
        "data": {"name": "names"},
        "mark": {**text(colour), **place},
        "encoding": {"y": y, "x": {"value": -NAME_PIXELS - 4}, "text": {"field": field}},
    }


def moving(swings: Sequence[Swing]) -> tuple[Swing, ...]:
    """Inputs that do something, as many as the chart has rows for; a price is there once, by its widest range."""
    ranged = any(each.key == "price_range" for each in swings)
    found = (each for each in swings if not (ranged and each.key == "price"))
    return tuple(each for each in found if each.turns or change(each, each.low) or change(each, each.high))[:MOST]


def change(swing: Swing, end: End) -> float | None:
    """Relative change of the objective at one end; None where the plan does not stand there or nothing changes."""
    if not swing.base or end.value is None:
        return None
    share = end.value / swing.base - 1.0
    return share if abs(share) > NOTHING else None


def bars(answer: Answer, swings: Sequence[Swing]) -> Datasets:
    """Rows of the chart."""
    objective, found = answer.question.objective, list(enumerate(moving(swings), 1))
    base = next((each.base for _, each in found if each.base), 1.0)
    reach = _reached([each for _, each in found])
    ends = [
        (rank, lane, each, end) for rank, each in found for lane, end in zip(LANES, (each.low, each.high), strict=True)
    ]
    rows = [_bar(*each, base, reach, objective) for each in ends if change(each[2], each[3]) is not None]
    names = [{"rank": rank, "name": name(each), "label": between(each)} for rank, each in found]
    marks = [
        _lost(rank, lane, base, reach, objective) for rank, lane, each, end in ends if each.base and end.value is None
    ]
    marks += [
        _cut(rank, lane, end.value, base, reach, objective)
        for rank, lane, each, end in ends
        if change(each, end) is not None and end.value is not None and _clipped(end.value, base, reach) != end.value
    ]
    return {
        "bars": pa.Table.from_pylist(rows, schema=BARS),
        "names": pa.Table.from_pylist(names, schema=NAMES),
        "ends": pa.Table.from_pylist(marks, schema=ENDS),
        "reach": pa.Table.from_pylist([{"x": base / reach}, {"x": base * reach}], schema=AXIS),
        "base": pa.Table.from_pylist(
            [{"x": base, "label": word("tornado_now", value=figure(objective, base))}], schema=AXIS
        ),
    }


def _reached(found: Sequence[Swing]) -> float:
    """How far the axis reaches to either side of what is now, as a ratio."""
    far = sorted(max((_ratio(each, end) for end in (each.low, each.high)), default=1.0) for each in found)
    middle = far[len(far) // 2] if far else 1.0
    return float(min(max(LEAST_REACH, middle**MANY_TIMES), max(1.02 * (far[-1] if far else 1.0), 1.02)))


def _ratio(swing: Swing, end: End) -> float:
    """How many times the objective is larger or smaller at one end; 1 where it comes to nothing, which no axis shows."""
    if change(swing, end) is None or not swing.base or end.value is None:
        return 1.0
    share = end.value / swing.base
    return max(share, 1.0 / share) if share > 0 else 1.0


def _clipped(value: float, base: float, reach: float) -> float:
    """A value, or the end of the axis before it."""
    return min(max(value, base / reach), base * reach)


def _bar(rank: int, lane: int, each: Swing, end: End, base: float, reach: float, objective: Objective) -> Row:
    """One bar with its tooltip."""
    value = end.value or 0.0
    return {
        "rank": rank, "lane": lane, "base": base, "to": _clipped(value, base, reach), "name": name(each),
        "at": amount(end.input, each.unit), "value": figure(objective, value), "basis": in_words(each.basis),
    }  # fmt: skip


def _lost(rank: int, lane: int, base: float, reach: float, objective: Objective) -> Row:
    """The mark of an end without an answer, at the worse edge."""
    worst = base / reach if objective in LARGEST else base * reach
    return {"rank": rank, "lane": lane, "to": worst, "at": worst, "shape": "cross", "label": word("no_answer")}


def _cut(rank: int, lane: int, value: float, base: float, reach: float, objective: Objective) -> Row:
    """The mark of a bar that goes on beyond the edge; its value stands where the lane is empty."""
    edge, above = _clipped(value, base, reach), value > base
    shape, at = ("triangle-right", edge) if above else ("triangle-left", base)
    return {"rank": rank, "lane": lane, "to": edge, "at": at, "shape": shape, "label": figure(objective, value)}


def name(swing: Swing) -> str:
    """What an input is called at the beginning of a line: short enough for the column of names."""
    said = swing.name
    for long, short in SHORTER.items():
        said = said.replace(long, short)
    return known_word(f"swing_{swing.key}") or f"{said[:1].upper()}{said[1:]}"


def amount(value: float, unit: str) -> str:
    """A value of an input with its unit."""
    if unit.startswith("$"):
        return dollars(value)
    if unit.startswith(TIMES):
        return f"{TIMES}{significant(value)}"
    return show(value, unit) if unit else significant(value)


def between(swing: Swing) -> str:
    """The range of an input, its unit said once."""
    low, high = amount(swing.low.input, swing.unit), amount(swing.high.input, swing.unit)
    number, _, unit = low.partition(" ")
    return f"{number if unit and high.endswith(f' {unit}') else low} – {high.removeprefix(TIMES)}"


def table(answer: Answer, swings: Sequence[Swing]) -> pa.Table:
    """All inputs with both ends, as finished text."""
    objective = answer.question.objective

    def at(end: End) -> str:
        return figure(objective, end.value) if end.value is not None else in_words(end.reason) or DASH

    columns = {
        "Input": [name(each) for each in swings],
        "Now": [amount(each.now, each.unit) for each in swings],
        "Low": [amount(each.low.input, each.unit) for each in swings],
        "Answer at low": [at(each.low) for each in swings],
        "High": [amount(each.high.input, each.unit) for each in swings],
        "Answer at high": [at(each.high) for each in swings],
        "Range from": [in_words(each.basis) for each in swings],
    }
    return pa.table(columns)
