"""Links of one accelerator under one engine: collectives inside and across its scale-up domain, and expert exchange."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.catalog.exchange_laws import UNKNOWN_DOMAIN, domain, exchange, nic, remark
from planner.catalog.fabric_records import scale_out
from planner.catalog.kernel_laws import Lookup, all_reduce, collective_law
from planner.specs.collective import CollectiveLaw
from planner.specs.links import Exchange, ExchangeLaw, Links

__all__ = ["UNKNOWN_DOMAIN", "free_links", "links"]


def links(look: Lookup) -> Links:
    """Links as served."""
    pairs = collective_law(look, "all_to_all")
    constant = scale_out().constant
    return Links(
        domain=float(domain(look)),
        all_reduce=all_reduce(look),
        gather=_gather(look),
        hop_alpha=pairs.alpha[0],
        hop_bandwidth=pairs.bus_bandwidth[0],
        out_alpha=constant["message_alpha"].of(look.engine),
        out_bandwidth=nic(look) * constant["nic_efficiency"].of(look.engine),
        small=exchange(look, "low-latency"),
        large=exchange(look, "high-throughput"),
        notes=tuple(_notes(look)),
    )


def free_links(domain: float, source: str) -> Links:
    """Links that cost nothing: the textbook's."""
    reduce = CollectiveLaw((2,), (0.0,), (math.inf,), "assumed", source)
    law = ExchangeLaw((2,), (0.0,), (math.inf,), "assumed", source)
    exchange = Exchange(law, law, 1.0, 2.0)
    return Links(domain, reduce, reduce, 0.0, math.inf, 0.0, math.inf, exchange, exchange)


def _gather(look: Lookup) -> CollectiveLaw:
    """The slower of all-gather and reduce-scatter, constant by constant: one law stands for both, and hides neither."""
    gather, scatter = collective_law(look, "all_gather"), collective_law(look, "reduce_scatter")
    return CollectiveLaw(
        gather.devices,
        tuple(map(max, gather.alpha, scatter.alpha)),
        tuple(map(min, gather.bus_bandwidth, scatter.bus_bandwidth)),
        gather.tag,
        f"{gather.source}; the slower of it and reduce_scatter",
        max((law.median_error for law in (gather, scatter) if law.median_error is not None), default=None),
    )


def _notes(look: Lookup) -> Iterator[str]:
    """What a reader must know about these links."""
    accelerator = look.accelerator
    if accelerator.scale_up_domain is None:
        yield f"The size of its scale-up domain is unknown: {UNKNOWN_DOMAIN} devices, a usual host."
    if accelerator.scale_out_bandwidth is None:
        yield f"Its NIC is unknown: {nic(look) / 1e9:g} GB/s a device, the slowest class."
    timed = max(all_reduce(look).devices), max(_gather(look).devices)
    if domain(look) > min(timed):
        yield f"Inside a domain all-reduce is known up to {timed[0]} devices, all-gather up to {timed[1]}: held above."
    yield "A hop between two devices is half of an all-to-all of NCCL over two."
    yield remark(look, "low-latency")
    yield remark(look, "high-throughput")
