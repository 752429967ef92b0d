"""What stands below the five figures of the Plan page, short enough for a tile, and behind their question marks."""

from __future__ import annotations

from planner.answer import BOUND_BY, pools
from planner.confidence import band_text
from planner.doubts import Running, running
from planner.plan import Plan
from planner.specs.spelling import decimal
from planner.ui.data import asked
from planner.ui.text import say
from planner.units import DASH, percent, show, whole

SHORT = {"engine": "engine", "layout": "layout"}
"""What limits, where there is room for one word."""

LONGEST = 24
"""Letters that a tile has room for."""

AT_SLA = 0.005
"""Distance from the SLA, as a share of it, below which there is none."""


def gpus(plan: Plan) -> str:
    """How the GPUs come about."""
    if not plan.fits or plan.tpot_ms is None or plan.replicas is None:
        return say("tile_each", each=whole(plan.gpus_per_replica))
    if apart := pools(plan):
        return say("tile_pools", decode=whole(apart.decode), prefill=whole(apart.prefill))
    key = "tile_one_replica" if plan.replicas == 1 else "tile_replicas"
    return say(key, count=whole(plan.replicas), each=whole(plan.gpus_per_replica))


def below(plan: Plan) -> Running | None:
    """Where replicas run at the asked rate, when that is below the operating batch and a note says so."""
    if not any(note.code == "at_rate" for note in plan.notes):
        return None
    here = running(plan.scenario, plan.replicas or 0, plan.output_tok_s or 0.0, plan.curve)
    return None if here is None or here.batch >= plan.batch else here


def batch(plan: Plan) -> str:
    """How far below its largest batch a replica runs, or what limits the batch."""
    if not plan.fits or plan.tpot_ms is None:
        return DASH
    if here := below(plan):
        return say("tile_runs", batch=whole(here.batch), most=whole(plan.batch))
    return (
        say("tile_asked")
        if plan.binds == "none"
        else say("tile_limit", what=SHORT.get(plan.binds, BOUND_BY[plan.binds]))
    )


def first_token_late(plan: Plan) -> bool:
    """Whether TTFT breaks the SLA."""
    return plan.ttft_ms is not None and plan.ttft_ms > plan.scenario.sla_ttft_ms


def tpot(plan: Plan) -> str:
    """TTFT where it breaks the SLA, else TPOT at the asked rate, else the distance to the promised TPOT."""
    if plan.tpot_ms is None:
        return DASH
    if first_token_late(plan):
        return say("tile_ttft", ttft=show(plan.ttft_ms, "ms"), sla=asked(plan.scenario.sla_ttft_ms))
    if here := below(plan):
        said = {"tpot": show(here.tpot_ms, "ms"), "rate": decimal(plan.scenario.qps)}
        long = say("tile_at_rate", **said)
        return long if len(long) <= LONGEST else say("tile_at_rate_short", **said)
    return margin(plan.tpot_ms, plan.scenario.sla_tpot_ms)


def margin(tpot_ms: float, sla: float) -> str:
    """Distance from a TPOT to the promised one [ms]."""
    gap = sla - tpot_ms
    if abs(gap) < AT_SLA * sla:
        return say("tile_at_sla")
    return say("tile_under" if gap > 0 else "tile_over", gap=show(abs(gap), "ms"))


def throughput(plan: Plan) -> str:
    """How much of the replicas' output tokens is used, what they are where no rate is asked, or that none of them count."""
    if plan.output_tok_s is None:
        return DASH
    if not plan.meets_sla:
        return say("tile_none_good")
    full = plan.output_tok_s * ((plan.replicas or 0) - plan.scenario.spare)
    if plan.scenario.qps == 0:
        return say("tile_in_all", rate=show(full, "tok/s"))
    return say("tile_used", share=_used(plan.scenario.qps * plan.scenario.osl / full), rate=show(full))


def _used(share: float) -> str:
    """A share in whole percent; below one in as many digits as it needs."""
    return percent(round(share, 2)) if share >= 0.01 else show(share, "%")


def rate(plan: Plan) -> str:
    """Output tokens a second of one GPU of a serving replica: good ones, or, when the SLA is broken, those there are."""
    if plan.output_tok_s is None or plan.meets_sla:
        return show(plan.goodput_tok_s_gpu, "tok/s")
    return show(plan.output_tok_s / plan.gpus_per_replica, "tok/s")


def hourly(plan: Plan) -> str:
    """Dollars an hour of all GPUs."""
    return DASH if plan.usd_per_hour is None else say("tile_hourly", cost=show(plan.usd_per_hour, "$"))


def why_batch(plan: Plan) -> str:
    """Where the batch comes from."""
    limits = f"by SLA ({whole(plan.b_max_sla)}), by KV cache ({whole(plan.b_max_kv)}) and by the engine's own limits"
    return f"The smallest of the largest batches {limits}."


def why_tpot(plan: Plan) -> str:
    """The batch that it holds at, the band of the estimate, and TTFT."""
    if plan.tpot_ms is None:
        return f"TPOT is not worked out: {plan.reason.strip().rstrip('.') or 'no reason is known'}."
    at = f"At batch {whole(plan.batch)}: {margin(plan.tpot_ms, plan.scenario.sla_tpot_ms)}"
    band, first = (band_text(plan, figure) for figure in ("tpot_ms", "ttft_ms"))
    within = f", 80\u00a0% band {band}" if band else ""
    spread = f", 80\u00a0% band {first}" if first else ""
    return f"{at}{within}. TTFT {show(plan.ttft_ms, 'ms')}{spread}, queues not in it."
