"""The Advice card of the Plan page: what to mend, what is worth trying by its gain, and facts behind an expander."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Final

import streamlit as st

from planner.advise import Advice, advise
from planner.advise.lists import Lists, lists
from planner.plan import Plan
from planner.specs.scenario import Scenario
from planner.specs.spelling import spell
from planner.ui import show
from planner.ui.link import anchor
from planner.ui.text import say
from planner.ui.theme import mode, palette
from planner.units import significant, whole
from planner.variants import Change, Gain

UNITS: Final = re.compile(r"(?<=\d) (?=(?:%|ms|s|GB|GiB|GPUs?)(?!\w))")
"""The space between a number and its unit, at which no line may break."""

TENTH: Final = 0.0995
"""Share from which on a whole percentage says enough."""


def card(plan: Plan) -> None:
    """What every rule says about the plan's scenario."""
    said = lists(advise(plan.scenario))
    with show.card(say("advice"), "card_advice"):
        show.finding(_summary(said, plan))
        _listed("to_mend", said.mend, plan.scenario)
        _listed("worth_trying", said.worth, plan.scenario)
        if said.facts:
            with st.expander(say("facts", count=str(len(said.facts))), type="compact", key="advice_facts"):
                _listed("facts_list", said.facts, plan.scenario, headed=False)


def _summary(said: Lists, plan: Plan) -> str:
    """How much there is to mend and to try, and at which batch."""
    stands = plan.fits and plan.meets_sla and plan.engine_ok
    mend = (
        say("advice_mend", count=str(len(said.mend))) if said.mend else say("advice_sound" if stands else "advice_only")
    )
    worth = say("advice_worth", count=str(len(said.worth))) if said.worth else say("advice_no_worth")
    batch = plan.scenario.at_batch
    held = "" if batch is None else say("advice_held", batch=whole(batch))
    return " ".join(filter(None, (say("advice_both", mend=mend, worth=worth), say("advice_numbers"), held)))


def _listed(title: str, said: Sequence[Advice], scenario: Scenario, *, headed: bool = True) -> None:
    """Sentences with their links under a heading, as one piece of HTML; every text is escaped."""
    if not said:
        return
    look = "margin:0;padding:0;list-style:none;font-size:.93rem;overflow-wrap:anywhere"
    name = escape(say(title))
    heading = f'<h3 style="font-size:1rem;font-weight:600;margin:.4rem 0 0;padding:0">{name}</h3>' if headed else ""
    st.html(f'{heading}<ul aria-label="{name}" style="{look}">{"".join(_item(each, scenario) for each in said)}</ul>')


def _item(said: Advice, scenario: Scenario) -> str:
    """One sentence: what it gains, what it says, and the link that applies it."""
    ink = palette(mode())
    lead = "" if said.change is None else _lead(said)
    apply = "" if said.change is None else f" {apply_link(scenario, said.change)}"
    look = f"border-bottom:1px solid {ink.grid};padding:.45rem 0"
    return f'<li style="{look}">{lead}{escape(unbroken(said.text))}{apply}</li>'


def _lead(said: Advice) -> str:
    """The gain of a change, in front of its sentence; nothing for one that gains nothing worth a figure."""
    gain = say("gain_stands") if said.gain is None else gained(said.gain)
    return f'<strong style="font-weight:600">{escape(gain)}.</strong> ' if gain else ""


def gained(gain: Gain) -> str:
    """A gain in words: a smaller bill for a good token, or more good tokens of a GPU; empty below half a percent."""
    if gain.share < 0.005:
        return ""
    return say("gain_cost" if gain.priced else "gain_rate", share=percent(gain.share))


def percent(share: float) -> str:
    """A share as a percentage that no line break divides: whole from ten on, two digits below."""
    digits = f"{share * 100:,.0f}" if abs(share) >= TENTH else significant(share * 100, 2)
    return f"{digits}\N{NO-BREAK SPACE}%"


def unbroken(text: str) -> str:
    """A sentence whose numbers keep their units on the same line."""
    return UNITS.sub("\N{NO-BREAK SPACE}", text)


def apply_link(scenario: Scenario, change: Change) -> str:
    """A same-tab link to the scenario with some fields changed, which says what they become; high enough for a finger."""
    changed = scenario.with_(**change)
    return link(anchor(changed), f"{say('apply')} {spelled(scenario, changed)}")


def link(href: str, label: str, name: str = "") -> str:
    """HTML of a same-tab link of at least 24 px; `name`: what a screen reader calls it, where the label is too short."""
    look = f"color:{palette(mode()).link};display:inline-block;line-height:24px;min-height:24px;margin:-2px 0"
    called = f' aria-label="{escape(name)}"' if name else ""
    return f'<a href="{escape(href)}" target="_self" style="{look}"{called}>{escape(label)}</a>'


def spelled(scenario: Scenario, changed: Scenario) -> str:
    """The fields in which two scenarios differ, as a link spells the second."""
    pairs = [(field, value) for field, value in changed if value != getattr(scenario, field)]
    return ", ".join(f"{field}={say('unset') if value is None else spell(value)}" for field, value in pairs)
