"""Static batching, the baseline of the articles: a batch is admitted whole and ends with its last request."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("article, section 3.1: every request reserves the longest sequence, contiguously", "sequences")
def contiguous_sequences(pool: Column, reserved: Column, ranks: Column) -> Column:
    """Requests whose reserved cache a replica's pools hold."""
    per_rank = np.floor(np.maximum(pool, 0.0) / reserved)  # [sequences]
    return per_rank * ranks  # [sequences]


@formula("definition: all prompts are read one after another, then all requests decode together", "tokens/s")
def static_rate(batch: Column, prompt_time: Column, token_time: Column, osl: float) -> Column:
    """Output tokens a second of one replica, requests of equal length."""
    prompts = batch * prompt_time  # [s]
    decoding = (osl - 1.0) * token_time  # [s]
    return batch * osl / (prompts + decoding)  # [tokens/s]


@formula("definition: the mean request of a batch has half of the others' prompts before its own", "s")
def static_ttft(batch: Column, prompt_time: Column) -> Column:
    """Mean time to first token of a batch that is admitted whole, the wait for its beginning not in it."""
    before = (batch - 1.0) / 2.0  # [1]
    return (before + 1.0) * prompt_time  # [s]
