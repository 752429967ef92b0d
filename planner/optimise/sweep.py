"""Sweeps: thousands of scenarios or questions, on any `concurrent.futures.Executor`; same answers as one after the other.

Work is sent in batches, because sending one scenario costs a good part of planning it. What goes wrong with one item is
that item's error; the sweep goes on. A batch that is lost (a worker died, an item could not be sent) is sent again item by
item, so that only those that cannot be worked out are left without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from planner.errors import Fault, HeadroomError, InputError
from planner.optimise.answer import Answer, Cancelled, Progress
from planner.optimise.draws import Draw, monte_carlo
from planner.optimise.question import Question
from planner.optimise.search import optimise
from planner.specs.fields import shown
from planner.specs.scenario import Scenario
from planner.variants import Outcome, outcome

__all__ = ["Draw", "Quantiles", "Swept", "monte_carlo", "quantiles", "sweep"]

Item: TypeAlias = Scenario | Question

SCENARIOS: Final = 64
"""Scenarios of a batch: some tenths of a second of work."""

QUESTIONS: Final = 1
"""Questions of a batch: each is a search of its own."""

ITEM_ERRORS: Final = (
    HeadroomError, ArithmeticError, ImportError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What an item may raise without taking its batch along."""


@dataclass(frozen=True)
class Swept:
    """What became of one item.

    Attributes:
        item: as it was given.
        outcome: row of a scenario's plan; answer: of a question; the other one is None, and both where there is an error.
        error: why there is neither; empty where there is one. A plan that does not stand is an outcome, not an error.
    """

    item: Item
    outcome: Outcome | None = None
    answer: Answer | None = None
    error: str = ""


def sweep(
    items: Iterable[Item],
    executor: Executor | None = None,
    batch: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[Swept, ...]:
    """Work out many scenarios or questions.

    Args:
        items: scenarios (each gives the row of its plan) and questions (each gives the answer of a search).
        executor: threads, processes, a cluster: any executor; None = one after the other, here. It is not shut down.
        batch: items sent at a time; None = 64 scenarios, or one question.
        on_progress: called as batches come back: items done and in all. `best` is not tracked.
        cancelled: asked as batches come back; what has not begun is then withdrawn.

    Returns:
        What became of each item, in the order given.

    Raises:
        Cancelled: when `cancelled` says so.
        InputError: for batches of less than one item.
    """
    given = tuple(items)
    if batch is not None and batch < 1:
        raise InputError((Fault("batch", shown(batch), "must be a whole number of 1 or more"),))
    done: dict[int, tuple[Swept, ...]] = {}
    total, count = len(given), 0
    for start, found in _results(tuple(_batches(given, batch)), executor, cancelled):
        done[start] = found
        count += len(found)
        if on_progress is not None:
            on_progress(Progress(count, total, count, None))
    return tuple(each for start in sorted(done) for each in done[start])


Batch: TypeAlias = tuple[int, tuple[Item, ...]]
"""Place of the first item, and items."""


def _batches(given: tuple[Item, ...], batch: int | None) -> Iterator[Batch]:
    """Items in batches, in order."""
    size = batch or (QUESTIONS if any(isinstance(item, Question) for item in given) else SCENARIOS)
    return ((start, given[start : start + size]) for start in range(0, len(given), size))


def _results(
    batches: tuple[Batch, ...], executor: Executor | None, cancelled: Callable[[], bool] | None
) -> Iterator[tuple[int, tuple[Swept, ...]]]:
    """Results of batches as they come, each with its place."""
    if executor is None:
        for start, items in batches:
            _check(cancelled, ())
            yield start, worked(items)
        return
    sent = {_send(executor, items): (start, items) for start, items in batches}
    for future in as_completed(sent):
        _check(cancelled, sent)
        start, items = sent[future]
        lost = _lost(future)
        yield start, future.result() if lost is None else _again(executor, items, lost)


def _check(cancelled: Callable[[], bool] | None, sent: Iterable[Future[Any]]) -> None:
    """Stop where somebody asks for it, and withdraw what has not begun."""
    if cancelled is not None and cancelled():
        for future in sent:
            future.cancel()
        raise Cancelled("the sweep was stopped")


def worked(items: tuple[Item, ...]) -> tuple[Swept, ...]:
    """What becomes of some items, one after the other: what a worker runs."""
    return tuple(map(_worked, items))


def _worked(item: Item) -> Swept:
    """What becomes of one item."""
    try:
        if isinstance(item, Scenario):
            return Swept(item, outcome(item))
        return Swept(item, answer=optimise(item))
    except ITEM_ERRORS as error:
        return Swept(item, error=_told(error))


def _told(error: BaseException) -> str:
    """An error as a sentence; ours speak for themselves."""
    return str(error) if isinstance(error, HeadroomError) else f"{type(error).__name__}: {error}"


def _send(executor: Executor, items: tuple[Item, ...]) -> Future[tuple[Swept, ...]]:
    """A batch on its way; one that an executor no longer takes is lost from the start."""
    try:
        return executor.submit(worked, items)
    except BrokenExecutor as error:
        future: Future[tuple[Swept, ...]] = Future()
        future.set_exception(error)
        return future


def _lost(future: Future[tuple[Swept, ...]]) -> BaseException | None:
    """Why a batch did not come back; None where it did."""
    try:
        return future.exception()
    except CancelledError as error:
        return error


def _again(executor: Executor, items: tuple[Item, ...], why: BaseException) -> tuple[Swept, ...]:
    """A lost batch item by item; whoever is lost again has an error."""
    if len(items) == 1:
        return (Swept(items[0], error=_told(why)),)
    sent = [_send(executor, (item,)) for item in items]
    lost = [_lost(future) for future in sent]
    return tuple(
        future.result()[0] if error is None else Swept(item, error=_told(error))
        for item, future, error in zip(items, sent, lost, strict=True)
    )


# --- what comes out ------------------------------------------------------------------------------------------------

SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles that are told."""


@dataclass(frozen=True)
class Quantiles:
    """How a field spreads over a sweep.

    Attributes:
        field: of an outcome; for questions that of the winner.
        shares, values: quantiles and the field there, in its unit; empty where nothing stands.
        known: items in them; fallen: items whose plan does not stand, which are in none; failed: items with an error.
    """

    field: str
    shares: tuple[float, ...]
    values: tuple[float, ...]
    known: int
    fallen: int
    failed: int


def quantiles(
    found: Sequence[Swept], field: str = "usd_per_m_goodput", shares: tuple[float, ...] = SHARES
) -> Quantiles:
    """Quantiles of a field over a sweep, interpolated between neighbours; plans that do not stand are counted apart.

    Raises:
        InputError: for a field that no outcome has, or a share outside of 0 to 1.
    """
    if field not in Outcome.__dataclass_fields__ or Outcome.__dataclass_fields__[field].type in ("str", "bool"):
        raise InputError((Fault("field", shown(field), "must be a number of a plan's row"),))
    if not all(0.0 <= share <= 1.0 for share in shares):
        raise InputError((Fault("shares", ", ".join(map(str, shares)), "must lie between 0 and 1"),))
    rows = [_row(each) for each in found if not each.error]
    values = [
        float(value) for row in rows if row is not None and row.stands and (value := getattr(row, field)) is not None
    ]
    told = tuple(float(value) for value in np.quantile(values, shares)) if values else ()
    return Quantiles(field, shares, told, len(values), len(rows) - len(values), len(found) - len(rows))


def _row(swept: Swept) -> Outcome | None:
    """The row of an item: its own, or its winner's."""
    if swept.answer is None:
        return swept.outcome
    return None if swept.answer.winner is None else swept.answer.winner.outcome
