"""Cache bytes: each kind of cached tensor has bytes a token and *shard units*; a rank holds Σ bytes / min(tp, units).

Heads that cannot be divided further are replicated, so tensor parallelism beyond the KV heads saves nothing, and the
latent of MLA (one unit) is never divided by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.formula import formula
from planner.specs.model import GroupedAttention, LatentAttention, LayerGroup, LinearAttention, ModelSpec
from planner.specs.precision import Precision
from planner.work import Column

UNBOUNDED = float("inf")


@dataclass(frozen=True)
class CacheComponent:
    """One kind of cached tensor, over all layers that hold it.

    Attributes:
        name: what it is (`keys and values`, `latent`, `index keys`, `state`).
        layers: layers that hold it.
        token_bytes: bytes a token and layer (0 for a fixed state) [B].
        fixed_bytes: bytes a sequence and layer, whatever its length [B].
        shards: ways tensor parallelism divides it.
        window: tokens kept at most; inf = all.
    """

    name: str
    layers: int
    token_bytes: float
    fixed_bytes: float
    shards: int
    window: float


def cache_components(
    model: ModelSpec, precision: Precision, index_key_bytes: float, *, mtp: bool = False
) -> tuple[CacheComponent, ...]:
    """What each layer of a model caches, equal layers together.

    Args:
        model: the model.
        precision: precision of keys, values and latents (states and index keys have their own).
        index_key_bytes: bytes of one element of a sparse-index key, scales included [B].
        mtp: whether the multi-token-prediction layers are loaded and cache too.
    """
    groups = model.groups + (model.mtp if mtp else ())
    found = [part for group in groups for part in _components(group, precision, index_key_bytes)]
    return _merged(found)


def _components(group: LayerGroup, precision: Precision, index_key_bytes: float) -> list[CacheComponent]:
    """Cache components of one layer group."""
    match group.attention:
        case GroupedAttention() as gqa:
            width = gqa.kv_heads * (gqa.head_dim + gqa.v_head_dim) * precision.bytes
            window = UNBOUNDED if gqa.window is None else float(gqa.window)
            return [CacheComponent("keys and values", group.count, width, 0.0, gqa.kv_heads, window)]
        case LatentAttention() as mla:
            latent = CacheComponent("latent", group.count, latent_bytes(mla, precision), 0.0, 1, UNBOUNDED)
            if mla.index is None or mla.index.heads == 0:
                return [latent]
            keys = mla.index.dim * index_key_bytes
            return [latent, CacheComponent("index keys", group.count, keys, 0.0, 1, UNBOUNDED)]
        case LinearAttention() as state:
            fixed = state.state_elements * state.state_bytes + state.conv_elements * 2.0
            return [CacheComponent("recurrent state", group.count, 0.0, fixed, state.state_shards, UNBOUNDED)]
        case _:
            return []


def latent_bytes(mla: LatentAttention, precision: Precision) -> float:
    """Bytes of one token's latent in one layer.

    Sparse-attention kernels keep an FP8 latent with a float32 scale per 128 elements and the rotary part in BF16
    (656 B for 512 + 64 elements, as engines print); other kernels store both parts in the cache precision.
    """
    if mla.index is not None and precision.bytes == 1.0:
        return mla.kv_lora_rank * (1.0 + 4.0 / 128.0) + mla.rope_dim * 2.0
    return (mla.kv_lora_rank + mla.rope_dim) * precision.bytes


def _merged(parts: list[CacheComponent]) -> tuple[CacheComponent, ...]:
    """Components that differ only in the number of layers, added up."""
    layers: dict[CacheComponent, int] = {}
    for part in parts:
        key = CacheComponent(part.name, 0, part.token_bytes, part.fixed_bytes, part.shards, part.window)
        layers[key] = layers.get(key, 0) + part.layers
    return tuple(
        CacheComponent(k.name, count, k.token_bytes, k.fixed_bytes, k.shards, k.window) for k, count in layers.items()
    )


@dataclass(frozen=True)
class Allocation:
    """How an engine hands out cache: in blocks, and for sliding windows with room for the tokens of one step.

    Attributes:
        block: tokens a block (1 = no rounding).
        slack: tokens that a sliding layer keeps beyond its window while a prompt is being read in.
        padded: whether layers of several kinds are padded to groups of the smallest kind (vLLM's hybrid allocator).
    """

    block: int
    slack: float
    padded: bool


EXACT = Allocation(1, 0.0, False)


def allocated(parts: tuple[CacheComponent, ...], allocation: Allocation) -> tuple[CacheComponent, ...]:
    """Components as the engine allocates them: layer counts padded to whole groups where it does so."""
    kinds = {part.layers for part in parts}
    if not allocation.padded or len(kinds) < 2 or any(part.name == "index keys" for part in parts):
        return parts
    group = min(kinds)
    return tuple(
        CacheComponent(
            part.name, -(-part.layers // group) * group, part.token_bytes, part.fixed_bytes, part.shards, part.window
        )
        for part in parts
    )


@formula("definition; sliding layers keep min(window − 1 + step tokens, length), vLLM hybrid allocator", "tokens")
def kept_tokens(tokens: Column, window: float, slack: float, block: Column) -> Column:
    """Cached tokens of one sequence in one layer, rounded up to whole blocks."""
    windowed = window + slack  # [tokens]
    kept = np.minimum(tokens, windowed)  # [tokens]
    margin = np.where((tokens > windowed) & (slack > 0.0), block, 0)  # [tokens]
    blocks = np.ceil(kept / block)  # [blocks]
    return np.asarray(blocks * block + margin)  # [tokens]


@formula("GQA: heads divide by TP up to the KV heads, then replicate; MLA: the latent never divides", "B")
def component_bytes(
    layers: Column, token_bytes: float, fixed_bytes: Column, shards: int, tp: Column, cut: Column, kept: Column
) -> Column:
    """Bytes that one rank holds of one cache component of one sequence, its context cut `cut` ways along its length."""
    ways = np.minimum(tp, shards)  # [1]
    sequence_bytes = token_bytes * kept / cut + fixed_bytes  # [B]
    return layers * sequence_bytes / ways  # [B]


@formula("vLLM hybrid allocator: attention blocks grow until their page is at least the recurrent state's", "tokens")
def page_tokens(state_bytes: Column, token_bytes: Column, block: int) -> Column:
    """Tokens in one block of attention cache beside layers with a recurrent state."""
    needed = state_bytes / token_bytes  # [tokens]
    blocks = np.ceil(needed / block)  # [blocks]
    return np.maximum(blocks, 1.0) * block  # [tokens]


def sequence_bytes(
    parts: tuple[CacheComponent, ...], tokens: Column, tp: Column, pp: Column, cut: Column, allocation: Allocation
) -> Column:
    """Cache bytes of one sequence of a length on the rank that holds most of it.

    Args:
        parts: cache components of the model.
        tokens: sequence length [tokens], any shape that broadcasts with `tp`.
        tp, pp: layout columns; the largest pipeline stage holds ceil(layers / pp) of each kind.
        cut: ways that context parallelism (dcp · cp) cuts a sequence along its length.
        allocation: the engine's block and window rules.
    """
    total = np.zeros(np.broadcast_shapes(np.shape(tokens), np.shape(tp), np.shape(pp)))
    block, page = _pages(parts, tp, allocation)
    for part in allocated(parts, allocation):
        kept = kept_tokens(tokens, part.window, allocation.slack if np.isfinite(part.window) else 0.0, block)
        own = np.full(np.shape(tp), part.fixed_bytes)
        fixed = own if page is None or part.token_bytes else page * np.minimum(tp, part.shards)
        layers = np.ceil(part.layers / pp)
        total = total + component_bytes(layers, part.token_bytes, fixed, part.shards, tp, cut, kept)
    return total


def _pages(parts: tuple[CacheComponent, ...], tp: Column, allocation: Allocation) -> tuple[Column, Column | None]:
    """Tokens in a block, and the bytes of the page that a recurrent state takes (None where it takes what it is)."""
    block = np.full(np.shape(tp), float(allocation.block))
    states = [part.fixed_bytes / np.minimum(tp, part.shards) for part in parts if part.fixed_bytes]
    widths = [part.token_bytes / np.minimum(tp, part.shards) for part in parts if part.token_bytes]
    if not allocation.padded or not states or not widths:
        return block, None
    width = np.maximum.reduce(widths)
    block = page_tokens(np.maximum.reduce(states), width, allocation.block)
    return block, block * width


def state_bytes(parts: tuple[CacheComponent, ...], tp: Column, pp: Column) -> Column:
    """Bytes of one sequence's recurrent states on the rank that holds most of them; zeros without any [B]."""
    total = np.zeros(np.broadcast_shapes(np.shape(tp), np.shape(pp)))
    for part in parts:
        total = total + np.ceil(part.layers / pp) * part.fixed_bytes / np.minimum(tp, part.shards)
    return total


def bytes_per_token(parts: tuple[CacheComponent, ...], tp: Column, pp: Column) -> Column:
    """Cache bytes that one more token costs one rank while no window is full [B]; fixed states are not in it."""
    one, zero = np.ones(1), sequence_bytes(parts, np.zeros(1), tp, pp, np.ones(1), EXACT)
    return sequence_bytes(parts, one, tp, pp, np.ones(1), EXACT) - zero
