"""Layout rules: what is refused, in which order, and with which words."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates import candidates, refusals, rules
from planner.catalog.models import model
from planner.specs.layout import layout
from tests.asking import plan


def reason(name: str, **degrees: int) -> str:
    """Why a layout is refused; empty when it is not."""
    found = rules(model(name))
    broken = int(refusals(found, candidates(layout(**degrees)).layout).reshape(-1)[0])
    return "" if broken < 0 else found[broken].reason


def test_columns_are_tall_and_batches_are_wide() -> None:
    found = candidates(layout(tp=[1, 2, 4]), np.array([1.0, 8.0]))
    assert found.layout.tp.shape == found.layout.ep.shape == (3, 1)
    assert found.batch is not None
    assert found.batch.shape == (1, 2)
    assert found.rows == 6


def test_without_batches_each_layout_is_a_row() -> None:
    assert candidates(layout(tp=[1, 2, 4])).rows == 3


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_degrees_that_divide_the_heads_stand(tp: int) -> None:
    assert reason("llama-3.1-70b", tp=tp) == ""


@pytest.mark.parametrize(
    ("name", "degrees", "words"),
    [
        ("llama-3.1-70b", {"tp": 3}, "64 attention heads"),
        ("qwen2.5-7b", {"tp": 8}, "28 attention heads"),
        ("phi-4", {"tp": 4}, "10 KV heads"),
        ("mixtral-8x7b", {"tp": 8, "ep": 16}, "ep does not divide"),
        ("llama-3.1-70b", {"tp": 8, "ep": 8}, "needs a mixture of experts"),
        ("llama-3.1-70b", {"pp": 81}, "pp exceeds the 80 layers"),
        ("llama-3.1-70b", {"tp": 8, "dcp": 3}, "dcp does not divide tp"),
        ("llama-3.1-70b", {"tp": 8, "dcp": 2}, "dcp above tp / 8"),
        ("deepseek-v3", {"tp": 4, "dcp": 8}, "dcp does not divide tp"),
        ("deepseek-v3", {"tp": 1, "dp": 8, "ep": 16}, "ep does not divide"),
    ],
)
def test_a_refused_layout_says_why(name: str, degrees: dict[str, int], words: str) -> None:
    assert words in reason(name, **degrees)


@pytest.mark.parametrize(
    ("name", "degrees"),
    [
        ("llama-3.1-70b", {"tp": 16}),
        ("llama-3.1-70b", {"tp": 16, "dcp": 2}),
        ("llama-3.1-70b", {"tp": 4, "pp": 2, "cp": 2}),
        ("deepseek-v3", {"tp": 8, "dcp": 8}),
        ("deepseek-v3", {"dp": 8, "ep": 8}),
        ("deepseek-v3", {"dp": 32, "tp": 4, "ep": 128}),
        ("deepseek-v3", {"dp": 320, "ep": 320}),
        ("deepseek-v3", {"dp": 4, "tp": 2, "ep": 2}),
    ],
)
def test_layouts_of_one_identity_stand(name: str, degrees: dict[str, int]) -> None:
    """tp·dp·cp = expert_tp·ep: TP+EP, DP+EP, expert-TP mixtures, more ranks than experts."""
    assert reason(name, **degrees) == ""


def test_heads_may_be_copied_evenly() -> None:
    """4 KV heads over 8 ranks: two copies of each."""
    assert reason("qwen3-30b-a3b", tp=8) == ""


def test_the_first_broken_rule_of_each_row_is_reported() -> None:
    found = rules(model("llama-3.1-70b"))
    broken = refusals(found, candidates(layout(tp=[1, 3, 8], dcp=[1, 1, 2])).layout).reshape(-1)
    assert broken[0] == -1
    assert "heads" in found[broken[1]].reason
    assert "dcp" in found[broken[2]].reason


def test_block_fp8_needs_whole_blocks_of_an_expert_on_a_rank() -> None:
    """Qwen3-235B: 1,536 / 8 = 192 is no multiple of 128; with ep = 8 an expert stays whole."""
    for ep, offered in ((1, False), (8, True)):
        found = plan(model="qwen3-235b-a22b", gpu="h200-sxm", weights="fp8-block", tp=8, ep=ep)
        assert found.engine_ok == offered
        assert found.tpot_ms
    assert plan(model="qwen3-235b-a22b", gpu="h200-sxm", weights="fp8-block", tp=8, engine="trtllm").engine_ok


def test_what_an_engine_does_not_offer_binds_and_says_why_but_is_priced() -> None:
    found = plan(model="qwen3-235b-a22b", gpu="h200-sxm", weights="fp8-block", tp=8)
    assert (found.binds, found.engine_ok, found.fits) == ("engine", False, True)
    assert "block-FP8 kernels" in found.reason
    assert found.tpot_ms
    assert found.b_max == 0
    assert found.goodput_tok_s == 0
