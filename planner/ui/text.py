"""Every word that the pages show, in English and, for headings and labels, in Chinese."""

from __future__ import annotations

from functools import cache
from typing import Final

import streamlit as st

from planner.specs.scenario import describe

LABELS: Final = {
    "model": "Model",
    "gpu": "GPU",
    "engine": "Engine",
    "profile": "Speeds",
    "weights": "Weights",
    "kv": "KV cache",
    "tp": "Tensor parallel",
    "pp": "Pipeline (pp)",
    "dp": "Attention data (dp)",
    "ep": "Experts (ep)",
    "cp": "Prefill ctx (cp)",
    "dcp": "Decode ctx (dcp)",
    "redundant": "Extra expert copies",
    "imbalance": "Expert imbalance",
    "overlap": "Two-batch overlap",
    "isl": "Input tokens",
    "osl": "Output tokens",
    "prefix": "Prefix cache hits",
    "qps": "Requests/s",
    "load": "Usable share of throughput",
    "sla_ttft_ms": "TTFT SLA, ms",
    "sla_tpot_ms": "TPOT SLA, ms",
    "sla_pct": "Percentile",
    "at_batch": "Batch per replica",
    "util": "Memory share",
    "max_len": "Longest sequence",
    "max_seqs": "Most sequences",
    "token_budget": "Tokens a step",
    "chunk": "Prefill chunk",
    "prefill": "Prefill",
    "prefill_gpu": "Prefill GPU",
    "prefill_tp": "Prefill TP",
    "prefill_workers": "Prefill workers",
    "decode_workers": "Decode workers",
    "kv_link_eff": "KV transfer efficiency",
    "spec": "Draft tokens",
    "accept": "Acceptance",
    "draft": "Draft cost",
    "fix_replicas": "Fixed replicas",
    "spare": "Spare replicas",
    "price": "$ per GPU-hour",
    "price_kind": "Kind of price",
    "provider": "Provider",
    "lang": "Language",
}
"""Labels of the inputs."""

PLAIN: Final = frozenset("model gpu engine tp isl osl lang provider weights".split())
"""Inputs that need no explanation: no question mark beside them."""

EN: Final = {
    "title": "Headroom",
    "plan": "Plan",
    "plan_help": "Does it fit, how fast, how many GPUs, how much, and what binds?",
    "model": "Model",
    "model_help": "What kind of model is it: parameters, experts, arithmetic intensity, cache reads, tiles.",
    "trust": "Trust",
    "trust_help": "Why believe the numbers: predictions beside measurements, formulas, sources, limits.",
    "empty": "engine's own",
    "presets": "Presets",
    "start_today": "Start here",
    "worked_examples": "The articles' worked examples",
    "real_twin": "on the real model",
    "undo": "Undo",
    "undo_help": "Step back over the last change.",
    "custom_model": "Your own model",
    "custom_hint": "A Hugging Face config.json. It stays in the address of this page and nowhere else.",
    "custom_paste": "Paste config.json",
    "custom_use": "Use this model",
    "custom_upload": "or upload config.json, at most 1 MB",
    "custom_refused": "Not used",
    "too_large": "the file has {size} bytes: it must have at most {limit}",
    "not_utf8": "the file must be text in UTF-8",
    "section_promise": "TTFT and percentile",
    "section_precision": "KV cache and speeds",
    "section_layout": "Layout beyond TP",
    "section_workload": "Workload and techniques",
    "section_engine": "Engine and its limits",
    "section_cost": "Replicas and price",
    "section_page": "Language",
    "link_refused": "This link cannot be planned as it is.",
    "link_refused_why": "Nothing was calculated: with a value not understood, it might not be the plan that was meant.",
    "continue": "Continue with defaults",
    "continue_help": "Keeps what is sound in the link and takes the default for the rest.",
    "contradiction": "These inputs contradict each other.",
    "contradiction_why": "Change one of them in the sidebar, or step back.",
    "cannot": "This model cannot be planned.",
    "catalogue_changed": "This link was made with catalogue {then}; today's is {now}. Numbers may have changed with the facts.",
    "fits": "Fits in memory",
    "fits_not": "Does not fit in memory",
    "fits_unknown": "No such layout",
    "engine_unknown": "Engine not judged",
    "sla": "Meets the SLA",
    "sla_mean": "Meets the SLA on means, P{pct} not judged",
    "sla_not": "Breaks the SLA",
    "sla_unknown": "SLA not judged",
    "engine_ok": "{engine} serves it",
    "engine_not": "{engine} does not serve it",
    "tile_gpus": "GPUs",
    "tile_batch": "Batch per replica",
    "tile_tpot": "TPOT",
    "tile_rate": "Throughput per GPU",
    "tile_cost": "Cost / M good tokens",
    "memory": "Memory per GPU",
    "curve": "TPOT against batch",
    "step": "Where the time of a step goes",
    "cost": "Cost",
    "notes": "Notes",
    "share": "Share this plan",
    "table": "Table",
    "memory_alt": "One bar: what the memory of the tightest GPU holds, with marks where usable and physical memory end",
    "curve_alt": "TPOT over batch with its 80 % band, the SLA, the largest batch by SLA and by KV cache, and the operating point",
    "step_alt": "One bar per group of operators: milliseconds of one decode step, share, and what bounds it",
    "one_note": "1 note below",
    "many_notes": "{count} notes below",
    "no_notes": "Nothing else to warn of.",
    "assumptions": "Assumptions",
    "sources": "Says who: sources of every input",
    "worked": "Every formula with this plan's numbers in it",
    "layouts": "What other layouts hold",
    "open_nearest": "Open this plan",
    "open_twin": "Open this plan",
    "also_set": "Also set: {what}.",
    "why_gpus": "Replicas × GPUs per replica. Replicas: requests/s ÷ (usable share × what one carries), rounded up, plus spares.",
    "why_rate": "Output tokens a second of one replica at this batch ÷ its GPUs. Good are those within the SLA.",
    "why_cost": "Dollars an hour of all GPUs ÷ good output tokens an hour.",
    "share_hint": "The address of this page is the plan. Link and command below carry the price and the catalogue's version too.",
    "link": "Link",
    "command": "Command line",
    "csv": "CSV",
    "json": "JSON",
    "open_file": "Open a saved plan",
    "open_hint": "CSV or JSON as saved here, at most 1 MB.",
    "open_refused": "Not opened: the plan stays as it was.",
    "open_many": "The file holds {count} plans; the first is shown.",
    "parameters": "Where the parameters are",
    "parameters_alt": "Two bars cut by what parameters are for: all of them, and those that one token uses",
    "growth": "Experts hit and weights read against batch",
    "experts_alt": "Distinct experts hit in a layer over batch, rising to all of them",
    "weights_alt": "Gigabytes of weights that a decode step reads over batch, rising to all of them",
    "intensity": "Arithmetic intensity against batch",
    "intensity_alt": "FLOP per byte of a decode step over batch, with and without cache reads, and the ridge of the accelerator",
    "reads": "Cache reads against context",
    "reads_alt": "Megabytes that one sequence reads in a decode step, by kind, and what it stores, over context",
    "tiles": "Tokens per expert and tile fill",
    "tiles_alt": "Share of the rows of tensor-core tiles that hold a token over batch, for tiles of 64 and of 8 rows",
    "phases": "Prefill against decode",
    "phases_alt": "Arithmetic intensity of the prompt and of a decode step on one axis, with the ridge of the accelerator",
    "phases_note": "One imaginary device, one token a sequence; every operation against the peak of the weights' arithmetic.",
    "failed": "Something went wrong while drawing this page. Your inputs are in the address: reload, or step back with Undo.",
}
"""English text by key."""

ZH: Final = {
    "plan": "规划",
    "model": "模型",
    "parameters": "参数分布",
    "growth": "激活专家与权重读取随并发变化",
    "intensity": "计算强度随并发变化",
    "reads": "缓存读取随上下文变化",
    "tiles": "每专家 token 数与 tile 填充率",
    "phases": "预填充与解码对比",
    "trust": "依据",
    "presets": "预设方案",
    "undo": "撤销",
    "custom_model": "自定义模型",
    "start_today": "从这里开始",
    "worked_examples": "文章算例",
    "real_twin": "真实模型",
    "section_promise": "首字延迟与分位",
    "section_precision": "缓存与速度模型",
    "section_layout": "并行布局",
    "section_workload": "负载与技术",
    "section_engine": "引擎限制",
    "section_cost": "副本与价格",
    "section_page": "语言",
    "fits": "显存放得下",
    "fits_not": "显存放不下",
    "fits_unknown": "无此布局",
    "engine_unknown": "引擎未评估",
    "sla": "满足 SLA",
    "sla_mean": "均值满足 SLA，P{pct} 未评估",
    "sla_not": "不满足 SLA",
    "engine_ok": "{engine} 支持",
    "engine_not": "{engine} 不支持",
    "tile_gpus": "GPU 数",
    "tile_batch": "每副本并发",
    "tile_rate": "单卡吞吐",
    "tile_cost": "每百万有效 token 成本",
    "memory": "单卡显存",
    "curve": "TPOT 与并发",
    "step": "一步的时间去向",
    "cost": "成本",
    "notes": "提示",
    "share": "分享方案",
    "table": "表格",
    "assumptions": "假设",
    "sources": "数据来源",
}
"""Chinese text by key; what is missing is shown in English."""


def language() -> str:
    """The language asked for, else the browser's when it is one of ours."""
    asked = st.session_state["lang"] if "lang" in st.session_state else st.query_params.get("lang")
    if asked in ("en", "zh"):
        return str(asked)
    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


def say(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text


def label_of(field: str) -> str:
    """Label of an input."""
    return LABELS[field]


@cache
def help_of(field: str) -> str | None:
    """What an input means, for the question mark beside it."""
    if field in PLAIN:
        return None
    text = describe(field)
    unit = f" [{text.unit}]" if text.unit else ""
    return f"{text.meaning}{unit}".replace("$", r"\$")
