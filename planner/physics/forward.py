"""One forward pass as a ledger: what every operator of the pass costs one device.

Decode, speculative verification, prefill, a prefill chunk and a chunked mixed step are the same function on different
passes. Weights are read once a pass, so mixing prices itself.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from planner.physics import attention, comms, ffn
from planner.physics.passes import Pass
from planner.physics.weights import Formats
from planner.specs.layout import Layout
from planner.specs.model import Attention, ExpertFFN, FeedForward, LayerGroup, Linear, ModelSpec
from planner.specs.precision import Precision
from planner.specs.profile import Conventions
from planner.work import ONE, ZERO, Column, Entry, Ledger, Work

VECTOR_KERNELS = 3
"""Small vector kernels a layer (norms, rotary, activation) that are launched beside the matrices."""


@dataclass(frozen=True)
class Machine:
    """The categories of a pass: what is fixed while layouts and batches vary."""

    model: ModelSpec
    formats: Formats
    cache: Precision
    skew: ffn.Skew
    convention: Conventions


@functools.cache
def distinct_blocks(
    groups: tuple[LayerGroup, ...],
) -> tuple[tuple[tuple[Attention, int], ...], tuple[tuple[FeedForward, int], ...]]:
    """Attention and feed-forward blocks of a model, equal ones counted together."""
    attentions: dict[Attention, int] = {}
    feeds: dict[FeedForward, int] = {}
    for group in groups:
        if group.attention is not None:
            attentions[group.attention] = attentions.get(group.attention, 0) + group.count
        if group.ffn is not None:
            feeds[group.ffn] = feeds.get(group.ffn, 0) + group.count
    return tuple(attentions.items()), tuple(feeds.items())


@dataclass(frozen=True)
class Placed:
    """A machine on a layout: everything about a pass that does not depend on what the pass holds.

    Attributes:
        machine, layout: as given.
        kernels: matrices that every token passes, one entry a kernel; `stacks`: the same, stacked by precision.
        head: the output head; None for teaching models, whose one matrix includes it.
        experts, cores: routed experts and attention cores with the layers that have them.
        blocks: attention and feed-forward blocks of the model, each of which ends in an all-reduce under TP.
    """

    machine: Machine
    layout: Layout
    kernels: tuple[ffn.Kernel, ...]
    stacks: tuple[ffn.Kernel, ...]
    head: ffn.Kernel | None
    experts: tuple[tuple[ExpertFFN, int], ...]
    cores: tuple[tuple[Attention, int], ...]
    blocks: int


def place(machine: Machine, layout: Layout) -> Placed:
    """Place a machine on layouts; columns are brought to shape (n, 1)."""
    layout = layout.tall
    attentions, feeds = distinct_blocks(machine.model.groups)
    blocks = sum(count for _, count in attentions) + sum(count for _, count in feeds)
    if machine.model.nominal_params is not None:
        whole = _nominal(machine, machine.model.nominal_params, layout)
        return Placed(machine, layout, (whole,), ffn.stacked([whole]), None, (), attentions, blocks)
    kinds, convention = machine.formats, machine.convention
    kernels = [
        *(k for a, n in attentions for k in ffn.place(a.linears, kinds.attention, kinds, layout.tp, n, convention)),
        *(k for f, n in feeds for k in ffn.place_feed_forward(f, kinds, layout.tp, n, convention)),
    ]
    experts = tuple((feed, count) for feed, count in feeds if isinstance(feed, ExpertFFN))
    head = _head(machine, layout)
    return Placed(machine, layout, tuple(kernels), ffn.stacked(kernels), head, experts, attentions, blocks)


def _nominal(machine: Machine, params: int, layout: Layout) -> ffn.Kernel:
    """All weights of a teaching model as one matrix."""
    whole = (Linear("weights", "weights", params, 1, params),)
    return ffn.place_kernel(whole, machine.formats.dense, layout.tp, 1, machine.convention)


def _head(machine: Machine, layout: Layout) -> ffn.Kernel:
    """The output head."""
    model = machine.model
    head = (Linear("head", "head", model.hidden, model.vocab, model.vocab, quantised=False),)
    return ffn.place_kernel(head, machine.formats.plain, layout.tp, 1, machine.convention)


def matrices(placed: Placed, step: Pass, *, together: bool = True) -> Ledger:
    """Everything in a pass except attention cores: matrices, experts, head, vector kernels, collectives.

    With `together` kernels of one precision are priced as one stacked entry (for the clock); without, one entry a
    kernel (for a reader). Both go through the same formulas.
    """
    kernels = placed.stacks if together else placed.kernels
    entries = [ffn.kernel_entry(kernel, step.tokens) for kernel in kernels]
    routed = [_routed(placed, feed, count, step.tokens) for feed, count in placed.experts]
    return (*entries, *routed, *_logits(placed, step), *_small(placed, step))


def _routed(placed: Placed, feed: ExpertFFN, count: int, tokens: Column) -> Entry:
    """Routed experts of equal layers, for the tokens of all attention ranks of the replica."""
    machine, layout = placed.machine, placed.layout
    everyone = tokens * layout.dp
    return ffn.experts(feed, machine.formats.experts, everyone, layout, count, machine.skew, machine.convention)


def _logits(placed: Placed, step: Pass) -> tuple[Entry, ...]:
    """The output head, for tokens that need logits."""
    if placed.head is None:
        return ()
    rows = step.sequences * step.new_tokens + step.prompts_ending
    return (ffn.kernel_entry(placed.head, step.tokens if placed.machine.convention.head_all_tokens else rows),)


def _small(placed: Placed, step: Pass) -> tuple[Entry, ...]:
    """Vector kernels and all-reduces: left out by the textbook, which counts neither."""
    machine = placed.machine
    if machine.convention.nominal_bytes:
        return ()
    hidden, launches = machine.model.hidden, placed.blocks * ONE
    moved = 6.0 * step.tokens * hidden
    vectors = Work("elementwise", "bf16", ZERO, moved, VECTOR_KERNELS / 2.0 * launches, ZERO, ONE, ZERO)
    reduce = comms.all_reduce("all-reduce", step.tokens, hidden, placed.layout.tp, launches)
    return (Entry("norms and activations", "weights", vectors), reduce)


def decode_cores(placed: Placed, step: Pass) -> Ledger:
    """Attention cores of the decoding sequences of a pass."""
    site = _site(placed)
    return tuple(entry for block, count in placed.cores for entry in attention.decode(block, site, step, count))


def prefill_cores(placed: Placed, step: Pass) -> Ledger:
    """Attention cores of the prompt tokens of a pass."""
    site = _site(placed)
    return tuple(entry for block, count in placed.cores for entry in attention.prefill(block, site, step, count))


def _site(placed: Placed) -> attention.Site:
    """Where attention cores run."""
    machine, layout = placed.machine, placed.layout
    return attention.Site(machine.cache, layout.tp, layout.dcp, machine.convention)


def host(sequences: Column) -> Entry:
    """The host's share of a step: scheduling, sampling, detokenising."""
    return Entry("host", "host", Work("host", "bf16", ZERO, ZERO, ONE, ZERO, ONE, sequences))


def forward(placed: Placed, step: Pass) -> Ledger:
    """The whole ledger of a pass on the slowest device of a replica, one entry an operator.

    Args:
        placed: machine and layouts.
        step: what the pass holds on one attention rank, columns that broadcast with the layouts.

    Returns:
        Named entries of `Work`. Range of validity: one pipeline stage, context parallelism 1.
    """
    ledger = matrices(placed, step, together=False)
    if np.any(step.sequences > 0):
        ledger += decode_cores(placed, step)
    if np.any(step.prompt_tokens > 0):
        ledger += prefill_cores(placed, step)
    return (*ledger, host(step.sequences))
