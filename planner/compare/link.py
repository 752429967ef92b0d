"""Plans ↔ the `plans` parameter of a comparison's address: each plan's own query string, in order, between semicolons.

A plan's query string is percent-encoded by itself, so that a semicolon can only stand between two of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from planner.errors import Fault, InputError, LinkError
from planner.share import MAX_QUERY, from_link, pinned, query_pairs, scenario_from_text, to_link
from planner.specs.fields import near, shown
from planner.specs.scenario import Scenario

LETTERS: Final = "ABCD"
"""What the plans of a comparison are called, in their order."""

FEWEST: Final = 2
MOST: Final = len(LETTERS)
SEPARATOR: Final = ";"
MAX_TEXT: Final = MOST * MAX_QUERY
"""Longest value of `plans` that is read [characters]."""

DEFAULTS: Final = "v=1"
"""Spelling of a plan in which nothing differs from the defaults."""

_NOT_A_QUERY: Final = re.compile(r"[?#]|://")


def spelled(scenarios: Sequence[Scenario]) -> str:
    """The value of `plans`, not yet percent-encoded for an address."""
    return SEPARATOR.join(to_link(scenario).removeprefix("?") or DEFAULTS for scenario in scenarios)


def comparison_link(scenarios: Sequence[Scenario], base: str = "", against: int | None = None) -> str:
    """A link to a comparison: every plan with the price that was used and today's catalogue version.

    Args:
        scenarios: two to four plans, in order.
        base: what stands before `?`.
        against: place of the plan that the others are held against; None = the first that stands.
    """
    text = spelled([pinned(scenario) for scenario in scenarios])
    reference = f"&against={LETTERS[against]}" if against is not None else ""
    return f"{base}?plans={quote(text, safe='=')}{reference}"


def comparison_from(text: str) -> tuple[Scenario, ...]:
    """The plans that the value of `plans` spells, in order.

    Raises:
        LinkError: with one fault per refused parameter, which begins with its plan's letter.
    """
    pieces = text.split(SEPARATOR)
    if fault := _amiss(text, len(pieces)):
        raise LinkError((fault,))
    found: list[Scenario] = []
    faults: list[Fault] = []
    for letter, piece in zip(LETTERS, pieces, strict=False):
        try:
            found.append(_one(piece))
        except InputError as error:
            faults.extend(Fault(f"plan {letter}: {each.field}", each.value, each.allowed) for each in error.faults)
    if faults:
        raise LinkError(tuple(faults))
    return tuple(found)


def _amiss(text: str, count: int) -> Fault | None:
    """What is wrong with the text as a whole."""
    if len(text) > MAX_TEXT:
        return Fault("plans", shown(text), f"must be at most {MAX_TEXT:,} characters (it has {len(text):,})")
    if not FEWEST <= count <= MOST:
        allowed = f"must hold {FEWEST} to {MOST} plans with a semicolon between each two (it holds {count})"
        return Fault("plans", shown(text), allowed)
    return None


def _one(piece: str) -> Scenario:
    """The scenario of one plan's query string.

    Raises:
        InputError: when it is none, or says what no scenario may.
    """
    if not piece.strip() or _NOT_A_QUERY.search(piece):
        allowed = f"must be a plan's query string, as in tp=4&weights=fp8 ({DEFAULTS} for the defaults)"
        raise InputError((Fault("query", shown(piece), allowed),))
    return from_link(piece)


def reference_from(text: str, count: int) -> int:
    """The place of the plan that the value of `against` names, of `count` plans.

    Raises:
        LinkError: for anything but one of their letters.
    """
    letters = LETTERS[:count]
    if len(text) == 1 and text in letters:
        return letters.index(text)
    allowed = f"must be the letter of a plan: {', '.join(letters)}{near(text, letters)}"
    raise LinkError((Fault("against", shown(text), allowed),))


def pasted(text: str) -> tuple[Scenario, ...]:
    """The plans of what somebody pastes: a preset's id, a plan's link, or a comparison's link.

    Raises:
        InputError: when it is none of these, or a link with refused values.
    """
    if "plans=" in text:
        values = query_pairs(text).get("plans", [])
        if len(values) == 1:
            return comparison_from(values[0])
    return (scenario_from_text(text.strip()),)
