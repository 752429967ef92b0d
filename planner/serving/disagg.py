"""Prefill in a pool of its own: what the transfer of a prompt's cache costs, and how many workers the pool needs."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("alpha-beta law; bytes are spread over the links of a request, of which a share is reached", "s")
def kv_transfer_seconds(
    cache_bytes: Column, links: Column, bandwidth: Column, efficiency: float, alpha: Column
) -> Column:
    """Time to move the cache of one prompt from the prefill pool to the decode pool."""
    reached = links * bandwidth * efficiency  # [B/s]
    return alpha + cache_bytes / reached  # [s]


@formula("sent layer by layer a transfer hides behind prefill, but the last layer's part does not", "s")
def exposed_transfer_seconds(transfer: Column, prompt: Column, layers: int) -> Column:
    """Transfer time that a request waits for when every layer's cache leaves as soon as it is computed."""
    last = transfer / layers  # [s]
    behind = prompt * (1.0 - 1.0 / layers)  # [s]
    return np.maximum(last, transfer - behind)  # [s]


@formula("definition: a prefill worker serves one prompt at a time, to a share of its time", "requests/s")
def prefill_rate(workers: Column, prompt: Column, load: float) -> Column:
    """Prompts a second that a pool of prefill workers carries."""
    return workers * load / prompt  # [requests/s]


@formula("definition: prompts a second times the time that each keeps a worker busy", "workers")
def workers_busy(requests: Column, prompt: Column) -> Column:
    """Prefill workers that a request rate keeps busy on average."""
    return requests * prompt  # [workers]


@formula("definition: prompts a second over what one worker may carry, rounded up; at least one", "workers")
def prefill_workers(requests: Column, prompt: Column, load: float) -> Column:
    """Prefill workers that feed a request rate."""
    busy = requests * prompt / load  # [workers]
    return np.maximum(np.ceil(busy), 1.0)  # [workers]


@formula("definition: requests that decode replicas finish a second", "requests/s")
def decode_requests(rate: Column, replicas: Column, osl: float) -> Column:
    """Request rate that the decode pool can take from the prefill pool."""
    return rate * replicas / osl  # [requests/s]
