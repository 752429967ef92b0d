"""A start-up log of one's own against the plan: every memory term, what its difference suggests, and the log's own inputs."""

from __future__ import annotations

from functools import lru_cache
from html import escape

import streamlit as st

from planner.errors import HeadroomError
from planner.logs.deployed import SUBJECT, Apart, apart, unknown_model
from planner.logs.endings import OK, UNREADY
from planner.logs.explained import Difference, contradictions
from planner.logs.explained_words import amount
from planner.logs.readings import StartUp
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import show, trust_apart
from planner.ui.theme import mode, palette
from planner.ui.trust_calibrate_words import name_of, word


def draw(start: StartUp, scenario: Scenario) -> None:
    """The terms, what they suggest, and the inputs that the log states otherwise: first, where they say another subject."""
    gravely = any(each.field in SUBJECT for each in _apart(start, scenario))
    parts = (_inputs, _memory) if gravely else (_memory, _inputs)
    for part in parts:
        part(start, scenario)


def _memory(start: StartUp, scenario: Scenario) -> None:
    """Every memory term, and what its difference suggests."""
    with show.card(word("memory"), "card_start_up"):
        with st.spinner(word("reading")):
            found = explained(start, scenario)
        if isinstance(found, str):
            st.warning(show.plain(found), icon=":material/block:")
            return
        show.finding(finding(start, found))
        if name := unknown_model(start):
            st.caption(show.plain(word("unknown_model", model=name)))
        if found:
            _terms(found)


@lru_cache(maxsize=32)
def explained(start: StartUp, scenario: Scenario) -> tuple[Difference, ...] | str:
    """The terms of a log beside those of a scenario's plan, or why there is no plan; kept for all sessions."""
    try:
        return contradictions(start, plan_of(scenario))
    except HeadroomError as error:
        return str(error)


@lru_cache(maxsize=32)
def _apart(start: StartUp, scenario: Scenario) -> tuple[Apart, ...]:
    """What the log states otherwise; kept for all sessions."""
    return apart(start, scenario)


def finding(start: StartUp, found: tuple[Difference, ...]) -> str:
    """How many terms differ, which, and how the start ended if it failed."""
    ended = _ended(start.outcome)
    differing = [name_of(each.term) for each in found if not each.agrees]
    if not found:
        return word("no_terms") + ended
    if not differing:
        said = word("agree_one") if len(found) == 1 else word("agree_all", count=str(len(found)))
        return said + ended
    said = word("differ", count=str(len(differing)), all=str(len(found)), terms=", ".join(differing))
    return said + ended


def _ended(outcome: str) -> str:
    """How the start ended, where it did not end well or the text does not say."""
    if outcome == OK:
        return ""
    return f" {word('unready') if outcome == UNREADY else word('ended', outcome=outcome)}"


def _terms(found: tuple[Difference, ...]) -> None:
    """Every term with both values, and what its difference suggests: side by side, below each other on a phone."""
    grid = palette(mode()).grid
    row = f"display:flex;flex-wrap:wrap;column-gap:1.5rem;padding:.45rem 0;border-bottom:1px solid {grid}"
    said = "".join(f'<div style="{row}">{_term(each)}</div>' for each in found)
    look = "margin:0;padding:0;font-size:.93rem;overflow-wrap:anywhere;font-variant-numeric:tabular-nums"
    st.html(f'<dl style="{look}">{said}</dl>')


def _term(each: Difference) -> str:
    """One term as HTML: its name, both values with the verdict, the suggestion; bytes in GiB, as engines print them."""
    ratio = "" if each.ratio is None else f" (×{each.ratio:.2f})"
    planned, printed = amount(each.term, each.planned), amount(each.term, each.printed)
    figures = word("both", planned=planned, printed=printed) + ratio
    verdict = word("agrees" if each.agrees else "differs")
    said = f"{verdict[:1].upper()}{verdict[1:]}. {each.suggestion}".strip()
    return (
        f'<dt style="flex:0 1 170px;font-weight:600">{escape(name_of(each.term))}</dt>'
        f'<dd style="flex:0 1 330px;margin:0">{escape(figures)}</dd>'
        f'<dd style="flex:1 1 290px;margin:0">{escape(show.typeset(said))}</dd>'
    )


def _inputs(start: StartUp, scenario: Scenario) -> None:
    """What the log states otherwise than the page, and the button that plans so."""
    found = _apart(start, scenario)
    with show.card(word("as_log_said"), "card_as_log"):
        if not found:
            show.finding(word("nothing_stated"))
            return
        show.finding(word("log_apart"))
        trust_apart.table(found)
        trust_apart.take_over(start, scenario, found, word("as_log"), "_calibrate_as_log")
