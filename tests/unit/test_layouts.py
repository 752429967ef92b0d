"""Enumeration of layouts: the identity, nothing twice, published layouts among them, rules of the search."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates import refusals
from planner.catalog.models import model
from planner.layouts import degrees, every_layout, search_rules
from planner.specs.layout import Layout, layout

NAMES = ("tp", "pp", "dp", "ep", "cp", "dcp")


def table(found: Layout) -> np.ndarray:
    return np.stack([getattr(found, name) for name in NAMES], axis=1)


@pytest.mark.parametrize(("name", "most"), [("llama-3.1-70b", 16), ("deepseek-v3", 64), ("gpt-oss-120b", 7)])
def test_every_layout_keeps_the_identity_and_the_budget_and_stands_once(name: str, most: int) -> None:
    found = every_layout(model(name), most)
    assert (found.tp * found.dp * found.cp == found.expert_tp * found.ep).all()
    assert (np.mod(found.tp * found.dp * found.cp, found.ep) == 0).all()
    assert (np.mod(found.tp, found.dcp) == 0).all()
    assert found.devices.max() <= most
    assert len(np.unique(table(found), axis=0)) == len(found.tp)
    assert (np.diff(found.devices) >= 0).all()


@pytest.mark.parametrize(
    ("where", "at"),
    [
        ("DeepSeek decode, EP128 and EP144", [(1, 1, 128, 128, 1, 1), (1, 1, 144, 144, 1, 1)]),
        ("SGLang on 12 nodes, EP72", [(1, 1, 72, 72, 1, 1), (1, 1, 96, 96, 1, 1)]),
        ("CloudMatrix, EP320", [(1, 1, 320, 320, 1, 1)]),
        ("the article's EP128", [(4, 1, 32, 128, 1, 1)]),
        ("two nodes", [(16, 1, 1, 1, 1, 1), (8, 2, 1, 1, 1, 1), (8, 1, 2, 16, 1, 1)]),
    ],
)
def test_published_layouts_are_among_them(where: str, at: list[tuple[int, ...]]) -> None:
    found = {tuple(row) for row in table(every_layout(model("deepseek-v3"), 512)).astype(int).tolist()}
    assert [each for each in at if each not in found] == [], where


def test_degrees_are_whole_and_never_above_the_budget() -> None:
    assert degrees(1) == (1,)
    assert degrees(16) == (1, 2, 3, 4, 6, 8, 12, 16)
    assert {72, 96, 128, 144, 320} <= set(degrees(512))


def test_a_dense_model_is_not_spread_over_attention_ranks() -> None:
    """Two ranks that share nothing are two replicas: the same layout would be counted twice."""
    found = search_rules(model("llama-3.1-70b"), 8.0)
    broken = refusals(found, layout(dp=[1, 2]))
    assert broken.tolist()[0] == -1
    assert found[broken.tolist()[1]].name == "replicas"
    assert "replicas" not in {rule.name for rule in search_rules(model("deepseek-v3"), 8.0)}


def test_a_stage_fits_a_domain_or_fills_whole_ones() -> None:
    found = search_rules(model("deepseek-v3"), 8.0)
    broken = refusals(found, layout(tp=[2, 3, 8, 4, 4], dp=[1, 1, 1, 3, 4]))
    assert (broken >= 0).tolist() == [False, True, False, True, False]
