"""A link to the Optimise or the Traffic page that is refused: every fault of it at once, in a list that wraps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from planner.errors import Fault
from planner.ui import show
from planner.ui.optimise_words import word
from planner.ui.text import say


def draw(faults: Sequence[Fault], go_on: Callable[[], None], why: str = "") -> None:
    """No numbers until the reader goes on with what is sound in the link."""
    show.answer(say("link_refused"))
    show.finding(why or word("link_refused_why"))
    listed(faults)
    st.button(say("continue"), key="_ask_continue", help=say("continue_help"), on_click=go_on)


def listed(faults: Sequence[Fault]) -> None:
    """What is refused, and why, as plain text that wraps."""
    show.terms([(f"{fault.field} = {fault.value}", fault.allowed) for fault in faults])
