"""One block of candidates worked out: memory, speed, what binds, money, as columns of shape (layouts, batches)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.candidates import Candidates, Flags, Rule, refusals, rules
from planner.physics import kv, memory
from planner.physics.weights import weight_bytes
from planner.plan import BINDS, Codes, Column, Plans
from planner.serving import cost, decode, goodput, prefill
from planner.setting import DISAGGREGATED_REASON, Setting
from planner.specs.layout import Layout
from planner.work import ONE

REASONS = (
    "",
    "the weights and workspace leave no room for a cache",
    "the cache pool is smaller than one sequence of full length",
    "TTFT is above the promise even at batch 1",
    "TPOT is above the promise even at batch 1",
    "isl + osl exceeds the longest sequence that the model or engine admits",
    "the engine does not serve this weight precision",
    "the engine does not offer this cache precision",
    DISAGGREGATED_REASON,
    "the batch is larger than the cache pool holds",
    "the batch is larger than the engine's limit of running sequences",
    "TTFT or TPOT is above the promise at this batch",
)
"""Reasons that are not layout rules, by code; the layout rules' follow."""

(
    OK, NO_ROOM, NO_SEQUENCE, SLOW_FIRST, SLOW_TOKEN, TOO_LONG, ENGINE_WEIGHTS, ENGINE_CACHE, NOT_HERE,
    OVER_POOL, OVER_SEATS, OVER_SLA,
) = range(len(REASONS))  # fmt: skip

CODE = {name: index for index, name in enumerate(BINDS)}


@dataclass(frozen=True)
class Room:
    """Memory of one device and what it holds, columns of shape (n, 1); bytes, tokens and sequences."""

    physical: float
    usable: float
    weights: Column
    space: memory.Workspace
    pool: Column
    token: Column
    tokens_rank: Column
    held: Column
    held_mean: Column


@dataclass(frozen=True)
class Speed:
    """Speed of layouts crossed with batches, shape (n, m), seconds and tokens a second; `unloaded` has shape (n, 1)."""

    tpot: Column
    ttft: Column
    unloaded: Column
    rate: Column
    good: Column


@dataclass(frozen=True)
class Limits:
    """Largest batches by each limit, and which layout rule is broken (−1 = none), shape (n, 1)."""

    held: Column
    by_sla: Column
    seats: Column
    broken: Codes
    unpriced: Flags

    @property
    def largest(self) -> Column:
        """The smallest of the limits."""
        return np.minimum(np.minimum(self.held, self.by_sla), self.seats)


def evaluate_block(setting: Setting, part: Candidates) -> Plans:
    """Plans of one block of candidates, layout by layout."""
    return table(setting, bounds(setting, part.layout), part.batch)


@dataclass(frozen=True)
class Bounds:
    """Everything about some layouts that does not depend on the operating batch."""

    clock: decode.Clock
    rules: tuple[Rule, ...]
    space: Room
    unloaded: Column
    limits: Limits


def bounds(setting: Setting, layout: Layout) -> Bounds:
    """Memory, clock and largest batches of layouts of shape (n, 1)."""
    clock = decode.clock(setting.decoding, layout)
    found = rules(setting.model, setting.gpu)
    space = room(setting, layout)
    unloaded = unloaded_ttft(setting, clock)
    return Bounds(clock, found, space, unloaded, _limits(setting, clock, found, space, unloaded))


def table(setting: Setting, known: Bounds, batch: Column | None) -> Plans:
    """Plans of layouts at given batches (None = each layout's own largest)."""
    at = np.maximum(known.limits.largest, 1.0) if batch is None else batch
    following = decode.tpot(known.clock, known.limits.by_sla + 1.0)[0]
    speed = speed_at(setting, known.clock, at, known.unloaded)
    binds, reason = _binding(setting, known, following)
    return _table(setting, known, binds, reason, at, speed)


def room(setting: Setting, layout: Layout) -> Room:
    """Memory of one device under each layout, and how many sequences the pool holds."""
    convention, asked = setting.convention, setting.scenario
    physical = setting.gpu.memory if convention.marketing_memory else setting.gpu.physical_memory
    usable = memory.usable_bytes(physical, setting.utilisation)
    weights = weight_bytes(setting.model, setting.machine.formats, layout, float(asked.redundant), convention)
    hidden = (physical - setting.gpu.engine_memory) * setting.utilisation
    seats = float(setting.max_seqs)
    space = memory.workspace(
        setting.engine, weights, setting.model.vocab, layout.tp, seats, hidden, convention
    )
    pool = memory.pool_bytes(setting.engine, physical, setting.utilisation, weights, space)
    length = float(asked.isl + asked.osl)
    full, mean = sequence(setting, layout, length), sequence(setting, layout, asked.isl + asked.osl / 2.0)
    paging = convention.cache_utilisation
    tokens = memory.tokens_held(pool, full / length, paging, setting.allocation.block)
    held = memory.sequences_held(pool, full, paging, layout.dp)
    held_mean = memory.sequences_held(pool, mean, paging, layout.dp)
    return Room(physical, usable, weights, space, pool, full / length, tokens, held, held_mean)


def sequence(setting: Setting, layout: Layout, tokens: float) -> Column:
    """Cache bytes of one sequence of a length on one rank."""
    return kv.sequence_bytes(setting.cache, tokens * ONE, layout.tp, layout.pp, layout.dcp, setting.allocation)


def unloaded_ttft(setting: Setting, clock: decode.Clock) -> Column:
    """TTFT of a lone request on an idle replica [s]."""
    time = prefill.prompt_seconds(clock.placed, setting.profile, setting.prompt)
    return prefill.unloaded_ttft(time, setting.profile.ttft_fixed, setting.profile.ttft_factor)


def half_step(setting: Setting, step: Column) -> Column:
    """The running step that an arriving request waits half of; none in the textbook, which has no running engine."""
    return step if setting.convention.overheads else np.zeros(1)


def speed_at(setting: Setting, clock: decode.Clock, batch: Column, unloaded: Column) -> Speed:
    """TPOT, TTFT, throughput and goodput at given batches."""
    tpot, _ = decode.tpot(clock, batch)
    ttft = prefill.ttft_seconds(unloaded, half_step(setting, tpot))
    rate = goodput.output_rate(batch, tpot)
    asked = setting.scenario
    good = goodput.good_rate(rate, tpot, ttft, promised_tpot(setting), asked.sla_ttft_ms / 1e3)
    return Speed(tpot, ttft, unloaded, rate, good)


def promised_tpot(setting: Setting) -> float:
    """The TPOT promise [s]; none for requests of one output token, which have no TPOT."""
    return setting.scenario.sla_tpot_ms / 1e3 if setting.scenario.osl > 1 else float("inf")


def _limits(
    setting: Setting, clock: decode.Clock, found: tuple[Rule, ...], space: Room, unloaded: Column
) -> Limits:
    """The largest batch by cache, by promise and by the engine's seats."""
    layout = clock.placed.layout
    shape = layout.tp.shape
    seats = min(setting.max_seqs, setting.token_budget) if setting.convention.overheads else np.inf
    broken = refusals(found, layout)
    unpriced = np.isin(broken, [index for index, rule in enumerate(found) if rule.unpriced])
    by_sla = _largest_by_sla(setting, clock, unloaded)
    return Limits(space.held, by_sla, np.broadcast_to(seats * layout.dp, shape), broken, unpriced)


def _largest_by_sla(setting: Setting, clock: decode.Clock, unloaded: Column) -> Column:
    """Largest batch at which mean TPOT and TTFT keep the promise; 0 where one sequence breaks it."""
    sla_tpot, sla_ttft = promised_tpot(setting), setting.scenario.sla_ttft_ms / 1e3

    def keeps(batch: Column) -> Flags:
        tpot, _ = decode.tpot(clock, batch)
        ttft = prefill.ttft_seconds(unloaded, half_step(setting, tpot))
        return np.asarray((tpot <= sla_tpot) & (ttft <= sla_ttft))

    return decode.largest_batch(keeps, clock.placed.layout.tp.shape)


def _binding(setting: Setting, known: Bounds, following: Column) -> tuple[Codes, Codes]:
    """What limits each layout, and why it cannot serve where it cannot; the first that applies.

    `following` is the TPOT at one sequence more than the promise admits.
    """
    engine, limits, space = engine_reason(setting), known.limits, known.space
    promise = np.where(_first_token_breaks(setting, known, following), CODE["ttft"], CODE["tpot"])
    slow = np.where(promise == CODE["ttft"], SLOW_FIRST, SLOW_TOKEN)
    cases: list[tuple[object, object, object]] = [
        (limits.broken >= 0, CODE["layout"], len(REASONS) + limits.broken),
        (engine != OK, CODE["engine"], engine),
        (space.pool <= 0.0, CODE["weights"], NO_ROOM),
        (space.held < 1.0, CODE["kv"], NO_SEQUENCE),
        (limits.by_sla < 1.0, promise, slow),
        (limits.held == limits.largest, CODE["kv"], OK),
        (limits.by_sla == limits.largest, promise, OK),
        (limits.seats == limits.largest, CODE["engine"], OK),
    ]
    shape = limits.held.shape
    when, binds, reasons = ([np.broadcast_to(np.asarray(x), shape) for x in each] for each in zip(*cases, strict=True))
    return np.select(when, binds, CODE["none"]), np.select(when, reasons, OK)


def _first_token_breaks(setting: Setting, known: Bounds, following: Column) -> Flags:
    """Whether the next larger batch breaks the TTFT promise while TPOT still holds."""
    ttft = prefill.ttft_seconds(known.unloaded, half_step(setting, following))
    return np.asarray((ttft > setting.scenario.sla_ttft_ms / 1e3) & (following <= promised_tpot(setting)))


def engine_reason(setting: Setting) -> int:
    """Why the engine does not serve this scenario at all; OK when it does."""
    asked, engine = setting.scenario, setting.engine
    if asked.prefill == "disaggregated":
        return NOT_HERE
    if setting.max_len is not None and asked.isl + asked.osl > setting.max_len:
        return TOO_LONG
    if setting.convention.overheads and asked.weights not in engine.supports_weights:
        return ENGINE_WEIGHTS
    if setting.convention.overheads and asked.kv not in engine.supports_kv:
        return ENGINE_CACHE
    return OK


def _batch_reason(reason: Codes, limits: Limits, batch: Column) -> Codes:
    """The layout's reason, or why this batch in particular does not do."""
    over = np.select(
        [batch > limits.held, batch > limits.seats, batch > limits.by_sla], [OVER_POOL, OVER_SEATS, OVER_SLA], OK
    )
    return np.where(reason == OK, over, reason)


def _money(setting: Setting, devices: Column, speed: Speed) -> tuple[Column, Column, Column, Column]:
    """Serving replicas, $/h, $ per million output tokens and per million good tokens."""
    asked, priced = setting.scenario, setting.cost
    needed = cost.replicas_needed(asked.qps, float(asked.osl), speed.rate, asked.load)
    serving = needed if asked.fix_replicas is None else np.full(np.shape(needed), float(asked.fix_replicas))
    price = np.nan if priced.price is None else priced.price
    billed = cost.billed_devices((serving + asked.spare) * devices, float(priced.instance))
    dollars = cost.dollars_per_hour(billed, price)
    served = cost.served_rate(asked.qps, float(asked.osl), serving, speed.rate)
    good = np.where(speed.good > 0.0, served, 0.0)
    return serving, dollars, cost.dollars_per_million(dollars, served), cost.dollars_per_million(dollars, good)


def _table(setting: Setting, known: Bounds, binds: Codes, reason: Codes, batch: Column, speed: Speed) -> Plans:
    """All columns of a block, flattened layout by layout."""
    layout, space, limits, found = known.clock.placed.layout, known.space, known.limits, known.rules
    asked, devices = setting.scenario, layout.devices
    shape = np.broadcast_shapes(layout.tp.shape, batch.shape)
    serving, dollars, per_output, per_good = _money(setting, devices, speed)
    placed = (space.held >= 1.0) & ((limits.broken < 0) | limits.unpriced)
    timed = placed & (limits.broken < 0) & (engine_reason(setting) != NOT_HERE)
    fits = placed & (batch <= limits.held)
    engine_ok = (engine_reason(setting) == OK) & (batch <= limits.seats) & (limits.broken < 0)
    keeps = timed & (speed.good > 0.0)
    speaks = timed & (asked.osl > 1)
    good = np.where(keeps & fits & engine_ok, speed.good, 0.0)
    low, high = setting.profile.band

    def flat(column: object) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(column), shape)).reshape(-1)

    def valid(column: object, where: Flags) -> np.ndarray:
        return flat(np.where(where, np.asarray(column), np.nan))

    return Plans(
        fits=flat(fits),
        meets_sla=flat(keeps),
        engine_ok=flat(engine_ok),
        binds=flat(binds),
        reason=flat(_batch_reason(reason, limits, batch)),
        reasons=(*REASONS, *(rule.reason for rule in found)),
        tp=flat(layout.tp), pp=flat(layout.pp), dp=flat(layout.dp),
        ep=flat(layout.ep), cp=flat(layout.cp), dcp=flat(layout.dcp),
        gpus_per_replica=flat(devices),
        replicas=valid(serving + asked.spare, timed),
        gpus=valid((serving + asked.spare) * devices, timed),
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
        b_max_sla=valid(limits.by_sla, timed),
        b_max=flat(np.where(timed & (engine_reason(setting) == OK), limits.largest, 0.0)),
        batch=flat(batch),
        tpot_ms=valid(speed.tpot * 1e3, speaks),
        ttft_ms=valid(speed.ttft * 1e3, timed),
        ttft_unloaded_ms=valid(speed.unloaded * 1e3, timed),
        output_tok_s=valid(speed.rate, speaks),
        goodput_tok_s=valid(good, speaks),
        goodput_tok_s_gpu=valid(good / devices, speaks),
        tpot_low_ms=valid(speed.tpot * 1e3 * low, speaks),
        tpot_high_ms=valid(speed.tpot * 1e3 * high, speaks),
        usd_per_hour=valid(dollars, timed),
        usd_per_m_output=valid(per_output, speaks),
        usd_per_m_goodput=valid(per_good, speaks & (good > 0.0)),
    )  # fmt: skip
