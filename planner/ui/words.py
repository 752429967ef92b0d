"""Sentences of the Plan page: short, with numbers from the plan and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from planner.answer import devices
from planner.candidates import candidates
from planner.evaluate import evaluate
from planner.measured import measured_points
from planner.nearest import LARGEST_TP, nearest_fit, nearest_keeping
from planner.plan import Plan
from planner.setting import resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario, describe
from planner.specs.spelling import decimal
from planner.ui.charts import GROUPS
from planner.ui.data import KEEPS, asked, bound_of, layout_table, of_group
from planner.ui.presets import twin_of
from planner.ui.text import label_of
from planner.units import DASH, gigabytes, percent, show, whole

LOOSER = 1.5
"""How much longer a TPOT is tried, to say what the promise costs."""

CHANGES = ("engine", "weights", "pp", "dp", "ep", "cp", "dcp")
"""Fields in which the nearest plan that fits may differ, beside its devices."""

SAME = 0.005
"""Gain in throughput below which it is none."""


def context(plan: Plan, lengths: tuple[float, float] | None = None, load: str = "") -> str:
    """What was asked, in one line.

    Args:
        lengths: mean input and output of what ran [tokens], where they may differ from what the plan is for.
        load: what ran on how many replicas, in the place of the plan's own demand.
    """
    setting, s = resolve(plan.scenario), plan.scenario
    demand = load or (f"{decimal(s.qps)} requests/s" if s.qps else "one replica")
    isl, osl = lengths or (s.isl, s.osl)
    mean = "" if (isl, osl) == (s.isl, s.osl) else " on average"
    cached = f", {percent(s.prefix)} from cache" if s.prefix else ""
    return " · ".join(
        (
            setting.model.name,
            f"{s.weights} weights, {s.kv} cache",
            devices(plan),
            f"{setting.engine.name} {setting.engine.version}",
            f"{whole(isl)} tokens in{cached}, {whole(osl)} out{mean}",
            demand,
            f"TTFT ≤ {asked(s.sla_ttft_ms)}, TPOT ≤ {asked(s.sla_tpot_ms)} at P{s.sla_pct:g}",
        )
    )


def memory(plan: Plan) -> str:
    """What the memory bar shows."""
    if not plan.fits and plan.kv_pool_bytes <= 0:
        weights, usable = gigabytes(plan.weights_bytes), gigabytes(plan.usable_bytes)
        return f"Nothing is left for a cache: {weights} of weights meet {usable} of usable memory."
    if plan.binds == "layout" and not plan.fits:
        return "There is no such layout; the parts are what plain division would give."
    tokens = f"{whole(plan.kv_capacity_tokens_rank)} tokens{' per rank' if plan.scenario.dp > 1 else ''}"
    requests = f"{show(plan.b_max_kv, 'requests')} of full length ({whole(plan.b_max_kv_mean)} at mean length)"
    return f"The KV pool of {gigabytes(plan.kv_pool_bytes)} holds {tokens}: {requests}."


def curve(plan: Plan) -> str:
    """What the TPOT curve shows."""
    by_sla, by_kv = plan.b_max_sla, plan.b_max_kv
    ttft = f"TTFT is {show(plan.ttft_ms, 'ms')} of {asked(plan.scenario.sla_ttft_ms)}."
    if by_sla == 0:
        return f"No batch keeps the SLA; the KV cache would hold {whole(by_kv)}. {ttft}"
    first = "The SLA" if by_sla <= by_kv else "The KV cache"
    if plan.b_max < min(by_sla, by_kv):
        first = f"The engine's own limit of {whole(plan.b_max)}"
    return f"{first} binds first: {show(by_sla, 'requests')} by SLA, {whole(by_kv)} by KV cache. {ttft}"


def marks(plan: Plan) -> str:
    """What the marks of the TPOT curve mean."""
    public = f" Triangles: {measured(plan)}." if measured_points(plan.scenario) else ""
    band = plan.tpot_low_ms != plan.tpot_high_ms
    line = "Line: estimate, with its 80 % band." if band else "Line: estimate."
    return f"{line} Dot: this plan. Upright: the largest batch under each limit, bold the one that binds.{public}"


def measured(plan: Plan) -> str:
    """How many public measurements there are of a plan's configuration."""
    points = len(measured_points(plan.scenario))
    return f"{points} public measurement{'' if points == 1 else 's'} of this configuration"


def layouts(plan: Plan) -> str:
    """Which tensor-parallel degrees would do instead."""
    table = layout_table(plan)
    good = [tp for tp, _, _, verdict in table if verdict == KEEPS]
    fitting = [tp for tp, batch, _, _ in table if batch != DASH]
    first = "This layout cannot be served, so it has no speed."
    if good:
        return f"{first} With tensor parallelism alone, TP {_listed(good)} would keep the SLA."
    if fitting:
        return f"{first} With tensor parallelism alone, TP {_listed(fitting)} would fit, and break the SLA."
    return f"{first} Tensor parallelism alone does not help, whatever its degree."


def _listed(names: Sequence[str]) -> str:
    """Names in a list of words."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def step(plan: Plan) -> str:
    """What the ledger shows: the largest groups and what bounds them."""
    full = sum(row.seconds for row in plan.ledger)
    spent = {group: sum(row.seconds for row in of_group(plan, group)) for group in GROUPS}
    first, second, *_ = sorted(spent, key=lambda group: -spent[group])
    said = [
        f"{GROUPS[g]} {show(spent[g] / full, '%')} (bound by {bound_of(plan, g)})"
        for g in (first, second)
        if spent[g] > 0
    ]
    return f"Of {show(full * 1e3, 'ms')} a step: {', '.join(said)}."


def cost(plan: Plan) -> str:
    """What the plan costs, when there is nothing more to say about it."""
    if plan.usd_per_hour is None:
        return "No cost is shown: no price is known."
    if not plan.meets_sla:
        return "No token is within the SLA, so good tokens have no price."
    return f"{show(plan.gpus, 'GPUs')} for {show(plan.usd_per_hour, '$')} an hour."


def costs(plan: Plan) -> list[tuple[str, str]]:
    """Lines of the cost table."""
    setting = resolve(plan.scenario)
    return [
        ("GPUs", whole(plan.gpus)),
        (f"Price of a {setting.gpu.unit}-hour", show(setting.cost.price, "$")),
        ("All GPUs, an hour", show(plan.usd_per_hour, "$")),
        ("Million output tokens", show(plan.usd_per_m_output, "$")),
        ("Million good tokens", show(plan.usd_per_m_goodput, "$")),
    ]


@lru_cache(maxsize=256)
def price_of_promise(plan: Plan) -> str:
    """What the promised TPOT costs against one half as long again; empty where TPOT does not bind or no price is known."""
    s, price = plan.scenario, resolve(plan.scenario).cost.price
    if price is None or plan.output_tok_s is None or s.at_batch is not None or not plan.meets_sla:
        return ""
    if plan.binds != "tpot":
        return ""
    if s.sla_tpot_ms * LOOSER > (describe("sla_tpot_ms").high or 0.0):
        return ""
    looser = evaluate(
        s.with_(sla_tpot_ms=s.sla_tpot_ms * LOOSER), candidates(layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp))
    )
    ratio = float(looser.output_tok_s[0]) / plan.output_tok_s - 1.0
    promised, tried = asked(s.sla_tpot_ms), asked(s.sla_tpot_ms * LOOSER)
    if not ratio > SAME:
        return f"A TPOT of {tried} would not make a token cheaper."
    return f"TPOT {promised} instead of {tried} costs {show(ratio, '%')} more per token at full use."


@lru_cache(maxsize=256)
def nearest(scenario: Scenario) -> tuple[str, Scenario] | None:
    """The nearest plan that fits or keeps the SLA, when this one does not and one is known: a line and its scenario."""
    found = nearest_fit(scenario)
    if found is None or found == scenario:
        return None
    row = evaluate(found, candidates(layout(found.tp, found.pp, found.dp, found.ep, found.cp, found.dcp)))
    kept = "keeps the SLA" if row.meets_sla[0] else "fits, though it breaks the SLA"
    return f"The nearest plan that {kept}: {_changed(scenario, found)}.", found


@lru_cache(maxsize=256)
def keeping(scenario: Scenario) -> tuple[str, Scenario | None]:
    """The nearest plan that keeps an SLA which this one breaks at every batch; what was tried where there is none."""
    found = nearest_keeping(scenario)
    if found is None:
        tried = f"tensor parallelism up to {LARGEST_TP}, other weights and larger GPUs of the same maker"
        return f"No plan was found that keeps the SLA. Tried: {tried}.", None
    return f"The nearest plan that keeps the SLA: {_changed(scenario, found)}.", found


def _changed(scenario: Scenario, found: Scenario) -> str:
    """Devices of the nearest plan, and what else it changes."""
    other = [f"{label_of(f)} {getattr(found, f)}" for f in CHANGES if getattr(found, f) != getattr(scenario, f)]
    return ", ".join((f"{whole(found.tp)}\u00a0×\u00a0{resolve(found).gpu.name}", *other))


@lru_cache(maxsize=256)
def twin(scenario: Scenario) -> tuple[str, Scenario] | None:
    """The real model, measured, beside a textbook plan: one line and its scenario."""
    real = twin_of(scenario)
    if real is None:
        return None
    row = evaluate(real, candidates(layout(real.tp, real.pp, real.dp, real.ep, real.cp, real.dcp)))
    start = f"The real {resolve(real).model.name}, measured speeds"
    if not row.fits[0]:
        return f"{start}: does not fit.", real
    batch, kv = show(float(row.batch[0]), "requests"), whole(float(row.b_max_kv[0]))
    money = show(float(row.usd_per_m_goodput[0]), "$/M good tokens")
    return f"{start}: TPOT {show(float(row.tpot_ms[0]), 'ms')} at {batch}, {kv} by KV cache, {money}.", real
