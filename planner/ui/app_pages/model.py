"""Model: what kind of model is it?"""

from __future__ import annotations

import streamlit as st

from planner.anatomy import anatomy_of
from planner.errors import HeadroomError
from planner.ui import model_blocks, show, state
from planner.ui.text import say


def page() -> None:
    """Draw the anatomy of the session's model."""
    try:
        found = anatomy_of(state.current())
    except HeadroomError as error:
        show.refused(say("cannot"), str(error), {})
        return
    model_blocks.headline(found)
    with st.grid(2, min_column_width=430, gap="small", key="model_cards"):
        model_blocks.parameters(found)
        if found.routing:
            model_blocks.growth(found, found.routing)
        model_blocks.intensity(found)
        model_blocks.reads(found)
        if found.routing:
            model_blocks.tiles(found, found.routing)
        model_blocks.phases(found)


page()
