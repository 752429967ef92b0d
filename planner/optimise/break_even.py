"""Break-even: the price of an accelerator-hour at which two plans cost the same a good token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from planner.setting import resolve
from planner.specs.scenario import Scenario
from planner.variants import outcome

DEAREST: Final = 100_000.0
"""Highest price that is looked at; a scenario takes no higher one [$/GPU-hour]."""


@dataclass(frozen=True)
class Turn:
    """Where the price of one plan's accelerator turns the choice.

    Attributes:
        gpu: id of the accelerator whose price moves.
        now: its price as the plan has it [$/GPU-hour]; None = not known.
        price: the price at which both plans cost the same [$/GPU-hour]; None = there is none.
        reason: why there is none; empty where there is one.
    """

    gpu: str
    now: float | None
    price: float | None
    reason: str = ""


@dataclass(frozen=True)
class BreakEven:
    """Two plans and the prices at which they cost the same.

    Attributes:
        first_cost, second_cost: $ a million good tokens as priced now; None where a plan does not stand or has no price.
        first, second: where the price of the first's (the second's) accelerator turns the choice.
    """

    first_cost: float | None
    second_cost: float | None
    first: Turn
    second: Turn


def break_even(first: Scenario, second: Scenario) -> BreakEven:
    """The prices at which two plans cost the same a good token, one accelerator's price moving at a time.

    A price moves `Scenario.price`: of the replicas, and of a prefill pool of the same accelerator. A prefill pool on
    another accelerator keeps its own price. Where both plans rent the same offer (accelerator, kind, provider and price
    alike) that price moves in both. Batch, replicas and pools of each plan stay as the plan has them: no price changes them.

    Raises:
        CatalogueError, ModelConfigError: when a scenario names what does not exist or cannot be sized.
    """
    costs = _cost(first), _cost(second)
    shared = _offer(first) == _offer(second)
    moved = (first, second, shared), (second, first, shared)
    return BreakEven(*costs, *(_turn(*each) for each in moved))


def _offer(scenario: Scenario) -> tuple[object, ...]:
    """What is rented at one price."""
    return scenario.gpu, scenario.price, scenario.price_kind, scenario.provider


def _cost(scenario: Scenario) -> float | None:
    """$ a million good tokens of a plan that stands."""
    found = outcome(scenario)
    return found.usd_per_m_goodput if found.stands else None


def _turn(moving: Scenario, other: Scenario, shared: bool) -> Turn:
    """Where the price of `moving`'s accelerator makes both cost the same."""
    now = resolve(moving).cost.price
    turn = partial(Turn, moving.gpu, now)
    still = _cost(other.with_(price=0.0)) if shared else _cost(other)
    if _cost(moving.with_(price=0.0)) is None or still is None:
        return turn(None, "one of the two plans does not stand, or a price of it is not known")
    gaps = _gap(moving, other, shared, 0.0), _gap(moving, other, shared, DEAREST)
    if shared and _alike(*gaps):
        return turn(None, "both rent the same accelerator and nothing else: its price moves both in proportion")
    if gaps[0] * gaps[1] > 0.0:
        return turn(None, _never(gaps[0], shared))
    return turn(_root(moving, other, shared))


def _gap(moving: Scenario, other: Scenario, shared: bool, price: float) -> float:
    """What `moving` costs more than `other` a million good tokens at a price of its accelerator [$]."""
    beside = other.with_(price=price) if shared else other
    return (_cost(moving.with_(price=price)) or 0.0) - (_cost(beside) or 0.0)


def _alike(free: float, dear: float) -> bool:
    """Whether both plans cost nothing where the shared accelerator does: then they only meet there, or everywhere."""
    return free == 0.0 or dear == 0.0


def _never(gap: float, shared: bool) -> str:
    """Why no price of an accelerator makes both cost the same."""
    if shared:
        return f"the same plan is dearer at every price up to ${DEAREST:,.0f}: its other pool decides"
    if gap > 0.0:
        return "it would cost more even for nothing: its prefill pool on another accelerator alone costs more"
    return f"it would be cheaper at any price up to ${DEAREST:,.0f}"


def _root(moving: Scenario, other: Scenario, shared: bool) -> float:
    """The price at which the gap closes, by Brent's method on plans evaluated at each price tried."""
    from scipy.optimize import brentq

    return float(brentq(lambda price: _gap(moving, other, shared, price), 0.0, DEAREST, xtol=1e-9, rtol=1e-12))
