"""Prompts: how they are cut, what a lone one takes, and TTFT."""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.serving import prefill
from planner.specs.layout import layout
from tests.asking import column, one, placed, plan, prompt_ledger, setting, total, ttft_seconds

TEXTBOOK = {"model": "llama-70b-nominal", "profile": "textbook", "tp": 4, "prefill": "excluded"}


def textbook(**changes: Any) -> Any:
    return setting(**{**TEXTBOOK, **changes})


@pytest.mark.parametrize(
    ("isl", "prefix", "chunk", "budget", "expected"),
    [
        (1024, 0.0, 0, math.inf, (1024, 0, 1024, 1)),
        (1024, 0.0, 256, math.inf, (1024, 0, 256, 4)),
        (1024, 0.0, 0, 512, (1024, 0, 512, 2)),
        (1024, 0.0, 256, 128, (1024, 0, 128, 8)),
        (1024, 0.5, 0, math.inf, (512, 512, 512, 1)),
        (1024, 1.0, 0, math.inf, (1, 1023, 1, 1)),
        (1, 1.0, 0, math.inf, (1, 0, 1, 1)),
        (100, 0.0, 256, 8192, (100, 0, 100, 1)),
    ],
)
def test_prompts_are_cut_by_chunk_and_budget(
    isl: float, prefix: float, chunk: float, budget: float, expected: tuple[float, ...]
) -> None:
    found = prefill.prompt(isl, prefix, chunk, budget)
    assert (found.tokens, found.cached, found.chunk, found.chunks) == expected


def test_chunks_hold_the_whole_prompt() -> None:
    found = prefill.prompt(10_000, 0.3, 700, 8192)
    assert found.chunk * found.chunks == pytest.approx(found.tokens)


def test_a_prompt_of_1024_tokens_on_4_h100_by_hand() -> None:
    """(2·70e9·1024 + 4·1024²·64·128·80) / (4 · 742.05e12) = 49.2 ms."""
    flops = 2 * 70e9 * 1024 + 4 * 1024**2 * 64 * 128 * 80
    assert one(ttft_seconds(textbook(isl=1024), layout(4))) == pytest.approx(flops / (4 * 742.05e12), rel=1e-9)


def test_a_short_prompt_waits_for_the_weights() -> None:
    expected = (140e9 + 16 * 327_680) / (4 * 3.35e12)
    assert one(ttft_seconds(textbook(isl=16), layout(4))) == pytest.approx(expected, rel=1e-9)


def test_chunks_share_the_attention_of_the_prompt() -> None:
    at = textbook(isl=4096)
    whole = sum(
        total(e, "flops") for e in prefill.prefill_share(placed(at, tp=4), prefill.prompt(4096, 0.0, 0, math.inf))
    )
    chunk = prefill.prefill_share(placed(at, tp=4), prefill.prompt(4096, 0.0, 512, math.inf))
    assert 8 * sum(total(e, "flops") for e in chunk) == pytest.approx(whole)


def test_weights_are_read_once_a_chunk() -> None:
    whole, chunked = (one(ttft_seconds(textbook(isl=64, chunk=c), layout(4))) for c in (0, 16))
    assert chunked == pytest.approx(4 * whole, rel=1e-3)


def test_a_cached_prefix_is_not_computed_but_attended_to() -> None:
    at = textbook(isl=2048, prefix=0.75)
    ledger = prefill.chunk_ledger(placed(at, tp=1), at.prompt)
    weights, attention = (sum(total(e, "flops") for e in ledger if e.group == g) for g in ("weights", "prefill"))
    assert weights == 2 * 70e9 * 512
    assert attention == 4 * 512 * 2048 * 64 * 128 * 80


@pytest.mark.parametrize(("prompt", "expected"), [(0.1, 0.02 + 0.15), (0.4, 0.02 + 0.6), (2.0, 0.02 + 2.0 + 0.2)])
def test_ttft_has_a_fixed_part_and_an_excess_that_is_held(prompt: float, expected: float) -> None:
    """Half as much again up to 0.4 s of prompt, 0.2 s beyond."""
    assert one(prefill.unloaded_ttft(column(prompt), 0.02, 1.5, 0.4)) == pytest.approx(expected)


def test_an_arrival_waits_half_a_step() -> None:
    assert one(prefill.ttft_seconds(column(0.1), column(0.03))) == pytest.approx(0.115)


def test_the_half_step_stands_in_the_plan() -> None:
    found = plan(model="llama-3.1-70b", tp=4, at_batch=16)
    assert found.ttft_ms == pytest.approx(found.ttft_unloaded_ms + found.tpot_ms / 2, rel=1e-12)


def test_the_textbook_has_no_running_engine_to_wait_for() -> None:
    found = plan(**{**TEXTBOOK, "at_batch": 64})
    assert found.ttft_ms == found.ttft_unloaded_ms


def test_only_the_last_token_needs_the_head() -> None:
    at = setting(model="llama-3.1-8b")
    head = next(e for e in prompt_ledger(at, 4096) if e.name == "head")
    assert total(head, "flops") == 2 * 4096 * 128_256


@pytest.mark.parametrize("name", ["llama-3.1-70b", "deepseek-v3", "glm-5.2", "qwen3-next-80b-a3b", "gpt-oss-120b"])
def test_longer_prompts_take_longer(name: str) -> None:
    lengths = (16, 256, 4096, 8000, 9000, 65_536)
    times = [one(ttft_seconds(setting(model=name, gpu="h200-sxm", isl=isl), layout(8))) for isl in lengths]
    assert times == sorted(times)
