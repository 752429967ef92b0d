"""Feed-forward blocks of a layer, from a configuration's fields."""

from __future__ import annotations

from planner.catalog.hf_shape import Shape
from planner.specs.model import UNSPLIT, DenseFFN, ExpertFFN, FeedForward, Linear

DENSE_SIZE = ("intermediate_size", "ffn_dim", "ffn_hidden_size")
DENSE_BESIDE_EXPERTS = ("intermediate_size_mlp", "dense_intermediate_size")
TOP_K = ("num_experts_per_tok", "experts_per_token", "moe_k", "moe_topk", "moe_top_k", "num_experts_per_token")
SHARED_COUNT = ("n_shared_experts", "num_shared_expert", "num_shared_experts", "moe_num_shared_experts")
SHARED_WIDTH = ("share_expert_dim", "shared_intermediate_size")

PLAIN_MATRICES, GATED_MATRICES = 2, 3


def feed_forward(shape: Shape, kind: str) -> FeedForward | None:
    """The feed-forward block of a layer of this kind.

    Raises:
        ModelConfigError: a size is missing, out of range or contradictory.
    """
    match kind:
        case "none":
            return None
        case "moe":
            return experts(shape)
    return dense(shape)


def matrices(shape: Shape, hidden: int, width: int) -> tuple[Linear, ...]:
    """Up (and gate) and down projections of one block, split along its inner width."""
    gate = () if shape.plain_ffn else (Linear("gate_proj", "gate_up", hidden, width, width),)
    up = Linear("up_proj", "gate_up", hidden, width, width)
    return *gate, up, Linear("down_proj", "down", width, hidden, width)


def dense(shape: Shape) -> DenseFFN:
    """A block that every token passes."""
    width = _dense_width(shape)
    biased = shape.fields.boolean("mlp_bias", shape.all_bias)
    ups = 1 if shape.plain_ffn else 2
    return DenseFFN(matrices(shape, shape.hidden, width), extra_params=biased * (ups * width + shape.hidden))


def _dense_width(shape: Shape) -> int:
    fields = shape.fields
    stated = fields.synonym(DENSE_SIZE, low=1)
    width = fields.synonym(DENSE_BESIDE_EXPERTS, low=1) or stated if shape.experts else stated
    if width is None and shape.convention.ffn_ratio:
        width = shape.convention.ffn_ratio * shape.hidden
        shape.assume(f"feed-forward width is not stated: {shape.convention.ffn_ratio} x hidden_size")
    if width is None:
        raise fields.refuse("intermediate_size", "is required and missing")
    return width


def experts(shape: Shape) -> ExpertFFN:
    """Routed experts, shared experts, router and the projections around them."""
    fields, hidden, count = shape.fields, shape.hidden, shape.experts
    if not count:
        raise fields.refuse("n_routed_experts", "is required, since layers have experts")
    top_k = fields.synonym(TOP_K, low=1)
    if top_k is None or top_k > count:
        raise fields.refuse("num_experts_per_tok", f"must lie between 1 and the {count} experts")
    width = _expert_width(shape)
    shared, gated = _shared_width(shape, width)
    rank = fields.optional_integer("moe_latent_size") or 0
    gate = (Linear("shared_expert_gate", "shared_gate", hidden, 1, UNSPLIT, quantised=False),) if gated else ()
    around = (
        Linear("fc1_latent_proj", "latent_down", hidden, rank, UNSPLIT),
        Linear("fc2_latent_proj", "latent_up", rank, hidden, UNSPLIT),
    )
    biased, ups = shape.convention.expert_bias, 1 if shape.plain_ffn else 2
    return ExpertFFN(
        count=count,
        top_k=top_k,
        expert=matrices(shape, rank or hidden, width),
        shared=matrices(shape, hidden, shared) if shared else (),
        outer=(Linear("gate", "router", hidden, count, UNSPLIT, quantised=False), *gate, *(around if rank else ())),
        expert_extra_params=biased * (ups * width + (rank or hidden)),
        extra_params=biased * count,
    )


def _expert_width(shape: Shape) -> int:
    fields = shape.fields
    fields.skip(*DENSE_BESIDE_EXPERTS)
    fallback = fields.synonym(DENSE_SIZE, low=1)
    width = fields.uniform("moe_intermediate_size", low=1) or fallback
    if width is None:
        raise fields.refuse("moe_intermediate_size", "is required and missing")
    return width


def _shared_width(shape: Shape, width: int) -> tuple[int, bool]:
    """Width of all shared experts together, and whether a gate weighs them."""
    fields = shape.fields
    count = fields.synonym(SHARED_COUNT, high=1000)
    gated = fields.optional_integer("shared_expert_intermediate_size") or 0
    each = fields.optional_integer("moe_shared_expert_intermediate_size") or 0
    whole = fields.synonym(SHARED_WIDTH) or 0
    by_count = (shape.convention.shared_experts if count is None else count) * width
    widths = [size for size in (gated, each * (1 if count is None else count), whole) if size]
    if len(widths) > 1 or (whole and count is not None and by_count != whole):
        raise fields.refuse("n_shared_experts", "the sizes of the shared experts contradict each other")
    return (widths[0] if widths else 0 if each else by_count), gated > 0
