"""Logs against plans: every log here is written from arithmetic, with one thing otherwise than the plan has it.

Llama-3.1-8B: 8,030,261,248 parameters, 32 layers, 8 KV heads of 128, vocabulary 128,256 by 4,096 in embedding and head.
Its weights are 14.958 GiB in BF16; in FP8 the 6,979,584,000 of its matrices take a byte, the rest two: 8.457 GiB.
Its cache takes 32 · 2 · 8 · 128 · 2 = 131,072 bytes/token in BF16.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from planner.logs.explained import Difference, contradictions, scenario_from
from planner.logs.startup import read_start_up
from planner.single import plan_of
from planner.specs.scenario import Scenario

GIB = 2.0**30
LLAMA = Scenario(model="llama-3.1-8b", gpu="h100-sxm", isl=1024, osl=256)
BF16_GIB, FP8_GIB, TOKEN = 14.958, 8.457, 131_072.0


def log(weights: float, pool: float, token: float, *more: str, longest: int = 131_072) -> str:
    """A vLLM log: weights and pool in GiB, the tokens that the pool holds at so many bytes each, whole blocks of 16."""
    tokens = int(pool * GIB / token / 16) * 16
    return "\n".join(
        [
            *more,
            f"INFO [gpu_model_runner.py:1] Model loading took {weights:.4f} GiB memory and 3.21 seconds",
            f"INFO [gpu_worker.py:1] Available KV cache memory: {pool:.2f} GiB",
            f"INFO [kv_cache_utils.py:1] GPU KV cache size: {tokens:,} tokens",
            f"INFO [kv_cache_utils.py:1] Maximum concurrency for {longest:,} tokens per request: {tokens / longest:.2f}x",
        ]
    )


def explained(text: str, scenario: Scenario) -> dict[str, Difference]:
    return {each.term: each for each in contradictions(read_start_up(text), plan_of(scenario))}


def pool_gib(scenario: Scenario) -> float:
    return plan_of(scenario).kv_pool_bytes / GIB


def test_a_log_of_the_plan_itself_agrees_throughout() -> None:
    found = explained(log(BF16_GIB, pool_gib(LLAMA), TOKEN), LLAMA)
    assert {term: each.agrees for term, each in found.items()} == dict.fromkeys(
        ("weights_bytes", "kv_bytes_per_token", "kv_pool_bytes", "kv_capacity_tokens", "max_concurrency"), True
    )
    assert [each.suggestion for each in found.values()] == [""] * 5


def test_planned_values_are_the_plans() -> None:
    found, at = explained(log(BF16_GIB, 50.0, TOKEN), LLAMA), plan_of(LLAMA)
    for term in ("weights_bytes", "kv_pool_bytes", "kv_bytes_per_token"):
        assert found[term].planned == pytest.approx(getattr(at, term), rel=1e-12)
    assert found["kv_capacity_tokens"].planned == at.kv_capacity_tokens_rank
    assert found["kv_bytes_per_token"].planned == TOKEN
    assert found["weights_bytes"].planned == pytest.approx(BF16_GIB * GIB, rel=1e-4)


def test_half_the_bytes_per_token_are_an_fp8_cache() -> None:
    found = explained(log(BF16_GIB, pool_gib(LLAMA), TOKEN / 2), LLAMA)
    rate = found["kv_bytes_per_token"]
    assert rate.ratio == pytest.approx(0.5, rel=1e-3)
    assert rate.suggestion.startswith("With kv = fp8 instead of kv = bf16, the plan would have 65,536 bytes/token")
    assert found["kv_pool_bytes"].agrees
    assert found["kv_capacity_tokens"].ratio == pytest.approx(2.0, rel=1e-3)
    assert found["kv_capacity_tokens"].suggestion == "Follows from what differs above (kv = fp8)."


def test_twice_the_bytes_per_token_are_a_bf16_cache() -> None:
    at = LLAMA.with_(kv="fp8")
    found = explained(log(BF16_GIB, pool_gib(at), TOKEN), at)
    assert found["kv_bytes_per_token"].suggestion.startswith("With kv = bf16 instead of kv = fp8")


def test_half_the_weights_with_the_same_cache_are_fp8_weights() -> None:
    """FP8 halves the weights only; TP 2 would halve the cache as well. The pattern of all terms tells them apart."""
    pool = pool_gib(LLAMA.with_(weights="fp8"))
    found = explained(log(FP8_GIB, pool, TOKEN), LLAMA)
    assert found["weights_bytes"].suggestion.startswith("With weights = fp8 instead of weights = bf16")
    assert found["kv_bytes_per_token"].agrees
    assert found["kv_pool_bytes"].suggestion == "Follows from what differs above (weights = fp8)."


def test_half_of_everything_is_twice_the_tensor_parallelism() -> None:
    pool = pool_gib(LLAMA.with_(tp=2))
    found = explained(log(BF16_GIB / 2, pool, TOKEN / 2), LLAMA)
    assert found["weights_bytes"].suggestion.startswith("With tp = 2 instead of tp = 1")
    assert found["kv_bytes_per_token"].suggestion == "Follows from what differs above (tp = 2)."
    assert found["kv_pool_bytes"].suggestion == "Follows from what differs above (tp = 2)."


def test_half_of_everything_without_communication_is_a_pipeline() -> None:
    """Two stages halve weights and cache as TP 2 does, but a stage needs 0.07 GiB beside them, not TP 2's 2 GiB."""
    pool = pool_gib(LLAMA.with_(pp=2))
    runtime = "INFO non_torch_memory takes 0.07GiB"
    found = explained(log(plan_of(LLAMA.with_(pp=2)).weights_bytes / GIB, pool, TOKEN / 2, runtime), LLAMA)
    assert found["weights_bytes"].suggestion.startswith("With pp = 2 instead of pp = 1")


def test_what_the_log_states_is_said_before_what_might_be() -> None:
    args = (
        "INFO [utils.py:1] non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', 'tensor_parallel_size': 2}"
    )
    found = explained(log(BF16_GIB / 2, pool_gib(LLAMA.with_(tp=2)), TOKEN / 2, args), LLAMA)
    assert found["weights_bytes"].suggestion.startswith("The log states tp = 2, the plan has tp = 1")


def test_heads_that_are_not_divided() -> None:
    """TP 4 holds a quarter of the heads, 32,768 bytes/token; a log of 131,072 with a quarter of the weights does not."""
    at = LLAMA.with_(tp=4)
    found = explained(log(BF16_GIB / 4, pool_gib(at), TOKEN), at)
    assert found["weights_bytes"].agrees
    assert found["kv_bytes_per_token"].ratio == pytest.approx(4.0, rel=1e-3)
    assert found["kv_bytes_per_token"].suggestion.startswith("4 times the plan's, its tp")


def test_latents_padded_by_vllm_0_7() -> None:
    """61 layers · 640 · 2 = 78,080 bytes/token where the row itself takes 61 · 576 · 2 = 70,272."""
    at = Scenario(model="deepseek-r1", gpu="h200-sxm", tp=8, weights="fp8-block")
    weights = plan_of(at).weights_bytes / GIB
    found = explained(
        log(weights, pool_gib(at), 78_080.0, "INFO Initializing a V0 LLM engine (v0.7.3) with config: a=1"), at
    )
    assert found["kv_bytes_per_token"].ratio == pytest.approx(640 / 576, rel=1e-3)
    assert "vLLM 0.7 pads the latent" in found["kv_bytes_per_token"].suggestion
    newer = log(weights, pool_gib(at), 78_080.0, "INFO Initializing a V1 LLM engine (v0.11.0) with config: a=1")
    assert "pads" not in explained(newer, at)["kv_bytes_per_token"].suggestion


def test_another_length_with_the_same_tokens() -> None:
    found = explained(log(BF16_GIB, pool_gib(LLAMA), TOKEN, longest=8_192), LLAMA)
    assert found["kv_capacity_tokens"].agrees
    concurrency = found["max_concurrency"]
    assert concurrency.ratio == pytest.approx(131_072 / 8_192, rel=0.01)
    assert concurrency.suggestion.startswith("The log states max_len = 8192, the plan has max_len = 131072")


def test_a_stated_share_explains_the_pool() -> None:
    at = LLAMA.with_(util=0.7)
    args = "INFO [utils.py:1] non-default args: {'gpu_memory_utilization': 0.7}"
    found = explained(log(BF16_GIB, pool_gib(at), TOKEN, args), LLAMA)
    assert found["kv_pool_bytes"].suggestion.startswith("The log states util = 0.7, the plan has util = 0.92")
    assert found["kv_capacity_tokens"].suggestion == "Follows from what differs above (util = 0.7)."


def test_a_share_that_nobody_states_is_worked_out() -> None:
    """The printed pool is 30 GiB below the plan's: 30 of 79.18 GiB are 0.379 of the device."""
    pool = pool_gib(LLAMA) - 30.0
    found = explained(log(BF16_GIB, pool, TOKEN), LLAMA)
    share = 0.92 - 30.0 / 79.18
    assert (
        found["kv_pool_bytes"].suggestion == f"The plan's other terms leave this pool at a memory share of {share:.3f}."
    )
    assert found["kv_capacity_tokens"].suggestion == "Follows from the cache pool above."


def test_another_process_on_the_device() -> None:
    """12 of 79.19 GiB were gone before the start, and the pool is 12 GiB smaller."""
    line = (
        "INFO Free memory on device (67.19/79.19 GiB) on startup. Desired GPU memory utilization is (0.92, 72.85 GiB)."
    )
    found = explained(log(BF16_GIB, pool_gib(LLAMA) - 12.0, TOKEN, line), LLAMA)
    assert found["kv_pool_bytes"].suggestion == (
        "12.00 GiB of the device were taken before the start: another process is on it."
    )


def test_another_device() -> None:
    line = "INFO Free memory on device (139.00/139.80 GiB) on startup. Desired GPU memory utilization is (0.92, 128.6 GiB)."
    found = explained(log(BF16_GIB, pool_gib(LLAMA) + 55.0, TOKEN, line), LLAMA)
    assert "another accelerator" in found["kv_pool_bytes"].suggestion


def test_activation_of_a_vision_tower() -> None:
    """Gemma 3 27B: the plan's activation peak and 5 GiB more, which the pool lacks."""
    at = Scenario(model="gemma-3-27b", gpu="h200-sxm", isl=1024, osl=256)
    own = plan_of(at)
    activation = own.activation_bytes / GIB + 5.0
    line = (
        f"INFO [worker.py:1] Actual usage is 51.10 GiB for weight, {activation:.2f} GiB for peak activation, and so on"
    )
    text = (
        f"{line}\nModel loading took {own.weights_bytes / GIB:.2f} GiB\n"
        f"Available KV cache memory: {own.kv_pool_bytes / GIB - 5.0:.2f} GiB"
    )
    found = explained(text, at)
    assert found["activation_bytes"].suggestion.startswith("5.00 GiB more: the engine profiles the vision tower")
    assert found["kv_pool_bytes"].suggestion.startswith("5.00 GiB less, mostly from the activation peak")


def test_rules_of_an_older_version() -> None:
    """vLLM 0.19 leaves the graphs, 1.38 GiB for 67.7 GiB of weights, beside its share; newer versions take them from it."""
    at = Scenario(model="llama-3.1-70b", gpu="h100-sxm", weights="fp8", util=0.92)
    own = plan_of(at)
    pool = (own.kv_pool_bytes + own.graph_bytes) / GIB
    text = log(
        own.weights_bytes / GIB, pool, 327_680.0, "INFO version 0.19.0", "INFO vLLM API server version 0.19.0",
        "INFO non-default args: {'gpu_memory_utilization': 0.92}",
    )  # fmt: skip
    found = explained(text, at)
    assert found["kv_pool_bytes"].suggestion.startswith("By the rules of vLLM 0.19.0 the plan would have")
    assert found["kv_capacity_tokens"].suggestion == "Follows from what differs above (rules of vLLM 0.19.0)."
    unsaid = explained(log(own.weights_bytes / GIB, pool, 327_680.0), at.with_(util=None))
    assert re.fullmatch(r"1\.3\d GiB more, as much as the graphs: .*", unsaid["kv_pool_bytes"].suggestion)


def test_attention_that_a_checkpoint_leaves_in_bf16() -> None:
    """Llama-3.1-405B in FP8: attention kept in BF16 adds a byte for each of its 126 · (2 · 16,384² + 2 · 16,384 · 1,024)."""
    at = Scenario(model="llama-3.1-405b", gpu="h200-sxm", weights="fp8", tp=8)
    attention = 126 * (2 * 16_384**2 + 2 * 16_384 * 1_024)
    weights = (plan_of(at).weights_bytes + attention / 8) / GIB
    found = explained(log(weights, pool_gib(at) - attention / 8 / GIB, 64_512.0), at)
    assert "as much as attention kept in BF16" in found["weights_bytes"].suggestion


def test_a_vision_tower_that_is_not_loaded() -> None:
    """Qwen2.5-VL-7B: 676,550,144 parameters of the tower at 2 bytes are 1.26 GiB."""
    at = Scenario(model="qwen2.5-vl-7b", gpu="h100-sxm")
    weights = plan_of(at).weights_bytes / GIB - 2 * 676_550_144 / GIB
    found = explained(f"Model loading took {weights:.4f} GiB", at)
    assert found["weights_bytes"].suggestion == "1.26 GiB less, as much as the vision tower."


def test_an_embedding_that_is_stored_twice() -> None:
    """Llama-3.2-1B ties its head to its embedding: 128,256 · 2,048 · 2 bytes are 0.49 GiB."""
    at = Scenario(model="llama-3.2-1b", gpu="h100-sxm")
    weights = plan_of(at).weights_bytes / GIB + 128_256 * 2_048 * 2 / GIB
    found = explained(f"Model loading took {weights:.4f} GiB", at)
    assert found["weights_bytes"].suggestion.startswith("0.49 GiB more, as much as one more copy of the embedding")


def test_a_drafter_of_one_layer() -> None:
    """EAGLE for Llama-3.1-8B keeps a 33rd layer's cache: 131,072 · 33 / 32 = 135,168 bytes/token."""
    found = explained(log(BF16_GIB, pool_gib(LLAMA), 135_168.0), LLAMA)
    assert found["kv_bytes_per_token"].suggestion.startswith("33 over 32 layers")
    assert found["kv_capacity_tokens"].suggestion == "Follows from the bytes per token above."


def test_small_differences_of_pool_and_rate_add_up_in_the_tokens() -> None:
    """A pool 4 % above the plan agrees (5 %), its tokens do not (3 %)."""
    found = explained(log(BF16_GIB, pool_gib(LLAMA) * 1.04, TOKEN), LLAMA)
    assert found["kv_pool_bytes"].agrees
    assert not found["kv_capacity_tokens"].agrees
    assert found["kv_capacity_tokens"].suggestion == "Follows from the cache pool and the bytes per token above."


def test_weights_that_nothing_explains_are_not_explained() -> None:
    found = explained(log(BF16_GIB * 1.37, 40.0, TOKEN), LLAMA)
    assert found["weights_bytes"].suggestion.startswith("No single change")


def test_another_model_is_named() -> None:
    args = "INFO [utils.py:1] non-default args: {'model': 'Qwen/Qwen3-14B'}"
    at = LLAMA.with_(model="qwen3-14b")
    found = explained(log(27.51, pool_gib(at), 163_840.0, args), LLAMA)
    assert found["weights_bytes"].suggestion.startswith(
        "The log states model = qwen3-14b, the plan has model = llama-3.1-8b"
    )
    assert found["kv_pool_bytes"].suggestion == "Follows from what differs above (model = qwen3-14b)."


def test_a_pool_below_zero_is_no_ratio() -> None:
    text = "Model loading took 14.958 GiB\nAvailable KV cache memory: -0.87 GiB"
    assert [each.term for each in contradictions(read_start_up(text), plan_of(LLAMA))] == ["weights_bytes"]


def test_every_suggestion_is_a_short_sentence() -> None:
    odd = log(3.21, 4.56, 78_901.0, "INFO vLLM API server version 0.11.0", "INFO args", longest=77_777)
    start = read_start_up(odd)
    for scenario in (
        LLAMA,
        LLAMA.with_(tp=8),
        LLAMA.with_(engine="sglang"),
        LLAMA.with_(engine="trtllm", weights="fp8"),
    ):
        for each in contradictions(start, plan_of(scenario)):
            assert each.agrees == (each.suggestion == "")
            assert len(each.suggestion) <= 400
            assert "  " not in each.suggestion


# --- the scenario as the log states it ---------------------------------------------------------------


def test_the_scenario_takes_what_the_log_states() -> None:
    args = (
        "INFO [utils.py:1] non-default args: {'model': 'Qwen/Qwen3-14B', 'tensor_parallel_size': 2, 'max_num_seqs': 64, "
        "'gpu_memory_utilization': 0.95, 'kv_cache_dtype': 'fp8', 'max_model_len': 32768}"
    )
    taken = scenario_from(read_start_up(log(13.8, 50.0, 40_960.0, args, longest=32_768)), LLAMA)
    assert taken.scenario == LLAMA.with_(model="qwen3-14b", tp=2, max_seqs=64, util=0.95, kv="fp8", max_len=32_768)
    assert set(taken.changed) == {"model", "tp", "max_seqs", "util", "kv", "max_len"}
    assert taken.kept == ()


def test_a_length_below_what_is_asked_is_kept_back() -> None:
    taken = scenario_from(read_start_up(log(14.96, 50.0, TOKEN, longest=1_024)), LLAMA)
    assert (taken.changed, taken.kept) == ((), ("max_len",))
    assert taken.scenario == LLAMA


def test_what_the_engine_does_anyway_changes_nothing() -> None:
    taken = scenario_from(read_start_up(log(14.96, 50.0, TOKEN, longest=131_072)), LLAMA)
    assert (taken.scenario, taken.changed) == (LLAMA, ())


def test_a_log_of_another_engine_changes_it() -> None:
    start = replace(read_start_up(log(14.96, 50.0, TOKEN)), engine="sglang")
    taken = scenario_from(start, LLAMA)
    assert (taken.scenario.engine, taken.changed) == ("sglang", ("engine",))


# --- whatever a log says -----------------------------------------------------------------------------


def test_any_log_against_any_plan_gives_sentences() -> None:
    """Every second sample against plans of other models, engines and devices, the textbook's and one that does not fit."""
    samples = sorted((Path(__file__).parents[1] / "golden" / "logs" / "startup").glob("*.log"))[::2]
    starts = [read_start_up(path.read_text(encoding="utf-8")) for path in samples]
    scenarios = (
        Scenario(model="deepseek-v3", gpu="h200-sxm", tp=8, weights="fp8-block", engine="sglang"),
        Scenario(model="gemma-3-27b", gpu="l40s", tp=2, engine="trtllm", weights="fp8", profile="textbook"),
        Scenario(model="llama-3.1-70b", gpu="t4", prefill="disaggregated"),
    )
    for at, start in enumerate(starts):
        scenario = scenarios[at % len(scenarios)]
        found = contradictions(start, plan_of(scenario))
        assert [each.term for each in found if each.agrees != (each.suggestion == "")] == []
        assert max((len(each.suggestion) for each in found), default=0) <= 400
        taken = scenario_from(start, scenario)
        assert (taken.scenario == scenario) == (taken.changed == ())
