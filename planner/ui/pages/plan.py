"""Plan: does it fit, how fast, how many, how much, and what binds?"""

from __future__ import annotations

import streamlit as st

from planner.errors import HeadroomError
from planner.single import plan_of
from planner.ui import blocks, sharing, show, state
from planner.ui.text import say


def page() -> None:
    """Draw the plan of the session's scenario."""
    try:
        plan = plan_of(state.current())
    except HeadroomError as error:
        show.refused(say("cannot"), str(error), {})
        return
    blocks.headline(plan)
    blocks.beside(plan)
    blocks.tiles(plan)
    with st.grid(2, min_column_width=430, gap="small", key="charts"):
        blocks.memory(plan)
        blocks.curve(plan)
        blocks.step(plan)
        blocks.cost(plan)
        blocks.notes(plan)
        sharing.row(plan)


page()
