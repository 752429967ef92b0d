"""The exhaustive search: every category of a space, every layout, every batch; exact, in blocks, with progress and cancel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from planner.optimise.answer import Answer, Cancelled, Progress, Refusals
from planner.optimise.found import Found, joined, kinds, nothing
from planner.optimise.grid import Side, Tally, side_of
from planner.optimise.pairing import Pair, Pools, exact, pairs
from planner.optimise.question import Question
from planner.optimise.ranking import choices, front
from planner.optimise.space import Category, categories

WORKERS = 2
"""Threads over categories; NumPy releases the interpreter lock inside its loops."""

OnProgress = Callable[[Progress], None]


def optimise(
    question: Question,
    on_progress: OnProgress | None = None,
    cancelled: Callable[[], bool] | None = None,
    top: int = 10,
) -> Answer:
    """Search a whole space and return its best candidates, exactly.

    Args:
        question: what is asked.
        on_progress: told how far the search is after every part of the space.
        cancelled: asked after every part; the search stops where it says yes.
        top: how many choices are returned: the best of every kind first, then further layouts.

    Raises:
        InputError: for an accelerator that the catalogue does not hold.
        CatalogueError, ModelConfigError: for a model that does not exist or cannot be sized.
        Cancelled: when `cancelled` said so.
    """
    begun = time.perf_counter()
    run = Run(question, categories(question), top, on_progress, cancelled)
    run.look()
    run.work_out()
    scenarios = tuple(each.scenario for each in run.space)
    return Answer(
        question=question,
        best=choices(question, scenarios, joined([nothing(), *run.best]), top),
        front=front(question, scenarios, joined([nothing(), *run.front])),
        candidates=run.candidates,
        considered=run.considered,
        refused=run.refusals(),
        seconds=time.perf_counter() - begun,
    )


@dataclass
class Run:
    """A search under way: what was found so far, and who is told.

    First every category is looked at on a grid of batches, two at a time; then candidates are worked out one after
    another in the order of their bounds, so that the answer does not depend on which thread came first.
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
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Every category on the grid."""
        self.told()
        pools = Pools(self.question)
        with ThreadPoolExecutor(WORKERS) as pool:
            sides = [side for side in pool.map(self._side, range(len(self.space))) if side is not None]
            list(pool.map(pools.ready, sides))
        for side in sides:
            self._pair(side, pools)
        self.pairs.sort(key=lambda pair: (float(pair.bound.min()), pair.side.source, pair.number))

    def _side(self, source: int) -> Side | None:
        """One category on the grid; None where its values contradict each other."""
        self.stop()
        category = self.space[source]
        if category.scenario is None:
            with self.lock:
                self.refused["scenario", category.fault] += 1
                self.candidates += 1
            return None
        side = side_of(category.scenario, self.question, source)
        with self.lock:
            self.considered += side.considered
            self.done += 1
            self._lead(side.best)
        self.told()
        return side

    def _pair(self, side: Side, pools: Pools) -> None:
        """A category's candidates, with every prefill pool where it has one."""
        some, tally = pairs(side, self.question, pools)
        self.pairs.extend(some)
        self.best.append(side.best)
        self.front.append(side.front)
        self.refused.update(side.refused)
        self.refused.update(tally)
        apart = side.setting.scenario.prefill == "disaggregated"
        beside = sum(len(pair.bound) for pair in some) + sum(tally.values()) - len(side.least) if apart else 0
        self.candidates += side.candidates + max(beside, 0)

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
