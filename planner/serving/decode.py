"""TPOT over batch: the decode step, and what the prefill of other requests adds to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.formula import formula
from planner.physics import comms, forward, passes
from planner.physics.forward import Machine, Placed
from planner.physics.passes import Pass
from planner.physics.roofline import pass_seconds
from planner.serving.prefill import Prompt, prefill_share, times
from planner.serving.speculative import Draft, expected_tokens, speculative_seconds
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
        draft: speculative decoding; None = one token a sequence and step.
        overlap: whether a step runs as two micro-batches, one computing while the other's tokens travel.
    """

    machine: Machine
    profile: Profile
    context: float
    osl: float
    prompt: Prompt | None
    draft: Draft | None = None
    overlap: bool = False


@formula("definition: a rank holds its share of the batch, rounded up", "sequences")
def rank_batch(batch: Column, dp: Column) -> Column:
    """Decoding sequences on the fullest attention rank."""
    return np.ceil(batch / dp)  # [sequences]


@formula(
    "a pipeline is full when as many micro-batches as stages are under way; each is a share of the batch", "sequences"
)
def micro_batch(held: Column, pp: Column) -> Column:
    """Sequences of one micro-batch of a rank; every stage reads its weights again for each."""
    return np.ceil(held / pp)  # [sequences]


@formula("the slowest stage has ceil(layers / pp) layers and sets the pace of all", "1")
def stage_stretch(layers: int, pp: Column) -> Column:
    """How much longer a token takes through pp stages than through the layers alone, when stages are uneven."""
    slowest = np.ceil(layers / pp)  # [layers]
    return slowest * pp / layers  # [1]


@formula("definition: B/osl new prompts a step, each in so many chunks; above one, chunks share a step", "1")
def chunks_in_a_step(batch: Column, osl: float, chunks: float) -> Column:
    """Prompt chunks in each step that carries any."""
    arriving = batch / osl * chunks  # [1]
    return np.maximum(arriving, 1.0)  # [1]


@formula("definition: weights are read once a step, however many chunks are in it; each has attention of its own", "s")
def shared_prefill(mixed: Column, alone: Column, own: Column, chunks: Column | float, together: Column) -> Column:
    """What one prompt's prefill adds to the steps it shares."""
    added = np.maximum(mixed - alone, 0.0)  # [s]
    return chunks * (added / together + own)  # [s]


@formula("each step carries B/osl new prompts; phi of their cost lands on running sequences (scheduler constant)", "s")
def tpot_seconds(step: Column, batch: Column, osl: Column | float, prefill_cost: Column, phi: Column | float) -> Column:
    """Time per output token: the decode step and its share of other requests' prefill."""
    prompts_per_step = batch / osl  # [1]
    return step + phi * prompts_per_step * prefill_cost  # [s]


@formula(
    "two micro-batches in turn: the longer of computing and moving, twice, and one layer's shorter part exposed", "s"
)
def two_batch_seconds(computing: Column, moving: Column, layers: int) -> Column:
    """Time of a pass of two micro-batches, each of which takes so long to compute and to move its tokens."""
    longer = np.maximum(computing, moving)  # [s]
    exposed = np.minimum(computing, moving) / layers  # [s]
    return 2.0 * longer + exposed  # [s]


@formula("definition: under a draft a step yields several tokens; each pipeline stage admits a micro-batch", "s")
def joining_seconds(tpot: Column, tokens: Column, pp: Column) -> Column:
    """Time between moments at which a request can join."""
    step = tpot * tokens  # [s]
    return step / pp  # [s]


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
        (TPOT [s], decode step alone [s]). A step passes all pipeline stages; with a draft it yields several tokens, and
        TPOT is its share of one.
    """
    decoding, layout = clock.decoding, clock.placed.layout
    held = held_batch(clock, batch)
    alone, added = _step(clock, step_pass(clock, batch))
    if decoding.draft is not None:
        alone = speculative_seconds(alone, verification(clock, batch, decoding.draft), decoding.draft)
    stretch = stage_stretch(decoding.machine.model.layers, layout.pp) if np.any(layout.pp > 1.0) else ONE
    if decoding.prompt is None:
        return alone * stretch, alone * stretch
    return tpot_seconds(alone, held, decoding.osl, added, decoding.profile.phi) * stretch, alone * stretch


def held_batch(clock: Clock, batch: Column) -> Column:
    """Sequences in one step of one rank: its share of the batch, or of one micro-batch of a pipeline."""
    layout = clock.placed.layout
    held = rank_batch(batch, layout.dp)
    return micro_batch(held, layout.pp) if np.any(layout.pp > 1.0) else held


def step_pass(clock: Clock, batch: Column, new_tokens: float = 1.0) -> Pass:
    """What a step of the fullest rank holds when a replica runs a batch; its experts see the whole batch."""
    everyone = np.maximum(batch / clock.placed.layout.pp, 1.0)
    return passes.decode_pass(held_batch(clock, batch), clock.decoding.context * ONE, new_tokens * ONE, everyone)


def verification(clock: Clock, batch: Column, draft: Draft) -> Column:
    """The pass that verifies a draft: every sequence computes its draft tokens and one more [s]."""
    alone = replace(clock, decoding=replace(clock.decoding, prompt=None))
    return _step(alone, step_pass(clock, batch, draft.tokens + 1.0))[0]


def step_of(clock: Clock, tpot: Column) -> Column:
    """How long a running step takes until the next request can join [s]."""
    draft = clock.decoding.draft
    tokens = ONE if draft is None else expected_tokens(draft.accept * ONE, draft.tokens * ONE)
    return joining_seconds(tpot, tokens, clock.placed.layout.pp)


def _step(clock: Clock, step: Pass) -> tuple[Column, Column]:
    """A decode step alone, and what one prompt's prefill adds to the steps that it shares (0 when it is elsewhere)."""
    decoding = clock.decoding
    if decoding.overlap and decoding.profile.per_operator:
        return _overlapped(clock, step)
    plain = forward.matrices(clock.placed, step)
    cores = (*forward.decode_cores(clock.placed, step), forward.host(step.sequences))
    if decoding.profile.per_operator:
        return _per_operator(clock, step, plain, cores)
    alone = pass_seconds(plain + cores, decoding.profile)
    if decoding.prompt is None:
        return alone, np.zeros(1)
    together = chunks_in_a_step(step.sequences, decoding.osl, decoding.prompt.chunks)
    mixed = forward.matrices(clock.placed, mixed_pass(step, decoding.prompt, together)) + cores
    prompts = tuple(times(entry, together) for entry in clock.chunk)
    whole = pass_seconds(mixed + prompts, decoding.profile)
    return alone, shared_prefill(whole, alone, np.zeros(1), decoding.prompt.chunks, together)


def _per_operator(clock: Clock, step: Pass, plain: Ledger, cores: Ledger) -> tuple[Column, Column]:
    """A step when operators are clocked one by one: attention cores and host drop out of the difference."""
    decoding, profile = clock.decoding, clock.decoding.profile
    matrices = pass_seconds(plain, profile)
    alone = matrices + pass_seconds(cores, profile)
    if decoding.prompt is None:
        return alone, np.zeros(1)
    together = chunks_in_a_step(step.sequences, decoding.osl, decoding.prompt.chunks)
    mixed = pass_seconds(forward.matrices(clock.placed, mixed_pass(step, decoding.prompt, together)), profile)
    return alone, shared_prefill(mixed, matrices, clock.share, decoding.prompt.chunks, together)


def _overlapped(clock: Clock, step: Pass) -> tuple[Column, Column]:
    """A step as two micro-batches of half the tokens each, and what prefill adds to it."""
    decoding = clock.decoding
    alone = two_halves(clock, step)
    if decoding.prompt is None:
        return alone, np.zeros(1)
    together = chunks_in_a_step(step.sequences, decoding.osl, decoding.prompt.chunks)
    whole = two_halves(clock, mixed_pass(step, decoding.prompt, together))
    return alone, shared_prefill(whole, alone, clock.share, decoding.prompt.chunks, together)


def half_pass(step: Pass) -> Pass:
    """One of the two micro-batches that a pass is cut into."""
    return replace(
        step,
        sequences=np.ceil(step.sequences / 2.0),
        everyone=None if step.everyone is None else step.everyone / 2.0,
        prompt_tokens=step.prompt_tokens / 2.0,
        prompts_ending=step.prompts_ending / 2.0,
    )


def two_halves(clock: Clock, step: Pass) -> Column:
    """Time of a pass whose exchange of one half runs while the other half computes."""
    profile, placed = clock.decoding.profile, clock.placed
    half = half_pass(step)
    ledger = forward.matrices(placed, half) + forward.decode_cores(placed, half)
    moving = pass_seconds(tuple(entry for entry in ledger if entry.work.kind in comms.LINK_KINDS), profile)
    computing = pass_seconds(tuple(entry for entry in ledger if entry.work.kind not in comms.LINK_KINDS), profile)
    together = two_batch_seconds(computing, moving, placed.machine.model.layers)
    return together + pass_seconds((forward.host(step.sequences),), profile)


def mixed_pass(step: Pass, prompt: Prompt, together: Column) -> Pass:
    """A decode step that also carries chunks of prompts."""
    tokens, ending = prompt.chunk * together, together / prompt.chunks
    return replace(step, prompt_tokens=tokens, prompts_ending=ending)


def largest_batch(
    keeps: Callable[[Column], np.ndarray], shape: tuple[int, ...], limit: Column | float | None = None
) -> Column:
    """The largest whole batch at which a promise is kept, for every row at once.

    Args:
        keeps: maps batches of shape (n, k) to booleans; must not turn true again once false as the batch grows.
        shape: (n, 1), the rows to search.
        limit: largest batch considered, of any shape that broadcasts with it; `LARGEST_BATCH` when None.

    Returns:
        Column of shape (n, 1); 0 where even one sequence breaks the promise.
    """
    low = np.zeros(shape)
    high = np.full(shape, (LARGEST_BATCH if limit is None else limit) + 1.0)
    ways = int(np.clip(2048 // max(shape[0], 1), 2, 384))
    steps = np.arange(1, ways)[None, :] / ways
    while np.any(high - low > 1.0):
        tries = np.clip(np.floor(low + (high - low) * steps), low + 1.0, np.maximum(high - 1.0, low + 1.0))
        kept = keeps(tries) & (tries < high)
        low = np.maximum(low, np.max(np.where(kept, tries, low), axis=1, keepdims=True))
        high = np.minimum(high, np.min(np.where(kept, high, tries), axis=1, keepdims=True))
        high = np.maximum(high, low + 1.0)
    return low
