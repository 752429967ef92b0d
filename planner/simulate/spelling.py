"""Traffic as text and back: one spelling for the Traffic page's address and the command line's options.

Numbers are the plain decimals of a scenario's link; a setting that is left out has its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final
from urllib.parse import quote

from pydantic import ConfigDict, TypeAdapter, ValidationError

from planner.errors import Fault, InputError, LinkError
from planner.share import (
    IGNORED,
    OF_PAGES,
    PRESET,
    address,
    from_pairs,
    page_values,
    query_pairs,
    scenario_from_text,
    to_link,
)
from planner.simulate.traffic import TRAFFIC_FIELDS, Traffic, describe, hint_of, refusal
from planner.specs.fields import near, shown
from planner.specs.scenario import SCENARIO_FIELDS, Scenario
from planner.specs.spelling import Value, parsed, spell

PAGE: Final = "traffic"
"""Path of the page."""


def traffic_from_texts(texts: Mapping[str, str]) -> Traffic:
    """The traffic that texts ask for.

    Args:
        texts: setting -> what is written; absent = the default.

    Raises:
        InputError: with one fault per refused text.
    """
    values: dict[str, Value] = {}
    faults: list[Fault] = []
    for name, text in texts.items():
        try:
            values[name] = read_text(name, text)
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(tuple(faults))
    return Traffic.model_validate(values)


def traffic_texts(traffic: Traffic) -> dict[str, str]:
    """What differs from the defaults, in the order of the settings; `traffic_from_texts` reads it back the same."""
    differing = (name for name, value in traffic if value != Traffic.model_fields[name].default)
    return {name: spelled(getattr(traffic, name)) for name in differing}


def spelled(value: Value) -> str:
    """A setting as it is written; empty for None. Zero has no sign."""
    return spell(value + 0.0 if isinstance(value, float) else value)


def read_text(name: str, text: str) -> Value:
    """The value of one setting.

    Raises:
        InputError: when there is no such setting, or the text is empty, malformed, off the menu or out of range.
    """
    if name not in TRAFFIC_FIELDS:
        raise InputError((refusal(name, text),))
    try:
        return _adapter(name).validate_python(parsed(describe(name).kind, text))
    except ValidationError:
        raise InputError((refusal(name, text),)) from None


@cache
def _adapter(name: str) -> TypeAdapter[Value]:
    return TypeAdapter(hint_of(name), config=ConfigDict(strict=True, allow_inf_nan=False))


def asked_of(text: str) -> tuple[Scenario, dict[str, str]]:
    """The scenario and the traffic's texts of a command-line argument: a preset's id, a link, or its query string.

    Raises:
        InputError: when it is none of these, or a link with refused values.
    """
    if not ("=" in text or "?" in text or "://" in text):
        return scenario_from_text(text), {}
    pairs = query_pairs(text)
    asked = address(pairs, PAGE)
    if faults := tuple(_unknown(name, values) for name, values in asked.scenario.items() if not _known(name)):
        raise LinkError(faults)
    return from_pairs(asked.scenario), page_values(pairs, PAGE)


def _known(name: str) -> bool:
    """Whether a link to a scenario may hold a parameter."""
    return name in SCENARIO_FIELDS or name in IGNORED or name == PRESET


def _unknown(name: str, values: list[str]) -> Fault:
    """The fault of a parameter that is neither the scenario's nor the traffic's."""
    value = shown(", ".join(values))
    if name in OF_PAGES:
        return Fault(name, value, "belongs to another page: must be a link to a scenario or to its traffic")
    hint = near(name, (*SCENARIO_FIELDS, *TRAFFIC_FIELDS))
    return Fault(shown(name), value, f"not a scenario field or a setting of the traffic{hint}")


def traffic_link(scenario: Scenario, traffic: Traffic, base: str = "") -> str:
    """A link to a simulation: `base`, `?`, and what differs from the defaults; an export's scenario is `pinned` first."""
    own = [f"{name}={quote(text, safe='')}" for name, text in traffic_texts(traffic).items()]
    link = to_link(scenario, base)
    return link + ("" if link.endswith("?") or not own else "&") + "&".join(own)
