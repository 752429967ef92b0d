"""Whether a change is worth applying: its plan stands, and is no worse than the one that there is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from planner.advise.advice import Advice, Kind
from planner.specs.scenario import Scenario
from planner.specs.spelling import spell
from planner.units import show, whole
from planner.variants import Change, Gain, Outcome, changed, gain, outcome

ROUNDING: Final = 1e-9
"""Relative difference of two costs that floating point alone makes."""

FAULTS: Final = ("whole_memory", "queue_share")
"""Warnings that stay warnings although their remedy costs something: the plan does not start, or does not carry its load."""

EMPTY: Final = re.compile(
    r"(?<![\w.,])(?:–(?= ?(?:ms|tok/s|requests|%|GB)|[).;,])|(?:nan|inf|None)\b|0(?:\.0+)? (?:tok/s|ms|s)\b)"
)
"""What a sentence never shows: a dash for a number, no number at all, a rate or time of zero."""


def judged(said: Advice, s: Scenario) -> Advice:
    """The advice with what its change gains; without the change, and with its price, where the change is no improvement."""
    variant = None if said.change is None else changed(s, said.change)
    if said.change is None:
        return said
    if variant is None:
        return replace(said, change=None)
    now, then = outcome(s), said.then or outcome(variant)
    found = gain(now, then) if now.stands else None
    if then.stands and (not now.stands or (found is not None and found.share >= -ROUNDING)):
        return replace(said, gain=found)
    kind: Kind = "warning" if said.kind == "warning" and said.code in FAULTS else "advice"
    return replace(said, kind=kind, change=None, text=said.text + price(s, said.change, then))


def price(s: Scenario, change: Change, then: Outcome) -> str:
    """What a change would cost, as a sentence to be put behind others; empty where there is nothing to compare with."""
    name = ", ".join(
        f"{field}={spell(value)}" for field, value in change.items() if value not in (None, getattr(s, field))
    )
    name = name or "Without it the plan"
    if not then.stands:
        return f" {name} would not stand: {failing(s, then)}."
    now = outcome(s)
    found = gain(now, then)
    return f" {name} would take {_dearer(now, then, found, sized=s.qps > 0)}." if found is not None else ""


def failing(s: Scenario, then: Outcome) -> str:
    """Why a plan does not stand, in its own numbers."""
    if then.fits and then.engine_ok and then.ttft_ms is not None and then.ttft_ms > s.sla_ttft_ms:
        return f"TTFT {show(then.ttft_ms, 'ms')} against an SLA of {show(s.sla_ttft_ms, 'ms')}"
    if then.fits and then.engine_ok and then.tpot_ms is not None and then.tpot_ms > s.sla_tpot_ms:
        return f"TPOT {show(then.tpot_ms, 'ms')} against an SLA of {show(s.sla_tpot_ms, 'ms')}"
    return then.reason or "its speed is not known"


def _dearer(now: Outcome, then: Outcome, found: Gain, *, sized: bool) -> str:
    """More devices, more dollars, or fewer good tokens of a device."""
    if not found.priced:
        return f"{show(-found.share, '%')} of the good tokens of each GPU"
    dollars = (
        f"{show(then.usd_per_m_goodput, '$')} instead of {show(now.usd_per_m_goodput, '$')} for a million good tokens"
    )
    more = sized and then.gpus is not None and now.gpus is not None and then.gpus > now.gpus
    return f"{whole(then.gpus)} instead of {show(now.gpus, 'GPUs')} and {dollars}" if more else dollars


def sound(said: Advice) -> bool:
    """Whether its sentence has a number wherever it speaks of one."""
    return EMPTY.search(said.text) is None
