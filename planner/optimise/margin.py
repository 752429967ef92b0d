"""How sure a share is that was counted in a simulation, whose requests wait for each other and so are not independent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Z: Final = 1.959964
"""Quantile of the normal distribution that leaves 2.5 % above it: intervals hold 95 %."""

BATCHES: Final = 20
"""Runs of neighbours whose means tell how much requests depend on each other."""


@dataclass(frozen=True)
class Share:
    """A share that was counted, and the interval that holds the true one at 95 %, all 0 to 1."""

    value: float
    low: float
    high: float

    def reaches(self, wanted: float) -> bool | None:
        """Whether the true share is at least as large; None where it is too close to call."""
        if self.low >= wanted:
            return True
        return False if self.high < wanted else None


def share_of(kept: npt.NDArray[np.bool_]) -> Share:
    """The share of requests that kept something, in the order in which they arrived; there is at least one."""
    count, value = len(kept), float(kept.mean())
    return Share(value, *wilson(value, count / dependence(kept)))


def wilson(value: float, count: float) -> tuple[float, float]:
    """Wilson's interval of a share among so many independent requests (Wilson 1927)."""
    weight = Z * Z / count
    middle = (value + weight / 2) / (1 + weight)
    half = Z / (1 + weight) * math.sqrt(value * (1 - value) / count + weight / (4 * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def dependence(kept: npt.NDArray[np.bool_]) -> float:
    """How many times as much the means of runs of neighbours vary as those of independent requests would; at least 1.

    So many requests tell as much as one that is independent (method of batch means; Law, Simulation Modeling and Analysis).
    """
    size, value = len(kept) // BATCHES, float(kept.mean())
    alone = value * (1 - value)
    if size < 1 or alone == 0:
        return 1.0
    means = kept[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return max(1.0, float(means.var(ddof=1)) * size / alone)
