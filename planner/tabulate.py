"""The table of a block: verdicts, reasons and money put beside memory and speed, flattened layout by layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from planner.binding import binding, engine_reason
from planner.candidates import Flags
from planner.money import Money, money
from planner.plan import Codes, Column, Plans
from planner.rows import (
    OK,
    OVER_POOL,
    OVER_SEATS,
    OVER_SLA,
    OVERLOADED,
    REASONS,
    SLOW_FIRST,
    SLOW_TOKEN,
    WITHOUT_POOL,
    Bounds,
    Limits,
    Speed,
    speed_at,
)
from planner.serving import decode
from planner.setting import Setting
from planner.specs.scenario import Scenario


def table(
    setting: Setting,
    known: Bounds,
    batch: Column | None,
    serving: Column | None = None,
    workers: Column | None = None,
) -> Plans:
    """Plans of layouts at given batches (None = each layout's own largest).

    `serving` and `workers` are replicas and prefill workers in the place of those that the scenario asks for.
    """
    at = np.maximum(known.limits.largest, 1.0) if batch is None else batch
    following = decode.tpot(known.clock, known.limits.by_sla + 1.0)[0]
    binds, reason = binding(setting, known, following)
    return _table(setting, known, binds, reason, judged(setting, known, at, serving, workers=workers))


@dataclass(frozen=True)
class Verdicts:
    """Which rows stand in which sense, shape (n, m).

    Attributes:
        timed: speed is known: the weights fit, the layout is possible and modelled.
        fits: memory holds the batch; engine_ok: the engine serves it; keeps: mean TTFT and TPOT keep the promise.
        speaks: TPOT means something; flows: throughput does.
        sized: a number of replicas means something: sizing for a rate needs a batch that keeps the promise.
        overloaded: a fixed number of replicas carries less than is asked.
    """

    timed: Flags
    fits: Flags
    engine_ok: Flags
    keeps: Flags
    speaks: Flags
    flows: Flags
    sized: Flags
    overloaded: Flags


@dataclass(frozen=True)
class Judged:
    """Layouts at batches with speed, money and verdicts, columns of shape (n, m): what a table is made of.

    Attributes:
        batch: sequences a replica.
        speed, cash, verdicts: as named.
        output, good: output tokens a second of a replica, and those that keep the promise; a prefill pool feeds no more.
    """

    batch: Column
    speed: Speed
    cash: Money
    verdicts: Verdicts
    output: Column
    good: Column


def judged(
    setting: Setting,
    known: Bounds,
    batch: Column,
    serving: Column | None = None,
    speed: Speed | None = None,
    workers: Column | None = None,
) -> Judged:
    """Layouts of shape (n, 1) at batches of shape (1, m) or (n, m), judged.

    Args:
        setting, known: what is asked, and the layouts with their limits.
        batch: sequences a replica.
        serving: replicas that serve, in the place of those that the scenario asks for; broadcasts with the batches.
        speed: at these batches, where it is known already.
        workers: prefill workers, likewise in the place of the scenario's.
    """
    speed = speed_at(setting, known.clock, batch, known.unloaded) if speed is None else speed
    cash = money(setting, known.clock.placed.layout.devices, speed, serving, workers)
    is_ = _verdicts(setting, known, batch, speed, cash)
    fed = cash.capacity / cash.serving if setting.pool is not None else np.full(1, np.inf)
    good = np.where(is_.keeps & is_.fits & is_.engine_ok, np.minimum(speed.good, fed), 0.0)
    return Judged(batch, speed, cash, is_, np.minimum(speed.rate, fed), good)


def _verdicts(setting: Setting, known: Bounds, batch: Column, speed: Speed, cash: Money) -> Verdicts:
    """Verdicts of layouts at batches."""
    asked, limits = setting.scenario, known.limits
    engine = engine_reason(setting)
    pooled = ~np.isin(engine, WITHOUT_POOL)
    placed = (known.space.held >= 1.0) & ((limits.broken < 0) | limits.by_engine) & pooled
    timed = placed & pooled
    overloaded = _overloaded(setting, cash)
    return Verdicts(
        timed=timed,
        fits=placed & (batch <= limits.held),
        engine_ok=np.isin(engine, (OK, *WITHOUT_POOL)) & (batch <= limits.seats) & (limits.broken < 0),
        keeps=timed & (speed.good > 0.0) & ~overloaded,
        speaks=timed & (asked.osl > 1),
        flows=timed & (asked.osl > 1 or asked.prefill == "colocated"),
        sized=timed & ((speed.good > 0.0) | (asked.qps == 0) | is_fixed(asked)),
        overloaded=overloaded,
    )


def _batch_reason(reason: Codes, limits: Limits, batch: Column, overloaded: Flags) -> Codes:
    """The layout's reason, or why this batch in particular does not do."""
    over = np.select(
        [batch > limits.held, batch > limits.seats, batch > limits.by_sla, overloaded],
        [OVER_POOL, OVER_SEATS, OVER_SLA, OVERLOADED],
        OK,
    )
    late = (reason == SLOW_FIRST) | (reason == SLOW_TOKEN)
    return np.where((reason == OK) | (late & (over == OVER_POOL)), over, reason)


def is_fixed(asked: Scenario) -> bool:
    """Whether the scenario names how many replicas decode."""
    return asked.fix_replicas is not None or asked.decode_workers is not None


def _overloaded(setting: Setting, cash: Money) -> Flags:
    """Whether a fixed number of replicas or prefill workers carries less than is asked of them."""
    asked = setting.scenario
    if asked.fix_replicas is None and asked.decode_workers is None and asked.prefill_workers is None:
        return np.zeros(cash.capacity.shape, dtype=bool)
    return np.asarray(asked.qps * asked.osl > cash.capacity)


def _flat(shape: tuple[int, ...], column: object) -> np.ndarray:
    """A column of every layout and batch, layout by layout."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(column), shape)).reshape(-1)


def _valid(shape: tuple[int, ...], column: object, where: Flags) -> np.ndarray:
    """The same, NaN where there is no such number."""
    return _flat(shape, np.where(where, np.asarray(column), np.nan))


def _table(setting: Setting, known: Bounds, binds: Codes, reason: Codes, made: Judged) -> Plans:
    """All columns of a block, flattened layout by layout."""
    layout, space, limits = known.clock.placed.layout, known.space, known.limits
    devices = layout.devices
    batch, speed, cash, is_, good = made.batch, made.speed, made.cash, made.verdicts, made.good
    shape = np.broadcast_shapes(layout.tp.shape, batch.shape)
    low, high = setting.profile.band
    flat, valid = partial(_flat, shape), partial(_valid, shape)
    return Plans(
        fits=flat(is_.fits),
        meets_sla=flat(is_.keeps),
        engine_ok=flat(is_.engine_ok),
        binds=flat(binds),
        reason=flat(_batch_reason(reason, limits, batch, is_.overloaded)),
        reasons=(*REASONS, *(rule.reason for rule in known.rules)),
        tp=flat(layout.tp), pp=flat(layout.pp), dp=flat(layout.dp),
        ep=flat(layout.ep), cp=flat(layout.cp), dcp=flat(layout.dcp),
        gpus_per_replica=flat(devices),
        replicas=valid(cash.replicas, is_.sized),
        gpus=valid(cash.devices, is_.sized),
        physical_bytes=flat(space.physical),
        usable_bytes=flat(space.usable),
        withheld_bytes=flat(space.physical - space.usable),
        weights_bytes=flat(space.weights),
        activation_bytes=flat(space.space.activation),
        graph_bytes=flat(space.space.graphs),
        runtime_bytes=flat(space.space.runtime),
        kv_pool_bytes=flat(np.maximum(space.pool, 0.0)),
        kv_bytes_per_token=flat(space.token),
        kv_capacity_tokens_rank=flat(space.tokens_rank),
        kv_capacity_tokens=flat(space.tokens_rank * layout.dp),
        b_max_kv=flat(space.held),
        b_max_kv_mean=flat(space.held_mean),
        b_max_sla=valid(limits.by_sla, is_.timed),
        b_max=flat(np.where(is_.timed & (limits.broken < 0) & (engine_reason(setting) == OK), limits.largest, 0.0)),
        batch=flat(batch),
        tpot_ms=valid(speed.tpot * 1e3, is_.speaks),
        ttft_ms=valid(speed.ttft * 1e3, is_.timed),
        ttft_unloaded_ms=valid(speed.unloaded * 1e3, is_.timed),
        output_tok_s=valid(made.output, is_.flows),
        goodput_tok_s=valid(good, is_.flows),
        goodput_tok_s_gpu=valid(good / cash.productive, is_.flows),
        tpot_low_ms=valid(speed.tpot * 1e3 * low, is_.speaks),
        tpot_high_ms=valid(speed.tpot * 1e3 * high, is_.speaks),
        usd_per_hour=valid(cash.dollars, is_.sized),
        usd_per_m_output=valid(cash.per_output, is_.flows & is_.sized),
        usd_per_m_goodput=valid(cash.per_good, is_.flows & (good > 0.0)),
    )  # fmt: skip
