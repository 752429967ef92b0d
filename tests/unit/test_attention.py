"""Attention cores: what decoding reads, what prompts compute, and what windows, indexes and states change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.catalog.models import model
from planner.physics import attention
from planner.physics.passes import decode_pass, prefill_pass
from planner.specs.model import Attention, LatentAttention, LinearAttention
from planner.specs.precision import CACHE
from planner.specs.profile import MEASURED, TEXTBOOK
from planner.work import Entry
from tests.asking import ONE, column, one, total

BF16 = CACHE["bf16"]


def block(name: str, index: int = 0) -> Attention:
    """The attention of one of a model's layer groups."""
    found = model(name).groups[index].attention
    assert found is not None
    return found


def window_block(name: str) -> Attention:
    return next(g.attention for g in model(name).groups if getattr(g.attention, "window", None))


def state_block(name: str) -> LinearAttention:
    return next(g.attention for g in model(name).groups if isinstance(g.attention, LinearAttention))


def decode(
    of: Attention, sequences: float, context: float, tp: float = 1, dcp: float = 1, cache: Any = BF16
) -> list[Entry]:
    site = attention.Site(cache, column(tp), column(dcp), ONE, MEASURED)
    return attention.decode(of, site, decode_pass(column(sequences), column(context)), 1)


def prefill(of: Attention, tokens: float, behind: float = 0, tp: float = 1, convention: Any = MEASURED) -> list[Entry]:
    site = attention.Site(BF16, column(tp), ONE, ONE, convention)
    return attention.prefill(of, site, prefill_pass(column(tokens), column(behind)), 1)


def test_decode_reads_every_cached_byte_once() -> None:
    """Llama-70B: 2 · 8 · 128 · 2 bytes a token and layer."""
    (core,) = decode(block("llama-3.1-70b"), 32, 1000)
    assert total(core, "hbm_bytes") == 32 * 1000 * 4096


def test_decode_computes_scores_and_sums() -> None:
    """4 · heads · width operations a token read."""
    (core,) = decode(block("llama-3.1-70b"), 32, 1000)
    assert total(core, "flops") == 32 * 1000 * 4 * 64 * 128


@pytest.mark.parametrize(("tp", "share"), [(1, 1), (4, 4), (8, 8), (16, 8), (64, 8)])
def test_reading_divides_up_to_the_kv_heads(tp: int, share: int) -> None:
    (core,) = decode(block("llama-3.1-70b"), 32, 1000, tp)
    assert total(core, "hbm_bytes") == 32 * 1000 * 4096 / share


def test_computing_divides_by_query_heads() -> None:
    (core,) = decode(block("llama-3.1-70b"), 1, 1000, 16)
    assert total(core, "flops") == 1000 * 4 * 4 * 128


def test_a_window_limits_what_is_read() -> None:
    of = window_block("gpt-oss-120b")
    (short,), (long,) = decode(of, 1, 128), decode(of, 1, 100_000)
    assert total(short, "hbm_bytes") == total(long, "hbm_bytes")


def test_mla_reads_the_latent_whole_on_every_rank() -> None:
    for tp in (1, 8):
        (core,) = decode(block("deepseek-v3"), 10, 1000, tp)
        assert total(core, "hbm_bytes") == 10 * 1000 * 576 * 2


def test_absorbed_mla_computes_over_the_latent() -> None:
    """2 · heads · (576 + 512) a token read."""
    (core,) = decode(block("deepseek-v3"), 1, 1000)
    assert total(core, "flops") == 1000 * 2 * 128 * (576 + 512)


def test_a_sparse_index_reads_the_top_2048_and_scans_the_rest() -> None:
    core, scan = decode(block("glm-5.2"), 1, 131_072)
    assert total(core, "hbm_bytes") == 2048 * 576 * 2
    assert total(scan, "hbm_bytes") == 131_072 * 132
    assert total(scan, "flops") == 131_072 * 2 * 32 * 128


def test_layers_that_share_an_index_scan_nothing() -> None:
    shared = next(
        g.attention for g in model("glm-5.2").groups
        if isinstance(g.attention, LatentAttention) and g.attention.index and g.attention.index.heads == 0
    )  # fmt: skip
    (core,) = decode(shared, 1, 131_072)
    assert total(core, "hbm_bytes") == 2048 * 576 * 2


def test_short_contexts_are_read_whole_under_an_index() -> None:
    core, _ = decode(block("glm-5.2"), 1, 500)
    assert total(core, "hbm_bytes") == 500 * 576 * 2


def test_an_fp8_cache_halves_reading() -> None:
    of = block("llama-3.1-70b")
    (full,), (half,) = decode(of, 8, 1000), decode(of, 8, 1000, cache=CACHE["fp8"])
    assert total(full, "hbm_bytes") == 2 * total(half, "hbm_bytes")


def test_decode_context_parallelism_divides_reading() -> None:
    (whole,), (split,) = decode(block("deepseek-v3"), 1, 1000), decode(block("deepseek-v3"), 1, 1000, dcp=4)
    assert total(whole, "hbm_bytes") == 4 * total(split, "hbm_bytes")


def test_a_state_is_read_and_written_whatever_the_context() -> None:
    """Qwen3-Next: 32 heads of 128 × 128 in float32 and 3 · 8,192 elements of convolution in BF16, both ways."""
    for context in (1, 100_000):
        (core,) = decode(state_block("qwen3-next-80b-a3b"), 3, context)
        assert total(core, "hbm_bytes") == 2 * 3 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)


def test_no_attention_no_work() -> None:
    site = attention.Site(BF16, ONE, ONE, ONE, MEASURED)
    assert attention.decode(None, site, decode_pass(ONE, ONE), 1) == []
    assert attention.prefill(None, site, prefill_pass(ONE), 1) == []


@pytest.mark.parametrize("limit", [float("inf"), 128.0, 1000.0])
@pytest.mark.parametrize(("tokens", "behind"), [(1000, 0), (1000, 500), (64, 4096), (1, 0), (128, 64)])
def test_attended_pairs_are_the_sum_over_positions(tokens: int, behind: int, limit: float) -> None:
    """The integral of min(x, limit); the sum over whole positions is at most half a token a query larger."""
    by_sum = sum(min(position, limit) for position in range(behind + 1, behind + tokens + 1))
    found = one(attention.attended_pairs(column(tokens), column(behind), limit, True))
    assert found <= by_sum <= found + tokens / 2 + 1


def test_two_chunks_attend_to_what_one_prompt_does() -> None:
    whole = one(attention.attended_pairs(column(3000), column(0), 512.0, True))
    parts = [one(attention.attended_pairs(column(1000), column(b), 512.0, True)) for b in (0, 1000, 2000)]
    assert sum(parts) == whole


def test_the_textbook_computes_the_masked_half_too() -> None:
    of = block("llama-3.1-70b")
    (half,), (whole,) = prefill(of, 2048), prefill(of, 2048, convention=TEXTBOOK)
    assert total(whole, "flops") == 4 * 2048**2 * 64 * 128
    assert total(half, "flops") == total(whole, "flops") / 2


def test_prefill_over_a_cached_prefix() -> None:
    """512 new tokens after 1,536: 512 · 1,536 + 512² / 2 pairs."""
    (core,) = prefill(block("llama-3.1-70b"), 512, 1536)
    assert total(core, "flops") == 4 * 64 * 128 * (512 * 1536 + 512**2 / 2)
    assert total(core, "hbm_bytes") == 2048 * 4096


def test_prefill_of_mla_expands_heads() -> None:
    """192-wide scores and 128-wide values for 128 heads."""
    (core,) = prefill(block("deepseek-v3"), 1000)
    assert total(core, "flops") == 2 * 128 * (192 + 128) * 1000**2 / 2


def test_prefill_under_an_index_attends_to_2048_and_scans_all() -> None:
    core, scan = prefill(block("glm-5.2"), 10_000)
    assert total(core, "flops") == 2 * 64 * (256 + 256) * (2048**2 / 2 + 2048 * (10_000 - 2048))
    assert total(scan, "flops") == 2 * 32 * 128 * 10_000**2 / 2


def test_columns_and_lone_values_agree() -> None:
    of, contexts = block("glm-5.2"), np.array([1.0, 2048.0, 2049.0, 100_000.0])
    site = attention.Site(BF16, column(4), ONE, ONE, MEASURED)
    together = attention.decode(of, site, decode_pass(column(5), contexts), 1)
    for entry in range(2):
        alone = [one(decode(of, 5, context, 4)[entry].work.hbm_bytes) for context in contexts]
        assert together[entry].work.hbm_bytes.tolist() == alone
