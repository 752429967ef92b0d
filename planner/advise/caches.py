"""Rules on who holds the cache: what tensor-parallel ranks hold alike, and what divides it."""

from __future__ import annotations

from planner.advise.advice import Advice, Kind, Numbers, times
from planner.advise.degrees import NOTICEABLE
from planner.physics.kv import CacheComponent
from planner.plan import Plan
from planner.setting import resolve
from planner.specs.scenario import Scenario
from planner.units import show, whole
from planner.variants import Change, Outcome, applicable, changed, outcome, refused


def latent(s: Scenario) -> bool:
    """Whether attention caches a latent that tensor parallelism never divides."""
    return any(part.name == "latent" for part in resolve(s).cache)


def copies_of(s: Scenario) -> float:
    """How many times the ranks of a tensor-parallel group hold the growing part of the cache."""
    parts = [part for part in resolve(s).cache if part.token_bytes]
    held = sum(_weight(part) / min(s.tp, part.shards) for part in parts)
    once = sum(_weight(part) for part in parts) / s.tp
    return held / once / s.dcp if parts else 1.0


def _weight(part: CacheComponent) -> float:
    """Bytes of one token in all layers that hold this part."""
    return part.layers * part.token_bytes


def _divided(s: Scenario) -> Change | None:
    """Decode context parallelism over all ranks that hold the same; None where there is none to be had."""
    copies = copies_of(s)
    whole_ways = s.tp > 1 and s.dcp == 1 and copies >= 2 and float(copies).is_integer()
    return {"dcp": int(copies)} if whole_ways else None


def _yields(s: Scenario, change: Change | None) -> Outcome | None:
    """The plan with a change, a set batch kept; None where there is no such plan, or memory or engine refuse it."""
    variant = None if change is None else changed(s, change)
    found = None if variant is None else outcome(variant)
    return None if found is None or refused(found) else found


def _good(found: Outcome | None) -> float:
    """Good tokens a second and device; 0 where there are none."""
    return 0.0 if found is None else found.goodput_tok_s_gpu or 0.0


def cache_copies(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake, and article 10.2: KV divided by TP past the KV heads. Ranks beyond them hold copies."""
    copies = copies_of(s)
    if copies <= 1.0 + NOTICEABLE or s.tp == 1 or latent(s):
        return None
    heads = s.tp / copies
    numbers: Numbers = (("copies", copies, ""), ("tp", float(s.tp), ""), ("divides", heads, ""))
    text = (
        f"KV heads divide the cache {times(heads)} ways, not {s.tp}: each token is held {times(copies)} times, "
        f"{whole(plan.kv_bytes_per_token)} bytes a GPU."
    )
    return Advice("cache_copies", "warning", text, numbers, "10.2")


def dcp_shards_cache(s: Scenario, plan: Plan) -> Advice | None:
    """Article 7.3: CP is said to serve prefill only. Decode context parallelism divides the copies that TP holds."""
    change = _divided(s)
    found = _yields(s, change)
    if change is None or found is None:
        return None
    now, then = plan.goodput_tok_s_gpu or 0.0, _good(found)
    if not then:
        return None
    numbers: Numbers = (
        ("copies", copies_of(s), ""), ("held_now", float(plan.b_max_kv), "sequences"),
        ("held_then", found.b_max_kv, "sequences"), ("good_now", now, "tok/s per GPU"), ("good_then", then, "tok/s per GPU"),
    )  # fmt: skip
    text = (
        f"Decode context parallelism (dcp={change['dcp']}) splits by position the cache that {change['dcp']} ranks hold "
        f"alike: {show(found.b_max_kv, 'requests')} instead of {whole(plan.b_max_kv)} in the pools, and "
        f"{show(then, 'tok/s')} of good tokens per GPU{_instead(now)}."
    )
    better = then > now * (1 + NOTICEABLE)
    return Advice("dcp_shards_cache", "advice", text, numbers, "7.3", applicable(s, change, found) if better else None)


def _instead(now: float) -> str:
    """What a rate is to be compared with; nothing where there is none."""
    return f" instead of {show(now, 'tok/s')}" if now else ""


def latent_copies(s: Scenario, plan: Plan) -> Advice | None:
    """A common mistake, and articles 10.3, 10.6: a latent under TP is held by every rank. DP or DCP divide it, TP × DP not.

    A warning only where dividing it yields more good tokens: while the SLA binds first, copies cost nothing.
    """
    copies = copies_of(s)
    if not latent(s) or s.tp == 1 or copies <= 1 or not plan.b_max_kv:
        return None
    ranks = s.tp * s.dp
    ways: tuple[Change, ...] = (
        {"dcp": s.tp},
        {"tp": 1, "dp": ranks, "ep": ranks if resolve(s).model.has_experts else 1},
    )
    by_dcp, by_dp = (_yields(s, change) for change in ways)
    now, best = plan.goodput_tok_s_gpu or 0.0, max(_good(by_dcp), _good(by_dp))
    kind: Kind = "warning" if best > now * (1 + NOTICEABLE) else "advice"
    numbers: Numbers = (
        ("copies", copies, ""), ("held_now", float(plan.b_max_kv), "sequences"),
        ("held_dcp", _held(by_dcp), "sequences"), ("held_dp", _held(by_dp), "sequences"),
        ("good_now", now, "tok/s per GPU"), ("good_dcp", _good(by_dcp), "tok/s per GPU"),
        ("good_dp", _good(by_dp), "tok/s per GPU"),
    )  # fmt: skip
    stays = f" dp={s.dp} does not change that: each attention group keeps its copies." if s.dp > 1 else ""
    rate = f", {show(now, 'tok/s')} of good tokens per GPU" if now else ""
    divided = (("position", f"dcp={s.tp}", by_dcp), ("request", f"dp={ranks}, tp=1", by_dp))
    others = [
        f" Divided by {what} ({how}) the pools hold {show(each.b_max_kv, 'requests')} ({show(_good(each), 'tok/s')} per GPU)."
        for what, how, each in divided
        if each is not None and _good(each)
    ]
    text = (
        f"Every rank of tp={s.tp} holds the same latent cache, {times(copies)} copies: "
        f"{show(plan.b_max_kv, 'requests')}{rate}.{stays}{''.join(others)}"
    )
    change = None if kind == "advice" else applicable(s, ways[0 if _good(by_dcp) >= _good(by_dp) else 1])
    return Advice("latent_copies", kind, text, numbers, "10.3, 10.6", change)


def _held(found: Outcome | None) -> float:
    """Requests that the pools of a plan hold; 0 where it does not fit."""
    return 0.0 if found is None else found.b_max_kv
