"""Attention blocks of a layer, from a configuration's fields."""

from __future__ import annotations

from planner.catalog.hf_kda import kda
from planner.catalog.hf_layers import sliding_window
from planner.catalog.hf_shape import HEAD_DIM, HEADS, KV_HEADS, MOST_HEADS, Shape
from planner.specs.model import (
    UNSPLIT,
    Attention,
    GroupedAttention,
    LatentAttention,
    Linear,
    LinearAttention,
    SparseIndex,
)

STATE_BYTES = {"": 4, "auto": 4, "float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a recurrent state element; float32 unless the configuration says otherwise."""


def attention(shape: Shape, kind: str) -> Attention | None:
    """The attention block of a layer of this kind.

    Raises:
        ModelConfigError: a size is missing, out of range or contradictory.
    """
    match kind:
        case "none":
            return None
        case "linear":
            return delta_net(shape)
        case "kda":
            return kda(shape)
        case "mamba":
            return mamba(shape)
        case "lightning":
            return lightning(shape)
    if shape.fields.optional_integer("kv_lora_rank"):
        return latent(shape, shared=kind == "shared")
    return grouped(shape, _window(shape, kind))


def _window(shape: Shape, kind: str) -> int | None:
    fields = shape.fields
    if fields.optional_integer("index_topk"):
        raise fields.refuse("index_topk", "a token index is supported only with multi-head latent attention")
    window = sliding_window(shape)
    chunk = fields.optional_integer("attention_chunk_size", high=10**9)
    if kind == "full":
        return None
    size = window if kind == "window" else chunk
    if not size:
        key = "sliding_window" if kind == "window" else "attention_chunk_size"
        raise fields.refuse(key, "is required, since layers have a window")
    return size


def heads(shape: Shape) -> tuple[int, int, int]:
    """Query heads, key-value heads and the width of a head (elements)."""
    fields = shape.fields
    count = fields.synonym(HEADS, low=1, high=MOST_HEADS)
    if count is None:
        raise fields.refuse("num_attention_heads", "is required and missing")
    width = fields.synonym(HEAD_DIM, low=1, high=10**5)
    if width is None:
        if shape.hidden % count:
            raise fields.refuse("num_attention_heads", f"does not divide hidden_size = {shape.hidden}, and no head_dim")
        width = shape.hidden // count
        shape.assume(f"head_dim is not stated: hidden_size / num_attention_heads = {width}")
    shared = _kv_heads(shape, count)
    if count % shared:
        raise fields.refuse("num_key_value_heads", f"{shared} does not divide num_attention_heads = {count}")
    return count, shared, width


def _kv_heads(shape: Shape, count: int) -> int:
    fields = shape.fields
    stated = fields.synonym(KV_HEADS, low=1, high=MOST_HEADS)
    if fields.boolean("multi_query", False) and not fields.boolean("new_decoder_architecture", False):
        return 1
    if stated is None:
        shape.assume("num_key_value_heads is not stated: as many as attention heads")
    return stated or count


def grouped(shape: Shape, window: int | None) -> GroupedAttention:
    """Multi-head and grouped-query attention."""
    count, shared, width = heads(shape)
    fields = shape.fields
    value = fields.integer("v_head_dim", default=width, high=10**5)
    gates = 2 if fields.boolean("attn_output_gate", shape.convention.output_gate) else 1
    low_rank = fields.optional_integer("share_q_dim", high=10**6)
    queries = count * width * gates
    return GroupedAttention(
        heads=count,
        kv_heads=shared,
        head_dim=width,
        v_head_dim=value,
        linears=(
            *_query_linears(shape, queries, low_rank, count),
            Linear("k_proj", "qkv", shape.hidden, shared * width, shared),
            Linear("v_proj", "qkv", shape.hidden, shared * value, shared),
            Linear("o_proj", "o", count * value, shape.hidden, count),
        ),
        window=window,
        extra_params=_grouped_extras(shape, queries, shared, width, value) + (low_rank or 0),
    )


def _query_linears(shape: Shape, queries: int, low_rank: int | None, count: int) -> tuple[Linear, ...]:
    if not low_rank:
        return (Linear("q_proj", "qkv", shape.hidden, queries, count),)
    down = Linear("q_proj", "qkv", shape.hidden, low_rank, UNSPLIT)
    return down, Linear("wq", "q_b", low_rank, queries, count)


def _grouped_extras(shape: Shape, queries: int, shared: int, width: int, value: int) -> int:
    """Biases, query and key norms and sinks."""
    fields, convention = shape.fields, shape.convention
    count = fields.synonym(HEADS) or 1
    stated = fields.boolean("attention_bias", False)
    on_inputs = stated or fields.boolean("qkv_bias", convention.qkv_bias or shape.all_bias)
    on_output = fields.boolean("attention_out_bias", shape.all_bias or (stated and convention.bias_on_output))
    biases = on_inputs * (queries + shared * (width + value)) + on_output * shape.hidden
    return biases + _norm_width(shape, count, shared, width) + convention.sinks * count


def _norm_width(shape: Shape, count: int, shared: int, width: int) -> int:
    fields, convention = shape.fields, shape.convention
    kind = {"per_layer": "full", "per_head": "head"}.get(fields.text("qk_norm_type"), convention.qk_norm)
    used = fields.boolean("use_qk_norm", convention.qk_norm_on)
    if used and kind == "none" and fields.has("use_qk_norm") and not convention.chunk_period:
        shape.assume("use_qk_norm without qk_norm_type: assumed one norm vector of a head's width each")
        kind = "head"
    return used * {"none": 0, "head": 2 * width, "full": (count + shared) * width}[kind]


def latent(shape: Shape, shared: bool) -> LatentAttention:
    """Multi-head latent attention, with its token index if there is one."""
    fields = shape.fields
    fields.skip("num_key_value_heads", "head_dim")
    count = fields.integer("num_attention_heads", high=MOST_HEADS)
    query_rank = fields.optional_integer("q_lora_rank") or 0
    rank, rope = fields.integer("kv_lora_rank"), fields.integer("qk_rope_head_dim", high=10**5)
    nope, value = fields.integer("qk_nope_head_dim", high=10**5), fields.integer("v_head_dim", high=10**5)
    if fields.integer("qk_head_dim", default=nope + rope) != nope + rope:
        raise fields.refuse("qk_head_dim", f"is not qk_nope_head_dim + qk_rope_head_dim = {nope + rope}")
    index, index_linears, index_norm = _index(shape, query_rank, shared)
    biases = fields.boolean("attention_bias", False) * (query_rank + rank + rope + shape.hidden)
    return LatentAttention(
        heads=count,
        q_lora_rank=query_rank,
        kv_lora_rank=rank,
        rope_dim=rope,
        nope_dim=nope,
        v_head_dim=value,
        linears=(
            *_latent_queries(shape, query_rank, count * (nope + rope), count),
            Linear("kv_a_proj_with_mqa", "qkv_a", shape.hidden, rank + rope, UNSPLIT),
            Linear("kv_b_proj", "kv_b", rank, count * (nope + value), count),
            Linear("o_proj", "o", count * value, shape.hidden, count),
            *index_linears,
        ),
        index=index,
        extra_params=query_rank + rank + index_norm + biases,
    )


def _latent_queries(shape: Shape, rank: int, queries: int, count: int) -> tuple[Linear, ...]:
    if not rank:
        return (Linear("q_proj", "q", shape.hidden, queries, count),)
    return (
        Linear("q_a_proj", "qkv_a", shape.hidden, rank, UNSPLIT),
        Linear("q_b_proj", "q_b", rank, queries, count),
    )


def _index(shape: Shape, query_rank: int, shared: bool) -> tuple[SparseIndex | None, tuple[Linear, ...], int]:
    """The token index, its matrices, and its norm's parameters."""
    fields = shape.fields
    top_k = fields.optional_integer("index_topk")
    if not top_k:
        return None, (), 0
    if not query_rank:
        raise fields.refuse("q_lora_rank", "is required with index_topk")
    count, width = fields.integer("index_n_heads", high=MOST_HEADS), fields.integer("index_head_dim", high=10**5)
    if shared:
        return SparseIndex(heads=0, dim=width, top_k=top_k), (), 0
    linears = (
        Linear("indexer.wq_b", "index", query_rank, count * width, UNSPLIT, quantised=False),
        Linear("indexer.wk", "index", shape.hidden, width, UNSPLIT, quantised=False),
        Linear("indexer.weights_proj", "index", shape.hidden, count, UNSPLIT, quantised=False),
    )
    return SparseIndex(heads=count, dim=width, top_k=top_k), linears, 2 * width


def _state_bytes(shape: Shape) -> int:
    fields = shape.fields
    key = "mamba_ssm_cache_dtype" if fields.has("mamba_ssm_cache_dtype") else "mamba_ssm_dtype"
    dtype = fields.text(key)
    if dtype not in STATE_BYTES:
        raise fields.refuse(key, f"must be one of {', '.join(name for name in STATE_BYTES if name)}")
    return STATE_BYTES[dtype]


def delta_net(shape: Shape) -> LinearAttention:
    """Gated delta net (Qwen3-Next, Qwen3.5)."""
    fields, hidden = shape.fields, shape.hidden
    key_heads = fields.integer("linear_num_key_heads", high=MOST_HEADS)
    value_heads = fields.integer("linear_num_value_heads", high=MOST_HEADS)
    key_dim, value_dim = (
        fields.integer("linear_key_head_dim", high=10**5),
        fields.integer("linear_value_head_dim", high=10**5),
    )
    kernel = fields.integer("linear_conv_kernel_dim", high=1000)
    keys, values = key_heads * key_dim, value_heads * value_dim
    return LinearAttention(
        state_elements=value_heads * key_dim * value_dim,
        conv_elements=(2 * keys + values) * (kernel - 1),
        state_shards=value_heads,
        state_bytes=_state_bytes(shape),
        linears=(
            Linear("in_proj_qkvz", "in_proj", hidden, 2 * keys + 2 * values, value_heads),
            Linear("in_proj_ba", "in_proj", hidden, 2 * value_heads, value_heads, quantised=False),
            Linear("out_proj", "out_proj", values, hidden, value_heads),
        ),
        extra_params=kernel * (2 * keys + values) + 2 * value_heads + value_dim,
    )


def mamba(shape: Shape) -> LinearAttention:
    """Mamba-2 mixer (Nemotron-H)."""
    fields, hidden = shape.fields, shape.hidden
    count, width = fields.integer("mamba_num_heads", high=MOST_HEADS), fields.integer("mamba_head_dim", high=10**5)
    state = fields.synonym(("ssm_state_size", "mamba_state_dim"), low=1, high=10**5)
    groups = fields.synonym(("n_groups", "mamba_num_groups"), low=1, high=10**4) or 1
    if state is None:
        raise fields.refuse("ssm_state_size", "is required and missing")
    kernel = fields.integer("conv_kernel", high=1000)
    inner = count * width
    conv = inner + 2 * groups * state
    biases = fields.boolean("use_conv_bias", True) * conv + fields.boolean("use_bias", False) * hidden
    return LinearAttention(
        state_elements=count * width * state,
        conv_elements=conv * (kernel - 1),
        state_shards=count,
        state_bytes=_state_bytes(shape),
        linears=(
            Linear("in_proj", "in_proj", hidden, inner + conv + count, count),
            Linear("out_proj", "out_proj", inner, hidden, count),
        ),
        extra_params=conv * kernel + biases + 3 * count + inner,
    )


def lightning(shape: Shape) -> LinearAttention:
    """Lightning attention (MiniMax-M1): one square state a head, no convolution."""
    count, _, width = heads(shape)
    inner = count * width
    return LinearAttention(
        state_elements=count * width * width,
        conv_elements=0,
        state_shards=count,
        state_bytes=_state_bytes(shape),
        linears=(
            Linear("qkv_proj", "in_proj", shape.hidden, 3 * inner, count),
            Linear("output_gate", "in_proj", shape.hidden, inner, count),
            Linear("out_proj", "out_proj", inner, shape.hidden, count),
        ),
        extra_params=inner,
    )
