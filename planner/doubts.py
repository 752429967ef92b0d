"""How far a verdict is to be trusted, what would keep a promise that breaks, and at what point a fleet really runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from planner.catalog.version import catalogue_version
from planner.nearest import keeping_tp
from planner.plan import CurvePoint, Note, Plans
from planner.promised import MEDIAN
from planner.setting import Setting
from planner.specs.scenario import Scenario
from planner.units import show, whole

LOADED_TTFT = 2.0
"""Measured TTFT of loaded closed loops over a plan's own, about; beyond this a plan says that its promise may not hold."""

LOADED_TTFT_SAID = "about 1.6 times this with 5 to 16 requests in flight, 2.3 times with 17 to 64, 5.6 times with more"
"""Medians over 1,657 shipped points (presets/measurements/serving.csv), measured over the plan's TTFT."""

Curve: TypeAlias = tuple[CurvePoint, ...]
"""TPOT over batch of one replica, by batch."""


@dataclass(frozen=True)
class Running:
    """Where a replica runs at the asked request rate.

    Attributes:
        batch: concurrent requests, at least 1.
        tpot_ms: TPOT there [ms].
        share: of the throughput at the operating batch.
    """

    batch: int
    tpot_ms: float
    share: float


def running(asked: Scenario, replicas: float, full: float, curve: Sequence[CurvePoint]) -> Running | None:
    """Where each serving replica runs at the asked rate; None where no rate is asked or nothing serves it.

    Args:
        asked: the scenario.
        replicas: all of them, spares too.
        full: output tokens/s of one at its operating batch.
        curve: TPOT over batch of one replica, by batch.
    """
    serving = replicas - asked.spare
    if asked.qps == 0 or not serving >= 1.0 or not curve:
        return None
    wanted, batches = asked.qps * asked.osl / serving, [point.batch for point in curve]
    batch = float(np.interp(wanted, [point.output_tok_s for point in curve], batches))
    tpot = float(np.interp(batch, batches, [point.tpot_ms for point in curve]))
    return Running(max(round(batch), 1), tpot, wanted / full)


def doubts(setting: Setting, row: Plans, curve: Curve) -> tuple[Note, ...]:
    """Remarks on one plan whose speed is known."""
    stale = _stale(setting)
    if not np.isfinite(row.ttft_ms[0]) or not row.fits[0]:
        return stale
    if not row.meets_sla[0]:
        return (*_overloaded(setting, row), *_promise(setting, row, curve), *stale)
    if not setting.convention.overheads:
        return stale
    return (*_band(setting, row, curve), *_ttft(setting, row), *_rate(setting, row, curve), *stale)


def _band(setting: Setting, row: Plans, curve: Curve) -> tuple[Note, ...]:
    """Whether the promise lies inside the band of the estimate."""
    promise, high = setting.scenario.sla_tpot_ms, float(row.tpot_high_ms[0])
    if not high > promise:
        return ()
    span = f"{show(float(row.tpot_low_ms[0]), 'ms')} to {show(high, 'ms')}"
    safe = _batch_within(curve, promise)
    text = f"The 80 % band of TPOT is {span}: the promise of {show(promise, 'ms')} lies inside it. "
    return (
        Note("band", text + f"Up to {whole(safe)} concurrent requests all of it keeps the promise.", "sla_tpot_ms"),
    )


def _batch_within(curve: Curve, promise: float) -> float:
    """The largest batch at which the upper end of the band keeps the promise, between points of the curve; 0 for none."""
    highs = [point.tpot_high_ms for point in curve]
    if not highs or highs[0] > promise:
        return 0.0
    return math.floor(np.interp(promise, highs, [point.batch for point in curve]))


def _ttft(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """Whether TTFT under load may break a promise that an idle replica keeps."""
    promise, ttft = setting.scenario.sla_ttft_ms, float(row.ttft_ms[0])
    if ttft * LOADED_TTFT <= promise or setting.scenario.sla_pct != MEDIAN:  # at a percentile queues are counted
        return ()
    text = (
        f"TTFT of {show(ttft, 'ms')} is without queues. Public load tests, which start with all requests at once, measure "
        f"{LOADED_TTFT_SAID}: {show(promise, 'ms')} may not hold."
    )
    return (Note("ttft_bound", text, "sla_ttft_ms"),)


def _promise(setting: Setting, row: Plans, curve: Curve) -> tuple[Note, ...]:
    """What can be promised when nothing keeps the promise, and the layout that would keep it."""
    if row.b_max_sla[0] >= 1.0:
        return ()
    first = curve[0].tpot_ms if curve else float(row.tpot_ms[0])
    tpot = f" and TPOT {show(first, 'ms')}" if np.isfinite(first) else ""
    reach = f"At batch 1 this layout reaches TTFT {show(_first_token(row, first), 'ms')}"
    tp = keeping_tp(setting)
    other = "no tensor-parallel degree keeps the promise" if tp is None else f"tp={tp} keeps the promise"
    return (Note("promise", f"{reach}{tpot}; {other}.", "tp"),)


def _first_token(row: Plans, tpot: float) -> float:
    """TTFT at batch 1 [ms]: unloaded, and half of a step at that batch where steps run."""
    half = (float(row.ttft_ms[0]) - float(row.ttft_unloaded_ms[0])) * tpot / float(row.tpot_ms[0])
    return float(row.ttft_unloaded_ms[0]) + (half if np.isfinite(half) else 0.0)


def _overloaded(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """What fixed replicas carry, and how many would do."""
    asked, rate = setting.scenario, float(row.output_tok_s[0])
    if asked.fix_replicas is None or not asked.qps * asked.osl > asked.fix_replicas * rate:
        return ()
    carried = asked.fix_replicas * rate / asked.osl
    needed = math.ceil(asked.qps * asked.osl / (rate * asked.load))
    text = f"The fixed replicas carry {show(carried)} of {show(asked.qps)} requests/s; {needed:,} replicas would do."
    return (Note("overloaded", text, "fix_replicas"),)


def _rate(setting: Setting, row: Plans, curve: Curve) -> tuple[Note, ...]:
    """The batch and TPOT at which replicas run at the asked rate, below the operating batch; and a load above the asked one."""
    asked = setting.scenario
    here = running(asked, float(row.replicas[0]), float(row.output_tok_s[0]), curve)
    if here is None:
        return ()
    point = f"{show(here.batch, 'requests')} at a TPOT of {show(here.tpot_ms, 'ms')}"
    text = f"At the asked rate each replica runs about {point}: {show(here.share, '%')} of its throughput."
    notes = [Note("at_rate", text, "qps")]
    if here.share > asked.load * (1 + 1e-9):
        over = f"The fixed replicas run at {show(here.share, '%')} of their throughput, above load = {asked.load:g}."
        notes.insert(0, Note("over_load", over, "fix_replicas"))
    return tuple(notes)


def _stale(setting: Setting) -> tuple[Note, ...]:
    """Whether the scenario was made with another catalogue."""
    made, today = setting.scenario.c, catalogue_version()
    if made is None or made == today:
        return ()
    text = f"Made with catalogue {made}; today's is {today}: where a fact has changed since, so have the numbers."
    return (Note("catalogue", text, "c"),)
