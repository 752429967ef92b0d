"""What each run does: read the address, draw the sidebar, hand the scenario to a page."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st

from planner.errors import InputError
from planner.share import OF_PAGES, PRESET, address
from planner.simulate.spelling import PAGE
from planner.specs.scenario import Scenario
from planner.ui import link, optimise_inputs, optimise_refusal, show, sidebar, state, traffic_inputs
from planner.ui.text import say
from planner.ui.theme import mode
from planner.ui.traffic_words import word

HERE: Final = Path(__file__).resolve().parent
SIDEBAR_PIXELS: Final = 324
PAGES: Final = HERE / "app_pages"
"""Not `pages`: Streamlit takes a folder of that name for its old automatic pages, and runs one without the sidebar."""
OTHERS: Final = {
    "optimise": ":material/search:",
    "compare": ":material/compare_arrows:",
    "traffic": ":material/timeline:",
    "fleet": ":material/hub:",
    "model": ":material/schema:",
    "trust": ":material/verified:",
}
"""Pages after Plan, in the order of the bar, with their icons."""

OF_OWN: Final = {
    optimise_inputs.PAGE: (optimise_inputs.judged, ""),
    PAGE: (traffic_inputs.judged, "link_refused_why"),
}
"""Pages that judge their own part of an address, with the word that says what a refused link did not do."""

FIRST, SEEN = "_first", "_seen"
REFUSED: Final = "_refused"
"""A refused link, which still stands after a click in the top bar has emptied the address."""


def run() -> None:
    """One run of the script."""
    st.set_page_config(
        page_title=say("title"),
        page_icon=str(HERE / "assets" / "favicon.png"),
        layout="wide",
        initial_sidebar_state=SIDEBAR_PIXELS,
    )
    st.html(HERE / "assets" / "style.css")
    st.logo(str(HERE / "assets" / f"logo-{mode()}.png"), size="large")
    page = st.navigation(_pages(), position="top")
    if _reads_link(page.url_path):
        sidebar.draw(st.session_state[FIRST])
        if _holds():
            page.run()
            st.session_state[link.DRAWN] = page.url_path


def _pages() -> list[st.Page]:
    plan = st.Page(
        PAGES / "plan.py", title=say("plan"), icon=":material/dashboard:", help=say("plan_help"), default=True
    )
    return [plan, *(_page(name, icon) for name, icon in OTHERS.items() if (PAGES / f"{name}.py").exists())]


def _page(name: str, icon: str) -> st.Page:
    """A page beside the first, with its name in the address."""
    return st.Page(PAGES / f"{name}.py", title=say(name), icon=icon, help=say(f"{name}_help"), url_path=name)


def _reads_link(page: str) -> bool:
    """Judge an address that has not been seen; a refused one is shown instead of any number.

    What belongs to the page itself is left to it. What belongs to another page is refused in a link, and nothing once
    a session has begun: stepping back through the history leaves such names behind.
    """
    if st.session_state.pop(link.REWRITTEN, False):
        st.rerun()
    said = address(link.raw(), page)
    left = OF_PAGES if FIRST in st.session_state else frozenset()
    asked = {name: values for name, values in said.scenario.items() if name not in left}
    pairs = asked or st.session_state.get(REFUSED, {})
    spelled = link.encoded(pairs)
    if st.session_state.get(SEEN) == spelled:
        return True
    judged = link.judge(pairs)
    if judged.faults and (FIRST not in st.session_state or link.malformed(pairs)):
        st.session_state[REFUSED] = pairs
        _refuse(judged, said.own, page)
        return False
    if PRESET in pairs:
        link.rewrite(judged.scenario, said.own)
        st.rerun()
    st.session_state[SEEN] = spelled
    st.session_state.setdefault(FIRST, judged.scenario)
    return True


def _refuse(judged: link.Judged, own: link.Pairs, page: str) -> None:
    """The refusals of a link, and the way on; a question's own faults stand beside those of its scenario."""
    if page in OF_OWN:
        own_judge, why = OF_OWN[page]
        faults, sound = own_judge(own)
        optimise_refusal.draw(
            (*judged.faults, *faults), partial(_go_on, judged.scenario, sound), word(why) if why else ""
        )
        return
    show.refused(say("link_refused"), say("link_refused_why"), link.refused_rows(judged.faults))
    st.button(say("continue"), key="_continue", help=say("continue_help"), on_click=_go_on, args=(judged.scenario, own))


def _go_on(scenario: Scenario, own: link.Pairs) -> None:
    """Leave a refused link behind, with the defaults in the place of what was refused."""
    st.session_state.pop(REFUSED, None)
    link.rewrite(scenario, own)


def _holds() -> bool:
    """Whether the inputs agree with each other; if not, say which do not."""
    try:
        state.remember(state.from_widgets())
    except InputError as error:
        show.refused(say("contradiction"), say("contradiction_why"), link.refused_rows(error.faults))
        return False
    return True


if __name__ == "__main__":
    run()
