"""Parts of a search shared with other processes: they take from the end of the list what this one has not reached yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Any, Final, TypeVar

R = TypeVar("R")

AHEAD: Final = 5
"""Parts that are handed over before their time, so that a worker never waits for the next."""

LOOK: Final = 0.05
"""How often this process looks up when it has nothing left to do itself [s]."""


def shared_out(
    work: Callable[..., R], parts: Sequence[tuple[Any, ...]], executor: Executor | None
) -> Iterator[tuple[int, R | None]]:
    """Every part's index with its result, as they come; (−1, None) while others are waited for.

    Args:
        work: a function that an executor's workers can import.
        parts: its arguments, part by part.
        executor: who shares the work; None = nobody. A worker that is lost leaves its parts to this process.
    """
    waiting, sent = deque(range(len(parts))), dict[Future[R], int]()
    while waiting or sent:
        while executor is not None and waiting and len(sent) < AHEAD:
            try:
                sent[executor.submit(work, *parts[waiting[-1]])] = waiting[-1]
                waiting.pop()
            except (BrokenExecutor, RuntimeError):  # a pool that has broken, or was shut down, takes nothing more
                executor = None
        for future in [each for each in sent if each.done()]:
            at = sent.pop(future)
            try:
                yield at, future.result()
            except BrokenExecutor:
                executor = None
                waiting.append(at)
        if waiting:
            at = waiting.popleft()
            yield at, work(*parts[at])
        elif sent:
            wait(sent, timeout=LOOK, return_when=FIRST_COMPLETED)
            yield -1, None
