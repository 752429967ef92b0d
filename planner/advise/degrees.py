"""Rules on how a replica is spread over devices: tensor and pipeline parallelism, context, and what fits at all."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from planner.advise.advice import Advice, Numbers
from planner.catalog.accelerators import accelerator
from planner.plan import Plan
from planner.rows import Bounds, bounds
from planner.setting import Setting, resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.tabulate import table
from planner.units import gigabytes, show, whole
from planner.variants import Change, Outcome, applicable, changed, outcome, refused, row, tpot_at

POWERS = (1, 2, 4, 8, 16, 32, 64)
"""Tensor-parallel degrees that are compared."""

STARVED = 1.5
"""Output per device at twice the devices over that now, from which on a cache counts as starved: assumed, three times the
output for twice the money leaves no doubt."""

NOTICEABLE = 0.02
"""Change of a time or rate below which two plans are called equal; a tenth of the band of a typical estimate."""


@lru_cache(maxsize=256)
def _degrees(scenario: Scenario) -> tuple[Setting, Bounds]:
    """Tensor-parallel degrees alone, experts spread as far as they were asked to be, up to the devices there are."""
    setting = resolve(scenario.with_(pp=1, dp=1, cp=1, dcp=1, ep=1))
    degrees = np.array(POWERS, dtype=float)
    return setting, bounds(setting, layout(tp=degrees, ep=np.minimum(degrees, float(scenario.ep))).tall)


@lru_cache(maxsize=256)
def by_degree(scenario: Scenario) -> dict[int, Outcome]:
    """Plans at each tensor-parallel degree alone, at the batch that is set or each one's own largest."""
    held = None if scenario.at_batch is None else np.full((1, 1), float(scenario.at_batch))
    found = table(*_degrees(scenario), held)
    return {tp: row(found, at) for at, tp in enumerate(POWERS)}


@lru_cache(maxsize=256)
def tpot_by_degree(scenario: Scenario, batch: int) -> dict[int, float]:
    """TPOT at one batch over tensor-parallel degrees that hold at least one sequence [ms]."""
    found = table(*_degrees(scenario), np.full((1, 1), float(batch)))
    times = {tp: row(found, at).tpot_ms for at, tp in enumerate(POWERS)}
    return {tp: tpot for tp, tpot in times.items() if tpot is not None}


def tp_for_latency(s: Scenario, plan: Plan) -> Advice | None:
    """Article 7.1: TP lowers latency. Says by how much here, all-reduces included, and what it costs per device."""
    wider = _twice(s) if plan.tpot_ms is not None else None
    if plan.tpot_ms is None or wider is None or refused(wider):
        return None
    then = tpot_at(s.with_(**_wider(s)), plan.batch)
    if then is None or then > plan.tpot_ms * (1 - NOTICEABLE):
        return None
    numbers: Numbers = (("tpot_now", plan.tpot_ms, "ms"), ("tpot_then", then, "ms"), ("tp", s.tp * 2.0, ""))
    shorter = show(1 - then / plan.tpot_ms, "%")
    per_gpu = per_device(plan.goodput_tok_s_gpu, wider.goodput_tok_s_gpu)
    text = (
        f"tp={s.tp * 2} shortens TPOT at {show(plan.batch, 'requests')} from {show(plan.tpot_ms, 'ms')} to "
        f"{show(then, 'ms')} ({shorter}), all-reduces included{per_gpu}."
    )
    return Advice("tp_for_latency", "advice", text, numbers, "7.1", applicable(s, _wider(s), wider), then=wider)


def _twice(s: Scenario) -> Outcome | None:
    """The plan with twice the tensor parallelism; None where there is other parallelism beside it, or no such plan."""
    if not _only_tp(s) or (variant := changed(s, _wider(s))) is None:
        return None
    return by_degree(s).get(s.tp * 2) if s.ep == 1 else outcome(variant)


def per_device(now: float | None, then: float | None) -> str:
    """What becomes of good tokens per device, as the end of a sentence."""
    if not now or not then:
        return ""
    return f"; good tokens per GPU go from {show(now, 'tok/s')} to {show(then, 'tok/s')}"


def _wider(s: Scenario) -> dict[str, int]:
    """Twice the tensor parallelism; experts spread with it where they were."""
    return {"tp": s.tp * 2, "ep": s.ep * 2 if s.ep > 1 else 1}


def _only_tp(s: Scenario) -> bool:
    """Whether tensor parallelism is the only kind of parallelism beside that of experts."""
    return s.pp == s.dp == s.cp == s.dcp == 1


def tp_over_slow_links(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake, and article 7.1: more TP than the links carry, so that all-reduces take more than they gain."""
    if plan.tpot_ms is None or s.tp == 1 or not _only_tp(s):
        return None
    times = {
        tp: tpot for tp, tpot in tpot_by_degree(s, plan.batch).items() if tp < s.tp and not refused(by_degree(s)[tp])
    }
    best = min(times, key=lambda tp: times[tp], default=s.tp)
    if best == s.tp or times[best] > plan.tpot_ms:
        return None
    gpu = accelerator(s.gpu)
    reduce = _all_reduce_ms(plan)
    numbers: Numbers = (
        ("tpot_now", plan.tpot_ms, "ms"),
        ("tpot_then", times[best], "ms"),
        ("all_reduce", reduce, "ms"),
    )
    text = (
        f"tp={s.tp} over {gpu.scale_up_name} is slower than tp={best}: TPOT {show(plan.tpot_ms, 'ms')} against "
        f"{show(times[best], 'ms')} at {show(plan.batch, 'requests')}; all-reduces take {show(reduce, 'ms')} of a step."
    )
    return Advice(
        "tp_over_slow_links",
        "warning",
        text,
        numbers,
        "7.1",
        applicable(s, {"tp": best, "ep": min(s.ep, best)}, by_degree(s)[best]),
    )


def _all_reduce_ms(plan: Plan) -> float:
    """Milliseconds of collectives in one step."""
    return sum(each.seconds for each in plan.ledger if each.bound_by == "link") * 1e3


def tp_limit_of_links(s: Scenario, plan: Plan) -> Advice | None:
    """Article 7.1: TP up to 4 on HCCS, up to 8 on NVLink. Says the degree beyond which TPOT stops falling here."""
    if plan.tpot_ms is None or not resolve(s).convention.overheads or not _only_tp(s):
        return None
    times = {tp: tpot for tp, tpot in tpot_by_degree(s, plan.batch).items() if by_degree(s)[tp].engine_ok}
    gains = [tp for tp in times if times.get(tp // 2, np.inf) * (1 - NOTICEABLE) > times[tp]]
    last = max(gains, default=1)
    gpu = accelerator(s.gpu)
    domain = gpu.scale_up_domain
    if last <= 1:
        return None
    end = "beyond, all-reduces eat the gain or heads run out"
    if last == POWERS[-1]:
        end = f"no degree beyond {POWERS[-1]} was compared"
    elif domain is not None and last >= domain:
        end = f"the domain of {domain} ends there" if last == domain else f"beyond {domain} GPUs it crosses the NIC"
    numbers: Numbers = (("last_tp", float(last), ""), ("tpot_there", times[last], "ms"))
    text = (
        f"Over {gpu.scale_up_name}, TPOT at {show(plan.batch, 'requests')} falls up to tp={last} "
        f"({show(times[last], 'ms')}); {end}."
    )
    return Advice("tp_limit_of_links", "advice", text, numbers, "7.1")


def pp_for_throughput(s: Scenario, plan: Plan) -> Advice | None:
    """Article 7.1: PP raises throughput. Says what two stages do on the same devices, with the batch in two micro-batches."""
    change = {"tp": s.tp // 2, "pp": 2, "ep": max(s.ep // 2, 1)}
    if plan.tpot_ms is None or s.tp < 2 or s.tp % 2 or not _only_tp(s) or plan.batch < 2:
        return None
    variant = changed(s, change)
    if variant is None or refused(found := outcome(variant)) or (then := tpot_at(variant, plan.batch)) is None:
        return None
    gain = plan.tpot_ms / then - 1
    numbers: Numbers = (
        ("tpot_now", plan.tpot_ms, "ms"), ("tpot_then", then, "ms"), ("gain", gain, ""),
        ("micro_batch", plan.batch / 2, "sequences"),
    )  # fmt: skip
    text = (
        f"Two stages of tp={s.tp // 2} on the same GPUs run {show(plan.batch, 'requests')} as two micro-batches, each "
        f"reading its stage's weights by itself: TPOT {show(then, 'ms')} against {show(plan.tpot_ms, 'ms')}, "
        f"{show(abs(gain), '%')} {'more' if gain > 0 else 'less'} output"
        f"{per_device(plan.goodput_tok_s_gpu, found.goodput_tok_s_gpu)}. "
        f"With fewer than two micro-batches in flight a stage idles."
    )
    better = (found.goodput_tok_s_gpu or 0.0) > (plan.goodput_tok_s_gpu or 0.0) * (1 + NOTICEABLE)
    return Advice("pp_for_throughput", "advice", text, numbers, "7.1", applicable(s, change, found) if better else None)


def pipeline_starves(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake: fewer sequences than pipeline stages, so that stages wait for each other."""
    if s.pp == 1 or plan.batch >= s.pp:
        return None
    idle = 1 - plan.batch / s.pp
    numbers: Numbers = (("stages", float(s.pp), ""), ("batch", float(plan.batch), "sequences"), ("idle", idle, ""))
    text = f"{s.pp} pipeline stages share {show(plan.batch, 'requests')}: {show(idle, '%')} of the stages idle at any time."
    return Advice("pipeline_starves", "warning", text, numbers, "7.1")


def smallest_layout(s: Scenario, plan: Plan) -> Advice | None:
    """Article 7.2: which model takes how many devices. By weights alone, by what fits, and by what keeps the promise."""
    rows = by_degree(s)
    fitting = [tp for tp, each in rows.items() if each.fits and each.engine_ok]
    keeping = [tp for tp in fitting if rows[tp].stands]
    if not fitting or not rows[fitting[0]].b_max_kv:
        return None
    by_weights = next((tp for tp, each in rows.items() if each.weights_bytes <= plan.physical_bytes), fitting[0])
    first = fitting[0]
    held = rows[first].b_max_kv
    keeps = f"tp={keeping[0]} is the first to keep the SLA" if keeping else "no degree keeps the SLA"
    numbers: Numbers = (
        ("tp_weights", float(by_weights), ""),
        ("tp_fits", float(first), ""),
        ("held", held, "sequences"),
    )
    numbers = (*numbers, ("tp_keeps", float(keeping[0]), "")) if keeping else numbers
    keeps += f", at {show(rows[keeping[0]].goodput_tok_s_gpu, 'tok/s')} per GPU" if keeping else ""
    text = (
        f"By its weights alone the model takes tp={by_weights}; with workspace and a cache tp={first} is the first to "
        f"fit ({show(held, 'requests')}); {keeps}."
    )
    alone = keeping and _only_tp(s) and s.ep == 1 and s.tp != keeping[0]
    change = applicable(s, {"tp": keeping[0]}, rows[keeping[0]]) if alone else None
    then = rows[keeping[0]] if keeping else None
    return Advice("smallest_layout", "advice", text, numbers, "7.2", change, then=then)


def little_kv(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake: weights that fit but leave so little cache that twice the devices do more than twice as much."""
    wider = _twice(s) if plan.fits and plan.binds == "kv" else None
    if wider is None or not wider.stands:
        return None
    now, then = plan.output_tok_s, wider.output_gpu
    if now is None or then is None or then < now / plan.gpus_per_replica * STARVED:
        return None
    share = plan.weights_bytes / plan.usable_bytes
    ratio = then / (now / plan.gpus_per_replica)
    numbers: Numbers = (
        ("weights_share", share, ""),
        ("held", float(plan.b_max_kv), "sequences"),
        ("gain_per_gpu", ratio, ""),
    )
    text = (
        f"Weights take {show(share, '%')} of the usable memory and leave cache for {show(plan.b_max_kv, 'requests')}; "
        f"with tp={s.tp * 2} each GPU yields {show(ratio)} times as much."
    )
    return Advice("little_kv", "warning", text, numbers, "7.2", applicable(s, _wider(s), wider), then=wider)


def weights_per_gpu(s: Scenario, plan: Plan) -> Advice | None:
    """Article 11.2: weights per device are total ÷ TP. Says what they are here, replicated tensors included."""
    shards = s.tp * s.pp * (s.dp if s.ep > 1 else 1)
    total = by_degree(s)[1].weights_bytes
    if plan.gpus_per_replica == 1:
        return None
    ideal = total / shards
    over = plan.weights_bytes / ideal - 1
    numbers: Numbers = (("weights", plan.weights_bytes, "bytes"), ("divided", ideal, "bytes"), ("replicated", over, ""))
    more = "nothing is held twice" if over < 0.001 else f"{show(over, '%')} more, what cannot be split"
    text = (
        f"A GPU holds and reads {gigabytes(plan.weights_bytes)} of weights, not the model's {gigabytes(total)}; "
        f"plain division by {shards} gives {gigabytes(ideal)}: {more}."
    )
    return Advice("weights_per_gpu", "advice", text, numbers, "11.2")


def cp_for_ttft(s: Scenario, plan: Plan) -> Advice | None:
    """Article 7.3: CP secures TTFT of long prompts. Says the least power of two that does, and what it costs per device."""
    if plan.ttft_unloaded_ms is None or plan.ttft_unloaded_ms <= s.sla_ttft_ms or s.cp > 1:
        return None
    variants = {ways: outcome(variant) for ways in SPLITS if (variant := changed(s, _split(s, ways))) is not None}
    tried = {ways: each for ways, each in variants.items() if not refused(each)}
    if not tried:
        return None
    met = (each for each in tried.items() if (each[1].ttft_unloaded_ms or np.inf) <= s.sla_ttft_ms)
    cp, found = next(met, (0, None))
    start = (
        f"A prompt of {whole(s.isl)} tokens takes {show(plan.ttft_unloaded_ms, 'ms')} on an idle replica, "
        f"the SLA is {show(s.sla_ttft_ms, 'ms')}"
    )
    numbers: Numbers = (("ttft", plan.ttft_unloaded_ms, "ms"), ("cp", float(cp), ""))
    if found is None:
        text = f"{start}: context parallelism does not keep it up to cp={max(tried)}."
        return Advice("cp_for_ttft", "advice", text, numbers, "7.3")
    numbers = (*numbers, ("ttft_then", found.ttft_unloaded_ms or 0.0, "ms"))
    text = (
        f"{start}: cp={cp} splits prefill over {cp} times the GPUs and takes {show(found.ttft_unloaded_ms, 'ms')}; TPOT "
        f"hardly gains."
    )
    return Advice("cp_for_ttft", "advice", text, numbers, "7.3", applicable(s, _split(s, cp)))


SPLITS = (2, 4, 8, 16)
"""Degrees of context parallelism that are tried."""


def _split(s: Scenario, ways: int) -> Change:
    """Context parallelism of prefill; experts spread over the added devices where they were spread."""
    return {"cp": ways, "ep": s.ep * ways if s.ep > 1 else 1}
