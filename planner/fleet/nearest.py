"""The SLA that a class of traffic would have to ask for where nothing there is keeps the one that it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, inf, log10
from typing import Final

import numpy as np

from planner.fleet.offers import bare, offers, table_of
from planner.fleet.question import Stock, TrafficClass
from planner.plan import Column
from planner.setting import resolve

DIGITS: Final = 3
"""Digits of an SLA that is proposed; it is rounded up."""


@dataclass(frozen=True)
class Needed:
    """The best that one request at a time gets, and so the least SLA that can be kept.

    Attributes:
        tpot_ms, ttft_ms: that SLA [ms]; None where the one that is asked for can stay.
    """

    tpot_ms: float | None
    ttft_ms: float | None

    def applied(self, traffic: TrafficClass) -> TrafficClass:
        """The class with that SLA."""
        changes = {"sla_tpot_ms": self.tpot_ms, "sla_ttft_ms": self.ttft_ms}
        scenario = traffic.scenario.with_(**{field: ms for field, ms in changes.items() if ms is not None})
        return TrafficClass(name=traffic.name, scenario=scenario, precisions=traffic.precisions)


def needed(traffic: TrafficClass, stock: tuple[Stock, ...]) -> Needed | None:
    """The nearest SLA that some replica keeps; None where it is not the SLA that is in the way.

    One of the two times is changed where that is enough: TPOT rather than TTFT; else both.

    Raises:
        CatalogueError, ModelConfigError: when the class names what does not exist or cannot be sized.
    """
    tables = [each for row in stock for each in _times(traffic, row)]
    if not tables:
        return None
    tpot, ttft = (np.concatenate(columns) for columns in zip(*tables, strict=True))
    if not tpot.size:
        return None
    found = _least(tpot, ttft, traffic.scenario.sla_tpot_ms, traffic.scenario.sla_ttft_ms)
    stands = any(offers(found.applied(traffic), row.accelerator).replicas for row in stock)
    return found if stands else None


def _times(traffic: TrafficClass, row: Stock) -> Iterator[tuple[Column, Column]]:
    """TPOT and TTFT [ms] of what fits, is served and there are GPUs for, at one request, or at the batch that is asked for."""
    plain, most = bare(traffic.scenario), inf if row.gpus is None else row.gpus
    for weights in traffic.weights:
        asked = plain.with_(gpu=row.accelerator, weights=weights, at_batch=plain.at_batch or 1)
        table = table_of(resolve(asked))
        known = np.isfinite(table.tpot_ms) & np.isfinite(table.ttft_ms)
        kept = table.fits & table.engine_ok & known & (table.gpus_per_replica <= most)
        yield table.tpot_ms[kept], table.ttft_ms[kept]


def _least(tpot: Column, ttft: Column, sla_tpot: float, sla_ttft: float) -> Needed:
    """Which SLA must give way, and how far."""
    if (soon := ttft <= sla_ttft).any():
        return Needed(_up(float(tpot[soon].min())), None)
    if (quick := tpot <= sla_tpot).any():
        return Needed(None, _up(float(ttft[quick].min())))
    at = int(np.argmin(np.maximum(tpot / sla_tpot, ttft / sla_ttft)))
    return Needed(_up(float(tpot[at])), _up(float(ttft[at])))


def _up(value: float) -> float:
    """A time rounded up, so that it can be kept."""
    step = 10.0 ** (floor(log10(value)) - DIGITS + 1)
    return float(f"{np.ceil(value / step - 1e-9) * step:.{DIGITS}g}")
