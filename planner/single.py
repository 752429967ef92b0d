"""One plan with everything a reviewer asks for: curve, ledger, notes, assumptions, sources."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from planner.arithmetic import arithmetic
from planner.formula import Worked
from planner.ledger import ledger_rows
from planner.money import replica_dollars
from planner.notes import notes
from planner.plan import BINDS, CurvePoint, Plan, Plans
from planner.promised import remarks, row_of
from planner.provenance import assumptions, sources
from planner.rows import Bounds, bounds, largest_sure, seats_of, speed_at
from planner.setting import Setting, resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario

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
    row = row_of(setting, known)
    values: dict[str, Any] = {name: _value(row, name) for name in _SCALARS}
    timed = bool(np.isfinite(row.tpot_ms[0]))
    curve = _curve(setting, known, row) if timed else ()
    return Plan(
        **values,
        **_bands(setting, known, row),
        binds=BINDS[int(row.binds[0])],
        reason=row.reasons[int(row.reason[0])],
        notes=(*remarks(setting, known, row), *notes(setting, row, curve)),
        scenario=asked,
        curve=curve,
        ledger=ledger_rows(setting, known.clock, row.batch[:, None], float(row.tpot_ms[0]) / 1e3) if timed else (),
        assumptions=assumptions(setting),
        sources=sources(setting),
    )


BANDS = (
    "b_max_sure", "ttft_low_ms", "ttft_high_ms", "output_low_tok_s", "output_high_tok_s", "usd_low_per_m_goodput",
    "usd_high_per_m_goodput",
)  # fmt: skip
"""Fields that follow from a row and how wide its profile is known to be."""

_SCALARS = tuple(
    name
    for name in Plan.__dataclass_fields__
    if name not in ("binds", "reason", "notes", "scenario", "curve", "ledger", "assumptions", "sources", *BANDS)
)


def _bands(setting: Setting, known: Bounds, row: Plans) -> dict[str, Any]:
    """The 80 % bands of TTFT, throughput and cost, and the largest batch that four cases in five reach."""
    clock, ttft, output = setting.profile, _value(row, "ttft_ms"), _value(row, "output_tok_s")
    dollars = _value(row, "usd_per_m_goodput")
    (slow, fast), (first, last) = clock.band_rate, clock.band_ttft
    sure = min(float(row.b_max[0]), float(largest_sure(setting, known)[0, 0]))
    dollar_ends = _of(dollars, 1.0 / fast), _of(dollars, 1.0 / slow)
    ends = (_of(ttft, first), _of(ttft, last), _of(output, slow), _of(output, fast), *dollar_ends)
    return dict(zip(BANDS, (int(sure), *ends), strict=True))


def _of(value: float | None, factor: float) -> float | None:
    """A value times a factor; None stays None."""
    return None if value is None else value * factor


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
    dollars = replica_dollars(setting, float(row.gpus_per_replica[0]), rate)
    low, high = setting.profile.band
    held = float(row.b_max_kv[0])
    return tuple(
        CurvePoint(int(b), t, t * low, t * high, r, d / (r * 3600.0 / 1e6) if np.isfinite(d) else None, b <= held)
        for b, t, r, d in zip(batches.tolist(), tpot.tolist(), rate.tolist(), dollars.tolist(), strict=True)
    )


def worked(scenario: Scenario) -> tuple[Worked, ...]:
    """The arithmetic of a plan, line by line, from the code itself; `arithmetic` has it part by part."""
    return tuple(each for part in arithmetic(scenario) for each in part.worked)
