"""Prompts that are read away from the replicas: the workers of a prefill pool, or nobody in particular."""

from __future__ import annotations

from dataclasses import replace
from heapq import heapify, heapreplace
from typing import Protocol

import numpy as np

from planner.physics import forward
from planner.pools import Pool, transfer
from planner.rows import Bounds
from planner.serving import prefill
from planner.setting import Setting
from planner.work import ONE

LENGTHS = 33
"""Prompt lengths at which a worker's time is worked out; between them it is interpolated."""


class Readers(Protocol):
    """Who reads prompts before a replica is given the request."""

    def read(self, at: float, tokens: int) -> float:
        """When a prompt that arrives now can be decoded [s]."""
        ...


class Elsewhere:
    """Prompts cost a fixed time and nobody is busy with them: prefill is excluded from the plan."""

    def __init__(self, known: Bounds) -> None:
        """The time of a lone prompt."""
        self._time = float(known.unloaded[0, 0])

    def read(self, at: float, tokens: int) -> float:
        """When a prompt that arrives now can be decoded [s]."""
        del tokens
        return at + self._time


class Workers:
    """A prefill pool: each rank of each worker reads one prompt at a time, first come, first served."""

    def __init__(self, setting: Setting, pool: Pool, known: Bounds, workers: int, longest: int) -> None:
        """All are free.

        Args:
            setting, pool: whose workers they are.
            known: bounds of the decode replicas, to which the cache travels.
            workers: how many there are.
            longest: longest prompt [tokens].
        """
        self._lengths = np.unique(np.round(np.geomspace(1.0, float(max(longest, 2)), LENGTHS)))
        taken = np.array([_taken(setting, pool, length) for length in self._lengths])
        clock = pool.profile
        whole = prefill.unloaded_ttft(taken, clock.ttft_fixed, clock.ttft_factor, clock.ttft_ceiling)
        moved = float(transfer(setting, pool, known.clock.placed.layout).seconds[0, 0]) / setting.scenario.isl
        self._taken, self._after = taken, whole - taken + moved * self._lengths
        self._free = [0.0] * max(1, int(workers * float(pool.at.dp[0, 0])))
        heapify(self._free)

    def read(self, at: float, tokens: int) -> float:
        """When a prompt that arrives now can be decoded: read, and its cache moved [s]."""
        begins = max(at, self._free[0])
        ends = begins + float(np.interp(tokens, self._lengths, self._taken))
        heapreplace(self._free, ends)
        return ends + float(np.interp(tokens, self._lengths, self._after))


def _taken(setting: Setting, pool: Pool, length: float) -> float:
    """Time in which a worker reads a prompt of a length on each of its ranks [s]."""
    asked = setting.scenario
    budget = setting.token_budget if setting.convention.overheads else float("inf")
    work = prefill.prompt(length, asked.prefix, asked.chunk, budget)
    placed = forward.place(replace(setting.machine, domain=pool.profile.links.domain), pool.at)
    return float(np.asarray(prefill.prompt_seconds(placed, pool.profile, work, alone=False) * ONE).reshape(-1)[0])
