"""TPOT over batch: the decode step, and what the prefill of other requests adds to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.formula import formula
from planner.physics import forward, passes
from planner.physics.forward import Machine, Placed
from planner.physics.passes import Pass
from planner.physics.roofline import pass_seconds
from planner.serving.prefill import Prompt, prefill_share, times
from planner.specs.layout import Layout
from planner.specs.profile import Profile
from planner.work import ONE, Column, Ledger

LARGEST_BATCH = 1 << 17
"""Where the search for the largest batch by SLA stops [sequences a replica]."""


@dataclass(frozen=True)
class Decoding:
    """The categories of a decode step: machine, clock and workload.

    Attributes:
        machine, profile: what runs, and how fast it goes.
        context: mean tokens behind a decoding sequence (isl + osl / 2) [tokens].
        osl: output tokens of a request.
        prompt: how prompts are read in on the same device; None = prefill is not there (excluded or elsewhere).
    """

    machine: Machine
    profile: Profile
    context: float
    osl: float
    prompt: Prompt | None


@formula("definition: a rank holds its share of the batch, rounded up", "sequences")
def rank_batch(batch: Column, dp: Column) -> Column:
    """Decoding sequences on the fullest attention rank."""
    return np.ceil(batch / dp)  # [sequences]


@formula("definition: B/osl new prompts a step, each in so many chunks; above one, chunks share a step", "1")
def chunks_in_a_step(batch: Column, osl: float, chunks: float) -> Column:
    """Prompt chunks in each step that carries any."""
    arriving = batch / osl * chunks  # [1]
    return np.maximum(arriving, 1.0)  # [1]


@formula("definition: weights are read once a step, however many chunks are in it; each has attention of its own", "s")
def shared_prefill(mixed: Column, alone: Column, own: Column, chunks: float, together: Column) -> Column:
    """What one prompt's prefill adds to the steps it shares."""
    added = np.maximum(mixed - alone, 0.0)  # [s]
    return chunks * (added / together + own)  # [s]


@formula("each step carries B/osl new prompts; phi of their cost lands on running sequences (scheduler constant)", "s")
def tpot_seconds(step: Column, batch: Column, osl: float, prefill_cost: Column, phi: float) -> Column:
    """Time per output token: the decode step and its share of other requests' prefill."""
    prompts_per_step = batch / osl  # [1]
    return step + phi * prompts_per_step * prefill_cost  # [s]


@dataclass(frozen=True)
class Clock:
    """Decoding on placed layouts, with what does not depend on the batch worked out once.

    Attributes:
        decoding, placed: what runs, and where.
        share: attention of one prompt chunk [s] when operators are clocked one by one; empty ledger otherwise.
        chunk: ledger of that attention, for a clock that adds up work first.
    """

    decoding: Decoding
    placed: Placed
    share: Column
    chunk: Ledger


def clock(decoding: Decoding, layout: Layout, *, together: bool = True) -> Clock:
    """Decoding on layouts (columns are brought to shape (n, 1)).

    Without `together` kernels are priced one by one instead of stacked: the same seconds, for a reader to follow.
    """
    placed = forward.place(decoding.machine, layout)
    placed = placed if together else replace(placed, stacks=placed.kernels)
    chunk = () if decoding.prompt is None else prefill_share(placed, decoding.prompt)
    share = pass_seconds(chunk, decoding.profile) if decoding.profile.per_operator else np.zeros(1)
    return Clock(decoding, placed, share, chunk)


def tpot(clock: Clock, batch: Column) -> tuple[Column, Column]:
    """TPOT and the bare decode step for batches of a replica.

    Args:
        clock: machine, layouts, workload.
        batch: sequences per replica, column that broadcasts with the layouts.

    Returns:
        (TPOT [s], decode step alone [s]).
    """
    decoding, profile, placed = clock.decoding, clock.decoding.profile, clock.placed
    held = rank_batch(batch, placed.layout.dp)
    step = passes.decode_pass(held, decoding.context * ONE)
    plain = forward.matrices(placed, step)
    cores = (*forward.decode_cores(placed, step), forward.host(held))
    if profile.per_operator:
        return _tpot_per_operator(clock, step, plain, cores)
    alone = pass_seconds(plain + cores, profile)
    if decoding.prompt is None:
        return alone, alone
    together = chunks_in_a_step(held, decoding.osl, decoding.prompt.chunks)
    mixed = forward.matrices(placed, _mixed(step, decoding.prompt, together)) + cores
    prompts = tuple(times(entry, together) for entry in clock.chunk)
    whole = pass_seconds(mixed + prompts, profile)
    added = shared_prefill(whole, alone, np.zeros(1), decoding.prompt.chunks, together)
    return tpot_seconds(alone, held, decoding.osl, added, profile.phi), alone


def _tpot_per_operator(clock: Clock, step: Pass, plain: Ledger, cores: Ledger) -> tuple[Column, Column]:
    """TPOT when operators are clocked one by one: attention cores and host drop out of the difference."""
    decoding, profile = clock.decoding, clock.decoding.profile
    matrices = pass_seconds(plain, profile)
    alone = matrices + pass_seconds(cores, profile)
    if decoding.prompt is None:
        return alone, alone
    together = chunks_in_a_step(step.sequences, decoding.osl, decoding.prompt.chunks)
    mixed = pass_seconds(forward.matrices(clock.placed, _mixed(step, decoding.prompt, together)), profile)
    added = shared_prefill(mixed, matrices, clock.share, decoding.prompt.chunks, together)
    return tpot_seconds(alone, step.sequences, decoding.osl, added, profile.phi), alone


def _mixed(step: Pass, prompt: Prompt, together: Column) -> Pass:
    """A decode step that also carries chunks of prompts."""
    tokens, ending = prompt.chunk * together, together / prompt.chunks
    return Pass(step.sequences, step.new_tokens, step.context, tokens, step.prompt_behind, ending)


def largest_batch(keeps: Callable[[Column], np.ndarray], shape: tuple[int, ...], limit: int = LARGEST_BATCH) -> Column:
    """The largest whole batch at which a promise is kept, for every row at once.

    Args:
        keeps: maps batches of shape (n, k) to booleans; must not turn true again once false as the batch grows.
        shape: (n, 1), the rows to search.
        limit: largest batch considered.

    Returns:
        Column of shape (n, 1); 0 where even one sequence breaks the promise.
    """
    low, high = np.zeros(shape), np.full(shape, float(limit + 1))
    ways = int(np.clip(4096 // max(shape[0], 1), 2, 384))
    steps = np.arange(1, ways)[None, :] / ways
    while np.any(high - low > 1.0):
        tries = np.clip(np.floor(low + (high - low) * steps), low + 1.0, np.maximum(high - 1.0, low + 1.0))
        kept = keeps(tries) & (tries < high)
        low = np.maximum(low, np.max(np.where(kept, tries, low), axis=1, keepdims=True))
        high = np.minimum(high, np.min(np.where(kept, high, tries), axis=1, keepdims=True))
        high = np.maximum(high, low + 1.0)
    return low
