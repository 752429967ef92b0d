"""Replicas and dollars: rates rounded the safe way, instances paid whole, nothing divided by nothing."""

from __future__ import annotations

import numpy as np
import pytest

from planner.serving import cost, goodput
from tests.asking import column, one, plan


@pytest.mark.parametrize(("qps", "replicas"), [(0.0, 1), (0.1, 1), (10.0, 4), (9.375, 3), (9.38, 4)])
def test_replicas_carry_the_rate_at_their_load(qps: float, replicas: int) -> None:
    """256 tokens a request over 1,000 tokens/s · 0.8."""
    assert one(cost.replicas_needed(qps, 256, column(1000), 0.8)) == replicas


def test_devices_are_paid_in_whole_instances() -> None:
    assert cost.billed_devices(column(1, 8, 9, 16), 8).tolist() == [8, 8, 16, 16]
    assert cost.billed_devices(column(1, 9), 1).tolist() == [1, 9]


def test_the_bill_is_devices_times_price() -> None:
    assert one(cost.dollars_per_hour(column(24), 2.5)) == 60


def test_a_million_tokens_by_hand() -> None:
    """$10 an hour over 1,000 tokens/s = 3.6 M tokens an hour."""
    assert one(cost.dollars_per_million(column(10), column(1000))) == pytest.approx(10 / 3.6)


def test_no_tokens_have_no_price() -> None:
    with np.errstate(all="raise"):
        assert np.isnan(cost.dollars_per_million(column(10, 10), column(0, 1000))).tolist() == [True, False]


def test_what_is_delivered_is_what_is_asked() -> None:
    assert one(cost.served_rate(2.0, 100, cost.fleet_rate(column(3), column(1000)))) == 200
    assert one(cost.served_rate(0.0, 100, column(3000))) == 3000
    assert one(cost.served_rate(1000.0, 100, column(3000))) == 3000


def test_throughput_is_batch_over_tpot() -> None:
    assert one(goodput.output_rate(column(64), column(0.028))) == pytest.approx(2285.71, rel=1e-5)


@pytest.mark.parametrize(("tpot", "ttft", "good"), [(0.05, 0.2, 1.0), (0.0501, 0.2, 0.0), (0.05, 0.2001, 0.0)])
def test_goodput_needs_both_promises(tpot: float, ttft: float, good: float) -> None:
    assert one(goodput.good_rate(column(1000), column(tpot), column(ttft), 0.05, 0.2)) == good * 1000


def test_a_plans_bill_by_hand() -> None:
    """8 replicas and a spare of 4 GPUs at $2: what is asked, 20 requests/s of 256 tokens, is what is paid for."""
    found = plan(
        model="llama-70b-nominal",
        profile="textbook",
        prefill="excluded",
        tp=4,
        at_batch=8,
        qps=20.0,
        price=2.0,
        spare=1,
    )
    rate = 8 / ((140e9 + 8 * 1152 * 327_680) / (4 * 3.35e12))
    replicas = int(np.ceil(20 * 256 / (rate * 0.8)))
    assert found.output_tok_s == pytest.approx(rate, rel=1e-12)
    assert (found.replicas, found.gpus) == (replicas + 1, 4 * (replicas + 1))
    assert found.usd_per_hour == found.gpus * 2.0
    assert found.usd_per_m_output == pytest.approx(found.usd_per_hour / (20 * 256 * 3600 / 1e6), rel=1e-12)
    assert found.meets_sla
    assert found.goodput_tok_s == pytest.approx(rate, rel=1e-12)
    assert found.goodput_tok_s_gpu == pytest.approx(rate / 4, rel=1e-12)
    assert found.usd_per_m_goodput == pytest.approx(found.usd_per_hour / (20 * 256 * 3600 / 1e6), rel=1e-12)


def test_without_a_rate_one_replica_runs_full() -> None:
    found = plan(model="llama-3.1-70b", tp=4, price=2.0, at_batch=32)
    assert found.replicas == 1
    assert found.usd_per_m_output == pytest.approx(8.0 / (found.output_tok_s * 3600 / 1e6), rel=1e-12)


def test_fixed_replicas_are_not_sized() -> None:
    found = plan(model="llama-3.1-70b", tp=4, price=2.0, at_batch=32, qps=1.0, fix_replicas=7)
    assert (found.replicas, found.usd_per_hour) == (7, 56.0)


def test_tokens_that_break_the_promise_have_no_good_price() -> None:
    found = plan(model="llama-3.1-70b", tp=4, price=2.0, at_batch=8, sla_tpot_ms=1.0)
    assert found.usd_per_m_goodput is None
    assert found.goodput_tok_s == 0.0
    assert found.usd_per_m_output is not None


@pytest.mark.parametrize(("qps", "carried"), [(0.5, True), (50.0, False)])
def test_fixed_replicas_that_carry_too_little_are_no_plan(qps: float, carried: bool) -> None:
    """4 H100 at batch 32 in the textbook profile serve a few requests of 256 tokens a second: half a one, never fifty."""
    found = plan(model="llama-3.1-70b", weights="fp8", tp=4, price=2.0, at_batch=32, qps=qps, fix_replicas=1)
    assert (qps * found.scenario.osl <= found.output_tok_s) is carried
    assert ("overloaded" not in {note.code for note in found.notes}) is carried
    assert found.meets_sla is carried
