"""Every word of the Compare page, in English and, for headings and labels, in Chinese."""

from __future__ import annotations

from typing import Final

from planner.answer import devices
from planner.compare.comparison import REQUESTS_FIELD, Comparison
from planner.compare.link import LETTERS
from planner.compare.quantities import Quantity, figure, ranked
from planner.plan import Plan
from planner.setting import resolve
from planner.ui.text import LABELS, label_of, language, say

EN: Final = {
    "plans": "Plans",
    "plan_of": "Plan {name}",
    "unjudged": "not judged",
    "apart": "The plan of the sidebar is not part of the comparison until it is added.",
    "open": "Open as plan",
    "open_named": "Open {name} as plan",
    "remove": "Remove {name}",
    "two_at_least": "Two plans are needed: add another one first.",
    "change": "Add or replace a plan",
    "place": "Where to",
    "new": "add as {name}",
    "instead": "replace {name}",
    "sidebar": "Take the plan of the sidebar",
    "preset": "Preset",
    "preset_take": "Take this preset",
    "paste": "Link",
    "paste_hint": "a plan's or a comparison's link",
    "paste_take": "Take this link",
    "paste_refused": "Not taken: the plans stayed as they were.",
    "real": "Take the real models, measured speeds",
    "real_help": "Puts in place of each textbook plan the same plan on the real model, with measured speeds.",
    "again": "Start again",
    "again_help": "The source article's A, B and C, and its BF16 baseline.",
    "against": "Held against",
    "against_help": "The plan that the sentences and the marks of the table hold the others against.",
    "differences": "What differs",
    "all_fields": "All fields",
    "marks": "≠ differs from {name}. ★ best of the plans that stand.",
    "rest": "The rest is under All fields.",
    "nothing": "No input differs: these are the same plan.",
    "asked": "Asked",
    "found": "Found",
    "field": "Field",
    "curves": "TPOT against batch",
    "curves_alt": "TPOT over batch of every plan, each line up to the largest batch that its KV cache holds, with the SLA",
    "curves_said": "Each line ends where the plan's KV cache is full; its symbol is where the plan operates.",
    "curves_none": "No plan has a TPOT.",
    "no_curve": "{names} cannot be drawn: nothing fits.",
    "cost": "$ per million good tokens",
    "cost_axis": "$ per million good tokens",
    "cost_alt": "A bar a plan: dollars per million good tokens",
    "cost_said": "Cheapest first: {ranks} per million.",
    "rate": "Good tokens/s per GPU",
    "rate_axis": "Good tokens/s per GPU",
    "rate_alt": "A bar a plan: good tokens/s per GPU",
    "rate_said": "Most first: {ranks}.",
    "unranked": "No plan has this figure.",
    "bands_said": "A line across the end of a bar is the 80 % band of its estimate.",
    "share": "Share this comparison",
    "share_hint": "The address of this page holds all plans. The link below carries prices and the catalogue's version too.",
    "refused": "This comparison cannot be made as its link says.",
    "refused_why": "Nothing was calculated: with a value not understood, they might not be the plans that were meant.",
    "continue": "Continue with the article's plans",
    "questions": "These plans answer different questions: they differ in {fields}. A ratio compares each as it was asked.",
    "catalogue_changed": "{names}: made with another catalogue than today's, {now}. Numbers may have changed with the facts.",
    "yes": "yes",
    "no": "no",
}  # fmt: skip
"""English text by key."""

ZH: Final = {
    "plans": "方案",
    "plan_of": "方案 {name}",
    "unjudged": "未评估",
    "open": "打开此方案",
    "open_named": "打开方案 {name}",
    "remove": "移除 {name}",
    "change": "添加或替换方案",
    "place": "位置",
    "new": "添加为 {name}",
    "instead": "替换 {name}",
    "sidebar": "采用侧栏方案",
    "preset": "预设方案",
    "preset_take": "采用此预设",
    "paste": "链接",
    "paste_take": "采用此链接",
    "real": "换成真实模型与实测速度",
    "again": "重新开始",
    "against": "对照方案",
    "differences": "差异",
    "all_fields": "全部字段",
    "marks": "≠ 与 {name} 不同。★ 成立方案中最佳。",
    "asked": "输入",
    "found": "结果",
    "field": "字段",
    "curves": "TPOT 与并发",
    "cost": "有效 token 成本",
    "rate": "单卡有效 token",
    "bands_said": "条形末端的横线为估计值的 80 % 区间。",
    "share": "分享对比",
    "yes": "是",
    "no": "否",
}
"""Chinese text by key; what is missing is shown in English."""

OUTCOMES: Final = {
    REQUESTS_FIELD: "Requests/s within the SLA",
    "fits": "Fits in memory",
    "meets_sla": "Meets the SLA",
    "engine_ok": "Engine serves it",
    "binds": "Bound by",
    "reason": "Why not",
    "gpus_per_replica": "GPUs per replica",
    "replicas": "Replicas",
    "gpus": "GPUs",
    "physical_bytes": "Memory per GPU",
    "usable_bytes": "Usable memory",
    "withheld_bytes": "Withheld memory",
    "weights_bytes": "Weights per GPU",
    "activation_bytes": "Activations",
    "graph_bytes": "CUDA graphs",
    "runtime_bytes": "Runtime",
    "kv_pool_bytes": "KV pool per GPU",
    "kv_bytes_per_token": "KV bytes of a token",
    "kv_capacity_tokens_rank": "KV tokens per rank",
    "kv_capacity_tokens": "KV tokens per replica",
    "b_max_kv": "Batch by KV cache",
    "b_max_kv_mean": "Batch by KV, mean length",
    "b_max_sla": "Batch by SLA",
    "b_max": "Largest batch",
    "b_max_sure": "Largest batch, 80 % confidence",
    "batch": "Batch",
    "tpot_ms": "TPOT",
    "ttft_ms": "TTFT",
    "ttft_unloaded_ms": "TTFT, unloaded",
    "output_tok_s": "Output tokens/s per replica",
    "goodput_tok_s": "Good tokens/s per replica",
    "goodput_tok_s_gpu": "Good tokens/s per GPU",
    "tpot_low_ms": "TPOT, low end of band",
    "tpot_high_ms": "TPOT, high end of band",
    "usd_per_hour": "$/h",
    "usd_per_m_output": "$ per million output tokens",
    "usd_per_m_goodput": "$ per million good tokens",
    "ttft_low_ms": "TTFT, low end of band",
    "ttft_high_ms": "TTFT, high end of band",
    "output_low_tok_s": "Output tokens/s, low end of band",
    "output_high_tok_s": "Output tokens/s, high end of band",
    "usd_low_per_m_goodput": "$ per million good, low end of band",
    "usd_high_per_m_goodput": "$ per million good, high end of band",
}
"""Labels of what comes out of a plan."""

APART: Final = {"v": "Link version", "c": "Catalogue", "x": "Custom model"}
"""Labels of fields that no input shows."""


def word(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text


def label(field: str) -> str:
    """What a row of the table is called."""
    if field in LABELS:
        return label_of(field)
    return OUTCOMES[field] if field in OUTCOMES else APART[field]


def fallen(plan: Plan) -> str:
    """Why a plan does not stand, in a few words."""
    if not plan.fits:
        return say("fits_unknown" if plan.binds == "layout" else "fits_not")
    if not plan.engine_ok:
        return say("engine_not", engine=resolve(plan.scenario).engine.name)
    return say("sla_unknown" if plan.tpot_ms is None else "sla_not")


def described(plan: Plan) -> str:
    """A plan in a few words: precisions, devices, model."""
    s = plan.scenario
    cache = "" if s.kv == "bf16" else f", {s.kv} cache"
    return f"{s.weights} weights{cache} on {devices(plan)}"


def served(plan: Plan) -> str:
    """What a plan serves, in a few words: model, lengths, and the speeds that it uses, a calibration's only where it applies."""
    s, used = plan.scenario, resolve(plan.scenario)
    return f"{used.model.name} · {s.isl:,} in, {s.osl:,} out · {used.profile.id} speeds"


def ranks(found: Comparison, quantity: Quantity) -> str:
    """Plans with their figures, best first; empty where none has any."""
    best = ranked(found.plans, quantity)
    return ", ".join(f"{LETTERS[at]} {quantity.text(figure(found.plans[at], quantity) or 0.0)}" for at in best)
