"""What a worker does for the Optimise page; knows nothing of pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.optimise.answer import Answer, Cancelled, Progress
from planner.optimise.break_even import BreakEven, break_even
from planner.optimise.question import Question
from planner.optimise.search import optimise
from planner.optimise.sensitivity import Swing, swings
from planner.optimise.shadow import ConstraintPrice, Relaxation, prices, relaxations
from planner.specs.scenario import Scenario
from planner.ui.worker import Report, Stop

TOP: Final = 10
"""Kinds that the page lists."""

STEPS: Final = 4


@dataclass(frozen=True)
class Weighed:
    """What stands around an answer.

    Attributes:
        prices: of the constraints; relaxations: what would make an infeasible question feasible.
        swings: what moves the winner; turn: where prices make the second choice win, None where there is none.
    """

    prices: tuple[ConstraintPrice, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    swings: tuple[Swing, ...] = ()
    turn: BreakEven | None = None


def ready(_: None, report: Report, stop: Stop) -> None:
    """Answer a small question, so that a worker has read and imported what the first reader would wait for."""
    search(Question(scenario=Scenario(weights="fp8")), report, stop)


def search(question: Question, report: Report, stop: Stop) -> Answer:
    """The answer to a question."""
    return optimise(question, report, stop, TOP)


def weigh(answer: Answer, report: Report, stop: Stop) -> Weighed:
    """What the constraints of an answer cost and what moves it, or which constraints to relax."""
    steps = iter(range(STEPS))

    def step() -> None:
        if stop():
            raise Cancelled("no longer wanted")
        report(Progress(next(steps), STEPS, 0, None))

    step()
    if answer.winner is None:
        return Weighed(relaxations=relaxations(answer.question, stop))
    moved = swings(answer.winner.scenario, answer.question.objective)
    step()
    turn = break_even(answer.best[0].scenario, answer.best[1].scenario) if len(answer.best) > 1 else None
    step()
    return Weighed(prices(answer, stop), (), moved, turn)
