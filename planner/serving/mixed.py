"""What prompt tokens add to one engine step, at any batch and any number of them: the simulator's view of a pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.physics import forward, passes
from planner.physics.passes import Pass
from planner.physics.roofline import pass_seconds
from planner.serving.decode import Clock, stage_stretch, step_pass, two_halves
from planner.serving.prefill import context_loss, times
from planner.work import ZERO, Column, Ledger


def mixed_seconds(clock: Clock, batch: Column, tokens: Column, ending: Column, *, everywhere: bool) -> Column:
    """What reading prompt tokens adds to a step that decodes a batch, attention over the prompts left out [s].

    Args:
        clock: machine, one layout, workload.
        batch: decoding sequences of the replica, 1 or more.
        tokens: prompt tokens on the fullest attention rank.
        ending: prompts among them whose last token is read.
        everywhere: whether every attention rank reads as many; otherwise one does and the others only decode.

    Profiles that clock a pass as a whole include attention here, in proportion to the tokens.
    """
    step = step_pass(clock, batch)
    added = _taken(clock, _carrying(clock, step, tokens, ending, everywhere)) - _taken(clock, step)
    return _lost(clock) * np.maximum(added, 0.0)


def reading_seconds(clock: Clock, tokens: Column, ending: Column, *, everywhere: bool) -> Column:
    """A step that reads prompt tokens and decodes nothing; otherwise as `mixed_seconds` [s]."""
    step = replace(passes.prefill_pass(tokens, ZERO, ending), alone=not everywhere)
    ledger: Ledger = (*forward.matrices(clock.placed, step), forward.host(ZERO))
    return _lost(clock) * pass_seconds(ledger + _attention(clock, tokens), clock.decoding.profile)


def attention_seconds(clock: Clock, tokens: Column, cached: Column) -> Column:
    """Attention of whole prompts over themselves and over what the cache holds of them [s].

    0 where a pass is clocked as a whole.
    """
    if not clock.decoding.profile.per_operator:
        return np.zeros(np.broadcast_shapes(np.shape(tokens), np.shape(cached)))
    cores = forward.prefill_cores(clock.placed, passes.prefill_pass(tokens, cached))
    return _lost(clock) * pass_seconds(cores, clock.decoding.profile)


def _carrying(clock: Clock, step: Pass, tokens: Column, ending: Column, everywhere: bool) -> Pass:
    """A decode step with prompt tokens in it, on every rank or on one."""
    apart = 0.0 if everywhere else 1.0
    elsewhere = tokens * (clock.placed.layout.dp - 1.0) * apart
    everyone = step.sequences * clock.placed.layout.dp if step.everyone is None else step.everyone
    return replace(step, prompt_tokens=tokens, prompts_ending=ending, everyone=everyone - elsewhere)


def _taken(clock: Clock, step: Pass) -> Column:
    """Time of a pass, without prefill attention where operators are clocked one by one."""
    decoding, placed = clock.decoding, clock.placed
    stretch = stage_stretch(decoding.machine.model.layers, placed.layout.pp)
    if decoding.overlap and decoding.profile.per_operator:
        return stretch * two_halves(clock, step)
    plain = forward.matrices(placed, step)
    if decoding.profile.per_operator:
        return stretch * pass_seconds(plain, decoding.profile)
    cores = (*forward.decode_cores(placed, step), forward.host(step.sequences))
    return stretch * pass_seconds(plain + cores + _attention(clock, step.prompt_tokens), decoding.profile)


def _attention(clock: Clock, tokens: Column) -> Ledger:
    """Prefill attention in proportion to the tokens read, for clocks that add up work first."""
    prompt = clock.decoding.prompt
    if prompt is None or clock.decoding.profile.per_operator:
        return ()
    return tuple(times(entry, tokens / prompt.chunk) for entry in clock.chunk)


def _lost(clock: Clock) -> Column:
    """Factor for what context-parallel prefill falls short of dividing its time."""
    return context_loss(clock.placed.layout.cp, clock.decoding.profile.context_efficiency)
