"""Work of matrices, feed-forward blocks and experts for a number of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.formula import formula
from planner.physics.weights import Formats, stored_bytes
from planner.specs.layout import Layout
from planner.specs.model import DenseFFN, ExpertFFN, FeedForward, Linear, linear_params
from planner.specs.precision import Precision
from planner.specs.profile import Conventions
from planner.work import ONE, ZERO, Column, Entry, Work

ROW_PARALLEL = ("o", "down", "out_proj")
"""Kernels that tensor parallelism cuts along their inputs; the others are cut along their outputs."""


@dataclass(frozen=True)
class Skew:
    """How unevenly experts are hit: the slowest rank's load over the mean as asked, or the excess that is expected."""

    asked: float | None
    excess: float


@formula("definition: two operations a weight and token", "FLOP")
def matrix_flops(local_params: Column, tokens: Column) -> Column:
    """Operations of matrices that hold `local_params` weights on this rank."""
    return 2.0 * local_params * tokens  # [FLOP]


@formula("definition: weights once, activations in and out once", "B")
def matrix_traffic(weight_bytes: Column, tokens: Column, width: Column) -> Column:
    """Memory traffic of matrices; `width` is inputs plus local outputs, BF16."""
    activations = tokens * width * 2.0  # [B]
    return weight_bytes + activations  # [B]


@formula("distinct experts hit by T uniform independent draws of k out of E: E·(1 − (1 − k/E)^T)", "experts")
def distinct_experts(count: int, top_k: int, tokens: Column) -> Column:
    """Expected number of experts that at least one of `tokens` tokens is routed to, over the whole model layer."""
    missed = (1.0 - top_k / count) ** tokens  # [1]
    return count * (1.0 - missed)  # [experts]


@formula("fit to public serving measurements: the excess is reached at 8 expert ranks (0.25, range 0.0–0.6)", "1")
def imbalance(ep: Column, excess: float) -> Column:
    """Load of the slowest expert rank over the mean rank's."""
    reached = np.minimum(1.0, np.log2(ep) / 3.0)  # [1]
    return 1.0 + excess * reached  # [1]


@formula("definition: the slowest rank's share of the distinct experts, at most what it stores", "experts")
def rank_experts(distinct: Column, count: int, ep: Column, load: Column) -> Column:
    """Experts whose weights the slowest rank reads in one layer."""
    share = distinct / ep * load  # [experts]
    return np.minimum(share, np.ceil(count / ep))  # [experts]


@formula("definition: routed tokens · weights of an expert · 2, divided over ranks, the slowest one", "FLOP")
def expert_flops(tokens: Column, top_k: int, params: int, ranks: Column, load: Column) -> Column:
    """Operations of the routed experts on the slowest rank, all tokens of the replica."""
    routed = tokens * top_k  # [tokens]
    return 2.0 * routed * params * load / ranks  # [FLOP]


@dataclass(frozen=True)
class Kernel:
    """Matrices that run as one launch, placed on a layout; what is left to know is how many tokens pass through.

    Attributes:
        name, group: as in the ledger.
        precision: kernel precision.
        launches: layers that launch it.
        local: weights on this rank [1].
        weights: their bytes [B].
        width: inputs plus local outputs of activations [elements].

    Several kernels of one precision may be stacked along a leading axis: columns then have shape (kernels, n, 1).
    """

    name: str
    group: str
    precision: str
    launches: Column
    local: Column
    weights: Column
    width: Column


def place(
    linears: tuple[Linear, ...],
    default: Precision,
    kinds: Formats,
    tp: Column,
    count: int,
    convention: Conventions,
) -> list[Kernel]:
    """The kernels of one block under a layout: matrices of equal kernel name run as one launch, in `count` layers."""
    kernels = []
    for name in dict.fromkeys(linear.kernel for linear in linears):
        parts = tuple(linear for linear in linears if linear.kernel == name)
        kernels.append(place_kernel(parts, kinds.of(parts[0], default), tp, count, convention))
    return kernels


def place_kernel(
    parts: tuple[Linear, ...], precision: Precision, tp: Column, count: int, convention: Conventions
) -> Kernel:
    """One kernel under a layout; the textbook counts no activation traffic."""
    none = np.zeros(np.shape(tp))
    local = sum((part.params / np.minimum(tp, part.shards) for part in parts), none)
    outputs = sum((part.outputs / np.minimum(tp, part.shards) for part in parts), none)
    weights = local * stored_bytes(precision, convention)
    ways = np.minimum(tp, parts[0].shards) if parts[0].kernel in ROW_PARALLEL else 1.0
    whole = parts[0].outputs if parts[0].kernel in ROW_PARALLEL else outputs
    width = none if convention.nominal_bytes else none + parts[0].inputs / ways + whole
    return Kernel(parts[0].kernel, "weights", precision.id, count * ONE, local, weights, width)


def stacked(kernels: list[Kernel]) -> tuple[Kernel, ...]:
    """Kernels of equal precision stacked along a leading axis, so that one line of a formula prices them all."""
    found = []
    for precision in dict.fromkeys(kernel.precision for kernel in kernels):
        same = [kernel for kernel in kernels if kernel.precision == precision]
        launches = np.concatenate([kernel.launches for kernel in same])[:, None, None]
        columns = [np.stack([getattr(k, name) for k in same]) for name in ("local", "weights", "width")]
        found.append(Kernel(f"matrices in {precision}", "weights", precision, launches, *columns))
    return tuple(found)


def kernel_entry(kernel: Kernel, tokens: Column) -> Entry:
    """A kernel as a ledger entry, for a number of tokens."""
    flops = matrix_flops(kernel.local, tokens)
    moved = matrix_traffic(kernel.weights, tokens, kernel.width)
    work = Work("gemm", kernel.precision, flops, moved, kernel.launches, ZERO, ONE, ZERO)
    return Entry(kernel.name, kernel.group, work)


def place_feed_forward(
    ffn: FeedForward, kinds: Formats, tp: Column, count: int, convention: Conventions
) -> list[Kernel]:
    """The matrices of a feed-forward block that every token passes, under a layout."""
    linears = ffn.linears if isinstance(ffn, DenseFFN) else ffn.shared + ffn.outer
    return place(linears, kinds.dense, kinds, tp, count, convention)


def experts(
    ffn: ExpertFFN,
    precision: Precision,
    tokens: Column,
    layout: Layout,
    count: int,
    skew: Skew,
    convention: Conventions,
) -> Entry:
    """Routed experts on the slowest rank, one grouped kernel in each of `count` layers, all tokens of the replica."""
    params = linear_params(ffn.expert)
    load = imbalance(layout.ep, skew.excess) if skew.asked is None else skew.asked * ONE
    distinct = distinct_experts(ffn.count, ffn.top_k, tokens)
    touched = rank_experts(distinct, ffn.count, layout.ep, load)
    flops = expert_flops(tokens, ffn.top_k, params, layout.ep * layout.expert_tp, load)
    weights = touched * params * stored_bytes(precision, convention) / layout.expert_tp
    width = np.zeros(1) if convention.nominal_bytes else ffn.top_k * ffn.expert[0].inputs * 2.0 / layout.ep
    moved = matrix_traffic(weights, tokens, width)
    return Entry("experts", "experts", Work("experts", precision.id, flops, moved, count * ONE, ZERO, ONE, ZERO))
