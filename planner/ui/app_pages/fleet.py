"""Fleet: how do I serve all of it? Traffic classes, GPUs to be had, the mix, its bill, what is idle, one failed replica."""

from __future__ import annotations

import streamlit as st

from planner.errors import HeadroomError, InputError
from planner.fleet.answer import Fleet
from planner.fleet.question import FleetQuestion
from planner.ui import fleet_blocks, fleet_inputs, fleet_sharing, fleet_solving, fleet_state, show
from planner.ui.fleet_words import word
from planner.ui.link import refused_rows
from planner.ui.text import say


def page() -> None:
    """The answer and its mix first, then what it is an answer to, then what it means."""
    try:
        restored = fleet_state.start()
    except InputError as error:
        show.refused(word("refused"), word("refused_link"), refused_rows(error.faults))
        st.button(word("continue"), key="_fleet_continue", on_click=fleet_state.leave)
        return
    head = st.container(key="fleet_head")
    try:
        question = fleet_inputs.draw()
        fleet_state.settle(question, restored=restored)
    except InputError as error:
        with head:
            show.refused(word("refused"), word("refused_rows"), refused_rows(error.faults))
        return
    with head:
        fleet = _head(question)
        if fleet is not None:
            fleet_blocks.mix(fleet)
    if fleet is not None:
        _body(fleet, old=fleet.question != question)


def _head(question: FleetQuestion) -> Fleet | None:
    """The answer and its figures; None where a class cannot be sized."""
    try:
        fleet = fleet_solving.answered(question)
    except HeadroomError as error:
        show.refused(say("cannot"), str(error), {})
        return None
    fleet_blocks.headline(fleet)
    fleet_solving.mark_old(fleet, question)
    fleet_blocks.tiles(fleet)
    return fleet


def _body(fleet: Fleet, *, old: bool) -> None:
    """What the answer means."""
    with st.grid(2, min_column_width=430, gap="small", key="fleet_cards"):
        fleet_blocks.bill(fleet)
        fleet_blocks.grounds(fleet)
    fleet_blocks.served(fleet)
    fleet_blocks.idle(fleet)
    fleet_blocks.failure(fleet)
    if not old:
        fleet_sharing.row(fleet)


page()
