"""What a GPU of a row of stock costs an hour, and who says so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.catalog.prices import providers
from planner.setting import cost_of
from planner.specs.scenario import Scenario
from planner.units import dollars

if TYPE_CHECKING:
    from planner.fleet.question import Stock


@dataclass(frozen=True)
class Rate:
    """The price of a row of stock.

    Attributes:
        price: $ per GPU-hour; 0 where the GPUs are owned.
        instance: GPUs that are rented together; 1 = single GPUs.
        source: where the price comes from, in words.
    """

    price: float
    instance: int
    source: str


@lru_cache(maxsize=512)
def priced(stock: Stock) -> Rate | None:
    """The price by the catalogue's usual rule unless one is given; None where none is known."""
    if stock.owned:
        return Rate(0.0, 1, "owned: already paid for")
    provider = _provider(stock.place)
    asked = Scenario(gpu=stock.accelerator, price_kind=stock.price_kind, price=stock.price, provider=provider)
    found = cost_of(asked)
    if found.price is None:
        return None
    instance = stock.instance or found.instance
    if found.default is None:
        return Rate(found.price, instance, "as given")
    many, low, high = found.default.count, dollars(found.default.low), dollars(found.default.high)
    whose = f" of {provider}" if provider else ""
    if many == 1:
        return Rate(found.price, instance, f"the one {stock.price_kind} price{whose} known")
    return Rate(found.price, instance, f"median of {many} {stock.price_kind} prices{whose}, {low} to {high}")


def _provider(place: str | None) -> str | None:
    """The provider of the catalogue that a place names; None where it names none, as a region does."""
    return next((name for name in providers() if place is not None and name.casefold() == place.casefold()), None)
