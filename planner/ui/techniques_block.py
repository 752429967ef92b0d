"""The Techniques card of the Plan page: what each does to this scenario, on and off, in one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Final

import streamlit as st

from planner.plan import Plan
from planner.specs.scenario import Scenario
from planner.techniques import Figures, Finding, Technique, best_changes, techniques
from planner.ui import show
from planner.ui.advice_block import apply_link, gained, link, percent, spelled
from planner.ui.link import anchor
from planner.ui.text import say
from planner.ui.theme import mode, palette
from planner.units import DASH, significant, whole
from planner.units import show as shown
from planner.variants import changed, outcome

NONE: Final = 0.005
"""Relative change that is not worth a figure."""

BETTER: Final = 0.02
"""Spread of a column of a group, relative to its best value, below which nothing is best."""

MILLION: Final = 1e6

MANIFOLD: Final = 1000
"""Percentage from which on a ratio says more."""


@dataclass(frozen=True)
class Measure:
    """A column of figures: its field, the key of its title, how a value is shown, and whether less is better."""

    field: str
    title: str
    text: Callable[[float], str]
    less: bool = False


MEASURES: Final = (
    Measure("tpot_ms", "col_tpot", significant, less=True),
    Measure("b_max", "col_batch", whole),
    Measure("ttft_ms", "col_ttft", significant, less=True),
    Measure("output_gpu", "col_rate", significant),
    Measure("usd_good", "col_usd", lambda value: shown(value, "$"), less=True),
    Measure(
        "kv_tokens",
        "col_kv",
        lambda value: significant(value) if value < MILLION else f"{significant(value / MILLION)} M",
    ),
)

OWN: Final = 4
"""Columns at each row's own batch: from the largest batch to dollars."""


def card(plan: Plan) -> None:
    """The table, drawn once it is asked for: some thirty variants are priced for it."""
    with show.card(say("techniques"), "card_techniques"):
        show.finding(say("techniques_hint"))
        show.behind(say("techniques_table"), "_techniques_table", lambda: _table(plan))


def _table(plan: Plan) -> None:
    """One table, rows grouped; it scrolls sideways by itself where the page is narrow."""
    st.html(f'<p style="margin:0">{_found(plan.scenario)}</p>')
    st.caption(show.plain(say("techniques_legend")))
    groups = groupby(techniques(plan.scenario), key=lambda each: each.group)
    body = "".join(_group(name, tuple(rows), plan.scenario) for name, rows in groups)
    head = "".join(_cell("th", say(each.title, batch=whole(plan.batch)), "right", title=True) for each in MEASURES)
    first = _cell("th", say("col_technique"), "left", title=True)
    last = _cell("th", say("col_cost"), "left", title=True, last=True)
    look = "width:100%;border-collapse:separate;border-spacing:0;font-size:.84rem;font-variant-numeric:tabular-nums;margin:0"
    name = escape(say("techniques"))
    table = f'<table aria-label="{name}" style="{look}"><thead>{_over(plan)}<tr>{first}{head}{last}</tr></thead>{body}</table>'
    st.html(f'<div tabindex="0" role="region" aria-label="{name}" style="overflow-x:auto">{table}</div>')


def _found(scenario: Scenario) -> str:
    """The best single change and the best pair, each with its link; that there is none where there is none."""
    found = best_changes(scenario)
    if not found:
        now = outcome(scenario)
        return escape(say("best_none" if now.stands else "best_never"))
    keys = ("best_single", "best_pair")
    return "<br>".join(
        f"{escape(say(key, name=each.name, gain=_gain(each), cost=each.cost))} {apply_link(scenario, each.change)}"
        for key, each in zip(keys, found, strict=False)
    )


def _gain(found: Finding) -> str:
    """What a finding gains, or what it costs where the plan does not stand without it."""
    if found.gain is not None:
        return gained(found.gain)
    dollars = found.outcome.usd_per_m_goodput
    if dollars is not None:
        return say("gain_to", figure=say("figure_cost", value=shown(dollars, "$")))
    return say("gain_to", figure=say("figure_rate", value=shown(found.outcome.goodput_tok_s_gpu)))


def _over(plan: Plan) -> str:
    """The row above the titles: at which batch the columns are."""
    batch, ink = plan.scenario.at_batch, palette(mode())
    words = say("own_batch") if batch is None else say("set_batch", batch=whole(batch))
    before = 0 if batch is None else 1  # the largest batch is nobody's set batch
    span = OWN - before
    look = (
        f"padding:.25rem .4rem;text-align:center;font-weight:400;color:{ink.muted};border-bottom:1px solid {ink.grid}"
    )
    corner = f'<td style="position:sticky;left:0;z-index:1;background:{ink.paper}"></td>'
    title = f'<th scope="colgroup" colspan="{span}" style="{look}">{escape(words)}</th>'
    return f"<tr>{corner}{'<td></td>' * (1 + before)}{title}<td></td><td></td></tr>"


def _group(name: str, rows: Sequence[Technique], scenario: Scenario) -> str:
    """The rows of one technique under its name."""
    ink = palette(mode())
    look = f"text-align:left;padding:.6rem .5rem .15rem;font-weight:600;border-bottom:1px solid {ink.grid}"
    title = f'<span style="position:sticky;left:.5rem">{escape(say("group_" + name))}</span>'
    heading = f'<tr><th scope="rowgroup" colspan="{len(MEASURES) + 2}" style="{look}">{title}</th></tr>'
    best = {each.field: _best(rows, each) for each in MEASURES}
    return f"<tbody>{heading}{''.join(_row(row, best, scenario) for row in rows)}</tbody>"


def _best(rows: Sequence[Technique], measure: Measure) -> float | None:
    """The best value of a group in one column; None where the values do not differ."""
    judged = [row for row in rows if row.meets_sla and row.engine_ok and row.whole]
    values = [value for row in judged if (value := _value(row.figures, measure)) is not None]
    if len(values) < 2 or max(values) - min(values) < BETTER * max(abs(v) for v in values):
        return None
    return min(values) if measure.less else max(values)


def _value(figures: Figures, measure: Measure) -> float | None:
    """One figure of a row."""
    value: float | None = getattr(figures, measure.field)
    return None if value is None or not math.isfinite(value) else value


def _row(row: Technique, best: dict[str, float | None], scenario: Scenario) -> str:
    """One variant: its figures, or, dimmed, why there are none."""
    name = escape(row.name) + (f" ({escape(say('as_is'))})" if row.current else _apply(row, scenario))
    first = _cell("th", name, "left", raw=True, strong=row.current, dim=bool(row.reason), wide=132)
    if row.reason and (not row.engine_ok or row.figures.tpot_ms is None):
        kept = "" if row.figures.kv_tokens is None else _figure(row, MEASURES[-1], None)
        span = len(MEASURES) - bool(kept)
        reason = _cell("td", row.reason, "left", dim=True, span=span)
        return f"<tr>{first}{reason}{kept}{_cell('td', row.cost, 'left', dim=True, wide=158)}</tr>"
    cells = "".join(_figure(row, each, best[each.field]) for each in MEASURES)
    words = f"{row.cost}; {row.reason}" if row.reason else row.cost
    return f"<tr>{first}{cells}{_cell('td', words, 'left', dim=True, wide=158)}</tr>"


def _apply(row: Technique, scenario: Scenario) -> str:
    """A link that applies a variant that stands; nothing for one that no field spells."""
    if row.change is None or not row.stands:
        return ""
    variant = changed(scenario, row.change)
    if variant is None or variant == scenario:
        return ""
    return " " + link(anchor(variant), say("apply"), f"{say('apply')} {spelled(scenario, variant)}")


def _figure(row: Technique, measure: Measure, best: float | None) -> str:
    """One figure, how far it is from the scenario's own, and a star where it is the best of its group."""
    value, delta = _value(row.figures, measure), _value(row.deltas, measure)
    if value is None:
        return _cell("td", DASH, "right", dim=True)
    star = "★ " if best is not None and value == best and row.whole and not row.reason else ""
    return _cell(
        "td", f"{star}{measure.text(value)}{_change(value, delta)}", "right", strong=bool(star), dim=bool(row.reason)
    )


def _change(value: float, delta: float | None) -> str:
    """A difference as a signed percentage; nothing where there is none or nothing to compare with."""
    before = 0.0 if delta is None else value - delta
    if delta is None or not before or abs(delta / before) < NONE:
        return ""
    share = 100 * delta / before
    grown = f" (×{shown(value / before)})"
    return grown if abs(share) >= MANIFOLD else f" ({'+' if share > 0 else '−'}{percent(abs(share) / 100)})"


def _cell(
    tag: str, text: str, side: str, *, title: bool = False, raw: bool = False, strong: bool = False,
    dim: bool = False, span: int = 1, wide: int = 0, last: bool = False,
) -> str:  # fmt: skip
    """One cell; `raw` text is HTML already, everything else is escaped."""
    ink = palette(mode())
    scope = ' scope="col"' if title else ' scope="row"' if tag == "th" else ""
    look = f"border-bottom:1px solid {ink.grid};padding:.25rem .4rem;text-align:{side};vertical-align:top"
    look += f";font-weight:{600 if strong else 400}"
    look += (
        f";position:sticky;left:0;z-index:1;background:{ink.paper}"
        if tag == "th" and side == "left" and not last
        else ""
    )
    look += f";color:{ink.muted}" if dim or title else ""
    look += f";min-width:{wide}px" if wide else ";white-space:nowrap" if side == "right" and not title else ""
    across = f' colspan="{span}"' if span > 1 else ""
    return f'<{tag}{scope}{across} style="{look}">{text if raw else escape(text)}</{tag}>'
