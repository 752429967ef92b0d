"""Sentences of a comparison: which plan wins, and each against one of them, in ratios of figures that are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planner.answer import answer
from planner.compare.link import LETTERS
from planner.compare.quantities import (
    ALIKE,
    DOLLARS,
    GPUS,
    PLAIN,
    REQUESTS,
    TOKENS,
    TPOT,
    Quantity,
    Words,
    alike,
    figure,
    ranked,
    ratio,
    stands,
)
from planner.plan import Plan
from planner.setting import correction_of
from planner.units import show

MEANING: Final = (
    "Requests: what the whole deployment takes within its SLA, that is good output tokens/s of a replica at its batch × "
    "replicas without spares × usable share ÷ output tokens of a request. Dollars, GPUs and KV tokens (of one replica) are "
    "the plans' own."
)
"""What the figures of the sentences are."""

SERVED: Final = Words(
    "the requests of", "more requests than", "fewer requests than", "as many requests as", "about as many requests as"
)
PAID: Final = Words(
    "the dollars a good token",
    "more a good token",
    "less a good token",
    "the same dollars a good token",
    "about the same dollars a good token",
)
NAMES: Final = {GPUS.name: "GPUs", TPOT.name: "TPOT", TOKENS.name: "KV tokens"}
"""Quantities that are listed behind what is served and paid."""


def headline(plans: Sequence[Plan]) -> str:
    """Which plan wins, by how much, in one sentence that can be said aloud."""
    standing = [at for at, plan in enumerate(plans) if stands(plan)]
    if not standing:
        return "None of these plans stands."
    places = ranked(plans, DOLLARS)
    if not places:
        return f"No price is known, so none is cheapest. {_fastest(plans)}"
    best, value = LETTERS[places[0]], figure(plans[places[0]], DOLLARS)
    price = f"{show(value, '$')} per million good tokens"
    if len(standing) == 1:
        return f"Only {best} stands: {price}."
    return f"{best} is cheapest: {price}{_lead(plans, places, DOLLARS)}.{_unpriced(places, standing)}"


def _lead(plans: Sequence[Plan], places: Sequence[int], quantity: Quantity) -> str:
    """How far the best is ahead of the next, and of those that read as the next does; empty where there is no other."""
    if len(places) < 2:
        return ""
    factor, next_ = ratio(plans[places[0]], plans[places[1]], quantity) or 1.0, alike(plans, places[1:], quantity)
    others = listed([LETTERS[at] for at in next_])
    if abs(factor - 1) < ALIKE:
        return f", {'as' if factor == 1 else 'about as'} much as {others}"
    said = Words("that of", "more than", "less than", "", "").say(factor)
    return f", {said} {others}"


def listed(names: Sequence[str]) -> str:
    """Names in a list of words."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _unpriced(places: Sequence[int], standing: Sequence[int]) -> str:
    """That a plan without a price was left out."""
    missing = [LETTERS[at] for at in standing if at not in places]
    return f" No price is known for {' and '.join(missing)}." if missing else ""


def _fastest(plans: Sequence[Plan]) -> str:
    """Which plan takes most requests, where nothing has a price."""
    places = ranked(plans, REQUESTS)
    if not places:
        return "None has a rate either."
    value = show(figure(plans[places[0]], REQUESTS), "requests/s")
    return f"{LETTERS[places[0]]} takes most requests: {value}{_lead(plans, places, REQUESTS)}."


def sentences(plans: Sequence[Plan], against: int) -> tuple[str, ...]:
    """Every other plan against one of them; where a plan does not stand, why, and no ratio.

    Before them: which plans are calibrated, where not all are.
    """
    fallen = tuple(_fallen(plans, at) for at in range(len(plans)) if not stands(plans[at]))
    if not stands(plans[against]):
        return (*_calibrated(plans), *fallen)
    others = (at for at in range(len(plans)) if at != against and stands(plans[at]))
    return (*_calibrated(plans), *(" ".join(_held(plans, at, against)) for at in others), *fallen)


def _calibrated(plans: Sequence[Plan]) -> Iterator[str]:
    """That a calibrated plan stands beside one that is not; nothing where they are alike."""
    made = dict(zip(LETTERS, (correction_of(plan.scenario) for plan in plans), strict=False))
    own = [f"{name} is calibrated by {by.count}" for name, by in made.items() if by is not None]
    plain = [name for name, by in made.items() if by is None]
    if own and plain:
        verb = "is" if len(plain) == 1 else "are"
        yield (
            f"{listed(own)}, {listed(plain)} {verb} not: a measurement is held against a prediction, so what sets them apart "
            "may be the calibration."
        )


def _fallen(plans: Sequence[Plan], at: int) -> str:
    return f"{LETTERS[at]} does not stand, so no ratio is taken of it. {answer(plans[at])}"


def _held(plans: Sequence[Plan], at: int, against: int) -> Iterator[str]:
    """One plan held against another: what it serves and costs, then what that takes."""
    name, plan, other = LETTERS[at], plans[at], plans[against]
    served, price = _said(plan, other, REQUESTS, SERVED), _said(plan, other, DOLLARS, PAID)
    verb = "can serve" if plan.scenario.qps or other.scenario.qps else "serves"
    if served:
        cost = f" for {price}" if price else ""
        yield f"{name} {verb} {served} {LETTERS[against]}{cost}."
    elif price:
        yield f"{name} works for {price}, compared with {LETTERS[against]}."
    unknown = [LETTERS[each] for each in (at, against) if figure(plans[each], DOLLARS) is None]
    if unknown:
        yield f"What a good token costs is not known for {' and '.join(unknown)}."
    parts = [
        f"{NAMES[quantity.name]} {words} ({_both(plan, other, quantity)})"
        for quantity in (GPUS, TPOT, TOKENS)
        if (words := _said(plan, other, quantity, PLAIN))
    ]
    if parts:
        yield f"{'' if served or price else f'{name} against {LETTERS[against]}: '}{', '.join(parts)}."


def _said(plan: Plan, other: Plan, quantity: Quantity, words: Words) -> str:
    """A ratio in words; empty where there is none."""
    factor = ratio(plan, other, quantity)
    return "" if factor is None else words.say(factor)


def _both(plan: Plan, other: Plan, quantity: Quantity) -> str:
    """The two figures of a ratio; one where they are equal."""
    mine, its = (quantity.text(figure(each, quantity) or 0.0) for each in (plan, other))
    return mine if mine == its else f"{mine} against {its}"
