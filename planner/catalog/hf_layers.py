"""Which kind of attention and of feed-forward block each layer has.

Attention kinds: `full`, `window`, `chunk`, `linear` (gated delta net), `kda`, `mamba`, `lightning`, `shared` (sparse, reading
its neighbour's choice of tokens), `none`. Feed-forward kinds: `dense`, `moe`, `none`.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.catalog.hf_fields import LAYERS
from planner.catalog.hf_kda import kda_plan
from planner.catalog.hf_shape import Shape

Plan = tuple[str, ...]

LAYER_TYPES = {
    "full_attention": "full",
    "attention": "full",
    "deepseek_sparse_attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "chunk",
    "linear_attention": "linear",
}
BLOCK_ATTENTION = {"mamba": "mamba", "attention": "full", "moe": "none", "mlp": "none"}
BLOCK_FFN = {"mamba": "none", "attention": "none", "moe": "moe", "mlp": "dense"}

FIVE_IN_SIX = 6
"""Gemma 3: every sixth layer is full when no field says."""


def attention_plan(shape: Shape) -> Plan:
    """Attention kind of each layer.

    Raises:
        ModelConfigError: the statements are missing, malformed or contradictory.
    """
    if shape.blocks:
        shape.fields.skip("sliding_window")
        return tuple(BLOCK_ATTENTION[block] for block in shape.blocks)
    stated = _stated_types(shape) or _lightning(shape) or _linear_interval(shape) or kda_plan(shape)
    return _with_shared_index(shape, stated or _windowed(shape))


def _plan(shape: Shape, is_first: Callable[[int], bool], first: str, second: str) -> Plan:
    return tuple(first if is_first(layer) else second for layer in range(shape.layers))


def _check_length(shape: Shape, key: str, length: int) -> None:
    if length != shape.layers:
        raise shape.fields.refuse(key, f"has {length} entries for {shape.layers} layers")


def _stated_types(shape: Shape) -> Plan:
    types = shape.fields.strings("layer_types", most=LAYERS)
    if not types:
        return ()
    _check_length(shape, "layer_types", len(types))
    if any(kind not in LAYER_TYPES for kind in types):
        raise shape.fields.refuse("layer_types", f"may hold only {', '.join(LAYER_TYPES)}")
    plan = tuple(LAYER_TYPES[kind] for kind in types)
    interval = _linear_interval(shape)
    if interval and interval != plan:
        raise shape.fields.refuse("full_attention_interval", "disagrees with layer_types")
    shape.fields.skip("sliding_window_pattern", "_sliding_window_pattern", "max_window_layers", "no_rope_layers")
    if not shape.fields.boolean("use_sliding_window", True) and "window" in plan:
        raise shape.fields.refuse("use_sliding_window", "disagrees with layer_types")
    return plan


def _lightning(shape: Shape) -> Plan:
    marks = shape.fields.integers("attn_type_list")
    if not marks:
        return ()
    _check_length(shape, "attn_type_list", len(marks))
    if 0 not in marks:
        return ()
    return _plan(shape, lambda layer: bool(marks[layer]), "full", "lightning")


def _linear_interval(shape: Shape) -> Plan:
    interval = shape.fields.optional_integer("full_attention_interval", high=LAYERS)
    if not interval:
        return ()
    return _plan(shape, lambda layer: (layer + 1) % interval == 0, "full", "linear")


def sliding_window(shape: Shape) -> int | None:
    """Tokens that a sliding layer sees, if stated; Gemma 2 files state it under two names."""
    return shape.fields.synonym(("sliding_window", "sliding_window_size"), low=1, high=10**9)


def _windowed(shape: Shape) -> Plan:
    chunked = _chunked(shape)
    if chunked:
        return chunked
    fields, window = shape.fields, sliding_window(shape)
    used = fields.boolean("use_sliding_window", True)
    first = fields.optional_integer("max_window_layers", high=LAYERS)
    pattern = fields.synonym(("sliding_window_pattern", "_sliding_window_pattern"), high=LAYERS)
    if not window or not used:
        return ("full",) * shape.layers
    if shape.max_len is not None and window >= shape.max_len:
        shape.assume(f"sliding_window {window} is no shorter than the longest position, so it never applies")
        return ("full",) * shape.layers
    if first is not None and fields.has("use_sliding_window"):
        return _plan(shape, lambda layer: layer >= first, "window", "full")
    return _by_convention(shape, pattern)


def _by_convention(shape: Shape, pattern: int | None) -> Plan:
    rule = "pattern" if pattern else shape.convention.windows
    every = pattern or FIVE_IN_SIX
    match rule:
        case "pattern":
            return _plan(shape, lambda layer: (layer + 1) % every == 0, "full", "window")
        case "even":
            return _plan(shape, lambda layer: layer % 2 == 0, "window", "full")
        case "all":
            return ("window",) * shape.layers
    raise shape.fields.refuse("sliding_window", "nothing says which layers it applies to")


def _chunked(shape: Shape) -> Plan:
    fields, period = shape.fields, shape.convention.chunk_period
    if not fields.optional_integer("attention_chunk_size"):
        return ()
    rope = fields.integers("no_rope_layers")
    period = fields.optional_integer("no_rope_layer_interval", high=LAYERS) or period
    if rope:
        _check_length(shape, "no_rope_layers", len(rope))
        return _plan(shape, lambda layer: rope[layer] == 1, "chunk", "full")
    if not period:
        raise fields.refuse("attention_chunk_size", "nothing says which layers it applies to")
    return _plan(shape, lambda layer: (layer + 1) % period == 0, "full", "chunk")


def _with_shared_index(shape: Shape, plan: Plan) -> Plan:
    fields = shape.fields
    types = fields.strings("indexer_types", most=LAYERS)
    freq = fields.optional_integer("index_topk_freq", high=LAYERS)
    offset = fields.optional_integer("index_skip_topk_offset", high=LAYERS) or 2
    if not fields.optional_integer("index_topk"):
        return plan
    if types:
        _check_length(shape, "indexer_types", len(types))
        if any(kind not in ("full", "shared") for kind in types):
            raise fields.refuse("indexer_types", "may hold only full and shared")
        return tuple("shared" if kind == "shared" else base for kind, base in zip(types, plan, strict=True))
    if not freq:
        return plan
    return _plan(shape, lambda layer: max(layer - offset + 1, 0) % freq == 0, "full", "shared")


def ffn_plan(shape: Shape) -> Plan:
    """Feed-forward kind of each layer.

    Raises:
        ModelConfigError: the statements are malformed or contradictory.
    """
    if shape.blocks:
        return tuple(BLOCK_FFN[block] for block in shape.blocks)
    statements = [statement for read in STATEMENTS if (statement := read(shape)) is not None]
    if not shape.experts:
        return ("dense",) * shape.layers
    for key, plan in statements[1:]:
        if plan != statements[0][1]:
            raise shape.fields.refuse(key, f"disagrees with {statements[0][0]} on which layers have experts")
    return statements[0][1] if statements else ("moe",) * shape.layers


Statement = tuple[str, Plan]


def _dense_prefix(shape: Shape) -> Statement | None:
    fields = shape.fields
    first = fields.optional_integer("first_k_dense_replace", high=LAYERS)
    stated = fields.get("moe_layer_freq")
    freq = 1 if isinstance(stated, list) else fields.integer("moe_layer_freq", default=1, high=LAYERS)
    if first is None and (stated is None or isinstance(stated, list)):
        return None
    start = first or 0
    return "first_k_dense_replace", _plan(shape, lambda i: i >= start and i % freq == 0, "moe", "dense")


def _marks(shape: Shape) -> Statement | None:
    if not isinstance(shape.fields.get("moe_layer_freq"), list):
        return None
    marks = shape.fields.integers("moe_layer_freq") or ()
    _check_length(shape, "moe_layer_freq", len(marks))
    return "moe_layer_freq", _plan(shape, lambda layer: bool(marks[layer]), "moe", "dense")


def _sparse_step(shape: Shape) -> Statement | None:
    only = shape.fields.integers("mlp_only_layers")
    step = shape.fields.optional_integer("decoder_sparse_step", low=1, high=LAYERS)
    if only is None and step is None:
        return None
    dense, every = only or (), step or 1
    return "decoder_sparse_step", _plan(shape, lambda i: i not in dense and (i + 1) % every == 0, "moe", "dense")


def _named(shape: Shape) -> Statement | None:
    types = shape.fields.strings("mlp_layer_types", most=LAYERS)
    if not types:
        return None
    _check_length(shape, "mlp_layer_types", len(types))
    if any(kind not in ("dense", "sparse") for kind in types):
        raise shape.fields.refuse("mlp_layer_types", "may hold only dense and sparse")
    return "mlp_layer_types", _plan(shape, lambda layer: types[layer] == "sparse", "moe", "dense")


def _interleaved(shape: Shape) -> Statement | None:
    step = shape.fields.optional_integer("interleave_moe_layer_step", low=1, high=LAYERS)
    if step is None:
        return None
    return "interleave_moe_layer_step", _plan(shape, lambda i: (i + 1) % step == 0, "moe", "dense")


def _listed(shape: Shape) -> Statement | None:
    layers = shape.fields.integers("moe_layers")
    return None if layers is None else ("moe_layers", _plan(shape, lambda i: i in layers, "moe", "dense"))


def _ranged(shape: Shape) -> Statement | None:
    fields = shape.fields
    first = fields.optional_integer("moe_layer_start_index", high=LAYERS)
    last = fields.optional_integer("moe_layer_end_index", low=-1, high=LAYERS)
    every = fields.integer("moe_layer_interval", default=1, high=LAYERS)
    if first is None:
        return None
    end = shape.layers - 1 if last in (None, -1) else last or 0
    return "moe_layer_start_index", _plan(shape, lambda i: first <= i <= end and (i + 1) % every == 0, "moe", "dense")


def is_layer_word(word: str) -> bool:
    """Whether the word spells a layer's number."""
    return word.isascii() and word.isdecimal() and len(word) <= len(str(LAYERS))


def _enumerated(shape: Shape) -> Statement | None:
    text = shape.fields.text("moe_layers_enum")
    if not text:
        return None
    numbers = text.split(",")
    if len(numbers) > LAYERS or not all(is_layer_word(number.strip()) for number in numbers):
        raise shape.fields.refuse("moe_layers_enum", "must be layer numbers separated by commas")
    layers = {int(number) for number in numbers}
    return "moe_layers_enum", _plan(shape, lambda layer: layer in layers, "moe", "dense")


STATEMENTS = (_dense_prefix, _marks, _sparse_step, _named, _interleaved, _listed, _ranged, _enumerated)
