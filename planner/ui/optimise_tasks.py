"""What a worker does for the Optimise page; knows nothing of pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.optimise import verified
from planner.optimise.answer import Answer, Cancelled
from planner.optimise.break_even import BreakEven, break_even
from planner.optimise.question import Question
from planner.optimise.search import optimise
from planner.optimise.second import helper_for
from planner.optimise.sensitivity import Swing, swings
from planner.optimise.shadow import ConstraintPrice, Relaxation, prices, relaxations
from planner.optimise.verified import Verified
from planner.specs.scenario import Scenario
from planner.ui.worker import Report, Stop

TOP: Final = 10
"""Kinds that the page lists."""


@dataclass(frozen=True)
class Weighed:
    """The price of each constraint of an answer, or what would make an infeasible question feasible."""

    prices: tuple[ConstraintPrice, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()


@dataclass(frozen=True)
class Moved:
    """What moves the winner, and where prices make the second choice win; None where there is no second."""

    swings: tuple[Swing, ...] = ()
    turn: BreakEven | None = None


def ready(_: None, report: Report, stop: Stop) -> None:
    """Answer a small question, so that a worker has read and imported what the first reader would wait for."""
    search(Question(scenario=Scenario(weights="fp8")), report, stop)


def search(question: Question, report: Report, stop: Stop) -> Answer:
    """The answer to a question."""
    return optimise(question, report, stop, TOP, helper_for(question))


def weigh(answer: Answer, _: Report, stop: Stop) -> Weighed:
    """What the constraints of an answer cost, or which of them to relax; each is a search of its own."""
    if answer.winner is None:
        return Weighed(
            relaxations=relaxations(answer.question, stop, helper_for(answer.question), beyond=answer.beyond)
        )
    return Weighed(prices(answer, stop, helper_for(answer.question)))


def verify(answer: Answer, report: Report, stop: Stop) -> Verified:
    """Whether the best of an answer hold when their traffic is simulated."""
    return verified.verify(answer, on_progress=report, cancelled=stop)


def move(answer: Answer, _: Report, stop: Stop) -> Moved:
    """What moves the winner of an answer."""
    if answer.winner is None:
        return Moved()
    if stop():
        raise Cancelled("no longer wanted")
    second = answer.second
    turn = None if second is None else break_even(answer.winner.scenario, second.scenario)
    return Moved(swings(answer.winner.scenario, answer.question.objective), turn)
