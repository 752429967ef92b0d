"""The menu of named scenarios: plain same-tab links, so that each is one step in the browser's history."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Final

import streamlit as st

from planner.catalog.scenarios import Preset, preset, presets
from planner.specs.contradictions import POOL_FIELDS
from planner.specs.scenario import Scenario
from planner.ui import show
from planner.ui.link import anchor
from planner.ui.text import language, say
from planner.ui.theme import mode

ROW: Final = (
    "display:flex;flex-wrap:wrap;justify-content:space-between;column-gap:1.5rem;min-height:28px;align-items:center"
)
"""An entry: the preset to the left, its real twin to the right."""


def menu() -> None:
    """A button that opens the two groups of presets."""
    with st.popover(say("presets"), icon=":material/bookmark:", width="stretch", key="preset_menu"):
        look = f"{mode()} {language()}"
        st.html(_starts(look))
        st.html(_worked(look))


@cache
def _starts(_: str) -> str:
    """Places to start from: presets that nobody's twin."""
    twins = {item.real for item in presets()}
    found = [item for item in presets() if item.real is None and item.id not in twins]
    return _group(say("start_today"), [_entry(item) for item in found])


@cache
def _worked(_: str) -> str:
    """The articles' examples, each with its real twin beside it."""
    found = [item for item in presets() if item.real is not None]
    return _group(say("worked_examples"), [_entry(item) for item in found])


def _group(title: str, entries: list[str]) -> str:
    heading = f'<p style="margin:0 0 .35rem;font-weight:600">{escape(title)}</p>'
    return f'{heading}<ul style="margin:0 0 .5rem;padding:0;list-style:none">{"".join(entries)}</ul>'


def _entry(item: Preset) -> str:
    link = show.anchor(anchor(item.scenario), item.title)
    if item.real is None:
        return f'<li style="{ROW}">{link}</li>'
    real = show.anchor(anchor(preset(item.real).scenario), say("real_twin"))
    return f'<li style="{ROW}">{link}<span style="white-space:nowrap">{real}</span></li>'


def twin_of(scenario: Scenario) -> Scenario | None:
    """The real model's scenario that stands beside a textbook one, with the same changes made to it."""
    if scenario.profile != "textbook":
        return None
    origin = _origin(scenario)
    if origin is None or origin.real is None:
        return scenario.with_(profile="measured", prefill="colocated", **dict.fromkeys(POOL_FIELDS))
    real = preset(origin.real).scenario
    kept = ("profile", "model", "prefill", "weights", *POOL_FIELDS)
    changed = {
        field: value for field, value in scenario if value != getattr(origin.scenario, field) and field not in kept
    }
    return real.with_(**changed)


def _origin(scenario: Scenario) -> Preset | None:
    """The worked example that a textbook scenario most likely grew from."""
    named = [item for item in presets() if item.real is not None and item.scenario.model == scenario.model]
    same = ("gpu", "weights", "kv", "tp")
    return max(
        named, key=lambda item: sum(getattr(item.scenario, f) == getattr(scenario, f) for f in same), default=None
    )
