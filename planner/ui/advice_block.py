"""The Advice card of the Plan page: mistakes first, then what would change most, each with a link that applies it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

import streamlit as st

from planner.advise import Advice, advise
from planner.plan import Plan
from planner.specs.scenario import Scenario
from planner.specs.spelling import spell
from planner.ui import show
from planner.ui.link import anchor
from planner.ui.text import say
from planner.ui.theme import mode, palette
from planner.variants import Change

SHORT: Final = 4
"""Pieces of advice up to which the list is as tall as they are."""

TALL: Final = "24rem"
"""Height of a longer list, which scrolls: what stands below it must not move when a number changes."""


def card(plan: Plan) -> None:
    """What every rule says about the plan's scenario."""
    said = advise(plan.scenario)
    with show.card(say("advice"), "card_advice"):
        if not said:
            show.finding(say("no_advice"))
            return
        show.finding(_summary(said, plan))
        _listed(said, plan.scenario)


def _summary(said: Sequence[Advice], plan: Plan) -> str:
    """How much there is to read."""
    warnings = sum(each.kind == "warning" for each in said)
    stands = plan.fits and plan.meets_sla and plan.engine_ok
    key = "advice_warnings" if warnings else "advice_sound" if stands else "advice_only"
    words = [say(key, warnings=str(warnings), others=str(len(said) - warnings)), say("advice_numbers")]
    return " ".join([*words, say("advice_scrolls")] if len(said) > SHORT else words)


def _listed(said: Sequence[Advice], scenario: Scenario) -> None:
    """Sentences with their links, as one piece of HTML; every text is escaped."""
    look = "margin:0;padding:0;list-style:none;font-size:.93rem;overflow-wrap:anywhere"
    items = f'<ul style="{look}">{"".join(_item(each, scenario) for each in said)}</ul>'
    frame = f"height:{TALL};overflow-y:auto" if len(said) > SHORT else ""
    st.html(f'<div tabindex="0" role="region" aria-label="{escape(say("advice"))}" style="{frame}">{items}</div>')


def _item(said: Advice, scenario: Scenario) -> str:
    """One sentence: what kind it is, what it says, where the articles treat it, and the link."""
    ink = palette(mode())
    warning = said.kind == "warning"
    colour, word = (ink.promise, say("warning")) if warning else (ink.link, say("hint"))
    kind = f'<span style="color:{colour};font-weight:600">{escape(word)}</span>'
    apply = "" if said.change is None else f" {apply_link(scenario, said.change)}"
    look = f"border-bottom:1px solid {ink.grid};padding:.45rem 0"
    return f'<li style="{look}">{kind} {escape(said.text)}{apply}</li>'


def apply_link(scenario: Scenario, change: Change) -> str:
    """A same-tab link to the scenario with some fields changed, which says what they become."""
    changed = scenario.with_(**change)
    return show.anchor(anchor(changed), f"{say('apply')} {spelled(scenario, changed)}")


def spelled(scenario: Scenario, changed: Scenario) -> str:
    """The fields in which two scenarios differ, as a link spells the second."""
    pairs = [(field, value) for field, value in changed if value != getattr(scenario, field)]
    return ", ".join(f"{field}={say('empty') if value is None else spell(value)}" for field, value in pairs)
