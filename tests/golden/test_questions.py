"""Which layout wins ten named questions and one more, and why: values by hand arithmetic, written beside each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from planner.optimise.search import optimise
from planner.optimise.shadow import relaxations
from planner.optimise.spelling import question_from_texts
from planner.share import from_link
from planner.single import plan_of

QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text(encoding="utf-8"))["question"]
NAMES = [each["name"] for each in QUESTIONS]


@pytest.mark.parametrize("each", QUESTIONS, ids=NAMES)
def test_who_wins(each: dict[str, Any]) -> None:
    question = question_from_texts(from_link(each["scenario"]), each["asked"])
    answer = optimise(question)
    if "relaxed" in each:
        assert answer.winner is None
        assert {found.field: found.needed for found in relaxations(question)} == each["relaxed"]
        return
    assert answer.winner is not None
    assert {name: getattr(answer.winner.scenario, name) for name in each["wins"]} == each["wins"]
    if "value" in each:
        assert answer.winner.value == pytest.approx(each["value"], rel=5e-4)


@pytest.mark.parametrize("each", QUESTIONS, ids=NAMES)
def test_the_plan_of_a_choice_says_what_the_search_said(each: dict[str, Any]) -> None:
    question = question_from_texts(from_link(each["scenario"]), each["asked"])
    for choice in optimise(question, top=4).best:
        plan = plan_of(choice.scenario)
        assert plan.fits
        assert plan.engine_ok
        assert plan.meets_sla
        assert plan.gpus is not None
        assert plan.gpus <= question.max_gpus
        if question.objective == "goodput_tok_s":
            assert (plan.goodput_tok_s or 0.0) * (plan.replicas or 0) == pytest.approx(choice.value, rel=1e-9)
        else:
            assert getattr(plan, question.objective) == pytest.approx(choice.value, rel=1e-9)


def test_the_articles_layouts_are_found_where_they_win() -> None:
    """A, B, C and EP128: one, two and four GPUs of the 70B, and DP32 × TP4 with 128 expert ranks."""
    found = {name: each["wins"] for name, each in zip(NAMES, QUESTIONS, strict=True) if "wins" in each}
    assert [found[name]["tp"] for name in NAMES if name[:2] in ("A:", "B:", "C:")] == [1, 2, 4]
    assert any(each.get("ep") == 128 for each in found.values())
