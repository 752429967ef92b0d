"""The fleet of a session: read from the address, kept while other pages are open, written back as it is edited.

Tables cannot be bound to the address, so one parameter holds all of it. A rerun may still carry the address from before the
last edit; it is told from stepping back through the history by the inputs, which stepping back does not change.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.fleet.answer import Fleet
from planner.fleet.example import example
from planner.fleet.question import FleetQuestion
from planner.fleet.spelling import PARAMETER, from_token, to_token
from planner.ui import link

BASE, VERSION, TOKEN, LAST, WRITTEN = "_fleet_base", "_fleet_version", "_fleet_token", "_fleet_last", "_fleet_written"
PAGE: Final = "fleet"


def key(name: str) -> str:
    """Key of an input of the present tables; new tables have new keys."""
    return f"_fleet_{name}_{st.session_state.get(VERSION, 0)}"


def begin(question: FleetQuestion, token: str | None = None) -> None:
    """Start all inputs from a question; `token`: what the address says, where that is known."""
    session = st.session_state
    session[VERSION] = session.get(VERSION, 0) + 1
    session[BASE] = session[LAST] = question
    if token is not None:
        session[TOKEN] = token
        session.setdefault(WRITTEN, set()).add(token)


def start() -> bool:
    """Make sure that there is a question to start the inputs from; whether it was brought back from another page.

    Raises:
        InputError: when the address holds one that is refused.
    """
    own = _address()
    if own and own not in st.session_state.get(WRITTEN, ()):
        begin(from_token(own), own)
    elif BASE not in st.session_state:
        begin(example(), "")
    elif key("classes") not in st.session_state:
        begin(st.session_state[LAST])
        return True
    return False


def base() -> FleetQuestion:
    """The question that the inputs started from."""
    found: FleetQuestion = st.session_state[BASE]
    return found


def last() -> FleetQuestion:
    """The last question that was sound."""
    found: FleetQuestion = st.session_state[LAST]
    return found


def settle(question: FleetQuestion, *, restored: bool) -> None:
    """Keep a question and put it into the address; after a step back through the history, go back to what it says.

    Raises:
        InputError: when the question is too long for an address.
    """
    session, own, token = st.session_state, _address(), to_token(question)
    if not restored and own != session[TOKEN] and own in session[WRITTEN] and question == session[LAST]:
        begin(from_token(own) if own else example(), own)
        st.rerun()
    session[LAST] = question
    if own or question != example():
        link.set_own(PARAMETER, token)
        session[TOKEN] = token
        session[WRITTEN].add(token)


def reset() -> None:
    """Put the example into the tables."""
    begin(example())


def ease(fleet: Fleet, at: int) -> None:
    """Give a class the least SLA that some replica keeps."""
    question, near = last(), fleet.served[at].needed
    if near is None or at >= len(question.classes):
        return
    classes = tuple(near.applied(each) if row == at else each for row, each in enumerate(question.classes))
    fields = {field: getattr(question, field) for field in FleetQuestion.model_fields}
    begin(FleetQuestion(**{**fields, "classes": classes}))


def leave() -> None:
    """Leave a refused address behind."""
    link.set_own(PARAMETER, None)
    begin(example(), "")


def _address() -> str:
    """The token of the address; empty where there is none.

    Raises:
        InputError: when it is given more than once.
    """
    return link.own_values(PAGE).get(PARAMETER, "")
