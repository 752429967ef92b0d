"""What moves an answer: a bar to either side for each input. The specification is constant, as all of them are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import pyarrow as pa

from planner.optimise.answer import Answer
from planner.optimise.sensitivity import End, Swing
from planner.ui.marks import Datasets, Spec, axis, chart, legend, text, tip
from planner.ui.optimise_sentences import figure
from planner.ui.optimise_words import word
from planner.ui.theme import Mode, palette
from planner.units import DASH, dollars, show, significant

MOST: Final = 12
"""Inputs that the chart has rows for; the table has all."""

ROW_PIXELS: Final = 34
SIDES: Final = ("Input lower", "Input higher")
RANGES: Final = {"price_range": "swing_price_range"}
"""Inputs whose range is not a share of their value and is said in their name."""

NOTHING: Final = 0.0005
"""Relative change of the objective that is none."""

SAID: Final = (("name", "left", 600, "width * 0.56"), ("label", "right", 400, "width * 0.42"))
"""Texts above a bar: field, side, weight, width."""

BARS: Final = pa.schema(
    [
        ("rank", pa.int64()),
        ("change", pa.float64()),
        *((n, pa.string()) for n in ("side", "name", "at", "value", "basis")),
    ]
)
NAMES: Final = pa.schema([("rank", pa.int64()), ("name", pa.string()), ("label", pa.string())])


@cache
def tornado(shown: Mode) -> Spec:
    """Relative change of the objective at both ends of each input, largest first."""
    ink = palette(shown)
    y = {"field": "rank", "type": "ordinal", "scale": {"padding": 0}, "axis": None}
    shown_x = axis(ink, "Change of the answer, %", format="+,~r", tickCount=7, grid=True)
    x = {"field": "change", "type": "quantitative", "scale": {"nice": True, "zero": True}, "axis": shown_x}
    side = {
        "field": "side", "type": "nominal", "scale": {"domain": list(SIDES), "range": [ink.kv, ink.weights]},
        "legend": legend(ink, columns=2),
    }  # fmt: skip
    tips = {"name": "Input", "at": "Then", "value": "Answer", "basis": "Range from"}
    bars = {
        "data": {"name": "bars"},
        "mark": {"type": "bar", "height": 12, "yOffset": 9},
        "encoding": {"y": y, "x": x, "color": side, "tooltip": [tip(*pair) for pair in tips.items()]},
    }
    zero = {
        "data": {"values": [{"zero": 0}]},
        "mark": {"type": "rule", "color": ink.ink},
        "encoding": {"x": {"datum": 0}},
    }
    said = [
        _name(y, field, align, wide, look)
        for field, align, weight, wide in SAID
        for look in (
            {**text(ink.paper), "stroke": ink.paper, "strokeWidth": 4, "fontWeight": weight},
            {**text(ink.ink), "fontWeight": weight},
        )
    ]
    return {**chart(ink, ROW_PIXELS, [bars, zero, *said]), "height": {"step": ROW_PIXELS}}


def _name(y: Spec, field: str, align: str, wide: str, look: Spec) -> Spec:
    """A text above a bar, as wide as a share of the chart; drawn twice, first as its own background."""
    place = {"align": align, "baseline": "middle", "dy": -7, "limit": {"expr": wide}}
    x = {"value": 0 if align == "left" else "width"}
    return {
        "data": {"name": "names"},
        "mark": {**look, **place},
        "encoding": {"y": y, "x": x, "text": {"field": field}},
    }


def moving(swings: Sequence[Swing]) -> tuple[Swing, ...]:
    """Inputs that do something, as many as the chart has rows for."""
    return tuple(each for each in swings if each.turns or change(each, each.low) or change(each, each.high))[:MOST]


def change(swing: Swing, end: End) -> float | None:
    """Relative change of the objective at one end; None where the plan does not stand there or nothing changes."""
    if not swing.base or end.value is None:
        return None
    share = end.value / swing.base - 1.0
    return share if abs(share) > NOTHING else None


def bars(answer: Answer, swings: Sequence[Swing]) -> Datasets:
    """Rows of the chart."""
    found = list(enumerate(moving(swings), 1))
    rows = [
        {
            "rank": rank, "change": 100 * share, "side": side, "name": name(each), "at": amount(end.input, each.unit),
            "value": figure(answer.question.objective, end.value or 0.0), "basis": each.basis,
        }
        for rank, each in found
        for side, end in zip(SIDES, (each.low, each.high), strict=True)
        if (share := change(each, end)) is not None
    ]  # fmt: skip
    names = [{"rank": rank, "name": name(each), "label": between(each)} for rank, each in found]
    return {"bars": pa.Table.from_pylist(rows, schema=BARS), "names": pa.Table.from_pylist(names, schema=NAMES)}


def name(swing: Swing) -> str:
    """What an input is called at the beginning of a line."""
    own = RANGES.get(swing.key)
    return word(own) if own else f"{swing.name[:1].upper()}{swing.name[1:]}"


def amount(value: float, unit: str) -> str:
    """A value of an input with its unit."""
    if unit.startswith("$"):
        return dollars(value)
    return show(value, unit) if unit else significant(value)


def between(swing: Swing) -> str:
    """The range of an input, and where in it the plan no longer stands."""
    lost = [amount(end.input, swing.unit) for end in (swing.low, swing.high) if end.value is None]
    said = f"{amount(swing.low.input, swing.unit)} – {amount(swing.high.input, swing.unit)}"
    return f"{said}; {word('falls_at', at=lost[0])}" if lost else said


def table(answer: Answer, swings: Sequence[Swing]) -> pa.Table:
    """All inputs with both ends, as finished text."""
    objective = answer.question.objective

    def at(end: End) -> str:
        return figure(objective, end.value) if end.value is not None else end.reason or DASH

    columns = {
        "Input": [name(each) for each in swings],
        "Now": [amount(each.now, each.unit) for each in swings],
        "Low": [amount(each.low.input, each.unit) for each in swings],
        "Answer at low": [at(each.low) for each in swings],
        "High": [amount(each.high.input, each.unit) for each in swings],
        "Answer at high": [at(each.high) for each in swings],
        "Range from": [each.basis for each in swings],
    }
    return pa.table(columns)
