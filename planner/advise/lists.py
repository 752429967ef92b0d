"""Advice in three lists: mistakes, changes that gain most, and facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.advise.advice import Advice
from planner.advise.degrees import NOTICEABLE

MOST: Final = 5
"""Changes that are shown before the rest is folded away."""


@dataclass(frozen=True)
class Lists:
    """Advice of one scenario, each piece in one list: to mend, worth trying by falling gain, and facts."""

    mend: tuple[Advice, ...]
    worth: tuple[Advice, ...]
    facts: tuple[Advice, ...]


def lists(said: Sequence[Advice]) -> Lists:
    """Sort advice into its lists; a change is offered once, and what gains next to nothing is a fact."""
    mend = tuple(each for each in said if each.kind == "warning")
    worth: list[Advice] = []
    for each in sorted(
        (each for each in said if each.kind == "advice" and _gains(each)), key=lambda each: -_share(each)
    ):
        if all(each.change != other.change for other in (*mend, *worth)):
            worth.append(each)
    best = tuple(worth[:MOST])
    return Lists(mend, best, tuple(each for each in said if each not in mend and each not in best))


def _gains(said: Advice) -> bool:
    """Whether its change makes the plan stand, or gains noticeably on it."""
    return said.change is not None and (said.gain is None or said.gain.share >= NOTICEABLE)


def _share(said: Advice) -> float:
    """What its change gains; what makes a plan stand comes first."""
    return float("inf") if said.gain is None else said.gain.share
