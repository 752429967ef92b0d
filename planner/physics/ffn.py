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


def gemms(
    linears: tuple[Linear, ...],
    default: Precision,
    kinds: Formats,
    tokens: Column,
    tp: Column,
    count: int,
    group: str,
    convention: Conventions,
) -> list[Entry]:
    """One entry a kernel: matrices of equal kernel name and precision run as one launch, `count` layers of it."""
    entries = []
    for kernel in dict.fromkeys(linear.kernel for linear in linears):
        parts = tuple(linear for linear in linears if linear.kernel == kernel)
        precision = kinds.of(parts[0], default)
        entries.append(Entry(kernel, group, gemm(parts, precision, tokens, tp, count, convention)))
    return entries


def gemm(
    parts: tuple[Linear, ...], precision: Precision, tokens: Column, tp: Column, count: int, convention: Conventions
) -> Work:
    """Work of matrices that share their input and run as one kernel."""
    local = sum((part.params / np.minimum(tp, part.shards) for part in parts), np.zeros(np.shape(tp)))
    outputs = sum((part.outputs / np.minimum(tp, part.shards) for part in parts), np.zeros(np.shape(tp)))
    weights = local * stored_bytes(precision, convention)
    width = (parts[0].inputs + outputs) * (0.0 if convention.nominal_bytes else 1.0)
    flops = matrix_flops(local, tokens)
    return Work("gemm", precision.id, flops, matrix_traffic(weights, tokens, width), count * ONE, ZERO, ONE, ZERO)


def feed_forward(
    ffn: FeedForward | None,
    kinds: Formats,
    tokens: Column,
    layout: Layout,
    count: int,
    skew: Skew,
    convention: Conventions,
) -> list[Entry]:
    """Entries of a feed-forward block, `count` layers of it; `tokens` are one attention rank's."""
    match ffn:
        case DenseFFN():
            return gemms(ffn.linears, kinds.dense, kinds, tokens, layout.tp, count, "weights", convention)
        case ExpertFFN():
            always = gemms(
                ffn.shared + ffn.outer, kinds.dense, kinds, tokens, layout.tp, count, "weights", convention
            )
            routed = experts(ffn, kinds.experts, tokens * layout.dp, layout, skew, convention)
            return [*always, Entry("experts", "experts", routed_times(routed, count))]
        case _:
            return []


def experts(
    ffn: ExpertFFN,
    precision: Precision,
    tokens: Column,
    layout: Layout,
    skew: Skew,
    convention: Conventions,
) -> Work:
    """Work of one layer's routed experts on the slowest rank, one grouped kernel, for all tokens of the replica."""
    params = linear_params(ffn.expert)
    load = imbalance(layout.ep, skew.excess) if skew.asked is None else skew.asked * ONE
    distinct = distinct_experts(ffn.count, ffn.top_k, tokens)
    touched = rank_experts(distinct, ffn.count, layout.ep, load)
    flops = expert_flops(tokens, ffn.top_k, params, layout.ep * layout.expert_tp, load)
    weights = touched * params * stored_bytes(precision, convention) / layout.expert_tp
    width = np.zeros(1) if convention.nominal_bytes else ffn.top_k * ffn.expert[0].inputs * 2.0 / layout.ep
    return Work("experts", precision.id, flops, matrix_traffic(weights, tokens, width), ONE, ZERO, ONE, ZERO)


def routed_times(work: Work, count: int) -> Work:
    """The same work launched in `count` layers."""
    return Work(
        work.kind, work.precision, work.flops, work.hbm_bytes, count * ONE, work.link_bytes, work.messages, work.length
    )
