"""What a candidate is called."""

from __future__ import annotations

from planner.catalog.accelerators import accelerator
from planner.specs.layout import layout_name
from planner.specs.scenario import Scenario

PRECISIONS = {
    "bf16": "BF16", "fp8": "FP8", "fp8-block": "block FP8", "int8": "INT8", "int4": "INT4", "nvfp4": "NVFP4", "mxfp4": "MXFP4",
}  # fmt: skip


def layout_words(scenario: Scenario) -> str:
    """The layout of a replica: `DP8+EP8`, `TP4`."""
    degrees = {name: getattr(scenario, name) for name in ("tp", "pp", "dp", "ep", "cp", "dcp")}
    return layout_name(**degrees) or f"TP{scenario.tp}"


def kind_words(scenario: Scenario) -> str:
    """What sets a candidate apart: layout, precisions, accelerator, and its prefill pool where it has one."""
    weights = PRECISIONS[scenario.weights]
    cache = "" if scenario.kv == "bf16" else f" · KV {PRECISIONS[scenario.kv]}"
    drafted = f" · {scenario.spec} draft tokens" if scenario.spec else ""
    chunked = f" · chunks of {scenario.chunk:,}" if scenario.chunk else ""
    return f"{layout_words(scenario)} · {weights}{cache} · {accelerator(scenario.gpu).name}{drafted}{chunked}{_apart(scenario)}"


def _apart(scenario: Scenario) -> str:
    """The prefill pool in words, its workers' size where it is named."""
    if scenario.prefill != "disaggregated":
        return ""
    own = scenario.prefill_gpu is None or scenario.prefill_gpu == scenario.gpu
    where = "" if own else f" on {accelerator(scenario.prefill_gpu or scenario.gpu).name}"
    size = "" if scenario.prefill_tp is None else f" (TP{scenario.prefill_tp})"
    return f" · prefill apart{where}{size}"


def family_of(scenario: Scenario) -> tuple[object, ...]:
    """What makes a candidate of another kind: accelerators, precisions, techniques and style of parallelism, not sizes."""
    s = scenario
    split = s.tp * s.dp * s.cp > s.ep > 1
    style = (s.dp > 1, s.ep > 1, s.pp > 1, s.cp > 1, s.dcp > 1, split)
    return s.gpu, s.weights, s.kv, s.chunk, s.spec, s.prefill, s.prefill_gpu, *style
