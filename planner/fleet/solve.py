"""The best mix of a task: HiGHS, called once for each thing that is made best, in turn, so that ties have one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Final, TypeAlias

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from planner.fleet.programme import Columns, Loosened, programme
from planner.fleet.rows import Array, Programme
from planner.fleet.task import Task

SECONDS: Final = 10.0
"""Longest time for a mix."""

KEEP: Final = 1e-7
"""Share by which what was made best before may be given up for what is made best next: rounding, not money."""

Terms: TypeAlias = Mapping[int, float]
Objective: TypeAlias = Callable[[Task, Columns, Array], Terms]
"""What is made small, given the best values so far."""


@dataclass(frozen=True)
class Stop:
    """How the solver stopped.

    Attributes:
        proven: whether nothing is better, to the solver's tolerance.
        settled: whether everything that settles ties was made best too.
        gap: share by which something better may exist; 0 where none does.
        seconds: what it took.
    """

    proven: bool
    settled: bool
    gap: float
    seconds: float


@dataclass(frozen=True)
class Mix:
    """Replicas of each offer of a task, GPUs beyond the loosened limits in their order, and how the solver stopped."""

    counts: tuple[int, ...]
    beyond: tuple[int, ...]
    stop: Stop


@dataclass(frozen=True)
class _Found:
    """What one call found: values of all variables (none = empty), whether proven, whether impossible, the gap."""

    values: Array
    proven: bool
    impossible: bool
    gap: float


class UndecidedError(Exception):
    """The time was over before any mix was found, or before it was proven that there is none."""


def solve(
    task: Task, loosened: frozenset[Loosened] = frozenset(), seconds: float = SECONDS, *, ties: bool = True
) -> Mix | None:
    """The best mix; None where it is proven that there is none.

    Made best in turn: GPUs beyond the loosened limits (few), good tokens (many, unless all traffic must be served), dollars,
    GPUs, replicas, then the places of the offers in the task (early ones). What was made best stays as it is.

    Args:
        task: what is asked.
        loosened: limits that may be exceeded.
        seconds: the longest time that it may take.
        ties: whether GPUs, replicas and places are made best too, so that equal bills have one answer.

    Raises:
        UndecidedError: when the time is over with nothing found.
    """
    began, made = perf_counter(), programme(task, loosened)
    first, *others = _objectives(task, made, ties)
    found = _minimum(made.programme, first(task, made, np.empty(0)), seconds)
    if found.impossible:
        return None
    if not found.values.size:
        raise UndecidedError
    values, settled = found.values, found.proven
    for objective in others:
        left = seconds - (perf_counter() - began)
        next_ = _minimum(made.programme, objective(task, made, values), left) if settled and left > 0 else None
        settled = next_ is not None and next_.proven
        values = next_.values if next_ is not None and next_.values.size else values
    stop = Stop(found.proven, settled, found.gap, perf_counter() - began)
    return Mix(_whole(values, made.count), _whole(values, made.beyond), stop)


def _whole(values: Array, columns: tuple[int, ...]) -> tuple[int, ...]:
    """Values of whole-number columns without the solver's tolerance."""
    return tuple(round(float(values[column])) for column in columns)


def _objectives(task: Task, made: Columns, ties: bool) -> list[Objective]:
    """What is made small, in turn."""
    loose: list[Objective] = [_beyond] if made.beyond else []
    tokens: list[Objective] = [] if task.whole else [_unserved]
    return [*loose, *tokens, _dollars, *((_gpus, _replicas) if ties else ())]


def _beyond(task: Task, made: Columns, values: Array) -> Terms:  # noqa: ARG001
    """GPUs beyond the loosened limits."""
    return dict.fromkeys(made.beyond, 1.0)


def _unserved(task: Task, made: Columns, values: Array) -> Terms:  # noqa: ARG001
    """Good tokens, with the sign turned."""
    tokens = [demand.qps * demand.tokens for demand in task.demands]
    return {column: -each / max(tokens) for column, each in zip(made.share, tokens, strict=True)}


def _dollars(task: Task, made: Columns, values: Array) -> Terms:  # noqa: ARG001
    """The bill, scaled so that the solver's absolute tolerances mean the same for cents and for fortunes."""
    largest = max(made.dollars.values(), default=1.0)
    return {column: value / largest for column, value in made.dollars.items()}


def _gpus(task: Task, made: Columns, values: Array) -> Terms:  # noqa: ARG001
    """GPUs, whole instances counted."""
    return {column: float(shelf.instance) for column, shelf in zip(made.instances, task.shelves, strict=True)}


def _replicas(task: Task, made: Columns, values: Array) -> Terms:
    """Replicas, then their places: a place weighs so little that all places together weigh less than one replica."""
    light = 1.0 / (1.0 + len(task.offers) * sum(_whole(values, made.count)))
    return {column: 1.0 + at * light for at, column in enumerate(made.count)}


def _minimum(made: Programme, terms: Terms, seconds: float) -> _Found:
    """The least of an objective by HiGHS; from then on it is held."""
    matrix, low, high = made.matrix()
    row = made.row(terms)
    found = milp(
        row,
        integrality=np.array(made.whole, dtype=int),
        bounds=Bounds(np.array(made.low), np.array(made.high)),
        constraints=LinearConstraint(matrix, low, high),
        options={"mip_rel_gap": 0.0, "time_limit": max(seconds, 0.05)},
    )
    values = np.empty(0) if found.x is None else np.asarray(found.x, dtype=np.float64)
    if values.size and terms:
        best = float(row @ values)
        made.require(terms, high=best + KEEP * max(1.0, abs(best)))
    gap = float(found.mip_gap) if found.mip_gap is not None else 0.0
    return _Found(values, found.status == 0, found.status == 2, gap)
