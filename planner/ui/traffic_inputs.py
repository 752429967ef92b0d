"""What a reader asks on the Traffic page: controls, the traffic that they spell, and its place in the address.

The controls are the truth of a session; the address follows them, and is read once, when a session begins on it.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import streamlit as st

from planner.errors import Fault, InputError
from planner.plan import Plan
from planner.share import address as page_address
from planner.share import page_values, to_link
from planner.simulate.run import offered
from planner.simulate.spelling import PAGE, read_text, traffic_texts
from planner.simulate.traces import Trace
from planner.simulate.traffic import TRAFFIC_FIELDS, Traffic, describe
from planner.specs.scenario import Scenario
from planner.ui import link, show
from planner.ui.traffic_words import word
from planner.units import DASH, significant, whole

READ: Final = "_traffic_read"
PREFIX: Final = "_traffic_"
INPUT_PIXELS: Final = 140
"""Narrowest input: two in a row on a phone."""

STEPS: Final = {
    "rate": 1.0, "cv": 0.5, "swing": 0.1, "period_s": 3600.0, "clients": 8, "isl_cv": 0.1, "osl_cv": 0.1, "turns": 1,
    "think_s": 5.0, "requests": 1000, "seed": 1, "in_flight": 8, "fail_at_s": 30.0, "repair_s": 60.0,
}  # fmt: skip
FIRST: Final = ("arrival", "rate", "requests", "turns", "isl_cv", "osl_cv", "router", "in_flight")
"""Inputs that decide most."""

REST: Final = (
    "cv", "swing", "period_s", "clients", "think_s", "policy", "preempt", "over", "fail_at_s", "repair_s", "seed",
)  # fmt: skip
ONLY_WITH: Final = {"cv": "gamma", "swing": "diurnal", "period_s": "diurnal", "clients": "closed"}
"""Inputs that one kind of arrivals uses."""

OF_TRACE: Final = frozenset("arrival requests isl_cv osl_cv cv swing period_s clients turns think_s".split())
"""Inputs in whose place a trace stands."""


def key(name: str) -> str:
    """Key of the input that holds a setting."""
    return PREFIX + name


def read_address() -> tuple[Fault, ...]:
    """Put the address's traffic into the inputs, once a session; what is refused is left out and handed back."""
    if st.session_state.get(READ):
        return ()
    faults, sound = judged(page_address(link.raw(), PAGE).own)
    for name, values in sound.items():
        st.session_state[key(name)] = read_text(name, values[0])
    if not faults:
        st.session_state[READ] = True
    return faults


def judged(own: link.Pairs) -> tuple[tuple[Fault, ...], link.Pairs]:
    """Every fault of an address's traffic, and the sound part of it."""
    found = {name: _faults(name, values) for name, values in own.items()}
    sound = {name: values for name, values in own.items() if not found[name]}
    return tuple(fault for each in found.values() for fault in each), sound


def _faults(name: str, values: Any) -> tuple[Fault, ...]:
    """What is wrong with one setting of an address."""
    try:
        read_text(name, page_values({name: values}, PAGE)[name])
    except InputError as error:
        return error.faults
    return ()


def accept() -> None:
    """Go on with the sound part of an address."""
    st.session_state[READ] = True


def draw(scenario: Scenario, plan: Plan, trace: Trace | None) -> None:
    """All inputs: eight that decide most, the rest in an expander. `trace`: what is replayed in the place of generated ones."""
    own, replays = _own(scenario, plan, trace), trace is not None
    with st.grid(4, min_column_width=INPUT_PIXELS, gap="small", key="traffic_inputs"):
        for name in FIRST:
            _input(name, _stands_for(name, own, replays=replays), replays=replays)
    st.caption(show.plain(_counts(scenario, own, trace)))
    with (
        st.expander(word("more"), type="compact", key="_traffic_more"),
        st.grid(4, min_column_width=INPUT_PIXELS, gap="small", key="traffic_more"),
    ):
        for name in REST:
            _input(name, _stands_for(name, own, replays=replays), replays=replays)


def _counts(scenario: Scenario, own: dict[str, str], trace: Trace | None) -> str:
    """Which of the two rates on the page counts, and how much it is."""
    here = st.session_state.get(key("rate"))
    if trace is not None:
        return word("rate_of_trace") if here is None else word("rate_of_trace_here", rate=significant(here))
    if st.session_state.get(key("arrival")) == "closed":
        return word("rate_of_clients")
    if here is not None:
        return word("rate_here", rate=significant(here))
    if scenario.qps:
        return word("rate_of_sidebar", rate=significant(scenario.qps))
    return word("rate_of_plan", rate=own.get("rate", DASH))


def _own(scenario: Scenario, plan: Plan, trace: Trace | None) -> dict[str, str]:
    """What an empty input stands for."""
    found = {"fail_at_s": word("none")}
    if plan.batch >= 1 and plan.replicas:
        rate = offered(scenario, Traffic(), plan)
        found["rate"] = significant(rate)
        found["in_flight"] = word("in_flight_own", batch=whole(plan.batch))
    if trace is not None:
        found["rate"] = DASH if trace.mean_rate is None else significant(trace.mean_rate)
    return found


def _stands_for(name: str, own: dict[str, str], *, replays: bool) -> str:
    """What an empty input shows."""
    found = own.get(name, "")
    return word("rate_trace" if replays else "rate_own", rate=found) if name == "rate" and found else found


def _input(name: str, own: str, *, replays: bool) -> None:
    """One input, within its setting's limits; what is not used is dimmed, and says why."""
    text = describe(name)
    why = _unused(name, replays=replays)
    unit = f" [{text.unit}]" if text.unit else ""
    shared: dict[str, Any] = {
        "help": why or (word("help_rate") if name == "rate" else f"{text.meaning}{unit}"),
        "disabled": bool(why),
        **_start(name, text.default),
    }
    if text.kind == "menu":
        st.selectbox(word(name), text.options, format_func=word, **shared)
        return
    kind = int if text.kind == "whole" else float
    st.number_input(
        word(name), min_value=kind(text.low or 0), max_value=kind(text.high or 0), step=kind(STEPS[name]),
        format="%d" if kind is int else "%g", placeholder=own, **shared,
    )  # fmt: skip


def _unused(name: str, *, replays: bool) -> str:
    """Why an input is not used now; empty where it is."""
    if replays:
        return word("of_trace") if name in OF_TRACE else ""
    arrival = st.session_state.get(key("arrival"), "poisson")
    if name in ONLY_WITH and arrival != ONLY_WITH[name]:
        return word("idle_here")
    return word("idle_here") if name == "rate" and arrival == "closed" else ""


def _start(name: str, default: Any) -> dict[str, Any]:
    """Key and first value of an input; state that is kept while another page is shown."""
    st.session_state.setdefault(key(name), default)
    return {"key": key(name), "persist_state": "session"}


def traffic() -> Traffic:
    """The traffic that the inputs state.

    Raises:
        InputError: when inputs are refused.
    """
    return Traffic.model_validate({name: _value(name) for name in TRAFFIC_FIELDS})


def _value(name: str) -> Any:
    """What an input holds."""
    return st.session_state.get(key(name), Traffic.model_fields[name].default)


def write_address(asked: Traffic) -> None:
    """Let the address say what the inputs say."""
    said = traffic_texts(asked)
    for name in TRAFFIC_FIELDS:
        link.set_own(name, said.get(name))


def choose(**values: Any) -> None:
    """Put settings into their inputs; only from a callback."""
    for name, value in values.items():
        st.session_state[key(name)] = value


def address(scenario: Scenario, asked: Traffic) -> str:
    """A same-tab address of a plan's traffic, relative to the start page."""
    own = "&".join(f"{name}={quote(text, safe='')}" for name, text in traffic_texts(asked).items())
    parts = [part for part in (to_link(scenario).removeprefix("?"), own) if part]
    return f"./{PAGE}?{'&'.join(parts)}"
