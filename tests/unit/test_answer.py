"""The answer in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from planner.answer import Pools, answer, devices, pools
from planner.specs.scenario import Scenario
from tests.samples import SCENARIO, plan


def test_fits() -> None:
    assert answer(plan()) == (
        "Fits. 92 concurrent requests per replica, bound by TPOT; 6 replicas of 4 × H100 SXM 80 GB serve 20 requests/s "
        "for $48.20 an hour, $0.410 per million good tokens."
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fits": False, "kv_pool_bytes": 0.0, "weights_bytes": 80e9, "binds": "weights"}, "5.80 GB are missing"),
        (
            {"fits": False, "b_max_kv": 0, "kv_capacity_tokens_rank": 1000, "binds": "kv", "meets_sla": False},
            "holds 1,000 tokens per rank and one request needs 1,280: 280 tokens are missing",
        ),
        ({"fits": False, "batch": 400, "meets_sla": False}, "holds 366 requests per replica, not 400: 34 too many"),
        (
            {"fits": False, "binds": "layout", "reason": "tp must divide the heads"},
            "Cannot be laid out: tp must divide the heads.",
        ),
        ({"meets_sla": False, "tpot_ms": 80.0}, "TPOT is 80.0 ms, the SLA 50.0 ms (30.0 ms too long)"),
        ({"meets_sla": False, "ttft_ms": 1200.0}, "TTFT is 1.20 s, the SLA 200 ms (1.00 s too long)"),
        ({"engine_ok": False, "meets_sla": False, "reason": "no int4"}, "vLLM does not serve it: no int4."),
        ({"batch": 93}, "admits 92 concurrent requests per replica, not 93"),
        ({"batch": 60}, "60 of at most 92 concurrent requests per replica"),
        ({"usd_per_hour": None, "usd_per_m_goodput": None}, "at a price that is not known."),
        (
            {"scenario": SCENARIO.with_(qps=0.0), "replicas": 1},
            "1 replica of 4 × H100 SXM 80 GB gives 1,860 output tokens/s",
        ),
        ({"tpot_ms": None, "ttft_ms": None, "reason": "no prefill pool"}, "cannot serve: no prefill pool."),
        ({"scenario": SCENARIO.with_(qps=0.0), "replicas": 1}, "(5.81 requests/s at 80\u00a0% load)"),
        ({"scenario": SCENARIO.with_(spare=1)}, "6 replicas (1 spare)"),
    ],
)
def test_says_what_and_by_how_much(changes: dict[str, Any], said: str) -> None:
    assert said in answer(plan(**changes))


def test_never_says_fits_of_what_does_not() -> None:
    for changes in ({"fits": False}, {"meets_sla": False}, {"engine_ok": False}, {"batch": 1000}):
        assert not answer(plan(**changes)).startswith("Fits. ")


def test_one_sequence_is_singular() -> None:
    one = plan(b_max=1, batch=1, scenario=Scenario(), replicas=1)
    assert answer(one).startswith("Fits. 1 concurrent request per replica")


APART = SCENARIO.with_(prefill="disaggregated")


def test_a_prefill_pool_adds_up_to_all_gpus() -> None:
    """6 decode replicas of 4 and 5 prefill workers of 4 are 24 and 20 GPUs."""
    said = answer(plan(scenario=APART, gpus=44))
    assert "6 decode replicas of 4 × H100 SXM 80 GB and 5 prefill workers of 4: 44 GPUs serve 20 requests/s" in said
    assert pools(plan(scenario=APART, gpus=44)) == Pools(decode=24, prefill=20, workers=5, each=4, other="")
    assert pools(plan()) is None
    assert pools(plan(scenario=APART, gpus=None, replicas=None)) is None


def test_one_worker_is_singular_and_another_accelerator_is_named() -> None:
    other = APART.with_(prefill_gpu="h200-sxm", prefill_tp=2)
    said = answer(plan(scenario=other, replicas=1, gpus=6))
    assert "1 decode replica of 4 × H100 SXM 80 GB and 1 prefill worker of 2 × H200 SXM 141 GB: 6 GPUs serve" in said


def test_a_gpu_of_a_rack_is_not_a_rack() -> None:
    rack = Scenario(gpu="gb200-nvl72", dp=16, ep=16, model="deepseek-v3")
    assert devices(plan(scenario=rack, gpus_per_replica=16)) == "16 × GB200 (NVL72, DP16+EP16)"
    assert devices(plan(scenario=rack.with_(dp=1, ep=1), gpus_per_replica=1)) == "1 × GB200 (NVL72)"
