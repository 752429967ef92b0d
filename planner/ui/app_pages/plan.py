"""Plan: does it fit, how fast, how many, how much, and what binds?"""

from __future__ import annotations

import streamlit as st

from planner.errors import HeadroomError
from planner.plan import Plan
from planner.single import plan_of
from planner.ui import advice_block, band_words, blocks, queue_block, sharing, show, state, techniques_block
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
        if plan.ledger:
            blocks.curve(plan)
    if plan.ledger:
        with grid.cell():
            _time(plan)
    with grid.cell():
        _money(plan)
    queues = grid.cell(column_span="all")
    with grid.cell(column_span="all"):
        blocks.notes(plan)
    advice, techniques = grid.cell(column_span="all"), grid.cell(column_span="all")
    with grid.cell(column_span="all"):
        sharing.row(plan)
    with queues:
        queue_block.card(plan)
    with techniques:
        techniques_block.card(plan)
    with advice:  # last: it is worked out while everything else is on the page already
        advice_block.card(plan)


def _time(plan: Plan) -> None:
    """Where the time goes, and what it rests on where the other column has the bands: so both are about as long."""
    blocks.step(plan)
    if band_words.any_band(plan):
        blocks.grounds(plan)


def _money(plan: Plan) -> None:
    """What it costs and how sure that is; other layouts where there is no speed."""
    if not plan.ledger:
        blocks.layouts(plan)
    else:
        blocks.cost(plan)
    if band_words.any_band(plan):
        blocks.sure(plan)
    if not (plan.ledger and band_words.any_band(plan)):
        blocks.grounds(plan)


page()
