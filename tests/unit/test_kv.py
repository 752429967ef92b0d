"""Cache bytes: exact rates of real models, how they divide over ranks, and how engines hand them out."""

from __future__ import annotations

import numpy as np
import pytest

from planner.physics import kv
from tests.asking import ONE, cache_parts, column, one, plan, sequence_bytes, setting, token_bytes

VLLM = kv.Allocation(block=16, slack=8191.0, padded=True)


@pytest.mark.parametrize(
    ("model", "precision", "expected"),
    [
        ("llama-3.1-70b", "bf16", 80 * 2 * 8 * 128 * 2),
        ("llama-3.1-70b", "fp8", 80 * 2 * 8 * 128),
        ("llama-2-7b", "bf16", 32 * 2 * 32 * 128 * 2),
        ("deepseek-v3", "bf16", 70_272),
        ("deepseek-r1", "bf16", 70_272),
        ("kimi-k2", "bf16", 70_272),
        ("deepseek-v3", "fp8", 61 * 576),
        ("deepseek-v3.2", "fp8", 48_068),
        ("deepseek-v3.2", "bf16", 61 * 1284),
        ("glm-5", "fp8", 61_464),
        ("glm-5.2", "fp8", 53_940),
        ("glm-5.2", "bf16", 89_856 + 21 * 132),
        ("qwen3-30b-a3b", "bf16", 98_304),
        ("qwen3-235b-a22b", "bf16", 94 * 2 * 4 * 128 * 2),
        ("gpt-oss-120b", "bf16", 73_728),
        ("qwen3-next-80b-a3b", "bf16", 12 * 2 * 2 * 256 * 2),
    ],
)
def test_bytes_of_a_token_of_the_whole_model(model: str, precision: str, expected: int) -> None:
    """Engine logs where they print the rate (DeepSeek, Kimi, GLM, Qwen), 2 · layers · heads · width · bytes elsewhere."""
    assert token_bytes(model, precision=precision) == expected


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16])
def test_the_latent_is_the_same_on_every_rank(tp: int) -> None:
    assert token_bytes("deepseek-v3", tp) == 70_272
    assert token_bytes("glm-5.2", tp, "latent") == 89_856


def test_index_keys_are_in_21_layers_of_glm_5_2() -> None:
    index = next(part for part in cache_parts("glm-5.2") if part.name == "index keys")
    assert (index.layers, index.token_bytes) == (21, 132)


@pytest.mark.parametrize(("model", "heads", "rate"), [("qwen3-30b-a3b", 4, 24_576), ("qwen3-235b-a22b", 4, 48_128)])
def test_heads_are_copied_once_they_cannot_be_divided(model: str, heads: int, rate: int) -> None:
    assert token_bytes(model, heads) == token_bytes(model, 2 * heads) == token_bytes(model, 8 * heads) == rate


def test_heads_divide_until_then() -> None:
    assert [token_bytes("llama-3.1-70b", tp) for tp in (1, 2, 4, 8, 16)] == [327_680, 163_840, 81_920, 40_960, 40_960]


def test_llama_2_70b_at_4096_tokens_takes_1_34_gb() -> None:
    at = setting(model="llama-2-70b")
    assert one(sequence_bytes(at, 4096)) == 4096 * 327_680 == pytest.approx(1.342e9, rel=1e-3)


def test_plans_show_the_rate_at_full_length() -> None:
    """A hybrid's fixed states are spread over isl + osl tokens, blocks included."""
    found = plan(model="qwen3-next-80b-a3b", profile="textbook", isl=7000, osl=1000)
    state = 36 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)
    assert found.kv_bytes_per_token == pytest.approx(24_576 + state / 8000, rel=1e-12)


def test_the_rate_of_a_plan_is_not_rounded_to_blocks() -> None:
    """1,281 tokens take 81 blocks of 16, but a token still takes its own bytes."""
    assert plan(model="llama-3.1-70b", tp=4, isl=1024, osl=257).kv_bytes_per_token == pytest.approx(81_920, rel=1e-12)


def test_a_state_does_not_grow() -> None:
    parts = tuple(part for part in cache_parts("qwen3-next-80b-a3b") if part.name == "recurrent state")
    short, long = (kv.sequence_bytes(parts, column(t), ONE, ONE, ONE, kv.EXACT) for t in (1, 100_000))
    assert one(short) == one(long) > 0


def test_states_divide_by_their_heads() -> None:
    parts = tuple(part for part in cache_parts("qwen3-next-80b-a3b") if part.name == "recurrent state")
    whole, split = (one(kv.sequence_bytes(parts, ONE, column(tp), ONE, ONE, kv.EXACT)) for tp in (1, 8))
    assert whole == 8 * split


def test_the_fullest_stage_counts_whole_layers() -> None:
    parts = cache_parts("deepseek-v3")
    assert one(kv.bytes_per_token(parts, ONE, column(4))) == 16 * 1152


def test_decode_context_parallelism_divides_the_cache() -> None:
    parts = cache_parts("deepseek-v3")
    whole, split = (one(kv.sequence_bytes(parts, column(1000), ONE, ONE, column(n), kv.EXACT)) for n in (1, 4))
    assert whole == 4 * split


def test_prediction_layers_cache_when_they_are_loaded() -> None:
    assert token_bytes("deepseek-v3", mtp=True) == 62 * 1152


@pytest.mark.parametrize(("tokens", "kept"), [(1, 16), (16, 16), (17, 32), (30, 32), (4096, 4096)])
def test_full_attention_rounds_up_to_blocks(tokens: int, kept: int) -> None:
    assert one(kv.kept_tokens(column(tokens), kv.UNBOUNDED, 0.0, 16)) == kept


def test_without_blocks_a_window_is_kept_exactly() -> None:
    at = setting(model="mistral-7b-v0.1", profile="textbook")
    assert one(sequence_bytes(at, 10_000)) == 32 * 4096 * 4096
    assert one(sequence_bytes(at, 4095)) == 32 * 4096 * 4095


def test_a_window_keeps_the_tokens_of_a_step_and_one_block_more() -> None:
    """ceil((4096 − 1 + 8192) / 16) + 1 blocks: the rule that gives starcoder2-3b's 178.68 sequences in place of 134.19."""
    assert one(kv.kept_tokens(column(16_384), 4096.0, 8191.0, 16)) == 769 * 16


def test_a_window_saves_nothing_while_it_is_not_full() -> None:
    assert one(kv.kept_tokens(column(8192), 1024.0, 8191.0, 16)) == 8192


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        ("gemma-3-27b", 70), ("gemma-3-12b", 48), ("gemma-3-4b", 35), ("gpt-oss-20b", 24), ("gpt-oss-120b", 36),
        ("gemma-2-27b", 46), ("llama-4-scout", 48), ("qwen3.5-4b", 32), ("llama-3.1-70b", 80),
    ],
)  # fmt: skip
def test_hybrid_layers_are_padded_to_groups(model: str, layers: int) -> None:
    assert sum(part.layers for part in kv.allocated(cache_parts(model), VLLM)) == layers


def test_layers_are_not_padded_where_the_engine_does_not() -> None:
    assert sum(part.layers for part in kv.allocated(cache_parts("gemma-3-27b"), kv.EXACT)) == 62


def test_changing_the_cache_format_changes_the_cache_alone() -> None:
    full, half = (plan(model="llama-3.1-70b", tp=4, kv=kind) for kind in ("bf16", "fp8"))
    assert half.kv_bytes_per_token == full.kv_bytes_per_token / 2
    assert half.kv_pool_bytes == full.kv_pool_bytes
    assert half.weights_bytes == full.weights_bytes


def test_columns_and_lone_values_agree() -> None:
    at = setting(model="gpt-oss-120b")
    lengths = np.array([1.0, 100.0, 129.0, 5000.0, 131_072.0])
    together = sequence_bytes(at, lengths, 4, at.allocation)
    assert together.tolist() == [one(sequence_bytes(at, length, 4, at.allocation)) for length in lengths]
