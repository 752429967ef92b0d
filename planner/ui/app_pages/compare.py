"""Compare: A or B? Two to four plans side by side, what differs, and by how much."""

from __future__ import annotations

import streamlit as st

from planner.compare import comparison
from planner.errors import HeadroomError, LinkError
from planner.ui import compare_blocks, compare_plans, compare_state, show
from planner.ui.compare_words import word
from planner.ui.link import refused_rows
from planner.ui.text import say


def page() -> None:
    """Draw the comparison of the address; what it refuses, when it does."""
    try:
        held = compare_state.held()
    except LinkError as error:
        show.refused(word("refused"), word("refused_why"), refused_rows(error.faults))
        st.button(word("continue"), key="_compare_continue", on_click=compare_state.start_again)
        return
    try:
        found = comparison(held.plans, held.against)
    except HeadroomError as error:
        show.refused(say("cannot"), str(error), {})
        return
    compare_blocks.headline(found)
    compare_plans.plans(found)
    compare_blocks.differences(found)
    with st.grid(2, min_column_width=430, gap="small", key="compare_cards"):
        compare_blocks.curves(found)
        with st.container(gap="small", key="compare_bars"):
            compare_blocks.cost(found)
            compare_blocks.rate(found)
    compare_blocks.share(found, held)


page()
