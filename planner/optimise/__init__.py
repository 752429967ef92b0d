"""Search: which accelerator, precision and layout costs least a good token, by how much, and what would change it.

`optimise(question)` asks for one answer, `optimise.sweep(scenarios, executor=…)` for thousands: the package is what it does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor
from types import ModuleType

from planner.optimise.answer import Answer, Progress
from planner.optimise.question import Limit, Question
from planner.optimise.search import optimise
from planner.optimise.sweep import sweep

__all__ = ["Answer", "Limit", "Progress", "Question", "optimise", "sweep"]


class _Search(ModuleType):
    """The package, which can be called."""

    def __call__(
        self,
        question: Question,
        on_progress: Callable[[Progress], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        top: int = 10,
        executor: Executor | None = None,
    ) -> Answer:
        """As `planner.optimise.search.optimise`."""
        return optimise(question, on_progress, cancelled, top, executor)


sys.modules[__name__].__class__ = _Search
