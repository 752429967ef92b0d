"""Parameters and bytes per device in three buckets: split by TP, replicated, and experts ÷ (EP · expert TP)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.formula import formula
from planner.physics.stages import fullest_stage
from planner.specs.layout import Layout
from planner.specs.model import (
    Attention,
    DenseFFN,
    ExpertFFN,
    FeedForward,
    LatentAttention,
    LayerGroup,
    Linear,
    ModelSpec,
    linear_params,
)
from planner.specs.precision import BF16, FP32, WEIGHTS, Precision, grouped_int4
from planner.specs.profile import Conventions
from planner.work import Column


@dataclass(frozen=True)
class Formats:
    """Precisions of the weight classes of one plan.

    Attributes:
        dense: attention projections and dense or shared feed-forward matrices.
        attention: attention projections where they differ (NVFP4 checkpoints of MLA models keep them BF16).
        experts: routed experts.
        plain: router, embedding, head, norms.
    """

    dense: Precision
    attention: Precision
    experts: Precision
    plain: Precision

    def of(self, linear: Linear, default: Precision) -> Precision:
        """Precision of a matrix: `default` if it is quantised, plain otherwise."""
        return default if linear.quantised else self.plain


def formats(model: ModelSpec, chosen: str, convention: Conventions) -> Formats:
    """Which precision each class of weights takes when a scenario asks for `chosen`.

    The textbook stores every weight in the named precision. Otherwise a checkpoint whose experts alone carry the
    chosen format (gpt-oss in MXFP4, Kimi K2.5 in INT4) keeps the rest in its own; NVFP4 checkpoints of MLA models
    keep attention projections in BF16; float32 is everything's.
    """
    if chosen == FP32.id:
        return Formats(FP32, FP32, FP32, FP32)
    named = grouped_int4(model.int4_group) if chosen == "int4" else WEIGHTS[chosen]
    if convention.nominal_bytes:
        return Formats(named, named, named, named)
    if model.experts_precision == chosen:
        rest = WEIGHTS.get(model.precision, BF16)
        return Formats(rest, rest, named, BF16)
    latent = any(isinstance(group.attention, LatentAttention) for group in model.groups)
    attention = BF16 if chosen == "nvfp4" and latent else named
    return Formats(named, attention, named, BF16)


def stored_bytes(precision: Precision, convention: Conventions) -> float:
    """Bytes of one weight under a counting convention [B]."""
    return precision.nominal_bytes if convention.nominal_bytes else precision.bytes


@formula("Megatron-style tensor parallelism: a matrix divides by min(tp, shards), beyond that ranks hold copies", "B")
def matrix_bytes(params: int, bytes_per_param: float, shards: int, tp: Column) -> Column:
    """Bytes that one rank holds of a matrix."""
    ways = np.minimum(tp, shards)  # [1]
    return params * bytes_per_param / ways  # [B]


@formula("expert parallelism with redundant copies: ceil((E + redundant) / ep) experts on a rank", "experts")
def experts_per_rank(count: int, redundant: float, ep: Column) -> Column:
    """Routed experts that the fullest rank stores in one layer."""
    return np.ceil((count + redundant) / ep)  # [experts]


@formula("kernels pad each rank's share of an expert to whole tiles (fitted to engine logs of MXFP4)", "1")
def tile_padding(width: int, expert_tp: Column, tile: float) -> Column:
    """Stored over needed weights of an expert on a rank."""
    share = width / expert_tp  # [elements]
    padded = np.ceil(share / tile) * tile  # [elements]
    return padded / share  # [1]


@formula("definition: stored experts, each divided expert_tp ways", "B")
def expert_bytes(stored: Column, params: int, bytes_per_param: float, expert_tp: Column) -> Column:
    """Bytes of routed experts on the fullest rank in one layer."""
    return stored * params * bytes_per_param / expert_tp  # [B]


def linears_bytes(
    linears: tuple[Linear, ...], default: Precision, kinds: Formats, tp: Column, convention: Conventions
) -> Column:
    """Bytes of several matrices on one rank."""
    total = np.zeros(np.shape(tp))
    for linear in linears:
        width = stored_bytes(kinds.of(linear, default), convention)
        total = total + matrix_bytes(linear.params, width, linear.shards, tp)
    return total


def attention_bytes(attention: Attention | None, kinds: Formats, tp: Column, convention: Conventions) -> Column:
    """Bytes of one attention block on one rank, its vectors (norms, biases) included."""
    if attention is None:
        return np.zeros(np.shape(tp))
    vectors = attention.extra_params * stored_bytes(kinds.plain, convention)
    return linears_bytes(attention.linears, kinds.attention, kinds, tp, convention) + vectors


def ffn_bytes(
    ffn: FeedForward | None, kinds: Formats, layout: Layout, redundant: float, convention: Conventions
) -> Column:
    """Bytes of one feed-forward block on the fullest rank; shared experts are whole where tokens are dispatched."""
    tp = layout.tp
    plain = stored_bytes(kinds.plain, convention)
    match ffn:
        case DenseFFN():
            return linears_bytes(ffn.linears, kinds.dense, kinds, tp, convention) + ffn.extra_params * plain
        case ExpertFFN():
            stored = experts_per_rank(ffn.count, redundant, layout.ep)
            width = stored_bytes(kinds.experts, convention)
            tile = 1.0 if convention.nominal_bytes else kinds.experts.tile
            padding = tile_padding(ffn.expert[0].shards, layout.expert_tp, tile)
            routed = (
                expert_bytes(stored, _padded_params(ffn, kinds.experts, convention), width, layout.expert_tp) * padding
            )
            vectors = expert_bytes(stored, ffn.expert_extra_params, plain, layout.expert_tp)
            ways = np.where(layout.dispatches(ffn.top_k) > 0.0, 1.0, tp)
            shared = linears_bytes(ffn.shared, kinds.dense, kinds, ways, convention)
            outer = linears_bytes(ffn.outer, kinds.dense, kinds, tp, convention)
            whole: Column = routed + vectors + shared + outer + ffn.extra_params * plain
            return whole
        case _:
            return np.zeros(np.broadcast_shapes(np.shape(tp), np.shape(layout.ep)))


def _padded_params(ffn: ExpertFFN, precision: Precision, convention: Conventions) -> int:
    """Weights of one expert with its hidden width padded as kernels store it (fitted to engine logs of MXFP4)."""
    tile, hidden = precision.hidden_tile, ffn.expert[0].inputs
    params = linear_params(ffn.expert)
    return params if convention.nominal_bytes else params // hidden * (-(-hidden // tile) * tile)


def layer_bytes(group: LayerGroup, kinds: Formats, layout: Layout, redundant: float, convention: Conventions) -> Column:
    """Bytes of one layer of a group on the fullest rank."""
    norms = group.norm_params * stored_bytes(kinds.plain, convention)
    attention = attention_bytes(group.attention, kinds, layout.tp, convention)
    return attention + ffn_bytes(group.ffn, kinds, layout, redundant, convention) + norms


def weight_bytes(
    model: ModelSpec, kinds: Formats, layout: Layout, redundant: float, convention: Conventions, *, mtp: bool = False
) -> Column:
    """Weight bytes on the fullest device of a replica [B].

    The fullest pipeline stage is the run of ceil(layers / pp) consecutive layers that weighs most; the larger of embedding
    and head, and prediction layers, are counted on it. Embedding and head are split over the vocabulary by TP; vision
    towers are split or replicated by their family.
    """
    plain = stored_bytes(kinds.plain, convention)
    if model.nominal_params is not None:
        fullest = np.ceil(model.layers / layout.pp) / model.layers  # [1], share of the layers on one stage
        return model.nominal_params * stored_bytes(kinds.dense, convention) * fullest / layout.tp
    layers = [layer_bytes(group, kinds, layout, redundant, convention) for group in model.groups]
    total = fullest_stage(model, layers, layout.pp)
    for group in model.mtp if mtp else ():
        total = total + group.count * layer_bytes(group, kinds, layout, redundant, convention)
    extra = model.mtp_extra_params if mtp else 0
    tables = 0 if convention.nominal_bytes else model.table_params
    vision = (model.vision_params or 0) * plain / np.minimum(layout.tp, model.vision_shards)
    return total + end_bytes(model, plain, layout) + vision + (model.final_params + extra + tables) * plain


def end_bytes(model: ModelSpec, plain: float, layout: Layout) -> Column:
    """Bytes of embedding and head on one rank: both on a lone stage, the larger one otherwise."""
    both = model.embed_params + model.head_params
    largest = max(model.embed_params, model.head_params)
    return np.where(layout.pp > 1, largest, both) * plain / layout.tp
