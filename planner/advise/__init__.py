"""Advice on a scenario: every decision rule of the source articles and every common mistake, worked out on variants.

Nothing is quoted: a rule prices the scenario and what it would change through the one path, and says what it finds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from planner.advise.advice import Advice, Rule
from planner.advise.caches import cache_copies, dcp_shards_cache, latent_copies
from planner.advise.degrees import (
    cp_for_ttft,
    little_kv,
    pipeline_starves,
    pp_for_throughput,
    smallest_layout,
    tp_for_latency,
    tp_limit_of_links,
    tp_over_slow_links,
    weights_per_gpu,
)
from planner.advise.drafts import spec_concurrency, spec_off, spec_on
from planner.advise.experts import (
    dp_ep_at_high_batch,
    expert_tiles,
    experts_beyond_domain,
    experts_in_one_domain,
    experts_on_one,
    tp_ep_at_low_batch,
)
from planner.advise.gateway import gateway, queue_share
from planner.advise.judged import judged, sound
from planner.advise.pools import (
    chunk_breaks_tpot,
    chunk_from_promise,
    disaggregate,
    homogeneous_pool,
    prefill_budget,
    stay_colocated,
)
from planner.advise.precisions import (
    fp8_at_high_batch,
    int4_at_high_batch,
    int4_at_low_batch,
    int4_when_memory_limited,
    int8_without_fp8,
    weight_share,
)
from planner.advise.promise import (
    amortise_weights,
    batch_beyond_promise,
    binding_limit,
    block_fragments,
    borrowed_speed,
    decode_bound,
    promises_disagree,
    request_latency,
    ttft_above_promise,
    whole_memory,
)
from planner.single import plan_of
from planner.specs.scenario import Scenario

RULES: Final[tuple[Rule, ...]] = (
    ttft_above_promise, batch_beyond_promise, promises_disagree, little_kv, latent_copies, cache_copies,
    tp_over_slow_links, int4_at_high_batch, spec_off, chunk_breaks_tpot, prefill_budget, disaggregate, pipeline_starves,
    experts_beyond_domain, whole_memory, borrowed_speed,
    fp8_at_high_batch, int4_at_low_batch, int4_when_memory_limited, int8_without_fp8,
    homogeneous_pool, stay_colocated, chunk_from_promise, cp_for_ttft,
    tp_for_latency, tp_limit_of_links, pp_for_throughput, smallest_layout, dcp_shards_cache,
    tp_ep_at_low_batch, dp_ep_at_high_batch, experts_on_one, experts_in_one_domain, expert_tiles,
    spec_on, spec_concurrency, gateway, queue_share,
    binding_limit, amortise_weights, decode_bound, weight_share, weights_per_gpu, block_fragments, request_latency,
)  # fmt: skip
"""Every rule, in the order in which what it says is shown: mistakes, then what would change most."""


@lru_cache(maxsize=256)
def advise(scenario: Scenario) -> tuple[Advice, ...]:
    """What every rule says about a scenario: warnings first, each kind in the order of `RULES`.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    plan = plan_of(scenario)
    found = [each for rule in RULES if (each := rule(scenario, plan)) is not None and _known(each)]
    said = [each for each in (judged(each, scenario) for each in found) if sound(each)]
    return tuple(sorted(said, key=lambda each: each.kind != "warning"))


def _known(said: Advice) -> bool:
    """Whether every number of a piece of advice is one; what rests on an unknown or endless number is not said."""
    return all(math.isfinite(value) for _, value, _ in said.numbers)


__all__ = ["RULES", "Advice", "Rule", "advise"]
