"""Rows behind the charts and tables of a plan: numbers for the scales, finished text for labels and tooltips.

Arrow tables, because a data frame takes ten times as long to send.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import log, sqrt
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from planner.candidates import candidates
from planner.evaluate import evaluate
from planner.measured import MeasuredPoint, measured_points
from planner.plan import CurvePoint, LedgerRow, Plan, Plans
from planner.specs.layout import layout
from planner.specs.spelling import decimal
from planner.ui.charts import GROUPS
from planner.ui.marks import Datasets
from planner.units import DASH, GB, GIB, gibibytes, gigabytes, show, significant, whole

Row: TypeAlias = tuple[Any, ...]

DEGREES = (1, 2, 4, 8, 16, 32)
"""Tensor-parallel degrees of the menu."""

SMALLEST_LABEL = 0.15
"""Share of the bar below which a part's name does not fit into it."""

ROOM_FOR_LABEL = 0.3
"""Share of a chart's width that a label beside a mark needs."""

MILLISECONDS_SHOWN = 1000.0
"""From here on a time is shown in seconds."""

LABEL_ROWS = 3
"""Rows above the TPOT curve for the labels of its limits."""

CLOSE = 0.1
"""Share of a chart's width (some 40 pixels) below which two limits have one label."""

ROOM_FOR_TWO = 0.5
"""Share of a chart's width that the label of several limits needs."""

PARTS = pa.schema(
    [
        ("part", pa.string()),
        *((n, pa.float64()) for n in ("start", "end", "middle")),
        *((n, pa.string()) for n in ("label", "gb", "gib", "share")),
    ]
)
MARKS = pa.schema([("mark", pa.string()), ("gb", pa.float64()), ("label", pa.string()), ("side", pa.string())])
CURVE = pa.schema(
    [
        *((n, pa.float64()) for n in ("batch", "from", "to", "tpot", "low", "high")),
        *((n, pa.string()) for n in ("at", "time", "range", "rate", "cost", "held")),
    ]
)
PROMISE = pa.schema([("ms", pa.float64()), ("label", pa.string())])
LIMITS = pa.schema(
    [
        ("batch", pa.float64()),
        ("label", pa.string()),
        ("row", pa.int64()),
        ("side", pa.string()),
        ("binds", pa.string()),
    ]
)
OVERRUN = pa.schema([("start", pa.float64()), ("end", pa.float64()), ("label", pa.string())])
MEASURED = pa.schema(
    [
        ("batch", pa.float64()),
        ("tpot", pa.float64()),
        *((n, pa.string()) for n in ("at", "time", "lengths", "engine", "source")),
    ]
)
OPERATORS = pa.schema(
    [
        ("group", pa.string()),
        ("operator", pa.string()),
        ("start", pa.float64()),
        ("end", pa.float64()),
        *((n, pa.string()) for n in ("time", "bound", "flops", "bytes", "link")),
    ]
)
TOTALS = pa.schema([("group", pa.string()), ("label", pa.string())])


def rows(schema: pa.Schema, found: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table of a fixed schema, so that an empty one has its columns too."""
    columns = list(zip(*found, strict=True)) if found else [()] * len(schema)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def parts(plan: Plan) -> dict[str, float]:
    """Bytes of each part of one device's memory, in the order of the bar."""
    held = {
        "Weights": plan.weights_bytes,
        "KV pool": max(plan.kv_pool_bytes, 0.0),
        "Activations": plan.activation_bytes,
        "Runtime": plan.runtime_bytes,
        "CUDA graphs": plan.graph_bytes,
    }
    return {**held, "Withheld": max(plan.physical_bytes - sum(held.values()), 0.0)}


@lru_cache(maxsize=32)
def memory(plan: Plan) -> Datasets:
    """Parts of the bar and its two marks."""
    found: list[Row] = []
    start, bar = 0.0, max(sum(parts(plan).values()), plan.physical_bytes)
    for part, size in parts(plan).items():
        gb = size / GB
        left, right = _clear(start, start + gb, (plan.usable_bytes / GB, plan.physical_bytes / GB))
        label = f"{part}\n{significant(gb)} GB" if (right - left) * GB / bar >= SMALLEST_LABEL else ""
        share = show(size / plan.physical_bytes, "%")
        found.append((part, start, start + gb, (left + right) / 2, label, gigabytes(size), gibibytes(size), share))
        start += gb
    marks = [
        (name, size / GB, f"{name} {gigabytes(size)}", "left" if size / bar < ROOM_FOR_LABEL else "right")
        for name, size in (("usable", plan.usable_bytes), ("physical", plan.physical_bytes))
    ]
    return {"parts": rows(PARTS, found), "marks": rows(MARKS, marks), "overrun": rows(OVERRUN, _overrun(plan))}


def _clear(start: float, end: float, marks: tuple[float, ...]) -> tuple[float, float]:
    """The widest stretch of a part that no mark crosses: there its name stands."""
    edges = [start, *sorted(mark for mark in marks if start < mark < end), end]
    return max(pairwise(edges), key=lambda edge: edge[1] - edge[0])


def _overrun(plan: Plan) -> list[Row]:
    """What weights and engine take beyond usable memory; nothing when they fit. The label needs room beside the mark."""
    usable, inside = plan.usable_bytes / GB, (plan.weights_bytes + plan.activation_bytes + plan.runtime_bytes) / GB
    if plan.fits or plan.kv_pool_bytes > 0 or inside <= usable:
        return []
    return [
        (
            usable,
            inside,
            f"{significant(inside - usable)} GB missing" if inside - usable > ROOM_FOR_LABEL * inside else "",
        )
    ]


@lru_cache(maxsize=32)
def curve(plan: Plan) -> Datasets:
    """Points of the TPOT curve, the promise, the limits and the operating point."""
    promise = plan.scenario.sla_tpot_ms
    return {
        "curve": rows(CURVE, _points(plan.curve)),
        "promise": rows(PROMISE, [(promise, f"SLA {asked(promise)}")]),
        "limits": rows(LIMITS, _limits(plan)),
        "point": rows(CURVE, [_point(point, 0.0, 0.0) for point in plan.curve if point.batch == plan.batch]),
        "measured": rows(MEASURED, [_measured(point) for point in measured_points(plan.scenario)]),
    }


def _points(curve: Sequence[CurvePoint]) -> list[Row]:
    """Points with the stretch of the axis that each answers for: halfway, on its logarithm, to its neighbours."""
    batches = [float(point.batch) for point in curve]
    middles = [sqrt(one * other) for one, other in pairwise(batches)]
    edges = [batches[0], *middles, batches[-1]] if batches else []
    return [_point(point, left, right) for point, left, right in zip(curve, edges, edges[1:], strict=False)]


def _point(p: CurvePoint, left: float, right: float) -> Row:
    numbers = (p.batch, left, right, p.tpot_ms, p.tpot_low_ms, p.tpot_high_ms)
    band = f"{significant(p.tpot_low_ms)} to {show(p.tpot_high_ms, 'ms')}"
    rate, cost = f"{show(p.output_tok_s, 'tok/s')} per replica", show(p.usd_per_m_output, "$/M tokens")
    return (*numbers, whole(p.batch), show(p.tpot_ms, "ms"), band, rate, cost, "yes" if p.fits else "no")


def _measured(p: MeasuredPoint) -> Row:
    source = f"{p.source} ({p.date})" if p.date else p.source
    return (
        p.batch,
        p.tpot_ms,
        significant(p.batch),
        show(p.tpot_ms, "ms"),
        f"{whole(p.isl)}, {whole(p.osl)}",
        p.engine,
        source,
    )


def _limits(plan: Plan) -> list[Row]:
    """The largest batch under each limit, where it lies on the axis, and whether it binds; nothing for a limit of zero."""
    furthest = max((point.batch for point in plan.curve), default=1)
    found = [(plan.b_max_sla, "by SLA"), (plan.b_max_kv, "by KV cache")]
    if plan.b_max < min(plan.b_max_sla, plan.b_max_kv):
        found.append((plan.b_max, "by engine"))
    shown = sorted(limit for limit in found if 1 <= limit[0] <= furthest)
    groups = _neighbours([log(batch) / log(max(furthest, 2)) for batch, _ in shown])
    room = ROOM_FOR_LABEL if len(groups) == len(shown) else ROOM_FOR_TWO
    places = _places([sum(group.values()) / len(group) for group in groups], room)
    return [
        (float(shown[at][0]), label, *place, "first" if shown[at][0] == plan.b_max else "later")
        for group, place in zip(groups, places, strict=True)
        for at, label in _labels([shown[at] for at in group], list(group), place[1])
    ]


def _neighbours(shares: Sequence[float]) -> list[dict[int, float]]:
    """Marks from the left, by their place in the list, those that are close together in one group."""
    groups: list[dict[int, float]] = []
    for at, share in enumerate(shares):
        if groups and share - max(groups[-1].values()) < CLOSE:
            groups[-1][at] = share
        else:
            groups.append({at: share})
    return groups


def _labels(limits: Sequence[tuple[int, str]], at: Sequence[int], side: str) -> list[tuple[int, str]]:
    """The limits of a group with its one label, which stands at the group's outer mark so that it crosses none."""
    said = ", ".join(f"{whole(batch)} {name}" for batch, name in limits)
    outer = at[-1] if side == "left" else at[0]
    return [(each, said if each == outer else "") for each in at]


def _places(shares: Sequence[float], room: float = ROOM_FOR_LABEL) -> list[tuple[int, str]]:
    """Row and side of each label, from the left: a rule ends at its own label's row, so that it crosses no other label.

    A label takes `room` of the width.
    """
    first = LABEL_ROWS - len(shares)
    left = [at for at, share in enumerate(shares) if share < room]
    if shares and left and shares[-1] <= 1 - room:
        left = list(range(len(shares)))
    right = [at for at in reversed(range(len(shares))) if at not in left]
    rows_of = {at: first + row for row, at in enumerate([*left, *right])}
    return [(rows_of[at], "left" if at in left else "right") for at in range(len(shares))]


def asked(ms: float) -> str:
    """A time as somebody asked for it: no digit more than was written."""
    return f"{decimal(ms)} ms" if ms < MILLISECONDS_SHOWN else show(ms, "ms")


@lru_cache(maxsize=32)
def step(plan: Plan) -> Datasets:
    """Operators of a step within their groups, and each group's total."""
    found: list[Row] = []
    totals: list[Row] = []
    full = sum(row.seconds for row in plan.ledger) * 1e3
    for group, name in GROUPS.items():
        start = 0.0
        for row in of_group(plan, group):
            ms = row.seconds * 1e3
            found.append((name, row.operator, start, start + ms, show(ms, "ms"), row.bound_by, *_work(row)))
            start += ms
        totals.append((name, _total(plan, group, start, full)))
    return {"operators": rows(OPERATORS, found), "totals": rows(TOTALS, totals)}


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
        return DASH
    return f"{show(ms, 'ms')} · {show(ms / full, '%')} · bound by {bound_of(plan, group)}"


def _work(row: LedgerRow) -> Row:
    return show(row.flops / 1e12, "TFLOP"), gigabytes(row.hbm_bytes), gigabytes(row.link_bytes)


def memory_table(plan: Plan) -> list[Row]:
    """The memory bar as a table: the engine's log speaks of GiB, data sheets of GB."""
    sizes = {**parts(plan), "Usable": plan.usable_bytes, "Physical": plan.physical_bytes}
    full = plan.physical_bytes
    return [(part, f"{n / GB:.2f}", f"{n / GIB:.2f}", f"{100 * n / full:.1f} %") for part, n in sizes.items()]


MEMORY_HEADER = ("Part", "GB", "GiB", "of physical")
"""Columns of the memory table."""


def curve_table(plan: Plan) -> pa.Table:
    """The TPOT curve as a table."""
    return pa.table({
        "Batch": [p.batch for p in plan.curve],
        "TPOT, ms": [p.tpot_ms for p in plan.curve],
        "Low": [p.tpot_low_ms for p in plan.curve],
        "High": [p.tpot_high_ms for p in plan.curve],
        "Output tok/s": [p.output_tok_s for p in plan.curve],
        "$/M output": pa.array([p.usd_per_m_output for p in plan.curve], pa.float64()),
        "Fits": ["yes" if p.fits else "no" for p in plan.curve],
    })  # fmt: skip


MEASURED_HEADER = {
    "batch": "Batch",
    "tpot": "TPOT measured, ms",
    "lengths": "Tokens in, out",
    "engine": "Engine",
    "source": "Says who",
}
"""Columns of the table of measurements by those of the chart's rows."""


def measured_table(plan: Plan) -> pa.Table:
    """Public measurements of the same configuration as a table."""
    return curve(plan)["measured"].select(list(MEASURED_HEADER)).rename_columns(list(MEASURED_HEADER.values()))


def step_table(plan: Plan) -> pa.Table:
    """The step as a table."""
    full = sum(row.seconds for row in plan.ledger) or 1.0
    return pa.table({
        "Group": [GROUPS.get(r.group, r.group) for r in plan.ledger],
        "Operator": [r.operator for r in plan.ledger],
        "ms": [r.seconds * 1e3 for r in plan.ledger],
        "Share, %": [100 * r.seconds / full for r in plan.ledger],
        "Bound by": [r.bound_by for r in plan.ledger],
        "TFLOP": [r.flops / 1e12 for r in plan.ledger],
        "HBM GB": [r.hbm_bytes / GB for r in plan.ledger],
        "Link GB": [r.link_bytes / GB for r in plan.ledger],
    })  # fmt: skip


LAYOUT_HEADER = ("TP", "Requests", "TPOT", "Verdict")
"""Columns of the table of layouts."""

KEEPS = "fits, keeps the SLA"
"""The verdict on a layout that can be promised."""


def layout_table(plan: Plan) -> list[Row]:
    """What each tensor-parallel degree of the menu would hold, for the same model, precision and lengths."""
    s = plan.scenario
    degrees = np.array(DEGREES, dtype=float)
    table = evaluate(s, candidates(layout(tp=degrees, ep=np.minimum(degrees, float(s.ep)))))
    return [(str(tp), *_layout(table, at)) for at, tp in enumerate(DEGREES)]


def _layout(table: Plans, at: int) -> Row:
    """The largest batch that keeps every limit, TPOT there and the verdict on one layout."""
    if not (table.fits[at] and table.engine_ok[at]):
        return DASH, DASH, table.reasons[int(table.reason[at])]
    verdict = KEEPS if table.meets_sla[at] else "fits, breaks the SLA"
    return whole(float(table.batch[at])), show(float(table.tpot_ms[at]), "ms"), verdict
