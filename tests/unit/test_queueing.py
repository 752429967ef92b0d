"""What one replica's requests see at a percentile: limits worked out by hand or by the plan, and how numbers must move."""

from __future__ import annotations

import time

import numpy as np
import pytest

from planner.queueing import curve, largest_rate, replicas_at, tails
from planner.rows import bounds
from planner.serving import decode
from planner.setting import resolve
from planner.spares import spares_for
from planner.specs.layout import layout
from planner.specs.scenario import Scenario


def known_of(**changes):
    asked = Scenario(**{"model": "llama-3.1-8b", "sla_ttft_ms": 500.0, "sla_pct": 99.0, **changes})
    setting = resolve(asked)
    return setting, bounds(setting, layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp).tall)


def at(rate, *, batch=128.0, pct=99.0, isl_cv=0.0, osl_cv=0.0, **changes):
    return tails(*known_of(**changes), rate, batch=batch, pct=pct, isl_cv=isl_cv, osl_cv=osl_cv)


# --- limits ----------------------------------------------------------------------------------------------------------


def test_a_rare_request_sees_what_the_plan_says_of_a_lone_one():
    setting, known = known_of()
    found = tails(setting, known, 1e-6, batch=128, pct=99)
    step = decode.tpot(known.clock, np.ones((1, 1)))[1]
    assert found.ttft == pytest.approx(float(known.unloaded[0, 0]), rel=0.01)
    assert found.tpot == pytest.approx(float(step[0, 0]), rel=1e-3)
    assert found.share == 1.0
    assert found.holds


@pytest.mark.parametrize("model", [{"model": "llama-3.1-8b"}, {"model": "llama-3.1-70b", "tp": 4, "osl": 1024}])
def test_queues_grow_where_the_plan_has_its_throughput(model):
    """Requests a second of a full batch: B / (osl · TPOT(B)), but for what prompts that meet in a step add to each other."""
    setting, known = known_of(**model)
    found = tails(setting, known, 0.01, batch=64, pct=99)
    plan = 64.0 / (setting.scenario.osl * float(decode.tpot(known.clock, np.full((1, 1), 64.0))[0][0, 0]))
    assert found.saturation == pytest.approx(plan, rel=0.04)
    assert found.saturation < plan * 1.01


def test_the_mean_batch_is_littles_law():
    """Requests that run = rate · (first token after the front end + decoding)."""
    found = at(6.0, osl=512)
    assert found.batch_mean == pytest.approx(6.0 * 511 * found.tpot_mean, rel=0.03)


def test_excluded_prefill_waits_for_the_running_step_alone():
    setting, known = known_of(prefill="excluded")
    found = tails(setting, known, 5.0, batch=128, pct=99)
    assert float(known.unloaded[0, 0]) < found.ttft < float(known.unloaded[0, 0]) + 1.01 * found.tpot


def test_a_short_prefill_pool_makes_first_tokens_late():
    pool = {"model": "llama-3.1-70b", "tp": 4, "prefill": "disaggregated", "fix_replicas": 1}
    few, many = (at(3.0, **pool, prefill_workers=workers) for workers in (1, 8))
    assert few.ttft > many.ttft
    assert few.tpot == pytest.approx(many.tpot, rel=1e-6)
    assert not at(500.0, batch=4096, **pool, prefill_workers=1).holds


# --- how numbers move ------------------------------------------------------------------------------------------------


def test_everything_grows_with_the_rate():
    setting, known = known_of()
    found = curve(setting, known, [1.0, 4.0, 8.0, 12.0, 16.0], batch=128, pct=99)
    for name in ("batch_mean", "batch_at", "ttft", "ttft_mean", "tpot", "tpot_mean", "load"):
        values = [getattr(each, name) for each in found]
        assert values == sorted(values), name
    assert [each.rate for each in found] == [1.0, 4.0, 8.0, 12.0, 16.0]


def test_a_curve_is_its_points():
    setting, known = known_of()
    assert curve(setting, known, [3.0], batch=64, pct=95)[0] == tails(setting, known, 3.0, batch=64, pct=95)


def test_percentiles_are_in_order():
    low, middle, high = (at(10.0, pct=pct) for pct in (50.0, 90.0, 99.0))
    assert low.ttft < middle.ttft < high.ttft
    assert low.tpot < middle.tpot < high.tpot


def test_above_saturation_nobody_is_served_in_time():
    found = at(1000.0)
    assert (found.ttft, found.waits, found.share, found.holds) == (np.inf, 1.0, 0.0, False)
    assert found.load > 1.0
    assert found.tpot > 0.0


def test_requests_of_one_token_have_no_tpot_to_keep():
    assert at(0.5, osl=1, sla_tpot_ms=0.001).holds


def test_uneven_lengths_stretch_what_they_touch():
    even = at(8.0)
    assert at(8.0, isl_cv=0.5).ttft > even.ttft
    assert at(8.0, osl_cv=1.0).tpot > even.tpot


# --- what holds ------------------------------------------------------------------------------------------------------


def test_the_largest_rate_is_the_last_that_holds():
    setting, known = known_of(sla_tpot_ms=20.0)
    most = largest_rate(setting, known, batch=128, pct=99)
    assert tails(setting, known, most, batch=128, pct=99).holds
    assert not tails(setting, known, 1.02 * most, batch=128, pct=99).holds


def test_a_stricter_percentile_carries_less():
    setting, known = known_of(sla_tpot_ms=20.0)
    rates = [largest_rate(setting, known, batch=128, pct=pct) for pct in (50.0, 90.0, 99.0)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 1.05 * rates[2]


def test_a_promise_that_a_lone_request_breaks_is_never_kept():
    setting, known = known_of(sla_ttft_ms=10.0)
    assert largest_rate(setting, known, batch=128, pct=99) == 0.0
    assert replicas_at(setting, known, batch=128, pct=99, qps=10.0) is None


def test_replicas_share_the_rate():
    setting, known = known_of(sla_tpot_ms=20.0)
    most = largest_rate(setting, known, batch=128, pct=99)
    assert replicas_at(setting, known, batch=128, pct=99, qps=3.0 * most) == 3
    assert replicas_at(setting, known, batch=128, pct=99, qps=3.01 * most) == 4
    assert replicas_at(setting, known, batch=128, pct=99, qps=0.0) == 1


def test_a_gateway_lets_in_what_keeps_the_promise():
    _, known = known_of(sla_tpot_ms=20.0)
    limit = float(known.limits.largest[0, 0])
    slow = decode.tpot(known.clock, np.array([[limit, limit + 1.0]]))[0][0]
    assert slow[0] <= 0.020 < slow[1]


# --- spares ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "availability", "spares"),
    [(1, 0.9, 0), (1, 0.98, 1), (2, 0.81, 0), (2, 0.97, 1), (2, 0.99, 2), (1, 0.9999, 3)],
)
def test_spares_by_hand(replicas, availability, spares):
    """Up nine hours in ten. One of two: 1 − 0.1² = 0.99; two of three: 0.9³ + 3·0.81·0.1 = 0.972; two of four: 0.9963."""
    assert spares_for(replicas, availability, 1.0 / 9.0, 1.0) == spares


def test_what_never_fails_needs_no_spare():
    assert spares_for(100, 0.99999, 0.0, 4.0) == 0


# --- doubts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "changes", "word"),
    [
        (1.0, {"model": "llama-3.1-70b", "tp": 2, "pp": 2}, "Pipelines"),
        (1.0, {"spec": 2}, "drafts"),
        (1.0, {"engine": "sglang"}, "first"),
        (1.0, {"chunk": 256}, "chunks"),
        (1.0, {"isl": 3000, "isl_cv": 1.0}, "uneven"),
        (1.0, {"isl": 8000}, "fills most"),
    ],
)
def test_what_theory_does_not_know_is_said(rate, changes, word):
    found = at(rate, **changes)
    assert not found.sure
    assert word in found.why


def test_above_ninety_percent_of_saturation_nothing_is_sure():
    saturation = at(1.0).saturation
    assert at(0.5 * saturation, sla_ttft_ms=5000.0, sla_tpot_ms=500.0).sure
    assert "90 %" in at(0.95 * saturation, sla_ttft_ms=5000.0, sla_tpot_ms=500.0).why


def test_a_promise_in_the_middle_of_the_crowd_is_not_sure():
    middle = at(10.0, pct=50.0).tpot * 1e3
    assert "crowd" in at(10.0, sla_ttft_ms=5000.0, sla_tpot_ms=middle).why


# --- speed -----------------------------------------------------------------------------------------------------------


def test_hundred_thousand_seats_are_no_slower():
    setting, known = known_of(isl=32, osl=16)
    tails(setting, known, 1.0, batch=100_000, pct=99)
    begun = time.perf_counter()
    found = tails(setting, known, 10.0, batch=100_000, pct=99)
    assert time.perf_counter() - begun < 0.5
    assert found.batch_at < 100
