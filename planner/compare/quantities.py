"""What plans are held against each other by, and how a ratio of two such figures is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from planner.plan import Plan
from planner.units import show, significant, whole

ALIKE: Final = 0.005
"""Relative difference below which two figures are about the same."""

MANIFOLD: Final = 1.1
"""Ratio from which on "so many times" says more than per cent."""

FRACTION: Final = 0.1
"""Ratio below which "one so-manieth" says more than per cent."""


def stands(plan: Plan) -> bool:
    """Whether a plan fits, is served, keeps its SLA and is not asked for more than it admits."""
    served = plan.fits and plan.engine_ok and plan.meets_sla
    return served and plan.ttft_ms is not None and plan.batch <= plan.b_max


def requests(plan: Plan) -> float | None:
    """Requests a second that a deployment can take within its SLA [1/s].

    Good output tokens of one replica at its operating batch × serving replicas × usable share ÷ output tokens of a
    request; spares do not serve. None where the plan has no such rate.
    """
    if plan.goodput_tok_s is None or plan.replicas is None or not stands(plan):
        return None
    serving = plan.replicas - plan.scenario.spare
    return plan.goodput_tok_s * serving * plan.scenario.load / plan.scenario.osl


@dataclass(frozen=True)
class Quantity:
    """A figure of a plan that ratios are taken of.

    Attributes:
        name: key in documents.
        value: the figure; None where a plan has none.
        less: whether less of it is better.
        text: the figure as people read it, unit included.
    """

    name: str
    value: Callable[[Plan], float | None]
    less: bool
    text: Callable[[float], str]


QUANTITIES: Final = (
    Quantity("requests_s", requests, False, lambda x: show(x, "requests/s")),
    Quantity("usd_per_m_goodput", lambda plan: plan.usd_per_m_goodput, True, lambda x: show(x, "$")),
    Quantity("gpus", lambda plan: plan.gpus, True, whole),
    Quantity("tpot_ms", lambda plan: plan.tpot_ms, True, lambda x: show(x, "ms")),
    Quantity("kv_capacity_tokens", lambda plan: plan.kv_capacity_tokens, False, significant),
)
"""In the order of the sentences."""

REQUESTS, DOLLARS, GPUS, TPOT, TOKENS = QUANTITIES


def figure(plan: Plan, quantity: Quantity) -> float | None:
    """A figure of a plan that stands; None otherwise, and where it is not positive."""
    value = quantity.value(plan) if stands(plan) else None
    return value if value is not None and value > 0 else None


def ratio(plan: Plan, other: Plan, quantity: Quantity) -> float | None:
    """How many times the other's figure a plan's is; None where either does not stand or has none."""
    mine, its = figure(plan, quantity), figure(other, quantity)
    return None if mine is None or its is None else mine / its


def ranked(plans: Sequence[Plan], quantity: Quantity) -> list[int]:
    """Places of the plans that have a figure, best first; those that read the same in the order of the plans."""
    held = [(value, at) for at, plan in enumerate(plans) if (value := figure(plan, quantity)) is not None]
    best = sorted((value if quantity.less else -value, at) for value, at in held)
    first: dict[str, int] = {}
    for rank, (value, _) in enumerate(best):
        first.setdefault(quantity.text(abs(value)), rank)
    return [at for _, at in sorted((first[quantity.text(abs(value))], at) for value, at in best)]


def alike(plans: Sequence[Plan], places: Sequence[int], quantity: Quantity) -> list[int]:
    """The places whose figures read as that of the first of them does."""
    said = [quantity.text(figure(plans[at], quantity) or 0.0) for at in places]
    return [at for at, text in zip(places, said, strict=True) if text == said[0]]


@dataclass(frozen=True)
class Words:
    """How a ratio is said of one quantity.

    Attributes:
        the: what a multiple is taken of, as in "2.9× the requests".
        more, less: what a share is put before, as in "4 % more requests".
        same: what is said of equal figures; `about` of figures that are nearly so.
    """

    the: str
    more: str
    less: str
    same: str
    about: str

    def say(self, factor: float) -> str:
        """A ratio in words: never `1.0×`, and never a hundred per cent less."""
        if factor == 1:
            return self.same
        if abs(factor - 1) < ALIKE:
            return self.about
        if factor >= MANIFOLD:
            return f"{_factor(factor)}×{_after(self.the)}"
        if factor > 1:
            return f"{_share(factor - 1)} {self.more}"
        if factor < FRACTION:
            return f"1/{_factor(1 / factor)}{_after(self.the and f'of {self.the}')}"
        return f"{_share(1 - factor)} {self.less}"


PLAIN: Final = Words("", "more", "less", "the same", "about the same")
"""A ratio by itself, behind the name of its quantity."""


def _after(words: str) -> str:
    return f" {words}" if words else ""


def _factor(factor: float) -> str:
    """One decimal below ten, three digits from there on; a whole number as it is."""
    if factor == round(factor):
        return whole(factor)
    return f"{factor:.1f}" if factor < 9.95 else significant(factor)


def _share(share: float) -> str:
    """A share in per cent, two digits; its space does not break."""
    return f"{significant(share * 100, 2)}\u00a0%"
