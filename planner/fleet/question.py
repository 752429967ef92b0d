"""What a fleet is asked: classes of traffic, the GPUs to be had, what must hold, and what is made best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import Field, ValidationError

from planner.catalog.custom import custom_fault
from planner.catalog.ids import unknown_id
from planner.errors import Fault
from planner.fleet.prices import priced
from planner.specs.checked import Checked
from planner.specs.fields import Dollars, Identifier, PriceKind, Switch, WeightPrecision, options_of, shown
from planner.specs.scenario import Scenario

Objective: TypeAlias = Literal["usd_per_hour", "goodput_tok_s"]
"""What is made best: serve all traffic at the least dollars an hour, or as many good tokens as the limits allow."""

OBJECTIVES: Final = options_of(Objective)

MOST_ROWS: Final = 12
"""Most classes, and most rows of stock, of one fleet."""

Label: TypeAlias = Annotated[str, Field(pattern=r"^\w(?:[\w ._()&+/,:\-]{0,38}[\w.)])?\z")]
Devices: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]
Instance: TypeAlias = Annotated[int, Field(ge=1, le=1_024)]
Spares: TypeAlias = Annotated[int, Field(ge=0, le=10)]
Chance: TypeAlias = Annotated[float, Field(ge=0.5, le=0.999999)]
Budget: TypeAlias = Annotated[float, Field(ge=0, le=10_000_000)]

ALLOWED: Final = {
    "name": "must be 1 to 40 letters, digits, spaces and . _ ( ) & + / , : -, and begin with a letter or digit",
    "place": "must be 1 to 40 letters, digits, spaces and . _ ( ) & + / , : -, or left out",
    "precisions": f"must be weight precisions out of {', '.join(options_of(WeightPrecision))}",
    "accelerator": "must be an accelerator's id from the catalogue",
    "gpus": "must be a whole number from 0 to 100,000 (GPUs), or left out: as many as needed",
    "price": "must be a number from 0 to 100,000 ($/GPU-hour), or left out",
    "price_kind": f"must be one of {', '.join(options_of(PriceKind))}",
    "owned": "must be one of on, off",
    "instance": "must be a whole number from 1 to 1,024 (GPUs of one instance), or left out",
    "classes": f"must be 1 to {MOST_ROWS} classes of traffic",
    "stock": f"must be 1 to {MOST_ROWS} rows of GPUs",
    "limits": f"must be at most {MOST_ROWS} limits of a provider or region",
    "objective": f"must be one of {', '.join(OBJECTIVES)}",
    "budget": "must be a number from 0 to 10,000,000 ($/h), or left out",
    "spare": "must be a whole number from 0 to 10 (replicas of each class)",
    "availability": "must be a number from 0.5 to 0.999999 (share of time that a replica is up), or left out",
    "target": "must be a number from 0.5 to 0.999999 (share of time that all traffic is served), or left out",
}
"""What each field allows, as the second half of a sentence about a refused value."""


class _Row(Checked):
    """A row of a fleet, whose faults say what each field allows."""

    kind: ClassVar[str] = "fleet"

    @classmethod
    def faults(cls, error: ValidationError) -> Iterator[Fault]:
        """One fault per refused field."""
        found = {str(each["loc"][0]) if each["loc"] else cls.kind: each for each in error.errors()}
        for name, each in found.items():
            value = None if each["type"] == "missing" else each["input"]
            yield Fault(shown(name), shown(value), ALLOWED.get(name, "is not a field of a fleet"))


class TrafficClass(_Row):
    """Requests of one kind: a model, a rate, lengths, a promise; frozen, validated, hashable.

    The scenario's own accelerator, layout, replicas, spares and price are not looked at: the fleet chooses them.

    Raises:
        InputError: with one fault per refused field.
    """

    kind: ClassVar[str] = "class"

    name: Label
    """What people call it."""
    scenario: Scenario
    """Model, rate, workload, promise, engine, techniques."""
    precisions: Annotated[tuple[WeightPrecision, ...], Field(max_length=8)] = ()
    """Weight precisions that may be used; empty = the scenario's own."""

    @property
    def weights(self) -> tuple[WeightPrecision, ...]:
        """Weight precisions to choose from."""
        return self.precisions or (self.scenario.weights,)

    def contradictions(self) -> Iterator[Fault]:
        """A class asks for requests of a model that is known, read where they are answered."""
        s = self.scenario
        if s.qps == 0:
            yield Fault("qps", "0", "must be above 0 (requests/s): a class without traffic needs no replicas")
        if s.osl == 1:
            yield Fault("osl", "1", "must be 2 or more: requests of one output token have no rate of good tokens")
        if s.prefill == "disaggregated":
            yield Fault(
                "prefill", s.prefill, "must be colocated or excluded: pools of prefill are not sized in a fleet"
            )
        if len(set(self.precisions)) < len(self.precisions):
            yield Fault("precisions", ", ".join(self.precisions), "must name each precision once")
        yield from filter(None, (unknown_id("model", s.model), custom_fault(s)))


class Stock(_Row):
    """GPUs of one kind that can be had at one price; frozen, validated, hashable.

    Raises:
        InputError: with one fault per refused field; also when no price is known and none is given.
    """

    kind: ClassVar[str] = "stock"

    accelerator: Identifier
    """Accelerator id from the catalogue."""
    gpus: Devices | None = None
    """GPUs that there are; empty = as many as needed."""
    place: Label | None = None
    """Provider or region; the catalogue's prices are those of the provider where it knows one of this name."""
    price: Dollars | None = None
    """$ per GPU-hour; empty = the catalogue's median of this kind of price."""
    price_kind: PriceKind = "on-demand"
    """Kind of price."""
    owned: Switch = False
    """Already paid for: its hours cost nothing more, used or not."""
    instance: Instance | None = None
    """GPUs of one rented instance; empty = the provider's own where it is known, else single GPUs."""

    def contradictions(self) -> Iterator[Fault]:
        """GPUs of a known kind, with a price unless they are paid for."""
        if fault := unknown_id("gpu", self.accelerator):
            yield Fault("accelerator", fault.value, fault.allowed)
            return
        if self.owned and self.gpus is None:
            yield Fault("gpus", "empty", "must be given for GPUs that are owned")
        if priced(self) is None:
            what = f"the catalogue has no {self.price_kind} price of {self.accelerator}"
            yield Fault("price", "empty", f"must be given: {what}{f' at {self.place}' if self.place else ''}")


class PlaceLimit(_Row):
    """The most GPUs of one provider or region, whatever their kind.

    Raises:
        InputError: with one fault per refused field.
    """

    kind: ClassVar[str] = "limit"

    place: Label
    """Provider or region, as the stock names it."""
    gpus: Devices
    """Most GPUs of it."""


class FleetQuestion(_Row):
    """What is to be served, from what, and how well; frozen, validated, hashable.

    Raises:
        InputError: with one fault per refused field.
    """

    kind: ClassVar[str] = "fleet"

    classes: Annotated[tuple[TrafficClass, ...], Field(min_length=1, max_length=MOST_ROWS)]
    """Classes of traffic."""
    stock: Annotated[tuple[Stock, ...], Field(min_length=1, max_length=MOST_ROWS)]
    """GPUs that can be had."""
    limits: Annotated[tuple[PlaceLimit, ...], Field(max_length=MOST_ROWS)] = ()
    """Most GPUs of a provider or region."""
    objective: Objective = "usd_per_hour"
    """What is made best."""
    budget: Budget | None = None
    """Most dollars an hour; empty = no limit."""
    spare: Spares = 0
    """Replicas of each class that may fail at the same time, whichever they are, without traffic being lost."""
    availability: Chance | None = None
    """Share of the time that one replica is up; with `target`, spares follow from it."""
    target: Chance | None = None
    """Share of the time that all traffic of a class is to be served."""

    def contradictions(self) -> Iterator[Fault]:
        """Names that tell rows apart, one way to say spares, limits of places that exist."""
        names = [each.name for each in self.classes]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Fault("name", shown(name), "must be given to one class only")
        if (self.availability is None) != (self.target is None):
            missing = "target" if self.target is None else "availability"
            yield Fault(missing, "empty", "must be given: a replica's availability and the target go together")
        if self.spare and self.availability is not None:
            yield Fault("spare", str(self.spare), "must be 0 where spares follow from availability")
        places, limited = {each.place for each in self.stock}, [each.place for each in self.limits]
        for limit in self.limits:
            if limit.place not in places:
                yield Fault("place", shown(limit.place), "must be a provider or region that the stock names")
        for place in sorted({place for place in limited if limited.count(place) > 1}):
            yield Fault("place", shown(place), "must be limited once")
