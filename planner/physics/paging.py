"""What paging saves: reserving a cache at full length in advance against handing it out block by block."""

from __future__ import annotations

from planner.formula import formula
from planner.work import Column


@formula("definition: one contiguous piece for the longest sequence that is allowed", "B")
def reserved_bytes(max_len: Column, token_bytes: Column) -> Column:
    """Cache of one request when its whole length is reserved in advance."""
    return max_len * token_bytes  # [B]


@formula("definition: tokens in use over token slots held", "1")
def slots_used(used: Column, slots: Column) -> Column:
    """Share of the held slots that has a token in it."""
    return used / slots  # [1]


@formula("serving article, 3.4: the last block is half empty on average (exactly (block − 1)/2)", "tokens")
def block_waste(block: Column) -> Column:
    """Slots that a sequence leaves empty in its last block."""
    return block / 2.0  # [tokens]


@formula("definition: what is filled over what is held, half a block more", "1")
def paged_use(tokens: Column, block: Column) -> Column:
    """Share of the held slots that has a token in it, for sequences of one length in blocks."""
    held = tokens + block / 2.0  # [tokens]
    return tokens / held  # [1]


@formula("definition: sequences that fit grow as the used share of memory does", "1")
def paging_gain(paged: Column, reserved: Column) -> Column:
    """Sequences held in blocks over sequences held by reservation, from the share of memory that each fills."""
    return paged / reserved  # [1]


@formula("definition: a sequence fills a block in as many steps as the block has slots", "blocks")
def blocks_taken(batch: Column, block: Column) -> Column:
    """Blocks that a decode step takes from the pool."""
    return batch / block  # [blocks]
