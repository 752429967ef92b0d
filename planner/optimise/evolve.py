"""Differential evolution: a good plan of a space too large to list, and how the search for it ended.

Whole populations are evaluated as columns by the functions that make every other plan. Nothing is proven: what is found
is the best that was looked at, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations, cycle
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np

from planner.optimise.answer import Cancelled, Choice, Progress
from planner.optimise.fitness import REFUSED, Fitness, fitness
from planner.optimise.question import Question
from planner.optimise.ranges import Space
from planner.optimise.words import kind_words
from planner.optimise.worth import value_of
from planner.plan import Column
from planner.setting import resolve
from planner.variants import outcome

Stop: TypeAlias = Literal["agreed", "generations", "rows", "nothing varies"]
"""How a search ended."""

AGREED: Final = 3
"""Runs from different starting points that must end at the same best value for a search to end early."""

REASONS: Final[dict[Stop, str]] = {
    "agreed": f"{AGREED} runs from different starting points ended at the same value",
    "generations": "the budget of generations and runs was used up",
    "rows": "the budget of candidates was used up",
    "nothing varies": "nothing varies: the only candidate was looked at",
}

MEMBERS: Final = 15
"""Candidates of a population for each thing that varies."""


TOGETHER: Final = 3
"""Axes over which a walk moves at once: more memory helps only with a larger batch, and that only with more workers."""

MOST_MOVES: Final = 1 << 13
"""Candidates that some axes may have together for a walk to look at all of them."""


@dataclass(frozen=True)
class Budget:
    """When a search ends at the latest.

    Attributes:
        generations: populations of one run; runs: runs from new starting points; rows: candidates evaluated in all.
    """

    generations: int = 30
    runs: int = 8
    rows: int = 200_000


@dataclass(frozen=True)
class Evolved:
    """What evolution found.

    Attributes:
        best: the best plan that was looked at; None = none that stands was met.
        stopped: how the search ended; reason: the same as a sentence.
        generations, rows, runs: how much was looked at, over all runs.
        agreed: runs that ended at the best value.
        seed: repeats the search exactly.
        proven: always false, unlike in an exhaustive search: not every candidate was looked at.
    """

    best: Choice | None
    stopped: Stop
    reason: str
    generations: int
    rows: int
    runs: int
    agreed: int
    seed: int
    proven: bool = field(default=False, init=False)


WHOLE_BUDGET: Final = Budget()


def evolve(
    question: Question,
    space: Space,
    seed: int = 0,
    budget: Budget = WHOLE_BUDGET,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Evolved:
    """Search a space around a scenario of one accelerator and one precision.

    Each run is a differential evolution, and from its best candidate on a walk along one axis, or over two or three, until
    none helps. Of 60 such searches of ten spaces whose best is known, all came within 1 % of it.

    Args:
        question: scenario, objective, GPUs that there are, further limits; its lists may name one value each.
        space: what varies; degrees come from its menus, not from the scenario.
        seed: of the random numbers; equal seeds give equal answers.
        budget: when to stop at the latest; a walk that has begun is finished.
        on_progress: called after each generation; cancelled: asked before each population.

    Raises:
        InputError: for a question of several accelerators or precisions, or a space that is none.
        Cancelled: when `cancelled` says so.
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    search = _Search(fitness(question, space), budget, on_progress, cancelled)
    if not search.fitness.axes:
        return search.answer([np.zeros(0)], "nothing varies", seed)
    return search.run(seed)


class _Search:
    """One search, and how much it has looked at so far."""

    def __init__(
        self,
        judge: Fitness,
        budget: Budget,
        on_progress: Callable[[Progress], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self.fitness, self.budget = judge, budget
        self.on_progress, self.cancelled = on_progress, cancelled
        self.rows, self.generations, self.runs = 0, 0, 0

    def run(self, seed: int) -> Evolved:
        """Runs from new starting points until a budget is used up."""
        ends: list[tuple[float, Column]] = []
        stopped: Stop = "generations"
        while self.runs < self.budget.runs and stopped == "generations":
            found = self._evolve(np.random.default_rng((seed, self.runs)))
            ends.append(self._walk(np.asarray(found.x), float(found.fun)))
            self.runs += 1
            stopped = self._stopped([energy for energy, _ in ends])
        return self.answer([at for _, at in ends], stopped, seed)

    def _evolve(self, random: np.random.Generator) -> Any:
        """One run of SciPy's differential evolution."""
        from scipy import optimize

        axes, smallest = self.fitness.axes, cast(Any, optimize.differential_evolution)
        return smallest(
            self._energies,
            [(axis.low, axis.high) for axis in axes],
            integrality=[axis.whole for axis in axes],
            strategy="rand1bin",
            maxiter=self.budget.generations,
            popsize=MEMBERS,
            tol=1e-6,
            rng=random,
            callback=self._generation,
            polish=False,
            updating="deferred",
            vectorized=True,
        )

    def _stopped(self, energies: list[float]) -> Stop:
        """How the search ended with its last run; "generations" where it may go on."""
        if self.rows >= self.budget.rows:
            return "rows"
        agreed = int(np.sum(np.isclose(energies, min(energies), rtol=1e-9)))
        return "agreed" if agreed >= AGREED and min(energies) < REFUSED else "generations"

    def _energies(self, numbers: Column) -> Column:
        """What is made small, for a population of shape (axes, n)."""
        if self.cancelled is not None and self.cancelled():
            raise Cancelled("the search was stopped")
        self.rows += numbers.shape[1]
        return self.fitness.energies(numbers)

    def _generation(self, intermediate_result: Any) -> bool:
        """After each generation: tell how far the search is; true ends it."""
        self.generations += 1
        if self.on_progress is not None:
            total, best = self.budget.generations * self.budget.runs, float(intermediate_result.fun)
            known = None if best >= REFUSED else self.fitness.sign * best
            self.on_progress(Progress(min(self.generations, total), total, self.rows, known))
        return self.rows >= self.budget.rows

    def _walk(self, start: Column, energy: float) -> tuple[float, Column]:
        """From a candidate along one axis at a time, then over two and three, to the best there, until nothing helps."""
        axes = range(len(self.fitness.axes))
        moves = [move for count in range(1, TOGETHER + 1) for move in combinations(axes, count)]
        at, since = start, 0
        for move in cycle(moves):
            found = self._best(at, move)
            since = 0 if found[1] < energy else since + 1
            at, energy = found if found[1] < energy else (at, energy)
            if since >= len(moves):
                break
        return energy, at

    def _best(self, at: Column, move: tuple[int, ...]) -> tuple[Column, float]:
        """The best candidate that differs in these axes alone, and its energy."""
        numbers = [self.fitness.axes[index].numbers(float(at[index])) for index in move]
        grid = [axis.reshape(-1) for axis in np.meshgrid(*numbers, indexing="ij")]
        if len(grid[0]) > MOST_MOVES:
            return at, np.inf
        tried = np.repeat(at[:, None], len(grid[0]), axis=1)
        tried[list(move)] = grid
        energies = self._energies(tried)
        best = int(np.argmin(energies))
        return tried[:, best], float(energies[best])

    def answer(self, ends: list[Column], stopped: Stop, seed: int) -> Evolved:
        """The best end of all runs, as a plan like any other."""
        sign = self.fitness.sign
        choices = [choice for choice in map(self._choice, ends) if choice is not None]
        best = min(choices, key=lambda choice: sign * choice.value, default=None)
        agreed = sum(best is not None and bool(np.isclose(choice.value, best.value)) for choice in choices)
        return Evolved(best, stopped, REASONS[stopped], self.generations, self.rows, self.runs, agreed, seed)

    def _choice(self, numbers: Column) -> Choice | None:
        """The plan that a candidate is; None where it does not stand."""
        if self._energies(numbers[:, None])[0] >= REFUSED:
            return None
        scenario = self.fitness.scenario(numbers)
        value, _ = value_of(resolve(scenario), self.fitness.question.objective)
        return None if value is None else Choice(scenario, kind_words(scenario), value, outcome(scenario))
