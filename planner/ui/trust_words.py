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
    "fitted_values": "What the last fit found, and where it started",
    "kernel_factors": "Factors on the time of single kernels",
    "bands": "80 % bands",
    "folds": "Out of fold",
    "folds_said": "Errors of TPOT per configuration, each pair of model and accelerator family predicted by a fit without it.",
    "col_group": "Group",
    "col_within": "Median within the fit, %",
    "col_out": "Median out of fold, %",
    "everything": "All",
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
    "calibrate": "Calibrate",
    "no_accuracy": "No comparison with measurements has been made on this copy: run `make docs`.",
    "stale": "These predictions were made with catalogue {then}; today's is {now}. Run `make docs` to renew them.",
    "metric": "Figure",
    "TPOT": "TPOT",
    "TTFT": "TTFT",
    "output tokens/s per GPU": "Tokens/s per GPU",
    "by": "Colour and group by",
    "engine": "Engine",
    "accelerator": "Accelerator",
    "family": "Model family",
    "by_engine": "Engine",
    "by_accelerator": "Accelerator",
    "by_family": "Model",
    "all_of": "All",
    "all_points": "All shown",
    "clear": "Clear filters",
    "coverage": (
        "{made} of {points} shipped points are predicted. The others name a model, accelerator, engine or format that is "
        "not in the catalogue, or leave out a length."
    ),
    "no_match": "No measured point with both figures matches these filters. Choose another value, or clear them.",
    "parity": "Predicted against measured",
    "parity_alt": "Predicted over measured {metric} of {points} points on log axes, with the diagonal and lines 20 % off it",
    "parity_found": (
        "Half of {points} predictions are within {error} of the measurement, {share} within 20 %; {band} of measurements "
        "are inside the predicted 80 % band."
    ),
    "parity_plain": "Half of {points} predictions are within {error} of the measurement, {share} within 20 %.",
    "one_point": "One measured point: the prediction is {error} off it.",
    "leaning": "The median prediction is ×{bias} of its measurement.",
    "parity_said": (
        "On the line the prediction is exact, above it too high; dashed lines are 20 % off. Point at a mark for its source, "
        "click a name to dim the rest."
    ),
    "TPOT_means": "TPOT is the time between two tokens after the first, that of prompts read in between included.",
    "TTFT_means": (
        "The prediction is the first token of a lone request on an idle replica. Measurements hold the queue of a closed "
        "loop that starts with all requests at once: read the prediction as a lower bound."
    ),
    "output tokens/s per GPU_means": (
        "The prediction is that of a full batch. Measurements count the time in which requests wait and their prompts are "
        "read."
    ),
    "every_point": "Every point as a table, worst first",
    "groups": "Error by {by}",
    "groups_said": (
        "Errors are |predicted / measured − 1|, averaged per configuration (a model, layout, engine, precision and workload "
        "over its concurrencies), then taken over configurations. Bias is predicted over measured."
    ),
    "in_sample": "Constants were fitted to these and similar points: expect more on a model that is not among them.",
    "col_configurations": "Configurations",
    "col_points": "Points",
    "col_median": "Median, %",
    "col_mean": "Mean, %",
    "col_p90": "90th percentile, %",
    "col_bias": "Bias, ×",
    "col_band": "In 80 % band, %",
    "troubles": "Where we are bad, and why",
    "troubles_said": "Worst first. Errors are today's; causes are as far as they are known.",
    "troubles_none": "No group of these points has a known cause of error or errs by half more than the rest.",
    "troubles_more": "{count} more groups",
    "troubles_one_more": "1 more group",
    "trouble_figures": "{median} median, bias ×{bias}; {configurations}, {points}",
    "unexplained": "Not explained.",
    "peers": "What others are off by",
    "peers_said": (
        "Conditions differ: rows, metrics, and what was fitted to what. Only the first four were held against points of "
        "this table's sources; the rest are figures of their own authors or users."
    ),
    "peer_ours": "Headroom",
    "peer_ours_metric": "TPOT, median per configuration, in-sample",
    "peer_ours_conditions": (
        "{points} points of the two sources that the next three were run on; our constants were fitted to these and similar "
        "points."
    ),
    "peer_compared": "Tool and points:",
    "peer_published": "Its authors:",
    "peer_reported": "A user:",
    "memory_errors": "Memory against engine logs",
    "no_memory": "Memory has not been compared with engine logs on this copy: run `make docs`.",
    "counted": "What these errors are",
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
    "calibrate": "校准",
    "metric": "指标",
    "output tokens/s per GPU": "单卡 token/s",
    "by": "着色与分组",
    "engine": "推理引擎",
    "accelerator": "加速卡",
    "family": "模型系列",
    "by_engine": "引擎",
    "by_accelerator": "加速卡",
    "by_family": "模型",
    "all_of": "全部",
    "all_points": "当前全部",
    "clear": "清除筛选",
    "coverage": "{points} 个实测点中预测了 {made} 个；其余的模型、加速卡、引擎或格式不在目录中，或未注明长度。",
    "no_match": "没有同时具备实测与预测的数据点符合筛选条件。请换一个值，或清除筛选。",
    "parity": "预测与实测",
    "parity_found": "{points} 个预测中，一半与实测相差不到 {error}，{share} 在 ±20 % 以内；{band} 的实测落在预测的 80 % 区间内。",
    "parity_plain": "{points} 个预测中，一半与实测相差不到 {error}，{share} 在 ±20 % 以内。",
    "one_point": "一个实测点：预测与之相差 {error}。",
    "leaning": "预测与实测之比的中位数为 ×{bias}。",
    "parity_said": "对角线以上为预测偏高。指向一个点可见其来源；点击图例名称可淡化其余。",
    "every_point": "全部数据点（误差大者在前）",
    "groups": "按{by}的误差",
    "col_configurations": "配置数",
    "col_points": "点数",
    "col_median": "中位，%",
    "col_mean": "均值，%",
    "col_p90": "90 分位，%",
    "col_bias": "偏差，×",
    "col_band": "在 80 % 区间内，%",
    "troubles": "哪里不准，为什么",
    "troubles_said": "误差大者在前。误差为当前计算值，原因以已知为限。",
    "troubles_more": "另外 {count} 组",
    "troubles_one_more": "另外 1 组",
    "unexplained": "尚无解释。",
    "peers": "其他工具的误差",
    "memory_errors": "显存与引擎日志对比",
    "counted": "误差的含义",
    "folds": "交叉验证（折外误差）",
    "fitted_values": "拟合结果与起始值",
    "kernel_factors": "单个算子的时间系数",
    "bands": "80 % 区间",
    "col_group": "分组",
    "col_within": "拟合内中位，%",
    "col_out": "折外中位，%",
    "everything": "全部",
    "in_use": "本方案所用",
}
"""Chinese text by key; what is missing is shown in English."""


def word(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text


def as_error(share: float) -> str:
    """An error as it is spoken of: a decimal below ten percent."""
    return f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"


def counted(noun: str, count: int) -> str:
    """So many of something, in English: 1 point, 2,002 points."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
