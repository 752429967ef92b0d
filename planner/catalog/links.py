"""Links of one accelerator under one engine: collectives inside and across its scale-up domain, and expert exchange."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.catalog.kernel_laws import Lookup, all_reduce
from planner.specs.collective import CollectiveLaw
from planner.specs.links import Exchange, ExchangeLaw, Links

UNKNOWN_DOMAIN = 8
"""Devices in a scale-up domain whose size is not known: those of a usual host."""


def links(look: Lookup) -> Links:
    """Links as served."""
    reduce = all_reduce(look)
    law = ExchangeLaw((8, 64), (20e-6, 30e-6), (300e9, 50e9), "assumed", "")
    exchange = Exchange(law, law, 1.0, 2.0)
    domain = look.accelerator.scale_up_domain or UNKNOWN_DOMAIN
    gather = replace(reduce)
    nic = look.accelerator.scale_out_bandwidth or 25e9
    return Links(float(domain), reduce, gather, 5e-6, 300e9, 20e-6, nic * 0.74, exchange, exchange)


def free_links(domain: float, source: str) -> Links:
    """Links that cost nothing: the textbook's."""
    reduce = CollectiveLaw((2,), (0.0,), (math.inf,), "assumed", source)
    law = ExchangeLaw((2,), (0.0,), (math.inf,), "assumed", source)
    exchange = Exchange(law, law, 1.0, 2.0)
    return Links(domain, reduce, reduce, 0.0, math.inf, 0.0, math.inf, exchange, exchange)
