"""That a class of traffic bears the loss of its largest replicas, as rows of a programme: exact and linear.

The largest k of a multiset of capacities carry min over t of (k·t + sum of max(capacity − t, 0)), and the t that does it is
the k-th largest capacity. What is left then carries the demand when, for that t,

    h(t) = sum of replicas · min(capacity, t) ≥ demand + k·t.

One binary says which capacity t is and how many failures k are borne; k allows so many replicas and no more. For every other
t the row still says what follows: h is concave, begins at 0 and never falls. Rows beyond these follow from them and only
make the solver faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.fleet.rows import Programme
from planner.fleet.spares import Redundancy


@dataclass(frozen=True)
class Worst:
    """One way in which a class may fail at worst: its k largest replicas, the last of which has a capacity t.

    Attributes:
        t: that capacity, in units of the demand; 0 = nothing is served.
        failures: k; replicas: the most for which so few failures need to be borne.
        column: the binary that says so.
    """

    t: float
    failures: int
    replicas: int
    column: int


def bear(made: Programme, capacity: Mapping[int, float], share: int, redundancy: Redundancy, most: int) -> None:
    """Rows for one class.

    Args:
        made: the programme.
        capacity: of each column of replicas, in units of the demand.
        share: column of the share of the demand that is served.
        redundancy: what must be borne.
        most: most replicas of the class.
    """
    levels = _levels(redundancy, most)
    ways = [
        Worst(t, failures, replicas, made.variable(0, 1))
        for t in sorted(set(capacity.values()))
        for failures, replicas in levels.items()
    ]
    ways.append(Worst(0.0, 0, most, made.variable(0, 1)))
    made.require({way.column: 1.0 for way in ways}, low=1.0, high=1.0)
    made.require({**dict.fromkeys(capacity, 1.0), **{way.column: -float(way.replicas) for way in ways}}, high=0.0)
    made.require({share: 1.0, **{way.column: -1.0 for way in ways if way.t > 0}}, high=0.0)
    for t in sorted(set(capacity.values())):
        held = {column: min(each, t) for column, each in capacity.items()}
        made.require({**held, share: -1.0, **{way.column: -_held(t, way) for way in ways}}, low=0.0)
    _faster(made, capacity, share, ways)


def _levels(redundancy: Redundancy, most: int) -> dict[int, int]:
    """Failures that may have to be borne, with the most replicas for which they are enough."""
    return {redundancy.failures(n): n for n in range(1, most + 1)}


def _held(t: float, way: Worst) -> float:
    """What h(t) − share is at least in one way to fail."""
    if way.t == 0:
        return 0.0
    return way.failures * t - (1.0 - t / way.t) if t < way.t else way.failures * way.t


def _faster(made: Programme, capacity: Mapping[int, float], share: int, ways: list[Worst]) -> None:
    """What follows: what fails is lost, some replicas are as large as t, few are larger, and there are more than fail."""
    some = [way for way in ways if way.t > 0]
    made.require({**capacity, share: -1.0, **{way.column: -way.failures * way.t for way in some}}, low=0.0)
    made.require({**dict.fromkeys(capacity, 1.0), **{way.column: -(way.failures + 1.0) for way in some}}, low=0.0)
    for t in sorted(set(capacity.values())):
        large = {column: 1.0 for column, each in capacity.items() if each >= t}
        made.require({**large, **{way.column: -float(way.failures) for way in some if way.t == t}}, low=0.0)
    for column, each in capacity.items():
        high = made.high[column]
        most = {way.column: -(high if way.t >= each or way.t == 0 else min(high, _larger(way))) for way in ways}
        made.require({column: 1.0, **most}, high=0.0)


def _larger(way: Worst) -> float:
    """Most replicas that are larger than the last that fails."""
    return max(way.failures - 1.0, 0.0)
