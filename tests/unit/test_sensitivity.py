"""What moves the cost of a good token, and the price at which the second choice wins: against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from planner.catalog.fitted_constants import serving
from planner.catalog.prices import default_price
from planner.catalog.profile_records import kernels
from planner.optimise import Question, optimise
from planner.optimise.sensitivity import COLUMNS, Swing, break_even, resized, rows, swings
from planner.optimise.slower import slower, stretched
from planner.physics.roofline import overlapped_seconds, rise_seconds
from planner.setting import reclocked, resolve
from planner.single import plan_setting
from planner.specs.profile import Law
from planner.specs.scenario import Scenario
from planner.variants import outcome, tpot_at
from tests.asking import column

PLAIN = Scenario(tp=4, price=2.0, sla_ttft_ms=400.0)
SPLIT = Scenario(tp=4, prefill="disaggregated", prefill_gpu="l40s", qps=8.0, sla_ttft_ms=2000.0)
MIXTURE = Scenario(model="deepseek-v3", gpu="h200-sxm", weights="fp8-block", dp=16, ep=16, sla_ttft_ms=2000.0)


def found(scenario: Scenario, **asked: Any) -> dict[str, Swing]:
    return {swing.key: swing for swing in swings(scenario, **asked)}


def cost(scenario: Scenario, **changes: Any) -> float | None:
    return outcome(scenario.with_(**changes)).usd_per_m_goodput


# --- inputs ---------------------------------------------------------------------------------------------------------


def test_price_moves_dollars_in_proportion() -> None:
    swing = found(PLAIN)["price"]
    base = cost(PLAIN)
    assert (swing.low.input, swing.high.input) == pytest.approx((1.6, 2.4))
    assert (swing.low.value, swing.high.value) == pytest.approx((0.8 * base, 1.2 * base))
    assert swing.width == pytest.approx(0.4 * base)


def test_a_default_price_also_moves_over_the_range_it_was_taken_from() -> None:
    asked = PLAIN.with_(price=None)
    known, swing = default_price("h100-sxm"), found(asked)["price_range"]
    assert (swing.low.input, swing.high.input) == (known.low, known.high)
    assert swing.high.value / swing.low.value == pytest.approx(known.high / known.low)
    assert not swing.assumed
    assert "price_range" not in found(PLAIN)


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [("sla_tpot_ms", 40.0, 60.0), ("sla_ttft_ms", 320.0, 480.0), ("isl", 819, 1229), ("osl", 205, 307), ("prefix", 0.0, 0.1)],
)  # fmt: skip
def test_ends_are_plans_of_changed_scenarios(key: str, low: float, high: float) -> None:
    swing = found(PLAIN)[key]
    assert (swing.low.input, swing.high.input) == pytest.approx((low, high))
    assert swing.low.value == cost(PLAIN, **{key: low})
    assert swing.high.value == cost(PLAIN, **{key: high})


def test_shares_stop_where_they_must() -> None:
    asked = PLAIN.with_(prefix=0.95, util=0.97, spec=2, accept=0.05, qps=5.0, load=0.95)
    ends = {key: (s.low.input, s.high.input) for key, s in found(asked).items()}
    assert ends["prefix"] == pytest.approx((0.85, 1.0))
    assert ends["util"] == pytest.approx((0.92, 1.0))
    assert ends["accept"] == pytest.approx((0.0, 0.15))
    assert ends["load"] == pytest.approx((0.85, 1.0))


def test_what_the_plan_does_not_have_is_not_moved() -> None:
    assert {"accept", "load", "prefill_price"}.isdisjoint(found(PLAIN))


def test_an_end_at_which_the_plan_falls_says_why_and_comes_first() -> None:
    asked = PLAIN.with_(sla_ttft_ms=1.02 * outcome(PLAIN.with_(at_batch=1)).ttft_ms)
    first = swings(asked)[0]
    assert first.turns >= 1
    low = found(asked)["sla_ttft_ms"].low
    assert (low.value, low.reason) == (None, "TTFT is above the promise even at batch 1")


def test_a_contradiction_is_a_reason() -> None:
    asked = PLAIN.with_(max_len=1300)
    assert found(asked)["isl"].high.reason.startswith("max_len = 1300")


def test_largest_first() -> None:
    order = [(-swing.turns, -swing.width) for swing in swings(PLAIN)]
    assert order == sorted(order)
    assert len(order) > 15


def test_batch_is_chosen_again_and_replicas_are_sized_again() -> None:
    asked = PLAIN.with_(qps=30.0, at_batch=8, fix_replicas=40)
    assert resized(asked) == PLAIN.with_(qps=30.0)
    assert found(asked)["price"].base == cost(PLAIN, qps=30.0)


def test_without_a_rate_named_replicas_stay_and_their_workers_are_sized() -> None:
    """A pool that keeps its workers while its prompts grow would be busier than `load` allows."""
    asked = SPLIT.with_(qps=0.0, prefill_workers=3, decode_workers=2, at_batch=16)
    assert resized(asked) == asked.with_(at_batch=None, prefill_workers=None)


def test_a_promise_that_moves_gives_what_the_search_finds_under_it() -> None:
    """The winner's own layout wins at both promises here, so the swing's end is the search's answer."""
    scenario = Scenario(
        model="llama-3.1-70b", gpu="h200-sxm", weights="fp8", isl=4096, osl=512, sla_ttft_ms=1000.0, sla_tpot_ms=25.0
    )
    question = Question(scenario=scenario, modes=("disaggregated",), max_gpus=16)
    looser = Question(scenario=scenario.with_(sla_tpot_ms=30.0), modes=("disaggregated",), max_gpus=16)
    now, then = optimise(question).winner, optimise(looser).winner
    assert now is not None
    assert then is not None
    assert (now.scenario.tp, now.scenario.prefill_tp) == (then.scenario.tp, then.scenario.prefill_tp)
    swing = found(now.scenario)["sla_tpot_ms"]
    assert swing.base == pytest.approx(now.value)
    assert swing.high.value == pytest.approx(then.value)


def test_tpot_is_compared_at_the_batch_asked_for() -> None:
    asked = PLAIN.with_(at_batch=16)
    swing = found(asked, objective="tpot_ms")["osl"]
    assert swing.base == pytest.approx(tpot_at(PLAIN, 16))
    assert swing.high.value == pytest.approx(tpot_at(PLAIN.with_(osl=307), 16))


def test_good_tokens_are_those_of_all_replicas() -> None:
    asked = PLAIN.with_(fix_replicas=3, spare=1)
    assert found(asked, objective="goodput_tok_s")["price"].base == pytest.approx(3 * outcome(PLAIN).goodput_tok_s)


# --- constants ------------------------------------------------------------------------------------------------------


def test_a_stretched_law_multiplies_every_time() -> None:
    law = Law(4e-6, 0.8, 0.7, 3.0, 1e15, 3e12, rise=2e-6, rise_scale=5e-6)
    flops, moved = column(1e9, 1e11), column(5e7, 1e6)

    def seconds(at: Law) -> Any:
        compute, memory = flops / (at.eff_flops * at.peak), moved / (at.eff_bw * at.bandwidth)
        return overlapped_seconds(compute, memory, at) + rise_seconds(memory, at.rise, at.rise_scale)

    assert seconds(stretched(law, 1.3)) == pytest.approx(1.3 * seconds(law), rel=1e-12)


@pytest.mark.parametrize("asked", [PLAIN, MIXTURE, SPLIT, PLAIN.with_(profile="textbook", util=1.0)])
def test_the_same_constants_are_the_same_plan(asked: Scenario) -> None:
    setting = resolve(asked)
    again = reclocked(setting, lambda profile: profile)
    assert plan_setting(again) == plan_setting(setting)


@pytest.mark.parametrize("asked", [PLAIN, MIXTURE])
def test_all_times_together_multiply_tpot(asked: Scenario) -> None:
    setting = resolve(asked.with_(at_batch=32))
    slow = plan_setting(reclocked(setting, lambda profile: slower(profile, 1.25)))
    assert slow.tpot_ms == pytest.approx(1.25 * plan_setting(setting).tpot_ms, rel=1e-9)


def test_the_end_of_the_band_is_a_tighter_promise() -> None:
    """TPOT × high against 50 ms is the batch that 50 / high ms admits, and the rate there is 1 / high of it."""
    asked = PLAIN.with_(sla_ttft_ms=5000.0)
    high = resolve(asked).profile.band[1]
    swing, tight = found(asked)["tpot_band"], outcome(asked.with_(sla_tpot_ms=50.0 / high))
    assert swing.high.input == high
    dollars = 4 * 2.0 / (tight.output_tok_s / high * 3600 / 1e6)
    assert swing.high.value == pytest.approx(dollars, rel=1e-9)


def test_a_kernel_moves_by_the_error_of_its_own_fit() -> None:
    """The median error of presets/profiles/kernels-h100-sxm.toml, gemm of vLLM in BF16."""
    error = kernels("h100-sxm").by_key["vllm", "gemm", "bf16"].median_error
    swing = found(PLAIN)["law.gemm.bf16"]
    assert (swing.low.input, swing.high.input) == pytest.approx((1 / (1 + error), 1 + error))
    assert "180 timed kernels" in swing.basis
    assert not swing.assumed
    assert swing.low.value < swing.base < swing.high.value


def test_what_no_fit_speaks_of_is_called_assumed() -> None:
    swing = found(PLAIN)["law.elementwise.bf16"]
    assert swing.assumed
    bands, own = serving().band, resolve(PLAIN).profile.band
    assert swing.low.input == min(bands.borrowed_low, own[0])
    assert swing.high.input == max(bands.borrowed_high, own[1])


def test_borrowed_kernels_have_the_band_of_borrowed_kernels() -> None:
    borrowed = found(PLAIN.with_(gpu="mi300x"))
    assert {key for key, swing in borrowed.items() if key.startswith("law.") and not swing.assumed} == set()


def test_serving_constants_stay_in_their_range() -> None:
    known = found(PLAIN)
    host, phi = known["serving.host_step"], known["serving.phi"]
    step, share = serving().constant["host_step"], serving().constant["phi"]
    factor = step.engine_factor["vllm"]
    ends = (step.range[0] * factor, step.value * factor, step.range[1] * factor)
    assert (host.low.input, host.now, host.high.input) == pytest.approx(ends)
    assert host.unit == "ms"
    assert (phi.low.input, phi.now, phi.high.input) == pytest.approx((share.range[0], share.value, share.range[1]))


def test_an_engine_outside_of_the_range_moves_in_proportion() -> None:
    phi = found(PLAIN.with_(engine="sglang"))["serving.phi"]
    share = serving().constant["phi"]
    factor = share.engine_factor["sglang"]
    ends = (share.range[0] * factor, share.value * factor, share.range[1] * factor)
    assert (phi.low.input, phi.now, phi.high.input) == pytest.approx(ends)


def test_phi_by_hand() -> None:
    """At a fixed batch TPOT is a straight line in phi: the middle of two ends is the value in between."""
    setting = resolve(PLAIN.with_(at_batch=32))

    def tpot(phi: float) -> float:
        return float(plan_setting(reclocked(setting, lambda profile: replace(profile, phi=phi))).tpot_ms)

    assert tpot(0.5) == pytest.approx((tpot(0.0) + tpot(1.0)) / 2)
    assert tpot(serving().constant["phi"].value) == pytest.approx(tpot_at(PLAIN, 32))


def test_links_and_routing_are_moved_where_the_plan_has_them() -> None:
    keys = set(found(MIXTURE))
    assert {"link.dispatch", "link.combine", "serving.expert_popularity", "law.experts.fp8-block"} <= keys
    assert {"link.dispatch", "serving.expert_popularity"}.isdisjoint(found(PLAIN))


def test_a_pool_elsewhere_moves_with_its_own_constants_and_price() -> None:
    known = found(SPLIT)
    assert known["prefill_price"].now == default_price("l40s").usd_per_hour
    base, low, high = known["prefill_price"].base, known["prefill_price"].low.value, known["prefill_price"].high.value
    assert (low + high) / 2 == pytest.approx(base)
    named = resolve(SPLIT.with_(prefill_tp=4))
    slow = reclocked(named, lambda profile: slower(profile, 2.0))
    assert slow.pool.busy == pytest.approx(2 * named.pool.busy, rel=1e-9)
    assert slow.pool.price == named.pool.price


def test_rows_are_plain_cells() -> None:
    table = rows(swings(PLAIN))
    assert {len(row) for row in table} == {len(COLUMNS)}
    assert {type(cell) for row in table for cell in row} <= {str, float, int, bool, type(None)}


# --- break-even -----------------------------------------------------------------------------------------------------

DEAR = Scenario(tp=4, gpu="h100-sxm", price=3.0, sla_ttft_ms=400.0)
CHEAP = Scenario(tp=4, gpu="a100-80g-sxm", price=1.5, sla_ttft_ms=800.0)


def test_break_even_by_hand() -> None:
    """One replica each: cost = devices · price / rate, so the price at which both meet is price · cost / cost."""
    even = break_even(DEAR, CHEAP)
    assert even.first.price == pytest.approx(3.0 * even.second_cost / even.first_cost, rel=1e-9)
    assert even.second.price == pytest.approx(1.5 * even.first_cost / even.second_cost, rel=1e-9)
    assert (even.first.gpu, even.first.now) == ("h100-sxm", 3.0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (DEAR, CHEAP),
        (CHEAP, DEAR),
        (DEAR.with_(qps=20.0), CHEAP.with_(qps=20.0)),
        (SPLIT.with_(prefill_gpu="b200-sxm"), DEAR.with_(qps=8.0, sla_ttft_ms=2000.0, gpu="h200-sxm")),
        (DEAR.with_(price=None, provider="AWS"), CHEAP),
    ],
)
def test_the_choice_turns_within_one_percent_of_the_break_even_price(first: Scenario, second: Scenario) -> None:
    turn = break_even(first, second).first
    assert turn.reason == ""
    below, above = (cost(first, price=turn.price * factor) for factor in (0.99, 1.01))
    assert below < cost(second) < above
    assert cost(first, price=turn.price) == pytest.approx(cost(second), rel=1e-7)


def test_the_same_offer_moves_both() -> None:
    even = break_even(DEAR, DEAR.with_(tp=8))
    assert even.first.price is None
    assert even.first == even.second
    assert "in proportion" in even.first.reason


def test_one_offer_beside_a_pool_of_another_accelerator_can_turn() -> None:
    """4 H100 and a worker of one B200 against 8 H100 at the same rate: they meet where 4·p is the price of a B200."""
    split = SPLIT.with_(price=2.0, prefill_gpu="b200-sxm")
    whole = Scenario(tp=4, price=2.0, qps=8.0, sla_ttft_ms=2000.0)
    assert (outcome(split).gpus, outcome(whole).gpus) == (5, 8)
    turn = break_even(split, whole).first
    assert turn.price == pytest.approx(default_price("b200-sxm").usd_per_hour / 4, rel=1e-9)
    assert break_even(whole, split).first == turn


def test_one_offer_beside_a_pool_that_nothing_saves() -> None:
    """4 H100 and a pool of L40S against 4 H100: the pool comes on top at every price."""
    split, whole = (each.with_(qps=2.0, price=2.0) for each in (SPLIT, DEAR.with_(sla_ttft_ms=2000.0)))
    assert outcome(whole).gpus == 4
    turn = break_even(split, whole).first
    assert turn.price is None
    assert "every price" in turn.reason


def test_a_pool_that_alone_costs_more_never_wins() -> None:
    poor = SPLIT.with_(prefill_gpu="b200-sxm", prefill_workers=40, decode_workers=1, qps=0.0)
    turn = break_even(poor, DEAR.with_(price=0.5)).first
    assert turn.price is None
    assert "even for nothing" in turn.reason


def test_a_plan_that_does_not_stand_has_no_break_even() -> None:
    even = break_even(DEAR.with_(sla_ttft_ms=1.0), CHEAP)
    assert (even.first_cost, even.first.price, even.second.price) == (None, None, None)
    assert "does not stand" in even.first.reason


def test_cost_is_a_straight_line_in_price() -> None:
    """Whole instances step with devices, never with the price."""
    asked = DEAR.with_(provider="AWS", qps=20.0)
    costs = [cost(asked, price=price) for price in (1.0, 2.0, 3.0, 4.0)]
    steps = [after - before for before, after in pairwise(costs)]
    assert steps == pytest.approx([steps[0]] * 3)
