"""The fleet as a mixed-integer programme for HiGHS.

Variables: replicas of each offer, instances of each shelf, the share of each class's demand that is served, failures that a
class must bear, which replicas fail at worst, and GPUs beyond the inventory where these may be asked for.

That a class bears the loss of its k largest replicas is exact and linear. The largest k of a multiset of capacities carry
min over t of (k·t + sum of max(capacity − t, 0)), with t one of the capacities, so what is left carries the demand when for
*some* t

    sum of replicas · min(capacity, t) − k·t ≥ demand,

and one binary a class and t says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from planner.fleet.spares import MOST_REPLICAS, SLACK
from planner.fleet.task import Task

Array: TypeAlias = npt.NDArray[np.float64]
Loosened: TypeAlias = Literal["stock", "places"]
"""Limits that may be exceeded, at a count: GPUs of the stock, GPUs of a place."""

MOST_INSTANCES: Final = 100_000.0


@dataclass
class Programme:
    """Columns and rows under construction; `lower ≤ row ≤ upper`."""

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[Mapping[int, float], float, float]] = field(default_factory=list)

    def variable(self, low: float, high: float, whole: bool = True) -> int:
        """A new variable; its column."""
        self.low.append(low)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.low) - 1

    def require(self, terms: Mapping[int, float], low: float = -inf, high: float = inf) -> None:
        """A new row."""
        self.rows.append((terms, low, high))

    def row(self, terms: Mapping[int, float]) -> Array:
        """Terms as a dense row."""
        dense = np.zeros(len(self.low))
        for column, value in terms.items():
            dense[column] += value
        return dense

    def matrix(self) -> tuple[Array, Array, Array]:
        """Rows with their limits."""
        dense = np.array([self.row(terms) for terms, _, _ in self.rows]).reshape(-1, len(self.low))
        return dense, np.array([low for _, low, _ in self.rows]), np.array([high for *_, high in self.rows])


@dataclass(frozen=True)
class Columns:
    """A programme with the columns that mean something.

    Attributes:
        programme: columns and rows.
        count: replicas of each offer; instances: of each shelf; share: of each class's demand.
        beyond: GPUs beyond each limit that may be exceeded.
        dollars: terms of the bill.
    """

    programme: Programme
    count: tuple[int, ...]
    instances: tuple[int, ...]
    share: tuple[int, ...]
    beyond: tuple[int, ...]
    dollars: Mapping[int, float]


def programme(task: Task, loosened: frozenset[Loosened] = frozenset()) -> Columns:
    """The programme of a task, some limits loosened; without an objective."""
    made = Programme()
    most = [_most(task, at) for at in range(len(task.demands))]
    count = tuple(made.variable(0, _ceiling(task, at, most, "stock" in loosened)) for at in range(len(task.offers)))
    instances = tuple(made.variable(0, MOST_INSTANCES) for _ in task.shelves)
    share = tuple(made.variable(float(task.whole and each.qps > 0), 1.0, whole=False) for each in task.demands)
    for at in range(len(task.shelves)):
        own = {count[i]: -float(o.gpus) for i, o in enumerate(task.offers) if o.stock == at}
        made.require({instances[at]: float(task.shelves[at].instance), **own}, low=0.0)
    beyond = (
        *_stock(task, made, instances, "stock" in loosened),
        *_places(task, made, instances, "places" in loosened),
    )
    for at in range(len(task.demands)):
        _serve(task, made, at, count, share[at], most[at])
    dollars = {instances[at]: shelf.price * shelf.instance for at, shelf in enumerate(task.shelves) if shelf.price > 0}
    if isfinite(task.budget):
        made.require(dollars, high=task.budget * (1 + SLACK / 100))
    return Columns(made, count, instances, share, beyond, dollars)


def _most(task: Task, traffic: int) -> int:
    """Replicas that a class never needs more than: of its smallest kind alone, as many serve it whatever their kind."""
    capacities = [task.offers[at].capacity for at in task.of_class(traffic)]
    if not capacities:
        return 0
    return task.redundancy.alone(min(capacities), task.demands[traffic].qps) or MOST_REPLICAS


def _ceiling(task: Task, at: int, most: list[int], loose: bool) -> int:
    """Replicas of an offer that no best mix exceeds: those that serve the class alone, and those that there are GPUs for."""
    offer = task.offers[at]
    alone = task.redundancy.alone(offer.capacity, task.demands[offer.traffic].qps) or MOST_REPLICAS
    there = task.shelves[offer.stock].gpus / offer.gpus
    return min(alone, most[offer.traffic], MOST_REPLICAS if loose or not isfinite(there) else int(there))


def _stock(task: Task, made: Programme, instances: tuple[int, ...], loose: bool) -> list[int]:
    """GPUs of each shelf, whole instances counted."""
    beyond: list[int] = []
    for at, shelf in enumerate(task.shelves):
        if isfinite(shelf.gpus):
            terms = {instances[at]: float(shelf.instance)}
            if loose:
                beyond.append(made.variable(0, MOST_INSTANCES))
                terms[beyond[-1]] = -1.0
            made.require(terms, high=shelf.gpus)
    return beyond


def _places(task: Task, made: Programme, instances: tuple[int, ...], loose: bool) -> list[int]:
    """GPUs of each limited place, whole instances counted."""
    beyond: list[int] = []
    for cap in task.caps:
        terms = {instances[at]: float(task.shelves[at].instance) for at in cap.shelves}
        if loose:
            beyond.append(made.variable(0, MOST_INSTANCES))
            terms[beyond[-1]] = -1.0
        made.require(terms, high=cap.gpus)
    return beyond


def _serve(task: Task, made: Programme, traffic: int, count: tuple[int, ...], share: int, most: int) -> None:
    """Capacity of a class carries the share of its demand that is served, its failures borne; demands are scaled to 1."""
    own, demand = task.of_class(traffic), task.demands[traffic].qps
    capacity = {count[at]: task.offers[at].capacity / demand for at in own}
    if task.redundancy.none or not own:
        made.require({**capacity, share: -1.0}, low=0.0)
        return
    made.require({count[at]: 1.0 for at in own}, high=float(most))
    failures, worst = _failures(task, made, {count[at]: 1.0 for at in own}, most)
    least = min(capacity.values())
    at_least = {column: -least * weight for column, weight in failures.items()}
    made.require(
        {**capacity, share: -1.0 - least * _certain(task), **at_least}, low=0.0
    )  # implied: it speeds the solver up
    choices: list[int] = []
    for t in sorted({0.0, *capacity.values()}):
        choices.append(made.variable(0, 1))
        large = 1.0 + t * worst
        left = {column: min(each, t) for column, each in capacity.items()}
        lost = {column: -t * weight for column, weight in failures.items()}
        made.require({**left, share: -1.0, **lost, choices[-1]: -large}, low=t * _certain(task) - large)
    made.require(dict.fromkeys(choices, 1.0), low=1.0, high=1.0)


def _certain(task: Task) -> int:
    """Failures that are borne however many replicas there are."""
    return task.redundancy.spare if task.redundancy.availability is None else 0


def _failures(task: Task, made: Programme, replicas: Mapping[int, float], most: int) -> tuple[Mapping[int, float], int]:
    """Failures that follow from the number of replicas: a step each time that one more must be borne; and the most of them."""
    worst = task.redundancy.failures(most)
    steps: dict[int, float] = {}
    if task.redundancy.availability is not None:
        borne = [task.redundancy.failures(n) for n in range(most + 1)]
        for step in range(1, worst + 1):
            first = next(n for n, k in enumerate(borne) if k >= step)
            column = made.variable(0, 1)
            made.require({**replicas, column: -float(most - first + 1)}, high=float(first - 1))
            steps[column] = 1.0
    return steps, worst
