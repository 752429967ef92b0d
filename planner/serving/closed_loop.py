"""What a load test with a fixed number of requests in flight measures, from the same seconds as a plan.

A plan says what a replica does while its batch decodes. A closed loop holds requests in flight: each waits for its
first token, then for the others, and is replaced by the next as soon as it ends. Benchmarks start with all requests at
once, so their mean time to first token carries a share of everybody's prompts.
"""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("fit to public closed-loop measurements: a share of the prompts of all requests in flight is waited for", "s")
def first_token_seconds(unloaded: Column, step: Column, held: Column, prompt: Column, wait: Column | float) -> Column:
    """Mean TTFT of requests that run, in a closed loop that starts with all of them at once."""
    others = np.maximum(held - 1.0, 0.0) * prompt  # [s]
    return unloaded + step / 2.0 + wait * others  # [s]


@formula(
    "Little's law: output tokens a second = requests in flight · tokens of each / time that each is in flight",
    "tokens/s",
)
def closed_loop_rate(running: Column, osl: Column | float, residence: Column) -> Column:
    """Output tokens a second of a replica that always has so many requests running."""
    return running * osl / residence  # [tokens/s]


@formula("Little's law: requests beyond those that fit wait for as many turns", "s")
def admission_seconds(in_flight: Column, running: Column, residence: Column) -> Column:
    """Time that a request waits for a slot when more are in flight than run."""
    turns = np.maximum(in_flight / running - 1.0, 0.0)  # [1]
    return turns * residence  # [s]
