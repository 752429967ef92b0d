"""The alpha-beta law of a collective by group size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Tag = Literal["published", "fitted", "borrowed", "assumed"]
"""Where a constant comes from: a vendor or paper, a fit to this accelerator's kernels, a fit to another's, a convention."""


@dataclass(frozen=True)
class CollectiveLaw:
    """`seconds = alpha(n) + traffic / bus_bandwidth(n)` of one collective, tabulated by group size.

    `devices`, `alpha` [s] and `bus_bandwidth` [B/s] are parallel tuples, ascending in `devices`. Traffic follows the
    nccl-tests convention: an all-reduce of `b` bytes over `n` ranks moves `2(n−1)/n · b` through the bus bandwidth, an
    all-gather of `b` gathered bytes `(n−1)/n · b`. Between tabulated sizes the constants are interpolated in log(n);
    outside they are held.
    """

    devices: tuple[int, ...]
    alpha: tuple[float, ...]
    bus_bandwidth: tuple[float, ...]
    tag: Tag = "fitted"
    source: str = ""
    median_error: float | None = None
    """Of the fit to timed collectives; None = no fit says."""

    def constants(self, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Alpha [s] and bus bandwidth [B/s] for group sizes `n` (any shape)."""
        return tabulated(self.devices, self.alpha, self.bus_bandwidth, n)


def tabulated(
    sizes: tuple[int, ...], alpha: tuple[float, ...], bandwidth: tuple[float, ...], n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Alpha and bandwidth between tabulated group sizes, interpolated in log(n)."""
    at = np.log2(np.maximum(n, 1.0))
    grid = np.log2(np.asarray(sizes, dtype=float))
    return np.interp(at, grid, alpha), np.interp(at, grid, bandwidth)
