"""The worker's side of long work: a board of shared numbers, and how a task runs beside it. Knows nothing of pages."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from planner.errors import HeadroomError
from planner.optimise.answer import Cancelled, Progress
from planner.optimise.second import end_with_parent

Report: TypeAlias = Callable[[Progress], None]
Stop: TypeAlias = Callable[[], bool]
Task: TypeAlias = Callable[[Any, Report, Stop], Any]
"""Work on one subject: a function that a worker can import; it says how far it is and asks whether to stop."""

Status: TypeAlias = Literal["done", "cancelled", "late", "refused", "broken"]

Board: TypeAlias = Any
"""Shared numbers, `CELLS` of each slot: seconds since the epoch, counts, and the best value (not a number: none yet)."""

CELLS: Final = ("stop", "seen", "began", "done", "total", "considered", "best")
STOP, SEEN, BEGAN, DONE, TOTAL, CONSIDERED, BEST = range(len(CELLS))

LONGEST: Final = 120.0
"""Wall time that a job may take, from its beginning [s]."""

ABANDONED: Final = 30.0
"""A job that nobody has asked about for so long stops [s]."""

POLITE: Final = 10
"""Niceness of a worker: pages come first."""


@dataclass(frozen=True)
class Finished:
    """What a worker hands back: a value, or why there is none."""

    status: Status
    value: Any = None
    reason: str = ""


@dataclass(frozen=True)
class Slot:
    """One job's numbers on a board."""

    board: Board
    at: int

    def clear(self) -> None:
        """Make it ready for a new job."""
        self.write(STOP, 0.0, time.time(), 0.0, 0.0, 0.0, 0.0, math.nan)

    def write(self, cell: int, *values: float) -> None:
        """Set cells from one on."""
        start = self.at * len(CELLS) + cell
        self.board[start : start + len(values)] = list(values)

    def read(self, cell: int) -> float:
        """One cell."""
        return float(self.board[self.at * len(CELLS) + cell])

    def progress(self) -> Progress:
        """How far the job is."""
        best = self.read(BEST)
        done, total, considered = (int(self.read(cell)) for cell in (DONE, TOTAL, CONSIDERED))
        return Progress(done, total, considered, None if math.isnan(best) else best)

    def report(self, progress: Progress) -> None:
        """Write down how far the job is."""
        best = math.nan if progress.best is None else progress.best
        self.write(DONE, progress.done, progress.total, progress.considered, best)

    def late(self) -> bool:
        """Whether the job has had its time."""
        began = self.read(BEGAN)
        return began > 0 and time.time() - began > LONGEST

    def must_stop(self) -> bool:
        """Whether the job was cancelled, has had its time, or is nobody's any more."""
        return bool(self.read(STOP)) or self.late() or time.time() - self.read(SEEN) > ABANDONED


def run(task: Task, subject: Any, slot: Slot) -> Finished:
    """Run a task; a refusal comes back as words, because not every error survives the way between processes."""
    slot.write(BEGAN, time.time())
    try:
        if slot.must_stop():
            return Finished("cancelled")
        return Finished("done", task(subject, slot.report, slot.must_stop))
    except Cancelled:
        return Finished("late" if slot.late() else "cancelled")
    except HeadroomError as error:
        return Finished("refused", reason=str(error))


_own: list[Board] = []
"""The board of this worker process."""


def enter(board: Board) -> None:
    """A worker process begins: it yields to the pages, and ends when they do."""
    _own.append(board)
    if hasattr(os, "nice"):
        os.nice(POLITE)
    end_with_parent()


def run_here(task: Task, subject: Any, at: int) -> Finished:
    """Run a task in a worker process, beside a slot of its board."""
    return run(task, subject, Slot(_own[0], at))
