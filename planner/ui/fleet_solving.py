"""Which answer the Fleet page shows: the new one at once where that is quick, else the old one, marked, until it is asked for."""

from __future__ import annotations

from time import perf_counter
from typing import Final

import streamlit as st

from planner.fleet.answer import Fleet
from planner.fleet.mix import fleet_of
from planner.fleet.question import FleetQuestion
from planner.ui import show
from planner.ui.fleet_words import word

SHOWN, TOOK, ASKED = "_fleet_shown", "_fleet_took", "_fleet_asked"

QUICK: Final = 0.3
"""Longest time that an answer may take to be worked out again at every change [s]."""


def answered(question: FleetQuestion) -> Fleet:
    """The fleet to be shown; the one before, with a mark and a button, while a slow one is not asked for.

    Raises:
        CatalogueError, ModelConfigError: when a class names what cannot be sized.
    """
    session = st.session_state
    before: Fleet | None = session.get(SHOWN)
    if before is not None and before.question == question:
        return before
    if before is not None and session.get(TOOK, 0.0) > QUICK and not session.pop(ASKED, False):
        return before
    began = perf_counter()
    with st.spinner(word("solving")):
        found = fleet_of(question)
    session[TOOK], session[SHOWN] = perf_counter() - began, found
    return found


def mark_old(fleet: Fleet, question: FleetQuestion) -> bool:
    """Say that an answer is not that of the inputs, with a button that works out the one that is; whether it is old."""
    if fleet.question == question:
        return False
    with st.container(horizontal=True, gap="small", key="fleet_old"):
        st.badge(show.plain(word("old")), icon=":material/history:", color="orange")
        st.button(word("solve"), icon=":material/refresh:", key="_fleet_solve", on_click=_ask)
    return True


def _ask() -> None:
    """The next run works it out."""
    st.session_state[ASKED] = True
