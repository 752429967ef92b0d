"""The fleet as a mixed-integer programme for HiGHS.

Variables: replicas of each offer, instances of each shelf, the share of each class's demand that is served, failures that a
class must bear, which replicas fail at worst (`planner.fleet.bearing`), and GPUs beyond the inventory where these may be
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, TypeAlias

from planner.fleet.bearing import bear
from planner.fleet.rows import Programme
from planner.fleet.spares import MOST_REPLICAS, SLACK
from planner.fleet.task import Task

Loosened: TypeAlias = Literal["stock", "places"]
"""Limits that may be exceeded, at a count: GPUs of the stock, GPUs of a place."""

MOST_INSTANCES: Final = 100_000.0


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
    else:
        bear(made, capacity, share, task.redundancy, most)
