"""What an objective can come to at best: bounds of layouts that have been looked at only on a coarse grid of batches.

A layout at any batch that keeps the promise costs at least what the fastest rate around it would cost if neither replicas
nor prefill workers nor rented instances were rounded up.
"""

from __future__ import annotations

import numpy as np

from planner.candidates import Flags
from planner.optimise.question import Question
from planner.pools import Pool
from planner.rows import Speed
from planner.setting import Setting
from planner.specs.layout import Column
from planner.specs.scenario import Scenario

SLACK = 1.01
"""How far a rate between two batches of the grid may exceed the higher of theirs, ranks being filled unevenly."""


def reach(kept: Flags) -> Flags:
    """Rows of a layout's grid that keep the promise, and the first that does not: the largest batch lies between them."""
    following = np.concatenate([np.ones((len(kept), 1), dtype=np.bool_), kept[:, :-1]], axis=1)
    return np.asarray(kept | following)


def least(setting: Setting, question: Question, devices: Column, speed: Speed, kept: Flags) -> Column:
    """A replica's share of the objective at best; inf where its smallest batch breaks the promise; shape (n,)."""
    asked = setting.scenario
    if question.aim is not None:
        return np.where(kept[:, 0], 0.0, np.inf)
    price = 0.0 if setting.cost.price is None else setting.cost.price
    sized = asked.qps > 0 and asked.fix_replicas is None  # replicas that are fixed may be asked for all that they carry
    carried = speed.rate * (asked.load if sized else 1.0) * SLACK
    took = devices / carried  # [device·s/token]
    rate = asked.qps * asked.osl  # [tokens/s]
    match question.objective:
        case "usd_per_m_goodput":
            share = took * price / 3600.0 * 1e6
        case "usd_per_hour":
            share = took * price * rate
        case "gpus":
            share = np.maximum(took * rate, devices) if asked.prefill != "disaggregated" or not rate else took * rate
        case "tpot_ms":
            share = speed.tpot / SLACK
        case "ttft_ms":
            share = np.zeros(np.shape(took)) if asked.prefill == "disaggregated" else speed.ttft / SLACK
        case "goodput_tok_s":
            share = took
    best = np.where(reach(kept), share, np.inf).min(axis=1)
    return np.asarray(np.where(kept[:, 0], best, np.inf))


def pool_share(question: Question, asked: Scenario, pool: Pool | None) -> float:
    """The prefill pool's share of the objective at best; nothing without one."""
    if pool is None or question.aim is not None:
        return 0.0
    price = 0.0 if pool.price is None else pool.price
    took = pool.devices * pool.busy / asked.load  # [device·s/prompt]
    match question.objective:
        case "usd_per_m_goodput":
            return took / asked.osl * price / 3600.0 * 1e6
        case "usd_per_hour":
            return took * asked.qps * price
        case "gpus":
            return took * asked.qps if asked.qps else pool.devices
        case "tpot_ms":
            return 0.0
        case "ttft_ms":
            return pool.prompt
        case "goodput_tok_s":
            return took / asked.osl


def together(question: Question, share: Column) -> Column:
    """The objective of all shares added up, less is better; of an aim nothing is known beforehand."""
    if question.aim is not None:
        return np.where(np.isfinite(share), 0.0 if question.aim.at_most else -np.inf, np.inf)
    return -question.max_gpus / share if question.objective == "goodput_tok_s" else share
