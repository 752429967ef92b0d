"""What is left of a class's replicas when some of them fail, and how many failures must be borne."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

MOST_REPLICAS: Final = 2_000
"""Most replicas of one class."""

SLACK: Final = 1e-6
"""Share of a demand that counts as none: the solver's tolerance."""

EXACT: Final = 1e-12
"""Probabilities that differ by less are equal."""


@dataclass(frozen=True)
class Redundancy:
    """How many replicas of a class may fail at the same time without traffic being lost.

    Attributes:
        spare: that many, whichever they are.
        availability, target: or as many as follow from the share of time that a replica is up, and from the share of time
            that all traffic is to be served: replicas fail independently, and those that fail are taken to be the largest.
    """

    spare: int = 0
    availability: float | None = None
    target: float | None = None

    def failures(self, replicas: int) -> int:
        """Failures that a class with so many replicas must bear; never falls with more replicas."""
        if self.availability is None or self.target is None:
            return self.spare
        return int(_tolerated(self.availability, self.target)[min(replicas, MOST_REPLICAS)])

    @property
    def none(self) -> bool:
        """Whether nothing needs to be borne."""
        return self.spare == 0 and self.availability is None

    def alone(self, capacity: float, demand: float) -> int | None:
        """Fewest replicas of one capacity that serve a demand [requests/s], failures borne; None = more than the most."""
        counts = range(max(1, int(np.ceil(demand * (1 - SLACK) / capacity))), MOST_REPLICAS + 1)
        return next((n for n in counts if (n - self.failures(n)) * capacity >= demand * (1 - SLACK)), None)


NO_REDUNDANCY: Final = Redundancy()
"""No failure is borne."""


@lru_cache(maxsize=64)
def _tolerated(availability: float, target: float) -> npt.NDArray[np.int64]:
    """Fewest failures k with P[at most k of n fail] ≥ target, for n from 0 to the most replicas."""
    counts = np.arange(MOST_REPLICAS + 1.0)
    borne = np.zeros(counts.shape, dtype=np.int64)
    open_ = counts > 0
    k = 0
    while open_.any():
        held = np.where(counts > k, bdtr(float(k), np.maximum(counts, k + 1).astype(int), 1.0 - availability), 1.0)
        done = open_ & (held >= target - EXACT)
        borne[done] = k
        open_ &= ~done
        k += 1
    return borne


def surviving(capacities: Sequence[float], failures: int) -> float:
    """Capacity that is left when the largest replicas fail [unit of the capacities]."""
    return sum(sorted(capacities)[: max(len(capacities) - failures, 0)])
