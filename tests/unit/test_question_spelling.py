"""Questions as text: every text is read as strictly as a link, every fault is named, and what is written is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.accelerators import accelerator_ids
from planner.errors import InputError
from planner.optimise.question import LIMITED, MOST_GPUS, OBJECTIVES, Limit, Question
from planner.optimise.spelling import QUESTION_FIELDS, measured_ids, question_from_texts, question_texts
from planner.specs.scenario import Scenario, describe

BASE = Scenario(weights="fp8", tp=4, qps=2.0)


def refused(**texts: str) -> dict[str, str]:
    """What is said of each refused field; a field that is refused twice fails."""
    with pytest.raises(InputError) as caught:
        question_from_texts(BASE, texts)
    said = {fault.field: f"{fault.value}: {fault.allowed}" for fault in caught.value.faults}
    assert len(said) == len(caught.value.faults)
    return said


def test_nothing_written_is_the_scenario_alone() -> None:
    assert question_from_texts(BASE, {}) == Question(scenario=BASE)
    assert question_texts(Question(scenario=BASE)) == {}


def test_every_field_as_it_is_written() -> None:
    texts = {
        "accelerators": "h100-sxm,h200-sxm", "precisions": "fp8,bf16", "caches": "fp8", "modes": "colocated,disaggregated",
        "prefill_accelerators": "l40s", "chunks": "0,2048", "drafts": "0,3", "max_gpus": "64",
        "objective": "goodput_tok_s", "limits": "tpot_ms<=30,goodput_tok_s>=1000.5",
    }  # fmt: skip
    question = question_from_texts(BASE, texts)
    assert question == Question(
        scenario=BASE, accelerators=("h100-sxm", "h200-sxm"), precisions=("fp8", "bf16"), caches=("fp8",),
        modes=("colocated", "disaggregated"), prefill_accelerators=("l40s",), chunks=(0, 2048), drafts=(0, 3), max_gpus=64,
        objective="goodput_tok_s", limits=(Limit("tpot_ms", True, 30.0), Limit("goodput_tok_s", False, 1000.5)),
    )  # fmt: skip
    assert question_texts(question) == texts
    assert tuple(question_texts(question)) == QUESTION_FIELDS


def test_words_for_many_accelerators() -> None:
    assert question_from_texts(BASE, {"accelerators": "all"}).accelerators == accelerator_ids()
    timed = question_from_texts(BASE, {"accelerators": "measured"}).accelerators
    assert timed == measured_ids()
    assert "h200-sxm" in timed
    assert "t4" not in timed


def test_a_large_limit_is_a_plain_number() -> None:
    question = Question(scenario=BASE, limits=(Limit("usd_per_hour", True, 1234567.25),))
    assert question_texts(question) == {"limits": "usd_per_hour<=1234567.25"}
    assert question_from_texts(BASE, question_texts(question)) == question


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("accelerators", "h100-sxn", "did you mean h100-sxm?"),
        ("accelerators", "H100", "must be an accelerator's id"),
        ("accelerators", "h100-sxm, h200-sxm", "did you mean h200-sxm?"),
        ("accelerators", "", "empty: must be an accelerator's id"),
        ("accelerators", "h100-sxm,", "empty: must be an accelerator's id"),
        ("accelerators", "h100-sxm,h100-sxm", "stands 2 times: must stand once"),
        ("accelerators", "=cmd()", "must be an accelerator's id"),
        ("prefill_accelerators", "l40ss", "did you mean l40s?"),
        ("precisions", "fp9", "must be one of bf16, fp8"),
        ("caches", "fp4", "must be one of bf16, fp8, int8"),
        ("modes", "disagregated", "did you mean disaggregated?"),
        ("chunks", "1e3", "must be a whole number from 0 to 10,000,000"),
        ("chunks", "1,2,3,4,5,6,7,8,9", "9 values: must have at most 8 values"),
        ("drafts", "33", "must be a whole number from 0 to 32"),
        ("max_gpus", "0", "must be a whole number from 1 to 4,096 (GPUs)"),
        ("max_gpus", "4097", "must be a whole number from 1 to 4,096 (GPUs)"),
        ("max_gpus", "16.0", "must be a whole number"),
        ("objective", "usd_per_hours", "did you mean usd_per_hour?"),
        ("limits", "tpot_ms<30", "must be a plan field, <= or >=, and a plain number"),
        ("limits", "tpot_ms<=1e3", "a plain number"),
        ("limits", "tpot_ms<=-1", "a plain number"),
        ("limits", "tpot_ms<=nan", "a plain number"),
        ("limits", "tpot_s<=1", "did you mean tpot_ms?"),
        ("limits", "tpot_ms<=1,tpot_ms<=2", "stands 2 times: must stand once"),
        ("gpus", "8", "not part of a question (did you mean max_gpus?)"),
        ("<b>x</b>", "8", "not part of a question"),
    ],
)
def test_refused_with_what_is_allowed(name: str, text: str, says: str) -> None:
    said = refused(**{name: text})
    assert set(said) == {name}
    assert says in said[name]
    assert "left out" not in said[name]


def test_every_fault_is_told_not_only_the_first() -> None:
    assert set(refused(accelerators="h9", precisions="fp9", max_gpus="x", objective="y", limits="z")) == {
        "accelerators", "precisions", "max_gpus", "objective", "limits",
    }  # fmt: skip


def test_a_rate_is_asked_for_where_the_bill_is_made_small() -> None:
    with pytest.raises(InputError) as caught:
        question_from_texts(BASE.with_(qps=0.0), {"objective": "usd_per_hour"})
    assert [fault.field for fault in caught.value.faults] == ["objective"]


def several(values: object) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=4).map(tuple)


SIDES = st.tuples(st.sampled_from(LIMITED), st.booleans())
LIMITS = st.dictionaries(SIDES, st.floats(0, 1e12), max_size=4).map(
    lambda found: tuple(Limit(field, at_most, value) for (field, at_most), value in found.items())
)


@given(
    accelerators=several(accelerator_ids()), precisions=several(describe("weights").options),
    caches=several(describe("kv").options), modes=several(describe("prefill").options), chunks=several(range(0, 9999, 7)),
    drafts=several(range(33)), max_gpus=st.integers(1, MOST_GPUS), objective=st.sampled_from(OBJECTIVES), limits=LIMITS,
)  # fmt: skip
def test_what_is_written_is_read_back(**values: object) -> None:
    question = Question(scenario=BASE, **values)
    assert question_from_texts(BASE, question_texts(question)) == question
