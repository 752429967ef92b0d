"""Passes of a model on one device that holds all of it: operations and bytes over batch and over context."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.physics import forward, kv, passes
from planner.physics.ffn import Routing, distinct_experts
from planner.physics.forward import Placed
from planner.physics.intensity import intensity
from planner.physics.passes import Pass
from planner.physics.roofline import over_kernels
from planner.physics.weights import expert_bytes, stored_bytes
from planner.serving.prefill import chunk_ledger
from planner.setting import Setting
from planner.specs.layout import layout
from planner.specs.model import GroupedAttention, LatentAttention, ModelSpec, linear_params
from planner.work import ONE, Column, Entry

SHORTEST: Final = 128.0
USUAL_LONGEST: Final = 131_072.0
LENGTHS: Final = 64
"""Contexts on a curve, from the shortest to what the model admits (the usual longest where it does not say)."""

INDEX_SCAN: Final = "index scan"
STATE: Final = "state update"
"""Names that the ledger gives to what is no read of keys, values or latents."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Decode steps over batch, columns of shape (m,), on one device.

    Attributes:
        batch: decoding sequences.
        flops: operations of the step [FLOP].
        weights: weight bytes read: dense ones, and those of the distinct experts [B].
        activations: bytes that matrices read and write beside their weights; the textbook counts none [B].
        cache, index: cache bytes and index keys read [B].
    """

    batch: Column
    flops: Column
    weights: Column
    activations: Column
    cache: Column
    index: Column

    @property
    def moved(self) -> Column:
        """All bytes between memory and chip [B]."""
        return self.weights + self.activations + self.cache + self.index

    @property
    def intensity(self) -> Column:
        """Operations per byte moved [FLOP/B]."""
        return intensity(self.flops, self.moved)

    @property
    def weights_intensity(self) -> Column:
        """Operations per weight byte alone [FLOP/B]."""
        return intensity(self.flops, self.weights)


@dataclass(frozen=True, eq=False)
class Reads:
    """What one sequence reads of its cache in a decode step, columns of shape (m,) over context [B]; and what it stores."""

    context: Column
    cache: Column
    index: Column
    state: Column
    stored: Column


@dataclass(frozen=True)
class Phase:
    """One kind of pass: tokens that it computes, its operations and bytes."""

    tokens: float
    flops: float
    moved: float

    @property
    def intensity(self) -> float:
        """Operations per byte [FLOP/B]."""
        return first(intensity(self.flops * ONE, self.moved * ONE))


def alone(setting: Setting) -> Placed:
    """The model on one imaginary device that holds all of it; no rank is slower than others."""
    return forward.place(replace(setting.machine, routing=Routing(None, 0.0, 0.0)), layout())


def total_of(entries: Iterable[Entry], field: str, like: Column) -> Column:
    """Sum of a field of `Work` over all launches of entries, in the shape of a column of batches or contexts."""
    summed = (over_kernels(np.asarray(getattr(e.work, field) * e.work.launches)).reshape(-1) for e in entries)
    return np.asarray(sum(summed, np.zeros(like.shape)))


def steps_of(placed: Placed, batch: Column, context: float) -> Steps:
    """Decode steps at batches of shape (m,)."""
    ledger = forward.forward(placed, _pass(batch, context * ONE))
    matrices = [entry for entry in ledger if entry.group in ("weights", "experts")]
    cores = [entry for entry in ledger if entry.group == "kv"]
    weights = weight_reads(placed, batch)
    scans = total_of((entry for entry in cores if entry.name == INDEX_SCAN), "hbm_bytes", batch)
    return Steps(
        batch=batch,
        flops=total_of(ledger, "flops", batch),
        weights=weights,
        activations=np.maximum(total_of(matrices, "hbm_bytes", batch) - weights, 0.0),
        cache=total_of(cores, "hbm_bytes", batch) - scans,
        index=scans,
    )


def _pass(batch: Column, context: Column) -> Pass:
    """A decode step in the shape that a placed machine broadcasts with."""
    return passes.decode_pass(batch[None, :], context[None, :])


def weight_reads(placed: Placed, batch: Column) -> Column:
    """Weight bytes that a step reads: every matrix once, of the routed experts those that are hit."""
    machine = placed.machine
    kernels = placed.kernels if placed.head is None else (*placed.kernels, placed.head)
    total = np.full(batch.shape, sum(first(kernel.weights * kernel.launches) for kernel in kernels))
    width = stored_bytes(machine.formats.experts, machine.convention)
    for feed, layers in placed.experts:
        distinct = distinct_experts(feed.count, feed.top_k, batch)
        total = total + layers * expert_bytes(distinct, linear_params(feed.expert), width, ONE)
    return total


def lengths(setting: Setting) -> Column:
    """Contexts of the curve, up to what the model admits."""
    longest = max(float(setting.model.max_len or USUAL_LONGEST), setting.decoding.context, 2 * SHORTEST)
    return np.unique(np.round(np.geomspace(SHORTEST, longest, LENGTHS)))


def reads_of(placed: Placed, setting: Setting, context: Column) -> Reads:
    """What a lone sequence reads a step at contexts of shape (m,), and what it has stored."""
    cores = forward.decode_cores(placed, _pass(ONE, context))
    names = {"index": {INDEX_SCAN}, "state": {STATE}}
    named = {
        kind: total_of((e for e in cores if e.name in wanted), "hbm_bytes", context) for kind, wanted in names.items()
    }
    rest = total_of(cores, "hbm_bytes", context) - named["index"] - named["state"]
    stored = kv.sequence_bytes(setting.cache, context, ONE, ONE, ONE, kv.EXACT)
    return Reads(context, rest, named["index"], named["state"], np.asarray(stored))


def knee_of(model: ModelSpec) -> int | None:
    """Most tokens that attention reads where every layer that caches chooses among them by an index; None elsewhere."""
    caching = [
        group.attention for group in model.groups if isinstance(group.attention, LatentAttention | GroupedAttention)
    ]
    chosen = {at.index.top_k if isinstance(at, LatentAttention) and at.index else None for at in caching}
    return max((top_k for top_k in chosen if top_k is not None), default=None) if None not in chosen else None


def overtaken(reads: Reads) -> float | None:
    """The context from which on index keys read exceed the rest read of the cache; None where they never do [tokens].

    Between points of the curve both are taken as straight lines, which beyond the knee they are.
    """
    ahead = reads.index - reads.cache
    if not reads.index.any() or ahead[0] >= 0.0 or ahead[-1] <= 0.0:
        return None
    at = int(np.argmax(ahead > 0.0))
    return float(np.interp(0.0, ahead[at - 1 : at + 1], reads.context[at - 1 : at + 1]))


def prompt_of(placed: Placed, setting: Setting) -> Phase:
    """The scenario's whole prompt, read in as the engine cuts it."""
    work = setting.prompt
    ledger = chunk_ledger(placed, work)
    flops, moved = (first(total_of(ledger, field, ONE)) * work.chunks for field in ("flops", "hbm_bytes"))
    return Phase(work.tokens, flops, moved)


def first(column: Column) -> float:
    """The first number of a column."""
    return float(np.asarray(column).reshape(-1)[0])
