"""The exhaustive search: every category of a space, every layout, every batch; exact, in blocks, with progress and cancel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np

from planner.optimise.answer import Answer, Cancelled, Progress, Refusals
from planner.optimise.found import Found, joined, kinds, nothing
from planner.optimise.grid import Side, side_of
from planner.optimise.offers import Tally
from planner.optimise.pairing import Pair, exact, pairs
from planner.optimise.question import Question
from planner.optimise.ranking import choices, front
from planner.optimise.sharing import shared_out
from planner.optimise.space import Category, categories
from planner.optimise.tails import judged, kept
from planner.specs.scenario import Scenario

OnProgress = Callable[[Progress], None]


def optimise(
    question: Question,
    on_progress: OnProgress | None = None,
    cancelled: Callable[[], bool] | None = None,
    top: int = 10,
    executor: Executor | None = None,
) -> Answer:
    """Search a whole space and return its best candidates, exactly.

    Args:
        question: what is asked.
        on_progress: told how far the search is after every part of the space.
        cancelled: asked after every part; the search stops where it says yes.
        top: how many choices are returned: the best of every kind first, then further layouts.
        executor: of another process, which then takes part; the answer is the same.

    Raises:
        InputError: for an accelerator that the catalogue does not hold.
        CatalogueError, ModelConfigError: for a model that does not exist or cannot be sized.
        Cancelled: when `cancelled` said so.
    """
    begun = time.perf_counter()
    many = kept(question, top)
    run = Run(question, categories(question), many, on_progress, cancelled)
    run.look(executor)
    run.work_out()
    scenarios = tuple(each.scenario for each in run.space)
    found = judged(question, choices(question, scenarios, joined([nothing(), *run.best]), many), top)
    run.refused.update(found.refused)
    return Answer(
        question=question,
        best=found.best,
        front=front(question, scenarios, joined([nothing(), *run.front])),
        candidates=run.candidates,
        considered=run.considered,
        refused=run.refusals(),
        seconds=time.perf_counter() - begun,
        beyond=found.beyond,
    )


@dataclass
class Run:
    """A search under way: what was found so far, and who is told.

    First every category is looked at on a grid of batches, in any order; then candidates are worked out one after another
    in the order of their bounds, so that the answer does not depend on who was faster.
    """

    question: Question
    space: tuple[Category, ...]
    top: int
    on_progress: OnProgress | None
    cancelled: Callable[[], bool] | None
    best: list[Found] = field(default_factory=list)
    front: list[Found] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    refused: Tally = field(default_factory=Tally)
    leading: dict[int, float] = field(default_factory=dict)
    candidates: int = 0
    considered: int = 0
    done: int = 0

    def look(self, executor: Executor | None) -> None:
        """Every category on the grid."""
        self.told()
        parts = [(each, self.question, at, self.top) for at, each in self._whole()]
        sides: dict[int, Side] = {}
        self.stop()
        for at, side in shared_out(side_of, parts, executor):
            self.stop()
            if side is not None:
                sides[at] = side
                self._see(side)
        for at in sorted(sides):
            self._keep(sides[at])
        self.pairs.sort(key=lambda pair: (float(pair.bound.min()), pair.side.source, pair.number))

    def _whole(self) -> Iterator[tuple[int, Scenario]]:
        """Categories whose values agree with each other, with their place; the others are refused."""
        for at, category in enumerate(self.space):
            if category.scenario is not None:
                yield at, category.scenario
                continue
            self.refused["scenario", category.fault] += 1
            self.candidates += 1
            self.done += 1

    def _see(self, side: Side) -> None:
        """Tell of a category that was looked at."""
        self.considered += side.considered
        self.done += 1
        self._lead(side.best)
        self.told()

    def _keep(self, side: Side) -> None:
        """Keep what a category came to, in the order of the categories."""
        self.pairs.extend(pairs(side, self.question))
        self.best.append(side.best)
        self.front.append(side.front)
        self.refused.update(side.refused)
        self.candidates += side.candidates

    def work_out(self) -> None:
        """Every candidate whose bound may still be shown."""
        for pair in self.pairs:
            if float(pair.bound.min()) > self.threshold():
                break
            for worked in exact(pair, self.question, self.threshold):
                self.stop()
                self.best.append(worked.best)
                self.front.append(worked.front)
                self.considered += worked.considered
                self.refused.update(worked.refused)
                self._lead(worked.best)
                self.told()
        self.done += 1
        self.told()

    def _lead(self, found: Found) -> None:
        """Remember the best value of every kind."""
        for kind, value in zip(kinds(found).tolist(), found.value.tolist(), strict=True):
            if value < self.leading.get(kind, np.inf):
                self.leading[kind] = value

    def stop(self) -> None:
        """Raise where the search was cancelled."""
        if self.cancelled is not None and self.cancelled():
            raise Cancelled("the search was cancelled")

    def threshold(self) -> float:
        """Above this nothing is shown any more: the value of the last kind that is shown."""
        values = sorted(self.leading.values())
        return values[self.top - 1] if len(values) >= self.top else float("inf")

    def told(self) -> None:
        """Say how far the search is; working out the candidates counts as one more part."""
        if self.on_progress is None:
            return
        best = min(self.leading.values(), default=None)
        shown = None if best is None else self.question.shown(best)
        self.on_progress(Progress(self.done, len(self.space) + 1, self.considered, shown))

    def refusals(self) -> tuple[Refusals, ...]:
        """Refused candidates by reason, most first."""
        ordered = sorted(self.refused.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Refusals(rule, reason, count) for (rule, reason), count in ordered)
