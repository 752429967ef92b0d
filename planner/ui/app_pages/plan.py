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
    grid = st.grid(2, min_column_width=430, gap="small", key="cards")
    with grid:
        blocks.memory(plan)
        blocks.curve(plan)
        if plan.ledger:
            blocks.step(plan)
    with grid.cell(column_span=1 if plan.ledger else "all"):
        if plan.ledger:
            blocks.cost(plan)
        blocks.notes(plan)
    with grid.cell(column_span="all"):
        sharing.row(plan)


page()
