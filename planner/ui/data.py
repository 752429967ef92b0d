"""Rows behind the charts and tables of a plan: numbers for the scales, finished text for labels and tooltips."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import log

import pandas as pd

from planner.plan import LedgerRow, Plan
from planner.ui.charts import GROUPS, Datasets
from planner.units import GB, GIB, gibibytes, gigabytes, show, significant, whole

SMALLEST_LABEL = 0.09
"""Share of the bar below which a part's name does not fit into it."""


def parts(plan: Plan) -> dict[str, float]:
    """Bytes of each part of one device's memory, in the order of the bar; `Missing` when it does not fit."""
    held = {
        "Weights": plan.weights_bytes,
        "KV pool": max(plan.kv_pool_bytes, 0.0),
        "Activations": plan.activation_bytes,
        "Runtime": plan.runtime_bytes,
        "CUDA graphs": plan.graph_bytes,
    }
    inside = sum(held.values())
    left = plan.physical_bytes - inside
    return {**held, "Withheld": max(left, 0.0)}


@lru_cache(maxsize=32)
def memory(plan: Plan) -> Datasets:
    """Parts of the bar and its two marks."""
    rows, start = [], 0.0
    whole_bar = max(sum(parts(plan).values()), plan.physical_bytes)
    for part, size in parts(plan).items():
        gb = size / GB
        roomy = size / whole_bar >= SMALLEST_LABEL
        label = f"{part}\n{significant(gb)} GB" if roomy else ""
        rows.append((part, start, start + gb, start + gb / 2, label, gigabytes(size), gibibytes(size), show(size / plan.physical_bytes, "%")))
        start += gb
    marks = [("usable", plan.usable_bytes / GB, f"usable {gigabytes(plan.usable_bytes)}")]
    marks.append(("physical", plan.physical_bytes / GB, f"physical {gigabytes(plan.physical_bytes)}"))
    return {
        "parts": pd.DataFrame(rows, columns=["part", "start", "end", "middle", "label", "gb", "gib", "share"]),
        "marks": pd.DataFrame(marks, columns=["mark", "gb", "label"]),
    }


@lru_cache(maxsize=32)
def curve(plan: Plan) -> Datasets:
    """Points of the TPOT curve, the promise, the two limits and the operating point."""
    points = pd.DataFrame(_points(plan), columns=["batch", "tpot", "low", "high", "at", "time", "range", "rate", "cost", "held"])
    promise = plan.scenario.sla_tpot_ms
    here = points[points["batch"] == plan.batch] if plan.batch >= 1 else points[:0]
    return {
        "curve": points,
        "promise": pd.DataFrame({"ms": [promise], "label": [f"SLA {show(promise, 'ms')}"]}),
        "limits": pd.DataFrame(_limits(plan, points), columns=["batch", "label", "row", "side", "floor"]),
        "point": here,
    }


def _points(plan: Plan) -> Iterator[tuple[object, ...]]:
    for p in plan.curve:
        band = f"{significant(p.tpot_low_ms)} to {show(p.tpot_high_ms, 'ms')}"
        cost = show(p.usd_per_m_output, "$/M tokens")
        rate = f"{show(p.output_tok_s, 'tok/s')} per replica"
        yield (p.batch, p.tpot_ms, p.tpot_low_ms, p.tpot_high_ms, whole(p.batch), show(p.tpot_ms, "ms"), band, rate, cost, "yes" if p.fits else "no")


def _limits(plan: Plan, points: pd.DataFrame) -> list[tuple[int, str, int, str, float]]:
    """Both limits where they lie on the axis, labelled on the side with room; nothing for a limit of zero."""
    furthest = float(points["batch"].max()) if len(points) else 1.0
    floor = min([*points["low"], plan.scenario.sla_tpot_ms])
    found = [(plan.b_max_sla, f"B_max by SLA {whole(plan.b_max_sla)}"), (plan.b_max_kv, f"B_max by KV cache {whole(plan.b_max_kv)}")]
    return [
        (batch, label, row, "left" if log(batch) < 0.45 * log(max(furthest, 2)) else "right", floor)
        for row, (batch, label) in enumerate(found)
        if 1 <= batch <= furthest
    ]


@lru_cache(maxsize=32)
def step(plan: Plan) -> Datasets:
    """Operators of a step within their groups, and each group's total."""
    rows: list[tuple[object, ...]] = []
    totals = []
    full = sum(row.seconds for row in plan.ledger) * 1e3
    for group, name in GROUPS.items():
        start = 0.0
        for row in of_group(plan, group):
            ms = row.seconds * 1e3
            rows.append((name, row.operator, start, start + ms, show(ms, "ms"), row.bound_by, *_work(row)))
            start += ms
        totals.append((name, start, _total(plan, group, start, full)))
    return {
        "operators": pd.DataFrame(rows, columns=["group", "operator", "start", "end", "time", "bound", "flops", "bytes", "link"]),
        "totals": pd.DataFrame(totals, columns=["group", "ms", "label"]),
    }


def of_group(plan: Plan, group: str) -> list[LedgerRow]:
    """Rows of the ledger in one group."""
    return [row for row in plan.ledger if row.group == group]


def bound_of(plan: Plan, group: str) -> str:
    """What bounds most of a group's time; empty for a group without time."""
    times: dict[str, float] = {}
    for row in of_group(plan, group):
        times[row.bound_by] = times.get(row.bound_by, 0.0) + row.seconds
    return max(times, key=lambda bound: times[bound]) if sum(times.values()) > 0 else ""


def _total(plan: Plan, group: str, ms: float, full: float) -> str:
    if ms <= 0 or full <= 0:
        return "–"
    return f"{show(ms, 'ms')} · {show(ms / full, '%')} · bound by {bound_of(plan, group)}"


def _work(row: LedgerRow) -> tuple[str, str, str]:
    return show(row.flops / 1e12, "TFLOP"), gigabytes(row.hbm_bytes), gigabytes(row.link_bytes)


def memory_table(plan: Plan) -> pd.DataFrame:
    """The memory bar as a table: the engine's log speaks of GiB, data sheets of GB."""
    usable = {"Usable": plan.usable_bytes, "Physical": plan.physical_bytes}
    rows = [(part, size / GB, size / GIB, 100 * size / plan.physical_bytes) for part, size in {**parts(plan), **usable}.items()]
    return pd.DataFrame(rows, columns=["Part", "GB", "GiB", "% of physical"])


def curve_table(plan: Plan) -> pd.DataFrame:
    """The TPOT curve as a table."""
    rows = [
        (p.batch, p.tpot_ms, p.tpot_low_ms, p.tpot_high_ms, p.output_tok_s, p.usd_per_m_output, "yes" if p.fits else "no")
        for p in plan.curve
    ]
    return pd.DataFrame(rows, columns=["Batch", "TPOT, ms", "Low, ms", "High, ms", "Output tok/s", "$ per M output", "Fits the pool"])


def step_table(plan: Plan) -> pd.DataFrame:
    """The step as a table."""
    full = sum(row.seconds for row in plan.ledger) or 1.0
    rows = [
        (GROUPS.get(r.group, r.group), r.operator, r.seconds * 1e3, 100 * r.seconds / full, r.bound_by, r.flops / 1e12, r.hbm_bytes / GB, r.link_bytes / GB)
        for r in plan.ledger
    ]
    return pd.DataFrame(rows, columns=["Group", "Operator", "ms", "Share, %", "Bound by", "TFLOP", "HBM GB", "Link GB"])
