"""Quantities that decision rules compare: interference of prompts, empty slots of blocks."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("definition: what prefill adds to each step, over all steps of a request after its first token", "s")
def request_interference(shared: Column, alone: Column, osl: float) -> Column:
    """How much longer a request takes because other requests' prompts share its steps."""
    added = shared - alone  # [s]
    return added * (osl - 1.0)  # [s]


@formula(
    "definition: block tables round the last block up; on average half a block, less half a token, is empty", "tokens"
)
def mean_empty_slots(block: int) -> Column:
    """Cache tokens of a sequence that its last block leaves empty, on average."""
    return np.asarray((block - 1.0) / 2.0)  # [tokens]
