"""The scenario of a session: read from the widgets, restored into them, stepped back through."""

from __future__ import annotations

from functools import cache
from typing import Final

import streamlit as st

from planner.errors import InputError
from planner.specs.scenario import SCENARIO_FIELDS, Scenario
from planner.specs.spelling import spell

APART: Final = ("v", "c", "x")
"""Fields that no widget shows: version, catalogue version, the token of a custom model; they live in the address."""

WIDGETS: Final = tuple(field for field in SCENARIO_FIELDS if field not in APART)
"""Fields that a widget of the sidebar holds, under the field's own name."""

PAST, CURRENT = "_past", "_current"
LONGEST_PAST: Final = 50


@cache
def untouched(field: str) -> str | int | float | None:
    """What a field's widget holds before anyone touched it."""
    value = Scenario.model_fields[field].default
    return spell(value) if isinstance(value, bool) else value


def from_widgets() -> Scenario:
    """The scenario that the sidebar states.

    Raises:
        InputError: when two inputs contradict each other.
    """
    values = {field: st.session_state.get(field, untouched(field)) for field in WIDGETS}
    return Scenario.model_validate({**values, "x": st.query_params.get("x")})


def remember(scenario: Scenario) -> None:
    """Keep the scenario for the pages, and the one before it for Undo."""
    before: Scenario | None = st.session_state.get(CURRENT)
    if before is not None and before != scenario:
        past: list[Scenario] = st.session_state.setdefault(PAST, [])
        past.append(before)
        del past[:-LONGEST_PAST]
    st.session_state[CURRENT] = scenario


def current() -> Scenario:
    """The scenario that the pages show; the defaults before the sidebar was drawn."""
    found: Scenario | None = st.session_state.get(CURRENT)
    return Scenario() if found is None else found


def restore(scenario: Scenario) -> None:
    """Put a scenario into the widgets and the address; only from a callback, before the widgets are drawn."""
    for field in WIDGETS:
        value = getattr(scenario, field)
        shown = spell(value) if isinstance(value, bool) else value
        drawn = field in st.session_state
        if st.session_state.get(field, untouched(field)) != shown:
            st.session_state[field] = shown
            if not drawn:
                _address(field, shown)
    set_token(scenario.x)


def _address(field: str, value: str | int | float | None) -> None:
    """Write an input into the address whose widget is not drawn yet, and so cannot bind its own parameter."""
    if value is not None:
        st.query_params[field] = spell(value)


def set_token(x: str | None) -> None:
    """Write or remove a custom model's token in the address."""
    if x is not None:
        st.query_params["x"] = x
    elif "x" in st.query_params:
        del st.query_params["x"]


def can_undo() -> bool:
    """Whether there is a change to step back over, be it into a contradiction."""
    return bool(st.session_state.get(PAST)) or (CURRENT in st.session_state and not _stands())


def _stands() -> bool:
    """Whether the widgets state the remembered scenario."""
    try:
        return from_widgets() == st.session_state.get(CURRENT)
    except (InputError, KeyError):
        return False


def undo() -> None:
    """Step back over the last change; also out of a contradiction, which was never remembered."""
    past: list[Scenario] = st.session_state.get(PAST, [])
    before: Scenario | None = st.session_state.get(CURRENT)
    if _stands() and past:
        before = past.pop()
        st.session_state[CURRENT] = before
    if before is not None:
        restore(before)
