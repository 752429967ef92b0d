"""Rows behind the chart and the tables of the Fleet page: numbers for scales and columns, finished text for the rest."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import Final

import pyarrow as pa

from planner.catalog.accelerators import accelerator
from planner.fleet import sentence
from planner.fleet.answer import Fleet
from planner.fleet.names import plan_name, stock_names
from planner.ui.data import Row, rows
from planner.ui.fleet_words import word
from planner.ui.marks import Datasets
from planner.units import dollars, whole

PARTS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("name", "stock", "plan", "many", "cost")),
        *((name, pa.float64()) for name in ("start", "end")),
    ]
)
TOTALS: Final = pa.schema([("name", pa.string()), ("label", pa.string())])

MIX: Final = ("Class", "GPUs of", "Plan", "Replicas", "GPUs", "Requests/s", "Each carries", "$/h")
SERVED: Final = ("Class", "Asked, req/s", "Served, req/s", "Capacity, req/s", "Used, %", "Replicas", "May fail", "GPUs")
IDLE: Final = ("GPUs of", "There are", "Used", "Billed", "Idle", "$/GPU-hour", "$/h", "Who says so")
FAILURE: Final = ("Class", "One replica of", "Left, req/s", "Asked, req/s", "Load of the rest, %", "What happens")


@lru_cache(maxsize=32)
def bill(fleet: Fleet) -> Datasets:
    """Segments of each class's bar, and its total; the unused rest of whole instances has a bar of its own."""
    names = stock_names(fleet.question)
    paid = [name for name, each in zip(names, fleet.taken, strict=True) if each.usd_per_hour > 0]
    found: list[Row] = [
        (_first(fleet), name, "", "", "", 0.0, 0.0) for name in paid
    ]  # they give hues in the stock's order
    totals: dict[str, float] = {}
    for group in fleet.groups:
        if group.usd_per_hour > 0:
            start = totals.get(group.traffic.name, 0.0)
            end = totals[group.traffic.name] = start + group.usd_per_hour
            cells = (names[group.row], plan_name(group), whole(group.replicas), dollars(group.usd_per_hour))
            found.append((group.traffic.name, *cells, start, end))
    for name, each in zip(names, fleet.taken, strict=True):
        if (rest := (each.billed - each.used) * each.rate.price) > 0:
            start = totals.get(word("rest"), 0.0)
            end = totals[word("rest")] = start + rest
            found.append((word("rest"), name, f"{each.billed - each.used} GPUs", "", dollars(rest), start, end))
    return {
        "parts": rows(PARTS, found),
        "totals": rows(TOTALS, [(name, dollars(total)) for name, total in totals.items()]),
    }


def _first(fleet: Fleet) -> str:
    """Class of the first bar."""
    return next((group.traffic.name for group in fleet.groups if group.usd_per_hour > 0), "")


def mix(fleet: Fleet) -> pa.Table:
    """One row per plan of the mix."""
    names = stock_names(fleet.question)
    return _table(
        MIX,
        [
            (g.traffic.name, names[g.row], plan_name(g), g.replicas, g.gpus, g.qps, g.capacity, g.usd_per_hour)
            for g in fleet.groups
        ],
    )


def served(fleet: Fleet) -> pa.Table:
    """One row per class."""
    return _table(
        SERVED,
        [
            (s.traffic.name, s.demand, s.qps, s.capacity, s.utilisation * 100, s.replicas, s.failures, s.gpus)
            for s in fleet.served
        ],
    )


def idle(fleet: Fleet) -> pa.Table:
    """One row per kind of GPUs."""
    names = stock_names(fleet.question)
    return _table(
        IDLE,
        [
            (name, t.stock.gpus, t.used, t.billed, t.idle, t.rate.price, t.usd_per_hour, t.rate.source)
            for name, t in zip(names, fleet.taken, strict=True)
        ],
    )


def failure(fleet: Fleet) -> pa.Table:
    """One row per plan of the mix: its class without one of its replicas."""
    found: list[Row] = []
    for group in fleet.groups:
        after = group.failure
        load = after.load * 100 if isfinite(after.load) else None
        which = f"{plan_name(group)} on {accelerator(group.stock.accelerator).name}"
        asked = group.traffic.scenario.qps
        found.append((group.traffic.name, which, after.capacity, asked, load, sentence.after(group)))
    return _table(FAILURE, found)


def _table(names: tuple[str, ...], found: list[Row]) -> pa.Table:
    """Rows as columns of their own types."""
    columns = list(zip(*found, strict=True)) if found else [()] * len(names)
    return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})
