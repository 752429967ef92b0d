"""What splitting a sequence along its length puts on the links, in decode and in prefill."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.physics import comms
from planner.physics.attention import Site
from planner.physics.kv import latent_bytes
from planner.physics.passes import Pass
from planner.specs.model import Attention, GroupedAttention, LatentAttention
from planner.work import Column, Ledger


@formula("definition: BF16 queries or partial outputs of all heads that ranks sharing a context work on", "B")
def partial_bytes(rows: Column, heads: int, tp: Column, dcp: Column, width: float) -> Column:
    """Buffer that ranks sharing a context exchange in one layer: queries before, partial outputs after attention."""
    local_heads = np.ceil(heads / tp) * dcp  # [heads]
    return rows * local_heads * width * 2.0  # [B]


@formula("ring exchange: every step passes on one rank's share of keys and values", "B")
def ring_message(tokens: Column, token_bytes: float, shards: int, tp: Column, cp: Column) -> Column:
    """Bytes of one message of the ring that carries keys and values of a prompt round, one layer."""
    share = tokens / cp  # [tokens]
    ways = np.minimum(tp, shards)  # [1]
    return share * token_bytes / ways  # [B]


def widths(attention: Attention) -> tuple[int, float, float]:
    """Query heads, elements of a query and of an output a head; zeros where attention keeps no context."""
    match attention:
        case GroupedAttention() as gqa:
            return gqa.heads, float(gqa.head_dim), float(gqa.v_head_dim)
        case LatentAttention() as mla:
            return mla.heads, float(mla.kv_lora_rank + mla.rope_dim), float(mla.kv_lora_rank)
        case _:
            return 0, 0.0, 0.0


def decode_exchange(attention: Attention, site: Site, step: Pass, domain: float, count: int) -> Ledger:
    """Gathering of queries and merging of partial outputs between ranks that share a context, `count` layers."""
    heads, query, output = widths(attention)
    if heads == 0:
        return ()
    rows = step.sequences * step.new_tokens
    shared = np.asarray(count * (site.dcp > 1.0), dtype=np.float64)
    over_cp = np.asarray(count * (site.cp > 1.0), dtype=np.float64)
    gathered = partial_bytes(rows, heads, site.tp, site.dcp, query)
    scattered = partial_bytes(rows, heads, site.tp, site.dcp, output)
    merged = partial_bytes(rows, heads, site.tp, site.dcp, output)
    apart = np.maximum(np.floor(domain / site.tp), 1.0)
    return (
        *comms.gather("context queries", gathered, site.dcp, domain, shared),
        *comms.gather("context outputs", scattered, site.dcp, domain, shared),
        *comms.all_reduce("context outputs over cp", merged, site.cp, apart, over_cp),
    )


def prefill_exchange(attention: Attention, site: Site, step: Pass, domain: float, count: int) -> Ledger:
    """The ring that carries keys and values past the queries of every rank, `count` layers."""
    match attention:
        case GroupedAttention() as gqa:
            width, shards = gqa.kv_heads * (gqa.head_dim + gqa.v_head_dim) * site.cache.bytes, gqa.kv_heads
        case LatentAttention() as mla:
            width, shards = latent_bytes(mla, site.cache), 1
        case _:
            return ()
    message = ring_message(step.prompt_tokens + step.prompt_behind, width, shards, site.tp, site.cp)
    messages = count * (site.cp - 1.0)
    inside = site.tp * site.cp <= domain
    return comms.hops("ring of keys and values", message, messages * inside, messages * ~inside)
