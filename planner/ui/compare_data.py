"""Rows behind the charts of the Compare page, from the comparison and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from planner.compare.comparison import Comparison
from planner.compare.link import LETTERS
from planner.compare.quantities import Quantity, figure, ranked
from planner.confidence import ENDS, band, rate_band
from planner.plan import Plan
from planner.ui.compare_charts import SYMBOLS
from planner.ui.compare_words import fallen
from planner.ui.data import Row, asked, rows
from planner.ui.marks import Datasets
from planner.units import DASH, show, whole
from planner.variants import tpots

STOPS: Final = 48
"""Batches at which the chart answers the pointer, spread geometrically."""

SERIES: Final = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("series", pa.string())])
POINTS: Final = pa.schema([*SERIES, ("name", pa.string())])
LEVELS: Final = pa.schema([("level", pa.float64()), ("label", pa.string()), ("place", pa.string())])
LIMITS: Final = pa.schema(
    [("limit", pa.float64()), ("label", pa.string()), ("toward", pa.string()), ("row", pa.int64())]
)
BARS: Final = pa.schema(
    [
        ("plan", pa.string()),
        ("value", pa.float64()),
        ("label", pa.string()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("band", pa.string()),
    ]
)


def curves(found: Comparison) -> Datasets:
    """Each plan's TPOT up to the largest batch that its cache holds, where it operates, and the SLAs."""
    named = list(zip(found.names, found.plans, strict=True))
    lines = [
        (float(p.batch), p.tpot_ms, name)
        for name, plan in named
        if plan.fits
        for p in plan.curve
        if p.batch <= plan.b_max_kv
    ]
    return {
        "lines": rows(SERIES, lines),
        "points": rows(POINTS, _points(found)),
        "levels": rows(LEVELS, _levels(found)),
        "limits": rows(LIMITS, []),
        "stops": rows(_stop_schema(len(named)), _stops(found)),
    }


def drawn(plan: Plan) -> bool:
    """Whether a plan has a line."""
    return plan.fits and any(point.batch <= plan.b_max_kv for point in plan.curve)


def _points(found: Comparison) -> list[Row]:
    """Where each plan operates; plans at one place share one label, that of the last."""
    at = {
        name: (float(p.batch), p.tpot_ms)
        for name, plan in zip(found.names, found.plans, strict=True)
        for p in plan.curve
        if drawn(plan) and p.batch == plan.batch
    }
    same = {name: [other for other in at if at[other] == at[name]] for name in at}
    return [(*at[name], name, " ".join(same[name]) if name == same[name][-1] else "") for name in at]


def _levels(found: Comparison) -> list[Row]:
    """One line for each SLA on TPOT; it names its plans where they differ."""
    promised: dict[float, list[str]] = {}
    for name, plan in zip(found.names, found.plans, strict=True):
        promised.setdefault(plan.scenario.sla_tpot_ms, []).append(name)
    one = len(promised) == 1
    return [
        (ms, f"SLA {asked(ms)}" if one else f"SLA {asked(ms)}, {' '.join(names)}", "bottom")
        for ms, names in sorted(promised.items())
    ]


def _batches(found: Comparison) -> list[float]:
    """Whole batches from 1 to the largest that any plan's cache holds."""
    top = max((min(plan.b_max_kv, plan.curve[-1].batch) for plan in found.plans if drawn(plan)), default=0)
    return [] if top < 2 else np.unique(np.round(np.geomspace(1.0, top, STOPS))).tolist()


def _stop_schema(count: int) -> pa.Schema:
    numbers, words = ("x", "from", "to"), ("at", *LETTERS[:count])
    return pa.schema([*((name, pa.float64()) for name in numbers), *((name, pa.string()) for name in words)])


def _stops(found: Comparison) -> list[Row]:
    """What the chart says at each batch: every plan's TPOT, an en dash beyond its cache."""
    batches = _batches(found)
    if not batches:
        return []
    middles = [(one * other) ** 0.5 for one, other in pairwise(batches)]
    edges = [batches[0], *middles, batches[-1]]
    texts = zip(*(_times(plan, batches) for plan in found.plans), strict=True)
    return [
        (batch, left, right, whole(batch), *said)
        for batch, left, right, said in zip(batches, edges, edges[1:], texts, strict=False)
    ]


def _times(plan: Plan, batches: Sequence[float]) -> list[str]:
    """A plan's TPOT at each batch, in words."""
    return [DASH if ms is None else show(ms, "ms") for ms in times(plan, batches)]


def times(plan: Plan, batches: Sequence[float]) -> list[float | None]:
    """A plan's TPOT at each batch [ms]; None beyond what its cache holds."""
    if not drawn(plan):
        return [None] * len(batches)
    found = tpots(plan.scenario, np.array([batches])).reshape(-1).tolist()
    return [ms if batch <= plan.b_max_kv else None for ms, batch in zip(found, batches, strict=True)]


def curve_table(found: Comparison) -> pa.Table:
    """TPOT of every plan at powers of two [ms]."""
    top = max(_batches(found), default=1.0)
    batches = [float(2**power) for power in range(17) if 2**power <= top]
    named = zip(found.names, found.plans, strict=True)
    columns = {f"{name}, ms": pa.array(times(plan, batches), pa.float64()) for name, plan in named}
    return pa.table({"Batch": pa.array([int(batch) for batch in batches], pa.int64()), **columns})


def bars(found: Comparison, quantity: Quantity) -> Datasets:
    """One figure of each plan with its label, best first; no bar for a plan that does not stand, and its label says why."""
    best = ranked(found.plans, quantity)
    others = [at for at in range(len(found.plans)) if at not in best]
    return {"bars": rows(BARS, [_bar(found, at, quantity) for at in (*best, *others)])}


def _bar(found: Comparison, at: int, quantity: Quantity) -> Row:
    value = figure(found.plans[at], quantity)
    none = DASH if found.stands(at) else fallen(found.plans[at])
    said = none if value is None else quantity.text(value)
    return LETTERS[at], value or 0.0, f"{SYMBOLS[at]} {LETTERS[at]}  {said}", *_band(found.plans[at], quantity, value)


def _band(plan: Plan, quantity: Quantity, value: float | None) -> Row:
    """The ends of a figure's 80 % band and both in words; the band of a rate is in proportion to that of a replica."""
    if value is None:
        return None, None, DASH
    known = band(plan, quantity.name) if quantity.name in ENDS else rate_band(plan, value)
    if known is None:
        return None, None, DASH
    return known.low, known.high, f"{quantity.text(known.low)} to {quantity.text(known.high)}"
