"""Where one technique overtakes another: transfers against interference, drafts against verification, tiles, pools."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("article, section 4.3: cache bytes of a prompt over the link, plus one message", "s")
def prompt_transfer_seconds(sequence_bytes: Column, bandwidth: float, efficiency: float, alpha: float) -> Column:
    """Time to hand the cache of one prompt from a prefill worker to a decoding one, each device over its own NIC."""
    reached = bandwidth * efficiency  # [B/s]
    return alpha + sequence_bytes / reached  # [s]


@formula("definition: what prefill adds to each step, over all steps of a request after its first token", "s")
def request_interference(shared: Column, alone: Column, osl: float) -> Column:
    """How much longer a request takes because other requests' prompts share its steps."""
    added = shared - alone  # [s]
    return added * (osl - 1.0)  # [s]


@formula("definition: prompts a second that a decode replica finishes, times the time of one prompt", "1")
def prefill_per_decode(rate: Column, osl: float, prompt_time: Column) -> Column:
    """Prefill replicas that one decode replica keeps busy."""
    prompts = rate / osl  # [1/s]
    return prompts * prompt_time  # [1]


@formula("definition: a decode replica's tokens over its own devices and its share of the prefill pool", "tokens/s")
def pooled_rate(rate: Column, devices: Column, prefill_devices: Column) -> Column:
    """Output tokens a second and device when prefill has a pool of its own."""
    whole = devices + prefill_devices  # [devices]
    return rate / whole  # [tokens/s]


@formula("Leviathan et al., ICML 2023, eq. 1: a geometric series of acceptances", "tokens")
def tokens_a_verification(accept: Column, drafts: float) -> Column:
    """Expected tokens that one verification yields; the limit at an acceptance of one."""
    rejected = np.maximum(1.0 - accept, 1e-12)  # [1]
    series = (1.0 - accept ** (drafts + 1.0)) / rejected  # [tokens]
    return np.where(accept < 1.0, series, drafts + 1.0)  # [tokens]


@formula("article, section 5.2, with the verification priced as the step that it is", "1")
def drafting_gain(tokens: Column, step: Column, verify: Column, drafts: float, share: float) -> Column:
    """Time of a token without drafts over its time with them."""
    drafting = drafts * share * step  # [s]
    round_trip = verify + drafting  # [s]
    return tokens * step / round_trip  # [1]


@formula("definition: routed tokens over experts", "tokens")
def tokens_an_expert(tokens: Column, top_k: int, count: int) -> Column:
    """Mean tokens that one routed expert of a layer gets in a step."""
    routed = tokens * top_k  # [tokens]
    return routed / count  # [tokens]


@formula(
    "definition: block tables round the last block up; on average half a block, less half a token, is empty", "tokens"
)
def block_waste(block: int) -> Column:
    """Cache tokens of a sequence that its last block leaves empty, on average."""
    return np.asarray((block - 1.0) / 2.0)  # [tokens]


@formula("article, sections 1.2 and 6.4", "s")
def request_seconds(first: Column, token: Column, osl: float) -> Column:
    """Time of a whole request, queue not in it."""
    return first + token * (osl - 1.0)  # [s]
