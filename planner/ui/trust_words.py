"""Every word of the Trust page, in English and, for headings and labels, in Chinese."""

from __future__ import annotations

from typing import Final

from planner.ui.text import language

EN: Final = {
    "title": "Why believe this?",
    "lead": "Every number comes from a formula that you can read, with constants that say where they come from.",
    "section": "Section",
    "arithmetic": "This plan's arithmetic",
    "catalogue": "Catalogue",
    "limits": "Limits",
    "group": "Formulas about",
    "memory": "Memory",
    "attention": "Attention",
    "matrices": "Matrices",
    "law": "Time",
    "serving": "Serving",
    "cost": "Cost",
    "find": "Find",
    "find_hint": "formula, operator or quantity",
    "nothing_found": "No formula of this kind names what you look for. Clear the field, or choose another kind.",
    "untimed": "Speed and cost are not worked out: {reason}.",
    "not_used": "This plan uses no formula of this kind.",
    "shown": (
        "{formulas}, {lines} for this plan. What stands here is the code that ran, with its numbers filled "
        "in; SI units."
    ),
    "source": "Source",
    "kind": "Part of the catalogue",
    "models": "Models",
    "accelerators": "Accelerators",
    "prices": "Prices",
    "engines": "Engines",
    "presets": "Presets",
    "speeds": "Speed constants",
    "counts": (
        "{models} models, {accelerators} accelerators, {prices} prices, {engines} engines, {presets} presets, "
        "{speeds} kernel laws; catalogue {version}."
    ),
    "each_number": "Every number with its own source",
    "assumed_prices": "Price assumed when none is given",
    "kernels": "Laws fitted to timed kernels",
    "collectives": "Collectives",
    "exchanges": "Exchange of tokens with experts",
    "serving_constants": "What serving adds to kernels",
    "in_use": "In use for this plan",
    "unknown": "unknown",
    "models_say": (
        "Sizes follow from each configuration; what a vendor publishes stands beside them. KV bytes are those "
        "of a BF16 cache on one GPU, all windows open."
    ),
    "accelerators_say": (
        "Peaks are dense and as the vendor states them, without any derating. Unknown: not published, or not supported."
    ),
    "prices_say": "Per accelerator-hour as a provider asked it on that day. Nothing is converted between currencies.",
    "engines_say": "Rules and defaults by version, as the engine's code or logs state them.",
    "presets_say": "Named scenarios; a worked example keeps the numbers of its article, its twin has the real model.",
    "speeds_say": (
        "Fitted: to kernels timed on this accelerator. Borrowed: fractions of another accelerator. Assumed: a "
        "convention. Published: a vendor or an article says so."
    ),
    "accuracy": "Accuracy",
    "no_accuracy": "No comparison with measurements has been made on this copy: run `make docs`.",
    "no_limits": "docs/LIMITS.md is missing from this copy.",
}
"""English text by key."""

ZH: Final = {
    "title": "为什么可信？",
    "section": "部分",
    "arithmetic": "本方案的计算过程",
    "catalogue": "数据目录",
    "limits": "适用范围",
    "group": "公式类别",
    "memory": "显存",
    "attention": "注意力",
    "matrices": "矩阵",
    "law": "时间",
    "serving": "服务",
    "cost": "成本",
    "find": "查找",
    "source": "来源",
    "kind": "目录类别",
    "models": "模型",
    "accelerators": "加速卡",
    "prices": "价格",
    "engines": "推理引擎",
    "presets": "预设方案",
    "speeds": "速度常数",
    "accuracy": "精度",
    "in_use": "本方案所用",
}
"""Chinese text by key; what is missing is shown in English."""


def word(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text
