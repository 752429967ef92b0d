"""One plan with everything in it, and quantities of plans recomputed by hand from the facts alone."""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.errors import CatalogueError
from planner.plan import Plan
from planner.setting import resolve
from planner.single import plan_of, plan_setting, worked
from planner.specs.scenario import Scenario
from tests.asking import plan, setting

GIB = 2.0**30
MODELS = ["llama-70b-nominal", "llama-3.1-70b", "deepseek-v3", "glm-5.2", "qwen3-next-80b-a3b", "gpt-oss-120b"]
"""One of each kind: nominal, grouped, latent, sparse index, hybrid, windows with mixed formats."""


def served(name: str, profile: str = "measured", **changes: Any) -> Plan:
    """A plan of a model on 8 × B200 with loose promises."""
    loose = {"sla_ttft_ms": 60_000.0, "sla_tpot_ms": 500.0}
    return plan(model=name, profile=profile, gpu="b200-sxm", tp=8, weights="fp8", **{**loose, **changes})


# --- by hand ----------------------------------------------------------------------------------------------------------
# Each expected value is arithmetic on published shapes and data-sheet figures; nothing of the planner takes part.


def test_weights_of_llama_8b_on_one_l40s() -> None:
    """FP8 matrices; embedding, head (128,256 × 4,096 each) and 65 norms in BF16."""
    layer = 4096 * (32 + 8 + 8) * 128 + 4096 * 4096 + 3 * 4096 * 14_336
    plain = 2 * 128_256 * 4096 + 65 * 4096
    found = plan(model="llama-3.1-8b", gpu="l40s", weights="fp8")
    assert found.weights_bytes == 32 * layer + 2 * plain


def test_weights_of_mixtral_on_one_of_two_gpus() -> None:
    """Eight experts of 3 · 4,096 · 14,336 in 32 layers, halved by TP; routers and norms whole."""
    attention = 4096 * (32 + 8 + 8) * 128 + 4096 * 4096
    split = 32 * (attention + 8 * 3 * 4096 * 14_336) + 2 * 32_000 * 4096
    whole = 32 * (4096 * 8 + 2 * 4096) + 4096
    found = plan(model="mixtral-8x7b", tp=2)
    assert found.weights_bytes == 2 * (split / 2 + whole)


def test_weights_of_deepseek_v3_on_one_of_eight_h200() -> None:
    """Block FP8: 671.03 G parameters, latent projections copied, a scale per 128 × 128 weights."""
    scale = 1 + 4 / 16_384
    copied = 7168 * 1536 + 7168 * 576
    split = 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168
    experts = 58 * (256 + 1) * 3 * 7168 * 2048
    dense = 3 * 3 * 7168 * 18_432
    quantised = (61 * (copied + split / 8) + (experts + dense) / 8) * scale
    ends = 2 * 2 * 129_280 * 7168 / 8
    plain = 2 * (58 * (256 * 7168) + 61 * (2 * 7168 + 1536 + 512) + 7168)
    found = plan(model="deepseek-v3", gpu="h200-sxm", tp=8, weights="fp8-block")
    assert found.weights_bytes == pytest.approx(quantised + ends + plain, rel=2e-4)


def test_cache_of_glm_5_2_on_eight_gpus() -> None:
    """78 latents of 576 in BF16 and 21 index keys of 132 bytes, the same on every rank."""
    found = served("glm-5.2", isl=4000, osl=96)
    assert found.kv_bytes_per_token == pytest.approx(78 * 1152 + 21 * 132, rel=1e-12)


def test_cache_of_gpt_oss_at_128k_on_one_gpu() -> None:
    """Textbook: 18 layers keep everything, 18 keep 128 tokens; 2 · 8 heads · 64 · 2 bytes."""
    found = plan(model="gpt-oss-120b", profile="textbook", weights="mxfp4", gpu="h200-sxm", isl=130_000, osl=1000)
    assert found.kv_bytes_per_token == pytest.approx(18 * 2048 * (131_000 + 128) / 131_000, rel=1e-9)


def test_pool_of_llama_405b_on_eight_h200_textbook() -> None:
    """141 GB less an eighth of 405.85 GB in FP8."""
    parameters = 405_853_388_800
    found = plan(model="llama-3.1-405b", profile="textbook", gpu="h200-sxm", tp=8, weights="fp8")
    assert found.kv_pool_bytes == pytest.approx(141e9 - parameters / 8, rel=1e-4)


def test_largest_batch_of_llama_405b_by_cache() -> None:
    """96 % of the pool over 126 · 2 · 1 head · 128 · 2 bytes of 1,280 tokens on each GPU."""
    found = plan(model="llama-3.1-405b", profile="textbook", gpu="h200-sxm", tp=8, weights="fp8")
    sequence = 126 * 2 * 128 * 2 * 1280
    assert found.b_max_kv == math.floor(0.96 * (141e9 - 405_853_388_800 / 8) / sequence)


def test_tpot_of_qwen_32b_on_two_a100() -> None:
    """Textbook: 32.76 G parameters less the embedding, and 16 caches of 2,048 + 128 tokens, over 2 · 2.039 TB/s."""
    read = 2 * (32_762_123_264 - 151_936 * 5120) + 16 * 2176 * 64 * 2 * 8 * 128 * 2
    found = plan(
        model="qwen3-32b",
        profile="textbook",
        prefill="excluded",
        gpu="a100-80g-sxm",
        tp=2,
        isl=2048,
        osl=256,
        at_batch=16,
    )
    assert found.tpot_ms == pytest.approx(read / (2 * 2.039e12) * 1e3, rel=1e-3)


def test_tpot_of_mixtral_at_a_compute_bound_batch() -> None:
    """Textbook on 8 B200: 8,000 sequences of 24 tokens, 2 · 12.75 G operations each, over three quarters of 2.25 PFLOPS.

    Every rank runs the whole router.
    """
    active = 32 * (4096 * 6144 + 4096 * 4096 + 2 * 3 * 4096 * 14_336 + 8 * 4096 * 8) + 32_000 * 4096
    attention = 4 * 24 * 32 * 32 * 128
    found = plan(
        model="mixtral-8x7b",
        profile="textbook",
        prefill="excluded",
        gpu="b200-sxm",
        tp=8,
        isl=16,
        osl=16,
        at_batch=8000,
    )
    assert found.tpot_ms == pytest.approx(8000 * (2 * active + attention) / (8 * 0.75 * 2.25e15) * 1e3, rel=1e-9)


def test_ttft_of_llama_8b_on_h100() -> None:
    """Textbook: 2 · (8.03 − 0.53) G · 4,096 and 4 · 4,096² · 4,096 · 32 operations over 742.05 TFLOPS."""
    linear = 2 * (8_030_261_248 - 128_256 * 4096) * 4096
    attention = 4 * 4096**2 * 4096 * 32
    found = plan(model="llama-3.1-8b", profile="textbook", isl=4096, osl=64, at_batch=1)
    assert found.ttft_ms == pytest.approx((linear + attention) / 742.05e12 * 1e3, rel=1e-3)
    assert found.ttft_unloaded_ms == pytest.approx((linear + attention) / 742.05e12 * 1e3, rel=1e-3)


def test_throughput_and_cost_of_llama_70b_fp8() -> None:
    """Textbook on 2 H100 at $2.50: 100 sequences of 1,152 tokens, 35 GB of weights a GPU."""
    tpot = (70e9 + 100 * 1152 * 327_680) / (2 * 3.35e12)
    found = plan(
        model="llama-70b-nominal", profile="textbook", prefill="excluded", weights="fp8", tp=2, at_batch=100, price=2.5
    )
    assert found.output_tok_s == pytest.approx(100 / tpot, rel=1e-9)
    assert found.usd_per_m_output == pytest.approx(5.0 / (100 / tpot * 3600 / 1e6), rel=1e-9)


def test_bandwidth_of_the_h100_pcie_sets_its_tpot() -> None:
    """The same plan on two form factors: 2.0 against 3.35 TB/s."""
    asked = {"model": "llama-3.1-8b", "profile": "textbook", "prefill": "excluded", "at_batch": 1}
    ratio = plan(**asked, gpu="h100-pcie").tpot_ms / plan(**asked, gpu="h100-sxm").tpot_ms
    assert ratio == pytest.approx(3.35 / 2.0, rel=0.03)


# --- what a plan holds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["measured", "textbook"])
@pytest.mark.parametrize("name", MODELS)
def test_the_ledger_adds_up_to_tpot(name: str, profile: str) -> None:
    found = served(name, profile, at_batch=24)
    assert sum(row.seconds for row in found.ledger) * 1e3 == pytest.approx(found.tpot_ms, rel=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_the_curve_passes_through_the_operating_point(name: str) -> None:
    found = served(name, at_batch=24)
    (point,) = (p for p in found.curve if p.batch == 24)
    assert point.tpot_ms == pytest.approx(found.tpot_ms, rel=1e-12)
    assert point.output_tok_s == pytest.approx(found.output_tok_s, rel=1e-12)
    assert point.usd_per_m_output == pytest.approx(found.usd_per_m_output, rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_the_curve_starts_at_one_and_says_what_fits(name: str) -> None:
    found = served(name)
    batches = [p.batch for p in found.curve]
    assert batches[0] == 1
    assert batches == sorted(set(batches))
    assert all(p.fits == (p.batch <= found.b_max_kv) for p in found.curve)


def test_the_operating_point_is_the_largest_batch_that_keeps_the_promise() -> None:
    found = served("llama-3.1-70b")
    assert found.batch == found.b_max == min(found.b_max_kv, found.b_max_sla, 1024)
    assert found.meets_sla


def test_an_operating_point_of_ones_own() -> None:
    assert served("llama-3.1-70b", at_batch=17).batch == 17


def test_the_band_brackets_tpot() -> None:
    found = served("llama-3.1-70b")
    assert found.tpot_low_ms < found.tpot_ms < found.tpot_high_ms


def test_a_plan_that_does_not_fit_has_no_speed_and_names_a_way_out() -> None:
    found = plan(model="deepseek-v3", weights="fp8-block", tp=4)
    assert found.tpot_ms is found.ttft_ms is found.output_tok_s is None
    assert found.curve == found.ledger == ()
    assert found.notes[0].code in ("nearest_fit", "nothing_fits")


def test_the_nearest_fit_fits() -> None:
    note = plan(model="llama-3.1-70b", tp=1).notes[0]
    assert note.code == "nearest_fit"
    tp = int(note.text.split("tp=")[1].split(" ")[0].rstrip(",.;)"))
    assert plan(model="llama-3.1-70b", tp=tp).fits


def test_everything_is_sourced() -> None:
    found = served("deepseek-v3")
    assert len(found.sources) >= 3
    assert found.assumptions


def test_a_percentile_says_how_it_is_judged() -> None:
    notes = {note.field for note in served("deepseek-v3", sla_pct=99.0).notes if note.code == "percentile"}
    assert notes == {"sla_pct"}


def test_a_plan_and_its_setting_agree() -> None:
    asked = Scenario(model="llama-3.1-70b", tp=8)
    assert plan_of(asked) == plan_setting(resolve(asked))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(CatalogueError):
        plan_of(Scenario(model="no-such-model"))


def test_the_worked_arithmetic_ends_at_the_plans_tpot() -> None:
    asked = Scenario(model="llama-70b-nominal", profile="textbook", tp=4, prefill="excluded", at_batch=64)
    shown = [line for each in worked(asked) for line in each.lines if each.formula.name == "corner_seconds"]
    assert any(line.result.startswith("0.0122507") for line in shown)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("yi-34b", True),
        ("qwen2.5-vl-72b", True),
        ("qwen1.5-110b", True),
        ("llama-3.1-70b", False),
        ("deepseek-v3", False),
    ],
)
def test_a_plan_says_when_its_model_has_no_source(model: str, said: bool) -> None:
    """Whole shapes, a vision tower, one number: what nobody published is a doubt on the plan, not in a table elsewhere."""
    found = plan(model=model, tp=8)
    assert ("unsourced" in {note.code for note in found.notes}) is said


def test_the_band_lies_about_the_estimate_as_the_preset_states_it() -> None:
    asked = {"model": "llama-3.1-70b", "weights": "fp8", "tp": 4}
    low, high = setting(**asked).profile.band
    found = plan(**asked)
    assert low < 1.0 < high
    assert found.tpot_low_ms == pytest.approx(low * found.tpot_ms, rel=1e-12)
    assert found.tpot_high_ms == pytest.approx(high * found.tpot_ms, rel=1e-12)


@pytest.mark.parametrize("dp", [1, 2])
def test_cache_of_a_replica_is_that_of_its_data_parallel_ranks(dp: int) -> None:
    """A rank's pool over its bytes a token, within a block of 16; a replica has `dp` of them."""
    found = plan(model="llama-3.1-70b", weights="fp8", tp=4, dp=dp)
    held = found.kv_pool_bytes / (80 * 2 * 8 * 128 * 2 / 4)
    assert held - 16 <= found.kv_capacity_tokens_rank <= held
    assert found.kv_capacity_tokens == dp * found.kv_capacity_tokens_rank


def test_requests_of_one_token_at_a_rate_are_sized() -> None:
    """They have no TPOT, hence no curve to read a running batch from."""
    plan = plan_of(Scenario(weights="fp8", tp=4, qps=20.0, osl=1))
    assert plan.tpot_ms is None
    assert not any(note.code == "at_rate" for note in plan.notes)


def test_fixed_replicas_without_a_rate_are_not_called_overloaded() -> None:
    """One output token and prefill left out: there is no throughput to compare with."""
    plan = plan_of(Scenario(weights="fp8", tp=4, qps=20.0, osl=1, prefill="excluded", fix_replicas=1, sla_ttft_ms=1.0))
    assert plan.output_tok_s is None
    assert not any(note.code == "overloaded" for note in plan.notes)
