"""Work of attention: what decoding sequences read of their caches, and what prompts compute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.formula import formula
from planner.physics.kv import latent_bytes
from planner.physics.passes import Pass
from planner.specs.model import Attention, GroupedAttention, LatentAttention, LinearAttention
from planner.specs.precision import Precision
from planner.specs.profile import Conventions
from planner.work import ONE, ZERO, Column, Entry, Work

EVERYTHING = float("inf")


@formula(
    "definition: a rank computes ceil(heads / tp) query heads, and those of its peers that share the context", "FLOP"
)
def decode_flops(
    rows: Column,
    heads: Column | int,
    tp: Column,
    dcp: Column,
    qk_width: Column | float,
    v_width: Column | float,
    read: Column,
) -> Column:
    """Operations of decode attention in one layer: scores and weighted sum over the tokens read.

    Decode context parallelism gathers the queries of `dcp` tensor-parallel ranks, each of which reads its own part of
    the context for all of them.
    """
    local_heads = np.ceil(heads / tp) * dcp  # [heads]
    per_token = 2.0 * local_heads * (qk_width + v_width)  # [FLOP]
    return rows * per_token * read  # [FLOP]


@formula("definition: every cached byte of the tokens read, once a sequence", "B")
def decode_traffic(sequences: Column, token_bytes: Column | float, shards: int, tp: Column, read: Column) -> Column:
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
def prefill_flops(
    pairs: Column, heads: Column | int, tp: Column, qk_width: Column | float, v_width: Column | float
) -> Column:
    """Operations of prefill attention in one layer."""
    local_heads = np.ceil(heads / tp)  # [heads]
    return 2.0 * local_heads * (qk_width + v_width) * pairs  # [FLOP]


@formula("definition: the cache of the whole prompt is read once; what is written was counted as matrices' output", "B")
def prefill_traffic(tokens: Column, behind: Column, token_bytes: Column | float, shards: int, tp: Column) -> Column:
    """Cache bytes that prefill attention moves in one layer."""
    ways = np.minimum(tp, shards)  # [1]
    return (tokens + behind) * token_bytes / ways  # [B]


@formula("state read and written once a sequence and step", "B")
def state_traffic(sequences: Column, state_bytes: float, shards: int, tp: Column) -> Column:
    """Bytes that the recurrent update moves in one layer."""
    ways = np.minimum(tp, shards)  # [1]
    return 2.0 * sequences * state_bytes / ways  # [B]


@dataclass(frozen=True)
class Site:
    """Where an attention core runs, and how it is counted.

    Attributes:
        cache: cache precision.
        tp, dcp, cp: layout columns.
        convention: counting convention.
    """

    cache: Precision
    tp: Column
    dcp: Column
    cp: Column
    convention: Conventions

    @property
    def ways(self) -> Column:
        """Ways that cached context is cut along its length in decode."""
        return self.dcp * self.cp


def decode(attention: Attention | None, site: Site, step: Pass, count: int) -> list[Entry]:
    """Entries of the attention core for the decoding sequences of a pass, `count` layers; None has no core."""
    match attention:
        case GroupedAttention() as gqa:
            return [_grouped_decode(gqa, site, step, count)]
        case LatentAttention() as mla:
            return _latent_decode(mla, site, step, count)
        case LinearAttention() as state:
            rows = step.sequences * step.new_tokens
            return [Entry("state update", "kv", _state(state, step.sequences, rows, site.tp, count))]
        case _:
            return []


def _grouped_decode(gqa: GroupedAttention, site: Site, step: Pass, count: int) -> Entry:
    """Decode attention over keys and values of grouped heads."""
    read = np.minimum(step.context, EVERYTHING if gqa.window is None else gqa.window) / site.ways
    width = gqa.kv_heads * (gqa.head_dim + gqa.v_head_dim) * site.cache.bytes
    flops = decode_flops(
        step.sequences * step.new_tokens, gqa.heads, site.tp, site.dcp, gqa.head_dim, gqa.v_head_dim, read
    )
    moved = decode_traffic(step.sequences, width, gqa.kv_heads, site.tp, read)
    name = "attention" if gqa.window is None else "attention (window)"
    return Entry(name, "kv", Work("attn_decode", site.cache.id, flops, moved, count * ONE, ZERO, ONE, ZERO))


def _latent_decode(mla: LatentAttention, site: Site, step: Pass, count: int) -> list[Entry]:
    """Absorbed decode attention over the latent; with a sparse index it reads top-k tokens and scans the index."""
    limit = EVERYTHING if mla.index is None else mla.index.top_k
    read = np.minimum(step.context, limit) / site.ways
    rows = step.sequences * step.new_tokens
    flops = decode_flops(rows, mla.heads, site.tp, site.dcp, mla.kv_lora_rank + mla.rope_dim, mla.kv_lora_rank, read)
    moved = decode_traffic(step.sequences, latent_bytes(mla, site.cache), 1, site.tp, read)
    core = Entry("attention", "kv", Work("mla_decode", site.cache.id, flops, moved, count * ONE, ZERO, ONE, ZERO))
    if mla.index is None or mla.index.heads == 0:
        return [core]
    behind, keys = step.context / site.ways, mla.index.dim * site.convention.index_key_bytes
    scan_flops = decode_flops(rows, mla.index.heads, ONE, ONE, mla.index.dim, 0.0, behind)
    scanned = decode_traffic(step.sequences, keys, 1, site.tp, behind)
    return [core, Entry("index scan", "kv", _scan(scan_flops, scanned, count))]


def _scan(flops: Column, moved: Column, count: int) -> Work:
    """The scan of index keys, which are FP8."""
    return Work("index", "fp8", flops, moved, count * ONE, ZERO, ONE, ZERO)


def _state(state: LinearAttention, sequences: Column, tokens: Column, tp: Column, count: int) -> Work:
    """The recurrent update of `tokens` tokens over `sequences` sequences."""
    held = state.state_elements * state.state_bytes + state.conv_elements * 2.0
    flops = decode_flops(tokens, state.state_shards, tp, ONE, 1.0, 1.0, state.state_elements / state.state_shards * ONE)
    moved = state_traffic(sequences, held, state.state_shards, tp)
    return Work("state", "bf16", flops, moved, count * ONE, ZERO, ONE, ZERO)


def prefill(attention: Attention | None, site: Site, step: Pass, count: int) -> list[Entry]:
    """Entries of the attention core for the prompt tokens of a pass, `count` layers; None has no core.

    Under context parallelism a rank holds 1/cp of the prompt's queries (dealt so that the causal work is even) and sees
    all keys pass by.
    """
    match attention:
        case GroupedAttention() as gqa:
            return [_grouped_prefill(gqa, site, step, count)]
        case LatentAttention() as mla:
            return _latent_prefill(mla, site, step, count)
        case LinearAttention() as state:
            tokens = step.prompt_tokens / site.cp
            return [Entry("prefill state", "prefill", _state(state, np.minimum(tokens, 1.0), tokens, site.tp, count))]
        case _:
            return []


def _grouped_prefill(gqa: GroupedAttention, site: Site, step: Pass, count: int) -> Entry:
    """Prefill attention over keys and values of grouped heads."""
    tokens, behind = step.prompt_tokens, step.prompt_behind
    limit = EVERYTHING if gqa.window is None else float(gqa.window)
    pairs = attended_pairs(tokens, behind, limit, site.convention.causal) / site.cp
    width = gqa.kv_heads * (gqa.head_dim + gqa.v_head_dim) * site.cache.bytes
    flops = prefill_flops(pairs, gqa.heads, site.tp, gqa.head_dim, gqa.v_head_dim)
    moved = prefill_traffic(tokens, behind, width, gqa.kv_heads, site.tp)
    work = Work("attn_prefill", site.cache.id, flops, moved, count * ONE, ZERO, ONE, tokens + behind)
    return Entry("prefill attention", "prefill", work)


def _latent_prefill(mla: LatentAttention, site: Site, step: Pass, count: int) -> list[Entry]:
    """Prefill attention with the latent expanded to heads; a sparse index limits the pairs and scans all of them."""
    tokens, behind = step.prompt_tokens, step.prompt_behind
    limit = EVERYTHING if mla.index is None else float(mla.index.top_k)
    pairs = attended_pairs(tokens, behind, limit, site.convention.causal) / site.cp
    flops = prefill_flops(pairs, mla.heads, site.tp, mla.nope_dim + mla.rope_dim, mla.v_head_dim)
    moved = prefill_traffic(tokens, behind, latent_bytes(mla, site.cache), 1, site.tp)
    work = Work("mla_prefill", site.cache.id, flops, moved, count * ONE, ZERO, ONE, tokens + behind)
    core = Entry("prefill attention", "prefill", work)
    if mla.index is None or mla.index.heads == 0:
        return [core]
    every = attended_pairs(tokens, behind, EVERYTHING, site.convention.causal) / site.cp
    scan_flops = prefill_flops(every, mla.index.heads, ONE, mla.index.dim, 0.0)
    scanned = prefill_traffic(tokens, behind, mla.index.dim * site.convention.index_key_bytes, 1, site.tp)
    return [core, Entry("prefill index scan", "prefill", _scan(scan_flops, scanned, count))]
