"""Two to four plans side by side, from the one path that every plan comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from planner.compare.link import FEWEST, LETTERS, MOST
from planner.compare.quantities import Quantity, ratio, requests, stands
from planner.compare.sentences import headline, sentences
from planner.errors import Fault, InputError
from planner.plan import PLAN_FIELDS, Plan
from planner.single import plan_of
from planner.specs.scenario import SCENARIO_FIELDS, Scenario
from planner.specs.spelling import Value, spell

REQUESTS_FIELD: Final = "requests_s"
"""The one row that is neither a scenario's field nor a plan's: requests a second within the SLA."""

QUESTION: Final = (
    "model", "isl", "osl", "prefix", "qps", "load", "sla_ttft_ms", "sla_tpot_ms", "sla_pct", "profile", "prefill",
)  # fmt: skip
"""Fields that state the question, or what is counted at all: plans that differ in them answer different questions."""

EQUAL: Final = 1e-9
"""Relative difference of two outcomes that is none: the order of a sum."""


@dataclass(frozen=True)
class Row:
    """One field of all plans.

    Attributes:
        field: its name; `asked`: whether it is a scenario's field, else it is an outcome.
        values: one a plan, in their order; None = not applicable or left out.
        differs: whether not all plans say the same.
    """

    field: str
    asked: bool
    values: tuple[Value, ...]
    differs: bool


@dataclass(frozen=True)
class Comparison:
    """Plans, and the place of the one that the others are held against."""

    plans: tuple[Plan, ...]
    against: int = 0

    @property
    def names(self) -> str:
        """The letters of the plans, in their order."""
        return LETTERS[: len(self.plans)]

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """What each plan was asked."""
        return tuple(plan.scenario for plan in self.plans)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every scenario field, then requests a second and every plan field."""
        asked = [
            _row(field, True, [spell(getattr(s, field)) or None for s in self.scenarios]) for field in SCENARIO_FIELDS
        ]
        served = _row(REQUESTS_FIELD, False, [requests(plan) for plan in self.plans])
        found = [_row(field, False, [getattr(plan, field) for plan in self.plans]) for field in PLAN_FIELDS]
        return (*asked, served, *found)

    @property
    def differences(self) -> tuple[Row, ...]:
        """The rows in which not all plans are alike."""
        return tuple(row for row in self.rows if row.differs)

    @property
    def asked_differently(self) -> tuple[str, ...]:
        """Fields of the question in which the plans differ: ratios then compare answers to different questions."""
        return tuple(row.field for row in self.differences if row.field in QUESTION)

    @property
    def headline(self) -> str:
        """Which plan wins, in one sentence."""
        return headline(self.plans)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Every other plan against the chosen one; why a plan does not stand."""
        return sentences(self.plans, self.against)

    def stands(self, at: int) -> bool:
        """Whether a plan fits, is served and keeps its SLA."""
        return stands(self.plans[at])

    def ratio(self, at: int, quantity: Quantity) -> float | None:
        """A plan's figure over that of the one it is held against; None where either has none."""
        return ratio(self.plans[at], self.plans[self.against], quantity)


def comparison(scenarios: Sequence[Scenario], against: int | None = None) -> Comparison:
    """Two to four plans side by side.

    Args:
        scenarios: in the order of their letters.
        against: place of the plan that the others are held against; None = the first that stands.

    Raises:
        InputError: for fewer than two plans, more than four, or a place where none is.
        CatalogueError, ModelConfigError: when a scenario names what does not exist or cannot be sized.
    """
    if not FEWEST <= len(scenarios) <= MOST:
        raise InputError((Fault("plans", str(len(scenarios)), f"must be {FEWEST} to {MOST} plans"),))
    if against is not None and not 0 <= against < len(scenarios):
        raise InputError((Fault("against", str(against), f"must be from 0 to {len(scenarios) - 1}"),))
    plans = tuple(plan_of(scenario) for scenario in scenarios)
    first = next((at for at, plan in enumerate(plans) if stands(plan)), 0)
    return Comparison(plans, first if against is None else against)


def _row(field: str, asked: bool, values: Sequence[Value]) -> Row:
    return Row(field, asked, tuple(values), not all(_alike(values[0], value) for value in values))


def _alike(one: Value, other: Value) -> bool:
    """Whether two values are the same, numbers up to the order of a sum."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=EQUAL) or (math.isnan(one) and math.isnan(other))
    return one == other
