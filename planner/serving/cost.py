"""From rates to replicas, devices and dollars."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("definition: requests a second · output tokens over what a replica may carry, rounded up", "replicas")
def replicas_needed(qps: float, osl: float, rate: Column, load: float) -> Column:
    """Replicas that carry a request rate when each is loaded to `load` of its mean throughput; at least one."""
    asked = qps * osl  # [tokens/s]
    carried = rate * load  # [tokens/s]
    return np.maximum(np.ceil(asked / carried), 1.0)  # [replicas]


@formula("definition: devices are rented in whole instances where a price is per instance", "devices")
def billed_devices(devices: Column, instance: float) -> Column:
    """Devices that are paid for."""
    return np.ceil(devices / instance) * instance  # [devices]


@formula("definition", "$/h")
def dollars_per_hour(devices: Column, price: float) -> Column:
    """Bill of the deployment."""
    return devices * price  # [$/h]


@formula("definition: both pools are paid for", "$/h")
def both_pools(decode: Column, prefill: Column) -> Column:
    """Bill of a deployment with a prefill pool."""
    return decode + prefill  # [$/h]


@formula("definition: replicas that serve, each at its rate", "tokens/s")
def fleet_rate(serving: Column, rate: Column) -> Column:
    """Output tokens a second that all replicas together can deliver."""
    return serving * rate  # [tokens/s]


@formula("definition: decode finishes no more than prefill begins", "tokens/s")
def fed_rate(decode: Column, fed: Column) -> Column:
    """Output tokens a second of two pools: of the one that carries less."""
    return np.minimum(decode, fed)  # [tokens/s]


@formula("definition: what is asked when a rate is given, at most what the deployment can do", "tokens/s")
def served_rate(qps: float, osl: float, capacity: Column) -> Column:
    """Output tokens a second that the deployment delivers."""
    asked = qps * osl  # [tokens/s]
    return np.where(asked > 0.0, np.minimum(asked, capacity), capacity)  # [tokens/s]


@formula("definition: dollars an hour over millions of tokens an hour", "$/Mtoken")
def dollars_per_million(dollars: Column, rate: Column) -> Column:
    """Cost of a million tokens; NaN where there are none."""
    millions = rate * 3600.0 / 1e6  # [Mtoken/h]
    some = np.where(millions > 0.0, millions, np.nan)  # [Mtoken/h]
    return dollars / some  # [$/Mtoken]
