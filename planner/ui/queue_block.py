"""Plan's card on queues: what holds at the promised percentile, by theory, at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import streamlit as st

from planner.plan import Plan
from planner.promised import clause
from planner.queue_answer import FAILURE_HOURS, REPAIR_SECONDS, Figure, queue_figures
from planner.ui import show
from planner.ui.data import asked
from planner.ui.text import language
from planner.units import DASH, whole
from planner.units import show as shown

TRAFFIC: Final = Path(__file__).resolve().parent / "app_pages" / "traffic.py"

EN: Final = {
    "title": "Queues",
    "carries": "By queue theory one replica carries {carried} at P{pct}",
    "never": "By queue theory not even rare requests keep the SLA at P{pct}.",
    "takes": "{qps} take {needed}, {means}",
    "planned": "as planned",
    "sized": "as planned ({means} would do on means)",
    "more": "the plan has {planned}",
    "at_load": "at a load of {load} of its mean throughput it is given {rate}",
    "unsure": "Theory is not sure here, only a simulation is: {why}.",
    "figure": "One replica",
    "mean": "Mean",
    "at": "P{pct}",
    "sla": "SLA",
    "offered": "Requests/s that it is offered",
    "carried": "Requests/s that it carries at P{pct}",
    "grows": "Requests/s from which queues grow without end",
    "running": "Running, of {most} in flight",
    "waits": "Requests that wait for a seat",
    "good": "Requests that keep both",
    "spares": "Spare replicas for {availability} availability",
    "assumed": "Poisson arrivals of equal lengths. One failure in {hours} GPU-hours (Llama 3, 2024), {minutes} until a "
    "replica serves again. The gateway gives each replica at most {most} at a time; more wait there.",
    "simulate": "Simulate this traffic",
}
"""English text by key."""

ZH: Final = {
    "title": "排队",
    "mean": "均值",
    "figure": "单副本，泊松到达，等长请求",
    "offered": "到达的请求/秒",
    "carried": "在 P{pct} 可承载的请求/秒",
    "grows": "排队无限增长的请求/秒",
    "running": "运行中，上限 {most}",
    "waits": "需等待席位的请求",
    "good": "两项均满足的请求",
    "spares": "可用性 {availability} 所需备用副本",
    "simulate": "仿真该流量",
}
"""Chinese text by key; what is missing is shown in English."""


def word(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text


def card(plan: Plan) -> None:
    """What queue theory says of the plan; nothing where it has no speed."""
    found = queue_figures(plan.scenario, plan)
    if found is None:
        return
    with show.card(word("title"), "card_queue"):
        show.finding(finding(plan, found))
        header = (word("figure"), word("mean"), word("at", pct=f"{plan.scenario.sla_pct:g}"), word("sla"))
        show.figures(word("title"), header, rows(plan, found))
        minutes = f"{REPAIR_SECONDS / 60.0:g} min"
        hours = whole(FAILURE_HOURS)
        st.caption(show.plain(word("assumed", hours=hours, minutes=minutes, most=whole(_number(found["in_flight"])))))
        if TRAFFIC.exists():
            st.page_link(TRAFFIC, label=word("simulate"), icon=":material/timeline:")


def finding(plan: Plan, found: Mapping[str, Figure]) -> str:
    """What a replica carries at the percentile, and what that means for the rate."""
    s, pct = plan.scenario, f"{plan.scenario.sla_pct:g}"
    carried = _number(found["carried_qps"]) or 0.0
    doubt = "" if found["sure"] else f" {word('unsure', why=clause(str(found['why'])))}"
    if not carried:
        return word("never", pct=pct) + doubt
    said = word("carries", carried=shown(carried, "requests/s"), pct=pct)
    if s.qps:
        needed, planned = _number(found["replicas_needed"]), plan.replicas
        count = "more than can be counted" if needed is None else shown(needed, "replicas")
        same = planned is not None and needed is not None and needed <= planned - s.spare
        fewer = _number(found["replicas_mean"]) or 0.0
        told = word("sized", means=whole(fewer)) if needed is not None and fewer < needed else word("planned")
        means = told if same else word("more", planned=shown(planned, "replicas"))
        return f"{said}: {word('takes', qps=shown(s.qps, 'requests/s'), needed=count, means=means)}.{doubt}"
    rate = shown(_number(found["rate_qps"]), "requests/s")
    return f"{said}; {word('at_load', load=shown(s.load, '%'), rate=rate)}.{doubt}"


def rows(plan: Plan, found: Mapping[str, Figure]) -> list[tuple[str, str, str, str]]:
    """Lines of the table: mean, percentile, promise."""
    s = plan.scenario

    def of(name: str, unit: str = "") -> str:
        return shown(_number(found[name]), unit)

    availability = shown(_number(found["availability"]), "%")
    return [
        ("TTFT", of("ttft_mean_ms", "ms"), of("ttft_pct_ms", "ms"), asked(s.sla_ttft_ms)),
        ("TPOT", of("tpot_mean_ms", "ms"), of("tpot_pct_ms", "ms"), asked(s.sla_tpot_ms)),
        (word("running", most=whole(_number(found["in_flight"]))), of("batch_mean"), of("batch_pct"), DASH),
        (word("waits"), _share(_number(found["wait_share"])), DASH, DASH),
        (word("good"), of("share_good", "%"), DASH, shown(s.sla_pct / 100.0, "%")),
        (word("offered"), of("rate_qps"), DASH, DASH),
        (word("carried", pct=f"{s.sla_pct:g}"), of("carried_qps"), DASH, DASH),
        (word("grows"), of("saturation_qps"), DASH, DASH),
        (word("spares", availability=availability), whole(_number(found["spares"])), DASH, DASH),
    ]


def _share(value: float | None) -> str:
    """A share; below a hundredth of a percent there is nothing to tell apart."""
    return "under 0.01 %" if value is not None and 0.0 < value < 1e-4 else shown(value, "%")


def _number(value: Figure) -> float | None:
    """A figure as a number."""
    return None if value is None or isinstance(value, str) else float(value)
