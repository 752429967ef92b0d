"""Prefill pools that could feed a category, each with what it adds to the objective at best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from planner.catalog.accelerators import accelerator
from planner.optimise.bounds import pool_share
from planner.optimise.found import WORKER_SIZES
from planner.optimise.question import Question
from planner.optimise.space import prefill_gpus
from planner.pools import Pool, every_pool, price_of
from planner.rows import REASONS, SLOW_FIRST
from planner.setting import Setting

Tally = Counter[tuple[str, str]]
"""Refused candidates by rule and reason."""

UNPRICED: Final = ("price", "no price of the accelerator is known")

FOREIGN: Final = ("maker", "no engine is known to move a cache between accelerators of different makers")

APART: Final = 8
"""Sizes of workers below are those of tensor-parallel ones, from here on those of the planner's own with attention apart."""


def offers(setting: Setting, question: Question, many: int) -> tuple[tuple[tuple[int, float], ...], Tally]:
    """Numbers and shares of the pools that could feed so many layouts of a category, and how many fell with their pool."""
    found, tally = [], Tally()
    promise = setting.scenario.sla_ttft_ms / 1e3
    for name in prefill_gpus(question) if many else ():
        if accelerator(name).vendor != setting.gpu.vendor:
            tally[FOREIGN] += many
            continue
        for pool in _every(_Reading(setting, name)):
            priced = replace(pool, price=price_of(setting, pool.gpu))
            if pool.prompt > promise:
                tally["promise", REASONS[SLOW_FIRST]] += many
            elif priced.price is None and question.objective.startswith("usd"):
                tally[UNPRICED] += many
            else:
                found.append((number_of(question, pool), pool_share(question, setting.scenario, priced)))
    return tuple(found), +tally


def number_of(question: Question, pool: Pool) -> int:
    """The number of a pool, by its accelerator's place in the question and its worker's size."""
    tp, dp = float(pool.at.tp[0, 0]), float(pool.at.dp[0, 0])
    size = int(np.log2(tp)) if dp == 1.0 else APART + int(np.log2(dp))
    return prefill_gpus(question).index(pool.gpu.id) * WORKER_SIZES + size


def named_pool(question: Question, number: int) -> tuple[str, int | None]:
    """Accelerator and `prefill_tp` of a pool by its number; no `prefill_tp` where the planner's own choice is meant."""
    gpu, size = divmod(number, WORKER_SIZES)
    return prefill_gpus(question)[gpu], (1 << size) if size < APART else None


@dataclass(frozen=True)
class _Reading:
    """What the time of a prompt depends on, hashed by what can differ between categories."""

    setting: Setting
    gpu: str

    @property
    def key(self) -> Hashable:
        """Everything that a pool's clock or memory asks for."""
        s, neutral = self.setting, self.setting.scenario.with_(gpu="h100-sxm", price=None, provider=None)
        return self.gpu, neutral, s.prompt, s.utilisation, s.allocation, s.machine.routing, s.machine.wire

    def __hash__(self) -> int:
        """By the key."""
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        """By the key."""
        return isinstance(other, _Reading) and self.key == other.key


@lru_cache(maxsize=512)
def _every(asked: _Reading) -> tuple[Pool, ...]:
    """Every pool of an accelerator; its price is that of whoever asked first, and not to be used."""
    return every_pool(asked.setting, accelerator(asked.gpu))
