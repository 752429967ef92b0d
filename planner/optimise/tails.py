"""Choices at the percentile that was promised: a search ranks on means, its best are judged again by queue theory."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from planner.optimise.answer import Choice
from planner.optimise.question import LARGEST, Limit, Question
from planner.promised import MEDIAN


def rejudged(question: Question, best: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The best of a search in the order of what they come to at the percentile; as they are at P50.

    First those that hold within GPUs and limits, then the others in the order of their means. The plan of a choice is sized by
    queue theory at its percentile, so its replicas may be more than the search counted.
    """
    if question.scenario.sla_pct == MEDIAN:
        return best
    worth = [(_worth(question, each), at) for at, each in enumerate(best)]
    ordered = sorted(range(len(best)), key=lambda at: worth[at])
    return tuple(best[at] if worth[at][0] == inf else _valued(question, best[at], worth[at][0]) for at in ordered)


def _valued(question: Question, choice: Choice, value: float) -> Choice:
    """A choice with its value at the percentile."""
    return replace(choice, value=-value if question.objective in LARGEST else value)


def allowed(question: Question, choice: Choice) -> bool:
    """Whether the plan of a choice, sized at its percentile, is within the question's GPUs and limits."""
    gpus = choice.outcome.gpus
    return (gpus is None or gpus <= question.max_gpus) and all(_kept(limit, choice) for limit in question.limits)


def _worth(question: Question, choice: Choice) -> float:
    """What a choice comes to, made so that less is better; infinite where it does not hold or asks for too much."""
    row = choice.outcome
    if not row.stands or not allowed(question, choice):
        return inf
    value: float | None = getattr(row, question.objective)
    if value is None:
        return inf
    if question.objective in LARGEST:
        spare = choice.scenario.spare
        return -value * ((row.replicas or 0.0) - spare)
    return value


def _kept(limit: Limit, choice: Choice) -> bool:
    """Whether a limit is kept, as far as a plan's row says."""
    value: float | None = getattr(choice.outcome, limit.field, None)
    if value is None:
        return True
    return value <= limit.value if limit.at_most else value >= limit.value
