"""Parts of the Optimise page; each draws one of them from an answer."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, TypeAlias
from urllib.parse import quote

import streamlit as st

from planner.compare.link import spelled
from planner.optimise.answer import Answer, FrontPoint
from planner.optimise.calibrated import calibration_words
from planner.specs.scenario import Scenario
from planner.ui import optimise_chart, optimise_data, show
from planner.ui import optimise_sentences as sentences
from planner.ui.advice_block import link
from planner.ui.link import anchor
from planner.ui.marks import pick
from planner.ui.optimise_chart import PICK, SIGNS, View
from planner.ui.optimise_words import word
from planner.ui.theme import mode, palette
from planner.units import show as shown
from planner.units import whole

TABLE_PIXELS: Final = 300
VIEWS: Final[tuple[View, ...]] = ("gpu", "usd")
KIND: Final = 0
"""Place of the column of kinds in a table of plans; it stays where the table scrolls."""


def best(answer: Answer, mine: Scenario) -> None:
    """The best of each kind, each with its links."""
    title = word("best" if answer.nearest is None else "nearest")
    with show.card(title, "card_best"):
        show.finding(sentences.best(answer))
        choices(answer, mine, title)


Row: TypeAlias = tuple[Sequence[str], str, bool]
"""Cells of a row whose first names it, HTML of the ways on from it, and whether it stands out."""


def choices(answer: Answer, mine: Scenario, title: str) -> None:
    """The table of best choices."""
    header = tuple(word(name) for name in optimise_data.best_header(answer.question.objective))
    listing(title, header, [_choice(rank, answer, mine) for rank in range(1, len(optimise_data.choices(answer)) + 1)])


def _choice(rank: int, answer: Answer, mine: Scenario) -> Row:
    """One row of the table of best choices."""
    choice = optimise_data.choices(answer)[rank - 1]
    return optimise_data.best_row(rank, answer), links(choice.scenario, choice.kind, mine), rank == 1


def listing(title: str, header: Sequence[str], rows: Sequence[Row]) -> None:
    """A table of plans with the ways on from each; it scrolls sideways by itself where the page is narrow."""
    head = "".join(_cell("th", text, at == KIND, title=True) for at, text in enumerate(header))
    body = "".join(_listed(*row) for row in rows)
    look = "width:100%;border-collapse:separate;border-spacing:0;font-size:.88rem;font-variant-numeric:tabular-nums;margin:0"
    name = escape(title)
    table = f'<table aria-label="{name}" style="{look}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    st.html(f'<div tabindex="0" role="region" aria-label="{name}" style="overflow-x:auto">{table}</div>')


def _listed(texts: Sequence[str], ways: str, bold: bool) -> str:
    """One row of a table of plans."""
    more = f'<div style="font-weight:400">{ways}</div>'
    cells = "".join(
        _cell("th" if at == KIND else "td", text, at == KIND, bold=bold, more=more if at == KIND else "")
        for at, text in enumerate(texts)
    )
    return f"<tr>{cells}</tr>"


def links(scenario: Scenario, kind: str, mine: Scenario) -> str:
    """HTML of the ways on from a plan: open it, or put it beside the sidebar's."""
    plan = scenario.with_(lang=mine.lang)
    opened = link(anchor(plan), word("open"), f"{word('open')}: {kind}")
    beside = link(compared(mine, plan), word("compare"), f"{word('compare_mine')}: {kind}")
    return f"{opened} · {beside}"


def compared(*plans: Scenario) -> str:
    """A same-tab address of the Compare page with some plans."""
    return "./compare?plans=" + quote(spelled(plans), safe="=")


def _cell(tag: str, text: str, left: bool, *, title: bool = False, bold: bool = False, more: str = "") -> str:
    """One cell; its text is escaped, `more` is HTML already."""
    ink = palette(mode())
    scope = ' scope="col"' if title else ' scope="row"' if tag == "th" else ""
    look = f"border-bottom:1px solid {ink.grid};padding:.3rem .5rem;vertical-align:middle;font-weight:{600 if bold else 400}"
    pinned = f";text-align:left;min-width:175px;position:sticky;left:0;background:{ink.paper}"
    look += pinned if left else ";text-align:right"
    look += f";color:{ink.muted}" if title else "" if left else ";white-space:nowrap"
    return f'<{tag}{scope} style="{look}">{escape(show.typeset(text))}{more}</{tag}>'


def under_headline(answer: Answer, mine: Scenario) -> None:
    """The second line: how the winner is laid out, the ways on from it, and how the plan of the sidebar compares."""
    winner = answer.winner or answer.nearest
    if winner is None:
        return
    compared_ = "" if answer.winner is None else sentences.own_plan(answer, mine)
    said, own = (escape(show.typeset(text)) for text in (sentences.layout(winner), compared_))
    st.html(f'<p style="margin:0">{said} {links(winner.scenario, winner.kind, mine)}. {own}</p>')
    if apart := calibration_words(answer.question):
        st.warning(show.plain(apart), icon=":material/tune:")


def front(answer: Answer, mine: Scenario) -> None:
    """The front between speed for a user and output of a GPU, or its cost: first on the axis of the objective."""
    paid = answer.question.objective.startswith("usd")
    with show.card(sentences.on_means("front", answer), "card_front"):
        view: View = st.segmented_control(
            word("front_view"), VIEWS, default=VIEWS[paid], required=True, persist_state="session",
            key="_front_view_usd" if paid else "_front_view",
            format_func=lambda name: word(f"front_{name}"), label_visibility="collapsed",
        )  # fmt: skip
        show.finding(sentences.front(answer, view))
        if not optimise_data.drawn(answer.front, view):
            return
        data = optimise_data.front(answer, mine, view)
        plan = pick(optimise_chart.front(mode(), view), data, word("front_alt"), PICK, "plan")
        _legend(optimise_data.drawn(answer.front, view))
        _picked(answer, plan, mine)
        formats: dict[str, str | int] = {
            "Tok/s for a user": "%.1f", "TPOT, ms": "%.2f", "Tok/s of a GPU": "%,.1f", "$/M output": "%.3f",
            "Batch": "%,.0f", "GPUs": "%,.0f", "Kind": 260,
        }  # fmt: skip
        show.behind(
            word("front_table"), "_front_table",
            lambda: show.table(optimise_data.front_table(answer.front), word("front"), formats, TABLE_PIXELS),
        )  # fmt: skip


def _legend(points: Sequence[FrontPoint]) -> None:
    """Which shape and hue is which kind."""
    hues, kinds = optimise_chart.hues(palette(mode())), optimise_data.kinds(points)
    names = [*zip(kinds, SIGNS, hues, strict=False)]
    if set(optimise_data.groups(points)) > set(kinds):
        names.append((word("other_kinds"), SIGNS[-1], hues[-1]))
    items = "".join(
        f'<li style="display:inline-block;margin:0 1rem 0 0"><span aria-hidden="true" style="color:{hue}">{sign}</span> '
        f"{escape(kind)}</li>"
        for kind, sign, hue in names
    )
    st.html(f'<ul style="list-style:none;margin:0;padding:0;font-size:.85rem">{items}</ul>')


def _picked(answer: Answer, plan: str | None, mine: Scenario) -> None:
    """The point that was clicked, with its links; before a click, that one may click."""
    point = optimise_data.picked(answer, plan)
    if point is None:
        st.caption(show.plain(word("front_hint")))
        return
    said = word(
        "front_chosen", kind=point.kind, batch=whole(point.batch), gpus=shown(point.gpus, "GPUs"),
        speed=shown(point.tok_s_user, "tok/s"), rate=shown(point.tok_s_gpu, "tok/s"),
    )  # fmt: skip
    st.html(f'<p style="margin:0">{escape(said)} {links(point.scenario, point.kind, mine)}</p>')


def counts(answer: Answer) -> None:
    """Why layouts fell."""
    with show.card(word("counts"), "card_counts", stretch=True):
        if rows := optimise_data.refusals(answer):
            show.figures(word("counts"), (word("col_refused"), word("col_count")), rows)
        else:
            show.finding(word("refused_none"))
