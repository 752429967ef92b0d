"""From a question to its fleet: offers of every class on every stock, the best mix, and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Final

from planner.fleet.answer import NEARLY, Failure, Fleet, Group, LimitName, Outcome, Relief, Served, Taken
from planner.fleet.names import stock_names
from planner.fleet.nearest import needed
from planner.fleet.offers import Replica, offers
from planner.fleet.prices import Rate, priced
from planner.fleet.programme import Loosened
from planner.fleet.question import FleetQuestion
from planner.fleet.solve import Mix, Stop, UndecidedError, solve
from planner.fleet.spares import NO_REDUNDANCY, Redundancy
from planner.fleet.task import Cap, Demand, Offer, Shelf, Task, worth

RELIEF_SECONDS: Final = 3.0
"""Longest time to find out what one limit would have to give."""

NOTHING: Final = Mix((), (), Stop(True, True, 0.0, 0.0))
"""The mix of a fleet for which no replica can be had."""


@dataclass(frozen=True)
class Asked:
    """A question with its offers: the task for the solver, what each offer is a replica of, and why a class has none."""

    question: FleetQuestion
    task: Task
    replicas: tuple[Replica, ...]
    rates: tuple[Rate, ...]
    reasons: tuple[str, ...]

    @property
    def servable(self) -> Task:
        """The task without the demand of classes that nothing can serve."""
        have = {offer.traffic for offer in self.task.offers}
        demands = (d if at in have else replace(d, qps=0.0) for at, d in enumerate(self.task.demands))
        return replace(self.task, demands=tuple(demands))


@lru_cache(maxsize=64)
def fleet_of(question: FleetQuestion) -> Fleet:
    """The best fleet of a question; where there is none, the nearest to it and what stands in the way.

    Raises:
        CatalogueError, ModelConfigError: when a class names what cannot be sized.
    """
    asked = asked_of(question)
    if not asked.task.offers:
        return _fleet(asked, NOTHING, "impossible", ())
    try:
        mix = solve(asked.servable)
    except UndecidedError:
        return _fleet(asked, _part(asked), "undecided", ())
    if mix is None:
        return _fleet(asked, _part(asked), "impossible", tuple(_reliefs(asked)))
    return _fleet(asked, mix, _outcome(asked, mix), ())


def _outcome(asked: Asked, mix: Mix) -> Outcome:
    """Whether a mix answers the question; one that rounding has spoilt does not."""
    if not asked.task.whole:
        return "found"
    if any(asked.reasons):
        return "impossible"
    short = (asked.task.kept(mix.counts, at) < each.qps * NEARLY for at, each in enumerate(asked.task.demands))
    return "undecided" if any(short) else "found"


def asked_of(question: FleetQuestion) -> Asked:
    """Everything looked up and every offer made."""
    rates = tuple(rate for each in question.stock if (rate := priced(each)) is not None)
    redundancy = Redundancy(question.spare, question.availability, question.target)
    made: dict[Offer, Replica] = {}
    reasons: list[str] = []
    for at, traffic in enumerate(question.classes):
        found = [offers(traffic, each.accelerator) for each in question.stock]
        own = {Offer(at, row, each.gpus, each.capacity): each for row, one in enumerate(found) for each in one.replicas}
        made |= {offer: own[offer] for offer in worth(tuple(own))}
        reasons.append("" if own else next((one.reason for one in found if one.reason), ""))
    demands = tuple(Demand(each.scenario.qps, float(each.scenario.osl)) for each in question.classes)
    shelves = tuple(
        Shelf(inf if each.gpus is None else float(each.gpus), rate.price, rate.instance)
        for each, rate in zip(question.stock, rates, strict=True)
    )
    budget = inf if question.budget is None else question.budget
    whole = question.objective == "usd_per_hour"
    task = Task(tuple(made), demands, shelves, tuple(_caps(question)), budget, redundancy, whole)
    return Asked(question, task, tuple(made.values()), rates, tuple(reasons))


def _caps(question: FleetQuestion) -> Iterator[Cap]:
    """Limits of places, by the rows of stock in them."""
    for limit in question.limits:
        yield Cap(tuple(at for at, each in enumerate(question.stock) if each.place == limit.place), float(limit.gpus))


def _part(asked: Asked) -> Mix:
    """As many good tokens as the limits allow; nothing where not even that was found in time."""
    try:
        return solve(replace(asked.servable, whole=False)) or NOTHING
    except UndecidedError:
        return NOTHING


@dataclass(frozen=True)
class Trial:
    """One limit let go: the task without it, what may be exceeded instead, and what that is called, in the solver's order."""

    limit: LimitName
    task: Task
    loosened: frozenset[Loosened] = frozenset()
    names: tuple[str, ...] = ()


def _reliefs(asked: Asked) -> Iterator[Relief]:
    """What each limit by itself would have to give; all of them together where none is enough."""
    found = [relief for trial in _trials(asked) if (relief := _relief(trial)) is not None]
    limited, places = _limited(asked.question), tuple(limit.place for limit in asked.question.limits)
    everything = frozenset[Loosened]({"stock", "places"})
    last = Trial("all", replace(asked.servable, budget=inf), everything, (*limited, *places))
    yield from found or filter(None, (_relief(last),))


def _trials(asked: Asked) -> Iterator[Trial]:
    """Every limit that the question states."""
    task, question = asked.servable, asked.question
    if question.budget is not None:
        yield Trial("budget", replace(task, budget=inf))
    if limited := _limited(question):
        yield Trial("stock", task, frozenset({"stock"}), limited)
    if question.limits:
        yield Trial("places", task, frozenset({"places"}), tuple(limit.place for limit in question.limits))
    if not task.redundancy.none:
        yield Trial("spares", replace(task, redundancy=NO_REDUNDANCY))


def _limited(question: FleetQuestion) -> tuple[str, ...]:
    """Names of the rows of stock that have an end."""
    named = zip(stock_names(question), question.stock, strict=True)
    return tuple(name for name, each in named if each.gpus is not None)


def _relief(trial: Trial) -> Relief | None:
    """What a limit would have to give; None where it is not enough, or not found in time."""
    try:
        mix = solve(trial.task, trial.loosened, RELIEF_SECONDS, ties=False)
    except UndecidedError:
        return None
    if mix is None:
        return None
    return Relief(trial.limit, trial.task.dollars(mix.counts), _missing(trial.names, mix.beyond))


def _missing(names: tuple[str, ...], gpus: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """GPUs that are missing, by name."""
    return tuple((name, count) for name, count in zip(names, gpus, strict=True) if count)


def _fleet(asked: Asked, mix: Mix, outcome: Outcome, reliefs: tuple[Relief, ...]) -> Fleet:
    """What a mix means."""
    task = asked.task
    counts = mix.counts or (0,) * len(task.offers)
    served = tuple(_served(asked, counts, at) for at in range(len(task.demands)))
    return Fleet(
        question=asked.question,
        groups=tuple(_groups(asked, counts, served)),
        served=served,
        taken=tuple(_taken(asked, counts, at) for at in range(len(task.shelves))),
        usd_per_hour=task.dollars(counts),
        goodput_tok_s=task.good_tokens(counts),
        outcome=outcome,
        reliefs=reliefs,
        spares_usd_per_hour=_spares(asked, counts) if outcome == "found" and task.whole else None,
        offers=len(task.offers),
        stop=mix.stop,
    )


def _spares(asked: Asked, counts: tuple[int, ...]) -> float | None:
    """What bearing the failures costs: the bill less that of the fleet which bears none."""
    task = replace(asked.task, redundancy=NO_REDUNDANCY)
    bare = None if asked.task.redundancy.none else _relief(Trial("spares", task))
    return None if bare is None else asked.task.dollars(counts) - bare.usd_per_hour


def _served(asked: Asked, counts: tuple[int, ...], at: int) -> Served:
    """One class."""
    task, held = asked.task, asked.task.capacities(counts, at)
    own = task.of_class(at)
    return Served(
        traffic=asked.question.classes[at],
        demand=task.demands[at].qps,
        qps=task.served(counts, at),
        capacity=sum(held),
        kept=task.kept(counts, at),
        replicas=len(held),
        gpus=sum(counts[i] * task.offers[i].gpus for i in own),
        failures=task.redundancy.failures(len(held)) if held else 0,
        reason=asked.reasons[at],
        needed=needed(asked.question.classes[at], asked.question.stock) if asked.reasons[at] else None,
    )


def _taken(asked: Asked, counts: tuple[int, ...], at: int) -> Taken:
    """One row of stock."""
    task, stock = asked.task, asked.question.stock[at]
    used, billed = task.used(counts, at), task.billed(counts, at)
    idle = None if stock.gpus is None else stock.gpus - billed
    return Taken(stock, asked.rates[at], used, billed, idle, billed * asked.rates[at].price)


def _groups(asked: Asked, counts: tuple[int, ...], served: tuple[Served, ...]) -> Iterator[Group]:
    """The mix, in the order of classes and stock."""
    task = asked.task
    for count, offer, replica in zip(counts, task.offers, asked.replicas, strict=True):
        if not count:
            continue
        of = served[offer.traffic]
        part = of.qps * count * offer.capacity / of.capacity
        rate = asked.rates[offer.stock]
        yield Group(
            traffic=of.traffic,
            stock=asked.question.stock[offer.stock],
            row=offer.stock,
            scenario=replica.scenario.with_(fix_replicas=count, qps=_readable(part), price=rate.price),
            replicas=count,
            gpus=count * offer.gpus,
            capacity=offer.capacity,
            qps=part,
            usd_per_hour=count * offer.gpus * rate.price,
            failure=_failure(task.capacities(counts, offer.traffic), offer.capacity, of),
        )


def _readable(qps: float) -> float:
    """A rate to four significant digits: a plan's link and sentence repeat it in full."""
    return float(f"{qps:.4g}")


def _failure(held: list[float], lost: float, served: Served) -> Failure:
    """The class without one replica of that capacity."""
    left, load = sum(held) - lost, served.traffic.scenario.load
    if len(held) == 1:
        return Failure(0.0, served.qps, inf, "short")
    full = left / load
    short = max(served.qps - full, 0.0)
    within = served.qps <= left * (1 + 1e-6)
    return Failure(left, short, served.qps / full, "holds" if within else "short" if short else "strained")
