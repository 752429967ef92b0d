"""Laws of links: collectives inside and across a scale-up domain, and the exchange of tokens with experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.specs.collective import CollectiveLaw, Tag, tabulated


@dataclass(frozen=True)
class ExchangeLaw:
    """`seconds = alpha(n) + bytes / bandwidth(n)` of an expert dispatch or combine over n ranks, as measured by n.

    `ranks`, `alpha` [s] and `bandwidth` [B/s] are parallel tuples, ascending in `ranks`. Bytes are logical: tokens of
    one rank · experts a token · hidden · bytes an element, copies to the rank itself included, which is how DeepEP
    states its bandwidth. Between tabulated sizes constants are interpolated in log(n); outside they are held.
    """

    ranks: tuple[int, ...]
    alpha: tuple[float, ...]
    bandwidth: tuple[float, ...]
    tag: Tag = "fitted"
    source: str = ""
    median_error: float | None = None
    """Of the fit to timed exchanges; None = no fit says."""

    def constants(self, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Alpha [s] and bandwidth [B/s] for `n` ranks (any shape)."""
        return tabulated(self.ranks, self.alpha, self.bandwidth, n)


@dataclass(frozen=True)
class Exchange:
    """Dispatch and combine of one kernel family.

    Attributes:
        dispatch, combine: laws.
        dispatch_bytes, combine_bytes: bytes an element on the wire, scales included [B].
    """

    dispatch: ExchangeLaw
    combine: ExchangeLaw
    dispatch_bytes: float
    combine_bytes: float


@dataclass(frozen=True)
class Links:
    """Everything between devices, for one accelerator under one engine.

    Attributes:
        domain: devices in one scale-up domain; a larger group crosses it and then uses the NIC.
        all_reduce, gather: collectives inside a domain (`gather`: all-gather, and reduce-scatter, its mirror image).
        hop_alpha, hop_bandwidth: a message between two devices of one domain [s], [B/s].
        out_alpha, out_bandwidth: a message between two domains [s]; what one device's NIC share carries [B/s].
        small: exchange with experts by the kernels that decode uses (low latency).
        large: exchange with experts by the kernels that prefill uses (high throughput).
        notes: what a reader must know (borrowed laws, assumed NICs).
    """

    domain: float
    all_reduce: CollectiveLaw
    gather: CollectiveLaw
    hop_alpha: float
    hop_bandwidth: float
    out_alpha: float
    out_bandwidth: float
    small: Exchange
    large: Exchange
    notes: tuple[str, ...] = ()

    @property
    def wire(self) -> tuple[float, float]:
        """Bytes an element of dispatch and combine, low-latency kernels [B]."""
        return self.small.dispatch_bytes, self.small.combine_bytes
