"""Techniques on and off: each row is the plan of its own scenario, and what is refused says why."""

from __future__ import annotations

import math
import time
from dataclasses import fields

import pytest

from planner.catalog.fitted_constants import serving
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.techniques import Figures, best_changes, techniques
from planner.variants import outcome

FP8 = Scenario(weights="fp8", tp=4)
TEXT = Scenario(model="llama-70b-nominal", profile="textbook", tp=4, prefill="excluded")
DEEPSEEK = Scenario(model="deepseek-v3", weights="fp8", gpu="h200-sxm", tp=8, ep=8)
MANY = (FP8, TEXT, DEEPSEEK, Scenario(), Scenario(weights="fp8", tp=4, qps=20.0, at_batch=64, spec=3, accept=0.7))


def rows(scenario, group):
    """The rows of one technique."""
    return [row for row in techniques(scenario) if row.group == group]


def row(scenario, group, name):
    """One row whose name begins so."""
    found = {each.name: each for each in rows(scenario, group) if each.name.startswith(name)}
    return found.get(name) or next(iter(found.values()))


@pytest.mark.parametrize("scenario", MANY, ids=range(len(MANY)))
def test_every_row_is_the_plan_of_its_own_scenario(scenario):
    batch = plan_of(scenario).batch
    for each in techniques(scenario):
        if each.change is None or each.figures == Figures():
            continue
        variant = scenario.with_(**each.change)
        plan = plan_of(variant)
        assert (each.fits, each.meets_sla, each.engine_ok) == (plan.fits, plan.meets_sla, plan.engine_ok)
        assert each.figures.b_max == (plan.b_max if plan.engine_ok else None)
        assert each.figures.ttft_ms == (None if each.change == {"prefill": "excluded"} else plan.ttft_ms)
        assert each.figures.kv_tokens == plan.kv_capacity_tokens
        assert each.figures.usd_good == plan.usd_per_m_goodput
        assert each.figures.tpot_ms == pytest.approx(plan_of(variant.with_(at_batch=batch)).tpot_ms)


@pytest.mark.parametrize("scenario", MANY, ids=range(len(MANY)))
def test_every_group_shows_the_scenario_as_it_is_and_its_deltas_are_zero(scenario):
    groups = {each.group for each in techniques(scenario)} - {"batching"}
    for group in groups - {"block"} if scenario.profile == "textbook" else groups:
        current = [each for each in rows(scenario, group) if each.current]
        assert len(current) == 1, group
        deltas = [getattr(current[0].deltas, each.name) for each in fields(Figures)]
        assert not any(deltas), group


def test_deltas_are_differences():
    bf16, fp8 = row(FP8, "weights", "bf16"), row(FP8, "weights", "fp8")
    assert bf16.deltas.b_max == bf16.figures.b_max - fp8.figures.b_max
    assert bf16.deltas.tpot_ms == pytest.approx(bf16.figures.tpot_ms - fp8.figures.tpot_ms)


def test_only_precisions_that_engine_and_device_have():
    assert "nvfp4" not in {each.name for each in rows(FP8, "weights")}
    assert "nvfp4" in {each.name for each in rows(FP8.with_(gpu="b200-sxm"), "weights")}
    assert {each.name for each in rows(Scenario(gpu="a100-80g-sxm", tp=4), "weights")}.isdisjoint({"fp8", "fp8-block"})


def test_quality_is_the_articles_or_said_to_be_unknown():
    costs = {each.name: each.cost for each in rows(FP8, "weights")}
    assert "0.5 %" in costs["fp8"]
    assert "1.3 %" in costs["int4"]
    assert "no figure" in costs["int8"]


def test_fp8_in_the_textbook():
    """(80 − 17.5) GB · 0.96 over 1,280 tokens of 81,920 bytes: 572 requests; the article's C."""
    found = row(TEXT, "weights", "fp8")
    assert found.figures.b_max == math.floor(62.5e9 * 0.96 / (1280 * 81_920)) == 572


def test_an_fp8_cache_holds_twice_the_tokens():
    found = row(FP8, "kv", "fp8")
    assert found.figures.kv_tokens == pytest.approx(2 * plan_of(FP8).kv_capacity_tokens, rel=1e-4)


def test_drafts_in_the_textbook():
    """One request: (1 − 0.8⁵) / 0.2 tokens for a step and four drafts of a tenth."""
    found = row(TEXT.with_(at_batch=1), "spec", "4 draft tokens")
    before = plan_of(TEXT.with_(at_batch=1)).tpot_ms
    assert found.figures.tpot_ms == pytest.approx(before * 1.4 / ((1 - 0.8**5) / 0.2))


def test_half_a_prompt_cached_shortens_ttft():
    assert row(FP8, "prefix", "50\N{NO-BREAK SPACE}%").deltas.ttft_ms < 0
    names = [each.name for each in rows(FP8.with_(prefix=0.3), "prefix")]
    assert names == [f"{share}\N{NO-BREAK SPACE}% of the prompt cached" for share in (0, 30, 50)]


def test_chunks_tried_are_none_the_promises_and_the_scenarios_own():
    assert len(rows(FP8, "chunk")) == 2
    assert [each.name for each in rows(FP8.with_(chunk=256), "chunk") if each.current] == ["256 tokens a step"]


def test_pools_are_priced_at_full_use_whatever_the_rate():
    """A rate sizes the prefill pool, not what a GPU of it can do."""
    alone, rated = (row(s, "prefill", "in a pool").figures.output_gpu for s in (FP8, FP8.with_(qps=1.0)))
    assert alone == pytest.approx(rated)


def test_spread_of_experts_keeps_the_devices():
    tensor, data = row(DEEPSEEK, "experts", "TP+EP"), row(DEEPSEEK, "experts", "DP+EP")
    assert (tensor.change["tp"], data.change["dp"]) == (8, 8)
    assert data.figures.kv_tokens > 4 * tensor.figures.kv_tokens
    assert not rows(FP8, "experts")


def test_what_the_engine_does_not_offer_says_so():
    found = row(DEEPSEEK, "overlap", "two micro-batches")
    assert not found.engine_ok
    assert found.reason.startswith("vLLM")


def test_what_does_not_fit_has_a_reason_and_no_numbers():
    found = row(DEEPSEEK, "weights", "bf16")
    assert not found.fits
    assert found.reason
    assert found.figures == found.deltas == Figures()


def test_a_contradiction_is_a_row_with_a_reason():
    """A chunk that the scenario's own token budget does not admit."""
    found = techniques(FP8.with_(token_budget=64))
    assert all(each.reason for each in found if each.figures == Figures())


def test_blocks_round_the_pool():
    full = FP8.with_(sla_ttft_ms=1e5, sla_tpot_ms=1e4, isl=1000, osl=300)
    sizes = {each.name: each for each in rows(full, "block")}
    assert sizes["16 tokens"].current
    assert sizes["128 tokens"].figures.kv_tokens % 128 == 0
    assert sizes["128 tokens"].figures.kv_tokens <= sizes["1 token"].figures.kv_tokens
    assert all(each.change is None for each in sizes.values())


def test_static_batching_in_the_textbook():
    """411 · 0.96⁻¹ reservations of 1,280 tokens: no blocks, no paging loss; the whole 45 GB a device."""
    found = row(TEXT, "batching", "static")
    assert found.figures.b_max == math.floor(45e9 / (1280 * 81_920)) == 429
    step = (35e9 + 429 * 1152 * 81_920) / 3.35e12
    assert found.figures.output_gpu == pytest.approx(429 * 256 / (255 * step) / 4)


def test_static_batching_reserves_the_longest_sequence():
    found = row(TEXT.with_(max_len=4096), "batching", "static, 4,096")
    assert found.figures.b_max == math.floor(45e9 / (4096 * 81_920)) == 134


def test_the_table_is_quick():
    techniques(FP8)
    spent = []
    for isl in (1200, 1201, 1202):
        varied = FP8.with_(isl=isl)
        start = time.process_time()
        plan_of(varied)
        middle = time.process_time()
        techniques(varied)
        spent.append((time.process_time() - middle, middle - start))
    table, plan = min(spent)
    assert table < 60 * plan


def test_contiguous_memory_holds_one_longest_sequence_a_request():
    """What engines did before paging: 131,072 tokens each for requests of 1,280."""
    found, paged = row(FP8, "block", "contiguous"), row(FP8, "block", "16 tokens")
    assert found.name == "contiguous, 131,072 tokens reserved"
    assert found.figures.b_max == paged.figures.kv_tokens // 131_072
    assert found.figures.b_max < paged.figures.b_max / 20


def test_host_time_is_waited_for_shared_or_hidden():
    """vLLM's host time a step and a sequence: all of it, an eighth, none."""
    step, sequence = (serving().constant[name].of("vllm") * 1e3 for name in ("host_step", "host_sequence"))
    host = step + sequence * plan_of(FP8).batch
    times = [row(FP8, "host", name).figures.tpot_ms for name in ("waited", "8 steps", "hidden")]
    assert times[0] == pytest.approx(plan_of(FP8).tpot_ms)
    assert times[0] - times[2] == pytest.approx(host, rel=1e-9)
    assert times[0] - times[1] == pytest.approx(host * 7 / 8, rel=1e-9)


# --- what a batch that is set, work that is left out and rows without a choice do -------------------


def test_a_set_batch_is_held_in_every_row():
    held = FP8.with_(at_batch=8)
    for group in ("weights", "kv", "chunk", "block", "host"):
        own = next(each for each in rows(held, group) if each.current)
        assert own.figures.usd_good == pytest.approx(plan_of(held).usd_per_m_goodput)
        assert own.figures.ttft_ms == pytest.approx(plan_of(held).ttft_ms)
    int4 = row(held, "weights", "int4")
    assert int4.figures.output_gpu == pytest.approx(plan_of(held.with_(weights="int4")).goodput_tok_s_gpu)
    assert row(held.with_(sla_ttft_ms=1000.0), "batching", "static").figures.b_max == 8
    late = row(held, "batching", "static")
    assert late.reason == "a whole batch of 8 does not keep the SLA"
    assert late.figures.output_gpu is None


def test_work_that_is_not_counted_is_never_the_best():
    found = row(FP8.with_(prefill="excluded"), "prefill", "not counted")
    assert not found.whole
    assert found.figures.ttft_ms is None
    assert found.current
    assert not row(FP8, "batching", "static").whole
    assert row(TEXT, "batching", "static").figures.ttft_ms is None


def test_groups_without_a_choice_are_left_out():
    for scenario in MANY:
        groups = [each.group for each in techniques(scenario)]
        assert all(groups.count(group) > 1 for group in groups)
    assert not rows(FP8.with_(tp=1, weights="int4"), "redundant")


def test_block_sizes_that_change_nothing_are_left_out():
    """While the SLA binds, how the cache is divided shows in no figure; once the cache binds, it does."""
    assert [each.name for each in rows(FP8, "block")] == ["16 tokens", "contiguous, 131,072 tokens reserved"]
    full = FP8.with_(sla_ttft_ms=1e5, sla_tpot_ms=1e4, isl=1000, osl=300)
    assert [each.name for each in rows(full, "block")][:4] == ["1 token", "16 tokens", "64 tokens", "128 tokens"]


def test_extra_copies_are_an_eighth_of_the_experts():
    names = [each.name for each in rows(DEEPSEEK, "redundant")]
    assert names == ["0 extra copies", "32 extra copies"]
    assert row(DEEPSEEK, "redundant", "32").change == {"redundant": 32}
    assert not rows(DEEPSEEK.with_(ep=1), "redundant")
    wide = DEEPSEEK.with_(tp=1, dp=24, ep=8)
    assert [each.change["redundant"] % 8 for each in rows(wide, "redundant")] == [0, 0]


# --- the best change --------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", MANY, ids=range(len(MANY)))
def test_the_best_change_is_the_cheapest_row_that_stands(scenario):
    found, now = best_changes(scenario), outcome(scenario)
    dear = now.usd_per_m_goodput if now.stands else math.inf
    costs = [
        outcome(scenario.with_(**each.change)).usd_per_m_goodput
        for each in techniques(scenario)
        if each.change is not None and each.stands and each.whole and not each.current and each.group != "prefix"
    ]
    if not found:
        assert min(costs, default=math.inf) >= 0.98 * dear
        return
    assert plan_of(scenario.with_(**found[0].change)).usd_per_m_goodput == min(costs) < dear
    for each in found[1:]:
        plan = plan_of(scenario.with_(**each.change))
        assert plan.fits
        assert plan.meets_sla
        assert plan.engine_ok
        assert plan.usd_per_m_goodput < min(costs)


def test_a_pair_is_named_only_when_it_beats_both():
    single, pair = best_changes(FP8)
    assert set(single.change) < set(pair.change)
    assert pair.gain.share > single.gain.share + 0.02 * (1 - single.gain.share)
    assert " and " in pair.name


def test_a_prompt_cache_is_no_change_to_choose():
    """How much of a prompt is cached is the requests' own matter."""
    assert all("prefix" not in each.change for scenario in MANY for each in best_changes(scenario))
