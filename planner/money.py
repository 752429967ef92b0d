"""Replicas, prefill workers, devices and dollars of layouts at batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.plan import Column
from planner.pools import Pool
from planner.rows import Speed
from planner.serving import cost, disagg
from planner.setting import Setting


@dataclass(frozen=True)
class Money:
    """What a deployment takes and costs, columns of shape (n, m).

    Attributes:
        replica: devices of one replica.
        serving: replicas that serve, spares left out; replicas: those included.
        workers: prefill workers (0 where prefill is on the replicas or not counted).
        devices: all devices, spares included.
        productive: devices that serve one replica's share of the load, its part of the prefill pool included.
        capacity: output tokens a second that the deployment can deliver.
        dollars: $/h; per_output, per_good: $ per million output tokens, and per million of them that keep the promise.
    """

    replica: Column
    serving: Column
    replicas: Column
    workers: Column
    devices: Column
    productive: Column
    capacity: Column
    dollars: Column
    per_output: Column
    per_good: Column


def money(setting: Setting, replica: Column, speed: Speed, serving: Column | None = None) -> Money:
    """Size and bill of deployments whose replicas have so many devices each.

    `serving` names the replicas in the place of the scenario; it broadcasts with the speeds.
    """
    asked, pool = setting.scenario, setting.pool
    serving = _serving(setting, speed) if serving is None else serving
    workers = np.zeros(np.shape(serving)) if pool is None else _workers(setting, pool, serving, speed)
    beside = np.zeros(1) if pool is None else workers * pool.devices
    decode = (serving + asked.spare) * replica
    dollars = _bill(setting, decode, beside)
    capacity = _capacity(setting, pool, serving, workers, speed)
    served = cost.served_rate(asked.qps, float(asked.osl), capacity)
    good = np.where(speed.good > 0.0, served, 0.0)
    return Money(
        replica=replica,
        serving=serving,
        replicas=serving + asked.spare,
        workers=workers,
        devices=decode + beside,
        productive=replica + beside / serving,
        capacity=capacity,
        dollars=dollars,
        per_output=cost.dollars_per_million(dollars, served),
        per_good=cost.dollars_per_million(dollars, good),
    )


def _bill(setting: Setting, decode: Column, beside: Column) -> Column:
    """$/h of the decode pool and of the prefill pool; equal devices are rented together, in whole instances."""
    priced, pool = setting.cost, setting.pool
    price = np.nan if priced.price is None else priced.price
    if pool is None or pool.gpu.id == setting.gpu.id:
        return cost.dollars_per_hour(cost.billed_devices(decode + beside, float(priced.instance)), price)
    own = cost.dollars_per_hour(cost.billed_devices(decode, float(priced.instance)), price)
    return cost.both_pools(own, cost.dollars_per_hour(beside, np.nan if pool.price is None else pool.price))


def _serving(setting: Setting, speed: Speed) -> Column:
    """Replicas that serve: fixed, or as many as the asked rate needs."""
    asked = setting.scenario
    needed = cost.replicas_needed(asked.qps, float(asked.osl), speed.rate, asked.load)
    fixed = asked.fix_replicas or asked.decode_workers
    return needed if fixed is None else np.full(np.shape(needed), float(fixed))


def _workers(setting: Setting, pool: Pool, serving: Column, speed: Speed) -> Column:
    """Prefill workers: fixed, or as many as the asked rate needs, or as feed the decode pool at full use."""
    asked = setting.scenario
    if asked.prefill_workers is not None:
        return np.full(np.shape(serving), float(asked.prefill_workers))
    full = disagg.decode_requests(speed.rate, serving, float(asked.osl))
    requests = asked.qps * np.ones(np.shape(full)) if asked.qps > 0 else full
    return disagg.prefill_workers(requests, pool.busy * np.ones(1), asked.load)


def _capacity(setting: Setting, pool: Pool | None, serving: Column, workers: Column, speed: Speed) -> Column:
    """Output tokens a second of the deployment: of the decode pool, or of what the prefill pool feeds it."""
    decode = cost.fleet_rate(serving, speed.rate)
    if pool is None:
        return decode
    fed = disagg.prefill_rate(workers, pool.busy * np.ones(1), 1.0) * float(setting.scenario.osl)
    return cost.fed_rate(decode, fed)


def replica_dollars(setting: Setting, devices: float, rate: Column) -> Column:
    """$/h of one replica at full use and of the part of a prefill pool that feeds it; NaN where a price is not known."""
    price = np.nan if setting.cost.price is None else setting.cost.price
    own = cost.dollars_per_hour(devices * np.ones(np.shape(rate)), price)
    pool = setting.pool
    if pool is None:
        return own
    busy = disagg.workers_busy(
        disagg.decode_requests(rate, np.ones(1), float(setting.scenario.osl)), pool.busy * np.ones(1)
    )
    beside = busy / setting.scenario.load * pool.devices
    return cost.both_pools(own, cost.dollars_per_hour(beside, np.nan if pool.price is None else pool.price))
