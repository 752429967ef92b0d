"""Sentences of the Plan page: short, with numbers from the plan and nothing else."""

from __future__ import annotations

from functools import lru_cache

from planner.answer import BOUND_BY, devices
from planner.candidates import candidates
from planner.evaluate import evaluate
from planner.plan import Plan
from planner.setting import resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.ui.charts import GROUPS
from planner.ui.data import bound_of, of_group
from planner.ui.presets import twin_of
from planner.units import DASH, GB, gigabytes, show, significant, whole

LOOSER = 1.5
"""How much longer a TPOT is tried, to say what the promise costs."""


def context(plan: Plan) -> str:
    """What was asked, in one line."""
    setting, s = resolve(plan.scenario), plan.scenario
    demand = f"{significant(s.qps)} requests/s" if s.qps else "one replica"
    cached = f", {s.prefix:.0%} from cache" if s.prefix else ""
    return " · ".join((
        setting.model.name, f"{s.weights} weights, {s.kv} cache", devices(plan), f"{setting.engine.name} {setting.engine.version}",
        f"{s.isl:,} tokens in{cached}, {s.osl:,} out", demand,
        f"TTFT ≤ {show(s.sla_ttft_ms, 'ms')}, TPOT ≤ {show(s.sla_tpot_ms, 'ms')} at P{s.sla_pct:g}",
    ))  # fmt: skip


def margin(plan: Plan) -> str:
    """Distance to the promised TPOT."""
    if plan.tpot_ms is None:
        return DASH
    gap = plan.scenario.sla_tpot_ms - plan.tpot_ms
    return f"{show(abs(gap), 'ms')} {'under' if gap >= 0 else 'over'} SLA"


def batch_limit(plan: Plan) -> str:
    """What limits the batch."""
    if not plan.fits:
        return DASH
    return "as asked" if plan.binds == "none" else f"limited by {BOUND_BY[plan.binds]}"


def memory(plan: Plan) -> str:
    """What the memory bar shows."""
    if not plan.fits and plan.kv_pool_bytes <= 0:
        return f"Nothing is left for a cache: {gigabytes(plan.weights_bytes)} of weights meet {gigabytes(plan.usable_bytes)} of usable memory."
    held = f"{whole(plan.kv_capacity_tokens_rank)} tokens per rank" if plan.scenario.dp > 1 else f"{whole(plan.kv_capacity_tokens)} tokens"
    requests = f"{whole(plan.b_max_kv)} requests of full length"
    return f"The KV pool of {gigabytes(plan.kv_pool_bytes)} holds {held}: {requests} ({whole(plan.b_max_kv_mean)} at mean length)."


def curve(plan: Plan) -> str:
    """What the TPOT curve shows."""
    by_sla, by_kv = plan.b_max_sla, plan.b_max_kv
    if by_sla == 0:
        return f"No batch keeps the SLA; the KV cache would hold {whole(by_kv)}."
    first = "the SLA" if by_sla <= by_kv else "the KV cache"
    return f"{first.capitalize() if first[0] != 't' else 'T' + first[1:]} binds first: B_max is {whole(by_sla)} by SLA and {whole(by_kv)} by KV cache."


def step(plan: Plan) -> str:
    """What the ledger shows: the largest groups and what bounds them."""
    full = sum(row.seconds for row in plan.ledger)
    spent = {group: sum(row.seconds for row in of_group(plan, group)) for group in GROUPS}
    first, second, *_ = sorted(spent, key=lambda group: -spent[group])
    said = [f"{GROUPS[g]} {show(spent[g] / full, '%')} (bound by {bound_of(plan, g)})" for g in (first, second) if spent[g] > 0]
    return f"Of {show(full * 1e3, 'ms')} a step: {', '.join(said)}."


@lru_cache(maxsize=256)
def price_of_promise(plan: Plan) -> str:
    """What the promised TPOT costs against one half as long again; empty when that changes nothing or cannot be said."""
    s = plan.scenario
    if plan.usd_per_m_goodput is None or s.at_batch is not None or plan.binds != "tpot":
        return ""
    at = candidates(layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp))
    looser = evaluate(s.with_(sla_tpot_ms=s.sla_tpot_ms * LOOSER, qps=0.0), at)
    tight = evaluate(s.with_(qps=0.0), at)
    ratio = float(tight.usd_per_m_goodput[0]) / float(looser.usd_per_m_goodput[0]) - 1.0
    if not ratio > 0.005:
        return f"A TPOT of {show(s.sla_tpot_ms * LOOSER, 'ms')} would not make a token cheaper."
    return f"TPOT {show(s.sla_tpot_ms, 'ms')} instead of {show(s.sla_tpot_ms * LOOSER, 'ms')} costs {show(ratio, '%')} more per good token."


@lru_cache(maxsize=256)
def twin(scenario: Scenario) -> tuple[str, Scenario] | None:
    """The real model, measured, beside a textbook plan: one line and its scenario."""
    real = twin_of(scenario)
    if real is None:
        return None
    row = evaluate(real, candidates(layout(real.tp, real.pp, real.dp, real.ep, real.cp, real.dcp)))
    name = resolve(real).model.name
    if not row.fits[0]:
        return f"The real {name}, measured speeds: does not fit.", real
    tpot, batch, kv = float(row.tpot_ms[0]), float(row.batch[0]), float(row.b_max_kv[0])
    money = show(float(row.usd_per_m_goodput[0]), "$/M good tokens")
    return f"The real {name}, measured speeds: TPOT {show(tpot, 'ms')} at {whole(batch)} requests, {whole(kv)} by KV cache, {money}.", real


def missing(plan: Plan) -> str:
    """How far usable memory is overrun."""
    over = plan.weights_bytes + plan.activation_bytes + plan.runtime_bytes + plan.graph_bytes - plan.usable_bytes
    return f"{significant(over / GB)} GB" if over > 0 else ""


def share_of(value: float | None, other: float | None) -> str:
    """One figure as a share of another."""
    return DASH if not value or not other else show(value / other, "%")
