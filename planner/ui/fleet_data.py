"""Rows behind the chart and the tables of the Fleet page: numbers for scales and columns, finished text for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Final

import pyarrow as pa

from planner.catalog.accelerators import accelerator
from planner.fleet import sentence
from planner.fleet.answer import Fleet, Group
from planner.fleet.names import plan_name, stock_names
from planner.share import pinned
from planner.ui.data import Row, rows
from planner.ui.fleet_figures import Cells, Way
from planner.ui.fleet_words import word
from planner.ui.link import anchor
from planner.ui.marks import Datasets
from planner.units import DASH, dollars, whole

PARTS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("name", "stock", "plan", "many", "cost")),
        *((name, pa.float64()) for name in ("start", "end")),
    ]
)
TOTALS: Final = pa.schema([("name", pa.string()), ("label", pa.string())])

MIX: Final = ("Class", "Open as plan", "GPUs of", "GPUs", "$/h", "Replicas", "Served, req/s", "Each carries, req/s")
SERVED: Final = ("Class", "Asked, req/s", "Served, req/s", "Capacity, req/s", "Used", "Replicas", "May fail", "GPUs")
IDLE: Final = ("GPUs of", "There are", "Used", "Billed", "Idle", "$/GPU-hour", "$/h", "Who says so")
FAILURE: Final = ("Class", "One replica of", "Left, req/s", "Asked, req/s", "Load of the rest", "What happens")


@lru_cache(maxsize=32)
def bill(fleet: Fleet) -> Datasets:
    """Segments of each class's bar, and its total; the unused rest of whole instances has a bar of its own."""
    names = _numbered(fleet)
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
        "totals": rows(
            TOTALS, [(name, dollars(totals.get(name, 0.0)) + _free(fleet, name)) for name in _billed(fleet, totals)]
        ),
    }


def _numbered(fleet: Fleet) -> list[str]:
    """Names of the stock, with its numbers where several rows are billed: a narrow segment has room for its number."""
    names, count = stock_names(fleet.question), sum(each.usd_per_hour > 0 for each in fleet.taken)
    return [f"{at} {name}" if count > 1 else name for at, name in enumerate(names, start=1)]


def _billed(fleet: Fleet, totals: Mapping[str, float]) -> list[str]:
    """What has a bar: every class of the mix, those that cost nothing too, and the rest of instances."""
    names = dict.fromkeys(group.traffic.name for group in fleet.groups)
    return [*names, *(name for name in totals if name not in names)]


def _free(fleet: Fleet, name: str) -> str:
    """Owned GPUs of a class, which its bar has no part of."""
    owned = sum(g.gpus for g in fleet.groups if g.traffic.name == name and g.stock.owned)
    return f" + {whole(owned)} owned GPU{'' if owned == 1 else 's'} at $0" if owned else ""


def _first(fleet: Fleet) -> str:
    """Class of the first bar."""
    return next((group.traffic.name for group in fleet.groups), "")


def mix(fleet: Fleet) -> list[Cells]:
    """One row per plan of the mix, each with the way to it."""
    names = stock_names(fleet.question)
    return [
        (
            g.traffic.name, _way(g), names[g.row], whole(g.gpus), _money(g.usd_per_hour), whole(g.replicas),
            *_rates(g.qps, g.capacity),
        )
        for g in fleet.groups
    ]  # fmt: skip


def _way(group: Group) -> Way:
    """The way to a plan of the mix."""
    said = f"Open {group.traffic.name}, {plan_name(group)} on {accelerator(group.stock.accelerator).name} as plan"
    return Way(plan_name(group), anchor(pinned(group.scenario)), said)


def _rates(*values: float) -> tuple[str, ...]:
    """Requests a second."""
    return tuple(f"{value:,.2f}" for value in values)


def _money(value: float) -> str:
    """Dollars, always with cents, so that a column of them lines up."""
    return f"${value:,.2f}"


def served(fleet: Fleet) -> list[Cells]:
    """One row per class."""
    return [
        (
            s.traffic.name, *_rates(s.demand, s.qps, s.capacity), _share(s.utilisation if s.replicas else None),
            whole(s.replicas), whole(s.failures), whole(s.gpus),
        )
        for s in fleet.served
    ]  # fmt: skip


def _share(value: float | None) -> str:
    """A share in per cent; an en dash for none, and for one without an end."""
    return f"{value * 100:.1f} %" if value is not None and isfinite(value) else DASH


def idle(fleet: Fleet) -> list[Cells]:
    """One row per kind of GPUs."""
    names = stock_names(fleet.question)
    return [
        (
            name, whole(t.stock.gpus), whole(t.used), whole(t.billed), whole(t.idle), _money(t.rate.price),
            _money(t.usd_per_hour), t.rate.source,
        )
        for name, t in zip(names, fleet.taken, strict=True)
    ]  # fmt: skip


def failure(fleet: Fleet) -> list[Cells]:
    """One row per plan of the mix: its class without one of its replicas."""
    return [
        (
            g.traffic.name, f"{plan_name(g)} on {accelerator(g.stock.accelerator).name}",
            *_rates(g.failure.capacity, g.traffic.scenario.qps), _share(g.failure.load), sentence.after(g),
        )
        for g in fleet.groups
    ]  # fmt: skip
