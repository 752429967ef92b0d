"""Throughput, and the part of it that keeps the promise."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("definition: a running sequence yields one token per TPOT", "tokens/s")
def output_rate(batch: Column, tpot: Column) -> Column:
    """Output tokens a second of one replica at a batch."""
    return batch / tpot  # [tokens/s]


@formula("mean-field: all of the throughput if mean TTFT and TPOT keep the promise, else none", "tokens/s")
def good_rate(rate: Column, tpot: Column, ttft: Column, sla_tpot: float, sla_ttft: float) -> Column:
    """Output tokens a second of requests that met the SLA, one replica."""
    kept = (tpot <= sla_tpot) & (ttft <= sla_ttft)  # [1]
    return np.where(kept, rate, 0.0)  # [tokens/s]
