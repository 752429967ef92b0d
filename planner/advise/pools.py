"""Rules on where and how prompts are read in: beside decoding, in chunks, or in a pool of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from planner.advise.advice import Advice, Kind, Numbers
from planner.advise.degrees import NOTICEABLE
from planner.plan import Plan
from planner.pools import prefill_pool, transfer
from planner.serving import decode
from planner.serving.thresholds import request_interference
from planner.setting import resolve
from planner.specs.scenario import Scenario
from planner.units import show, whole
from planner.variants import Change, Outcome, applicable, known, outcome, step_of, step_seconds, tpot_at
from planner.work import ONE

WORTH_A_POOL = 0.1
"""Gain in good tokens per device from which on prefill beside decoding is called a mistake: assumed, the half width of
the 80 % band of TPOT."""


MANY = 64
"""Decode replicas of the deployment that is compared: so many that whole prefill workers cost next to nothing."""


@dataclass(frozen=True)
class Pools:
    """Prefill beside decoding against prefill in a pool of the same devices.

    Attributes:
        step_share: TPOT that other requests' prefill adds at the operating batch [ms].
        interference: what that adds to a whole request; transfer: what handing over its cache takes [s].
        together, apart: good tokens a second and device, in one pool and in two.
        split: the plan with two pools; ratio: devices of the prefill pool per device that decodes.
    """

    step_share: float
    interference: float
    transfer: float
    together: float
    apart: float
    split: Outcome
    ratio: float


@lru_cache(maxsize=256)
def pools(s: Scenario) -> Pools | None:
    """Both arrangements of a scenario at full use, prefill on the same devices; None where a speed is not known."""
    if s.osl == 1:
        return None
    here = s.with_(**COLOCATED)
    split = at_full_use(here.with_(prefill="disaggregated"))
    now, then = outcome(here), outcome(split)
    if now.tpot_ms is None or then.tpot_ms is None or now.goodput_tok_s_gpu is None or not then.output_tok_s:
        return None
    alone = tpot_at(split, now.batch) or 0.0
    added = request_interference(np.asarray(now.tpot_ms / 1e3), np.asarray(alone / 1e3), float(s.osl))
    found = known(split)
    pool = prefill_pool(found.setting)
    moved = 0.0 if pool is None else float(transfer(found.setting, pool, found.layout).seconds[0, 0])
    devices = then.productive_gpus
    ratio = devices / then.gpus_per_replica - 1
    return Pools(
        now.tpot_ms - alone, float(added), moved, now.goodput_tok_s_gpu, then.goodput_tok_s_gpu or 0.0, then, ratio
    )


def at_full_use(s: Scenario) -> Scenario:
    """The scenario with two pools in a large deployment that is kept busy: what a device of it can do, whatever is asked."""
    return s.with_(qps=0.0, load=1.0, fix_replicas=None, prefill_workers=None, spare=0, decode_workers=MANY)


COLOCATED: Final[Change] = {
    "prefill": "colocated", "prefill_gpu": None, "prefill_tp": None, "prefill_workers": None, "decode_workers": None,
    "kv_link_eff": None,
}  # fmt: skip
"""Fields that bring prefill back beside decoding."""


def disaggregate(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 4.4: long prompts and many requests want a prefill pool. Fires where interference outweighs the transfer."""
    found = pools(s) if s.prefill == "colocated" else None
    if (
        found is None
        or not found.split.stands
        or found.interference <= found.transfer
        or found.apart <= found.together * (1 + NOTICEABLE)
    ):
        return None
    change = applicable(s, {"prefill": "disaggregated"})
    kind: Kind = "warning" if change and found.apart > found.together * (1 + WORTH_A_POOL) else "advice"
    numbers: Numbers = (
        ("step_share", found.step_share, "ms"), ("interference", found.interference, "s"),
        ("transfer", found.transfer, "s"), ("together", found.together, "tok/s per GPU"), ("apart", found.apart, "tok/s per GPU"),
    )  # fmt: skip
    batch = outcome(s).batch
    text = (
        f"Other requests' prompts add {show(found.step_share, 'ms')} to each step at {show(batch, 'requests')}, "
        f"{show(found.interference, 's')} over a request; handing over its cache takes {show(found.transfer, 's')}. "
        f"In a large deployment prefill in a pool of its own yields "
        f"{show(found.apart, 'tok/s')} per GPU of both pools instead of {show(found.together, 'tok/s')}."
    )
    return Advice("disaggregate", kind, text, numbers, "4.4", change)


def stay_colocated(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 4.4: short prompts and few requests need no pool. Fires where two pools yield no more than one."""
    found = pools(s)
    if (
        found is None
        or s.prefill == "excluded"
        or not found.together
        or not found.split.engine_ok
        or found.apart > found.together * (1 + NOTICEABLE)
    ):
        return None
    numbers: Numbers = (
        ("interference", found.interference, "s"),
        ("transfer", found.transfer, "s"),
        ("together", found.together, "tok/s per GPU"),
        ("apart", found.apart, "tok/s per GPU"),
    )
    why = f"{show(found.apart, 'tok/s')} per GPU instead of {show(found.together, 'tok/s')}"
    if not found.apart:
        why = f"with two pools {found.split.reason or 'no batch keeps the SLA'}"
    text = (
        f"A prefill pool would not pay, even in a large deployment: {why}; a request gains "
        f"{show(found.interference, 's')} and waits {show(found.transfer, 's')} for its cache."
    )
    if s.prefill == "disaggregated":
        return Advice("stay_colocated", "warning", text, numbers, "4.4", applicable(s, COLOCATED))
    return Advice("stay_colocated", "advice", text, numbers, "4.4")


def homogeneous_pool(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 4.4: equal devices gain less. Says the gain on equal devices, and how the pools are to be sized."""
    same = s.prefill_gpu in (None, s.gpu)
    found = pools(s) if same and s.prefill != "excluded" else None
    if (
        found is None
        or not found.split.stands
        or not found.together
        or found.apart <= found.together * (1 + NOTICEABLE)
    ):
        return None
    gain = found.apart / found.together - 1
    numbers: Numbers = (
        ("prefill_per_decode", found.ratio, ""),
        ("gain", gain, ""),
        ("decode_batch", found.split.batch, "sequences"),
    )
    text = (
        f"With a prefill pool of the same GPUs, each GPU that decodes ({show(found.split.batch, 'requests')} a "
        f"replica) takes {show(found.ratio)} that prefill, and each GPU yields {show(gain, '%')} more."
    )
    return Advice("homogeneous_pool", "advice", text, numbers, "4.4")


@lru_cache(maxsize=256)
def chunk_room(s: Scenario, batch: int) -> float:
    """Prompt tokens that a step of `batch` sequences takes before it lasts as long as the promised TPOT; 0 for none."""

    def keeps(chunk: np.ndarray) -> np.ndarray:
        step = step_of(s, float(batch) * ONE, prompt=chunk)
        return np.asarray(step_seconds(s, step) <= s.sla_tpot_ms / 1e3)

    return float(decode.largest_batch(keeps, (1, 1))[0, 0])


def longest_step(s: Scenario, batch: int) -> float:
    """How long a step lasts that carries one chunk of a prompt beside all decoding sequences [ms]."""
    chunk = known(s).setting.prompt.chunk
    return float(step_seconds(s, step_of(s, float(batch) * ONE, prompt=np.full((1, 1), chunk)))[0, 0]) * 1e3


def _prompts_here(s: Scenario, plan: Plan) -> bool:
    return s.prefill == "colocated" and plan.tpot_ms is not None and plan.fits


def chunk_breaks_tpot(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake: chunks so large that the steps which carry them last longer than the promised TPOT."""
    if not _prompts_here(s, plan) or not plan.meets_sla:
        return None
    longest = longest_step(s, plan.batch)
    if longest <= s.sla_tpot_ms:
        return None
    chunk, room = known(s).setting.prompt.chunk, chunk_room(s, plan.batch)
    numbers: Numbers = (("step", longest, "ms"), ("chunk", chunk, "tokens"), ("room", room, "tokens"))
    way = f"chunks of at most {whole(room)} tokens would keep it" if room >= 1 else "no chunk would, at this batch"
    text = (
        f"A step that reads {whole(chunk)} prompt tokens beside {show(plan.batch, 'requests')} lasts {show(longest, 'ms')}, "
        f"above the SLA of {show(s.sla_tpot_ms, 'ms')} (the mean of all steps is {show(plan.tpot_ms, 'ms')}); {way}."
    )
    return Advice(
        "chunk_breaks_tpot",
        "warning",
        text,
        numbers,
        "4.4",
        applicable(s, _chunked(room), outcome(s)) if room >= 1 else None,
    )


def _chunked(room: float) -> dict[str, int]:
    """A chunk within the room, in whole multiples of 16 tokens where it is large enough."""
    return {"chunk": int(room // 16 * 16) or int(room)}


def chunk_from_promise(s: Scenario, plan: Plan) -> Advice | None:
    """Article 4.4: small deployments prefill in chunks. Says how large a chunk the promised TPOT leaves room for."""
    if not _prompts_here(s, plan) or not plan.meets_sla or longest_step(s, plan.batch) > s.sla_tpot_ms:
        return None
    room = chunk_room(s, plan.batch)
    numbers: Numbers = (("room", room, "tokens"), ("chunk", known(s).setting.prompt.chunk, "tokens"))
    tokens = "any number of" if room >= decode.LARGEST_BATCH else whole(room)
    text = (
        f"Chunked prefill beside decoding holds here: a step of {show(plan.batch, 'requests')} has room for "
        f"{tokens} prompt tokens within {show(s.sla_tpot_ms, 'ms')}, and reads "
        f"{whole(known(s).setting.prompt.chunk)} at once."
    )
    return Advice("chunk_from_promise", "advice", text, numbers, "4.4")


def prefill_budget(s: Scenario, plan: Plan) -> Advice | None:
    """Article 2.2: decoding comes first, prompts take what is left of the step's tokens. Warns where that is too little."""
    if not _prompts_here(s, plan) or not resolve(s).convention.overheads:
        return None
    setting = resolve(s)
    held = float(np.ceil(plan.batch / s.dp))
    left, needed = setting.token_budget - held, held / s.osl * setting.prompt.tokens
    if needed <= left:
        return None
    numbers: Numbers = (("left", left, "tokens"), ("needed", needed, "tokens"))
    text = (
        f"A step takes {whole(setting.token_budget)} tokens; {whole(held)} decode first, which leaves {whole(left)} for "
        f"prompts, and {whole(needed)} arrive: prefill falls behind. Raise token_budget or lower the batch."
    )
    return Advice("prefill_budget", "warning", text, numbers, "2.2")
