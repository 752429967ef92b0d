"""Choices of a search at a percentile: every number of them is that of the plan at the percentile, and what is listed holds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.optimise.answer import Answer, Choice
from planner.optimise.document import answer_json
from planner.optimise.question import Limit, Question
from planner.optimise.search import optimise
from planner.optimise.shadow import prices, relaxations
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.variants import outcome

NUMBERS: Final = ("replicas", "gpus", "usd_per_hour", "usd_per_m_goodput")
LARGE: Final = Scenario(model="llama-3.1-70b", weights="fp8", qps=20.0, sla_pct=99.0, sla_ttft_ms=300.0)
"""On means twelve GPUs would do; at P99 sixteen do, and some layouts take thousands."""
SMALL: Final = Scenario(model="llama-3.1-8b", weights="fp8", osl=64, qps=10.0, sla_pct=99.0, sla_ttft_ms=500.0)

QUESTIONS = st.fixed_dictionaries(
    {
        "scenario": st.builds(
            Scenario,
            model=st.just("llama-3.1-8b"),
            weights=st.just("fp8"),
            osl=st.sampled_from((64, 256)),
            qps=st.sampled_from((0.0, 5.0, 30.0)),
            sla_pct=st.sampled_from((90.0, 99.0)),
            sla_ttft_ms=st.sampled_from((75.0, 200.0, 500.0)),
            sla_tpot_ms=st.sampled_from((8.0, 20.0)),
            spare=st.sampled_from((0, 1)),
        ),
        "max_gpus": st.sampled_from((2, 8)),
        "objective": st.sampled_from(("usd_per_m_goodput", "gpus", "tpot_ms", "ttft_ms", "goodput_tok_s")),
        "limits": st.sampled_from(((), (Limit("usd_per_hour", True, 25.0),), (Limit("usd_per_m_output", True, 3.0),))),
    }
)


def worth_of(question: Question, choice: Choice) -> float:
    """The objective as the plan of a choice says it; good tokens are those of all replicas that serve."""
    plan = plan_of(choice.scenario)
    value = getattr(plan, question.objective)
    return value * (plan.replicas - choice.scenario.spare) if question.objective == "goodput_tok_s" else value


def hold(answer: Answer) -> None:
    """What must hold of every answer at a percentile."""
    question = answer.question
    for choice in answer.best:
        plan = plan_of(choice.scenario)
        assert plan.meets_sla
        assert plan.gpus <= question.max_gpus
        assert all(getattr(plan, limit.field) <= limit.value for limit in question.limits)
        assert choice.value == pytest.approx(worth_of(question, choice), rel=1e-12)
        for name in NUMBERS:
            assert getattr(choice.outcome, name) == pytest.approx(getattr(plan, name), rel=1e-12)
    values = [choice.value for choice in answer.best]
    assert values == sorted(values, reverse=question.objective == "goodput_tok_s")
    for choice in answer.beyond:
        plan = plan_of(choice.scenario)
        kept = all(getattr(plan, limit.field) <= limit.value for limit in question.limits)
        assert not (plan.meets_sla and plan.gpus <= question.max_gpus and kept)
    told = sum(each.count for each in answer.refused if each.rule == "percentile")
    assert told >= len(answer.beyond)
    assert bool(told) == bool(answer.beyond)


@given(QUESTIONS)
@settings(max_examples=12, derandomize=True, deadline=None)
def test_choices_are_their_plans_at_the_percentile(fields: dict[str, Any]) -> None:
    hold(optimise(Question(**fields)))


@pytest.mark.parametrize("pct", [90.0, 99.0])
@pytest.mark.parametrize("objective", ["usd_per_m_goodput", "usd_per_hour", "gpus"])
def test_choices_of_a_large_model_are_their_plans(pct: float, objective: str) -> None:
    answer = optimise(Question(scenario=LARGE.with_(sla_pct=pct), objective=objective))
    assert answer.winner is not None
    hold(answer)


def test_nothing_stands_in_the_place_of_a_cheaper_plan_that_is_too_large() -> None:
    """Four layouts on sixteen GPUs cost the same an hour; on means others would be cheaper, at P99 they take more GPUs."""
    answer = optimise(Question(scenario=LARGE))
    assert {choice.outcome.gpus for choice in answer.best} == {16.0}
    assert {choice.value for choice in answer.best} == {answer.best[0].outcome.usd_per_m_goodput}
    assert max(choice.outcome.gpus for choice in answer.beyond) > 1000
    means = optimise(Question(scenario=LARGE.with_(sla_pct=50.0)))
    assert means.best[0].value < answer.best[0].value


def test_at_the_median_nothing_is_left_out() -> None:
    answer = optimise(Question(scenario=LARGE.with_(sla_pct=50.0)))
    assert answer.beyond == ()
    assert answer.nearest is None


def test_where_nothing_holds_the_nearest_is_what_takes_the_fewest_gpus() -> None:
    question = Question(scenario=SMALL.with_(sla_ttft_ms=75.0, sla_tpot_ms=8.0), max_gpus=1)
    answer = optimise(question)
    assert answer.winner is None
    assert answer.second is None
    assert answer.nearest == answer.beyond[0]
    assert answer.nearest.outcome.gpus == min(choice.outcome.gpus for choice in answer.beyond)
    (needed,) = relaxations(question, beyond=answer.beyond)
    assert needed.field == "max_gpus"
    assert needed.needed > question.max_gpus
    assert needed.needed <= answer.nearest.outcome.gpus
    assert outcome(needed.choice.scenario).gpus <= needed.needed
    written = json.loads(answer_json(answer))
    assert written["plans"] == []
    assert [each["gpus"] for each in written["beyond"]] == [answer.nearest.outcome.gpus]
    assert written["front_on"] == "means"


def test_what_does_not_hold_has_no_value() -> None:
    answer = optimise(Question(scenario=SMALL.with_(sla_ttft_ms=75.0, sla_tpot_ms=8.0, fix_replicas=1), max_gpus=1))
    assert answer.nearest is not None
    assert not answer.nearest.outcome.stands
    assert json.loads(answer_json(answer))["beyond"][0]["value"] is None


def test_both_sides_of_the_price_of_a_constraint_are_on_means() -> None:
    """At P99 the winner costs more than on means; no constraint may be said to cost that difference."""
    answer = optimise(Question(scenario=LARGE))
    means = optimise(Question(scenario=LARGE.with_(sla_pct=50.0)))
    assert prices(answer) == prices(means)
    assert {each.value_now for each in prices(answer)} == {means.winner.value}


def test_relaxations_where_nothing_stands_even_on_means_are_on_means() -> None:
    question = Question(scenario=SMALL.with_(sla_tpot_ms=1.0), max_gpus=1)
    answer = optimise(question)
    assert answer.nearest is None
    found = relaxations(question)
    assert found
    assert {each.choice.scenario.sla_pct for each in found} == {50.0}


def test_the_second_choice_is_seen_at_the_percentile() -> None:
    answer = optimise(Question(scenario=LARGE))
    assert answer.second is not None
    assert answer.second.value == plan_of(answer.second.scenario).usd_per_m_goodput
    assert replace(answer, best=()).second is None
