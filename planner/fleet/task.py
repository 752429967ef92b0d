"""A fleet as numbers alone: what the solver is given, and what a mix is worth, worked out in plain arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf

from planner.fleet.spares import NO_REDUNDANCY, Redundancy, surviving


@dataclass(frozen=True)
class Offer:
    """Replicas that may be had: their class and stock by place in the task, GPUs and requests a second of each."""

    traffic: int
    stock: int
    gpus: int
    capacity: float


@dataclass(frozen=True)
class Demand:
    """A class of traffic: requests a second that are asked for, and tokens that one of them yields."""

    qps: float
    tokens: float


@dataclass(frozen=True)
class Shelf:
    """GPUs of one kind: how many there are (`inf` = any number), $ per GPU-hour, and GPUs of one instance."""

    gpus: float
    price: float
    instance: int = 1

    def billed(self, used: int) -> int:
        """GPUs of whole instances that hold so many."""
        return ceil(used / self.instance) * self.instance


@dataclass(frozen=True)
class Cap:
    """The most GPUs of several shelves together, whole instances counted."""

    shelves: tuple[int, ...]
    gpus: float


@dataclass(frozen=True)
class Task:
    """What is asked of the solver.

    Attributes:
        offers: kinds of replicas, in the order that settles ties: earlier ones first.
        demands, shelves, caps: classes, stock, limits of places.
        budget: most dollars an hour; `inf` = no limit.
        redundancy: failures that each class must bear.
        whole: whether all traffic must be served at least dollars; else as many tokens as the limits allow.
    """

    offers: tuple[Offer, ...]
    demands: tuple[Demand, ...]
    shelves: tuple[Shelf, ...]
    caps: tuple[Cap, ...] = ()
    budget: float = inf
    redundancy: Redundancy = NO_REDUNDANCY
    whole: bool = True

    def of_class(self, traffic: int) -> tuple[int, ...]:
        """Places of the offers of a class."""
        return tuple(at for at, offer in enumerate(self.offers) if offer.traffic == traffic)

    def used(self, counts: Sequence[int], shelf: int) -> int:
        """GPUs of a shelf that a mix uses."""
        return sum(n * o.gpus for n, o in zip(counts, self.offers, strict=True) if o.stock == shelf)

    def billed(self, counts: Sequence[int], shelf: int) -> int:
        """GPUs of a shelf that a mix takes, whole instances counted."""
        return self.shelves[shelf].billed(self.used(counts, shelf))

    def dollars(self, counts: Sequence[int]) -> float:
        """Bill of a mix [$/h]."""
        return sum(self.billed(counts, at) * shelf.price for at, shelf in enumerate(self.shelves))

    def gpus(self, counts: Sequence[int]) -> int:
        """GPUs that a mix takes, whole instances counted."""
        return sum(self.billed(counts, at) for at in range(len(self.shelves)))

    def capacities(self, counts: Sequence[int], traffic: int) -> list[float]:
        """Capacity of each replica of a class [requests/s]."""
        own = ((n, o.capacity) for n, o in zip(counts, self.offers, strict=True) if o.traffic == traffic)
        return [capacity for n, capacity in own for _ in range(n)]

    def kept(self, counts: Sequence[int], traffic: int) -> float:
        """Capacity of a class with its failures borne [requests/s]."""
        held = self.capacities(counts, traffic)
        return surviving(held, self.redundancy.failures(len(held)))

    def served(self, counts: Sequence[int], traffic: int) -> float:
        """Requests a second of a class that a mix serves, failures borne."""
        return min(self.demands[traffic].qps, self.kept(counts, traffic))

    def good_tokens(self, counts: Sequence[int]) -> float:
        """Good tokens a second of a mix, over all classes."""
        return sum(self.served(counts, at) * demand.tokens for at, demand in enumerate(self.demands))


def worth(offers: Sequence[Offer]) -> Iterator[Offer]:
    """Offers that several smaller ones of the same class and stock do not replace.

    Replicas of a smaller kind that together take no more GPUs and carry no less do the same, and lose less when a fixed
    number fails. Where spares follow from availability, more replicas may mean one more failure, so that a mix with larger
    ones may need a spare less; that is given up for an answer within the time.
    """
    for offer in offers:
        small = (o for o in offers if (o.traffic, o.stock) == (offer.traffic, offer.stock) and o.gpus < offer.gpus)
        if not any(offer.gpus // o.gpus * o.capacity >= offer.capacity for o in small):
            yield offer
