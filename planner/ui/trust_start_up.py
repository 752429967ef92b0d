"""A start-up log of one's own against the plan: every memory term, what its difference suggests, and the log's own inputs."""

from __future__ import annotations

from functools import lru_cache

import streamlit as st

from planner.errors import HeadroomError
from planner.logs.deployed import Apart, apart, unknown_model
from planner.logs.explained import Difference, contradictions
from planner.logs.explained_words import amount
from planner.logs.readings import StartUp
from planner.logs.startup import OK
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import show, trust_apart
from planner.ui.trust_calibrate_words import name_of, word
from planner.units import DASH


def draw(start: StartUp, scenario: Scenario) -> None:
    """The terms, what they suggest, and the inputs that the log states otherwise."""
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
    _inputs(start, scenario)


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
    ended = "" if start.outcome == OK else f" {word('ended', outcome=start.outcome)}"
    differing = [name_of(each.term) for each in found if not each.agrees]
    if not found:
        return word("no_terms") + ended
    if not differing:
        said = word("agree_one") if len(found) == 1 else word("agree_all", count=str(len(found)))
        return said + ended
    said = word("differ", count=str(len(differing)), all=str(len(found)), terms=", ".join(differing))
    return said + ended


def _terms(found: tuple[Difference, ...]) -> None:
    """The table, then a sentence for each term that differs."""
    header = tuple(word(key) for key in ("term", "planned", "printed", "ratio", "verdict"))
    show.figures(word("memory"), header, [_row(each) for each in found], frozenset({4}))
    if said := [(name_of(each.term), each.suggestion) for each in found if each.suggestion]:
        st.subheader(word("suggests"), anchor=False)
        show.terms(said)


def _row(each: Difference) -> tuple[str, str, str, str, str]:
    """One term; bytes in GiB, as engines print them."""
    ratio = DASH if each.ratio is None else f"×{each.ratio:.2f}"
    figures = (amount(each.term, each.planned), amount(each.term, each.printed))
    return (name_of(each.term), *figures, ratio, word("agrees" if each.agrees else "differs"))


def _inputs(start: StartUp, scenario: Scenario) -> None:
    """What the log states otherwise than the page, and the button that plans so."""
    found = _apart(start, scenario)
    with show.card(word("as_log_said"), "card_as_log"):
        if not found:
            show.finding(word("nothing_stated"))
            return
        trust_apart.table(found)
        trust_apart.take_over(start, scenario, found, word("as_log"), "_calibrate_as_log")
