"""What operators cost one device, before any clock: `Work`, and named rows of it, the `Ledger`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from planner.formula import mark

Column: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Work:
    """One operator on one device, per launch.

    Attributes:
        kind: operator kind (`gemm`, `experts`, `attn_decode` …, a kind of `comms.LINK_KINDS`, or `host`).
        precision: kernel precision (`bf16`, `fp8` …), chooses law and peak.
        flops: floating-point operations of one launch [FLOP].
        hbm_bytes: bytes that one launch moves between memory and chip [B].
        launches: how often the pass launches it.
        link_bytes: what one launch puts on one link [B]; messages: group size of a collective (1 = none), messages in
            sequence of an exchange between domains.
        length: prompt length that prefill attention's efficiency depends on [tokens]; 0 elsewhere.
    """

    kind: str
    precision: str
    flops: Column
    hbm_bytes: Column
    launches: Column
    link_bytes: Column
    messages: Column
    length: Column


@dataclass(frozen=True)
class Entry:
    """A named row of a ledger; `group` is what charts and sentences call it (weights, kv, experts, collectives, host)."""

    name: str
    group: str
    work: Work

    def __post_init__(self) -> None:
        """A recording of the arithmetic notes which operator the formulas before it were about."""
        mark(self)


Ledger: TypeAlias = tuple[Entry, ...]
"""One pass on one device, operator by operator."""

ZERO: Column = np.zeros(1)
ONE: Column = np.ones(1)
