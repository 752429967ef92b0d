"""TPOT over batch: the step, other requests' prefill in it, and the search for the largest batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.serving import decode
from planner.specs.layout import layout
from tests.asking import column, one, plan, setting, step_seconds, tpot_seconds

TEXTBOOK = {"model": "llama-70b-nominal", "profile": "textbook", "tp": 4, "isl": 1024, "osl": 256}


def textbook(**changes: Any) -> Any:
    return setting(**{**TEXTBOOK, **changes})


@pytest.mark.parametrize(("batch", "dp", "held"), [(8, 1, 8), (8, 8, 1), (9, 8, 2), (1, 8, 1)])
def test_a_rank_holds_its_share_rounded_up(batch: int, dp: int, held: int) -> None:
    assert one(decode.rank_batch(column(batch), column(dp))) == held


def test_tpot_carries_prompts_at_the_rate_at_which_requests_end() -> None:
    """64 sequences of 256 tokens bring a quarter of a prompt into every step."""
    assert one(decode.tpot_seconds(column(0.010), column(64), 256.0, column(0.040), 1.0)) == pytest.approx(0.020)


def test_phi_is_the_share_that_lands_on_running_sequences() -> None:
    assert one(decode.tpot_seconds(column(0.010), column(64), 256.0, column(0.040), 0.5)) == pytest.approx(0.015)


def test_without_prefill_tpot_is_the_step() -> None:
    at = textbook(prefill="excluded")
    assert one(tpot_seconds(at, 32, layout(4))) == one(step_seconds(at, 32, 1152, tp=4))


def test_the_context_is_input_and_half_of_the_output() -> None:
    assert textbook().decoding.context == 1024 + 128


def test_prefill_in_the_same_step_by_hand() -> None:
    """Roofline of 4 H100: a step of 64 tokens is memory-bound, with 1,024 more it is compute-bound.

    alone = (140e9 + 64·1152·327,680) / (4·3.35e12); mixed = (2·70e9·(64 + 1024) + 64·1152·4·655,360 + 4·1024²·655,360)
    / (4·742.05e12); a quarter of the difference is added.
    """
    alone = (140e9 + 64 * 1152 * 327_680) / (4 * 3.35e12)
    attention = 64 * 1152 * 4 * 655_360 + 4 * 1024**2 * 655_360
    mixed = (2 * 70e9 * 1088 + attention) / (4 * 742.05e12)
    assert one(tpot_seconds(textbook(), 64, layout(4))) == pytest.approx(alone + 0.25 * (mixed - alone), rel=1e-9)


def test_a_prompt_in_four_chunks_by_hand() -> None:
    """4 sequences bring 1/64 prompt a step, in 4 chunks: a sixteenth of the steps carries 512 tokens more."""
    alone = (140e9 + 4 * 2176 * 327_680) / (4 * 3.35e12)
    attention = 4 * 2176 * 4 * 655_360 + 4 * 2048**2 * 655_360 / 4
    mixed = (2 * 70e9 * 516 + attention) / (4 * 742.05e12)
    found = one(tpot_seconds(textbook(isl=2048, chunk=512), 4, layout(4)))
    assert mixed > alone
    assert found == pytest.approx(alone + (mixed - alone) / 16, rel=1e-9)


def test_prompts_that_share_a_step_share_its_slack() -> None:
    """128 sequences of 32 tokens bring 4 prompts of 1,024 into every step: one pass of 4,224 tokens, compute-bound."""
    attention = 128 * 1040 * 4 * 655_360 + 4 * 4 * 1024**2 * 655_360
    mixed = (2 * 70e9 * (128 + 4 * 1024) + attention) / (4 * 742.05e12)
    assert one(tpot_seconds(textbook(osl=32), 128, layout(4))) == pytest.approx(mixed, rel=1e-9)


@pytest.mark.parametrize(
    ("batch", "osl", "chunks", "together"), [(64, 256, 1, 1), (256, 256, 1, 1), (512, 256, 1, 2), (64, 256, 16, 4)]
)
def test_chunks_share_a_step_when_more_than_one_arrives(batch: int, osl: float, chunks: float, together: float) -> None:
    assert one(decode.chunks_in_a_step(column(batch), osl, chunks)) == together


def test_cached_prefixes_lighten_the_step() -> None:
    cold, warm = (one(tpot_seconds(textbook(prefix=share), 64, layout(4))) for share in (0.0, 0.9))
    assert warm < cold


def test_longer_answers_bring_fewer_prompts() -> None:
    short, long = (one(tpot_seconds(textbook(isl=1024, osl=osl), 64, layout(4))) for osl in (16, 1024))
    assert long < short


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0, 2.5, 17.0, 999.9, 131_072.0, 1e9])
def test_the_largest_batch_is_that_of_trying_them_all(threshold: float) -> None:
    found = one(decode.largest_batch(lambda batch: batch <= threshold, (1, 1)))
    assert found == min(np.floor(threshold), decode.LARGEST_BATCH)


@pytest.mark.parametrize("rows", [1, 2, 7, 100, 5000])
def test_the_search_does_not_depend_on_how_many_rows_search_together(rows: int) -> None:
    limits = (np.arange(rows, dtype=float) * 37 % 1000)[:, None]
    found = decode.largest_batch(lambda batch: batch <= limits, (rows, 1))
    np.testing.assert_array_equal(found, limits)


def test_the_search_is_a_column() -> None:
    assert decode.largest_batch(lambda batch: batch <= 3, (4, 1)).shape == (4, 1)


@pytest.mark.parametrize("profile", ["measured", "textbook"])
def test_the_promise_holds_at_the_largest_batch_and_not_at_one_more(profile: str) -> None:
    found = plan(model="llama-3.1-70b", profile=profile, tp=4, sla_ttft_ms=2000.0, sla_tpot_ms=40.0)
    at = setting(model="llama-3.1-70b", profile=profile, tp=4, sla_ttft_ms=2000.0, sla_tpot_ms=40.0)
    held, broken = tpot_seconds(at, [found.b_max_sla, found.b_max_sla + 1], layout(4)).reshape(-1)
    assert held <= 0.040 < broken
