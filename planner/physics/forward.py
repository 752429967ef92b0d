"""One forward pass as a ledger: what every operator of the pass costs one device.

Decode, speculative verification, prefill, a prefill chunk and a chunked mixed step are the same function on different
passes. Weights are read once a pass, so mixing prices itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from planner.physics import attention, comms, context, ffn
from planner.physics.passes import Pass
from planner.physics.weights import Formats
from planner.specs.layout import Layout
from planner.specs.model import Attention, ExpertFFN, FeedForward, LayerGroup, Linear, ModelSpec
from planner.specs.precision import Precision
from planner.specs.profile import Conventions
from planner.work import ONE, ZERO, Column, Entry, Ledger, Work

Core: TypeAlias = Callable[[Attention, attention.Site, Pass, int], Iterable[Entry]]
"""Attention cores of one block in a pass, so many layers of it."""

Exchange: TypeAlias = Callable[[Attention, attention.Site, Pass, float, int], Ledger]
"""What ranks that share a context exchange for one block, in scale-up domains of so many devices."""

VECTOR_KERNELS = 3
"""Small vector kernels a layer (norms, rotary, activation) that are launched beside the matrices."""


@dataclass(frozen=True)
class Machine:
    """The categories of a pass: what is fixed while layouts and batches vary.

    Attributes:
        model, formats, cache: what runs, and in which precisions.
        routing: how unevenly experts are hit.
        convention: counting convention.
        domain: devices of one scale-up domain.
        wire: bytes an element of expert dispatch and combine [B].
    """

    model: ModelSpec
    formats: Formats
    cache: Precision
    routing: ffn.Routing
    convention: Conventions
    domain: float
    wire: tuple[float, float]


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
        blocks: blocks of the model that end in an all-reduce over TP: attention and dense feed-forward.
        expert_blocks: blocks of experts, which end in one only where all ranks of a stage hold the same tokens.
    """

    machine: Machine
    layout: Layout
    kernels: tuple[ffn.Kernel, ...]
    stacks: tuple[ffn.Kernel, ...]
    head: ffn.Kernel | None
    experts: tuple[tuple[ExpertFFN, int], ...]
    cores: tuple[tuple[Attention, int], ...]
    blocks: int
    expert_blocks: int


def place(machine: Machine, layout: Layout) -> Placed:
    """Place a machine on layouts; columns are brought to shape (n, 1)."""
    layout = layout.tall
    attentions, feeds = distinct_blocks(machine.model.groups)
    routed = sum(count for feed, count in feeds if isinstance(feed, ExpertFFN))
    blocks = sum(count for _, count in attentions) + sum(count for _, count in feeds) - routed
    if machine.model.nominal_params is not None:
        whole = _nominal(machine, machine.model.nominal_params, layout)
        return Placed(machine, layout, (whole,), ffn.stacked([whole]), None, (), attentions, blocks, 0)
    kinds, convention = machine.formats, machine.convention
    kernels = [
        *(k for a, n in attentions for k in ffn.place(a.linears, kinds.attention, kinds, layout.tp, n, convention)),
        *(k for f, n in feeds for k in ffn.place_feed_forward(f, kinds, layout, n, convention)),
    ]
    experts = tuple((feed, count) for feed, count in feeds if isinstance(feed, ExpertFFN))
    head = _head(machine, layout)
    return Placed(machine, layout, tuple(kernels), ffn.stacked(kernels), head, experts, attentions, blocks, routed)


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
    local = local_tokens(step, placed.layout)
    entries = [ffn.kernel_entry(kernel, local) for kernel in kernels]
    everyone = replica_tokens(step, placed.layout)
    routed = [_routed(placed, feed, count, everyone) for feed, count in placed.experts]
    return (*entries, *routed, *_logits(placed, step, local), *_small(placed, local), *_travel(placed, step))


def local_tokens(step: Pass, layout: Layout) -> Column:
    """Tokens that pass through the matrices of one rank: its decoding ones, and its part of the prompt."""
    return step.sequences * step.new_tokens + step.prompt_tokens / layout.cp


def replica_tokens(step: Pass, layout: Layout) -> Column:
    """Tokens of all attention ranks of a replica, which its experts share; a lone prompt is on one rank only."""
    if step.alone:
        return step.tokens
    decoding = step.sequences * layout.dp if step.everyone is None else step.everyone
    return decoding * step.new_tokens + step.prompt_tokens * layout.dp


def _routed(placed: Placed, feed: ExpertFFN, count: int, everyone: Column) -> Entry:
    """Routed experts of equal layers, for the tokens of all attention ranks of the replica."""
    machine = placed.machine
    precision, convention = machine.formats.experts, machine.convention
    return ffn.experts(feed, precision, everyone, placed.layout, count, machine.routing, convention)


def _logits(placed: Placed, step: Pass, local: Column) -> tuple[Entry, ...]:
    """The output head, for tokens that need logits."""
    if placed.head is None:
        return ()
    rows = step.sequences * step.new_tokens + step.prompts_ending
    return (ffn.kernel_entry(placed.head, local if placed.machine.convention.head_all_tokens else rows),)


def _small(placed: Placed, local: Column) -> Ledger:
    """Vector kernels and all-reduces: left out by the textbook, which counts neither."""
    machine, layout = placed.machine, placed.layout
    if machine.convention.nominal_bytes:
        return ()
    hidden, blocks = machine.model.hidden, placed.blocks + placed.expert_blocks
    launches = VECTOR_KERNELS / 2.0 * blocks * ONE
    vectors = Work("elementwise", "bf16", ZERO, 6.0 * local * hidden, launches, ZERO, ONE, ZERO)
    reduced = placed.blocks + placed.expert_blocks * (1.0 - layout.apart)
    reduce = comms.all_reduce("all-reduce", local * hidden * 2.0, layout.tp, machine.domain, reduced)
    return (Entry("norms and activations", "weights", vectors), *reduce)


def _travel(placed: Placed, step: Pass) -> Ledger:
    """How tokens get to experts and back, and from stage to stage; free in the textbook."""
    if placed.machine.convention.nominal_bytes:
        return ()
    return (
        *(e for feed, n in placed.experts for e in _expert_travel(placed, feed, n, step)),
        *_stages(placed, step),
    )


def _expert_travel(placed: Placed, feed: ExpertFFN, count: int, step: Pass) -> Ledger:
    """Dispatch and combine where whole experts sit apart from the tokens, all-gather and reduce-scatter where split."""
    machine, layout = placed.machine, placed.layout
    hidden = machine.model.hidden
    if not np.any(layout.apart):
        return ()
    own, dispatched = step.tokens / (layout.tp * layout.cp), layout.dispatches(feed.top_k)
    gathered = 2.0 * count * (layout.apart - dispatched)
    ranks = 1.0 if step.alone else layout.dp
    buffer = step.tokens * ranks * hidden * 2.0
    return (
        *comms.exchange(own, feed.top_k, hidden, machine.wire, layout.ep, count * dispatched),
        *comms.gather("expert gather and scatter", buffer, layout.stage, machine.domain, gathered),
    )


def _stages(placed: Placed, step: Pass) -> Ledger:
    """Activations from pipeline stage to stage, each tensor-parallel rank sending its slice."""
    layout, machine = placed.layout, placed.machine
    if np.all(layout.pp <= 1.0):
        return ()
    message = local_tokens(step, layout) * machine.model.hidden * 2.0 / layout.tp
    far = (
        np.where(layout.stage > machine.domain, layout.pp, comms.domains_spanned(layout.devices, machine.domain)) - 1.0
    )
    return comms.hops("pipeline", message, layout.pp - 1.0 - far, far)


def decode_cores(placed: Placed, step: Pass) -> Ledger:
    """Attention cores of the decoding sequences of a pass, and what ranks that share a context exchange."""
    return _cores(placed, step, attention.decode, context.decode_exchange, _site(placed).ways)


def prefill_cores(placed: Placed, step: Pass) -> Ledger:
    """Attention cores of the prompt tokens of a pass, and the ring of their keys and values."""
    return _cores(placed, step, attention.prefill, context.prefill_exchange, _site(placed).cp)


def _cores(placed: Placed, step: Pass, core: Core, exchange: Exchange, sharing: Column) -> Ledger:
    """Attention cores of a pass and, where `sharing` ranks hold one context between them, their exchange."""
    site, domain = _site(placed), placed.machine.domain
    cores = tuple(entry for block, count in placed.cores for entry in core(block, site, step, count))
    if placed.machine.convention.nominal_bytes or np.all(sharing <= 1.0):
        return cores
    travel = (exchange(block, site, step, domain, count) for block, count in placed.cores)
    return (*cores, *(entry for entries in travel for entry in entries))


def _site(placed: Placed) -> attention.Site:
    """Where attention cores run."""
    machine, layout = placed.machine, placed.layout
    return attention.Site(machine.cache, layout.tp, layout.dcp, layout.cp, machine.convention)


def host(sequences: Column) -> Entry:
    """The host's share of a step: scheduling, sampling, detokenising."""
    return Entry("host", "host", Work("host", "bf16", ZERO, ZERO, ONE, ZERO, ONE, sequences))


def forward(placed: Placed, step: Pass) -> Ledger:
    """The whole ledger of a pass on the slowest device of a replica, one entry an operator.

    Args:
        placed: machine and layouts.
        step: what the pass holds on one attention rank, columns that broadcast with the layouts.

    Returns:
        Named entries of `Work`, all stages of a pipeline one after another.
    """
    ledger = matrices(placed, step, together=False)
    if np.any(step.sequences > 0):
        ledger += decode_cores(placed, step)
    if np.any(step.prompt_tokens > 0):
        ledger += prefill_cores(placed, step)
    return (*ledger, host(step.sequences))
