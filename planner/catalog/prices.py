"""Prices of accelerator-hours, read from `presets/prices.csv`, and the price a plan assumes when none is given."""

from __future__ import annotations

import csv
import tomllib
from datetime import date
from functools import cache
from statistics import median
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from planner.catalog.accelerators import PRESETS
from planner.errors import CatalogueError
from planner.specs.accelerator import DefaultPrice, Price

PRICES: Final = PRESETS / "prices.csv"

UNIT: Final = "accelerator-hour"
"""The only unit that prices are kept in; instance prices are divided by the accelerators of the instance."""


class PriceRecord(BaseModel):
    """One row of `presets/prices.csv`; `accelerator` is empty where the source does not state the form factor."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    accelerator: str
    as_written: str = Field(min_length=1)
    provider: str = Field(min_length=1)
    price: float = Field(gt=0)
    currency: str = Field(pattern="^[A-Z]{3}$")
    unit: str = Field(pattern=f"^{UNIT}$")
    kind: str = Field(pattern="^(on-demand|reserved|spot|serverless|assumption)$")
    date: str = Field(pattern=r"^\d{4}(-\d{2}){0,2}$")
    sku: str
    gpus: int = Field(ge=1)
    confidence: str = Field(pattern="^(high|medium|low)$")
    note: str
    source: str = Field(min_length=1)


def _catalogue_date() -> date:
    """The day that the catalogue describes."""
    found = tomllib.loads((PRESETS / "catalogue.toml").read_text(encoding="utf-8")).get("date")
    if not isinstance(found, date):
        raise CatalogueError("presets/catalogue.toml must state a date")
    return found


CATALOGUE_DATE: Final = _catalogue_date()
"""Today, as far as prices are concerned: results do not drift with the wall clock."""


@cache
def records() -> tuple[PriceRecord, ...]:
    """Every row of the price file.

    Raises:
        CatalogueError: a row does not say what it must.
    """
    with PRICES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        return TypeAdapter(tuple[PriceRecord, ...]).validate_python(rows)
    except ValidationError as error:
        raise CatalogueError(f"{PRICES.name}: {error}") from error


def from_record(record: PriceRecord) -> Price:
    """The price that a row states."""
    return Price(
        accelerator=record.accelerator,
        provider=record.provider,
        usd_per_hour=record.price,
        kind=record.kind,
        date=record.date,
        source=record.source,
        sku=record.sku,
        per_instance_gpus=record.gpus,
        currency=record.currency,
        confidence=record.confidence,
        note=f"{record.as_written}: {record.note}" if record.note else record.as_written,
    )


@cache
def prices(accelerator_id: str | None = None) -> tuple[Price, ...]:
    """Every known price, or those of one accelerator; a price whose form factor is not stated belongs to none."""
    known = tuple(from_record(record) for record in records())
    return known if accelerator_id is None else tuple(item for item in known if item.accelerator == accelerator_id)


@cache
def providers() -> tuple[str, ...]:
    """Providers of any price, sorted."""
    return tuple(sorted({item.provider for item in prices()}))


def first_day(text: str) -> date:
    """The earliest day that a date written as a year, month or day can mean."""
    year, month, day = (*(int(part) for part in text.split("-")), 1, 1)[:3]
    return date(year, month, day)


def year_before(day: date) -> date:
    """The same day a year earlier (28 February for a leap day)."""
    return day.replace(year=day.year - 1, day=28 if (day.month, day.day) == (2, 29) else day.day)


def recent(text: str, today: date) -> bool:
    """Whether a price's date certainly lies in the 12 months up to today."""
    return year_before(today) <= first_day(text) <= today


def counted_prices(
    accelerator_id: str, *, kind: str = "on-demand", provider: str | None = None, today: date = CATALOGUE_DATE
) -> tuple[Price, ...]:
    """The USD prices of a form factor, kind and provider in the 12 months up to today: what a default is taken from."""
    return tuple(
        item
        for item in prices(accelerator_id)
        if item.kind == kind
        and item.currency == "USD"
        and (provider is None or provider.casefold() == item.provider.casefold())
        and recent(item.date, today)
    )


def default_price(
    accelerator_id: str, *, kind: str = "on-demand", provider: str | None = None, today: date = CATALOGUE_DATE
) -> DefaultPrice | None:
    """The median USD price of this form factor in the 12 months up to today, with the range it was taken from.

    Args:
        accelerator_id: form factor; prices that do not state theirs never enter.
        kind: `on-demand`, `reserved` or `spot`.
        provider: only this provider's prices; None = all.
        today: end of the 12 months.

    Returns:
        The price in USD per accelerator-hour, or None when there is none: then a person must give one.
    """
    found = counted_prices(accelerator_id, kind=kind, provider=provider, today=today)
    if not found:
        return None
    asked = [item.usd_per_hour for item in found]
    days = sorted((item.date for item in found), key=first_day)
    return DefaultPrice(median(asked), min(asked), max(asked), len(asked), kind, days[0], days[-1])
