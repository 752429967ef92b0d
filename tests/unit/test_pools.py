"""Prefill in a pool of its own: transfer, workers, devices and dollars, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.errors import InputError
from planner.plan import Plan
from planner.pools import transfer
from planner.specs.layout import layout
from tests.asking import one, plan, setting

APART: dict[str, Any] = {
    "model": "llama-3.1-70b", "tp": 4, "prefill": "disaggregated", "isl": 2048, "osl": 256, "sla_ttft_ms": 2000.0,
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
    fewer = setting(**APART, prefill_tp=8)
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
    alone = plan(**{**APART, "prefill": "excluded"}, at_batch=64)
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


def test_goodput_a_device_counts_both_pools_at_full_use() -> None:
    """A replica at full batch, and the part of the prefill pool that feeds it at 80 %."""
    for rate in (0.0, 20.0):
        at, found = setting(**APART, qps=rate), plan(**APART, qps=rate)
        assert at.pool is not None
        assert found.goodput_tok_s is not None
        feeding = found.goodput_tok_s / 256 * at.pool.busy / 0.8 * 4
        assert found.goodput_tok_s_gpu == pytest.approx(found.goodput_tok_s / (4 + feeding), rel=1e-12)


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
    found = plan(**APART, prefill_tp=1)
    assert not found.meets_sla
    assert found.tpot_ms is None
    assert "prefill_tp" in note(found, "prefill_pool_small")


def test_inside_a_rack_the_cache_takes_the_scale_up_links() -> None:
    at = setting(**{**APART, "gpu": "gb200-nvl72"})
    assert at.pool is not None
    found = transfer(at, at.pool, layout(4).tall)
    assert found.scale_up
    assert found.bandwidth == 900e9


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
    found = plan(**APART, at_batch=64, load=1.0)
    point = next(point for point in found.curve if point.batch == 64)
    assert found.goodput_tok_s_gpu is not None
    assert setting(**APART).cost.price is not None
    price = setting(**APART).cost.price
    assert point.usd_per_m_output == pytest.approx(price / (found.goodput_tok_s_gpu * 3600 / 1e6), rel=1e-9)  # type: ignore[operator]


def test_a_pool_that_cannot_hold_the_model_is_no_fit() -> None:
    assert not plan(**APART, prefill_tp=1).fits


def test_a_worker_of_unstated_size_is_the_smallest_that_holds_the_model() -> None:
    """A decode replica of eight data-parallel ranks has tp = 1, on which DeepSeek-V3 does not fit: eight H200 read prompts."""
    at = setting(model="deepseek-v3", gpu="h200-sxm", weights="fp8-block", dp=8, ep=8, prefill="disaggregated")
    assert at.pool is not None
    assert at.pool.devices == 8
    assert at.pool.fits
