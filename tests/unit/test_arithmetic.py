"""The worked arithmetic of a plan adds up to the plan, names what each number is about, and leaves the search out."""

from __future__ import annotations

import pytest

from planner.arithmetic import GROUPS, UNLISTED, arithmetic, group_of
from planner.catalog.models import model_ids
from planner.catalog.scenarios import preset_ids, presets
from planner.explain import explain
from planner.single import plan_of, worked
from planner.specs.scenario import Scenario
from tests.formulas import registered

PRESETS = pytest.mark.parametrize("scenario", [item.scenario for item in presets()], ids=preset_ids())
MEASURED = Scenario(tp=4, weights="fp8", qps=20)
EXPERTS = Scenario(model="deepseek-v3", gpu="h200-sxm", weights="fp8-block", tp=8, ep=8)
PADDED = Scenario(model="gpt-oss-120b", weights="mxfp4", tp=2)
HYBRID = Scenario(model="gemma-3-27b", tp=2)
TOO_LARGE = Scenario(model="llama-3.1-405b", tp=1)


def result(scenario, name, which=-1):
    """The last number that a formula gave in a plan's arithmetic."""
    found = [
        each.lines[-1].result for part in arithmetic(scenario) for each in part.worked if each.formula.name == name
    ]
    return float(found[which].replace(",", ""))


def part(scenario, title):
    return next(part for part in arithmetic(scenario) if part.title == title)


def last_of_tpot(scenario):
    """The formula that ends in TPOT, and which of its uses."""
    if scenario.prefill == "colocated":
        return ("tpot_seconds",)
    if scenario.spec:
        return ("verified_seconds",)
    return ("corner_seconds",) if scenario.profile == "textbook" else ("pass_seconds", -1)


@PRESETS
def test_the_arithmetic_ends_in_the_numbers_of_the_plan(scenario):
    plan = plan_of(scenario)
    assert result(scenario, *last_of_tpot(scenario)) * 1e3 == pytest.approx(plan.tpot_ms, rel=1e-5)
    assert result(scenario, "ttft_seconds") * 1e3 == pytest.approx(plan.ttft_ms, rel=1e-5)
    decoded = result(scenario, "output_rate")
    fed = result(scenario, "fed_rate") / plan.replicas if scenario.prefill == "disaggregated" else decoded
    assert min(decoded, fed) == pytest.approx(plan.output_tok_s, rel=1e-5)
    assert result(scenario, "tokens_held") == plan.kv_capacity_tokens_rank
    assert result(scenario, "sequences_held", 0) == plan.b_max_kv
    assert result(scenario, "sequences_held") == plan.b_max_kv_mean
    if plan.usd_per_hour is not None:
        assert result(scenario, "dollars_per_hour") == pytest.approx(plan.usd_per_hour, rel=1e-5)


@pytest.mark.parametrize("model", model_ids())
def test_weights_of_every_model_are_listed_to_the_last_byte(model):
    scenario = Scenario(model=model, tp=2, ep=1, weights="mxfp4" if model.startswith("gpt-oss") else "fp8")
    held = part(scenario, "Memory of one device").worked
    lines = [line for each in held if each.formula.name == "weight_bytes" for line in each.lines]
    assert UNLISTED not in {line.name for line in lines}


@pytest.mark.parametrize("scenario", [MEASURED, EXPERTS, HYBRID, PADDED])
def test_weights_add_up_to_those_of_the_plan(scenario):
    total = next(each for each in part(scenario, "Memory of one device").worked if each.formula.name == "weight_bytes")
    summands = [float(line.result.replace(",", "")) for line in total.lines[:-1]]
    assert sum(summands) == pytest.approx(plan_of(scenario).weights_bytes, rel=1e-6)
    assert all(summand >= 0 for summand in summands)


@pytest.mark.parametrize("scenario", [MEASURED, EXPERTS, HYBRID])
def test_operators_of_the_decode_step_add_up_to_the_step_in_tpot(scenario):
    total = next(each for each in part(scenario, "The decode step").worked if each.formula.name == "pass_seconds")
    tpot = next(each for p in arithmetic(scenario) for each in p.worked if each.formula.name == "tpot_seconds")
    assert tpot.lines[-1].numbers.startswith(f"{total.lines[-1].result} + ")


@pytest.mark.parametrize("scenario", [MEASURED, EXPERTS, HYBRID])
def test_operators_of_a_lone_prompt_add_up_to_ttft(scenario):
    lone = part(scenario, "A lone prompt").worked
    total = next(each for each in lone if each.formula.name == "pass_seconds")
    unloaded = next(each for each in lone if each.formula.name == "unloaded_ttft")
    assert f" + {total.lines[-1].result} + " in unloaded.lines[-1].numbers


@pytest.mark.parametrize("scenario", [MEASURED, EXPERTS, HYBRID])
def test_operators_of_a_step_with_prompts_add_up_to_what_prefill_costs(scenario):
    shared = part(scenario, "TPOT, TTFT and throughput").worked
    total = next(each for each in shared if each.formula.name == "pass_seconds")
    added = next(each for each in shared if each.formula.name == "shared_prefill")
    assert added.lines[0].numbers.startswith(f"np.maximum({total.lines[-1].result} - ")


def test_every_operator_of_the_ledger_is_clocked_under_its_name():
    plan = plan_of(EXPERTS)
    total = next(each for each in part(EXPERTS, "The decode step").worked if each.formula.name == "pass_seconds")
    assert {row.operator for row in plan.ledger if row.group != "prefill"} == {line.name for line in total.lines[:-1]}
    shown = {subject.partition(",")[0] for each in part(EXPERTS, "The decode step").worked for subject in each.subjects}
    assert {row.operator for row in plan.ledger if row.group != "prefill"} <= shown


def test_seconds_of_an_operator_are_those_of_the_ledger():
    plan = plan_of(MEASURED)
    total = next(each for each in part(MEASURED, "The decode step").worked if each.formula.name == "pass_seconds")
    clocked = {line.name: float(line.result) for line in total.lines[:-1]}
    for row in plan.ledger:
        if row.group != "prefill":
            assert clocked[row.operator] == pytest.approx(row.seconds, rel=1e-5)


def test_batches_that_the_search_tried_are_not_shown():
    plan, text = plan_of(MEASURED), explain(MEASURED)
    assert f"output_rate = batch / tpot = {plan.batch:,} / " in text
    assert text.count("tpot_seconds = ") == 1


def test_matrices_are_named():
    weights = [each for each in part(MEASURED, "Memory of one device").worked if each.formula.name == "matrix_bytes"]
    assert tuple(weights[0].subjects[0].split(", ")) == ("q_proj", "o_proj")


@PRESETS
def test_no_name_is_left_where_a_number_belongs(scenario):
    """A column's `repr`, an object or an unfilled argument in the middle of arithmetic."""
    for each in worked(scenario):
        for line in each.lines:
            assert "[" not in line.numbers
            assert "values)" not in line.numbers
            assert "<" not in line.result


def test_a_plan_that_does_not_fit_shows_its_memory_and_says_why_no_more():
    assert [part.title for part in arithmetic(TOO_LARGE)] == ["Memory of one device"]
    assert "Speed and cost are not worked out: " in explain(TOO_LARGE)


def test_every_formula_has_a_group():
    assert {group_of(entry) for entry in registered().values()} == set(GROUPS)


@PRESETS
def test_the_text_has_source_and_lines_of_every_formula(scenario):
    text = explain(scenario)
    for each in worked(scenario):
        assert each.formula.source in text
        for line in each.lines:
            assert line.result in text
