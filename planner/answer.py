"""The answer in one sentence: does it fit, how much does it serve, what binds, what does it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.catalog.accelerators import accelerator
from planner.catalog.engines import engine
from planner.plan import Plan
from planner.setting import resolve
from planner.specs.layout import layout_name
from planner.specs.spelling import decimal
from planner.units import gigabytes, percent, show, whole

BOUND_BY: Final = {
    "weights": "weights",
    "kv": "KV cache",
    "tpot": "TPOT",
    "ttft": "TTFT",
    "layout": "the layout",
    "engine": "the engine's limits",
    "none": "nothing but the batch asked for",
}
"""What limits, in words."""


@dataclass(frozen=True)
class Pools:
    """GPUs of a plan whose prompts are read in a pool of their own.

    Attributes:
        decode, prefill: GPUs of either pool.
        workers: prefill workers; each: GPUs of one of them.
        other: name of the prefill accelerator; empty where it is the decode pool's own.
    """

    decode: int
    prefill: int
    workers: int
    each: int
    other: str


def pools(plan: Plan) -> Pools | None:
    """The two pools of a sized plan; None where prompts are read on the replicas, or nothing is sized."""
    setting = resolve(plan.scenario)
    if setting.pool is None or plan.gpus is None or plan.replicas is None:
        return None
    decode, each = plan.replicas * plan.gpus_per_replica, round(setting.pool.devices)
    other = "" if setting.pool.gpu.id == setting.gpu.id else setting.pool.gpu.name
    return Pools(decode, plan.gpus - decode, (plan.gpus - decode) // each, each, other)


def answer(plan: Plan) -> str:
    """One sentence (or two) that answers the planner's question; what is missing and by how much when it does not fit."""
    if not plan.fits:
        return _missing(plan)
    if plan.tpot_ms is None and plan.ttft_ms is None:
        return f"Fits in memory, but cannot serve: {_reason(plan)}."
    if not plan.engine_ok:
        return f"Fits in memory, but {_engine(plan)} does not serve it: {_reason(plan)}."
    if not plan.meets_sla:
        return f"Fits in memory, but breaks the SLA{_late(plan)}"
    if plan.batch > plan.b_max:
        admits = f"admits {whole(plan.b_max)} concurrent requests per replica, not {whole(plan.batch)}"
        return f"Fits in memory, but {_engine(plan)} {admits}."
    return f"Fits. {_capacity(plan)}; {_service(plan)}."


def _engine(plan: Plan) -> str:
    """The engine's name."""
    return engine(plan.scenario.engine).name


def devices(plan: Plan) -> str:
    """Devices of one replica in words: `4 × H100 SXM`."""
    many = f"{whole(plan.gpus_per_replica)} × {accelerator(plan.scenario.gpu).name}"
    s = plan.scenario
    name = layout_name(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp)
    if not name:
        return many
    return f"{many[:-1]}, {name})" if many.endswith(")") else f"{many} ({name})"


def _capacity(plan: Plan) -> str:
    bound = f"bound by {BOUND_BY[plan.binds]}"
    if plan.batch < plan.b_max:
        at_most = f"{whole(plan.batch)} of at most {whole(plan.b_max)} concurrent requests per replica"
        return f"{at_most}, {bound}"
    return f"{_counted(plan.batch, 'concurrent request')} per replica, {bound}"


def _service(plan: Plan) -> str:
    spare = f" ({whole(plan.scenario.spare)} spare)" if plan.scenario.spare else ""
    apart = pools(plan)
    pool = f"{_prefill(apart)}: {show(plan.gpus, 'GPUs')}" if apart else ""
    kind = "decode replica" if apart else "replica"
    return f"{_counted(plan.replicas or 0, kind)}{spare} of {devices(plan)}{pool} {_load(plan)}{_cost(plan)}"


def _prefill(apart: Pools) -> str:
    """The prefill pool beside the decode replicas; its accelerator is named where it is another one."""
    other = f" × {apart.other}" if apart.other else ""
    return f" and {_counted(apart.workers, 'prefill worker')} of {whole(apart.each)}{other}"


def _load(plan: Plan) -> str:
    """What the replicas do: serve the requests asked for, how much of them that takes, or what they could carry."""
    serving = (plan.replicas or 0) - plan.scenario.spare
    one, s = plan.replicas == 1 and plan.scenario.prefill != "disaggregated", plan.scenario
    if plan.output_tok_s is None:
        return "gives one token a request" if one else "give one token a request"
    carried = plan.output_tok_s * serving / s.osl
    if s.qps == 0:
        usable = f"{show(carried * s.load)} requests/s at {percent(s.load)} load"
        return f"{'gives' if one else 'give'} {show(plan.output_tok_s * serving, 'output tokens/s')} ({usable})"
    return f"{'serves' if one else 'serve'} {decimal(s.qps)} requests/s"


def _cost(plan: Plan) -> str:
    if plan.usd_per_hour is None:
        return " at a price that is not known"
    hour, good = show(plan.usd_per_hour, "$"), plan.usd_per_m_goodput
    return f" for {hour} an hour" if good is None else f" for {hour} an hour, {show(good, '$')} per million good tokens"


def _missing(plan: Plan) -> str:
    """What does not fit, and by how much, on the tightest device."""
    if plan.binds == "layout":
        return f"Cannot be laid out: {_reason(plan)}."
    if plan.kv_pool_bytes > 0:
        return _no_room(plan)
    inside = plan.weights_bytes + plan.activation_bytes + plan.runtime_bytes
    needed = inside if inside > plan.usable_bytes else inside + plan.graph_bytes
    need = f"{gigabytes(needed)} per GPU and {gigabytes(plan.usable_bytes)} are usable"
    weights = f"weights alone {gigabytes(plan.weights_bytes)}"
    return f"Does not fit. Weights and the engine need {need} ({weights}): {gigabytes(needed - plan.usable_bytes)} are missing."


def _no_room(plan: Plan) -> str:
    """By how much the cache pool is too small: for one request, or for the batch asked for."""
    asked, held = plan.scenario.isl + plan.scenario.osl, plan.kv_capacity_tokens_rank
    if plan.b_max_kv >= 1:
        over = f"not {whole(plan.batch)}: {whole(plan.batch - plan.b_max_kv)} too many"
        return f"Does not fit. The KV pool holds {_counted(plan.b_max_kv, 'request')} per replica, {over}."
    missing = f"{whole(asked - held)} tokens are missing" if held < asked else _reason(plan)
    return f"Does not fit. The KV pool holds {whole(held)} tokens per rank and one request needs {whole(asked)}: {missing}."


def _late(plan: Plan) -> str:
    """Which part of the SLA is broken, and by how much."""
    s = plan.scenario
    misses = [
        f"{name} is {show(value, 'ms')}, the SLA {show(promise, 'ms')} ({show(value - promise, 'ms')} too long)"
        for name, value, promise in (("TTFT", plan.ttft_ms, s.sla_ttft_ms), ("TPOT", plan.tpot_ms, s.sla_tpot_ms))
        if value is not None and value > promise
    ]
    if not misses:
        return f": {_reason(plan)}."
    return f". With {_counted(max(plan.batch, 1), 'concurrent request')} per replica {' and '.join(misses)}."


def _counted(count: float, noun: str) -> str:
    return f"{whole(count)} {noun}{'' if count == 1 else 's'}"


def _reason(plan: Plan) -> str:
    """The plan's reason as the second half of a sentence."""
    return plan.reason.strip().rstrip(".") or "no reason is known"
