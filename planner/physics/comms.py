"""What collectives put on the links."""

from __future__ import annotations

from planner.formula import formula
from planner.work import ONE, ZERO, Column, Entry, Work


@formula("nccl-tests convention: an all-reduce over n ranks moves 2(n−1)/n of its buffer through each rank's link", "B")
def all_reduce_traffic(buffer_bytes: Column, ranks: Column) -> Column:
    """Bytes that an all-reduce of a buffer puts on one rank's link."""
    share = 2.0 * (ranks - 1.0) / ranks  # [1]
    return share * buffer_bytes  # [B]


def all_reduce(name: str, tokens: Column, hidden: int, ranks: Column, launches: Column) -> Entry:
    """The all-reduce of a BF16 activation of `tokens · hidden` over `ranks` ranks, `launches` times a pass.

    A group of one rank costs nothing: the clock skips it.
    """
    traffic = all_reduce_traffic(tokens * hidden * 2.0, ranks)
    return Entry(name, "collectives", Work("all_reduce", "bf16", ZERO, ZERO, launches * ONE, traffic, ranks, ZERO))
