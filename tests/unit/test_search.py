"""The search as its callers see it: progress, cancel, what is refused and why, prices of constraints, relaxations."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from planner.catalog.accelerators import accelerator_ids
from planner.errors import InputError
from planner.optimise.answer import Answer, Cancelled, Progress
from planner.optimise.question import Limit, Question
from planner.optimise.search import optimise
from planner.optimise.shadow import constraints, moved, price_of, prices, relaxations
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.variants import outcome

LLAMA = Scenario(model="llama-3.1-70b", gpu="h200-sxm", weights="fp8")
WIDE = Question(
    scenario=Scenario(model="deepseek-v3", gpu="h200-sxm", weights="fp8", sla_ttft_ms=1000.0),
    accelerators=accelerator_ids(), modes=("colocated", "disaggregated"), max_gpus=64,
)  # fmt: skip


def reasons(answer: Answer) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in answer.refused:
        found[each.rule] = found.get(each.rule, 0) + each.count
    return found


# --- progress and cancel -----------------------------------------------------------------------------


def test_progress_begins_at_once_never_goes_back_and_ends_at_the_end() -> None:
    begun, seen = time.monotonic(), list[tuple[float, Progress]]()
    optimise(WIDE, lambda progress: seen.append((time.monotonic() - begun, progress)))
    assert seen[0][0] < seen[-1][0] / 2
    assert seen[0][1].done == 0
    states = [progress for _, progress in seen]
    assert states[-1].done == states[-1].total
    assert all(a.considered <= b.considered for a, b in itertools.pairwise(states))
    best = [state.best for state in states if state.best is not None]
    assert best == sorted(best, reverse=True)


def test_a_search_stops_soon_after_it_is_cancelled() -> None:
    told: list[Progress] = []
    with pytest.raises(Cancelled):
        optimise(WIDE, told.append, lambda: len(told) > 5)
    assert len(told) < 12


def test_a_search_that_is_cancelled_at_once_looks_at_nothing() -> None:
    told: list[Progress] = []
    with pytest.raises(Cancelled):
        optimise(WIDE, told.append, lambda: True)
    assert all(each.considered == 0 for each in told)


# --- what is shown -----------------------------------------------------------------------------------


def test_best_first_and_the_best_of_every_kind_before_a_second_of_one() -> None:
    answer = optimise(Question(scenario=LLAMA, accelerators=("h100-sxm", "h200-sxm", "b200-sxm"), max_gpus=16), top=6)
    values = [choice.value for choice in answer.best]
    assert values == sorted(values)
    assert len({choice.scenario.gpu for choice in answer.best}) == 3
    assert len(answer.best) == 6


def test_a_choice_names_everything_and_its_plan_says_the_same() -> None:
    for choice in optimise(Question(scenario=LLAMA.with_(qps=12.0), max_gpus=32)).best:
        plan = plan_of(choice.scenario)
        assert (plan.usd_per_m_goodput, plan.batch) == (
            pytest.approx(choice.value, rel=1e-12),
            choice.scenario.at_batch,
        )
        assert plan.reason == ""


def test_nothing_on_the_front_is_beaten_by_another_point_of_it() -> None:
    """Faster for a user and more tokens a GPU (or a dollar): no point has both."""
    front = optimise(WIDE).front
    by_gpu = [(point.tok_s_user, point.tok_s_gpu) for point in front if point.by_gpu]
    by_cost = [(point.tok_s_user, -(point.usd_per_m_output or np.inf)) for point in front if point.by_cost]
    for points in (by_gpu, by_cost):
        assert points == sorted(points)
        assert [second for _, second in points] == sorted((second for _, second in points), reverse=True)


def test_points_of_the_front_are_plans() -> None:
    for point in optimise(Question(scenario=LLAMA, max_gpus=8)).front[::4]:
        found = outcome(point.scenario)
        assert found.tpot_ms == pytest.approx(1e3 / point.tok_s_user, rel=1e-9)
        assert found.output_tok_s is not None
        assert found.output_tok_s / found.gpus_per_replica == pytest.approx(point.tok_s_gpu, rel=1e-9)
        assert point.keeps == (found.tpot_ms <= LLAMA.sla_tpot_ms)


# --- what is refused ---------------------------------------------------------------------------------


def test_every_layout_is_counted_and_every_refusal_has_a_sentence() -> None:
    answer = optimise(Question(scenario=LLAMA, max_gpus=16))
    assert answer.candidates == 192
    assert sum(each.count for each in answer.refused) < answer.candidates
    assert all(each.reason and each.count > 0 for each in answer.refused)
    assert {"heads", "dcp", "replicas"} <= set(reasons(answer))


def test_an_accelerator_without_a_price_is_refused_for_dollars_and_searched_for_speed() -> None:
    unpriced = Question(scenario=LLAMA, accelerators=("b300-sxm",), max_gpus=8)
    answer = optimise(unpriced)
    assert answer.winner is None
    assert reasons(answer)["price"] > 0
    fastest = optimise(unpriced.model_copy(update={"objective": "tpot_ms"}))
    assert fastest.winner is not None


def test_makers_are_not_mixed_and_an_engine_refuses_foreign_accelerators() -> None:
    apart = Question(scenario=LLAMA, accelerators=("h200-sxm", "mi300x"), modes=("disaggregated",), max_gpus=8)
    answer = optimise(apart)
    assert reasons(answer)["maker"] > 0
    for choice in answer.best:
        assert {choice.scenario.gpu, choice.scenario.prefill_gpu} in ({"h200-sxm"}, {"mi300x"})
    foreign = optimise(Question(scenario=LLAMA.with_(engine="trtllm"), accelerators=("mi300x",), max_gpus=8))
    assert foreign.winner is None
    assert reasons(foreign) == {"engine": foreign.candidates}


def test_limits_hold() -> None:
    limits = (Limit("tpot_ms", True, 20.0), Limit("usd_per_hour", True, 25.0), Limit("goodput_tok_s", False, 500.0))
    answer = optimise(Question(scenario=LLAMA, max_gpus=16, limits=limits))
    assert answer.best
    for choice in answer.best:
        found = choice.outcome
        assert found.tpot_ms is not None
        assert found.tpot_ms <= 20.0
        assert found.usd_per_hour is not None
        assert found.usd_per_hour <= 25.0
        assert found.goodput_tok_s is not None
        assert found.goodput_tok_s >= 500.0


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"objective": "usd_per_hour"}, "qps above 0"),
        ({"max_gpus": 0}, "max_gpus"),
        ({"limits": (Limit("kv", True, 1.0),)}, "must be one of"),
        ({"precisions": ("fp8", "fp8")}, "once"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Question.model_validate({"scenario": LLAMA, **fields})


# --- prices of constraints ---------------------------------------------------------------------------


def test_the_price_of_a_constraint_is_the_answer_to_the_changed_question() -> None:
    question = Question(
        scenario=LLAMA, accelerators=("h200-sxm", "b200-sxm"), max_gpus=8, limits=(Limit("ttft_ms", True, 190.0),)
    )
    answer = optimise(question)
    assert answer.winner is not None
    found = prices(answer)
    assert {"sla_tpot_ms", "ttft_ms"} <= {each.field for each in found}
    for each in found:
        scenario, limits, most = question.scenario, question.limits, question.max_gpus
        if each.field == "max_gpus":
            most = int(each.then)
        elif each.field == "ttft_ms":
            limits = (Limit("ttft_ms", True, each.then),)
        else:
            scenario = scenario.with_(**{each.field: each.then})
        again = optimise(
            Question(scenario=scenario, accelerators=question.accelerators, max_gpus=most, limits=limits), top=1
        )
        assert each.value_now == answer.winner.value
        assert each.value_then == (None if again.winner is None else again.winner.value)


def test_a_tighter_promise_never_costs_less() -> None:
    answer = optimise(Question(scenario=LLAMA, max_gpus=8))
    costs = [price_of(answer, "sla_tpot_ms", then).value_then for then in (20.0, 30.0, 40.0, 50.0, 80.0)]
    assert all(cost is not None for cost in costs)
    assert costs == sorted(costs, reverse=True)
    assert costs[3] == answer.winner.value


def test_the_relaxation_is_the_smallest() -> None:
    question = Question(scenario=LLAMA.with_(sla_tpot_ms=4.0), max_gpus=8)
    assert optimise(question).winner is None
    found = {each.field: each for each in relaxations(question)}
    needed = found["sla_tpot_ms"].needed
    assert optimise(moved(question, "sla_tpot_ms", needed)).winner is not None
    assert optimise(moved(question, "sla_tpot_ms", needed - 0.02)).winner is None


def test_too_few_gpus_are_told_how_many_there_must_be() -> None:
    """405 GB of FP8 weights: four H200 of 141 GB are the fewest that hold them."""
    question = Question(
        scenario=Scenario(model="llama-3.1-405b", weights="fp8", gpu="h200-sxm", sla_ttft_ms=5000.0), max_gpus=2
    )
    assert optimise(question).winner is None
    (found,) = [each for each in relaxations(question) if each.field == "max_gpus"]
    assert found.needed == 4
    assert optimise(moved(question, "max_gpus", 3)).winner is None


@pytest.mark.parametrize(
    ("limit", "better"),
    [
        (Limit("usd_per_hour", True, 1.0), 0.99),
        (Limit("goodput_tok_s", False, 200_000.0), 1.01),
        (Limit("batch", False, 50_000.0), 1.01),
        (Limit("gpus_per_replica", True, 0.5), 0.99),
        (Limit("usd_per_m_goodput", True, 0.001), 0.99),
    ],
)
def test_the_relaxation_of_any_limit_is_the_smallest(limit: Limit, better: float) -> None:
    """No request rate is asked, so that dollars an hour are no objective; and more is better for some fields."""
    question = Question(scenario=LLAMA, max_gpus=16, limits=(limit,))
    assert optimise(question).winner is None
    (found,) = [each for each in relaxations(question) if each.field == limit.field]
    assert optimise(moved(question, limit.field, found.needed)).winner is not None
    assert optimise(moved(question, limit.field, found.needed * better)).winner is None


def test_constraints_of_a_question() -> None:
    assert constraints(Question(scenario=LLAMA, limits=(Limit("batch", False, 8.0),))) == {
        "sla_tpot_ms": 50.0, "sla_ttft_ms": 200.0, "max_gpus": 16.0, "batch": 8.0,
    }  # fmt: skip


# --- what a scenario cannot name ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "question"),
    [
        (
            {"model": "deepseek-v3", "gpu": "gb200-nvl72", "profile": "textbook", "sla_tpot_ms": 1000.0},
            {"max_gpus": 4096},
        ),
        ({"model": "llama-3.1-70b", "profile": "textbook", "max_seqs": 1}, {}),
        ({"model": "llama-3.1-70b", "at_batch": 64, "max_seqs": 8, "dp": 8}, {}),
        ({"model": "deepseek-v3", "gpu": "h200-sxm", "at_batch": 64, "max_seqs": 8, "dp": 8}, {}),
        ({"model": "smollm2-135m", "profile": "textbook", "isl": 1, "osl": 2, "sla_tpot_ms": 10_000.0}, {}),
        ({"model": "llama-3.1-70b", "price": 0.0}, {}),
        ({"model": "llama-3.1-70b", "fix_replicas": 3}, {"objective": "goodput_tok_s"}),
    ],
    ids=[
        "degrees",
        "textbook seats",
        "batch above seats",
        "batch of more ranks",
        "huge batches",
        "for nothing",
        "fixed",
    ],
)
def test_every_choice_can_be_named(fields: dict[str, object], question: dict[str, object]) -> None:
    scenario = Scenario.model_validate({"weights": "fp8", "sla_ttft_ms": 20_000.0, **fields})
    answer = optimise(Question.model_validate({"scenario": scenario, **question}))
    for choice in answer.best:
        assert outcome(choice.scenario).stands
        assert max(choice.scenario.tp, choice.scenario.dp, choice.scenario.ep) <= 1024
    assert answer.winner is not None or reasons(answer)


def test_more_ranks_seat_a_batch_that_one_does_not() -> None:
    seated = {"at_batch": 64, "max_seqs": 8, "dp": 8}
    scenario = Scenario(model="deepseek-v3", gpu="h200-sxm", weights="fp8", sla_ttft_ms=5000.0, **seated)
    answer = optimise(Question(scenario=scenario, max_gpus=16))
    assert answer.winner is not None
    assert answer.winner.scenario.dp >= 8


def test_replicas_that_are_fixed_stay_fixed() -> None:
    answer = optimise(Question(scenario=LLAMA.with_(fix_replicas=3), objective="goodput_tok_s", max_gpus=32))
    assert {choice.scenario.fix_replicas for choice in answer.best} == {3}


def test_tpot_of_requests_without_one_is_no_objective() -> None:
    with pytest.raises(InputError, match="osl of 2"):
        Question(scenario=LLAMA.with_(osl=1), objective="tpot_ms")


def test_fixed_replicas_may_be_asked_for_more_than_the_usable_share() -> None:
    """One replica of one GPU that carries just what is asked: sized by `load` its bound would be above what two GPUs cost."""
    alone = Scenario(model="llama-3.1-8b", gpu="h100-sxm", weights="fp8", load=0.3)
    full = outcome(alone).goodput_tok_s
    assert full is not None
    asked = alone.with_(qps=0.995 * full / alone.osl, fix_replicas=1)
    answer = optimise(Question(scenario=asked, objective="usd_per_hour", max_gpus=8), top=1)
    assert answer.winner is not None
    assert answer.winner.outcome.gpus == 1


@pytest.mark.parametrize(
    ("field", "promise", "value"), [("tpot_ms", "sla_tpot_ms", 30.0), ("ttft_ms", "sla_ttft_ms", 150.0)]
)
def test_a_limit_on_a_time_costs_what_the_same_promise_costs(field: str, promise: str, value: float) -> None:
    """The batch is the largest under the tighter of the two, not the nearest of a grid; the plan keeps its own SLA."""
    question = Question(scenario=LLAMA, max_gpus=8)
    limited = optimise(question.model_copy(update={"limits": (Limit(field, True, value),)})).winner
    promised = optimise(moved(question, promise, value)).winner
    assert limited is not None
    assert promised is not None
    assert limited.value == promised.value
    assert (limited.scenario.sla_tpot_ms, limited.scenario.sla_ttft_ms) == (LLAMA.sla_tpot_ms, LLAMA.sla_ttft_ms)


def test_a_limit_on_the_batch_is_reached() -> None:
    found = optimise(Question(scenario=LLAMA, max_gpus=2, limits=(Limit("batch", True, 77.0),))).winner
    assert found is not None
    assert found.scenario.at_batch == 77
