"""Rules on the precision of weights: what each gains at the batch that runs, not at batch one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from planner.advise.advice import CEILING, Advice, Numbers, up_to
from planner.advise.degrees import NOTICEABLE
from planner.catalog.accelerators import accelerator
from planner.plan import Plan
from planner.serving import decode
from planner.setting import resolve
from planner.specs.scenario import Scenario
from planner.units import gigabytes, show, whole
from planner.variants import Outcome, applicable, outcome, tpot_at, tpots, untimed

EIGHT_BIT = ("fp8", "int8")
"""Eight-bit formats, the faster where both are served."""


def offered(s: Scenario, weights: str) -> bool:
    """Whether the engine and the accelerator serve other weights."""
    setting, gpu = resolve(s), accelerator(s.gpu)
    native = {"fp8": "fp8", "fp8-block": "fp8", "int8": "int8", "nvfp4": "fp4"}.get(weights)
    known = not setting.convention.overheads or weights in setting.engine.supports_weights
    return known and (native is None or native in gpu.peak)


def served(s: Scenario, weights: str) -> Outcome | None:
    """The plan with other weights, a set batch kept; None where engine or accelerator do not serve them."""
    return outcome(s.with_(weights=weights)) if offered(s, weights) else None


def fp8_at_high_batch(s: Scenario, plan: Plan) -> Advice | None:
    """Article 8.2: many requests on H100 want FP8. Says the gain at the largest batch that keeps the promise."""
    then = served(s, "fp8") if s.weights in ("bf16", "int4") else None
    now = plan.goodput_tok_s_gpu
    if (
        then is None
        or not now
        or not then.stands
        or not then.goodput_tok_s_gpu
        or then.goodput_tok_s_gpu < now * (1 + NOTICEABLE)
    ):
        return None
    same = tpot_at(s.with_(weights="fp8", at_batch=None), plan.batch)
    gain = (then.goodput_tok_s_gpu or 0.0) / now - 1
    largest = "" if s.at_batch is not None else f", or {show(then.batch, 'requests')} within the SLA"
    numbers: Numbers = (
        ("gain", gain, ""),
        ("batch_now", float(plan.batch), "sequences"),
        ("batch_then", then.batch, "sequences"),
        ("tpot_same_batch", same or 0.0, "ms"),
    )
    text = (
        f"FP8 weights shift the whole curve: TPOT {show(same, 'ms')} instead of {show(plan.tpot_ms, 'ms')} at "
        f"{show(plan.batch, 'requests')}{largest}, {show(gain, '%')} more good "
        f"tokens per GPU. The article gives FP8 a loss of 0.5 % on MMLU."
    )
    return Advice("fp8_at_high_batch", "advice", text, numbers, "8.2", applicable(s, {"weights": "fp8"}))


def int4_crossover(s: Scenario, other: str) -> float:
    """Largest batch at which INT4 weights give a shorter TPOT than others; 0 where they never do."""
    return _int4_crossover(untimed(s), other)


@lru_cache(maxsize=256)
def _int4_crossover(s: Scenario, other: str) -> float:
    """The same, remembered under what the clock looks at."""
    narrow, wide = (s.with_(weights=word) for word in ("int4", other))

    def keeps(batch: np.ndarray) -> np.ndarray:
        return np.asarray(tpots(narrow, batch) < tpots(wide, batch))

    return float(decode.largest_batch(keeps, (1, 1), CEILING)[0, 0])


def _rival(s: Scenario) -> str:
    """What INT4 competes with: the widest-used eight-bit format that the device has, else BF16."""
    return next((word for word in EIGHT_BIT if offered(s, word)), "bf16")


def int4_at_low_batch(s: Scenario, plan: Plan) -> Advice | None:
    """Article 8.2: few interactive requests want INT4. Fires while the batch that runs is below the crossover."""
    if s.weights == "int4" or plan.tpot_ms is None or not offered(s, "int4"):
        return None
    rival = s.weights if s.weights not in ("bf16",) else _rival(s)
    limit = int4_crossover(s, rival)
    if plan.batch > limit:
        return None
    then = tpot_at(s.with_(weights="int4", at_batch=None), plan.batch)
    if then is None or then >= plan.tpot_ms:
        return None
    numbers: Numbers = (("tpot_now", plan.tpot_ms, "ms"), ("tpot_then", then, "ms"), ("crossover", limit, "sequences"))
    text = (
        f"INT4 weights shorten TPOT at {show(plan.batch, 'requests')} to {show(then, 'ms')}; against {rival} they gain "
        f"{up_to(limit, plan)}. The article gives them a loss of 1.3 % on MMLU."
    )
    return Advice("int4_at_low_batch", "advice", text, numbers, "8.2", applicable(s, {"weights": "int4"}))


def int4_at_high_batch(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake, and article 8.2: INT4 beyond the batch up to which reading less outweighs unpacking it."""
    if s.weights != "int4" or plan.tpot_ms is None:
        return None
    rival = _rival(s)
    limit, then = int4_crossover(s, rival), tpot_at(s.with_(weights=rival, at_batch=None), plan.batch)
    if plan.batch <= limit or then is None:
        return None
    numbers: Numbers = (("tpot_now", plan.tpot_ms, "ms"), ("tpot_then", then, "ms"), ("crossover", limit, "sequences"))
    text = (
        f"INT4 weights are slower than {rival} at {show(plan.batch, 'requests')}: TPOT {show(plan.tpot_ms, 'ms')} against "
        f"{show(then, 'ms')}; they gain {up_to(limit, plan)}."
    )
    return Advice("int4_at_high_batch", "warning", text, numbers, "8.2", applicable(s, {"weights": rival}))


def int4_when_memory_limited(s: Scenario, plan: Plan) -> Advice | None:
    """Article 8.3: INT4 where memory is short or the device has no FP8. Fires where it fits more, and yields more."""
    then = served(s, "int4") if s.weights != "int4" else None
    short = not plan.fits or plan.binds == "kv"
    if then is None or not short or not then.stands:
        return None
    gain = (then.goodput_tok_s_gpu or 0.0) / plan.goodput_tok_s_gpu - 1 if plan.goodput_tok_s_gpu else None
    if gain is not None and gain < NOTICEABLE:
        return None
    numbers: Numbers = (
        ("held_now", float(plan.b_max_kv), "sequences"),
        ("held_then", then.b_max_kv, "sequences"),
        ("weights_then", then.weights_bytes, "bytes"),
    )
    instead = f" instead of {whole(plan.b_max_kv)}" if plan.b_max_kv else ""
    yields = "" if gain is None else f", {show(gain, '%')} more good tokens per GPU"
    text = (
        f"{'The cache binds' if plan.fits else 'Memory is short'}: INT4 weights take {gigabytes(then.weights_bytes)} "
        f"instead of {gigabytes(plan.weights_bytes)} and "
        f"leave cache for {show(then.b_max_kv, 'requests')}{instead}{yields}."
    )
    return Advice("int4_when_memory_limited", "advice", text, numbers, "8.3", applicable(s, {"weights": "int4"}))


def int8_without_fp8(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 8.3: INT8 first where the device has no FP8. Says whether it fits, which the article does not check."""
    gpu = accelerator(s.gpu)
    then = served(s, "int8") if "fp8" not in gpu.peak and s.weights not in ("int8", "int4") else None
    if then is None:
        return None
    size = then.weights_bytes
    numbers: Numbers = (
        ("weights_then", size, "bytes"),
        ("held_then", then.b_max_kv, "sequences"),
        ("fits", float(then.fits), ""),
    )
    where = f"{gigabytes(size)} per {gpu.unit}, cache for {show(then.b_max_kv, 'requests')}"
    if not then.fits:
        where = f"{gigabytes(size)} of weights leave no cache in {gigabytes(then.usable_bytes)}: it takes more than tp={s.tp}"
    text = f"{gpu.name} computes no FP8; INT8 is its first step down: {where}."
    return Advice(
        "int8_without_fp8", "advice", text, numbers, "8.3", applicable(s, {"weights": "int8"}) if then.fits else None
    )


def weight_share(_s: Scenario, plan: Plan) -> Advice | None:
    """Article 8.1: TPOT is proportional to bytes a parameter. Says how much of the step that can be true of."""
    full = sum(each.seconds for each in plan.ledger)
    if not full:
        return None
    read = [each for each in plan.ledger if each.group in ("weights", "experts")]
    share = sum(each.seconds for each in read if each.bound_by == "memory") / full
    if share < NOTICEABLE:
        return None
    numbers: Numbers = (("share", share, ""), ("most", share / 2, ""))
    text = (
        f"Reading weights takes {show(share, '%')} of a step at {show(plan.batch, 'requests')}: half the bytes a parameter "
        f"shortens it by at most {show(share / 2, '%')}; cache reads, collectives and host stay."
    )
    return Advice("weight_share", "advice", text, numbers, "8.1")
