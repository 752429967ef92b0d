"""Where advice leads: a change that is offered stands and is no dearer; what is refused or empty is not said."""

from __future__ import annotations

import re

import pytest

from planner.advise import advise
from planner.advise.advice import Advice, times, up_to
from planner.advise.degrees import by_degree
from planner.advise.judged import judged, sound
from planner.catalog.scenarios import presets
from planner.share import from_link
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.techniques import techniques
from planner.variants import Outcome, gain, outcome

WIDE = "model=deepseek-v3&gpu=h200-sxm&weights=fp8-block&isl=4000&osl=1000&qps=50&sla_ttft_ms=2000&sla_tpot_ms=60"
LINKS = (
    WIDE + "&dp=8&ep=8", WIDE + "&tp=8", WIDE + "&tp=8&ep=8", WIDE + "&tp=4&dp=4&ep=16", WIDE + "&dp=32&ep=32",
    "weights=fp8&tp=4", "weights=fp8&tp=2", "weights=fp8&tp=16", "weights=int4&tp=4", "weights=fp8&tp=4&qps=20",
    "weights=fp8&tp=4&qps=20&at_batch=64&spec=3&accept=0.7", "weights=fp8&tp=4&isl=8000&sla_ttft_ms=3000&qps=5",
    "weights=fp8&tp=2&prefill=disaggregated&qps=20", "weights=fp8&tp=4&util=1", "weights=fp8&tp=4&pp=2&at_batch=1",
    "weights=fp8&tp=4&qps=40&fix_replicas=1", "weights=fp8&tp=4&token_budget=256&at_batch=60",
    "model=llama-70b-nominal&profile=textbook&tp=4&prefill=excluded",
    "gpu=ascend-910c-die&engine=vllm-ascend&tp=4&sla_ttft_ms=1000&sla_tpot_ms=120",
    "model=mixtral-8x7b&tp=2&qps=10", "model=qwen3-235b-a22b&weights=fp8&gpu=h200-sxm&tp=4&ep=4&qps=30&sla_ttft_ms=1000",
    "model=llama-3.1-70b&tp=4&spec=4&at_batch=4&sla_ttft_ms=1000", "gpu=h200-sxm&weights=int4&at_batch=4&sla_ttft_ms=2000",
    "",
)  # fmt: skip
SCENARIOS = [from_link(link) for link in LINKS]
ALL = [*SCENARIOS, *(each.scenario for each in presets())]


def dearness(found: Outcome) -> float:
    """Dollars of a good token, or devices for one a second where there is no price."""
    return found.usd_per_m_goodput or 1 / found.goodput_tok_s_gpu


@pytest.mark.parametrize("scenario", ALL, ids=range(len(ALL)))
def test_every_change_leads_to_a_plan_that_stands_and_is_no_dearer(scenario):
    now = outcome(scenario)
    for each in advise(scenario):
        if each.change is None:
            assert each.gain is None
            continue
        plan = plan_of(scenario.with_(**each.change))
        assert plan.fits, each
        assert plan.meets_sla, each
        assert plan.engine_ok, each
        if now.stands:
            then = outcome(scenario.with_(**each.change))
            assert dearness(then) <= dearness(now) * (1 + 1e-9), each
            assert each.gain == gain(now, then)


@pytest.mark.parametrize("scenario", ALL, ids=range(len(ALL)))
def test_no_sentence_without_its_numbers(scenario):
    for each in advise(scenario):
        assert not re.search(
            r"– |\bnan\b|\binf\b|None|(?<![\d.,])0(\.0+)? (tok/s|requests|tokens|ms)|16,384|131,072", each.text
        ), each
        assert not re.search(r"promise|\binstances?\b(?! \()|4\.00 copies|Not offered today", each.text), each


def chunk(link: str) -> Advice:
    """What is said of chunks that are too large."""
    (found,) = [each for each in advise(from_link(link)) if each.code == "chunk_breaks_tpot"]
    return found


def said_chunk(found: Advice) -> str:
    """The change that an advice speaks of, as a link spells it."""
    return re.search(r"chunk=\d+", found.text).group()


def test_a_chunk_that_breaks_the_ttft_is_a_remark_that_says_so():
    link = WIDE.replace("sla_ttft_ms=2000", "sla_ttft_ms=1500") + "&dp=8&ep=8"
    found = chunk(link)
    there = plan_of(from_link(f"{link}&{said_chunk(found)}"))
    assert there.ttft_ms > 1500
    assert (found.kind, found.change) == ("advice", None)
    said = f"{said_chunk(found)} would not stand: TTFT {there.ttft_ms / 1e3:.2f} s against an SLA of 1.50 s."
    assert found.text.endswith(said)


def test_a_chunk_that_takes_more_devices_says_how_many():
    found = chunk(WIDE + "&tp=8")
    there = plan_of(from_link(f"{WIDE}&tp=8&{said_chunk(found)}"))
    assert (found.kind, found.change) == ("advice", None)
    assert (
        f"{said_chunk(found)} would take {there.gpus} instead of {plan_of(from_link(WIDE + '&tp=8')).gpus} GPUs"
        in found.text
    )


def test_a_fault_stays_a_warning_when_its_remedy_costs():
    full = Scenario(weights="fp8", tp=4, util=0.99, sla_ttft_ms=1e5, sla_tpot_ms=1e4)
    (found,) = [each for each in advise(full) if each.code == "whole_memory"]
    assert plan_of(full.with_(util=None)).usd_per_m_goodput > plan_of(full).usd_per_m_goodput
    assert (found.kind, found.change) == ("warning", None)


def test_a_change_without_a_gain_is_judged_by_good_tokens_where_nothing_has_a_price():
    scenario = Scenario(gpu="ascend-910c-die", engine="vllm-ascend", tp=4, sla_ttft_ms=1000.0, sla_tpot_ms=120.0)
    said = judged(Advice("x", "advice", "Wider.", (), "–", {"tp": 8}), scenario)
    now, then = plan_of(scenario), plan_of(scenario.with_(tp=8))
    assert now.usd_per_m_goodput is None
    assert not said.gain.priced
    assert said.gain.share == pytest.approx(then.goodput_tok_s_gpu / now.goodput_tok_s_gpu - 1)


@pytest.mark.parametrize("text", ["TPOT – ms.", "yields 0 tok/s.", "takes nan.", "0.00 tok/s instead.", "cache for –."])
def test_a_sentence_with_a_hole_is_not_said(text):
    assert not sound(Advice("x", "advice", text, (), "–"))


@pytest.mark.parametrize(
    "text", ["Blocks of 16 tokens – no more.", "10 tok/s information", "takes 1,000 tok/s", "FP8 30.0 ms"]
)
def test_a_whole_sentence_is(text):
    assert sound(Advice("x", "advice", text, (), "–"))


def test_limits_in_words():
    plan = plan_of(Scenario(weights="fp8", tp=4))
    assert up_to(0, plan) == "at no batch"
    assert up_to(7, plan) == "up to 7 requests"
    assert up_to(plan.b_max_kv, plan) == "at every batch that the cache holds"
    assert (times(4.0), times(2.5)) == ("4", "2.50")


NOTHING = (
    "model=deepseek-v3&gpu=ascend-910c-die&weights=int4&kv=fp8&tp=2&ep=2&isl=4000&osl=1&sla_ttft_ms=20&sla_tpot_ms=5000",
    "model=qwen3-235b-a22b&gpu=b200-sxm&weights=int4&tp=8&dp=32&ep=256&isl=4000&osl=1&qps=5&sla_tpot_ms=5&at_batch=4",
    "model=mixtral-8x7b&gpu=b200-sxm&weights=int4&tp=8&ep=8&isl=32000&osl=1000&prefill=excluded&qps=5&sla_ttft_ms=2000&at_batch=4",
    "model=qwen3-235b-a22b&profile=textbook&weights=int4&tp=16&dp=2&isl=1&osl=1&prefill=excluded&sla_ttft_ms=2000&at_batch=4",
)


@pytest.mark.parametrize("link", NOTHING)
def test_plans_that_yield_nothing_are_not_compared(link):
    for each in advise(from_link(link)):
        assert not re.search(r"(?<![\d.,])0 (requests|slots|%)|there are 0|not known here|131,072", each.text), each


def test_degrees_beside_a_prefill_pool_have_its_own_workers():
    scenario = from_link("weights=fp8&tp=2&prefill=disaggregated&qps=20")
    (found,) = [each for each in advise(scenario) if each.code == "tp_for_latency"]
    then = plan_of(scenario.with_(tp=4))
    priced = {tp: each.usd_per_m_goodput for tp, each in by_degree(scenario).items() if tp in (1, 4, 8)}
    assert priced == {tp: plan_of(scenario.with_(tp=tp)).usd_per_m_goodput for tp in priced}
    assert f"to {then.goodput_tok_s_gpu:.0f} tok/s" in found.text
    assert found.change is None or then.usd_per_m_goodput <= plan_of(scenario).usd_per_m_goodput


def test_a_set_batch_is_held_on_both_sides():
    scenario = Scenario(tp=4, spec=4, at_batch=4, sla_ttft_ms=1000.0)
    (found,) = [each for each in advise(scenario) if each.code == "fp8_at_high_batch"]
    now, then = plan_of(scenario), plan_of(scenario.with_(weights="fp8"))
    assert found.number("batch_then") == found.number("batch_now") == 4
    assert found.number("gain") == pytest.approx(then.goodput_tok_s_gpu / now.goodput_tok_s_gpu - 1)


def test_advice_has_the_numbers_of_the_table():
    """A pool of its own, in words and in the table."""
    scenario = from_link("weights=fp8&tp=2")
    (said,) = [each for each in advise(scenario) if each.code == "disaggregate"]
    (row,) = [each for each in techniques(scenario) if each.name == "in a pool of its own"]
    assert said.number("apart") == pytest.approx(row.figures.output_gpu)
