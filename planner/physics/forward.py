"""One forward pass as a ledger: what every operator of the pass costs one device.

Decode, speculative verification, prefill, a prefill chunk and a chunked mixed step are the same function on different
passes. Weights are read once a pass, so mixing prices itself.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from planner.physics import attention, comms, ffn
from planner.physics.weights import Formats
from planner.specs.layout import Layout
from planner.specs.model import Attention, FeedForward, LayerGroup, Linear, ModelSpec
from planner.specs.precision import Precision
from planner.specs.profile import Conventions
from planner.work import ONE, ZERO, Column, Entry, Ledger, Work

VECTOR_KERNELS = 3
"""Small vector kernels a layer (norms, rotary, activation) that are launched beside the matrices."""


@dataclass(frozen=True)
class Pass:
    """What one engine step holds on one attention rank; every field is a column.

    Attributes:
        sequences: decoding sequences.
        new_tokens: tokens that each of them computes (1; more when verifying a draft).
        context: mean tokens behind each of them.
        prompt_tokens: prompt tokens in this step.
        prompt_behind: prompt tokens already cached before them.
        prompts_ending: prompts whose last token is in this step (they need the output head).
    """

    sequences: Column
    new_tokens: Column
    context: Column
    prompt_tokens: Column
    prompt_behind: Column
    prompts_ending: Column

    @property
    def tokens(self) -> Column:
        """Tokens that pass through every matrix."""
        return self.sequences * self.new_tokens + self.prompt_tokens


def decode_pass(sequences: Column, context: Column, new_tokens: Column = ONE) -> Pass:
    """A step that only decodes."""
    return Pass(sequences, new_tokens, context, ZERO, ZERO, ZERO)


def prefill_pass(tokens: Column, behind: Column = ZERO, ending: Column = ONE) -> Pass:
    """A step that only reads prompts."""
    return Pass(ZERO, ONE, ZERO, tokens, behind, ending)


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


def matrices(machine: Machine, layout: Layout, step: Pass) -> Ledger:
    """Everything in a pass except attention cores: matrices, experts, head, vector kernels, collectives."""
    model, convention = machine.model, machine.convention
    if model.nominal_params is not None:
        return (_nominal(machine, layout, step.tokens),)
    attentions, feeds = distinct_blocks(model.groups)
    entries: list[Entry] = []
    for block, count in attentions:
        entries += ffn.gemms(
            block.linears, machine.formats.attention, machine.formats, step.tokens, layout.tp, count, "weights",
            convention,
        )  # fmt: skip
    for feed, count in feeds:
        entries += ffn.feed_forward(
            feed, machine.formats, step.tokens, layout, count, machine.skew, convention
        )
    return (*entries, _head(machine, layout, step), *_small(machine, layout, step, attentions, feeds))


def _nominal(machine: Machine, layout: Layout, tokens: Column) -> Entry:
    """All weights of a teaching model as one matrix."""
    params = machine.model.nominal_params or 0
    whole = (Linear("weights", "weights", params, 1, params),)
    work = ffn.gemm(whole, machine.formats.dense, tokens, layout.tp, 1, machine.convention)
    return Entry("weights", "weights", work)


def _head(machine: Machine, layout: Layout, step: Pass) -> Entry:
    """The output head, for tokens that need logits."""
    model = machine.model
    rows = step.sequences * step.new_tokens + step.prompts_ending
    tokens = step.tokens if machine.convention.head_all_tokens else rows
    head = (Linear("head", "head", model.hidden, model.vocab, model.vocab, quantised=False),)
    work = ffn.gemm(head, machine.formats.plain, tokens, layout.tp, 1, machine.convention)
    return Entry("head", "weights", work)


def _small(
    machine: Machine,
    layout: Layout,
    step: Pass,
    attentions: tuple[tuple[Attention, int], ...],
    feeds: tuple[tuple[FeedForward, int], ...],
) -> tuple[Entry, ...]:
    """Vector kernels and all-reduces: left out by the textbook, which counts neither."""
    if machine.convention.nominal_bytes:
        return ()
    blocks = float(sum(count for _, count in attentions) + sum(count for _, count in feeds))
    moved = 6.0 * step.tokens * machine.model.hidden
    vectors = Work("elementwise", "bf16", ZERO, moved, VECTOR_KERNELS * blocks / 2.0 * ONE, ZERO, ONE, ZERO)
    reduce = comms.all_reduce("all-reduce", step.tokens, machine.model.hidden, layout.tp, blocks * ONE)
    return (Entry("norms and activations", "weights", vectors), reduce)


def decode_cores(machine: Machine, layout: Layout, step: Pass) -> Ledger:
    """Attention cores of the decoding sequences of a pass."""
    attentions, _ = distinct_blocks(machine.model.groups)
    entries: list[Entry] = []
    for block, count in attentions:
        entries += attention.decode(
            block, machine.cache, step.sequences, step.new_tokens, step.context, layout.tp, layout.dcp, count,
            machine.convention,
        )  # fmt: skip
    return tuple(entries)


def prefill_cores(machine: Machine, layout: Layout, step: Pass) -> Ledger:
    """Attention cores of the prompt tokens of a pass."""
    attentions, _ = distinct_blocks(machine.model.groups)
    entries: list[Entry] = []
    for block, count in attentions:
        entries += attention.prefill(
            block, machine.cache, step.prompt_tokens, step.prompt_behind, layout.tp, count, machine.convention
        )
    return tuple(entries)


def host(sequences: Column) -> Entry:
    """The host's share of a step: scheduling, sampling, detokenising."""
    return Entry("host", "host", Work("host", "bf16", ZERO, ZERO, ONE, ZERO, ONE, sequences))


def forward(machine: Machine, layout: Layout, step: Pass) -> Ledger:
    """The whole ledger of a pass on the slowest device of a replica.

    Args:
        machine: model, precisions, convention.
        layout: degrees of parallelism, columns.
        step: what the pass holds on one attention rank, columns that broadcast with `layout`.

    Returns:
        Named entries of `Work`. Range of validity: one pipeline stage, context parallelism 1.
    """
    ledger = matrices(machine, layout, step)
    if np.any(step.sequences > 0):
        ledger += decode_cores(machine, layout, step)
    if np.any(step.prompt_tokens > 0):
        ledger += prefill_cores(machine, layout, step)
    return (*ledger, host(step.sequences))
