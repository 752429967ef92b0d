"""What serving techniques gain over doing without, in closed form: batching, scheduling, prefix caching, latency."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("definition: a static batch ends with its longest sequence", "1")
def idle_share(tokens: Column, longest: Column) -> Column:
    """Share of its slot's time that a finished sequence leaves idle in a static batch."""
    busy = tokens / longest  # [1]
    return 1.0 - busy  # [1]


@formula("definition: host work once every N steps instead of in each", "1")
def multi_step_gain(host_share: Column, steps: Column) -> Column:
    """Speed of a step when the host schedules several at a time, from the share of a step that is host time."""
    left = 1.0 - host_share + host_share / steps  # [1]
    return 1.0 / left  # [1]


@formula("definition: hits save their share of the prefill share of an engine's time", "1")
def prefix_gain(prefill_share: Column, hit: Column) -> Column:
    """Throughput with prefix caching over throughput without."""
    left = 1.0 - prefill_share * hit  # [1]
    return 1.0 / left  # [1]


@formula("the prefix gain, solved for the prefill share", "1")
def implied_prefill_share(gain: Column, hit: Column) -> Column:
    """Share of an engine's time in cacheable prefill that explains a measured gain."""
    saved = 1.0 - 1.0 / gain  # [1]
    return saved / hit  # [1]


@formula("definition: turns of equal length, everything but the newest is cached", "1")
def conversation_hit(turns_before: Column) -> Column:
    """Prefix hit rate of the next turn of a conversation."""
    return turns_before / (turns_before + 1.0)  # [1]


@formula("definition: the first token, then one interval for each further one", "s")
def request_seconds(ttft: Column, tpot: Column, tokens: Column | float) -> Column:
    """End-to-end latency of a request of so many output tokens."""
    return ttft + tpot * (tokens - 1.0)  # [s]


@formula("the end-to-end latency, solved for TPOT", "s")
def tpot_within(total: Column, ttft: Column, tokens: Column) -> Column:
    """Slowest TPOT that still ends a request within a total."""
    return (total - ttft) / (tokens - 1.0)  # [s]


@formula("definition: whole steps of at most one chunk each", "steps")
def prompt_steps(tokens: Column, chunk: Column) -> Column:
    """Engine steps that a chunked prompt takes."""
    return np.ceil(tokens / chunk)  # [steps]


@formula("definition", "1")
def time_saved(before: Column, after: Column) -> Column:
    """Share of a time that an improvement saves."""
    return 1.0 - after / before  # [1]


@formula("serving article, table 9.6: a curve through its rows, without a mechanism", "1")
def fading_gain(batch: Column, gain: float, half: float, power: float) -> Column:
    """Speed with speculation over speed without, which fades as the batch grows."""
    grown = (batch / half) ** power  # [1]
    return 1.0 + gain / (1.0 + grown)  # [1]
