"""What binds each layout of a block, and why it cannot serve where it cannot."""

from __future__ import annotations

import numpy as np

from planner.candidates import Flags
from planner.physics import memory
from planner.plan import Codes, Column
from planner.rows import (
    CODE,
    ENGINE_CACHE,
    ENGINE_WEIGHTS,
    NO_ROOM,
    NO_SEQUENCE,
    NOT_FREE,
    NOT_HERE,
    OK,
    REASONS,
    SLOW_FIRST,
    SLOW_TOKEN,
    TOO_LONG,
    UNEVEN_POOL,
    WITHOUT_POOL,
    WRONG_DEVICE,
    Bounds,
    promised_tpot,
    running_step,
)
from planner.serving import decode, prefill
from planner.setting import Setting


def binding(setting: Setting, known: Bounds, following: Column) -> tuple[Codes, Codes]:
    """What limits each layout, and why it cannot serve where it cannot; the first that applies.

    `following` is the TPOT at one sequence more than the promise admits.
    """
    engine, limits, space = engine_reason(setting), known.limits, known.space
    promise = np.where(_first_token_breaks(setting, known, following), CODE["ttft"], CODE["tpot"])
    slow = np.where(promise == CODE["ttft"], SLOW_FIRST, SLOW_TOKEN)
    cases: list[tuple[object, object, object]] = [
        ((limits.broken >= 0) & ~limits.by_engine, CODE["layout"], len(REASONS) + limits.broken),
        (limits.by_engine, CODE["engine"], len(REASONS) + limits.broken),
        (engine != OK, np.where(np.isin(engine, WITHOUT_POOL), CODE["layout"], CODE["engine"]), engine),
        (space.pool <= 0.0, CODE["weights"], NO_ROOM),
        (space.held < 1.0, CODE["kv"], NO_SEQUENCE),
        (limits.by_sla < 1.0, promise, slow),
        (limits.held == limits.largest, CODE["kv"], OK),
        ((limits.by_sla == limits.largest) & (limits.by_sla < decode.LARGEST_BATCH), promise, OK),
        (limits.seats == limits.largest, CODE["engine"], OK),
    ]
    shape = limits.held.shape
    when, binds, reasons = ([np.broadcast_to(np.asarray(x), shape) for x in each] for each in zip(*cases, strict=True))
    return np.select(when, binds, CODE["none"]), np.select(when, reasons, OK)


def _first_token_breaks(setting: Setting, known: Bounds, following: Column) -> Flags:
    """Whether the next larger batch breaks the TTFT promise while TPOT still holds."""
    ttft = prefill.ttft_seconds(known.unloaded, running_step(setting, known.clock, following))
    return np.asarray((ttft > setting.scenario.sla_ttft_ms / 1e3) & (following <= promised_tpot(setting)))


def engine_reason(setting: Setting) -> Codes:
    """Why the engine does not serve this scenario at all; OK when it does. A column where the memory share is one."""
    named = _engine_reason(setting)
    started = memory.starts(setting.engine, setting.gpu.engine_memory, setting.utilisation)
    refused = np.logical_not(started) & setting.convention.overheads & (named == OK)
    return np.where(refused, NOT_FREE, named)


def _engine_reason(setting: Setting) -> int:
    """The same for what is one category for all candidates."""
    asked, engine = setting.scenario, setting.engine
    if setting.pool is not None and not setting.pool.admitted:
        return UNEVEN_POOL
    if setting.pool is not None and not setting.pool.fits:
        return NOT_HERE
    if setting.max_len is not None and asked.isl + asked.osl > setting.max_len:
        return TOO_LONG
    vendors = {setting.gpu.vendor} | ({setting.pool.gpu.vendor} if setting.pool is not None else set())
    if setting.convention.overheads and not vendors <= set(engine.vendors):
        return WRONG_DEVICE
    if setting.convention.overheads and asked.weights not in engine.supports_weights:
        return ENGINE_WEIGHTS
    if setting.convention.overheads and asked.kv not in engine.supports_kv:
        return ENGINE_CACHE
    return OK
