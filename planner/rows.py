"""One block of candidates worked out: memory, speed, what binds, money, as columns of shape (layouts, batches)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.candidates import Flags, Rule, block_rules, refusals, rules
from planner.physics import kv, memory
from planner.physics.profiling import Profiled, profiled_tokens
from planner.physics.weights import weight_bytes
from planner.plan import BINDS, Codes, Column
from planner.pools import transfer
from planner.serving import decode, goodput, prefill
from planner.setting import Setting
from planner.specs.layout import Layout
from planner.support import layout_rules, refusal
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
    "weights and one prompt do not fit on the prefill pool's devices",
    "the batch is larger than the cache pool holds",
    "the batch is larger than the engine's limit of running sequences",
    "TTFT or TPOT is above the promise at this batch",
    "the engine does not run on this maker's accelerators",
    "prefill_tp does not divide the model: its attention heads, KV heads or widths",
    "the fixed replicas or prefill workers carry less than the asked request rate: queues grow without end",
    "the engine refuses to start: its memory share is more than is free at start",
    "queues break the promise at its percentile: more replicas or a looser promise",
)
"""Reasons that are not layout rules, by code; the layout rules' follow."""

(
    OK, NO_ROOM, NO_SEQUENCE, SLOW_FIRST, SLOW_TOKEN, TOO_LONG, ENGINE_WEIGHTS, ENGINE_CACHE, NOT_HERE,
    OVER_POOL, OVER_SEATS, OVER_SLA, WRONG_DEVICE, UNEVEN_POOL, OVERLOADED, NOT_FREE,
    LATE,
) = range(len(REASONS))  # fmt: skip

WITHOUT_POOL = (NOT_HERE, UNEVEN_POOL)
"""Reasons for which there is no prefill pool, and so no plan."""

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
    """Largest batches by each limit, which rule is broken (−1 = none), and whether it is the engine's; shape (n, 1)."""

    held: Column
    by_sla: Column
    seats: Column
    broken: Codes
    by_engine: Flags

    @property
    def largest(self) -> Column:
        """The smallest of the limits."""
        return np.minimum(np.minimum(self.held, self.by_sla), self.seats)


@dataclass(frozen=True)
class Bounds:
    """Everything about some layouts that does not depend on the operating batch."""

    clock: decode.Clock
    rules: tuple[Rule, ...]
    space: Room
    unloaded: Column
    limits: Limits


def bounds(setting: Setting, layout: Layout, most: Column | None = None) -> Bounds:
    """Memory, clock and largest batches of layouts of shape (n, 1).

    `most`: how far the largest batch by promise is looked for; all the way when None.
    """
    clock = decode.clock(setting.decoding, layout)
    found = rules_of(setting)
    space = room(setting, layout)
    unloaded = unloaded_ttft(setting, clock)
    return Bounds(clock, found, space, unloaded, _limits(setting, clock, found, space, unloaded, most))


def open_ended(setting: Setting, layout: Layout, space: Room) -> Bounds:
    """As `bounds`, for layouts that break no rule and whose memory is known; the promise is not looked at yet."""
    clock = decode.clock(setting.decoding, layout)
    shape = layout.tp.shape
    named = np.inf if setting.scenario.max_seqs is None else float(setting.scenario.max_seqs)
    seats = np.minimum(np.broadcast_to(min(seats_of(setting), named) * layout.dp, shape), LARGEST_NAMED)
    free = np.full(shape, -1, dtype=np.int64)
    limits = Limits(space.held, np.full(shape, np.inf), seats, free, np.zeros(shape, dtype=np.bool_))
    return Bounds(clock, (), space, unloaded_ttft(setting, clock), limits)


LARGEST_NAMED = 1e6
"""Largest batch that a scenario can name [sequences a replica]."""


def promised(setting: Setting, known: Bounds) -> Bounds:
    """The same with the largest batch by promise, looked for only as far as memory and the engine's seats reach."""
    limits = known.limits
    most = np.clip(np.minimum(limits.held, limits.seats), 1.0, decode.LARGEST_BATCH)
    by_sla = _largest_by_sla(setting, known.clock, known.unloaded, most)
    return replace(known, limits=replace(limits, by_sla=by_sla))


def rules_of(setting: Setting) -> tuple[Rule, ...]:
    """What a layout must keep: rules of the model, then what the engine does not offer (the textbook has no engine)."""
    asked, engine = setting.scenario, setting.engine
    if not setting.convention.overheads:
        return rules(setting.model)
    refused = refusal(engine, setting.model, asked)
    whole = [] if refused is None else [Rule("engine", refused.reason, _everywhere, by_engine=True)]
    offered = (Rule(e.name, e.reason, e.broken, by_engine=True) for e in layout_rules(engine, setting.model, asked))
    blocks = block_rules(setting.model) if asked.weights == "fp8-block" and engine.id != "trtllm" else ()
    return (*rules(setting.model), *whole, *blocks, *offered)


def _everywhere(layout: Layout) -> Flags:
    """A rule that every layout breaks."""
    return np.ones(layout.devices.shape, dtype=np.bool_)


def room(setting: Setting, layout: Layout) -> Room:
    """Memory of one device under each layout, and how many sequences the pool holds."""
    convention, asked = setting.convention, setting.scenario
    physical = setting.gpu.memory if convention.marketing_memory else setting.gpu.physical_memory
    usable = memory.usable_bytes(physical, setting.utilisation)
    weights = loaded_weights(setting, layout)
    counted = setting.utilisation if setting.engine.budget == "total" else 1.0
    hidden = (physical - setting.gpu.engine_memory) * counted
    run = profiling_run(setting)
    space = memory.workspace(setting.engine, weights, setting.model, layout, run, hidden, convention)
    pool = memory.pool_bytes(setting.engine, physical, setting.utilisation, weights, space)
    length, slots = float(asked.isl + asked.osl), setting.draft.slots
    longest, usual = length + slots, asked.isl + asked.osl / 2.0 + slots
    full, mean = sequence(setting, layout, longest), sequence(setting, layout, usual)
    common, usual_common = (shared_bytes(setting, layout, tokens) for tokens in (longest, usual))
    exact = replace(setting.allocation, block=1)
    token = kv.sequence_bytes(setting.cache, length * ONE, layout.tp, layout.pp, layout.context_ways, exact) / length
    token = token * (1.0 + setting.draft.share)
    growing = pool if state_bytes_of(setting, layout) is None else memory.growing_pool(pool, setting.engine.state_ratio)
    tokens = memory.tokens_held(growing, token, convention.cache_utilisation, setting.allocation.block)
    held = _sequences(setting, layout, (pool, growing), full, common)
    held_mean = _sequences(setting, layout, (pool, growing), mean, usual_common)
    return Room(physical, usable, weights, space, pool, token, tokens, held, held_mean)


def state_bytes_of(setting: Setting, layout: Layout) -> Column | None:
    """Bytes of a sequence's recurrent states on one rank; None where no part of the pool is theirs alone."""
    state = kv.state_bytes(setting.cache, layout.tp, layout.pp) * (1.0 + setting.draft.share)
    return state if setting.convention.overheads and memory.splits(setting.engine, state) else None


def _sequences(setting: Setting, layout: Layout, pools: tuple[Column, Column], full: Column, common: Column) -> Column:
    """Sequences of a size that a replica's pools (all of it, what grows) hold, states in a part of their own or not."""
    pool, growing = pools
    paging, state = setting.convention.cache_utilisation, state_bytes_of(setting, layout)
    if state is None:
        return memory.sequences_held(pool, full, common, paging, layout.dp)
    held = memory.sequences_held(growing, full - state, common, paging, layout.dp)
    return np.asarray(np.minimum(held, memory.states_held(pool, growing, state, layout.dp)), dtype=np.float64)


def profiling_run(setting: Setting) -> Profiled:
    """What the engine profiles at start: its most sequences, tokens a step and longest sequence."""
    longest = float(setting.max_len or 0)
    tokens = profiled_tokens(setting.engine, setting.scenario.token_budget, longest)
    return Profiled(float(setting.max_seqs), tokens, longest)


def sequence(setting: Setting, layout: Layout, tokens: float) -> Column:
    """Cache bytes of one sequence of a length on one rank, a draft model's included."""
    held = kv.sequence_bytes(setting.cache, tokens * ONE, layout.tp, layout.pp, layout.context_ways, setting.allocation)
    return held * (1.0 + setting.draft.share)


def loaded_weights(setting: Setting, layout: Layout) -> Column:
    """Weights on the fullest device, prediction layers or a draft model included where tokens are drafted [B]."""
    copies, draft = float(setting.scenario.redundant), setting.draft
    held = weight_bytes(setting.model, setting.machine.formats, layout, copies, setting.convention, mtp=draft.own)
    return held * (1.0 + draft.share)


def shared_bytes(setting: Setting, layout: Layout, tokens: float) -> Column:
    """Cache bytes of a sequence of a length that all sequences of a rank share: whole blocks of the cached prefix.

    What a sequence keeps of its own is the cache of the tokens behind the prefix, as far as a window holds them, and its
    recurrent states.
    """
    block = setting.allocation.block
    shared = float(np.floor(setting.prompt.cached / block) * block)
    return sequence(setting, layout, tokens) - sequence(setting, layout, tokens - shared)


def unloaded_ttft(setting: Setting, clock: decode.Clock) -> Column:
    """TTFT of a lone request on an idle replica [s]."""
    if setting.pool is not None:
        return setting.pool.prompt + transfer(setting, setting.pool, clock.placed.layout).seconds
    time = prefill.prompt_seconds(clock.placed, setting.profile, setting.prompt)
    served = setting.profile
    return prefill.unloaded_ttft(time, served.ttft_fixed, served.ttft_factor, served.ttft_ceiling)


def running_step(setting: Setting, clock: decode.Clock, tpot: Column) -> Column:
    """The step that an arriving request waits half of; none in the textbook, which has no running engine [s]."""
    if not setting.convention.overheads:
        return np.zeros(1)
    return decode.step_of(clock, tpot)


def speed_at(setting: Setting, clock: decode.Clock, batch: Column, unloaded: Column) -> Speed:
    """TPOT, TTFT, throughput and goodput at given batches."""
    tpot, _ = decode.tpot(clock, batch)
    ttft = prefill.ttft_seconds(unloaded, running_step(setting, clock, tpot))
    rate = goodput.output_rate(batch, tpot)
    asked = setting.scenario
    good = goodput.good_rate(rate, tpot, ttft, promised_tpot(setting), asked.sla_ttft_ms / 1e3)
    return Speed(tpot, ttft, unloaded, rate, good)


def promised_tpot(setting: Setting) -> float:
    """The TPOT promise [s]; none for requests of one output token, which have no TPOT."""
    return setting.scenario.sla_tpot_ms / 1e3 if setting.scenario.osl > 1 else float("inf")


def _limits(
    setting: Setting,
    clock: decode.Clock,
    found: tuple[Rule, ...],
    space: Room,
    unloaded: Column,
    most: Column | None,
) -> Limits:
    """The largest batch by cache, by promise and by the engine's seats."""
    layout = clock.placed.layout
    shape = layout.tp.shape
    seats = seats_of(setting)
    broken = refusals(found, layout)
    by_engine = np.isin(broken, [index for index, rule in enumerate(found) if rule.by_engine])
    by_sla = _largest_by_sla(setting, clock, unloaded, most)
    return Limits(space.held, by_sla, np.broadcast_to(seats * layout.dp, shape), broken, by_engine)


def seats_of(setting: Setting) -> float:
    """Most sequences of one attention rank: the engine's limit, and its tokens a step over those of a sequence."""
    if not setting.convention.overheads:
        return float("inf")
    return float(min(setting.max_seqs, setting.token_budget // (setting.scenario.spec + 1)))


def _largest_by_sla(
    setting: Setting, clock: decode.Clock, unloaded: Column, most: Column | None = None, sure: float = 1.0
) -> Column:
    """Largest batch at which mean TPOT (times `sure`) and TTFT keep the promise, at most `most`; 0 where one breaks it."""
    sla_tpot, sla_ttft = promised_tpot(setting), setting.scenario.sla_ttft_ms / 1e3

    def keeps(batch: Column) -> Flags:
        tpot, _ = decode.tpot(clock, batch)
        ttft = prefill.ttft_seconds(unloaded, running_step(setting, clock, tpot))
        return np.asarray((tpot * sure <= sla_tpot) & (ttft <= sla_ttft))

    return decode.largest_batch(keeps, clock.placed.layout.tp.shape, most)


def largest_sure(setting: Setting, known: Bounds) -> Column:
    """The smallest of the limits when TPOT is what measured cases stay below four times in five; shape (n, 1)."""
    limits, sure = known.limits, setting.profile.band_sure
    if sure <= 1.0:
        return limits.largest
    by_sla = _largest_by_sla(setting, known.clock, known.unloaded, sure=sure)
    return np.minimum(limits.largest, by_sla)
