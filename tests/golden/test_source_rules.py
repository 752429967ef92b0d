"""The articles' rules without a number: what the planner advises in their place, worked out, one test a case."""

from __future__ import annotations

import pytest

from planner.advise import RULES
from planner.single import plan_of
from planner.specs.scenario import Scenario

TEXT = {"model": "llama-70b-nominal", "profile": "textbook", "tp": 4, "prefill": "excluded"}
FP8 = {"weights": "fp8", "tp": 4}
DEEPSEEK = {"model": "deepseek-v3", "weights": "fp8", "gpu": "h200-sxm", "tp": 8, "ep": 8}
QWEN = {"model": "qwen3-235b-a22b", "weights": "fp8", "gpu": "h200-sxm", "tp": 4, "ep": 4}
DIE = {"gpu": "ascend-910c-die", "engine": "vllm-ascend", "tp": 4, "sla_ttft_ms": 1000.0, "sla_tpot_ms": 120.0}

BY_NAME = {rule.__name__: rule for rule in RULES}


def said(rule, **fields):
    """What one rule says about a scenario."""
    scenario = Scenario(**fields)
    return BY_NAME[rule](scenario, plan_of(scenario))


def test_G8_01():
    """ "Engines stay far below 2,048": true of a GPU, false of an expert group, whose whole batch the experts see."""
    alone = said("expert_tiles", **DEEPSEEK, at_batch=128)
    group = said("expert_tiles", **{**DEEPSEEK, "tp": 1, "dp": 128, "ep": 128, "sla_tpot_ms": 200.0}, at_batch=16_384)
    assert alone.number("fills_tile") == group.number("fills_tile") == 2048
    assert alone.number("tokens") == 4
    assert group.number("tokens") == 512
    assert group.number("fill") > 0.9 > alone.number("fill")


def test_G8_04():
    """Raise concurrency: by how much it helps, and what stops it."""
    few, many = (said("amortise_weights", **TEXT, at_batch=batch) for batch in (8, 400))
    assert few.number("gain") > 0.9
    assert many.number("gain") < 0.2
    assert "left unset, the batch would be 411 (the cache is full)" in few.text


def test_G9_01():
    """The gateway's two numbers: requests in flight an instance, and instances; with the cost of a request in tokens."""
    found, plan = said("gateway", **FP8, qps=20.0), plan_of(Scenario(**FP8, qps=20.0))
    assert (found.number("in_flight_limit"), found.number("instances")) == (plan.b_max, plan.replicas)
    assert found.number("tokens_a_request") == 1280


def test_S0_12():
    """910C numbers come from constants, not from benchmarks: said, with the band that follows."""
    found = said("borrowed_speed", **DIE)
    assert found.kind == "warning"
    assert found.number("high") > 2


def test_S2_2_02():
    """Decode first, prompts from what is left of the step's tokens: warned of where they do not fit into it."""
    assert said("prefill_budget", **FP8, token_budget=256, at_batch=60).number("left") == 196
    assert said("prefill_budget", **FP8) is None


def test_S4_4_01():
    """Long prompts, many requests: disaggregate, where interference exceeds the transfer and both pools yield more."""
    found = said("disaggregate", **FP8, isl=4096, sla_ttft_ms=1000.0)
    assert found.number("interference") > 100 * found.number("transfer")
    assert found.number("apart") > found.number("together")


def test_S4_4_02():
    """Prompts below 512 tokens: two pools yield no more; the transfer is not the reason, it is a few milliseconds."""
    found = said("stay_colocated", **TEXT | {"prefill": "colocated"}, isl=256)
    assert found.number("transfer") < 0.01
    assert found.number("apart") <= found.number("together") * 1.02


def test_S4_4_03():
    """Equal devices: the gain itself, and the sizes of the pools."""
    found = said("homogeneous_pool", weights="fp8", tp=2)
    assert 0 < found.number("gain") < 1
    assert found.number("prefill_per_decode") > 0


def test_S4_4_04():
    """Colocated with chunks: the chunk that the promise leaves room for, near (50 ms − step) · FLOPS / 2N."""
    found = said("chunk_from_promise", **TEXT | {"prefill": "colocated"}, at_batch=1)
    assert found.number("room") == pytest.approx(0.05 * 4 * 742.05e12 / (2 * 70e9), rel=0.03)


def test_S5_3_05():
    """High temperature: acceptance falls, so the acceptance that breaks even is told."""
    found = said("spec_on", **TEXT, at_batch=1)
    assert 0.2 < found.number("break_even_acceptance") < 0.4
    assert "Acceptance falls with temperature" in found.text


def test_S5_4_05():
    """Drafts for chat, not for batches: the batch at which they stop to gain, not a rule of thumb."""
    chat, batch = said("spec_on", **TEXT, at_batch=1), said("spec_off", **TEXT)
    assert chat.number("gain") > 2 > 1 > batch.number("gain")
    assert chat.number("break_even_batch") == batch.number("break_even_batch") > 8


def test_S6_3_04():
    """TPOT rises with the batch, and so does throughput."""
    found, plan = said("amortise_weights", **TEXT), plan_of(Scenario(**TEXT))
    assert found.number("tpot_twice") > plan.tpot_ms
    assert found.number("gain") > 0


def test_S7_1_12():
    """TP up to 8 on NVLink: the degree at which TPOT stops falling is looked for, on any link."""
    assert said("tp_limit_of_links", **FP8).number("last_tp") == 8
    assert said("tp_limit_of_links", **DIE).number("last_tp") > 4


def test_S7_1_13():
    """TP for latency, PP for throughput: each priced on the same devices."""
    assert said("tp_for_latency", **FP8).number("tpot_then") < plan_of(Scenario(**FP8)).tpot_ms
    assert said("pp_for_throughput", **TEXT).number("gain") < 0
    assert said("pp_for_throughput", **FP8).number("micro_batch") == plan_of(Scenario(**FP8)).batch / 2


def test_S7_3_01():
    """CP does help decode: it divides what ranks hold alike."""
    found = said("dcp_shards_cache", **DEEPSEEK)
    assert found.number("held_then") >= 8 * found.number("held_now")


def test_S8_1_01():
    """TPOT proportional to bytes a parameter: of the weights' share of a step alone."""
    found = said("weight_share", **TEXT)
    assert found.number("most") == found.number("share") / 2 < 0.25


def test_S8_2_10():
    """FP8 for many requests, INT4 for few: with the batch at which they change places."""
    assert said("fp8_at_high_batch", tp=4).number("gain") > 0.2
    few, many = said("int4_at_low_batch", **FP8, at_batch=1), said("int4_at_high_batch", weights="int4", tp=4)
    assert few.number("crossover") == many.number("crossover") > 8


def test_S9_5_D1():
    """FP8 shifts the whole curve: a shorter TPOT at the same batch, and a larger batch."""
    found, plan = said("fp8_at_high_batch", **TEXT), plan_of(Scenario(**TEXT))
    assert found.number("tpot_same_batch") < plan.tpot_ms
    assert found.number("batch_then") > plan.batch


def test_S9_6_03():
    """Drafts cannot raise the batch that the promise allows: they can, where the roofline still gains there."""
    found = said("spec_concurrency", **TEXT, sla_tpot_ms=15.0)
    assert found.number("with") > found.number("without")
    assert said("spec_concurrency", **FP8).number("with") < said("spec_concurrency", **FP8).number("without")


def test_S10_2_04():
    """TP+EP copies the cache on every rank: of a latent, or beyond the KV heads; grouped heads divide it."""
    assert said("latent_copies", **DEEPSEEK).number("copies") == 8
    assert said("cache_copies", **QWEN) is None
    assert said("cache_copies", **{**QWEN, "tp": 8, "ep": 8}).number("copies") == 2


def test_S10_2_07():
    """EP = 8 or 64: what matters is whether the group stays inside its scale-up domain."""
    assert said("experts_beyond_domain", **DEEPSEEK) is None
    assert said("experts_beyond_domain", **{**DEEPSEEK, "tp": 1, "dp": 64, "ep": 64}).number("domain") == 8


def test_S10_3_03():
    """MLA: DCP is an alternative to DP, and DP32 × TP4 keeps four copies."""
    found = said("latent_copies", **DEEPSEEK)
    assert min(found.number("held_dcp"), found.number("held_dp")) > 4 * found.number("held_now")
    assert said("latent_copies", **{**DEEPSEEK, "tp": 4, "dp": 32, "ep": 128}).number("copies") == 4


def test_S10_6_02():
    """Few requests TP+EP, many DP+EP: the batch at which they change places; grouped heads give no reason of cache."""
    few = said("tp_ep_at_low_batch", **QWEN, at_batch=1)
    assert few.number("tpot_tp") < few.number("tpot_dp")
    assert few.number("crossover") >= 1
    many = said("dp_ep_at_high_batch", **QWEN)
    assert many is None or "grouped heads divide under TP too" in many.text


def test_S10_6_03():
    """MLA must use DP+EP: only where dividing the cache yields more good tokens is it called a mistake not to."""
    found = said("latent_copies", **DEEPSEEK)
    best = max(found.number("good_dcp"), found.number("good_dp"))
    assert (found.kind == "warning") == (best > 1.02 * found.number("good_now"))


def test_S10_6_05():
    """Between one device and many the decision tree has no branch: the TP that carries the model alone."""
    found = said("experts_in_one_domain", model="mixtral-8x7b", tp=2)
    assert found.number("tp") == 2
    assert said("experts_in_one_domain", **QWEN).number("tp") == 2


def test_S10_7_02():
    """671B cannot be deployed without EP: eight H200 hold it by TP alone, 84 GB each and what cannot be split."""
    found = said("experts_in_one_domain", **{**DEEPSEEK, "profile": "textbook"})
    assert found.number("tp") == 8
    assert found.number("weights_per_gpu") == pytest.approx(671e9 / 8, rel=0.015)


def test_S11_2_01():
    """Plan decoding by bandwidth: true below the crossover, which the cache moves from 221 to 522 here."""
    found = said("decode_bound", **TEXT)
    assert found.number("crossover") == 522


def test_S11_2_02():
    """No larger batch without end: beyond the promise no token is good."""
    fields = {**TEXT, "sla_tpot_ms": 15.0, "at_batch": 200}
    assert said("batch_beyond_promise", **fields).change == {"at_batch": None}
    assert plan_of(Scenario(**fields)).goodput_tok_s == 0


def test_S11_2_03():
    """Drafts beyond B = 8: a warning where they lose, at the batch that runs."""
    assert said("spec_off", **TEXT, spec=4, at_batch=411).kind == "warning"
    assert said("spec_off", **TEXT, spec=4, at_batch=16) is None
