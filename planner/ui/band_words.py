"""How sure the figures of the Plan page are: what stands below a tile, and the table of estimates with their bands."""

from __future__ import annotations

from typing import Final

from planner.confidence import Span, band, doubted, rate_band
from planner.plan import Plan
from planner.specs.correction import TAKEN_OVER
from planner.ui.text import language
from planner.units import show, unit_of, whole

EN: Final = {
    "within": "80 % band {span}",
    "sure": "{sure} with 80 % confidence, {most} expected",
    "unsure": "not sure to meet the SLA even at batch 1",
    "title": "Estimates and their 80 % bands",
    "said": "Where four measurements in five should lie: of models that the fit had not seen and of those it "
    "had, whichever reaches further; a wide convention where nothing alike was measured.",
    "calibrated": "Where four measurements in five should lie, from public curves of which as many points were given.",
    "figure": "Figure",
    "expected": "Expected",
    "band": "80 % band",
    "batch": "Largest batch per replica",
    "at_least": "{sure} with 80 % confidence",
    "none": "not even batch 1",
    "tpot": "TPOT",
    "ttft": "TTFT, before queues",
    "rate": "Output per replica",
    "cost": "Million good tokens",
}
"""English text by key."""

ZH: Final = {
    "within": "80 % 区间 {span}",
    "sure": "80 % 把握 {sure}，预期 {most}",
    "unsure": "即使并发为 1，也不确定能满足 SLA",
    "title": "估计值与 80 % 区间",
    "figure": "指标",
    "expected": "预期",
    "band": "80 % 区间",
    "batch": "每副本最大并发",
    "at_least": "80 % 把握 {sure}",
    "none": "并发为 1 也不确定",
    "ttft": "TTFT（排队前）",
    "rate": "每副本输出",
    "cost": "每百万有效 token",
}
"""Chinese text by key; what is missing is shown in English."""

FIGURES: Final = {
    "tpot_ms": "tpot",
    "ttft_ms": "ttft",
    "output_tok_s": "rate",
    "usd_per_m_goodput": "cost",
}
"""Figures with a band, by the key of what the table calls them."""


def word(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text


def batch(plan: Plan) -> str:
    """The largest batch with 80 % confidence; empty where it is the expected one."""
    if not (plan.fits and doubted(plan)):
        return ""
    if plan.b_max_sure == 0:
        return word("unsure")
    return word("sure", sure=whole(plan.b_max_sure), most=whole(plan.b_max))


def tpot(plan: Plan) -> str:
    """The band of TPOT."""
    return _said(band(plan, "tpot_ms"), "ms")


def rate(plan: Plan) -> str:
    """The band of output tokens a second of one GPU, as the tile counts it."""
    if plan.output_tok_s is None:
        return ""
    each = plan.goodput_tok_s_gpu if plan.meets_sla else plan.output_tok_s / plan.gpus_per_replica
    return "" if each is None else _said(rate_band(plan, each), "tok/s")


def cost(plan: Plan) -> str:
    """The band of the cost of a million good tokens."""
    return _said(band(plan, "usd_per_m_goodput"), "$")


def _said(found: Span | None, unit: str) -> str:
    """A band below its figure; empty where there is none."""
    return "" if found is None else word("within", span=found.text(unit))


def any_band(plan: Plan) -> bool:
    """Whether any figure has a band."""
    return any(band(plan, figure) for figure in FIGURES)


def title() -> str:
    """The heading of the table."""
    return word("title")


def header() -> tuple[str, ...]:
    """Columns of the table."""
    return word("figure"), word("expected"), word("band")


def table(plan: Plan) -> list[tuple[str, str, str]]:
    """Figures that have a band: expected value and band, the largest batch first; empty where none has."""
    found = [(figure, band(plan, figure)) for figure in FIGURES]
    rows = [(word(FIGURES[figure]), _value(plan, figure), span.text(_unit(figure))) for figure, span in found if span]
    batches = [(word("batch"), whole(plan.b_max), _surest(plan))] if plan.b_max else []
    return [*batches, *rows] if rows else []


def _value(plan: Plan, figure: str) -> str:
    """The expected value of a figure."""
    return show(getattr(plan, figure), _unit(figure))


def _unit(figure: str) -> str:
    """The unit of a figure; the name of a cost says what it is for."""
    unit = unit_of(figure)
    return "$" if unit.startswith("$") else unit


def _surest(plan: Plan) -> str:
    """What stands for a band beside the largest batch."""
    if doubted(plan) and plan.b_max_sure == 0:
        return word("none")
    return word("at_least", sure=whole(plan.b_max_sure))


def grounds(plan: Plan) -> str:
    """What the bands were taken from."""
    codes = {note.code for note in plan.notes}
    return word("calibrated" if "calibrated" in codes and TAKEN_OVER not in codes else "said")
