"""What a fleet answers: the mix and its bill, each class and each stock, failures, and what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from planner.fleet.nearest import Needed
from planner.fleet.prices import Rate
from planner.fleet.question import FleetQuestion, Stock, TrafficClass
from planner.fleet.solve import Stop
from planner.specs.scenario import Scenario

HOURS_PER_MONTH: Final = 730.0
"""A year's hours over twelve."""

NEARLY: Final = 1 - 1e-4
"""Share of a demand from which on it counts as served whole: the solver's tolerances add up to less."""

After: TypeAlias = Literal["holds", "strained", "short"]
"""After a failure: the rest stays within its usable share of throughput, above it, or carries less than is asked."""

LimitName: TypeAlias = Literal["budget", "stock", "places", "spares", "all"]
Outcome: TypeAlias = Literal["found", "impossible", "undecided"]


@dataclass(frozen=True)
class Failure:
    """What the loss of one replica of a group leaves of its class.

    Attributes:
        capacity: requests a second that the rest may carry at its usable share of throughput.
        lost: requests a second that the rest cannot carry even at its full mean throughput.
        load: share of that throughput that the class's traffic takes; infinite where nothing is left.
        after: the verdict.
    """

    capacity: float
    lost: float
    load: float
    after: After


@dataclass(frozen=True)
class Group:
    """Equal replicas of one plan for one class.

    Attributes:
        traffic, stock: of the question; `row`: the stock's place in it.
        scenario: the plan with its replicas, its part of the traffic and its price; `plan_of(scenario)` says the same numbers.
        replicas, gpus: replicas, and devices of all of them.
        capacity: requests a second that each may carry; qps: that all of them get.
        usd_per_hour: of their devices, without the unused rest of whole instances.
        failure: what the loss of one of them does.
    """

    traffic: TrafficClass
    stock: Stock
    row: int
    scenario: Scenario
    replicas: int
    gpus: int
    capacity: float
    qps: float
    usd_per_hour: float
    failure: Failure


@dataclass(frozen=True)
class Served:
    """How a class of traffic is served.

    Attributes:
        demand, qps: requests a second that are asked for, and that are served with the failures borne.
        capacity: that its replicas may carry, all of them up; kept: with the failures borne.
        replicas, gpus: of all its groups; failures: replicas that may fail at the same time.
        reason: why no replica of any stock can serve it; empty where one can.
        needed: the SLA that some replica would keep, where it is the SLA that is in the way.
    """

    traffic: TrafficClass
    demand: float
    qps: float
    capacity: float
    kept: float
    replicas: int
    gpus: int
    failures: int
    reason: str
    needed: Needed | None = None

    @property
    def utilisation(self) -> float:
        """Share of the capacity that is used; 0 without replicas."""
        return self.qps / self.capacity if self.capacity else 0.0

    @property
    def whole(self) -> bool:
        """Whether all of its traffic is served."""
        return self.qps >= self.demand * NEARLY


@dataclass(frozen=True)
class Taken:
    """What is taken of a row of stock.

    Attributes:
        rate: its price, and who says so.
        used: GPUs that replicas stand on; billed: whole instances of them; idle: GPUs that nothing was taken of (None = the
            stock has no end).
        usd_per_hour: bill.
    """

    stock: Stock
    rate: Rate
    used: int
    billed: int
    idle: int | None
    usd_per_hour: float


@dataclass(frozen=True)
class Relief:
    """The least that one limit would have to give so that all traffic can be served.

    Attributes:
        limit: which one; `all`: budget, stock and places together, where none of them is enough by itself.
        usd_per_hour: what the fleet would cost then.
        missing: GPUs that are missing, by name of the stock or place; empty for the budget and for spares.
    """

    limit: LimitName
    usd_per_hour: float
    missing: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Fleet:
    """The answer to a question.

    Attributes:
        question: what was asked.
        groups: the mix, in the order of classes and stock; the best part of it where not all can be served.
        served, taken: every class and every row of stock, in the question's order.
        usd_per_hour: bill; goodput_tok_s: good tokens a second of what is served.
        outcome: whether the question has an answer as it was asked, has none, or neither was found out in time.
        reliefs: where it has none: what each limit would have to give, those that would do.
        spares_usd_per_hour: what bearing the failures costs, of the bill; None where none are borne, nothing is found, or the
            fleet without spares was not found in time.
        offers: kinds of replicas to choose from.
        stop: how the solver stopped on this mix.
    """

    question: FleetQuestion
    groups: tuple[Group, ...]
    served: tuple[Served, ...]
    taken: tuple[Taken, ...]
    usd_per_hour: float
    goodput_tok_s: float
    outcome: Outcome
    reliefs: tuple[Relief, ...]
    spares_usd_per_hour: float | None
    offers: int
    stop: Stop

    @property
    def feasible(self) -> bool:
        """Whether the question has an answer as it was asked."""
        return self.outcome == "found"

    @property
    def gpus(self) -> int:
        """GPUs that are taken, whole instances counted."""
        return sum(each.billed for each in self.taken)

    @property
    def usd_per_month(self) -> float:
        """Bill of a month of 730 hours."""
        return self.usd_per_hour * HOURS_PER_MONTH

    @property
    def without(self) -> tuple[str, ...]:
        """Names of the classes that get nothing."""
        return tuple(each.traffic.name for each in self.served if each.demand and not each.qps)

    @property
    def all_served(self) -> bool:
        """Whether every class gets all that it asks for."""
        return all(each.whole for each in self.served)
