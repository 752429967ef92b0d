"""A plan made by hand: what export, answer and report show does not depend on the physics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.plan import CurvePoint, LedgerRow, Note, Plan
from planner.specs.scenario import Scenario

SCENARIO = Scenario(gpu="h100-sxm", tp=4, qps=20.0)

PLAN = Plan(
    fits=True,
    meets_sla=True,
    engine_ok=True,
    binds="tpot",
    reason="",
    gpus_per_replica=4,
    replicas=6,
    gpus=24,
    physical_bytes=85.5e9,
    usable_bytes=76.9e9,
    withheld_bytes=8.6e9,
    weights_bytes=35.3e9,
    activation_bytes=1.5e9,
    graph_bytes=0.5e9,
    runtime_bytes=1.2e9,
    kv_pool_bytes=38.4e9,
    kv_bytes_per_token=81_920.0,
    kv_capacity_tokens_rank=468_750,
    kv_capacity_tokens=468_750,
    b_max_kv=366,
    b_max_kv_mean=406,
    b_max_sla=92,
    b_max=92,
    batch=92,
    tpot_ms=49.5,
    ttft_ms=180.25,
    ttft_unloaded_ms=155.5,
    output_tok_s=1858.5858585858584,
    goodput_tok_s=1858.5858585858584,
    goodput_tok_s_gpu=464.6464646464646,
    tpot_low_ms=44.55,
    tpot_high_ms=54.45,
    usd_per_hour=48.2,
    usd_per_m_output=0.41,
    usd_per_m_goodput=0.41,
    b_max_sure=80,
    ttft_low_ms=108.15,
    ttft_high_ms=288.4,
    output_low_tok_s=1486.87,
    output_high_tok_s=2230.3,
    usd_low_per_m_goodput=0.342,
    usd_high_per_m_goodput=0.513,
    notes=(
        Note("price", "median of 11 prices, $1.99 to $6.88", "price"),
        Note("borrowed", "kernels of h100-sxm", "gpu"),
    ),
    scenario=SCENARIO,
    curve=(CurvePoint(1, 12.0, 10.8, 13.2, 83.3, 9.1, True), CurvePoint(512, 200.0, 180.0, 220.0, 2560.0, None, False)),
    ledger=(LedgerRow("qkv", "gemm", 1e-3, 2e12, 3e9, 0.0, "memory"),),
    assumptions=("prompts arrive evenly",),
    sources=("a table",),
)


def plan(**changes: Any) -> Plan:
    """The plan with some fields changed."""
    return replace(PLAN, **changes)
