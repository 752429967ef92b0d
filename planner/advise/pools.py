"""Rules on where and how prompts are read in: beside decoding, in chunks, or in a pool of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.advise.advice import Advice, Kind, Numbers
from planner.advise.degrees import NOTICEABLE
from planner.catalog.accelerators import accelerator
from planner.plan import Plan
from planner.serving import decode, prefill
from planner.serving.thresholds import (
    pooled_rate,
    prefill_per_decode,
    prompt_transfer_seconds,
    request_interference,
)
from planner.setting import resolve
from planner.specs.scenario import Scenario
from planner.units import show, whole
from planner.variants import Outcome, applicable, known, outcome, step_of, step_seconds, tpot_at
from planner.work import ONE

WORTH_A_POOL = 0.1
"""Gain in good tokens per device from which on prefill beside decoding is called a mistake: assumed, the half width of
the 80 % band of TPOT."""


@dataclass(frozen=True)
class Pools:
    """Prefill beside decoding against prefill in a pool of the same devices; seconds, tokens a second and device.

    Attributes:
        step_share: TPOT that other requests' prefill adds at the operating batch [ms].
        interference: what that adds to a whole request; transfer: what handing over its cache takes.
        together, apart: good tokens a second and device, in one pool and in two.
        decode: the plan of the decode pool; ratio: prefill replicas per decode replica.
        ttft: time to first token with the transfer in it [ms].
    """

    step_share: float
    interference: float
    transfer: float
    together: float
    apart: float
    decode: Outcome
    ratio: float
    ttft: float


@lru_cache(maxsize=256)
def pools(s: Scenario) -> Pools | None:
    """Both arrangements of a scenario; None where a speed or the devices' NIC is not known."""
    here = s.with_(**_colocated())
    apart = here.with_(prefill="excluded", at_batch=None)
    now, then, nic = outcome(here), outcome(apart), accelerator(s.gpu).scale_out_bandwidth
    if now.ttft_ms is None or then.ttft_unloaded_ms is None or then.output_tok_s is None or nic is None or s.osl < 2:
        return None
    if now.tpot_ms is None or now.goodput_tok_s_gpu is None:
        return None
    alone = tpot_at(apart, now.batch) or 0.0
    moved = transfer_seconds(s, nic)
    prompt = _prompt_seconds(apart)
    ratio = float(prefill_per_decode(np.asarray(then.output_tok_s), float(s.osl), np.asarray(prompt)))
    devices = np.asarray(then.gpus_per_replica)
    rate = float(pooled_rate(np.asarray(then.output_tok_s), devices, ratio * devices))
    ttft = then.ttft_unloaded_ms + moved * 1e3
    kept = then.tpot_ms is not None and then.tpot_ms <= s.sla_tpot_ms and ttft <= s.sla_ttft_ms
    added = float(request_interference(np.asarray(now.tpot_ms / 1e3), np.asarray(alone / 1e3), float(s.osl)))
    return Pools(now.tpot_ms - alone, added, moved, now.goodput_tok_s_gpu, rate if kept else 0.0, then, ratio, ttft)


def _prompt_seconds(s: Scenario) -> float:
    """Time of one prompt on a prefill replica of the same layout [s]."""
    found = known(s)
    return float(prefill.prompt_seconds(found.bounds.clock.placed, found.setting.profile, found.setting.prompt)[0, 0])


def transfer_seconds(s: Scenario, nic: float) -> float:
    """Time to hand over the cache of one prompt, each rank its own share over its own NIC [s]."""
    links, size = resolve(s).profile.links, outcome(s).kv_bytes_per_token * s.isl
    measured = np.isfinite(links.out_bandwidth)
    bandwidth = links.out_bandwidth if measured and s.kv_link_eff is None else nic
    alpha = links.out_alpha if measured else 0.0
    return float(prompt_transfer_seconds(np.asarray(size), bandwidth, s.kv_link_eff or 1.0, alpha))


def disaggregate(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 4.4: long prompts and many requests want a prefill pool. Fires where interference outweighs the transfer."""
    found = pools(s) if s.prefill == "colocated" else None
    if found is None or found.interference <= found.transfer or found.apart <= found.together * (1 + NOTICEABLE):
        return None
    kind: Kind = "warning" if found.apart > found.together * (1 + WORTH_A_POOL) else "advice"
    numbers: Numbers = (
        ("step_share", found.step_share, "ms"), ("interference", found.interference, "s"),
        ("transfer", found.transfer, "s"), ("together", found.together, "tok/s per GPU"), ("apart", found.apart, "tok/s per GPU"),
    )  # fmt: skip
    batch = outcome(s).batch
    text = (
        f"Other requests' prompts add {show(found.step_share, 'ms')} to each step at {show(batch, 'requests')}, "
        f"{show(found.interference, 's')} over a request; handing over its cache takes {show(found.transfer, 's')}. "
        f"Prefill in a pool of its own yields {show(found.apart, 'tok/s')} per GPU of "
        f"both pools instead of {show(found.together, 'tok/s')}."
    )
    return Advice("disaggregate", kind, text, numbers, "4.4", applicable(s, {"prefill": "disaggregated"}))


def stay_colocated(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 4.4: short prompts and few requests need no pool. Fires where two pools yield no more than one."""
    found = pools(s)
    if (
        found is None
        or s.prefill == "excluded"
        or not found.together
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
        why = f"TTFT would be {show(found.ttft, 'ms')} with the transfer, above the promise"
    text = (
        f"A prefill pool would not pay: {why}; a request gains {show(found.interference, 's')} and waits "
        f"{show(found.transfer, 's')} for its cache."
    )
    if s.prefill == "disaggregated":
        return Advice("stay_colocated", "warning", text, numbers, "4.4", applicable(s, _colocated()))
    return Advice("stay_colocated", "advice", text, numbers, "4.4")


def _colocated() -> dict[str, str | None]:
    """Fields that bring prefill back beside decoding."""
    pool = ("prefill_gpu", "prefill_tp", "prefill_workers", "decode_workers", "kv_link_eff")
    return {"prefill": "colocated", **dict.fromkeys(pool)}


def homogeneous_pool(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 4.4: equal devices gain less. Says the gain on equal devices, and how the pools are to be sized."""
    same = s.prefill_gpu in (None, s.gpu)
    found = pools(s) if same and s.prefill != "excluded" else None
    if found is None or not found.together or found.apart <= found.together * (1 + NOTICEABLE):
        return None
    gain = found.apart / found.together - 1
    numbers: Numbers = (
        ("prefill_per_decode", found.ratio, ""),
        ("gain", gain, ""),
        ("decode_batch", found.decode.batch, "sequences"),
    )
    text = (
        f"With a prefill pool of the same GPUs, one decode replica ({show(found.decode.batch, 'requests')}) keeps "
        f"{show(found.ratio)} prefill replicas busy, and each GPU yields {show(gain, '%')} more."
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
        f"above the promised {show(s.sla_tpot_ms, 'ms')} (the mean of all steps is {show(plan.tpot_ms, 'ms')}); {way}."
    )
    return Advice(
        "chunk_breaks_tpot", "warning", text, numbers, "4.4", applicable(s, _chunked(room)) if room >= 1 else None
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
    text = (
        f"Chunked prefill beside decoding holds here: a step of {show(plan.batch, 'requests')} has room for "
        f"{whole(room)} prompt tokens within {show(s.sla_tpot_ms, 'ms')}, and reads "
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
