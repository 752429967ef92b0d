"""A piece of advice: what it says, the numbers it rests on, and the change that would follow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from planner.plan import Plan
from planner.specs.scenario import Scenario
from planner.units import show, whole
from planner.variants import Change, Gain, Outcome

Kind: TypeAlias = Literal["advice", "warning"]
Number: TypeAlias = tuple[str, float, str]
"""Name, value and unit of one number."""
Numbers: TypeAlias = tuple[Number, ...]


@dataclass(frozen=True)
class Advice:
    """What a rule says about one scenario.

    Attributes:
        code: the rule's name, stable.
        kind: `warning` for a mistake that the scenario makes, `advice` for what it could do or should know.
        text: one or two sentences with their numbers in them.
        numbers: the same numbers, for machines and tests.
        section: where the source articles treat it; `–` where they do not.
        change: scenario fields that would apply it; None where nothing is to be changed or its effect is not modelled.
        gain: what the change gains on a plan that stands; None without a change or where the present plan does not stand.
        then: the plan with the change, where the rule has priced it already.
    """

    code: str
    kind: Kind
    text: str
    numbers: Numbers
    section: str
    change: Change | None = field(default=None, hash=False)
    gain: Gain | None = None
    then: Outcome | None = field(default=None, compare=False, repr=False)

    def number(self, name: str) -> float:
        """One of its numbers.

        Raises:
            KeyError: for a name that it does not have.
        """
        return {each[0]: each[1] for each in self.numbers}[name]


CEILING: Final = 1 << 14
"""Largest batch among which crossovers are looked for; a crossover found there is none."""


def up_to(limit: float, plan: Plan) -> str:
    """A largest batch in words: where a search met no limit, the plan's own."""
    if limit < 1:
        return "at no batch"
    if limit >= plan.b_max_kv:
        return "at every batch that the cache holds"
    return "at every batch of this plan" if limit >= CEILING else f"up to {show(limit, 'requests')}"


def times(value: float) -> str:
    """A ratio; a whole one without decimals."""
    return whole(value) if float(value).is_integer() else show(value)


Rule: TypeAlias = Callable[[Scenario, Plan], Advice | None]
"""A named rule: says something about a scenario and its plan, or nothing."""
