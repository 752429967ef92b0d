"""Techniques that no field of a scenario spells: blocks of the cache, the host's time, static batching."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final

import numpy as np

from planner.plan import Column
from planner.rows import bounds
from planner.serving import decode, prefill
from planner.serving.statics import contiguous_sequences, static_rate, static_ttft
from planner.setting import Setting, assemble, resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.tabulate import table
from planner.techniques.rows import Figures, Technique, Trial, batch_of, figures_of, less, row_of
from planner.units import show
from planner.variants import Outcome, known, outcome, row, tpot_at, tpots

BLOCKS: Final = (1, 16, 64, 128)
"""Cache blocks that are compared [tokens]."""


def blocks(s: Scenario, base: Figures) -> Iterator[Technique]:
    """Cache blocks of other sizes: the engine's own rules with the size replaced."""
    setting = resolve(s)
    if not setting.convention.overheads:
        return
    rows = tuple(_block_rows(s, setting, base))
    paged = [each for each in rows if not each.name.startswith("contiguous")]
    same = len({_as_shown(each.figures) for each in paged}) == 1
    yield from (each for each in rows if not same or each.current or each not in paged)


def _as_shown(figures: Figures) -> tuple[str, ...]:
    """Figures in the digits that a table shows: sizes of blocks that round alike are one."""
    return tuple(show(getattr(figures, each.name)) for each in fields(Figures))


def _block_rows(s: Scenario, setting: Setting, base: Figures) -> Iterator[Technique]:
    """One row for each size of a block."""
    for size in (*sorted({*BLOCKS, setting.engine.block_size}), *_reserved(setting)):
        rules = replace(setting.engine, block_size=size)
        variant = assemble(setting.scenario, setting.model, setting.gpu, rules)
        found = _outcome_of(variant)
        own = size == setting.engine.block_size
        shown = figures_of(s, found, batch_of(s))
        trial = Trial("block", _block_name(setting, size), None, _block_cost(setting, size))
        yield row_of(trial, own, found, shown, base)


def _reserved(setting: Setting) -> tuple[int, ...]:
    """The longest sequence: one block of that size a sequence is what engines reserved before paging."""
    return () if setting.max_len is None else (setting.max_len,)


def _block_name(setting: Setting, size: int) -> str:
    """What a block size is called; one that holds the longest sequence is contiguous memory."""
    if (size,) == _reserved(setting):
        return f"contiguous, {size:,} tokens reserved"
    return f"{size} token{'' if size == 1 else 's'}"


def _block_cost(setting: Setting, size: int) -> str:
    """What stays empty."""
    length = setting.scenario.isl + setting.scenario.osl
    if (size,) == _reserved(setting):
        return f"{max(size - length, 0):,} tokens of a sequence stay empty, the baseline before paging"
    return f"{(size - 1) / 2:g} tokens of a sequence stay empty on average"


STEPS_A_CALL = 8
"""Steps that multi-step scheduling runs for one call of the host: the source article's figure (section 2.4)."""


def host(s: Scenario, base: Figures) -> Iterator[Technique]:
    """Host time of a step: waited for, shared by several steps, or hidden behind the devices' work."""
    setting = resolve(s)
    profile = setting.profile
    if not profile.host_step and not profile.host_sequence:
        return
    trials = (
        (1.0, "waited for at every step", "the constant is fitted to engines as they were measured"),
        (
            1.0 / STEPS_A_CALL,
            f"{STEPS_A_CALL} steps a call",
            "tokens come in bursts, new requests wait for a whole call",
        ),
        (0.0, "hidden (asynchronous)", "steps are scheduled ahead; an upper limit, as some host time always shows"),
    )
    for share, name, cost in trials:
        clock = replace(profile, host_step=profile.host_step * share, host_sequence=profile.host_sequence * share)
        variant = replace(setting, profile=clock, decoding=replace(setting.decoding, profile=clock))
        found = _outcome_of(variant)
        shown = replace(figures_of(s, found, batch_of(s)), tpot_ms=_tpot_of(variant, batch_of(s)))
        yield row_of(Trial("host", name, None, cost), share == 1.0, found, shown, base)


def _tpot_of(setting: Setting, batch: float) -> float | None:
    """TPOT of a setting that no scenario spells at a batch [ms]; None where it has none."""
    s = setting.scenario
    place = layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp).tall
    made = row(table(setting, bounds(setting, place), np.full((1, 1), batch)), 0)
    return made.tpot_ms


def _outcome_of(setting: Setting) -> Outcome:
    """The outcome of a setting that no scenario spells."""
    s = setting.scenario
    place = layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp).tall
    held = None if s.at_batch is None else np.full((1, 1), float(s.at_batch))
    return row(table(setting, bounds(setting, place), held), 0)


def static(s: Scenario, base: Figures) -> Iterator[Technique]:
    """The baseline of the articles: a batch is admitted whole, each request reserves the longest sequence."""
    plain = s.with_(prefill="excluded") if s.prefill == "colocated" else s
    found = outcome(plain)
    if found.ttft_ms is None or found.tpot_ms is None or not found.fits:
        return
    longest = float(s.max_len or s.isl + s.osl)
    reserved = np.asarray(found.kv_bytes_per_token * longest)
    held = float(contiguous_sequences(known(plain).bounds.space.pool, reserved, np.asarray(float(s.dp)))[0, 0])
    batch, prompt = _static_batch(s, plain, held)
    tpot = float(tpots(plain, np.full((1, 1), max(batch, 1.0)))[0, 0])
    first = float(static_ttft(np.asarray(max(batch, 1.0)), np.asarray(prompt))) * 1e3 if prompt else None
    rate = float(static_rate(np.asarray(batch), np.asarray(prompt), np.asarray(tpot / 1e3), float(s.osl)))
    at_own = tpot_at(plain, batch_of(s))
    figures = Figures(batch or None, at_own, first, rate / found.gpus_per_replica or None, None, held * longest)
    which = "no whole batch keeps" if s.at_batch is None else f"a whole batch of {s.at_batch} does not keep"
    reason = "" if batch else f"{which} the SLA"
    cost = "a batch waits for its prompts; equal lengths assumed: with others all wait for the longest"
    name = f"static, {longest:,.0f} tokens reserved"
    here = outcome(s)
    if here.stands:
        yield row_of(Trial("batching", "continuous", None, "nothing"), True, here, base, base)
    yield Technique(
        "batching", name, False, None, held >= 1, batch >= 1, True, reason, figures, less(figures, base), cost, False
    )


def _static_batch(s: Scenario, plain: Scenario, held: float) -> tuple[float, float]:
    """The largest batch, or the one that is set, that keeps the SLA when admitted whole, and the time of one prompt [s]."""
    found = known(plain)
    setting, placed = found.setting, found.bounds.clock.placed
    prompt = 0.0
    if s.prefill != "excluded":
        prompt = float(prefill.prompt_seconds(placed, setting.profile, setting.prompt)[0, 0])

    def keeps(batch: Column) -> np.ndarray:
        late = static_ttft(batch, np.asarray(prompt)) * 1e3 > s.sla_ttft_ms
        return np.asarray((tpots(plain, batch) <= s.sla_tpot_ms) & ~late)

    limit = min(float(decode.largest_batch(keeps, (1, 1))[0, 0]), held)
    if s.at_batch is not None:
        limit = float(s.at_batch) if s.at_batch <= limit else 0.0
    return limit, prompt
