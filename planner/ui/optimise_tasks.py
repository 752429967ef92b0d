"""What a worker does for the Optimise page; knows nothing of pages."""

from __future__ import annotations

from dataclasses import dataclass

from planner.optimise.answer import Answer, Cancelled
from planner.optimise.question import Question
from planner.optimise.search import optimise
from planner.optimise.shadow import ConstraintPrice, Relaxation, prices, relaxations
from planner.ui.worker import Report, Stop

TOP = 10
"""Kinds that the page lists."""


@dataclass(frozen=True)
class Weighed:
    """What stands around an answer: the price of each constraint, or what would make the question feasible."""

    prices: tuple[ConstraintPrice, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()


def search(question: Question, report: Report, stop: Stop) -> Answer:
    """The answer to a question."""
    return optimise(question, report, stop, TOP)


def weigh(answer: Answer, report: Report, stop: Stop) -> Weighed:
    """What the constraints of an answer cost, or which of them to relax."""
    if stop():
        raise Cancelled("not begun")
    if answer.winner is None:
        return Weighed(relaxations=relaxations(answer.question))
    return Weighed(prices=prices(answer))
