"""Pipelines, data and context parallelism, overlap and drafts: what they do to time and memory, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.physics import forward, passes, roofline
from planner.serving import prefill
from planner.serving.speculative import small_batch_speedup
from planner.specs.layout import layout
from tests.asking import column, decode_ledger, one, plan, setting, table, total, tpot_seconds

DECODE = {"prefill": "excluded", "sla_ttft_ms": 100_000.0, "sla_tpot_ms": 1000.0}


def tpot(batch: float, degrees: dict[str, int] | None = None, **changes: Any) -> float:
    return one(tpot_seconds(setting(**{**DECODE, **changes}), batch, layout(**(degrees or {}))))


# --- pipelines -----------------------------------------------------------------------------------------------------


def test_two_full_stages_take_the_time_of_one_and_a_hop() -> None:
    """Twice the batch through two stages: each micro-batch passes all layers, and one hop of B · 8,192 · 2 B / tp."""
    at = setting(model="llama-3.1-70b", **DECODE)
    links = at.profile.links
    hop = links.hop_alpha + 16 * 8192 * 2 / 4 / links.hop_bandwidth
    single, staged = tpot(16, {"tp": 4}, model="llama-3.1-70b"), tpot(32, {"tp": 4, "pp": 2}, model="llama-3.1-70b")
    assert staged == pytest.approx(single + hop, rel=1e-9)


def test_a_batch_smaller_than_the_stages_leaves_bubbles() -> None:
    """One sequence takes as long through four stages as through one: three of four are idle."""
    single, staged = tpot(1, {"tp": 4}, model="llama-3.1-70b"), tpot(1, {"tp": 4, "pp": 4}, model="llama-3.1-70b")
    assert staged >= single


def test_uneven_stages_are_as_slow_as_the_largest() -> None:
    """61 layers on four stages: 16 · 4 / 61."""
    at = setting(model="deepseek-v3", weights="fp8", gpu="b200-sxm", **DECODE)
    even = one(tpot_seconds(at, 64, layout(tp=8, pp=4)))
    ledger = decode_ledger(at, 16, at.decoding.context, tp=8, pp=4)

    assert even == pytest.approx(one(roofline.pass_seconds(ledger, at.profile)) * 64 / 61, rel=1e-9)


def test_stages_divide_weights_and_cache() -> None:
    one_stage, two = plan(model="llama-3.1-70b", tp=4), plan(model="llama-3.1-70b", tp=4, pp=2)
    assert two.weights_bytes == pytest.approx(one_stage.weights_bytes / 2, rel=0.03)
    assert two.kv_bytes_per_token == one_stage.kv_bytes_per_token / 2


def test_chunks_fill_a_pipeline_with_a_prompt() -> None:
    """One chunk gains nothing from four stages; sixteen take 19 stage times instead of 64."""
    whole = plan(model="llama-3.1-70b", tp=2, pp=4, isl=8000, chunk=0, token_budget=8192, osl=2)
    cut = plan(model="llama-3.1-70b", tp=2, pp=4, isl=8000, chunk=500, osl=2)
    assert cut.ttft_unloaded_ms is not None
    assert whole.ttft_unloaded_ms is not None
    assert cut.ttft_unloaded_ms < 0.6 * whole.ttft_unloaded_ms


# --- context parallelism ---------------------------------------------------------------------------------------------


def test_decode_context_parallelism_divides_the_latent_that_tensor_parallelism_copies() -> None:
    copied = plan(model="deepseek-v3", weights="fp8-block", gpu="h200-sxm", tp=8)
    divided = plan(model="deepseek-v3", weights="fp8-block", gpu="h200-sxm", tp=8, dcp=8)
    assert copied.kv_bytes_per_token == 70_272
    assert divided.kv_bytes_per_token == 70_272 / 8


def test_data_parallelism_is_not_the_only_way_to_divide_a_latent() -> None:
    """The claim that MLA must use DP+EP: with DCP eight GPUs hold more tokens, as attention weights are not copied."""
    shared: dict[str, Any] = {"model": "deepseek-v3", "weights": "fp8-block", "gpu": "h200-sxm"}
    by_data, by_context = plan(**shared, dp=8, ep=8), plan(**shared, tp=8, ep=8, dcp=8)
    tensor = plan(**shared, tp=8, ep=8)
    assert by_context.kv_capacity_tokens > by_data.kv_capacity_tokens > 5 * tensor.kv_capacity_tokens


def test_mixed_data_and_tensor_parallelism_leaves_tensor_fold_copies() -> None:
    """EP128 as DP32 × TP4 keeps the latent four times: a GPU holds as many bytes a token as alone."""
    found = plan(model="deepseek-v3", weights="fp8-block", gpu="h100-sxm", engine="sglang", tp=4, dp=32, ep=128)
    assert found.kv_bytes_per_token == 70_272
    note = next(note for note in found.notes if note.code == "cache_copies")
    assert "4.0 times" in note.text


def test_context_parallel_prefill_divides_a_long_prompt() -> None:
    """Twice the ranks at 93 % of linear scaling would be 1.86 times as fast; the ring of keys and values takes 1 to 5 % of it.

    36 ms of front end and 75 % of the first 300 ms come on top of the prompt's own time, with one rank or two.
    """
    alone = plan(model="llama-3.1-70b", tp=8, isl=100_000, osl=2, sla_ttft_ms=1e6)
    split = plan(model="llama-3.1-70b", tp=8, cp=2, isl=100_000, osl=2, sla_ttft_ms=1e6)
    assert alone.ttft_unloaded_ms is not None
    assert split.ttft_unloaded_ms is not None
    faster = (alone.ttft_unloaded_ms - 36 - 225) / (split.ttft_unloaded_ms - 36 - 225)
    assert 2 * 0.93 * 0.95 < faster < 2 * 0.93 * 0.99


def test_context_parallelism_without_its_loss_is_faster_by_the_loss_and_nothing_else() -> None:
    at = setting(model="llama-3.1-70b", tp=8, isl=100_000, osl=2)
    placed = forward.place(at.machine, layout(tp=8, cp=[1, 2]))
    real = prefill.prompt_seconds(placed, at.profile, at.prompt)
    ideal = prefill.prompt_seconds(placed, replace(at.profile, context_efficiency=1.0), at.prompt)
    assert (ideal / real).reshape(-1).tolist() == pytest.approx([1.0, 0.93], rel=1e-12)


# --- expert placement ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("degrees", "weights", "resident"),
    [
        ({"tp": 4, "dp": 32, "ep": 128}, "fp8", 12.08),
        ({"dp": 128, "ep": 128}, "fp8", 22.21),
    ],
)
def test_resident_weights_of_deepseek_v3_on_128_ranks(degrees: dict[str, int], weights: str, resident: float) -> None:
    """One byte a parameter: two routed experts and the shared one (7.66 GB), attention over tp, dense, ends, router."""
    found = plan(model="deepseek-v3", gpu="h100-sxm", profile="textbook", weights=weights, **degrees)
    assert found.weights_bytes / 1e9 == pytest.approx(resident, abs=0.02)


@pytest.mark.parametrize(("degrees", "resident"), [({"tp": 4, "dp": 32}, 12.65), ({"dp": 128}, 24.19)])
def test_the_same_with_a_bf16_embedding_head_and_router(degrees: dict[str, int], resident: float) -> None:
    found = plan(model="deepseek-v3", gpu="h100-sxm", engine="sglang", weights="fp8-block", ep=128, **degrees)
    assert found.weights_bytes / 1e9 == pytest.approx(resident, abs=0.01)


# --- two micro-batches -----------------------------------------------------------------------------------------------


def test_overlap_pays_at_large_batches_and_costs_at_small_ones() -> None:
    """72 H100: at 256 sequences each the exchange hides; at one each, weights are read and kernels launched twice."""
    asked: dict[str, Any] = {"model": "deepseek-v3", "weights": "fp8-block", "engine": "sglang"}
    where = {"dp": 72, "ep": 72}
    for batch, gains in ((72 * 256, True), (72, False)):
        off, on = (tpot(batch, where, overlap=overlap, **asked) for overlap in (False, True))
        assert (on < off) == gains


def test_two_halves_are_two_passes_of_half_the_tokens() -> None:
    """By hand from the ledger of 32 sequences: twice the longer of computing and moving, one layer's shorter part, host."""
    at = setting(model="deepseek-v3", weights="fp8-block", engine="sglang", overlap=True, **DECODE)
    from planner.physics.comms import LINK_KINDS
    from planner.physics.roofline import entry_seconds, host_seconds

    half = [e for e in decode_ledger(at, 32, at.decoding.context, dp=16, ep=16) if e.group != "host"]
    moving = sum(one(entry_seconds(e, at.profile)) for e in half if e.work.kind in LINK_KINDS)
    computing = sum(one(entry_seconds(e, at.profile)) for e in half if e.work.kind not in LINK_KINDS)
    host = one(host_seconds(at.profile.host_step, at.profile.host_sequence, column(64.0)))
    expected = 2 * max(computing, moving) + min(computing, moving) / 61 + host
    assert one(tpot_seconds(at, 64 * 16, layout(dp=16, ep=16))) == pytest.approx(expected, rel=1e-9)


# --- drafts ----------------------------------------------------------------------------------------------------------


def test_drafts_reach_the_formula_at_small_batches_and_less_at_larger_ones() -> None:
    """2.40 times in the limit; a verification of five tokens a sequence costs more the larger the batch."""
    limit = one(small_batch_speedup(column(0.8), column(4.0), column(0.1)))
    gains = [
        tpot(batch, {"tp": 4}, model="llama-3.1-70b") / tpot(batch, {"tp": 4}, model="llama-3.1-70b", spec=4)
        for batch in (1, 16, 64, 256)
    ]
    assert limit == pytest.approx(2.401, abs=1e-3)
    assert 0.9 * limit < gains[0] <= limit
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] < 1.3


def test_a_verification_touches_more_experts_than_a_step() -> None:
    """Eight sequences of DeepSeek-V3: 57 of 256 experts in a step, 206 with five tokens each."""
    at = setting(model="deepseek-v3", weights="fp8", gpu="b200-sxm")
    placed = forward.place(at.machine, layout())
    read = [
        next(total(e, "hbm_bytes") for e in forward.forward(placed, step) if e.name == "experts")
        for step in (
            passes.decode_pass(column(8.0), column(100.0)),
            passes.decode_pass(column(8.0), column(100.0), column(5.0)),
        )
    ]
    hit = [256 * (1 - (1 - 8 / 256) ** tokens) for tokens in (8, 40)]
    assert read[1] / read[0] == pytest.approx(hit[1] / hit[0], rel=0.02)


def test_prediction_layers_are_loaded_and_cache_where_a_model_has_them() -> None:
    """DeepSeek-V3's MTP layer: 11.5 G parameters over 8 GPUs, and one latent more a token."""
    off = plan(model="deepseek-v3", weights="fp8-block", gpu="b200-sxm", tp=8)
    on = plan(model="deepseek-v3", weights="fp8-block", gpu="b200-sxm", tp=8, spec=1)
    assert (on.weights_bytes - off.weights_bytes) * 8 / 1e9 == pytest.approx(11.5, rel=0.2)
    assert on.kv_bytes_per_token - off.kv_bytes_per_token == 1152


def test_a_separate_draft_model_holds_its_share() -> None:
    off, on = plan(model="llama-3.1-70b", tp=4), plan(model="llama-3.1-70b", tp=4, spec=4, draft=0.1)
    assert on.weights_bytes == pytest.approx(1.1 * off.weights_bytes, rel=1e-12)
    assert on.kv_bytes_per_token == pytest.approx(1.1 * off.kv_bytes_per_token, rel=1e-12)


def test_verified_tokens_share_a_steps_token_budget() -> None:
    found = plan(model="llama-3.1-8b", spec=3, token_budget=400, max_seqs=1000, **DECODE)
    assert found.binds == "engine"
    assert found.b_max == 100


# --- shared prefixes -------------------------------------------------------------------------------------------------


def test_a_shared_prefix_is_stored_once() -> None:
    """3,072 + 256 tokens of which 2,048 are shared: (pool − 2,048 · k) / (1,280 · k) sequences."""
    found = plan(model="llama-3.1-70b", tp=4, isl=3072, osl=256, prefix=2048 / 3072)
    token = 327_680 / 4
    assert found.b_max_kv == np.floor((found.kv_pool_bytes - 2048 * token) / (1280 * token))
    apart = plan(model="llama-3.1-70b", tp=4, isl=3072, osl=256)
    note = next(note for note in found.notes if note.code == "prefix_shared")
    assert f"{apart.b_max_kv:,} requests" in note.text


def test_recurrent_states_are_not_shared() -> None:
    """A prefix saves a hybrid model its keys and values, not its states."""
    at = {"model": "qwen3-next-80b-a3b", "gpu": "b200-sxm", "tp": 2, "isl": 4096, "osl": 16}
    shared, apart = plan(**at, prefix=1.0), plan(**at)
    assert shared.b_max_kv > apart.b_max_kv
    alone = one(table(setting(**at), layout(2)).kv_pool_bytes) / shared.b_max_kv
    state = setting(**at).cache
    fixed = sum(part.layers * part.fixed_bytes / min(2, part.shards) for part in state if part.fixed_bytes)
    assert alone > fixed


def test_a_window_holds_a_prefix_only_as_far_as_it_reaches_back() -> None:
    """Phi-3's window of 2,047 tokens: behind 4,000 shared tokens each sequence keeps its own 90, and shares the rest."""
    found = plan(model="phi-3-medium-4k", gpu="b200-sxm", profile="textbook", isl=4000, osl=90, prefix=1.0)
    own = setting(model="phi-3-medium-4k").cache
    token = sum(part.layers * part.token_bytes for part in own)
    window = own[0].window
    pool = found.kv_pool_bytes * 0.96
    assert found.b_max_kv == np.floor((pool - (window - 91) * token) / (91 * token))


# --- found by recomputing --------------------------------------------------------------------------------------------


def test_the_fullest_stage_is_a_run_of_layers() -> None:
    """DeepSeek-V3 in ten stages: seven expert layers (no dense one), 80.6 GB with an end of the model: no H100 holds them."""
    found = plan(model="deepseek-v3", gpu="h100-sxm", weights="fp8-block", pp=10)
    layer = 257 * 44_040_192 + 187_107_328
    assert found.weights_bytes > 7 * layer > 78.7e9
    assert not found.fits


LEDGERS = [
    {"model": "llama-3.1-70b", "tp": 4, "pp": 4, "at_batch": 64},
    {"model": "llama-3.1-70b", "tp": 4, "pp": 8, "at_batch": 256, "prefill": "excluded"},
    {"model": "deepseek-v3", "gpu": "b200-sxm", "weights": "fp8", "tp": 8, "pp": 4, "at_batch": 64, "prefill": "excluded"},
    {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "dp": 16, "ep": 16, "at_batch": 512, "overlap": True},
    {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "dp": 8, "ep": 8, "at_batch": 512, "spec": 2},
    {"model": "llama-3.1-70b", "tp": 4, "spec": 4, "at_batch": 4, "prefill": "excluded"},
    {"model": "llama-3.1-70b", "tp": 4, "pp": 2, "spec": 4, "at_batch": 64},
    {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "dp": 8, "ep": 8, "at_batch": 13},
]  # fmt: skip


@pytest.mark.parametrize("asked", LEDGERS)
def test_a_ledger_adds_up_to_tpot_with_what_prompts_really_add(asked: dict[str, Any]) -> None:
    """The last row is what the plan without prompts lacks, not what the ledger forgot."""
    found, alone = plan(**asked), plan(**{**asked, "prefill": "excluded"})
    assert found.tpot_ms is not None
    assert alone.tpot_ms is not None
    assert sum(row.seconds for row in found.ledger) * 1e3 == pytest.approx(found.tpot_ms, rel=1e-9)
    added = sum(row.seconds for row in found.ledger if row.group == "prefill") * 1e3
    assert added == pytest.approx(found.tpot_ms - alone.tpot_ms, rel=1e-6, abs=1e-9)


def test_experts_see_the_whole_batch_and_no_more() -> None:
    """One sequence on eight ranks is one token for the experts, not eight."""
    at = {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "dp": 8, "ep": 8, "prefill": "excluded"}
    reads = [
        next(row.hbm_bytes for row in plan(**at, at_batch=batch).ledger if row.operator == "experts")
        for batch in (1, 8)
    ]
    assert reads[0] < 0.4 * reads[1]


def test_copies_are_of_a_cache_that_context_parallelism_has_not_cut() -> None:
    at = {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "tp": 8}
    assert "8.0 times" in next(n.text for n in plan(**at).notes if n.code == "cache_copies")
    assert not [n for n in plan(**at, dcp=8).notes if n.code == "cache_copies"]


def test_a_promise_that_breaks_is_told_at_batch_one() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-70b", "tp": 4, "sla_ttft_ms": 20.0}
    large, one_only = plan(**asked, at_batch=128), plan(**asked, at_batch=1)
    said = [next(n.text for n in found.notes if n.code == "promise") for found in (large, one_only)]
    assert said[0] == said[1]


def test_one_copy_of_an_expert_does_not_even_256_out() -> None:
    asked: dict[str, Any] = {
        "model": "deepseek-v3", "gpu": "h800-sxm", "engine": "sglang", "weights": "fp8-block", "dp": 64, "ep": 64, **DECODE,
    }  # fmt: skip
    times = [plan(**asked, at_batch=64 * 64, redundant=copies).tpot_ms or 0.0 for copies in (0, 1, 16, 32)]
    # the first copy gives some rank a fifth expert to read, which may cost more than the evenness that it brings
    assert times[1:] == sorted(times[1:], reverse=True)
    assert abs(times[0] - times[1]) < 0.2 * (times[0] - times[3])


def test_a_load_cannot_exceed_all_tokens_on_one_rank() -> None:
    asked: dict[str, Any] = {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "tp": 8, "at_batch": 64}
    assert plan(**asked, imbalance=5.0).tpot_ms == plan(**asked, imbalance=1.0).tpot_ms
    assert plan(**asked, ep=8, imbalance=100.0).tpot_ms == plan(**asked, ep=8, imbalance=8.0).tpot_ms


def test_sixteen_bit_activations_travel_in_sixteen_bits() -> None:
    sent = [
        next(
            row.link_bytes
            for row in plan(
                model="qwen3-235b-a22b", gpu="b200-sxm", weights=weights, dp=16, ep=16, at_batch=1024
            ).ledger
            if row.operator == "dispatch"
        )
        for weights in ("bf16", "fp8")
    ]
    assert sent[0] == 2 * sent[1]


def test_tokens_are_gathered_before_the_experts_and_scattered_after() -> None:
    """58 expert layers, twice; 8 ranks of 16 sequences: 7/8 of 128 · 7,168 · 2 B."""
    at = setting(model="deepseek-v3", gpu="h200-sxm", weights="fp8")
    found = next(e for e in decode_ledger(at, 16, 1000.0, dp=8, ep=8) if e.name == "expert gather and scatter")
    assert one(found.work.launches) == 116
    assert one(found.work.link_bytes) == 7 / 8 * 128 * 7168 * 2


def test_prompts_of_all_attention_ranks_reach_the_experts_unless_one_is_alone() -> None:
    at = setting(model="deepseek-v3", gpu="h200-sxm", weights="fp8", imbalance=1.0)
    placed = forward.place(at.machine, layout(dp=8, ep=8))
    lone = passes.prefill_pass(column(500.0))
    together = passes.Pass(*(getattr(lone, name) for name in (
        "sequences", "new_tokens", "context", "prompt_tokens", "prompt_behind", "prompts_ending",
    )))  # fmt: skip
    flops = [
        next(total(e, "flops") for e in forward.forward(placed, step) if e.name == "experts")
        for step in (lone, together)
    ]
    assert flops[1] == pytest.approx(8 * flops[0], rel=1e-12)


def test_keys_and_values_of_a_prompt_go_round_a_ring() -> None:
    """Llama-70B, 8,000 tokens on cp = 4 at tp = 2: three messages a layer of 2,000 · 4,096 / 2 B."""
    at = setting(model="llama-3.1-70b")
    placed = forward.place(at.machine, layout(tp=2, cp=4))
    cores = forward.prefill_cores(placed, passes.prefill_pass(column(8000.0)))
    ring = next(e.work for e in cores if e.name == "ring of keys and values")
    assert one(ring.launches) == 80 * 3
    assert one(ring.link_bytes) == 2000 * 4096 / 2


def test_a_context_parallel_prompt_falls_short_of_linear_scaling_by_the_published_share() -> None:
    at = setting(model="llama-3.1-70b", isl=8000, osl=2, token_budget=8192)
    placed = forward.place(at.machine, layout(tp=8, cp=2))
    bare = one(roofline.pass_seconds(prefill.chunk_ledger(placed, at.prompt), at.profile))
    assert one(prefill.prompt_seconds(placed, at.profile, at.prompt)) == pytest.approx(bare / 0.93, rel=1e-12)


def test_a_draft_models_cache_takes_room_and_so_do_unverified_tokens() -> None:
    """1,280 + 4 tokens a sequence, in blocks of 16, and a tenth for the draft."""
    found = plan(model="llama-3.1-70b", tp=4, spec=4, draft=0.1)
    assert found.b_max_kv == np.floor(found.kv_pool_bytes / (1296 * 81_920 * 1.1))


def test_a_cache_whose_kernel_was_timed_as_slow_says_so() -> None:
    """SGLang's latent attention with an FP8 cache on Hopper: 8 % of the bandwidth; with a BF16 cache 91 %."""
    asked = {"model": "deepseek-v3", "gpu": "h100-sxm", "engine": "sglang", "weights": "fp8-block", "dp": 16, "ep": 16}
    codes = [{note.code for note in plan(**asked, kv=kv).notes} for kv in ("fp8", "bf16")]
    assert "slow_kernel" in codes[0]
    assert "slow_kernel" not in codes[1]
    assert "poor_fit" not in codes[1]


def test_a_law_that_fits_poorly_says_so() -> None:
    """TensorRT-LLM's latent attention on RTX PRO 6000: half of the timed launches are off by more than a quarter."""
    asked = {"model": "deepseek-v3", "gpu": "rtx-pro-6000-server", "engine": "trtllm", "weights": "nvfp4", "tp": 8}
    assert "poor_fit" in {note.code for note in plan(**asked).notes}
    assert "poor_fit" not in {note.code for note in plan(model="llama-3.1-70b", tp=4).notes}


def test_the_textbook_has_no_exchange_to_overlap() -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "profile": "textbook", "isl": 100_000, "osl": 100, "at_batch": 16}
    assert plan(**asked, overlap=True).tpot_ms == plan(**asked).tpot_ms
