"""Work of timed kernels, counted by the very formulas that plans are counted with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.calibrate.kernel_tables import (
    CollectiveRow,
    DecodeRow,
    ExpertsRow,
    GemmRow,
    LatentDecodeRow,
    LatentPrefillRow,
    OperatorRow,
    PrefillRow,
    TimedRow,
)
from planner.physics.attention import (
    attended_pairs,
    decode_flops,
    decode_traffic,
    prefill_flops,
    prefill_traffic,
)
from planner.physics.comms import all_reduce_traffic, gather_traffic
from planner.physics.ffn import distinct_experts, expert_flops, matrix_flops, matrix_traffic, rank_experts_at
from planner.specs.precision import CACHE, WEIGHTS
from planner.work import ONE, ZERO, Column, Work

EVEN: Final = "balanced"
"""Distribution that gives every expert the same number of tokens; the others draw experts at random."""

LATENT, ROPE, NOPE, VALUE = 512.0, 64.0, 128.0, 128.0
"""Widths of the latent attention that the tables time [elements]."""

MATRICES: Final = 3
"""Matrices of an expert: gate, up and down."""


@dataclass(frozen=True)
class Timings:
    """Launches of one kernel: their work, what they took [s], and by what they are held out and told apart."""

    work: Work
    seconds: Column
    shapes: tuple[str, ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        """Launches timed."""
        return len(self.shapes)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Timings:
        """Those launches that `chosen` is true for."""
        at = np.flatnonzero(chosen)
        work = Work(
            self.work.kind,
            self.work.precision,
            self.work.flops[at],
            self.work.hbm_bytes[at],
            ONE,
            self.work.link_bytes[at],
            self.work.messages[at],
            self.work.length[at],
        )
        return Timings(work, self.seconds[at], tuple(self.shapes[i] for i in at), tuple(self.groups[i] for i in at))


def timings(rows: Sequence[OperatorRow], precision: str) -> Timings:
    """Rows of one kind as work and time.

    Args:
        rows: timings of one kind of operator.
        precision: of the weights, or of the cache for attention, in the product's words.
    """
    kind = rows[0].kind
    flops, moved, length = _counted(rows, precision)
    none = np.zeros(len(rows))
    work = Work(kind, precision, flops, moved, ONE, none, none, length + none)
    return Timings(work, seconds(rows), tuple(row.shape for row in rows), tuple(map(_group, rows)))


def seconds(rows: Sequence[TimedRow]) -> Column:
    """What launches took [s]."""
    return column(rows, "measured_us") * 1e-6


def column(rows: Sequence[TimedRow], name: str) -> Column:
    """One column of a table."""
    return np.array([getattr(row, name) for row in rows], dtype=np.float64)


def _group(row: OperatorRow) -> str:
    """How tokens were routed; empty for what is not routed."""
    return row.distribution if isinstance(row, ExpertsRow) else ""


def _counted(rows: Sequence[OperatorRow], precision: str) -> tuple[Column, Column, Column]:
    """Operations, bytes and prompt lengths of launches."""
    match rows[0]:
        case GemmRow():
            return _gemm(rows, precision)
        case ExpertsRow():
            return _experts(rows, precision)
        case DecodeRow():
            return _decode(rows, precision)
        case LatentDecodeRow():
            return _latent_decode(rows, precision)
        case PrefillRow():
            return _prefill(rows, precision)
        case LatentPrefillRow():
            return _latent_prefill(rows, precision)
        case _:
            return np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))


def _gemm(rows: Sequence[OperatorRow], precision: str) -> tuple[Column, Column, Column]:
    """Weights once, activations in and out in BF16."""
    m, n, k = column(rows, "m"), column(rows, "n"), column(rows, "k")
    moved = matrix_traffic(n * k * WEIGHTS[precision].bytes, m, n + k)
    return matrix_flops(n * k, m), moved, ZERO


def _experts(rows: Sequence[OperatorRow], precision: str) -> tuple[Column, Column, Column]:
    """Each touched expert once; 4 bytes a routed token and hidden unit, as plans count them."""
    tokens, hidden, ranks = column(rows, "num_tokens"), column(rows, "hidden_size"), column(rows, "moe_ep_size")
    ways, top_k, count = column(rows, "moe_tp_size"), column(rows, "topk"), column(rows, "num_experts")
    params = MATRICES * hidden * column(rows, "inter_size")
    distinct = _distinct(rows, count, top_k, tokens)
    touched = rank_experts_at(distinct, count, count / ranks, ONE)
    flops = expert_flops(tokens, top_k, params, ranks * ways, ONE)
    weights = touched * params * WEIGHTS[precision].bytes / ways
    return flops, matrix_traffic(weights, tokens, top_k * hidden * 2.0 / ranks), ZERO


def _distinct(rows: Sequence[OperatorRow], count: Column, top_k: Column, tokens: Column) -> Column:
    """Experts that any token is routed to: as many as there are pairs when dealt evenly, fewer when drawn."""
    even = np.array([_group(row) == EVEN for row in rows])
    drawn = distinct_experts(count, top_k, tokens)
    return np.where(even, np.minimum(count, tokens * top_k), drawn)


def _decode(rows: Sequence[OperatorRow], precision: str) -> tuple[Column, Column, Column]:
    """The cache once a sequence."""
    batch, context, width = column(rows, "batch_size"), column(rows, "ctx"), column(rows, "head_dim")
    flops = decode_flops(batch, column(rows, "num_heads"), ONE, ONE, width, width, context)
    token = 2.0 * column(rows, "nkv") * width * CACHE[precision].bytes
    return flops, decode_traffic(batch, token, 1, ONE, context), ZERO


def _latent_decode(rows: Sequence[OperatorRow], precision: str) -> tuple[Column, Column, Column]:
    """The latent once a sequence, all heads of the rank on it."""
    batch, context, heads = column(rows, "batch_size"), column(rows, "ctx"), column(rows, "num_heads")
    flops = decode_flops(batch, heads, ONE, ONE, LATENT + ROPE, LATENT, context)
    return flops, decode_traffic(batch, (LATENT + ROPE) * CACHE[precision].bytes, 1, ONE, context), ZERO


def _prefill(rows: Sequence[OperatorRow], precision: str) -> tuple[Column, Column, Column]:
    """Half of all pairs; the cache once."""
    batch, length, width = column(rows, "batch_size"), column(rows, "isl"), column(rows, "head_dim")
    pairs = batch * attended_pairs(length, ZERO, np.inf, True)
    flops = prefill_flops(pairs, column(rows, "num_heads"), ONE, width, width)
    token = 2.0 * column(rows, "nkv") * width * CACHE[precision].bytes
    return flops, batch * prefill_traffic(length, ZERO, token, 1, ONE), length


def _latent_prefill(rows: Sequence[OperatorRow], precision: str) -> tuple[Column, Column, Column]:
    """Half of all pairs on expanded heads; the latent once."""
    batch, length, heads = column(rows, "batch_size"), column(rows, "isl"), column(rows, "num_heads")
    pairs = batch * attended_pairs(length, ZERO, np.inf, True)
    flops = prefill_flops(pairs, heads, ONE, NOPE + ROPE, VALUE)
    token = (LATENT + ROPE) * CACHE[precision].bytes
    return flops, batch * prefill_traffic(length, ZERO, token, 1, ONE), length


def link_traffic(rows: Sequence[CollectiveRow]) -> tuple[Column, Column]:
    """Bytes that collectives of one kind put on a link, and their group sizes."""
    message, ranks = column(rows, "bytes"), column(rows, "num_gpus")
    counted = all_reduce_traffic if rows[0].op == "all_reduce" else gather_traffic
    return counted(message, ranks), ranks
