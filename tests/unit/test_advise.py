"""Every rule of the advice: a scenario in which it fires with the numbers of hand arithmetic, and one in which it is silent.

Most use the textbook profile on the articles' model, where arithmetic is short: 70e9 parameters, 327,680 bytes of cache
a token, 3.35 TB/s and 742.05 TFLOP/s (75 % of 989.4), mean context 1,024 + 128 tokens, nothing else counted.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from planner.advise import RULES, advise
from planner.advise.experts import fill_of
from planner.serving.queue import probability_of_waiting
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.variants import step_of, step_seconds

BANDWIDTH, FLOPS = 3.35e12, 742.05e12
SEQUENCE = 1152 * 327_680 / 4
"""Cache that one sequence reads on one of four devices [B]."""
TOKEN = (2 * 70e9 + 4 * 64 * 128 * 1152 * 80) / 4
"""Operations of one decoded token on one of four devices, attention included [FLOP]."""

TEXT = {"model": "llama-70b-nominal", "profile": "textbook", "tp": 4, "prefill": "excluded"}
FP8 = {"weights": "fp8", "tp": 4}
DEEPSEEK = {"model": "deepseek-v3", "weights": "fp8", "gpu": "h200-sxm", "tp": 8, "ep": 8}
DIE = {"gpu": "ascend-910c-die", "engine": "vllm-ascend", "tp": 4, "sla_ttft_ms": 1000.0, "sla_tpot_ms": 120.0}
MIXTRAL = {"model": "mixtral-8x7b", "profile": "textbook", "tp": 2, "prefill": "excluded"}

BY_NAME = {rule.__name__: rule for rule in RULES}


def said(rule, **fields):
    """What one rule says about a scenario."""
    scenario = Scenario(**fields)
    return BY_NAME[rule](scenario, plan_of(scenario))


def step_ms(batch, weights=35e9):
    """A decode step of the articles' model on four devices [ms]: the longer of reading and computing."""
    return max((weights + batch * SEQUENCE) / BANDWIDTH, batch * TOKEN / FLOPS) * 1e3


def close(value, expected):
    return value == pytest.approx(expected, rel=1e-9)


# --- the promise and the batch ----------------------------------------------------------------------


def test_ttft_above_promise():
    found = said("ttft_above_promise", **TEXT, isl=4096)
    ttft = (2 * 70e9 * 4096 + 4 * 4096**2 * 64 * 128 * 80) / (4 * FLOPS) * 1e3
    assert found.kind == "warning"
    assert close(found.number("ttft"), ttft)
    assert found.number("longest_prompt") == math.floor(4096 * 200 / ttft) == 3938


def test_batch_beyond_promise():
    found = said("batch_beyond_promise", **TEXT, sla_tpot_ms=15.0, at_batch=200)
    assert found.kind == "warning"
    assert close(found.number("tpot"), step_ms(200))
    assert found.number("best") == math.floor((0.015 * BANDWIDTH - 35e9) / SEQUENCE) == 161
    assert found.change == {"at_batch": None}


def test_promises_disagree():
    fields = {"weights": "fp8", "tp": 2}
    plan, found = plan_of(Scenario(**fields)), said("promises_disagree", **fields)
    assert plan.binds == "ttft"
    assert close(found.number("ttft_needed"), plan.ttft_unloaded_ms + 50 / 2)
    assert found.change == {"sla_ttft_ms": float(math.ceil(plan.ttft_unloaded_ms + 25))}
    assert plan_of(Scenario(**fields).with_(**found.change)).binds == "tpot"


def test_request_latency():
    """Article 1.2 wants 2 s for 100 tokens; its own targets add up to 5.1 s."""
    found = said("request_latency", **TEXT, osl=100, sla_ttft_ms=150.0)
    assert close(found.number("promised"), 5.1)


def test_binding_limit():
    found = said("binding_limit", **TEXT)
    assert found.number("by_kv") == math.floor((80e9 - 35e9) * 0.96 / (1280 * 327_680 / 4)) == 411
    assert found.number("by_sla") == math.floor(0.05 * FLOPS / TOKEN) == 1037
    assert found.text.startswith("The cache binds first")


def test_binding_limit_depends_on_where_prefill_runs():
    found = said("binding_limit", **{**TEXT, "prefill": "colocated"})
    assert found.number("by_sla") < 411 < found.number("by_sla_decode_alone") == 1037
    assert found.text.endswith("Without prefill on the same GPUs the SLA would allow 1,037 requests and does not bind.")


def test_amortise_weights():
    found = said("amortise_weights", **TEXT)
    assert close(found.number("tpot_twice"), step_ms(822))
    assert close(found.number("gain"), 2 * step_ms(411) / step_ms(822) - 1)
    assert "the cache is full" in found.text


def test_amortise_weights_applies_where_the_batch_was_set_too_small():
    assert said("amortise_weights", **TEXT, at_batch=8).change == {"at_batch": None}


def test_decode_bound():
    """35 GB over 3.35 TB/s against the compute time of a sequence less the time to read its cache: 522, not the article's 400."""
    found = said("decode_bound", **TEXT)
    crossing = (35e9 / BANDWIDTH) / (TOKEN / FLOPS - SEQUENCE / BANDWIDTH)
    assert found.number("crossover") == math.floor(crossing) == 522
    assert close(found.number("memory"), (35e9 + 411 * SEQUENCE) / BANDWIDTH * 1e3)
    assert close(found.number("compute"), 411 * TOKEN / FLOPS * 1e3)
    assert "bandwidth, not by peak FLOPS" in found.text


def test_decode_bound_says_when_peak_flops_do_decide():
    found = said("decode_bound", **{**TEXT, "weights": "fp8"})
    assert found.number("compute") > found.number("memory")
    assert "its FLOPS" in found.text


def test_whole_memory():
    found = said("whole_memory", **FP8, util=1.0)
    assert found.kind == "warning"
    assert found.number("left") == 0
    assert found.change == {"util": None}


def test_block_fragments():
    """(16 − 1) / 2 tokens, not 8."""
    found = said("block_fragments", **FP8)
    assert found.number("wasted") == 7.5
    assert close(found.number("share"), 7.5 / 1280)
    assert "counted already" in found.text
    assert "never subtract both" in said("block_fragments", **TEXT).text


def test_borrowed_speed():
    found = said("borrowed_speed", **DIE)
    assert found.kind == "warning"
    assert close(found.number("tpot_high"), plan_of(Scenario(**DIE)).tpot_ms * found.number("high"))


# --- layout -----------------------------------------------------------------------------------------


def test_little_kv():
    """One H100: 10 GB beside 70 GB of weights hold 22 requests; two hold 205."""
    found = said("little_kv", **{**TEXT, "tp": 1, "weights": "fp8"})
    sequence, one = 1152 * 327_680, (70e9, 22)
    rate_one = one[1] / ((one[0] + one[1] * sequence) / BANDWIDTH)
    rate_two = 205 / ((35e9 + 205 * sequence / 2) / BANDWIDTH)
    assert found.kind == "warning"
    assert found.number("weights_share") == 70 / 80
    assert found.number("held") == 22
    assert close(found.number("gain_per_gpu"), rate_two / 2 / rate_one)
    assert found.change == {"tp": 2, "ep": 1}


def test_tp_for_latency():
    """Half the weights and half the cache a device: half the time, as long as reading decides."""
    found = said("tp_for_latency", **TEXT)
    assert close(found.number("tpot_then"), step_ms(411) / 2)
    assert found.change == {"tp": 8, "ep": 1}


def test_tp_over_slow_links():
    """Beyond the domain of eight, all-reduces cross the network."""
    found = said("tp_over_slow_links", weights="fp8", tp=16)
    plan = plan_of(Scenario(weights="fp8", tp=16))
    narrower = plan_of(Scenario(weights="fp8", tp=8, at_batch=plan.batch))
    assert found.kind == "warning"
    assert close(found.number("tpot_then"), narrower.tpot_ms)
    assert narrower.tpot_ms < plan.tpot_ms
    assert found.change == {"tp": 8, "ep": 1}


def test_tp_limit_of_links():
    found = said("tp_limit_of_links", **FP8)
    plan = plan_of(Scenario(**FP8))
    times = {tp: plan_of(Scenario(weights="fp8", tp=tp, at_batch=plan.batch)).tpot_ms for tp in (4, 8, 16)}
    assert times[4] > times[8] < times[16]
    assert found.number("last_tp") == 8
    assert close(found.number("tpot_there"), times[8])


def test_pp_for_throughput():
    """Stages of two devices: 70 GB of weights read for each half of the batch, 206 sequences."""
    found = said("pp_for_throughput", **TEXT)
    then = (70e9 + 206 * 2 * SEQUENCE) / BANDWIDTH * 1e3
    assert close(found.number("tpot_then"), then)
    assert close(found.number("gain"), step_ms(411) / then - 1)
    assert found.change is None


def test_pipeline_starves():
    found = said("pipeline_starves", **FP8, pp=4, at_batch=2)
    assert found.kind == "warning"
    assert found.number("idle") == 0.5


def test_smallest_layout():
    """Article 7.2: 140 GB over 80 GB devices take two, which hold 45 requests at full memory."""
    found = said("smallest_layout", **TEXT)
    assert found.number("tp_weights") == found.number("tp_fits") == 2
    assert found.number("held") == math.floor(10e9 * 0.96 / (1280 * 327_680 / 2)) == 45
    assert found.change == {"tp": 2}


def test_smallest_layout_of_the_real_model_needs_more_than_its_weights():
    """Article 7.2 serves 70B in FP8 on one H100: there it holds four requests, and misses the TTFT."""
    found = said("smallest_layout", **FP8)
    assert found.number("tp_fits") == 1
    assert found.number("held") < 8
    assert found.number("tp_keeps") == 2


def test_weights_per_gpu():
    found = said("weights_per_gpu", **TEXT)
    assert found.number("weights") == found.number("divided") == 35e9
    assert found.number("replicated") == 0


def test_cp_for_ttft():
    fields = {**TEXT, "isl": 8192}
    found = said("cp_for_ttft", **fields)
    times = {cp: plan_of(Scenario(**fields, cp=cp)).ttft_unloaded_ms for cp in (2, 4)}
    assert times[2] > 200 >= times[4]
    assert found.number("cp") == 4
    assert close(found.number("ttft_then"), times[4])


# --- who holds the cache ----------------------------------------------------------------------------


def test_cache_copies():
    """Eight KV heads, sixteen ranks."""
    found = said("cache_copies", weights="fp8", tp=16)
    assert found.kind == "warning"
    assert (found.number("copies"), found.number("divides")) == (2, 8)


def test_cache_copies_end_where_ranks_share_a_context():
    assert said("cache_copies", weights="fp8", tp=16, dcp=2) is None


def test_dcp_shards_cache():
    found = said("dcp_shards_cache", weights="fp8", tp=16)
    assert found.number("copies") == 2
    assert 2 * found.number("held_now") <= found.number("held_then") <= 2 * (found.number("held_now") + 1)


def test_latent_copies():
    """Eight ranks, one latent: dividing it holds eight times as many (one part in 8 may round up)."""
    found = said("latent_copies", **DEEPSEEK)
    assert found.number("copies") == 8
    assert 8 * found.number("held_now") <= found.number("held_dcp") <= 8 * (found.number("held_now") + 1)
    assert found.number("held_dp") == plan_of(Scenario(**{**DEEPSEEK, "tp": 1, "dp": 8})).b_max_kv


def test_latent_copies_stay_under_tp_times_dp():
    """The article's DP32 × TP4 keeps four copies."""
    found = said("latent_copies", **{**DEEPSEEK, "tp": 4, "dp": 8, "ep": 32})
    assert found.number("copies") == 4
    assert "keeps its copies" in found.text


# --- prompts ----------------------------------------------------------------------------------------


def mixed_ms(batch, chunk):
    """A step that decodes and reads a piece of a prompt of 1,024 tokens, its last [ms]."""
    prompt = 2 * 70e9 * chunk + 4 * chunk * max(1024, chunk) * 64 * 128 * 80
    return (batch * TOKEN + prompt / 4) / FLOPS * 1e3


def test_chunk_breaks_tpot():
    found = said("chunk_breaks_tpot", **{**TEXT, "prefill": "colocated"}, at_batch=20)
    assert found.kind == "warning"
    assert close(found.number("step"), mixed_ms(20, 1024))
    room = int(found.number("room"))
    assert mixed_ms(20, room) <= 50 < mixed_ms(20, room + 1)
    assert found.change == {"chunk": room // 16 * 16}


def test_the_last_chunk_of_a_long_prompt_attends_to_all_of_it():
    """512 of 32,768 tokens: 2N · 512, and four operations a pair, head element and layer with all that lies behind."""
    fields = {**TEXT, "prefill": "colocated", "isl": 32_768, "chunk": 512, "at_batch": 1, "sla_ttft_ms": 1e4}
    found = said("chunk_breaks_tpot", **fields, sla_tpot_ms=30.0)
    token = 2 * 70e9 + 4 * 64 * 128 * (32_768 + 128) * 80
    prompt = 2 * 70e9 * 512 + 4 * 512 * 32_768 * 64 * 128 * 80
    assert close(found.number("step"), (token + prompt) / 4 / FLOPS * 1e3)


def test_chunk_from_promise():
    found = said("chunk_from_promise", **{**TEXT, "prefill": "colocated"}, at_batch=8)
    room = int(found.number("room"))
    assert mixed_ms(8, room) <= 50 < mixed_ms(8, room + 1)


def test_prefill_budget():
    """256 tokens a step less 60 that decode leave 196; 60 / 256 prompts of 1,024 tokens need 240."""
    found = said("prefill_budget", **FP8, token_budget=256, at_batch=60)
    assert found.kind == "warning"
    assert (found.number("left"), found.number("needed")) == (196, 240)


def test_disaggregate():
    """Four links of 50 GB/s at 80 % carry the 336 MB of a prompt in 2.1 ms (and a message's start)."""
    found = said("disaggregate", weights="fp8", tp=2)
    colocated = plan_of(Scenario(weights="fp8", tp=2))
    alone = plan_of(Scenario(weights="fp8", tp=2, prefill="excluded", at_batch=colocated.batch))
    assert found.kind == "warning"
    assert close(found.number("step_share"), colocated.tpot_ms - alone.tpot_ms)
    assert close(found.number("interference"), (colocated.tpot_ms - alone.tpot_ms) * 255 / 1e3)
    assert found.number("transfer") == pytest.approx(1024 * 327_680 / (2 * 50e9 * 0.8), abs=5e-5)
    assert found.number("apart") > 1.1 * found.number("together")
    assert found.change == {"prefill": "disaggregated"}


def test_stay_colocated():
    """Two devices hold the model and read prompts; two links of 50 GB/s at 80 %."""
    found = said("stay_colocated", **{**TEXT, "prefill": "colocated"})
    assert found.number("transfer") == pytest.approx(1024 * 327_680 / (2 * 50e9 * 0.8), rel=1e-6)
    assert found.number("apart") <= 1.02 * found.number("together")


def test_homogeneous_pool():
    """Prompts a second that a decode replica takes, times the time of one prompt: within a whole worker of 64 replicas."""
    found = said("homogeneous_pool", weights="fp8", tp=2)
    split = plan_of(Scenario(weights="fp8", tp=2, prefill="disaggregated", decode_workers=64, load=1.0))
    assert found.number("prefill_per_decode") == pytest.approx((split.gpus - 128) / 128, abs=2 / 128)
    assert found.number("gain") > 0


# --- precision --------------------------------------------------------------------------------------


def test_fp8_at_high_batch():
    found = said("fp8_at_high_batch", **TEXT)
    assert found.number("batch_then") == math.floor((80e9 - 17.5e9) * 0.96 / (1280 * 327_680 / 4)) == 572
    assert close(found.number("tpot_same_batch"), step_ms(411, weights=17.5e9))
    good = (411 / step_ms(411), 572 / step_ms(572, weights=17.5e9))
    assert close(found.number("gain"), good[1] / good[0] - 1)


def test_int4_at_low_batch():
    """4.25 bits a weight with their scales: 37.2 GB, 9.3 GB a device."""
    found = said("int4_at_low_batch", **TEXT, at_batch=1)
    assert close(found.number("tpot_then"), step_ms(1, weights=70e9 * (0.5 + 4 / 128) / 4))


def test_int4_at_high_batch():
    """No INT4 tensor cores: unpacking outweighs reading beyond some batch; the article puts it at 32."""
    fields = {"weights": "int4", "tp": 4}
    found, plan = said("int4_at_high_batch", **fields), plan_of(Scenario(**fields))
    other = plan_of(Scenario(**FP8, at_batch=plan.batch))
    assert found.kind == "warning"
    assert close(found.number("tpot_then"), other.tpot_ms)
    assert other.tpot_ms < plan.tpot_ms
    assert 16 <= found.number("crossover") <= 64


def test_int4_when_memory_limited():
    """One H100: INT4 leaves 42.8 GB beside 37.2 GB of weights."""
    found = said("int4_when_memory_limited", **{**TEXT, "tp": 1, "weights": "fp8"})
    left = 80e9 - 70e9 * (0.5 + 4 / 128)
    assert found.number("held_now") == 22
    assert found.number("held_then") == math.floor(left * 0.96 / (1280 * 327_680)) == 97


def test_int8_without_fp8():
    """Article 8.3: INT8 first on the 910C; 70 GB do not fit a die of 64 GB."""
    found = said("int8_without_fp8", **{**DIE, "tp": 1, "profile": "textbook", "model": "llama-70b-nominal"})
    assert found.number("weights_then") == 70e9
    assert found.number("fits") == 0
    assert found.change is None
    assert said("int8_without_fp8", **DIE).change == {"weights": "int8"}


def test_weight_share():
    """Article 8.1: TPOT falls with bytes a parameter, its weight part alone."""
    found = said("weight_share", **TEXT)
    assert close(found.number("share"), 35e9 / (35e9 + 411 * SEQUENCE))


# --- experts ----------------------------------------------------------------------------------------


def test_experts_on_one():
    found = said("experts_on_one", **{**MIXTRAL, "tp": 1, "weights": "fp8", "gpu": "h200-sxm"})
    assert found.number("weights") == pytest.approx(46.7e9, rel=0.001)


def test_experts_in_one_domain():
    """Article 10.6 calls Mixtral smaller than one GPU: in BF16 it is 93.4 GB."""
    found = said("experts_in_one_domain", **MIXTRAL)
    assert found.number("weights") == pytest.approx(93.4e9, rel=0.001)
    assert found.number("tp") == 2
    assert found.number("weights_per_gpu") == pytest.approx(93.4e9 / 2, rel=0.001)


def test_tp_ep_at_low_batch():
    found = said("tp_ep_at_low_batch", **DEEPSEEK, at_batch=4)
    apart = plan_of(Scenario(**{**DEEPSEEK, "tp": 1, "dp": 8}, at_batch=4))
    assert close(found.number("tpot_dp"), apart.tpot_ms)
    assert found.number("tpot_tp") < apart.tpot_ms
    limit = int(found.number("crossover"))
    beyond = [plan_of(Scenario(**{**DEEPSEEK, "tp": tp, "dp": dp}, at_batch=limit + 1)) for tp, dp in ((8, 1), (1, 8))]
    assert beyond[0].tpot_ms >= beyond[1].tpot_ms


def test_dp_ep_at_high_batch():
    found = said("dp_ep_at_high_batch", **DEEPSEEK)
    data = plan_of(Scenario(**{**DEEPSEEK, "tp": 1, "dp": 8}))
    assert close(found.number("good_dp"), data.goodput_tok_s_gpu)
    assert found.number("good_dp") > found.number("good_tp")
    assert found.change == {"tp": 1, "dp": 8, "ep": 8}


def test_experts_beyond_domain():
    found = said("experts_beyond_domain", **{**DEEPSEEK, "tp": 1, "dp": 16, "ep": 16})
    assert found.kind == "warning"
    assert found.number("slower") == 450 / 50


def test_expert_tiles():
    """128 tokens · 8 of 256: 4 an expert; 256 · (1 − (31/32)^128) experts are hit."""
    found = said("expert_tiles", **DEEPSEEK, at_batch=128)
    assert found.number("tokens") == 4
    assert close(found.number("distinct"), 256 * (1 - (31 / 32) ** 128))
    assert found.number("fills_tile") == 2048


def test_tiles_are_two_thirds_full_where_their_mean_is_full():
    """The article's 2,048 tokens fill tiles of 64 on average only."""
    assert fill_of(2048, 8, 256) == pytest.approx(0.68, abs=0.01)
    assert fill_of(1, 8, 256) == pytest.approx(1 / 64)


# --- drafts -----------------------------------------------------------------------------------------


def drafted(batch):
    """Article 5.2 with the verification priced as a step of five tokens a sequence."""
    step, verify = step_ms(batch), max((35e9 + batch * SEQUENCE) / BANDWIDTH, 5 * batch * TOKEN / FLOPS) * 1e3
    tokens = (1 - 0.8**5) / 0.2
    return tokens * step / (verify + 4 * 0.1 * step)


def test_spec_on():
    found = said("spec_on", **TEXT, at_batch=1)
    assert close(found.number("gain"), (1 - 0.8**5) / 0.2 / 1.4)
    assert found.number("gain") == pytest.approx(2.4, abs=0.01)
    limit = int(found.number("break_even_batch"))
    assert drafted(limit) > 1 >= drafted(limit + 1)


def test_spec_needs_less_acceptance_the_smaller_the_batch():
    one, many = (said("spec_on", **TEXT, at_batch=batch).number("break_even_acceptance") for batch in (1, 128))
    assert one < many < 0.8


def test_spec_off():
    found = said("spec_off", **TEXT)
    assert found.kind == "advice"
    assert close(found.number("gain"), drafted(411))
    assert found.number("verified") == 5 * 411
    assert said("spec_off", **TEXT, spec=4, at_batch=411).kind == "warning"


def test_spec_concurrency():
    """A promise of 15 ms: 161 requests without drafts; with them (verify + 0.4 step) / 3.36 = 15 ms at 183."""
    found = said("spec_concurrency", **TEXT, sla_tpot_ms=15.0)
    step = {batch: step_ms(batch) / drafted(batch) for batch in (183, 184)}
    assert step[183] <= 15 < step[184]
    assert (found.number("without"), found.number("with")) == (161, 183)


@pytest.mark.parametrize("fields", [{**FP8, "pp": 2}, {**DEEPSEEK, "tp": 1, "dp": 8}, FP8])
def test_a_step_of_the_rules_is_the_step_of_the_plan(fields):
    """Micro-batches, ranks and all."""
    scenario = Scenario(**fields, prefill="excluded", at_batch=64)
    seconds = step_seconds(scenario, step_of(scenario, np.full((1, 1), 64.0)))
    assert close(float(seconds[0, 0]) * 1e3, plan_of(scenario).tpot_ms)


# --- gateway ----------------------------------------------------------------------------------------


def test_gateway():
    found = said("gateway", **FP8, qps=20.0, prefix=0.5)
    plan = plan_of(Scenario(**FP8, qps=20.0, prefix=0.5))
    assert found.number("in_flight_limit") == plan.b_max
    assert found.number("in_flight_total") == plan.b_max * plan.replicas
    assert found.number("tokens_a_request") == 512 + 256


def test_queue_share():
    """Little: 20 requests/s for as long as each takes."""
    plan, found = plan_of(Scenario(**FP8, qps=20.0)), said("queue_share", **FP8, qps=20.0)
    residence = (plan.ttft_ms + 255 * plan.tpot_ms) / 1e3
    assert close(found.number("running"), 20 * residence)
    assert found.number("slots") == plan.batch * plan.replicas
    assert found.number("waiting_share") < found.number("waiting_share_apart")


def test_queue_share_warns_where_the_queue_has_no_end():
    """Little's law counts TTFT too: a rate that one replica's throughput just carries takes more than its slots."""
    plan = plan_of(Scenario(**FP8))
    found = said("queue_share", **FP8, qps=0.999 * plan.output_tok_s / 256, fix_replicas=1)
    assert found.kind == "warning"
    assert found.number("running") > found.number("slots") == plan.batch
    assert found.change == {"fix_replicas": None}


@pytest.mark.parametrize(
    ("slots", "running", "waits"), [(1, 0.8, 0.8), (2, 1.0, 1 / 3), (3, 2.0, 4 / 9), (4, 4.0, 1.0), (4, 0.0, 0.0)]
)
def test_erlang_c(slots, running, waits):
    """M/M/1: the load; M/M/2 at load ½: a third; M/M/3 at two thirds: four ninths."""
    assert probability_of_waiting(slots, running) == pytest.approx(waits)


def test_erlang_c_of_many_slots():
    """Halfin and Whitt: at c − a = β√c, one over 1 + β Φ(β) / φ(β)."""
    beta = 0.5
    density, below = math.exp(-(beta**2) / 2) / math.sqrt(2 * math.pi), (1 + math.erf(beta / math.sqrt(2))) / 2
    limit = 1 / (1 + beta * below / density)
    assert probability_of_waiting(1e6, 1e6 - beta * 1e3) == pytest.approx(limit, rel=0.002)
    assert probability_of_waiting(1e8, 1e7) == 0.0


# --- where rules are silent -------------------------------------------------------------------------

UNFIT = Scenario()
SILENT = {
    "ttft_above_promise": TEXT,
    "batch_beyond_promise": {**TEXT, "sla_tpot_ms": 15.0, "at_batch": 161},
    "promises_disagree": FP8,
    "little_kv": TEXT,
    "latent_copies": {**DEEPSEEK, "tp": 1, "dp": 8},
    "cache_copies": {"weights": "fp8", "tp": 8},
    "tp_over_slow_links": FP8,
    "int4_at_high_batch": {"weights": "int4", "tp": 4, "at_batch": 1},
    "spec_off": {**TEXT, "at_batch": 1},
    "chunk_breaks_tpot": {**TEXT, "prefill": "colocated", "at_batch": 8},
    "prefill_budget": FP8,
    "disaggregate": {**TEXT, "prefill": "colocated"},
    "pipeline_starves": {**FP8, "pp": 4, "at_batch": 4},
    "experts_beyond_domain": DEEPSEEK,
    "whole_memory": {**FP8, "util": 0.9},
    "borrowed_speed": FP8,
    "fp8_at_high_batch": FP8,
    "int4_at_low_batch": FP8,
    "int4_when_memory_limited": FP8,
    "int8_without_fp8": {"tp": 4},
    "homogeneous_pool": {**TEXT, "prefill": "colocated"},
    "stay_colocated": {"weights": "fp8", "tp": 2},
    "chunk_from_promise": {**TEXT, "prefill": "colocated", "at_batch": 20},
    "cp_for_ttft": FP8,
    "tp_for_latency": {"weights": "fp8", "tp": 8},
    "tp_limit_of_links": TEXT,
    "pp_for_throughput": {**TEXT, "tp": 1, "weights": "fp8"},
    "smallest_layout": {"model": "deepseek-v3", "gpu": "l4"},
    "dcp_shards_cache": FP8,
    "tp_ep_at_low_batch": FP8,
    "dp_ep_at_high_batch": FP8,
    "experts_on_one": MIXTRAL,
    "experts_in_one_domain": {**MIXTRAL, "tp": 1, "weights": "fp8", "gpu": "h200-sxm"},
    "expert_tiles": FP8,
    "spec_on": TEXT,
    "spec_concurrency": TEXT,
    "gateway": {},
    "queue_share": FP8,
    "binding_limit": {},
    "amortise_weights": {},
    "decode_bound": {},
    "weight_share": {},
    "weights_per_gpu": {"weights": "fp8", "tp": 1},
    "block_fragments": {},
    "request_latency": {},
}


def test_every_rule_is_tried_where_it_fires_and_where_it_is_silent():
    assert set(SILENT) == set(BY_NAME)
    assert {f"test_{name}" for name in BY_NAME} <= set(globals())


@pytest.mark.parametrize("rule", SILENT)
def test_a_rule_is_silent(rule):
    assert said(rule, **SILENT[rule]) is None


# --- all of them ------------------------------------------------------------------------------------

MANY = [Scenario(**fields) for fields in (TEXT, FP8, DEEPSEEK, DIE, MIXTRAL, {}, {**FP8, "qps": 20.0, "osl": 1})]


@pytest.mark.parametrize("scenario", MANY, ids=range(len(MANY)))
def test_warnings_come_first_and_every_change_can_be_opened(scenario):
    found = advise(scenario)
    kinds = [each.kind for each in found]
    assert kinds == sorted(kinds, key=lambda kind: kind != "warning")
    assert len({each.code for each in found}) == len(found)
    for each in found:
        assert each.code in BY_NAME
        assert all(math.isfinite(value) for _, value, _ in each.numbers)
        assert each.text.endswith((".", ")."))
        assert not any(word in each.text for word in ("nan", "inf ", "None"))
        if each.change is not None:
            variant = scenario.with_(**each.change)
            assert variant != scenario
            assert plan_of(variant).ttft_ms is not None


def test_advice_is_quick():
    """Less than 120 ms of processor time, the plan itself known; twenty times a plan on a busy machine."""
    scenario = Scenario(**FP8)
    advise(scenario)
    spent = []
    for isl in (1100, 1101, 1102):
        varied = scenario.with_(isl=isl)
        start = time.process_time()
        plan_of(varied)
        middle = time.process_time()
        advise(varied)
        spent.append((time.process_time() - middle, middle - start))
    advice, plan = min(spent)
    assert advice < max(0.12, 20 * plan)
