"""Every word of the calibration on the Trust page, in English and, for headings and labels, in Chinese."""

from __future__ import annotations

from typing import Final

from planner.ui.text import LABELS, label_of, language

EN: Final = {
    "form": "Calibrate with your own measurement",
    "lead": (
        "Paste the result of a load test, and the plan is fitted to it; paste an engine's start-up log, and its memory is "
        "held against the plan, line by line."
    ),
    "accepted": "Read are results of {tools}, and start-up logs of {engines}.",
    "advised": (
        "One point at mid load helps most; three loads (low, middle, high) also tell host time and interference apart."
    ),
    "private": "Nothing is stored or sent on: the text stays in this page's memory until you clear it or leave.",
    "paste": "Result or log",
    "paste_hint": "============ Serving Benchmark Result ============",
    "upload": "Text file",
    "upload_hint": "A text file in UTF-8 or UTF-16, at most 4 MB.",
    "file_first": "The uploaded file is read, not the text; remove it in its menu to read the text.",
    "template": "CSV template",
    "example": "Example",
    "clear": "Clear",
    "empty": "What can be pasted",
    "understood": "What was understood",
    "what": "What",
    "value": "Value",
    "line": "Line",
    "ignored": "Not used: {what}",
    "reading": "Planning with what was read …",
    "apart": "The text is of another plan than the page's",
    "apart_said": "A calibration holds for what was measured. Take what the text states, or say that the text is wrong.",
    "apart_lengths": "The points are compared at their own lengths; the page plans for others.",
    "field": "Input",
    "stated": "Text",
    "planned": "Plan",
    "kept": "{field} stays as it is: {reason}.",
    "use_stated": "Use what the text states",
    "anyway": "Calibrate the page's plan all the same",
    "unknown_model": "The text names the model {model}, which is not in the catalogue; it is compared with the plan's.",
    "fitted": "Plan against measurement",
    "found": (
        "Half of the points are within {after} of the calibrated plan, instead of {before}: {constants} fitted to {points}."
    ),
    "found_one": (
        "The plan was {before} off the one point. One factor fitted to one point always meets it; {rest} tells how far it "
        "holds elsewhere."
    ),
    "rest": "the 80 % band, {low} to {high} times the prediction,",
    "chart_alt": "TPOT over concurrent requests: {points} measured points, the plan before and after the calibration",
    "chart_said": (
        "Triangles are the measured points. Both curves are for requests of {isl} tokens in and {osl} out; point at a batch "
        "for its figures."
    ),
    "mixed": "Other points have other lengths and are compared at their own, in the table.",
    "points": "Every point, before and after",
    "left_out": "Point {number} is left out: {reason}",
    "plan_with": "Plan with this",
    "in_use": "The plan uses this calibration",
    "back": "Back to measured",
    "active": "The plan is calibrated",
    "memory": "Memory, line by line",
    "agree_all": "All {count} memory terms of the log agree with the plan.",
    "agree_one": "The one memory term of the log agrees with the plan.",
    "differ": "{count} of {all} memory terms differ from the plan: {terms}.",
    "no_terms": "The log prints no memory term that the plan has too.",
    "unready": "Readiness is not reached in this text: later lines may state other figures.",
    "ended": "The start ended with: {outcome}.",
    "both": "{planned} planned, {printed} in the log",
    "agrees": "agrees",
    "differs": "differs",
    "as_log": "Plan as the log says",
    "as_log_said": "What the log states otherwise than the page",
    "log_apart": (
        "Differences of memory are told apart best once the plan has the log's own inputs: plan as it says, then read what "
        "is left."
    ),
    "nothing_stated": "The log states no input otherwise than the page.",
    "before": "Plan",
    "after": "Calibrated plan",
    "col_point": "Point",
    "col_batch": "Requests per replica",
    "col_in": "Tokens in",
    "col_out": "Tokens out",
    "col_measured": "Measured, ms",
    "col_before": "Plan, ms",
    "col_off_before": "Plan off, %",
    "col_after": "Calibrated, ms",
    "col_off_after": "Calibrated off, %",
}
"""English text by key."""

ZH: Final = {
    "form": "用自己的测量校准",
    "paste": "压测结果或启动日志",
    "upload": "文本文件",
    "template": "CSV 模板",
    "example": "示例",
    "clear": "清除",
    "empty": "可以粘贴的内容",
    "understood": "读到的内容",
    "what": "项目",
    "value": "值",
    "line": "行",
    "ignored": "未使用：{what}",
    "apart": "文本所述与本页方案不同",
    "field": "输入项",
    "stated": "文本",
    "planned": "方案",
    "use_stated": "采用文本所述",
    "anyway": "仍校准本页方案",
    "fitted": "方案与实测",
    "points": "各点校准前后",
    "plan_with": "用它规划",
    "in_use": "方案已采用此校准",
    "back": "恢复实测常数",
    "active": "方案已校准",
    "memory": "显存逐项对比",
    "both": "方案 {planned}，日志 {printed}",
    "agrees": "一致",
    "differs": "不一致",
    "unready": "文本未到引擎就绪处：其后各行可能给出不同数值。",
    "as_log": "按日志规划",
    "as_log_said": "日志与本页不同之处",
    "col_point": "点",
    "col_batch": "每副本请求数",
    "col_in": "输入 token",
    "col_out": "输出 token",
    "col_measured": "实测，ms",
    "col_before": "方案，ms",
    "col_off_before": "方案偏差，%",
    "col_after": "校准后，ms",
    "col_off_after": "校准后偏差，%",
}
"""Chinese text by key; what is missing is shown in English."""

TERMS: Final = {
    "weights_bytes": "Weights",
    "activation_bytes": "Activations",
    "runtime_bytes": "Runtime",
    "graph_bytes": "CUDA graphs",
    "kv_pool_bytes": "KV pool",
    "kv_bytes_per_token": "KV per token",
    "kv_capacity_tokens": "KV tokens",
    "max_concurrency": "Sequences of full length",
    "total_bytes": "Memory of the GPU",
    "free_before_bytes": "Free before loading",
    "free_after_bytes": "Free after loading",
    "isl": "Input tokens",
    "osl": "Output tokens",
}
"""Memory terms as the Plan page calls its parts, and what else a text states."""


def word(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text


def name_of(name: str) -> str:
    """A field, a memory term or another name that a reader of texts found, as the pages call it."""
    if name in LABELS:
        return label_of(name)
    return TERMS.get(name, name[:1].upper() + name[1:])
