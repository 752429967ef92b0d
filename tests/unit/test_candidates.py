"""Layout rules: what is refused, in which order, and with which words."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates import candidates, refusals, rules
from planner.catalog.accelerators import accelerator
from planner.catalog.models import model
from planner.specs.layout import layout


def reason(name: str, gpu: str = "h100-sxm", **degrees: int) -> str:
    """Why a layout is refused; empty when it is not."""
    found = rules(model(name), accelerator(gpu))
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
        ("llama-3.1-70b", {"tp": 2, "pp": 2}, "pp above 1"),
        ("deepseek-v3", {"tp": 1, "dp": 8, "ep": 8}, "dp above 1"),
        ("llama-3.1-70b", {"cp": 2}, "cp above 1"),
        ("deepseek-v3", {"tp": 8, "dcp": 8}, "dcp above 1"),
        ("llama-3.1-70b", {"tp": 16}, "scale-up domain of 8"),
    ],
)
def test_a_refused_layout_says_why(name: str, degrees: dict[str, int], words: str) -> None:
    assert words in reason(name, **degrees)


def test_a_larger_domain_admits_a_larger_degree() -> None:
    assert reason("llama-3.1-70b", "gb200-nvl72", tp=16) == ""


def test_heads_may_be_copied_evenly() -> None:
    """4 KV heads over 8 ranks: two copies of each."""
    assert reason("qwen3-30b-a3b", tp=8) == ""


def test_the_first_broken_rule_of_each_row_is_reported() -> None:
    found = rules(model("llama-3.1-70b"), accelerator("h100-sxm"))
    broken = refusals(found, candidates(layout(tp=[1, 3, 16])).layout).reshape(-1)
    assert broken[0] == -1
    assert "heads" in found[broken[1]].reason
    assert "domain" in found[broken[2]].reason


def test_unpriced_layouts_are_named_so() -> None:
    """Their memory is known, only their speed is not."""
    found = rules(model("deepseek-v3"), accelerator("h100-sxm"))
    assert {rule.name for rule in found if rule.unpriced} == {"pp", "dp", "cp", "dcp"}


def test_reasons_name_what_to_change() -> None:
    assert all(len(rule.reason) > 20 for rule in rules(model("deepseek-v3"), accelerator("h100-sxm")))
