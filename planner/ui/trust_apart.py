"""Inputs that a pasted text states otherwise than the page: what they are, and the button that takes them over."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from planner.logs.deployed import Apart, as_stated
from planner.logs.readings import Reading
from planner.specs.scenario import Scenario
from planner.specs.spelling import Value, spell
from planner.ui import show, state
from planner.ui.trust_calibrate_words import name_of, word
from planner.units import DASH


def table(found: Sequence[Apart]) -> None:
    """Each field with both values; below them the fields that the page's plan cannot take, and why."""
    rows = [(name_of(each.field), _spelled(each.stated), _spelled(each.planned)) for each in found]
    show.figures(word("apart"), (word("field"), word("stated"), word("planned")), rows, frozenset({1, 2}))
    kept = [word("kept", field=name_of(each.field), reason=each.reason.rstrip(".")) for each in found if each.reason]
    if kept:
        show.lines(kept)


def take_over(reading: Reading, scenario: Scenario, found: Sequence[Apart], label: str, key: str) -> None:
    """The button that plans with what the text states; nothing where the plan can take none of it."""
    if any(not each.reason for each in found):
        st.button(
            label, key=key, icon=":material/input:", on_click=state.restore,
            args=(as_stated(reading, scenario).scenario,),
        )  # fmt: skip


def _spelled(value: Value) -> str:
    """A value as inputs show it; counts with separators."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return spell(value) or DASH
