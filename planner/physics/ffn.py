"""Work of matrices, feed-forward blocks and experts for a number of tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.formula import formula
from planner.physics.weights import Formats, experts_per_rank, stored_bytes
from planner.specs.layout import Layout
from planner.specs.model import DenseFFN, ExpertFFN, FeedForward, Linear, linear_params
from planner.specs.precision import Precision
from planner.specs.profile import Conventions
from planner.work import ONE, ZERO, Column, Entry, Work

ROW_PARALLEL = ("o", "down", "out_proj")
"""Kernels that tensor parallelism cuts along their inputs; the others are cut along their outputs."""


RANKS_TABULATED = tuple(float(2**power) for power in range(11))
NORMAL_MAXIMUM = (0.0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437, 2.5946, 2.8269, 3.0439, 3.2482)
"""Expected largest of n independent standard normals, n as in `RANKS_TABULATED` (order statistics, by quadrature)."""


EXPERTS_A_COPY = 8.0
"""Experts for every extra copy when copies even popularity out."""


@dataclass(frozen=True)
class Routing:
    """How unevenly tokens reach expert ranks.

    Attributes:
        asked: the slowest rank's load over the mean, when the scenario names it; None = expected.
        spread: popularity of experts, standard deviation over mean (0 = uniform routing).
        redundant: extra expert copies; engines place them on the popular experts, which evens popularity out.
    """

    asked: float | None
    spread: float
    redundant: float

    def popularity(self, count: int) -> float:
        """Spread of popularity that is left of `count` experts once popular ones have copies.

        DeepSeek evens 256 experts out with 32 copies (technical report, section 3.4): one for every eight. In between
        it is taken to fall in proportion.
        """
        return self.spread * max(0.0, 1.0 - self.redundant * EXPERTS_A_COPY / count)


@formula("definition: two operations a weight and token", "FLOP")
def matrix_flops(local_params: Column, tokens: Column) -> Column:
    """Operations of matrices that hold `local_params` weights on this rank."""
    return 2.0 * local_params * tokens  # [FLOP]


@formula("definition: weights once, activations in and out once", "B")
def matrix_traffic(weight_bytes: Column, tokens: Column, width: Column) -> Column:
    """Memory traffic of matrices; `width` is inputs plus local outputs, BF16."""
    a_token = width * 2.0  # [B]
    activations = tokens * a_token  # [B]
    return weight_bytes + activations  # [B]


@formula("distinct experts hit by T uniform independent draws of k out of E: E·(1 − (1 − k/E)^T)", "experts")
def distinct_experts(count: Column | int, top_k: Column | int, tokens: Column) -> Column:
    """Expected number of experts that at least one of `tokens` tokens is routed to, over the whole model layer."""
    missed = (1.0 - top_k / count) ** tokens  # [1]
    return count * (1.0 - missed)  # [experts]


@formula("order statistics: expected largest of n independent standard normals, tabulated at powers of two", "1")
def largest_deviation(ranks: Column) -> Column:
    """Standard deviations by which the largest of several ranks is expected to exceed the mean."""
    return np.interp(np.log2(ranks), np.log2(RANKS_TABULATED), NORMAL_MAXIMUM)  # [1]


@formula("definition: ranks that hold an expert, at most one a stored copy", "ranks")
def holding_ranks(count: int, redundant: float, ep: Column) -> Column:
    """Expert ranks that hold any expert of a layer."""
    return np.minimum(ep, count + redundant)  # [ranks]


@formula("expected maximum over ranks of random routing (Poisson) and of popularity, which add in square", "1")
def imbalance(routed: Column, copies: Column, ranks: Column, largest: Column, popularity: float) -> Column:
    """Load of the slowest expert rank over the mean rank's.

    `routed` = token-expert pairs of a layer, `copies` = experts stored on a rank, `largest` = deviations of the largest
    of so many ranks. Within 15 % of a simulation from one pair a rank on; below that the slowest rank has a pair or two
    whatever the formula says.
    """
    mean = routed / ranks  # [tokens]
    chance = (1.0 - 1.0 / ranks) / np.maximum(mean, 1.0 / ranks)  # [1]
    variance = chance + popularity**2 / copies  # [1]
    deviation = largest * np.sqrt(variance)  # [1]
    return np.minimum(1.0 + deviation, ranks)  # [1]


@formula("expected maximum over ranks of the binomial number of stored experts that are hit, at least one", "experts")
def rank_experts(distinct: Column, count: int, copies: Column, largest: Column) -> Column:
    """Experts whose weights the slowest rank reads in one layer, when each is hit with the same chance."""
    hit = distinct / count  # [1]
    mean = copies * hit  # [experts]
    deviation = largest * np.sqrt(mean * (1.0 - hit))  # [experts]
    least = np.minimum(distinct, 1.0)  # [experts]
    return np.clip(mean + deviation, least, copies)  # [experts]


@formula("definition: the slowest rank's share of the distinct experts, at most what it stores", "experts")
def rank_experts_at(distinct: Column, count: Column | int, copies: Column, load: Column) -> Column:
    """Experts whose weights the slowest rank reads in one layer, for a load over the mean that is given."""
    share = copies * distinct / count * load  # [experts]
    return np.minimum(share, copies)  # [experts]


@formula("definition: routed tokens · weights of an expert · 2, divided over ranks, the slowest one", "FLOP")
def expert_flops(tokens: Column, top_k: Column | int, params: Column | int, ranks: Column, load: Column) -> Column:
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
    ffn: FeedForward, kinds: Formats, layout: Layout, count: int, convention: Conventions
) -> list[Kernel]:
    """The matrices of a feed-forward block that every token passes, under a layout."""
    if isinstance(ffn, DenseFFN):
        return place(ffn.linears, kinds.dense, kinds, layout.tp, count, convention)
    shared = [held_whole(k, ffn, kinds, layout, convention) for k in _shared(ffn, kinds, layout, count, convention)]
    return [*shared, *place(ffn.outer, kinds.dense, kinds, layout.tp, count, convention)]


def _shared(ffn: ExpertFFN, kinds: Formats, layout: Layout, count: int, convention: Conventions) -> list[Kernel]:
    """Shared experts, split by tensor parallelism."""
    return place(ffn.shared, kinds.dense, kinds, layout.tp, count, convention)


def held_whole(kernel: Kernel, ffn: ExpertFFN, kinds: Formats, layout: Layout, convention: Conventions) -> Kernel:
    """A kernel whose matrices every rank holds whole where tokens are dispatched, running them on its own tokens.

    A rank's share of the tokens is 1/tp, so its operations and activations stay those of the split matrices.
    """
    parts = [linear for linear in ffn.shared if linear.kernel == kernel.name]
    whole = linear_params(tuple(parts)) * stored_bytes(kinds.of(parts[0], kinds.dense), convention)
    return replace(kernel, weights=np.where(layout.dispatches(ffn.top_k) > 0.0, whole, kernel.weights))


def experts(
    ffn: ExpertFFN,
    precision: Precision,
    tokens: Column,
    layout: Layout,
    count: int,
    routing: Routing,
    convention: Conventions,
) -> Entry:
    """Routed experts on the slowest rank, one grouped kernel in each of `count` layers, all tokens of the replica."""
    params = linear_params(ffn.expert)
    load, touched, ranks = slowest(ffn, tokens, layout.ep, routing)
    flops = expert_flops(tokens, ffn.top_k, params, ranks * layout.expert_tp, load)
    weights = touched * params * stored_bytes(precision, convention) / layout.expert_tp
    width = np.zeros(1) if convention.nominal_bytes else ffn.top_k * ffn.expert[0].inputs * 2.0 / ranks
    moved = matrix_traffic(weights, tokens, width)
    return Entry("experts", "experts", Work("experts", precision.id, flops, moved, count * ONE, ZERO, ONE, ZERO))


def slowest(ffn: ExpertFFN, tokens: Column, ep: Column, routing: Routing) -> tuple[Column, Column, Column]:
    """Load over the mean and experts read on the slowest rank, and how many ranks hold experts."""
    ranks = holding_ranks(ffn.count, routing.redundant, ep)
    copies = experts_per_rank(ffn.count, routing.redundant, ep)
    distinct = distinct_experts(ffn.count, ffn.top_k, tokens)
    if routing.asked is not None:
        load = np.minimum(routing.asked, ranks)
        return load, rank_experts_at(distinct, ffn.count, copies, load), ranks
    largest = largest_deviation(ranks)
    load = imbalance(tokens * ffn.top_k, copies, ranks, largest, routing.popularity(ffn.count))
    return load, rank_experts(distinct, ffn.count, copies, largest), ranks
