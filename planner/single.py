"""One plan with everything a reviewer asks for: curve, ledger, notes, assumptions, sources."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from planner.arithmetic import arithmetic
from planner.formula import Worked
from planner.notes import notes
from planner.physics import forward, passes
from planner.physics.roofline import bound_by, entry_seconds, terms
from planner.plan import BINDS, CurvePoint, LedgerRow, Plan, Plans
from planner.provenance import assumptions, sources
from planner.rows import Bounds, bounds, seats_of, speed_at
from planner.serving.decode import rank_batch
from planner.setting import Setting, resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.tabulate import table
from planner.work import ONE, Entry, Ledger

CURVE_POINTS = 64
"""Batches on the TPOT curve, spread geometrically."""

WHOLE = (
    "gpus_per_replica", "replicas", "gpus", "kv_capacity_tokens_rank", "kv_capacity_tokens", "b_max_kv",
    "b_max_kv_mean", "b_max_sla", "b_max", "batch",
)  # fmt: skip
"""Plan fields that are whole numbers."""

UNSIZED = ("replicas", "gpus")
"""Of these, the ones that are empty where nothing can be sized."""


@functools.lru_cache(maxsize=256)
def plan_of(scenario: Scenario) -> Plan:
    """The plan of a scenario at its own layout and operating point.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    return plan_setting(resolve(scenario))


def plan_setting(setting: Setting) -> Plan:
    """As `plan_of`, for a setting that is already resolved."""
    asked = setting.scenario
    known = bounds(setting, layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp).tall)
    row = table(setting, known, None if asked.at_batch is None else np.full((1, 1), float(asked.at_batch)))
    values: dict[str, Any] = {name: _value(row, name) for name in _SCALARS}
    timed = bool(np.isfinite(row.tpot_ms[0]))
    curve = _curve(setting, known, row) if timed else ()
    return Plan(
        **values,
        binds=BINDS[int(row.binds[0])],
        reason=row.reasons[int(row.reason[0])],
        notes=notes(setting, row, curve),
        scenario=asked,
        curve=curve,
        ledger=_ledger(setting, known, row) if timed else (),
        assumptions=assumptions(setting),
        sources=sources(setting),
    )


_SCALARS = tuple(
    name
    for name in Plan.__dataclass_fields__
    if name not in ("binds", "reason", "notes", "scenario", "curve", "ledger", "assumptions", "sources")
)


def _value(row: Plans, name: str) -> bool | int | float | None:
    """One field of a one-row table: None for NaN, whole numbers as int."""
    value = getattr(row, name)[0]
    if isinstance(value, np.bool_):
        return bool(value)
    if not np.isfinite(value):
        return None if name in UNSIZED or name not in WHOLE else 0
    return int(value) if name in WHOLE else float(value)


def _grid(setting: Setting, row: Plans) -> np.ndarray:
    """Batches of the curve: 1 up to half beyond the furthest limit, and every limit itself."""
    seats = seats_of(setting) if setting.convention.overheads else 1
    limits = [row.b_max[0], row.b_max_kv[0], row.b_max_sla[0], row.batch[0], 8.0]
    finite = [float(x) for x in limits if np.isfinite(x) and 1 <= x <= 65_536]
    top = min(1.5 * max(*finite, float(min(seats, 256))), 65_536.0)
    spread = np.round(np.geomspace(1.0, top, CURVE_POINTS))
    return np.unique(np.concatenate([spread, np.floor(finite)]))


def _curve(setting: Setting, known: Bounds, row: Plans) -> tuple[CurvePoint, ...]:
    """TPOT and cost of one replica over batch."""
    batches = _grid(setting, row)
    speed = speed_at(setting, known.clock, batches[None, :], known.unloaded)
    tpot, rate = speed.tpot.reshape(-1) * 1e3, speed.rate.reshape(-1)
    price = setting.cost.price
    dollars = None if price is None else price * float(row.gpus_per_replica[0])
    low, high = setting.profile.band
    held = float(row.b_max_kv[0])
    return tuple(
        CurvePoint(
            int(b), t, t * low, t * high, r, None if dollars is None else dollars / (r * 3600.0 / 1e6), b <= held
        )
        for b, t, r in zip(batches.tolist(), tpot.tolist(), rate.tolist(), strict=True)
    )


def _ledger(setting: Setting, known: Bounds, row: Plans) -> tuple[LedgerRow, ...]:
    """The decode step at the operating point, operator by operator, and what prefill of others adds to it."""
    placed = known.clock.placed
    held = rank_batch(row.batch, placed.layout.dp)
    entries = forward.forward(placed, passes.decode_pass(held, setting.decoding.context * ONE))
    rows = [_ledger_row(entry, setting) for entry in entries]
    rows = rows if setting.profile.per_operator else _textbook_shares(rows, entries, setting)
    return (*rows, *_prefill_row(setting, float(row.tpot_ms[0]) / 1e3 - sum(each.seconds for each in rows)))


def _ledger_row(entry: Entry, setting: Setting) -> LedgerRow:
    """One operator over all its launches."""
    work, launches = entry.work, _one(entry.work.launches)
    return LedgerRow(
        operator=entry.name,
        group=entry.group,
        seconds=_one(entry_seconds(entry, setting.profile)),
        flops=_one(work.flops) * launches,
        hbm_bytes=_one(work.hbm_bytes) * launches,
        link_bytes=_one(work.link_bytes) * launches,
        bound_by=bound_by(entry, setting.profile),
    )


def _textbook_shares(rows: list[LedgerRow], entries: Ledger, setting: Setting) -> list[LedgerRow]:
    """The textbook clocks the summed work once; each operator is shown its share of the term that wins."""
    timed = [
        (row, terms(entry.work, setting.profile))
        for row, entry in zip(rows, entries, strict=True)
        if row.group != "host"
    ]
    launches = [_one(entry.work.launches) for entry in entries if entry.group != "host"]
    compute = [_one(t[0]) * n for (_, t), n in zip(timed, launches, strict=True)]
    memory = [_one(t[1]) * n for (_, t), n in zip(timed, launches, strict=True)]
    wins, bound = (memory, "memory") if sum(memory) >= sum(compute) else (compute, "compute")
    return [
        LedgerRow(row.operator, row.group, seconds, row.flops, row.hbm_bytes, row.link_bytes, bound)
        for (row, _), seconds in zip(timed, wins, strict=True)
    ]


def _prefill_row(setting: Setting, added: float) -> tuple[LedgerRow, ...]:
    """What other requests' prefill adds to the step; nothing when prefill is elsewhere."""
    if setting.decoding.prompt is None:
        return ()
    return (LedgerRow("prefill of other requests", "prefill", max(added, 0.0), 0.0, 0.0, 0.0, "compute"),)


def _one(column: object) -> float:
    """The first number of a column."""
    return float(np.asarray(column).reshape(-1)[0])


def worked(scenario: Scenario) -> tuple[Worked, ...]:
    """The arithmetic of a plan, line by line, from the code itself; `arithmetic` has it part by part."""
    return tuple(each for part in arithmetic(scenario) for each in part.worked)
