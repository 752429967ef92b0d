"""What each run does: read the address, draw the sidebar, hand the scenario to a page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import streamlit as st

from planner.errors import InputError
from planner.share import PRESET
from planner.specs.scenario import Scenario
from planner.ui import link, show, sidebar, state
from planner.ui.text import say

HERE: Final = Path(__file__).resolve().parent
SIDEBAR_PIXELS: Final = 324
FIRST, SEEN = "_first", "_seen"


def run() -> None:
    """One run of the script."""
    st.set_page_config(page_title=say("title"), page_icon=str(HERE / "assets" / "favicon.png"), layout="wide", initial_sidebar_state=SIDEBAR_PIXELS)
    page = st.navigation(_pages(), position="top")
    if _reads_link():
        sidebar.draw(st.session_state[FIRST])
        if _holds():
            page.run()


def _pages() -> list[st.Page]:  # type: ignore[valid-type]
    pages = [st.Page(HERE / "pages" / "plan.py", title=say("plan"), icon=":material/dashboard:", help=say("plan_help"), default=True)]
    if (trust := HERE / "pages" / "trust.py").exists():
        pages.append(st.Page(trust, title=say("trust"), icon=":material/verified:", help=say("trust_help"), url_path="trust"))
    return pages


def _reads_link() -> bool:
    """Judge an address that has not been seen; a refused one is shown instead of any number."""
    pairs = link.raw()
    spelled = link.encoded(pairs)
    if st.session_state.pop(link.REWRITTEN, False):
        st.rerun()
    if st.session_state.get(SEEN) == spelled:
        return True
    faults = link.faults_of(pairs)
    if faults and (FIRST not in st.session_state or link.malformed(pairs)):
        _refuse(pairs, faults)
        return False
    if PRESET in pairs:
        link.rewrite(link.sound(pairs))
        st.rerun()
    st.session_state[SEEN] = spelled
    if FIRST not in st.session_state:
        st.session_state[FIRST] = link.sound(pairs)
    return True


def _refuse(pairs: link.Pairs, faults: object) -> None:
    """The refusals of a link, and the way on."""
    show.refused(say("link_refused"), say("link_refused_why"), link.refused_rows(link.faults_of(pairs)))
    st.button(say("continue"), key="_continue", help=say("continue_help"), on_click=link.rewrite, args=(link.sound(pairs),))


def _holds() -> bool:
    """Whether the inputs agree with each other; if not, say which do not."""
    try:
        state.remember(state.from_widgets())
    except InputError as error:
        show.refused(say("contradiction"), say("contradiction_why"), link.refused_rows(error.faults))
        return False
    return True


__all__ = ["Scenario", "run"]

if __name__ == "__main__":
    run()
