"""Prefill in a pool of its own: transfer, workers, devices and dollars, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.errors import InputError
from planner.physics import forward
from planner.plan import Plan
from planner.pools import transfer
from planner.serving import prefill
from planner.specs.layout import layout
from tests.asking import one, plan, setting

APART: dict[str, Any] = {
    "model": "llama-3.1-70b", "tp": 4, "prefill": "disaggregated", "prefill_tp": 4, "isl": 2048, "osl": 256,
    "sla_ttft_ms": 2000.0,
}  # fmt: skip


def note(found: Plan, code: str) -> str:
    return next(note.text for note in found.notes if note.code == code)


def test_the_cache_of_a_prompt_travels_over_as_many_links_as_the_smaller_side_has() -> None:
    """2,048 · 327,680 B = 671 MB; four NICs of 50 GB/s at 80 %: 4.19 ms and a message's latency."""
    at = setting(**APART)
    assert at.pool is not None
    found = transfer(at, at.pool, layout(4).tall)
    assert found.cache_bytes == 2048 * 327_680
    assert one(found.seconds) == pytest.approx(671_088_640 / (4 * 50e9 * 0.8) + at.profile.links.out_alpha, rel=1e-12)
    fewer = setting(**{**APART, "prefill_tp": 8})
    assert fewer.pool is not None
    assert one(transfer(fewer, fewer.pool, layout(2).tall).links) == 2


def test_a_slow_link_is_on_the_way_to_the_first_token() -> None:
    quick, slow = plan(**APART, kv_link_eff=0.8), plan(**APART, kv_link_eff=0.02)
    assert quick.ttft_ms is not None
    assert slow.ttft_ms is not None
    waits = 671_088_640 / (4 * 50e9) * (1 / 0.02 - 1 / 0.8) * 1e3
    assert slow.ttft_unloaded_ms - quick.ttft_unloaded_ms == pytest.approx(waits, rel=1e-9)  # type: ignore[operator]


def test_decode_is_free_of_prompts() -> None:
    """TPOT of the decode pool is that of decode alone."""
    alone = plan(**{**APART, "prefill": "excluded", "prefill_tp": None}, at_batch=64)
    assert plan(**APART, at_batch=64).tpot_ms == alone.tpot_ms


def test_workers_follow_the_request_rate() -> None:
    """20 requests/s, so many seconds of a worker each, to 80 %: rounded up."""
    at, found = setting(**APART, qps=20.0), plan(**APART, qps=20.0)
    assert at.pool is not None
    workers = np.ceil(20 * at.pool.busy / 0.8)
    assert found.replicas is not None
    assert found.gpus == found.replicas * 4 + workers * 4
    assert f"Prefill pool: {workers:.0f} workers of 4" in note(found, "prefill_pool")
    assert found.usd_per_hour == pytest.approx(at.cost.price * found.gpus, rel=1e-12)  # type: ignore[operator]


@pytest.mark.parametrize("rate", [0.0, 20.0])
def test_goodput_a_device_is_what_the_deployment_can_do_over_all_its_devices(rate: float) -> None:
    """The smaller of what decode replicas finish and what the prefill pool begins, over the devices of both."""
    at, found = setting(**APART, qps=rate), plan(**APART, qps=rate)
    assert at.pool is not None
    assert found.replicas is not None
    assert found.gpus is not None
    assert found.goodput_tok_s is not None
    assert found.tpot_ms is not None
    workers = (found.gpus - found.replicas * 4) / at.pool.devices
    able = min(found.batch / found.tpot_ms * 1e3 * found.replicas, workers / at.pool.busy * 256)
    assert found.goodput_tok_s * found.replicas == pytest.approx(able, rel=1e-9)
    assert found.goodput_tok_s_gpu == pytest.approx(able / found.gpus, rel=1e-9)


def test_a_request_of_one_token_has_nothing_to_decode_elsewhere() -> None:
    with pytest.raises(InputError, match="osl of 2 or more"):
        setting(**{**APART, "osl": 1})


def test_too_few_prefill_workers_cannot_feed_the_rate() -> None:
    found = plan(**APART, qps=200.0, prefill_workers=1)
    assert not found.meets_sla
    assert "carry less" in found.reason


def test_the_decode_pool_may_be_fixed() -> None:
    assert plan(**APART, decode_workers=3, qps=1.0).replicas == 3


def test_a_pool_of_another_accelerator_has_its_own_clock_and_price() -> None:
    same, other = setting(**APART, qps=20.0), setting(**APART, qps=20.0, prefill_gpu="h200-sxm")
    assert same.pool is not None
    assert other.pool is not None
    assert other.pool.gpu.id == "h200-sxm"
    assert other.pool.price != same.pool.price
    assert other.pool.busy != same.pool.busy


def test_a_worker_that_cannot_hold_the_model_is_named() -> None:
    found = plan(**{**APART, "prefill_tp": 1})
    assert not found.meets_sla
    assert found.tpot_ms is None
    assert "prefill_tp" in note(found, "prefill_pool_small")


def test_inside_a_rack_the_cache_takes_the_scale_up_links() -> None:
    at = setting(**{**APART, "gpu": "gb200-nvl72"})
    assert at.pool is not None
    found = transfer(at, at.pool, layout(4).tall)
    assert found.scale_up.all()
    assert found.bandwidth == 900e9


def test_links_between_pools_are_those_of_each_row_alone() -> None:
    """A worker and a replica stand in one rack of 72 or they do not, whatever else is in the table."""
    at = setting(**{**APART, "gpu": "gb200-nvl72"})
    assert at.pool is not None
    both = transfer(at, at.pool, layout(dp=[4, 72]).tall)
    assert both.scale_up.tolist() == [[True], [False]]
    assert both.bandwidth.tolist() == [[900e9], [50e9]]


def test_a_fixed_pool_that_feeds_less_limits_throughput_and_goodput() -> None:
    """One worker: one prompt each so many seconds, 256 tokens of output each."""
    asked = {**APART, "isl": 8000, "at_batch": 32, "price": 2.0, "sla_ttft_ms": 3000.0}
    found, at = plan(**asked, prefill_workers=1, decode_workers=4), setting(**asked)
    assert at.pool is not None
    assert found.output_tok_s is not None
    assert found.output_tok_s * 4 == pytest.approx(256 / at.pool.busy, rel=1e-9)
    assert found.goodput_tok_s_gpu == pytest.approx(256 / at.pool.busy / 20, rel=1e-9)
    assert found.usd_per_m_output == pytest.approx(40 / (256 / at.pool.busy * 3600 / 1e6), rel=1e-9)
    assert "throughput and goodput are those that it feeds" in note(found, "prefill_binds")


def test_equal_devices_of_both_pools_are_rented_together_in_whole_instances() -> None:
    found = plan(
        model="llama-3.1-70b", weights="fp8", tp=2, prefill="disaggregated", provider="AWS", sla_ttft_ms=1000.0
    )  # fmt: skip
    price = setting(model="llama-3.1-70b", weights="fp8", tp=2, provider="AWS").cost.price
    assert found.gpus is not None
    assert price is not None
    assert found.usd_per_hour == pytest.approx(np.ceil(found.gpus / 8) * 8 * price, rel=1e-12)


def test_the_curve_pays_for_the_prefill_that_feeds_it() -> None:
    found, at = plan(**APART, at_batch=64), setting(**APART)
    point = next(point for point in found.curve if point.batch == 64)
    assert at.pool is not None
    assert at.cost.price is not None
    feeding = point.output_tok_s / 256 * at.pool.busy / 0.8 * at.pool.devices
    dollars = at.cost.price * (4 + feeding)
    assert point.usd_per_m_output == pytest.approx(dollars / (point.output_tok_s * 3600 / 1e6), rel=1e-9)


def test_a_pool_that_cannot_hold_the_model_is_no_fit() -> None:
    assert not plan(**{**APART, "prefill_tp": 1}).fits


def test_a_worker_of_unstated_size_reads_most_prompts_a_device() -> None:
    """DeepSeek-V3 on H200: eight ranks that read a prompt each beat eight that share one, which wait for all-reduces."""
    asked = {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "dp": 8, "ep": 8, "isl": 4000,
             "prefill": "disaggregated", "sla_ttft_ms": 2000.0}  # fmt: skip
    own, tensor = setting(**asked).pool, setting(**asked, prefill_tp=8).pool
    assert own is not None
    assert tensor is not None
    assert own.fits
    assert own.busy * own.devices < tensor.busy * tensor.devices
    assert one(own.at.dp) == one(own.at.ep) == own.devices


def test_ranks_of_a_worker_read_a_prompt_each_in_the_time_of_one_step_together() -> None:
    at = setting(model="deepseek-v3", gpu="h200-sxm", weights="fp8-block", isl=4000)
    placed = forward.place(at.machine, layout(dp=8, ep=8))
    alone, together = (one(prefill.prompt_seconds(placed, at.profile, at.prompt, alone=each)) for each in (True, False))
    assert alone < together < 8 * alone


def test_a_worker_that_breaks_the_promise_comes_after_all_others() -> None:
    slow = setting(**{**APART, "prefill_tp": None, "sla_ttft_ms": 10_000.0}).pool
    quick = setting(**{**APART, "prefill_tp": None, "sla_ttft_ms": 250.0}).pool
    assert slow is not None
    assert quick is not None
    assert quick.prompt < slow.prompt


@pytest.mark.parametrize("prefill_tp", [7, 1000])
def test_a_worker_that_the_model_does_not_admit_is_no_plan(prefill_tp: int) -> None:
    found = plan(**{**APART, "prefill_tp": prefill_tp})
    assert not found.fits
    assert "prefill_tp does not divide" in found.reason
    assert found.tpot_ms is None
    assert note(found, "nearest_fit")


def test_a_worker_of_another_maker_needs_the_engine_too() -> None:
    found = plan(**{**APART, "engine": "trtllm", "prefill_gpu": "mi300x", "prefill_tp": 4})
    assert not found.engine_ok


def test_the_nearest_plan_leaves_a_worker_that_is_too_small_to_the_planner() -> None:
    found = plan(**{**APART, "prefill_tp": 1})
    assert "prefill_tp left out" in note(found, "nearest_fit")
