"""Trust: why believe the numbers? Their errors, a measurement of one's own, the plan's arithmetic, the sources, the limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from planner.errors import HeadroomError
from planner.ui import show, state, trust_accuracy, trust_arithmetic, trust_calibrate, trust_catalogue, trust_limits
from planner.ui.text import say
from planner.ui.trust_words import word


def page() -> None:
    """One section at a time; the others are not drawn."""
    st.title(word("title"), anchor=False)
    st.markdown(word("lead"))
    chosen = st.segmented_control(
        word("section"), tuple(SECTIONS), format_func=word, default="accuracy", required=True, wrap=True,
        key="_trust_section", label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    SECTIONS[str(chosen or "accuracy")]()


def _arithmetic() -> None:
    """The arithmetic of the session's scenario; why there is none when it cannot be planned."""
    try:
        trust_arithmetic.section(state.current())
    except HeadroomError as error:
        st.warning(show.plain(f"{say('cannot')} {error}"), icon=":material/block:")


def _catalogue() -> None:
    """The catalogue, with what the session's scenario uses of it."""
    trust_catalogue.section(state.current())


SECTIONS: Final[dict[str, Callable[[], None]]] = {
    "accuracy": trust_accuracy.section,
    "calibrate": trust_calibrate.section,
    "arithmetic": _arithmetic,
    "catalogue": _catalogue,
    "limits": trust_limits.section,
}
"""Sections in the order in which they are offered, and what draws each."""

page()
