"""Long work away from the pages: in another process, with progress, cancel, a time limit and a short queue.

What is shared with the workers is a board of plain numbers, so that asking how far a job is never waits for it, and a
session that goes away leaves nothing behind. On a machine that cannot start processes a thread does the work.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import streamlit as st

from planner.errors import HeadroomError
from planner.optimise.answer import Progress
from planner.ui import optimise_tasks, worker
from planner.ui.worker import BEGAN, CELLS, SEEN, STOP, Board, Finished, Slot, Task

MOST_WORKERS: Final = 4
MOST_JOBS: Final = 16
"""Jobs that may run or wait at a time, of all sessions together."""

CELL_COUNT: Final = MOST_JOBS * len(CELLS)


class BusyError(HeadroomError):
    """Too many jobs wait already."""


@dataclass(frozen=True)
class Job:
    """A job of a session, and the subject that its answer belongs to."""

    subject: Any
    started: float
    slot: Slot
    future: Future[Finished]

    @property
    def running(self) -> bool:
        """Whether there is something to wait for."""
        return not self.future.done()

    @property
    def waiting(self) -> bool:
        """Whether no worker has begun it."""
        return self.running and not self.slot.read(BEGAN)

    def progress(self) -> Progress:
        """How far it is; asking also says that somebody still waits for it."""
        self.slot.write(SEEN, time.time())
        return self.slot.progress()

    def cancel(self) -> None:
        """Stop it, soon."""
        if self.running:
            self.slot.write(STOP, 1.0)
            self.future.cancel()

    def wait(self, seconds: float) -> bool:
        """Give it a little time; whether it is finished then."""
        try:
            self.future.exception(seconds)
        except (TimeoutError, CancelledError):
            return not self.running
        return True

    def finished(self) -> Finished:
        """What came of it, once it no longer runs.

        Raises:
            Exception: what the task raised, when it is a fault of the program.
        """
        try:
            return self.future.result(0)
        except CancelledError:
            return Finished("cancelled")
        except BrokenExecutor:
            return Finished("broken")


@dataclass
class Crew:
    """Workers with the board that they share, and its free slots."""

    executor: Executor
    board: Board
    entry: Callable[[Task, Any, Slot], Future[Finished]]
    free: list[int] = field(default_factory=lambda: list(range(MOST_JOBS)))

    def start(self, task: Task, subject: Any) -> Job:
        """Begin a job, or put it into the queue."""
        slot = Slot(self.board, self.free.pop())
        slot.clear()
        try:
            future = self.entry(task, subject, slot)
        except (OSError, BrokenExecutor):
            self.free.append(slot.at)
            raise
        future.add_done_callback(lambda _: self.free.append(slot.at))
        return Job(subject, time.time(), slot, future)

    def close(self) -> None:
        """Stop every job and let the workers go."""
        for at in range(MOST_JOBS):
            Slot(self.board, at).write(STOP, 1.0)
        self.executor.shutdown(wait=False, cancel_futures=True)


def processes(count: int) -> Crew:
    """Workers in processes of their own, which start with their first job."""
    context = multiprocessing.get_context("spawn")
    board = context.RawArray("d", CELL_COUNT)
    executor = ProcessPoolExecutor(count, context, initializer=worker.enter, initargs=(board,))
    return Crew(executor, board, lambda task, subject, slot: executor.submit(worker.run_here, task, subject, slot.at))


def thread() -> Crew:
    """One worker in a thread of this process."""
    executor = ThreadPoolExecutor(1, thread_name_prefix="search")
    return Crew(executor, [0.0] * CELL_COUNT, lambda *job: executor.submit(worker.run, *job))


class Workshop:
    """Where sessions have long work done."""

    def __init__(self, workers: int) -> None:
        """Hire workers: so many processes; 0 = a thread."""
        self._lock = threading.Lock()
        self._crew = processes(workers) if workers else thread()
        self._workers = workers
        self._proof: list[Job] = []
        self._proven = False

    def prove(self, task: Task) -> None:
        """Have every worker do something, so that they are there, warm, when somebody needs them."""
        self._proof = [self.start(task, None) for _ in range(max(1, self._workers))]

    def start(self, task: Task, subject: Any) -> Job:
        """Begin a job, or put it into the queue.

        Raises:
            BusyError: when too many wait.
        """
        with self._lock:
            self._mend()
            if not self._crew.free:
                raise BusyError("too many searches wait: try again in a minute")
            try:
                return self._crew.start(task, subject)
            except (OSError, BrokenExecutor):
                self._replace()
                return self._crew.start(task, subject)

    def _mend(self) -> None:
        """Learn from the proof whether processes work on this machine."""
        if self._proof and not any(job.running for job in self._proof):
            self._proven = any(job.finished().status == "done" for job in self._proof)
            self._proof = []
            if not self._proven:
                self._replace()

    def _replace(self) -> None:
        """New workers for broken ones; a thread where no process ever answered."""
        self._crew.close()
        self._crew = processes(self._workers) if self._workers and self._proven else thread()

    def close(self) -> None:
        """Stop everything."""
        self._crew.close()


def count() -> int:
    """Worker processes of this machine; two at least, so that no search waits for what is worked out around another."""
    return min(MOST_WORKERS, max(2, os.cpu_count() or 1))


@st.cache_resource(show_spinner=False)
def workshop() -> Workshop:
    """The one workshop of this server."""
    made = Workshop(count())
    made.prove(optimise_tasks.ready)
    return made
