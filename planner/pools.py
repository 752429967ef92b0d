"""The prefill pool of a disaggregated plan: its device, its clock, and what it costs to feed the decode pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from planner.candidates import Flags, refusals, rules
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
"""Sizes of a prefill worker that are tried: 1, 2, 4 … devices."""


@dataclass(frozen=True)
class Pool:
    """Workers that read prompts, all alike.

    Attributes:
        gpu, profile, at: device, clock and layout of one worker.
        prompt: time of a prompt on one worker, front end included [s].
        busy: time of a worker that each prompt takes: its attention ranks read one each at the same time [s].
        fits: whether weights and one prompt's cache fit on its devices.
        admitted: whether the model can be laid out so.
        price: $ per device-hour; None = unknown.
    """

    gpu: Accelerator
    profile: Profile
    at: Layout
    prompt: float
    busy: float
    fits: bool
    admitted: bool
    price: float | None

    @property
    def devices(self) -> float:
        """Devices of one worker."""
        return float(self.at.devices[0, 0])


def prefill_pool(setting: Setting, *, together: bool = True, clock: Profile | None = None) -> Pool | None:
    """The prefill pool of a scenario; None when prefill is not in a pool of its own.

    Without `together` kernels are priced one by one, for a reader to follow. `clock`: constants of the pool's accelerator
    where they are not the catalogue's.

    Raises:
        CatalogueError: for a prefill accelerator that the catalogue does not hold.
    """
    asked = setting.scenario
    if asked.prefill != "disaggregated":
        return None
    gpu = setting.gpu if asked.prefill_gpu is None else accelerator(asked.prefill_gpu)
    clock = _clock(setting, gpu) if clock is None else clock
    at = _worker(setting, gpu, clock) if asked.prefill_tp is None else layout(asked.prefill_tp).tall
    taken = _one(_reading(setting, clock, at, together=together))
    return _pool(setting, gpu, clock, at, taken)


def every_pool(setting: Setting, gpu: Accelerator) -> tuple[Pool, ...]:
    """Every prefill pool that a scenario can name on an accelerator: tensor parallelism alone, smallest worker first.

    The planner's own choice comes last where it is another one. Workers that the model does not admit or that do not
    hold it are left out.
    """
    clock = _clock(setting, gpu)
    tried = _standing(setting, gpu, clock)
    own = _first_choice(setting, clock, tried)
    shown = [each for each in tried if float(each[0].dp[0, 0]) == 1.0 or each is own]
    return tuple(_pool(setting, gpu, clock, *each) for each in sorted(shown, key=lambda each: float(each[0].dp[0, 0])))


def _clock(setting: Setting, gpu: Accelerator) -> Profile:
    """The clock of a prefill pool's accelerator."""
    asked = setting.scenario
    return setting.profile if gpu.id == setting.gpu.id else profile(asked.profile, gpu, asked.engine)


def _pool(setting: Setting, gpu: Accelerator, clock: Profile, at: Layout, taken: float) -> Pool:
    """A pool whose workers read one prompt on each attention rank in the time taken [s]."""
    busy = taken / float(at.dp[0, 0])
    fits, admits = bool(_fits(setting, gpu, at)[0]), bool(_admits(setting, at)[0])
    return Pool(gpu, clock, at, _waited(clock, taken), busy, fits, admits, price_of(setting, gpu))


def _reading(setting: Setting, clock: Profile, at: Layout, *, together: bool = True) -> Column:
    """Time in which workers of some layouts read one prompt on each of their attention ranks [s]."""
    machine = replace(setting.machine, domain=clock.links.domain)
    placed = forward.place(machine, at)
    placed = placed if together else replace(placed, stacks=placed.kernels)
    return prefill.prompt_seconds(placed, clock, setting.prompt, alone=False)


def _waited(clock: Profile, taken: float) -> float:
    """Time until a worker has read a prompt, front end included [s]."""
    return _one(prefill.unloaded_ttft(taken * ONE, clock.ttft_fixed, clock.ttft_factor, clock.ttft_ceiling))


Tried: TypeAlias = tuple[Layout, float]
"""A worker's layout, and the time in which it reads one prompt on each of its attention ranks [s]."""


def _worker(setting: Setting, gpu: Accelerator, clock: Profile) -> Layout:
    """The layout of a worker that the scenario does not name: of those that hold the model, most prompts a device."""
    own = _first_choice(setting, clock, _standing(setting, gpu, clock))
    return layout(setting.scenario.tp).tall if own is None else own[0]


def _first_choice(setting: Setting, clock: Profile, tried: Sequence[Tried]) -> Tried | None:
    """The worker with most prompts a device; one whose prompt alone breaks the promise comes after all others."""
    promise = setting.scenario.sla_ttft_ms / 1e3
    order = [(_waited(clock, taken) <= promise, float((at.dp / at.devices)[0, 0]) / taken) for at, taken in tried]
    return tried[max(range(len(tried)), key=lambda at: order[at])] if tried else None


def _standing(setting: Setting, gpu: Accelerator, clock: Profile) -> list[Tried]:
    """Workers that are tried, as far as the model admits them and their devices hold it.

    Tensor parallelism and, for experts, attention data parallelism with whole experts, on 1, 2, 4 … devices.
    """
    tried = _layouts(setting)
    rows = np.flatnonzero(_admits(setting, tried) & _fits(setting, gpu, tried))
    if not len(rows):
        return []
    kept = Layout(*(getattr(tried, name)[rows] for name in ("tp", "pp", "dp", "ep", "cp", "dcp")))
    taken = np.broadcast_to(_reading(setting, clock, kept), kept.tp.shape).reshape(-1)
    one = (
        (Layout(*(getattr(kept, n)[at : at + 1] for n in ("tp", "pp", "dp", "ep", "cp", "dcp"))))
        for at in range(len(rows))
    )
    return [(at, float(seconds)) for at, seconds in zip(one, taken, strict=True)]


def _layouts(setting: Setting) -> Layout:
    """Layouts of a worker that are tried, smallest first."""
    sizes = np.array([1 << doubled for doubled in range(LARGEST_DOUBLING)], dtype=np.float64)
    if not setting.model.has_experts:
        return layout(sizes).tall
    one = np.ones(len(sizes) - 1)
    tp = np.concatenate([sizes, one])
    apart = np.concatenate([np.ones(len(sizes)), sizes[1:]])
    order = np.argsort(tp * apart, kind="stable")
    return layout(tp=tp[order], dp=apart[order], ep=apart[order]).tall


def _admits(setting: Setting, at: Layout) -> Flags:
    """Which workers the model can be laid out on, shape (n,)."""
    return np.asarray(refusals(rules(setting.model), at) < 0).reshape(-1)


def _fits(setting: Setting, gpu: Accelerator, at: Layout) -> Flags:
    """On which workers' devices weights and the cache of one prompt fit, shape (n,)."""
    convention = setting.convention
    physical = gpu.memory if convention.marketing_memory else gpu.physical_memory
    weights = weight_bytes(setting.model, setting.machine.formats, at, 0.0, convention)
    held = kv.sequence_bytes(setting.cache, setting.scenario.isl * ONE, at.tp, at.pp, ONE, setting.allocation)
    return np.asarray(weights + held <= memory.usable_bytes(physical, setting.utilisation)).reshape(-1)


def price_of(setting: Setting, gpu: Accelerator) -> float | None:
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
        scale_up: where it stays inside one scale-up domain.
    """

    cache_bytes: float
    links: Column
    bandwidth: Column
    efficiency: float
    seconds: Column
    exposed: Column
    scale_up: Flags


def transfer(setting: Setting, pool: Pool, at: Layout) -> Transfer:
    """The transfer to decode replicas of some layouts."""
    asked, out = setting.scenario, pool.profile.links
    one = layout().tall
    moved = _one(
        kv.sequence_bytes(setting.cache, asked.isl * ONE, one.tp, one.pp, ONE, replace(setting.allocation, block=1))
    )
    links = np.minimum(pool.at.tp, at.tp)
    inside = _shares_domain(setting, pool, at)
    bandwidth = np.where(inside, _bandwidth(setting, pool, True), _bandwidth(setting, pool, False))
    efficiency = LINK_EFFICIENCY if asked.kv_link_eff is None else asked.kv_link_eff
    alpha = np.where(inside, out.hop_alpha, out.out_alpha)
    seconds = disagg.kv_transfer_seconds(moved * ONE, links, bandwidth, efficiency, alpha)
    exposed = disagg.exposed_transfer_seconds(seconds, pool.busy * ONE, setting.model.layers)
    return Transfer(moved, links, bandwidth, efficiency, seconds, exposed, inside)


def _shares_domain(setting: Setting, pool: Pool, at: Layout) -> Flags:
    """Where both pools can stand in one scale-up domain: same device, rack-scale domain, one replica and worker fit."""
    domain = setting.profile.links.domain
    rack = pool.gpu.id == setting.gpu.id and domain > 8
    return np.asarray(rack & (at.devices + pool.devices <= domain))


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
