"""Work of attention: what decoding sequences read of their caches, and what prompts compute."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.physics.kv import latent_bytes
from planner.specs.model import Attention, GroupedAttention, LatentAttention, LinearAttention
from planner.specs.precision import Precision
from planner.specs.profile import Conventions
from planner.work import ONE, ZERO, Column, Entry, Work

EVERYTHING = float("inf")


@formula("definition: a rank computes ceil(heads / tp) query heads", "FLOP")
def decode_flops(rows: Column, heads: int, tp: Column, qk_width: float, v_width: float, read: Column) -> Column:
    """Operations of decode attention in one layer: scores and weighted sum over the tokens read."""
    local_heads = np.ceil(heads / tp)  # [heads]
    per_token = 2.0 * local_heads * (qk_width + v_width)  # [FLOP]
    return rows * per_token * read  # [FLOP]


@formula("definition: every cached byte of the tokens read, once a sequence", "B")
def decode_traffic(sequences: Column, token_bytes: float, shards: int, tp: Column, read: Column) -> Column:
    """Cache bytes that one rank reads in one layer for all its decoding sequences."""
    ways = np.minimum(tp, shards)  # [1]
    return sequences * read * token_bytes / ways  # [B]


@formula("sum over prompt positions of min(position, limit), by the integral A(x) of min(x, limit)", "tokens^2")
def attended_pairs(tokens: Column, behind: Column, limit: float, causal: bool) -> Column:
    """Query-key pairs that `tokens` new prompt tokens with `behind` tokens before them attend to.

    `limit` is the window or top-k (inf = none). Without `causal` the masked half is computed too (textbook).
    """
    end = behind + tokens  # [tokens]
    capped_end = np.minimum(end, limit)  # [tokens]
    capped_start = np.minimum(behind, limit)  # [tokens]
    area_end = capped_end**2 / 2.0 + capped_end * (end - capped_end)  # [tokens^2]
    area_start = capped_start**2 / 2.0 + capped_start * (behind - capped_start)  # [tokens^2]
    rectangle = tokens * end  # [tokens^2]
    return np.where(causal, area_end - area_start, rectangle)  # [tokens^2]


@formula("definition: scores and weighted sum, two operations a pair and element", "FLOP")
def prefill_flops(pairs: Column, heads: int, tp: Column, qk_width: float, v_width: float) -> Column:
    """Operations of prefill attention in one layer."""
    local_heads = np.ceil(heads / tp)  # [heads]
    return 2.0 * local_heads * (qk_width + v_width) * pairs  # [FLOP]


@formula("definition: the cache of the whole prompt is read once; what is written was counted as matrices' output", "B")
def prefill_traffic(tokens: Column, behind: Column, token_bytes: float, shards: int, tp: Column) -> Column:
    """Cache bytes that prefill attention moves in one layer."""
    ways = np.minimum(tp, shards)  # [1]
    return (tokens + behind) * token_bytes / ways  # [B]


@formula("state read and written once a sequence and step", "B")
def state_traffic(sequences: Column, state_bytes: float, shards: int, tp: Column) -> Column:
    """Bytes that the recurrent update moves in one layer."""
    ways = np.minimum(tp, shards)  # [1]
    return 2.0 * sequences * state_bytes / ways  # [B]


def decode(
    attention: Attention | None,
    cache: Precision,
    sequences: Column,
    new_tokens: Column,
    context: Column,
    tp: Column,
    dcp: Column,
    count: int,
    convention: Conventions,
) -> list[Entry]:
    """Entries of the attention core for decoding sequences, `count` layers.

    Args:
        attention: the block; None has no core.
        cache: cache precision.
        sequences: decoding sequences on this attention rank; `new_tokens` queries each.
        context: mean tokens behind each sequence.
        tp, dcp: layout columns.
        count: layers.
        convention: counting convention.
    """
    match attention:
        case GroupedAttention() as gqa:
            return [_grouped_decode(gqa, cache, sequences, new_tokens, context, tp, dcp, count)]
        case LatentAttention() as mla:
            return _latent_decode(mla, cache, sequences, new_tokens, context, tp, dcp, count, convention)
        case LinearAttention() as state:
            return [Entry("state update", "kv", _state(state, sequences, sequences * new_tokens, tp, count))]
        case _:
            return []


def _grouped_decode(
    gqa: GroupedAttention,
    cache: Precision,
    sequences: Column,
    new_tokens: Column,
    context: Column,
    tp: Column,
    dcp: Column,
    count: int,
) -> Entry:
    """Decode attention over keys and values of grouped heads."""
    read = np.minimum(context, EVERYTHING if gqa.window is None else gqa.window) / dcp
    width = gqa.kv_heads * (gqa.head_dim + gqa.v_head_dim) * cache.bytes
    flops = decode_flops(sequences * new_tokens, gqa.heads, tp, gqa.head_dim, gqa.v_head_dim, read)
    moved = decode_traffic(sequences, width, gqa.kv_heads, tp, read)
    name = "attention" if gqa.window is None else "attention (window)"
    return Entry(name, "kv", Work("attn_decode", cache.id, flops, moved, count * ONE, ZERO, ONE, ZERO))


def _latent_decode(
    mla: LatentAttention,
    cache: Precision,
    sequences: Column,
    new_tokens: Column,
    context: Column,
    tp: Column,
    dcp: Column,
    count: int,
    convention: Conventions,
) -> list[Entry]:
    """Absorbed decode attention over the latent; with a sparse index it reads top-k tokens and scans the index."""
    limit = EVERYTHING if mla.index is None else mla.index.top_k
    read = np.minimum(context, limit) / dcp
    width = latent_bytes(mla, cache)
    rows = sequences * new_tokens
    flops = decode_flops(rows, mla.heads, tp, mla.kv_lora_rank + mla.rope_dim, mla.kv_lora_rank, read)
    moved = decode_traffic(sequences, width, 1, tp, read)
    core = Entry("attention", "kv", Work("mla_decode", cache.id, flops, moved, count * ONE, ZERO, ONE, ZERO))
    if mla.index is None or mla.index.heads == 0:
        return [core]
    keys = mla.index.dim * convention.index_key_bytes
    scan_flops = decode_flops(rows, mla.index.heads, ONE, mla.index.dim, 0.0, context / dcp)
    scanned = decode_traffic(sequences, keys, 1, tp, context / dcp)
    scan = Work("index", "fp8", scan_flops, scanned, count * ONE, ZERO, ONE, ZERO)
    return [core, Entry("index scan", "kv", scan)]


def _state(state: LinearAttention, sequences: Column, tokens: Column, tp: Column, count: int) -> Work:
    """The recurrent update of `tokens` tokens over `sequences` sequences."""
    held = state.state_elements * state.state_bytes + state.conv_elements * 2.0
    flops = decode_flops(tokens, state.state_shards, tp, 1.0, 1.0, state.state_elements / state.state_shards * ONE)
    return Work(
        "state", "bf16", flops, state_traffic(sequences, held, state.state_shards, tp), count * ONE, ZERO, ONE, ZERO
    )


def prefill(
    attention: Attention | None,
    cache: Precision,
    tokens: Column,
    behind: Column,
    tp: Column,
    count: int,
    convention: Conventions,
) -> list[Entry]:
    """Entries of the attention core for `tokens` prompt tokens with `behind` tokens cached before them."""
    match attention:
        case GroupedAttention() as gqa:
            limit = EVERYTHING if gqa.window is None else float(gqa.window)
            pairs = attended_pairs(tokens, behind, limit, convention.causal)
            width = gqa.kv_heads * (gqa.head_dim + gqa.v_head_dim) * cache.bytes
            flops = prefill_flops(pairs, gqa.heads, tp, gqa.head_dim, gqa.v_head_dim)
            moved = prefill_traffic(tokens, behind, width, gqa.kv_heads, tp)
            work = Work("attn_prefill", cache.id, flops, moved, count * ONE, ZERO, ONE, tokens + behind)
            return [Entry("prefill attention", "prefill", work)]
        case LatentAttention() as mla:
            return _latent_prefill(mla, cache, tokens, behind, tp, count, convention)
        case LinearAttention() as state:
            work = _state(state, np.minimum(tokens, 1.0), tokens, tp, count)
            return [Entry("prefill state", "prefill", work)]
        case _:
            return []


def _latent_prefill(
    mla: LatentAttention,
    cache: Precision,
    tokens: Column,
    behind: Column,
    tp: Column,
    count: int,
    convention: Conventions,
) -> list[Entry]:
    """Prefill attention with the latent expanded to heads; a sparse index limits the pairs and scans all of them."""
    limit = EVERYTHING if mla.index is None else float(mla.index.top_k)
    pairs = attended_pairs(tokens, behind, limit, convention.causal)
    flops = prefill_flops(pairs, mla.heads, tp, mla.nope_dim + mla.rope_dim, mla.v_head_dim)
    width = latent_bytes(mla, cache)
    moved = prefill_traffic(tokens, behind, width, 1, tp)
    work = Work("mla_prefill", cache.id, flops, moved, count * ONE, ZERO, ONE, tokens + behind)
    core = Entry("prefill attention", "prefill", work)
    if mla.index is None or mla.index.heads == 0:
        return [core]
    every = attended_pairs(tokens, behind, EVERYTHING, convention.causal)
    scan_flops = prefill_flops(every, mla.index.heads, ONE, mla.index.dim, 0.0)
    scanned = prefill_traffic(tokens, behind, mla.index.dim * convention.index_key_bytes, 1, tp)
    scan = Work("index", "fp8", scan_flops, scanned, count * ONE, ZERO, ONE, ZERO)
    return [core, Entry("prefill index scan", "prefill", scan)]
