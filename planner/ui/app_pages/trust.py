"""Trust: why believe the numbers? The plan's arithmetic, the catalogue with its sources, and the limits."""

from __future__ import annotations

import streamlit as st

from planner.errors import HeadroomError
from planner.ui import show, state, trust_arithmetic, trust_catalogue, trust_limits
from planner.ui.text import say
from planner.ui.trust_words import word

SECTIONS = ("arithmetic", "catalogue", "limits")


def page() -> None:
    """One section at a time; the others are not drawn."""
    st.title(word("title"), anchor=False)
    st.markdown(word("lead"))
    chosen = st.segmented_control(
        word("section"), SECTIONS, format_func=_name, default=SECTIONS[0], required=True, wrap=True,
        key="_trust_section", label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    if chosen == "catalogue":
        trust_catalogue.section(state.current())
    elif chosen == "limits":
        trust_limits.section()
    else:
        _arithmetic()


def _name(section: str) -> str:
    """What a section is called; the one on limits begins with the accuracy found."""
    return word("accuracy" if section == "limits" else section)


def _arithmetic() -> None:
    """The arithmetic of the session's scenario; why there is none when it cannot be planned."""
    try:
        trust_arithmetic.section(state.current())
    except HeadroomError as error:
        st.warning(show.plain(f"{say('cannot')} {error}"), icon=":material/block:")


page()
