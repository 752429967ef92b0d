"""What collectives, pipeline hops and expert exchange put on the links.

A group larger than a scale-up domain crosses it. It then works in two levels: inside each domain over the scale-up
links, and between domains over the NIC of every device, each carrying its share of the buffer.
"""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import ONE, ZERO, Column, Entry, Ledger, Work

LINK_KINDS = ("all_reduce", "gather", "hop", "nic", "dispatch", "combine")
"""Operator kinds whose time is on links."""

GROUP = "collectives"


@formula("nccl-tests convention: an all-reduce over n ranks moves 2(n−1)/n of its buffer through each rank's link", "B")
def all_reduce_traffic(buffer_bytes: Column, ranks: Column) -> Column:
    """Bytes that an all-reduce of a buffer puts on one rank's link."""
    share = 2.0 * (ranks - 1.0) / ranks  # [1]
    return share * buffer_bytes  # [B]


@formula("nccl-tests convention: an all-gather over n ranks moves (n−1)/n of the gathered buffer to each rank", "B")
def gather_traffic(buffer_bytes: Column, ranks: Column) -> Column:
    """Bytes that an all-gather of a buffer, or its mirror image, a reduce-scatter, puts on one rank's link."""
    share = (ranks - 1.0) / ranks  # [1]
    return share * buffer_bytes  # [B]


@formula("DeepEP's logical bytes: every token once an expert that it is routed to, own rank included", "B")
def exchange_bytes(tokens: Column, top_k: int, hidden: int, element_bytes: float) -> Column:
    """Bytes that one rank sends (dispatch) or receives (combine) for its own tokens in one layer.

    They follow the tokens of the *rank*: they fall with more ranks only where the batch of the replica is fixed.
    """
    pairs = tokens * top_k  # [tokens]
    return pairs * hidden * element_bytes  # [B]


@formula("definition: devices of one group that share a scale-up domain", "devices")
def near_ranks(ranks: Column, domain: Column | float) -> Column:
    """Ranks of a group inside one domain."""
    return np.minimum(ranks, domain)  # [devices]


@formula("definition: domains that a group spans, rounded up", "domains")
def domains_spanned(ranks: Column, domain: Column | float) -> Column:
    """Scale-up domains that a group of contiguous ranks spans; 1 = it stays inside."""
    return np.ceil(ranks / domain)  # [domains]


@formula("definition: a tree over m domains has log2(m) levels", "messages")
def tree_levels(domains: Column) -> Column:
    """Messages between domains that follow each other in one direction of a collective."""
    return np.ceil(np.log2(domains))  # [messages]


def _link(kind: str, traffic: Column, count: Column, launches: Column) -> Work:
    """Work that is on links alone; `count` is group size of a collective, messages in sequence of a NIC exchange."""
    return Work(kind, "bf16", ZERO, ZERO, launches * ONE, traffic, count, ZERO)


def all_reduce(name: str, buffer: Column, ranks: Column, domain: Column | float, launches: Column) -> Ledger:
    """The all-reduce of a buffer [B] over `ranks` ranks, `launches` times a pass; nothing for groups of one."""
    if np.all(ranks <= 1.0):
        return ()
    return _two_levels("all_reduce", 2.0, name, buffer, ranks, domain, launches)


def gather(name: str, buffer: Column, ranks: Column, domain: Column | float, launches: Column) -> Ledger:
    """The all-gather (or reduce-scatter) of a whole buffer [B] over `ranks` ranks, `launches` times a pass."""
    if np.all((ranks <= 1.0) | (launches == 0.0)):
        return ()
    return _two_levels("gather", 1.0, name, buffer, ranks, domain, launches)


def _two_levels(
    kind: str, trips: float, name: str, buffer: Column, ranks: Column, domain: Column | float, launches: Column
) -> Ledger:
    """A collective within each scale-up domain and, where the group spans several, across them over NICs.

    `trips` = up and down the tree across domains (2) or one way (1).
    """
    traffic = all_reduce_traffic if kind == "all_reduce" else gather_traffic
    near = near_ranks(ranks, domain)
    inside = Entry(name, GROUP, _link(kind, traffic(buffer, near), near, launches))
    if np.all(ranks <= domain):
        return (inside,)
    spanned = domains_spanned(ranks, domain)
    across = _link("nic", traffic(buffer / near, spanned), trips * tree_levels(spanned), launches)
    return (inside, Entry(f"{name} across domains", GROUP, across))


def exchange(
    tokens: Column, top_k: int, hidden: int, wire: tuple[float, float], ep: Column, launches: Column
) -> Ledger:
    """Dispatch of a rank's tokens to the experts' ranks and combine of the results, `launches` times a pass.

    `wire` is bytes an element of dispatch and combine. The laws know which group sizes cross a domain.
    """
    if np.all(launches == 0.0):
        return ()
    sent, returned = (exchange_bytes(tokens, top_k, hidden, element) for element in wire)
    return (
        Entry("dispatch", GROUP, _link("dispatch", sent, ep, launches)),
        Entry("combine", GROUP, _link("combine", returned, ep, launches)),
    )


def hops(name: str, message: Column, near: Column, far: Column) -> Ledger:
    """Messages [B] from device to device: `near` of them inside a domain, `far` between domains."""
    found = []
    if np.any(near > 0.0):
        found.append(Entry(name, GROUP, _link("hop", message, ONE, near)))
    if np.any(far > 0.0):
        found.append(Entry(f"{name} across domains", GROUP, _link("nic", message, ONE, far)))
    return tuple(found)
