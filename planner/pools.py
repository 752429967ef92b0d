"""The prefill pool of a disaggregated plan: its device, its clock, and what it costs to feed the decode pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates import refusals, rules
from planner.catalog.accelerators import accelerator
from planner.catalog.prices import default_price
from planner.catalog.profiles import profile
from planner.physics import forward, kv, memory
from planner.physics.weights import weight_bytes
from planner.serving import disagg, prefill
from planner.specs.accelerator import Accelerator
from planner.specs.layout import Layout, layout
from planner.specs.profile import Profile
from planner.work import ONE, Column

if TYPE_CHECKING:
    from planner.setting import Setting

LINK_EFFICIENCY = 0.8
"""Share of the link that a KV transfer reaches when the scenario does not say: the source article's best case; public
reports run from 0.02 (untuned, block by block) to 0.94 (tuned RDMA)."""


LARGEST_DOUBLING = 6
"""How often a prefill worker's degree is doubled in search of one that holds the model."""


@dataclass(frozen=True)
class Pool:
    """Workers that read prompts, all alike.

    Attributes:
        gpu, profile, at: device, clock and layout of one worker.
        prompt: time of a lone prompt on one worker, front end included [s].
        busy: time that a prompt keeps a worker busy [s].
        fits: whether weights and one prompt's cache fit on its devices.
        price: $ per device-hour; None = unknown.
    """

    gpu: Accelerator
    profile: Profile
    at: Layout
    prompt: float
    busy: float
    fits: bool
    price: float | None

    @property
    def devices(self) -> float:
        """Devices of one worker."""
        return float(self.at.devices[0, 0])


def prefill_pool(setting: Setting, *, together: bool = True) -> Pool | None:
    """The prefill pool of a scenario; None when prefill is not in a pool of its own.

    Without `together` kernels are priced one by one, for a reader to follow.

    Raises:
        CatalogueError: for a prefill accelerator that the catalogue does not hold.
    """
    asked = setting.scenario
    if asked.prefill != "disaggregated":
        return None
    gpu = setting.gpu if asked.prefill_gpu is None else accelerator(asked.prefill_gpu)
    clock = setting.profile if gpu.id == setting.gpu.id else profile(asked.profile, gpu, asked.engine)
    at = layout(_own_tp(setting, gpu) if asked.prefill_tp is None else asked.prefill_tp).tall
    machine = replace(setting.machine, domain=clock.links.domain, wire=clock.links.wire)
    placed = forward.place(machine, at)
    placed = placed if together else replace(placed, stacks=placed.kernels)
    busy = prefill.prompt_seconds(placed, clock, setting.prompt)
    waited = prefill.unloaded_ttft(busy, clock.ttft_fixed, clock.ttft_factor, clock.ttft_ceiling)
    return Pool(gpu, clock, at, _one(waited), _one(busy), _fits(setting, gpu, at), _price(setting, gpu))


def _own_tp(setting: Setting, gpu: Accelerator) -> int:
    """Tensor-parallel degree of a worker that the scenario does not name: the decode replica's, doubled until it holds.

    The decode replica's own where none does.
    """
    asked = setting.scenario.tp
    found = rules(setting.model)
    for tp in (asked << doubled for doubled in range(LARGEST_DOUBLING)):
        at = layout(tp).tall
        if int(refusals(found, at)[0, 0]) < 0 and _fits(setting, gpu, at):
            return tp
    return asked


def _fits(setting: Setting, gpu: Accelerator, at: Layout) -> bool:
    """Whether weights and the cache of one prompt fit on a worker's devices."""
    convention = setting.convention
    physical = gpu.memory if convention.marketing_memory else gpu.physical_memory
    weights = weight_bytes(setting.model, setting.machine.formats, at, 0.0, convention)
    held = kv.sequence_bytes(setting.cache, setting.scenario.isl * ONE, at.tp, at.pp, ONE, setting.allocation)
    return bool(_one(weights + held) <= memory.usable_bytes(physical, setting.utilisation))


def _price(setting: Setting, gpu: Accelerator) -> float | None:
    """$ per device-hour of the prefill pool: the scenario's price for its own accelerator, else the catalogue's."""
    if gpu.id == setting.gpu.id:
        return setting.cost.price
    found = default_price(gpu.id, kind=setting.scenario.price_kind, provider=setting.scenario.provider)
    return None if found is None else found.usd_per_hour


@dataclass(frozen=True)
class Transfer:
    """Moving one prompt's cache between the pools, columns of shape (n, 1).

    Attributes:
        cache_bytes: bytes of the prompt's cache, one copy [B].
        links: links that one request uses.
        bandwidth: of one link [B/s]; efficiency: reached share of it.
        seconds: all of it; exposed: what is left of it when layers are sent as they are computed [s].
        scale_up: whether it stays inside one scale-up domain.
    """

    cache_bytes: float
    links: Column
    bandwidth: float
    efficiency: float
    seconds: Column
    exposed: Column
    scale_up: bool


def transfer(setting: Setting, pool: Pool, at: Layout) -> Transfer:
    """The transfer to decode replicas of some layouts."""
    asked, out = setting.scenario, pool.profile.links
    one = layout().tall
    moved = _one(
        kv.sequence_bytes(setting.cache, asked.isl * ONE, one.tp, one.pp, ONE, replace(setting.allocation, block=1))
    )
    links = np.minimum(pool.at.tp, at.tp)
    inside = _shares_domain(setting, pool, at)
    bandwidth = _bandwidth(setting, pool, inside)
    efficiency = LINK_EFFICIENCY if asked.kv_link_eff is None else asked.kv_link_eff
    alpha = out.hop_alpha if inside else out.out_alpha
    seconds = disagg.kv_transfer_seconds(moved * ONE, links, bandwidth, efficiency, alpha)
    exposed = disagg.exposed_transfer_seconds(seconds, pool.busy * ONE, setting.model.layers)
    return Transfer(moved, links, bandwidth, efficiency, seconds, exposed, inside)


def _shares_domain(setting: Setting, pool: Pool, at: Layout) -> bool:
    """Whether both pools can stand in one scale-up domain: same device, rack-scale domain, one replica and worker fit."""
    domain = setting.profile.links.domain
    together = float(np.max(at.devices)) + pool.devices
    return pool.gpu.id == setting.gpu.id and domain > 8 and together <= domain


def _bandwidth(setting: Setting, pool: Pool, inside: bool) -> float:
    """Bandwidth of one link between the pools [B/s]: scale-up inside a domain, else the slower NIC share."""
    if inside and setting.gpu.scale_up_bandwidth is not None:
        return setting.gpu.scale_up_bandwidth
    known = [gpu.scale_out_bandwidth for gpu in (setting.gpu, pool.gpu) if gpu.scale_out_bandwidth is not None]
    return min(known) if known else UNKNOWN_NIC


UNKNOWN_NIC = 12.5e9
"""NIC share of a device where none is known: 100 Gb/s, the slowest in the catalogue's servers [B/s]."""


def _one(column: object) -> float:
    """The first number of a column."""
    return float(np.asarray(column).reshape(-1)[0])
