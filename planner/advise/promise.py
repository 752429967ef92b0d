"""Rules on the promise and the batch: what binds, what a larger batch would do, what the targets mean together."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from planner.advise.advice import Advice, Numbers
from planner.plan import Plan
from planner.serving import decode
from planner.serving.baselines import request_seconds
from planner.serving.thresholds import mean_empty_slots
from planner.setting import resolve
from planner.specs.scenario import Scenario
from planner.units import gigabytes, show, whole
from planner.variants import applicable, known, outcome, step_of, step_sides, tpot_at, untimed

FULL = 0.98
"""Memory share from which on hardly anything is left outside the engine's budget: assumed, by what drivers keep."""


def binding_limit(s: Scenario, plan: Plan) -> Advice | None:
    """Articles 9.4 and 11.1: the batch is the smaller of two, and the promise binds first. Says which binds, and when."""
    if not plan.fits or plan.tpot_ms is None or plan.b_max_sla < 1:
        return None
    numbers: Numbers = (("by_sla", float(plan.b_max_sla), "sequences"), ("by_kv", float(plan.b_max_kv), "sequences"))
    first = "The SLA" if plan.b_max_sla <= plan.b_max_kv else "The cache"
    text = f"{first} binds first: {_allowed(plan.b_max_sla)} by the SLA, {whole(plan.b_max_kv)} by cache."
    alone = outcome(s.with_(prefill="excluded", at_batch=None)).b_max_sla if s.prefill == "colocated" else None
    if alone is not None:
        other = (
            "still binds first" if (alone <= plan.b_max_kv) == (plan.b_max_sla <= plan.b_max_kv) else "does not bind"
        )
        if first == "The cache":
            other = "still does not bind"
        text += f" Without prefill on the same GPUs the SLA would allow {_allowed(alone)} and {other}."
        numbers = (*numbers, ("by_sla_decode_alone", alone, "sequences"))
    return Advice("binding_limit", "advice", text, numbers, "9.4, 11.1")


def _allowed(batch: float) -> str:
    """A batch that an SLA allows; where the search met no limit, that there is none."""
    return "any number of requests" if batch >= decode.LARGEST_BATCH else show(batch, "requests")


def batch_beyond_promise(s: Scenario, plan: Plan) -> Advice | None:
    """Article 11.2: a larger batch is not better without end. Fires where the asked batch breaks the promise."""
    if s.at_batch is None or plan.tpot_ms is None or plan.b_max_sla < 1 or s.at_batch <= plan.b_max_sla:
        return None
    best = outcome(s.with_(at_batch=None))
    if not best.stands:
        return None
    numbers: Numbers = (
        ("batch", float(s.at_batch), "sequences"),
        ("tpot", plan.tpot_ms, "ms"),
        ("best", best.batch, "sequences"),
        ("good", best.goodput_tok_s_gpu or 0.0, "tok/s per GPU"),
    )
    text = (
        f"At {show(s.at_batch, 'requests')} output rises to {show(plan.output_tok_s, 'tok/s')} but TPOT is "
        f"{show(plan.tpot_ms, 'ms')} and no token is good; {show(best.batch, 'requests')} are the most that keep the SLA."
    )
    return Advice("batch_beyond_promise", "warning", text, numbers, "11.2", applicable(s, {"at_batch": None}))


def amortise_weights(s: Scenario, plan: Plan) -> Advice | None:
    """Articles 6.3 and on batch intensity: raise the batch, weights are read once. Says what twice the batch would do."""
    twice = tpot_at(s.with_(at_batch=None), plan.batch * 2.0)
    if twice is None or plan.tpot_ms is None or plan.b_max < 1:
        return None
    gain = 2 * plan.tpot_ms / twice - 1
    numbers: Numbers = (("batch", float(plan.batch), "sequences"), ("tpot_twice", twice, "ms"), ("gain", gain, ""))
    stop = f"the plan stops at {whole(plan.b_max)} ({BECAUSE.get(plan.binds, 'as asked')})"
    if s.at_batch is not None and s.at_batch < plan.b_max:
        stop = f"left unset, the batch would be {whole(plan.b_max)} ({BECAUSE.get(plan.binds, 'as asked')})"
    text = (
        f"Twice the batch ({show(plan.batch * 2, 'requests')}) would raise TPOT from {show(plan.tpot_ms, 'ms')} to "
        f"{show(twice, 'ms')} and output by {show(gain, '%')}; {stop}."
    )
    change = applicable(s, {"at_batch": None}) if s.at_batch is not None and s.at_batch < plan.b_max else None
    return Advice("amortise_weights", "advice", text, numbers, "6.3, 11.2", change)


BECAUSE = {"kv": "the cache is full", "tpot": "TPOT", "ttft": "TTFT", "engine": "the engine's own limit"}
"""What stops a batch, in words."""


@lru_cache(maxsize=256)
def _crossover(s: Scenario) -> float:
    """Largest batch at which a step takes longer to read memory than to compute."""

    def keeps(batch: np.ndarray) -> np.ndarray:
        compute, memory = step_sides(s, step_of(s, batch))
        return np.asarray(compute < memory)

    return float(decode.largest_batch(keeps, (1, 1))[0, 0])


def decode_bound(s: Scenario, plan: Plan) -> Advice | None:
    """Article 11.2: plan decoding by bandwidth, not by peak FLOPS. Says up to which batch that is true here."""
    if plan.tpot_ms is None:
        return None
    limit = _crossover(untimed(s))
    compute, memory = (
        float(np.reshape(x, -1)[0]) for x in step_sides(s, step_of(s, np.full((1, 1), float(plan.batch))))
    )
    numbers: Numbers = (
        ("crossover", limit, "sequences"),
        ("compute", compute * 1e3, "ms"),
        ("memory", memory * 1e3, "ms"),
    )
    ever = "computing never takes over"
    if limit < decode.LARGEST_BATCH:
        ever = f"computing takes over beyond {show(limit, 'requests')}"
    by = "bandwidth, not by peak FLOPS" if compute < memory else "its FLOPS: bandwidth no longer decides"
    text = (
        f"A decode step of {show(plan.batch, 'requests')} would take {show(memory * 1e3, 'ms')} to read memory and "
        f"{show(compute * 1e3, 'ms')} to compute: plan it by {by}; {ever}."
    )
    return Advice("decode_bound", "advice", text, numbers, "11.2")


def ttft_above_promise(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake: a TTFT promise that a lone prompt of this length breaks on an idle replica."""
    if plan.ttft_unloaded_ms is None or plan.ttft_unloaded_ms <= s.sla_ttft_ms:
        return None
    fixed = resolve(s).profile.ttft_fixed * 1e3
    share = max(s.sla_ttft_ms - fixed, 0.0) / max(plan.ttft_unloaded_ms - fixed, 1e-9)
    fits = math.floor(s.isl * share)
    shorter = (
        f": in proportion, prompts of about {whole(fits)} tokens would keep it" if fits else " before a prompt is read"
    )
    numbers: Numbers = (("ttft", plan.ttft_unloaded_ms, "ms"), ("longest_prompt", float(fits), "tokens"))
    text = (
        f"A prompt of {whole(s.isl)} tokens takes {show(plan.ttft_unloaded_ms, 'ms')} on an idle replica, above the SLA of "
        f"{show(s.sla_ttft_ms, 'ms')}{shorter}."
    )
    return Advice("ttft_above_promise", "warning", text, numbers, "7.3", None)


def promises_disagree(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake: targets that cannot bind together. Fires where TTFT stops the batch short of the promised TPOT."""
    if plan.binds != "ttft" or plan.b_max_sla < 1 or plan.tpot_ms is None or plan.ttft_unloaded_ms is None:
        return None
    reached = tpot_at(s.with_(at_batch=None), plan.b_max_sla)
    needed = plan.ttft_unloaded_ms + s.sla_tpot_ms / 2
    if reached is None or needed <= s.sla_ttft_ms:
        return None
    numbers: Numbers = (("tpot_reached", reached, "ms"), ("ttft_needed", needed, "ms"))
    text = (
        f"The two SLAs disagree: TTFT stops the batch at {show(plan.b_max_sla, 'requests')}, where TPOT is "
        f"{show(reached, 'ms')}; "
        f"{show(s.sla_tpot_ms, 'ms')} could be used up only with a TTFT SLA of {show(needed, 'ms')}."
    )
    return Advice(
        "promises_disagree", "warning", text, numbers, "1.2", applicable(s, {"sla_ttft_ms": float(math.ceil(needed))})
    )


def request_latency(s: Scenario, plan: Plan) -> Advice | None:
    """Articles 1.2 and 6.4: what TTFT and TPOT add up to, as promised and as planned."""
    if plan.tpot_ms is None or plan.ttft_ms is None:
        return None
    promised = float(
        request_seconds(np.asarray(s.sla_ttft_ms / 1e3), np.asarray(s.sla_tpot_ms / 1e3), np.asarray(float(s.osl)))
    )
    planned = float(
        request_seconds(np.asarray(plan.ttft_ms / 1e3), np.asarray(plan.tpot_ms / 1e3), np.asarray(float(s.osl)))
    )
    numbers: Numbers = (("promised", promised, "s"), ("planned", planned, "s"))
    text = (
        f"The SLAs add up to {show(promised, 's')} for a request of {whole(s.osl)} output tokens; this plan takes "
        f"{show(planned, 's')}, queue not in it. A total below that contradicts them."
    )
    return Advice("request_latency", "advice", text, numbers, "1.2, 6.4")


def whole_memory(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake: giving the engine all of the memory, so that nothing is left for what lives outside its budget."""
    setting = resolve(s)
    if s.util is None or s.util < FULL or not setting.convention.overheads:
        return None
    graphs = 0.0 if setting.engine.graphs_in_budget else plan.graph_bytes
    own = setting.engine.memory_utilisation
    numbers: Numbers = (("left", plan.withheld_bytes, "bytes"), ("graphs", graphs, "bytes"), ("own", own, ""))
    needs = f", and CUDA graphs of {gigabytes(graphs)} need to fit there" if graphs else ""
    text = (
        f"util={s.util:g} leaves {gigabytes(plan.withheld_bytes)} per GPU outside the engine's budget for other processes and "
        f"fragmentation{needs}; {setting.engine.name}'s own share is {own:g}."
    )
    return Advice("whole_memory", "warning", text, numbers, "9.3", applicable(s, {"util": None}))


def block_fragments(s: Scenario, plan: Plan) -> Advice | None:
    """Article 11.2: about 8 tokens a sequence are lost to blocks. Says what that is here; never together with 96 %."""
    setting = resolve(s)
    if not plan.fits:
        return None
    wasted = float(mean_empty_slots(setting.engine.block_size))
    if not wasted:
        return None
    share = wasted / (s.isl + s.osl)
    numbers: Numbers = (
        ("wasted", wasted, "tokens"),
        ("share", share, ""),
        ("block", float(setting.engine.block_size), "tokens"),
    )
    counted = "counted already: capacities are in whole blocks" if setting.convention.overheads else (
        f"the textbook counts {show(1 - setting.convention.cache_utilisation, '%')} instead: never subtract both"
    )  # fmt: skip
    text = (
        f"Blocks of {setting.engine.block_size} tokens leave {show(wasted)} tokens of a sequence empty, {show(share, '%')} of "
        f"{whole(s.isl + s.osl)}; {counted}."
    )
    return Advice("block_fragments", "advice", text, numbers, "11.2")


def borrowed_speed(s: Scenario, plan: Plan) -> Advice | None:
    """Article, introduction: numbers of accelerators without public benchmarks are derived. Warns where speeds are borrowed."""
    profile = resolve(s).profile
    if profile.borrowed_from is None or plan.tpot_ms is None or plan.tpot_high_ms is None:
        return None
    safe = known(s).setting.scenario.sla_tpot_ms / profile.band[1]
    numbers: Numbers = (
        ("low", profile.band[0], ""),
        ("high", profile.band[1], ""),
        ("tpot_high", plan.tpot_high_ms, "ms"),
    )
    text = (
        f"No public measurement of this accelerator stands behind its speed: efficiencies are those of {profile.borrowed_from}, "
        f"TPOT may be up to {show(plan.tpot_high_ms, 'ms')}. An "
        f"estimate of {show(safe, 'ms')} would keep the SLA over the whole band; measure before buying."
    )
    return Advice("borrowed_speed", "warning", text, numbers, "0")
