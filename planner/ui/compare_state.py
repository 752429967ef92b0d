"""The plans of a session's comparison: read from the address, changed by buttons, written into the address again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import streamlit as st

from planner.catalog.scenarios import load_preset
from planner.compare.link import FEWEST, LETTERS, comparison_from, pasted, reference_from, spelled
from planner.errors import Fault, InputError
from planner.share import pinned
from planner.specs.scenario import Scenario
from planner.ui import link, state
from planner.ui.presets import twin_of

PAGE: Final = "compare"
HELD: Final = "_compare_held"
FAULTS: Final = "_compare_faults"
"""What is wrong with what was pasted last."""

PASTED, PRESET, AGAINST = "_compare_link", "_compare_preset", "_compare_against"
OPENING: Final = ("llama70b-fp8-a", "llama70b-fp8-b", "llama70b-fp8-c", "llama70b-bf16-tp4")
"""The source article's A, B and C, and the BF16 baseline that it holds them against."""


@dataclass(frozen=True)
class Held:
    """The plans of a comparison, and the place of the one that is chosen to hold the others against."""

    plans: tuple[Scenario, ...]
    against: int | None = None

    @property
    def own(self) -> Mapping[str, str]:
        """The page's own parameters that say it; none for what the page opens with."""
        plans = {} if self.plans == opening() else {"plans": spelled(self.plans)}
        return plans if self.against is None else {**plans, "against": LETTERS[self.against]}


@cache
def opening() -> tuple[Scenario, ...]:
    """What the page opens with."""
    return tuple(pinned(load_preset(name)) for name in OPENING)


def held() -> Held:
    """The comparison of the address; coming back from another page, which empties the address, the session's.

    Raises:
        LinkError: when the address says what is no comparison.
    """
    values = link.own_values(PAGE)
    before: Held | None = st.session_state.get(HELD)
    if before is not None and values == before.own:
        return before
    if before is not None and not values and st.session_state.get(link.DRAWN) != PAGE:
        put(before)
        return before
    plans = comparison_from(values["plans"]) if "plans" in values else opening()
    against = reference_from(values["against"], len(plans)) if "against" in values else None
    found = Held(plans, against)
    st.session_state[HELD] = found
    return found


def put(found: Held) -> None:
    """Make a comparison the session's, and the address say it."""
    st.session_state[HELD] = found
    for name in ("plans", "against"):
        link.set_own(name, found.own.get(name))


def _current() -> Held:
    """The session's comparison, in a callback."""
    found: Held = st.session_state[HELD]
    return found


def start_again() -> None:
    """What the page opens with, in the place of all plans; also of a refused link."""
    put(Held(opening()))


def take_twins() -> None:
    """The real model's plan in the place of every textbook plan."""
    found = _current()
    put(replace(found, plans=tuple(_kept(twin_of(plan) or plan) for plan in found.plans)))


def choose() -> None:
    """Hold the others against the plan that was chosen."""
    put(replace(_current(), against=LETTERS.index(st.session_state[AGAINST])))


def remove(at: int) -> None:
    """Leave out one plan."""
    found = _current()
    if len(found.plans) <= FEWEST:
        return
    against = found.against
    if against is not None:
        against = None if against == at else against - (against > at)
    put(Held(tuple(plan for place, plan in enumerate(found.plans) if place != at), against))


def take_sidebar(place: str) -> None:
    """The plan of the sidebar, at a place."""
    _take(state.current(), place)


def take_preset(place: str) -> None:
    """The preset that was chosen, at a place."""
    _take(load_preset(st.session_state[PRESET]), place)


def take_pasted(place: str) -> None:
    """The plan of the pasted link, at a place; or, when it holds several, all of them in the place of all."""
    st.session_state[FAULTS] = ()
    try:
        plans = pasted(st.session_state[PASTED])
    except InputError as error:
        faults: tuple[Fault, ...] = error.faults
        st.session_state[FAULTS] = faults
        return
    if len(plans) > 1:
        put(Held(plans))
    else:
        _take(plans[0], place)


def _take(scenario: Scenario, place: str) -> None:
    """One plan at the place of a letter: in the place of the plan that has it, or behind the last."""
    found = _current()
    at, plans = LETTERS.index(place), list(found.plans)
    plans[at : at + 1] = [_kept(scenario)]
    put(replace(found, plans=tuple(plans)))


def _kept(scenario: Scenario) -> Scenario:
    """A plan as a comparison holds it: with its price; the language is the page's own."""
    return pinned(scenario.with_(lang=None))
