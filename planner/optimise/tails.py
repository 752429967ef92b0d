"""Choices at the percentile that was promised: a search ranks on means, what it keeps is judged again by queue theory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.optimise.answer import Choice, first_places
from planner.optimise.offers import Tally
from planner.optimise.question import LARGEST, Limit, Question
from planner.promised import MEDIAN
from planner.single import plan_of

TIMES_MORE: Final = 3
"""How many times as many choices a search keeps as are shown, where they are judged again: not all of them hold."""

QUEUES: Final = ("percentile", "queues break the promise at the percentile")
BEYOND: Final = ("percentile", "takes more GPUs than there are, or breaks a limit, at the percentile")
"""Why a choice that stands on means is none at its percentile."""


@dataclass(frozen=True)
class Judged:
    """Choices at their percentile.

    Attributes:
        best: those that hold within GPUs and limits, best first.
        beyond: the others, nearest first: what holds on more than is allowed by its GPUs, then what does not hold.
        refused: how many of the others there are, by reason.
    """

    best: tuple[Choice, ...]
    beyond: tuple[Choice, ...]
    refused: Tally


def is_on_means(question: Question) -> bool:
    """Whether plans of a question are judged on means, as they are while a search runs."""
    return question.scenario.sla_pct == MEDIAN


def kept(question: Question, top: int) -> int:
    """How many choices a search keeps so that enough hold."""
    return top if is_on_means(question) else TIMES_MORE * top


def judged(question: Question, found: Sequence[Choice], top: int) -> Judged:
    """Choices of a search as they come to at the percentile, at most `top` of either sort; as they are at P50.

    The plan of a choice is sized by queue theory at its percentile, so its replicas may be more than the search counted.
    """
    if is_on_means(question):
        return Judged(tuple(found), (), Counter())
    valued = [_valued(question, each) for each in found]
    standing = [each for each in valued if holds(question, each)]
    others = [each for each in valued if not holds(question, each)]
    ordered = sorted(standing, key=lambda each: _less(question, each.value))
    return Judged(
        best=tuple(ordered[at] for at in first_places(ordered, top)),
        beyond=tuple(sorted(others, key=_nearness)[:top]),
        refused=Counter(BEYOND if each.outcome.stands else QUEUES for each in others),
    )


def holds(question: Question, choice: Choice) -> bool:
    """Whether the plan of a choice keeps the promise at its percentile, within the question's GPUs and limits."""
    return choice.outcome.stands and allowed(question, choice) and not math.isnan(choice.value)


def allowed(question: Question, choice: Choice) -> bool:
    """Whether the plan of a choice, sized at its percentile, is within the question's GPUs and limits."""
    gpus = choice.outcome.gpus
    return (gpus is None or gpus <= question.max_gpus) and all(_kept(limit, choice) for limit in question.limits)


def _valued(question: Question, choice: Choice) -> Choice:
    """A choice with its plan's value; not a number where the plan does not stand."""
    row = choice.outcome
    field = question.objective if question.aim is None else question.aim.field
    value: float | None = getattr(row, field, choice.value) if row.stands else None
    if value is None:
        return replace(choice, value=math.nan)
    many = field in LARGEST and question.aim is None
    return replace(choice, value=value * ((row.replicas or 0.0) - choice.scenario.spare) if many else value)


def _less(question: Question, value: float) -> float:
    """A value made so that less is better."""
    largest = question.objective in LARGEST if question.aim is None else not question.aim.at_most
    return -value if largest else value


def _nearness(choice: Choice) -> tuple[bool, float]:
    """By what choices that are left out are ordered; what holds on more comes before what does not hold."""
    row = choice.outcome
    return not row.stands, (row.gpus or 0.0) if row.stands else 0.0


def _kept(limit: Limit, choice: Choice) -> bool:
    """Whether a limit is kept, as far as is known."""
    named = choice.outcome if hasattr(choice.outcome, limit.field) else plan_of(choice.scenario)
    value: float | None = getattr(named, limit.field)
    if value is None:
        return True
    return value <= limit.value if limit.at_most else value >= limit.value
