"""The table of a comparison: a row a field, a column a plan; what differs is marked by a sign and by weight."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Final

import streamlit as st

from planner.compare.comparison import REQUESTS_FIELD, Comparison, Row
from planner.confidence import BAND_FIELDS, band
from planner.plan import Plan
from planner.specs.spelling import Value
from planner.ui import show
from planner.ui.compare_charts import SYMBOLS, hues
from planner.ui.compare_words import label, word
from planner.ui.theme import mode, palette
from planner.units import DASH, dollars, significant, unit_of, whole
from planner.units import show as shown

HIDDEN: Final = ("v", "lang")
"""Fields that no plan can differ in here."""

LESS: Final = frozenset({"gpus", "tpot_ms", "ttft_ms", "usd_per_hour", "usd_per_m_output", "usd_per_m_goodput"})
MORE: Final = frozenset(
    {REQUESTS_FIELD, "b_max", "b_max_sure", "kv_capacity_tokens", "output_tok_s", "goodput_tok_s", "goodput_tok_s_gpu"}
)
"""Outcomes of which less is better, and of which more is."""

BETTER: Final = 0.005
"""Spread of a row, relative to its best value, below which nothing is best."""

DETAILS: Final = frozenset(
    "c gpus_per_replica withheld_bytes activation_bytes graph_bytes runtime_bytes kv_bytes_per_token kv_capacity_tokens_rank "
    "b_max_kv_mean b_max b_max_sure ttft_unloaded_ms output_tok_s goodput_tok_s usd_per_m_output".split()
) | frozenset(BAND_FIELDS)
"""Fields that follow from others: shown where all are."""

SERVING: Final = frozenset(
    "replicas gpus kv_pool_bytes kv_capacity_tokens_rank kv_capacity_tokens b_max_kv b_max_kv_mean b_max_sla b_max b_max_sure "
    "batch tpot_ms ttft_ms ttft_unloaded_ms output_tok_s goodput_tok_s goodput_tok_s_gpu usd_per_hour usd_per_m_output "
    "usd_per_m_goodput".split()
) | frozenset(BAND_FIELDS)
"""Outcomes that a plan has only where it fits."""

BOUND: Final = {
    "none": "nothing", "weights": "weights", "kv": "KV cache", "tpot": "TPOT", "ttft": "TTFT", "layout": "layout",
    "engine": "engine",
}  # fmt: skip
"""What binds, in words."""

NUMBER: Final = re.compile(r"\d+(\.\d+)?")
UNNAMED: Final = frozenset(("max_len", "token_budget", "chunk"))
"""Inputs whose labels do not say what they count."""

SIDE: Final = "clamp(.1rem,.9vw,.5rem)"
"""Space beside a cell: little of it where the page is narrow."""

SIZE: Final = "font-size:clamp(.75rem,2.6vw,.9rem)"
FIGURES: Final = 78
"""Share of the width that the plans' columns take, alike [%]."""

WORDS: Final = 20
"""Characters from which on a value may take several lines."""

LONGEST: Final = 40
"""Characters of a value that are shown: a custom model's token has thousands."""

NAMED: Final = ("ms", "bytes")
"""Units that stand beside a figure; the others are in the name of the row."""


def table(found: Comparison, everything: bool) -> None:
    """The rows that differ, or all of them; it scrolls sideways by itself where the page is narrow."""
    kept = [row for row in found.rows if row.field not in HIDDEN and (everything or telling(row))]
    look = f"width:100%;border-collapse:separate;border-spacing:0;{SIZE};font-variant-numeric:tabular-nums;margin:0"
    name = escape(word("differences"))
    parts = [_part(found, word(key), [row for row in kept if row.asked is asked]) for key, asked in _PARTS]
    inside = f'<table aria-label="{name}" style="{look}">{_head(found)}{"".join(parts)}</table>'
    st.html(f'<div tabindex="0" role="region" aria-label="{name}" style="overflow-x:auto">{inside}</div>')


def telling(row: Row) -> bool:
    """Whether a row differs, and says what no other row says."""
    return row.differs and row.field not in DETAILS


_PARTS: Final = (("asked", True), ("found", False))


def _head(found: Comparison) -> str:
    """The plans' letters, each in its hue with its symbol."""
    ink = palette(mode())
    look = f"border-bottom:1px solid {ink.grid};padding:.3rem {SIDE};font-weight:600"
    names = "".join(
        f'<th scope="col" style="{look};text-align:right;white-space:nowrap;width:{FIGURES / len(found.names):.0f}%">'
        f'<span aria-hidden="true" style="color:{hue}">{symbol}</span> {name}</th>'
        for name, symbol, hue in zip(found.names, SYMBOLS, hues(ink), strict=False)
    )
    corner = (
        f'<th scope="col" style="{look};{_STUCK}background:{ink.paper};text-align:left">{escape(word("field"))}</th>'
    )
    return f"<thead><tr>{corner}{names}</tr></thead>"


_STUCK: Final = "position:sticky;left:0;z-index:1;"


def _part(found: Comparison, title: str, kept: Sequence[Row]) -> str:
    """Rows under a heading: what was asked, or what was found."""
    if not kept:
        return ""
    ink = palette(mode())
    look = f"text-align:left;padding:.6rem {SIDE} .15rem;font-weight:400;color:{ink.muted};border-bottom:1px solid {ink.grid}"
    inside = f'<span style="position:sticky;left:{SIDE}">{escape(title)}</span>'
    heading = f'<tr><th scope="rowgroup" colspan="{len(found.plans) + 1}" style="{look}">{inside}</th></tr>'
    return f"<tbody>{heading}{''.join(_row(found, row) for row in kept)}</tbody>"


def _row(found: Comparison, row: Row) -> str:
    """A field of all plans."""
    ink, best = palette(mode()), _best(found, row)
    look = f"border-bottom:1px solid {ink.grid};padding:.3rem {SIDE};vertical-align:top"
    first = f"{look};{_STUCK}background:{ink.paper};text-align:left;font-weight:400"
    cells = "".join(_cell(found, row, at, best, look) for at in range(len(row.values)))
    return f'<tr><th scope="row" style="{first}">{escape(label(row.field))}</th>{cells}</tr>'


def _cell(found: Comparison, row: Row, at: int, best: float | None, look: str) -> str:
    """One value; a sign where it is not what the reference has, a star where it is the best."""
    plan, value = found.plans[at], row.values[at]
    said = word("unjudged") if _open(plan, row.field) else said_of(row, None if _idle(plan, row.field) else value)
    other = row.asked and row.differs and value != row.values[found.against]
    star = best is not None and found.stands(at) and said == said_of(row, best)
    mark = "≠ " if other else "★ " if star else ""
    ink = palette(mode())
    weight = 600 if other or star else 400
    colour = ink.ink if row.differs else ink.muted
    wide = "min-width:9rem;overflow-wrap:anywhere" if len(said) > WORDS else "white-space:nowrap"
    text = escape(show.typeset(f"{mark}{said}"))
    return f'<td style="{look};text-align:right;font-weight:{weight};color:{colour};{wide}">{text}</td>'


def _best(found: Comparison, row: Row) -> float | None:
    """The best value of the plans that stand; None where they do not differ or no value is better than another."""
    if row.field not in LESS | MORE:
        return None
    values = [float(v) for at, v in enumerate(row.values) if found.stands(at) and isinstance(v, (int, float))]
    if len(values) < 2 or max(values) - min(values) < BETTER * max(abs(value) for value in values):
        return None
    return min(values) if row.field in LESS else max(values)


def _open(plan: Plan, field: str) -> bool:
    """Whether a verdict was not reached, as the Plan page says it."""
    if field == "engine_ok":
        return plan.binds == "layout" and not plan.fits
    return field == "meets_sla" and (not plan.fits or plan.tpot_ms is None)


def _idle(plan: Plan, field: str) -> bool:
    """Whether a figure says nothing because the plan does not fit, or because its profile has no band."""
    if field in BAND_FIELDS and band(plan, BAND_FIELDS[field]) is None:
        return True
    return not plan.fits and field in SERVING


def said_of(row: Row, value: Value) -> str:
    """A value as it is read: an input in words or with separators, an outcome with its unit."""
    match value:
        case None | "":
            return DASH
        case bool():
            return word("yes" if value else "no")
        case str():
            return _words(row, value)
        case _ if not math.isfinite(value):
            return DASH
        case _:
            return _figure(row.field, float(value))


def _words(row: Row, value: str) -> str:
    """An input as it is spelled, numbers with separators and with the unit that its label leaves out; what binds, in words."""
    if row.field == "binds":
        return BOUND[value]
    if row.field == "reason":
        return value.replace("the promise", "the SLA")
    if row.field == "x":
        return f"{value[:LONGEST]}…"
    if not (row.asked and NUMBER.fullmatch(value)) or row.field == "v":
        return value
    if row.field == "price":
        return dollars(float(value))
    number, _, rest = value.partition(".")
    unit = f" {unit_of(row.field)}" if row.field in UNNAMED else ""
    return f"{int(number):,}{'.' if rest else ''}{rest}{unit}"


def _figure(field: str, value: float) -> str:
    """A figure: a count in full, others to three digits, a unit where the row does not name it."""
    unit = unit_of(field)
    if unit.startswith("$"):
        return dollars(value)
    if unit in NAMED:
        return shown(value, unit)
    return whole(value) if float(value).is_integer() and not unit.startswith("tok/s") else significant(value)
