"""What is said of a result that was read: how its figures were taken, in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Note: TypeAlias = Literal[
    "held", "few", "measured", "little", "derived_latency", "capped", "no_concurrency",
    "tpot", "itl_is_tpot", "itl_is_guidellm", "itl_for_tpot", "from_latency", "medians", "median_tpot",
    "median_ttft", "median_lengths", "below", "seconds", "model_hidden", "failed", "drafted", "contradict",
]  # fmt: skip
"""A rule by which a figure was taken, or something worth knowing."""


@dataclass(frozen=True)
class Said:
    """One note: what it is about, and what it says, in both languages."""

    name: str
    en: str
    zh: str


NOTES: Final[dict[Note, Said]] = {
    "held": Said("concurrency", "as the load generator holds it", "按压测工具设定的并发"),
    "few": Said("concurrency", "fewer requests than the limit, so their number is taken", "请求数少于并发上限，取请求数"),
    "measured": Said("concurrency", "mean over the run, as stated", "给出的全程平均并发"),
    "little": Said(
        "concurrency", "requests a second × mean time of a request (Little's law)", "每秒请求数 × 平均请求时间（Little 定律）"
    ),
    "below": Said(
        "concurrency",
        "fewer than the limit: requests a second × mean time of a request (Little's law)",
        "少于并发上限：每秒请求数 × 平均请求时间（Little 定律）",
    ),
    "derived_latency": Said(
        "time of a request",
        "TTFT + TPOT × (output tokens − 1), as it is not stated",
        "未给出，取 TTFT + TPOT ×（输出 token 数 − 1）",
    ),
    "capped": Said(
        "concurrency", "the limit; requests arrive at a rate, so it need not be reached", "取并发上限；请求按速率到达，未必达到"
    ),
    "no_concurrency": Said(
        "concurrency", "not stated and not to be worked out; state it to use the points", "未给出且无法推算；请补充后使用"
    ),
    "tpot": Said("TPOT", "mean, first token excluded", "平均值，不含首 token"),
    "itl_for_tpot": Said(
        "TPOT", "not stated; the mean gap between tokens (ITL) stands in", "未给出，以 token 间隔（ITL）平均值代替"
    ),
    "itl_is_tpot": Said(
        "TPOT",
        "this tool's inter-token latency, (request time − TTFT) / (output tokens − 1)",
        "即该工具的 token 间延迟：（请求时间 − TTFT）/（输出 token 数 − 1）",
    ),
    "itl_is_guidellm": Said(
        "TPOT",
        "this tool's ITL, (last token − first token) / (output tokens − 1)",
        "即该工具的 ITL：（末 token 时刻 − 首 token 时刻）/（输出 token 数 − 1）",
    ),
    "from_latency": Said(
        "TPOT",
        "(mean time of a request − mean TTFT) / (mean output tokens − 1), as this tool's own counts the first token",
        "（平均请求时间 − 平均 TTFT）/（平均输出 token 数 − 1），因该工具的值包含首 token",
    ),
    "medians": Said("times", "medians, as no mean is printed", "中位数，因未给出平均值"),
    "median_tpot": Said("TPOT", "the median stands in, as no mean is stated", "未给出平均值，以中位数代替"),
    "median_ttft": Said("TTFT", "the median stands in, as no mean is stated", "未给出平均值，以中位数代替"),
    "median_lengths": Said(
        "lengths",
        "medians of tokens a request, as no mean is printed",
        "每请求 token 数的中位数，因未给出平均值",
    ),
    "seconds": Said(
        "time of a request", "this version heads the column ms and prints seconds", "该版本列名写 ms，实际输出为秒"
    ),
    "model_hidden": Said(
        "model",
        "not shown: only a public name, such as organisation/name, is kept",
        "不予显示：仅保留公开名称（如 组织/名称）",
    ),
    "drafted": Said(
        "speculative decoding", "was on; TPOT holds its gain", "已启用；TPOT 包含其收益"
    ),
    "contradict": Said(
        "figures",
        "tokens a second × TPOT imply more requests in flight than are stated; check that both are of the whole service",
        "每秒 token 数 × TPOT 得出的在途请求数大于给出的并发；请核对两者是否都指整个服务",
    ),
    "failed": Said("failed requests", "they are left out of every mean", "不计入任何平均值"),
}  # fmt: skip

UNUSED_TPOT: Final = "GuideLLM's TPOT divides by all output tokens, the first included, so its ITL is used instead."
UNUSED_ITL: Final = "LLMPerf's inter-token latency includes the first token and is not used."

_CHINESE: Final = {said.en: said.zh for said in NOTES.values()} | {
    UNUSED_TPOT: "GuideLLM 的 TPOT 除以全部输出 token（含首 token），因此改用其 ITL。",
    UNUSED_ITL: "LLMPerf 的 token 间延迟包含首 token，不予采用。",
}


def in_chinese(said: str) -> str:
    """What is said of a result, in Chinese; figures and names stay as they are."""
    return _CHINESE.get(said, said)
