"""The scenario: frozen defaults, strict values, faults that a person can act on."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from planner.errors import Fault, InputError
from planner.specs.fields import shown
from planner.specs.scenario import SCENARIO_FIELDS, Scenario, describe

DEFAULTS_V1 = {
    "v": 1, "c": None, "model": "llama-3.1-70b", "gpu": "h100-sxm", "engine": "vllm", "profile": "measured",
    "weights": "bf16", "kv": "bf16", "tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1, "dcp": 1, "redundant": 0,
    "imbalance": None, "overlap": False, "isl": 1024, "osl": 256, "prefix": 0.0, "qps": 0.0, "load": 0.8,
    "sla_ttft_ms": 200.0, "sla_tpot_ms": 50.0, "sla_pct": 50.0, "at_batch": None, "util": None, "max_len": None,
    "max_seqs": None, "token_budget": None, "chunk": 0, "prefill": "colocated", "prefill_gpu": None,
    "prefill_tp": None, "prefill_workers": None, "decode_workers": None, "kv_link_eff": None, "spec": 0,
    "accept": 0.8, "draft": 0.1, "fix_replicas": None, "spare": 0, "price": None, "price_kind": "on-demand",
    "provider": None, "lang": None, "x": None,
}  # fmt: skip
"""The contract's defaults. A link of version 1 means these for ever: a change here needs a new version."""


def faults(**values: object) -> tuple[Fault, ...]:
    with pytest.raises(InputError) as caught:
        Scenario.model_validate(values)
    return caught.value.faults


def fault(**values: object) -> Fault:
    found = faults(**values)
    assert len(found) == 1
    return found[0]


def test_defaults_of_link_version_1_never_change() -> None:
    assert dict(Scenario()) == DEFAULTS_V1
    assert tuple(DEFAULTS_V1) == SCENARIO_FIELDS


def test_equal_scenarios_hash_alike() -> None:
    assert hash(Scenario(sla_ttft_ms=200)) == hash(Scenario())
    assert len({Scenario(), Scenario(tp=1), Scenario(tp=2)}) == 2


def test_frozen() -> None:
    with pytest.raises(ValidationError):
        Scenario().tp = 2


def test_with_validates_again() -> None:
    assert Scenario().with_(tp=4).tp == 4
    with pytest.raises(InputError, match="tp = 0"):
        Scenario().with_(tp=0)
    with pytest.raises(InputError, match="did you mean tp"):
        Scenario().with_(tpp=2)


def test_every_fault_is_reported_not_only_the_first() -> None:
    found = faults(tp=0, isl=10**12, weights="fp16", sla_ttft_ms=math.nan, colour="red")
    assert [item.field for item in found] == ["weights", "tp", "isl", "sla_ttft_ms", "colour"]


def test_a_trillion_tokens_are_refused_with_the_allowed_range() -> None:
    assert str(fault(isl=10**12)) == "isl = 1000000000000: must be a whole number from 1 to 10,000,000 (tokens)"


def test_near_matches_are_offered() -> None:
    assert "did you mean fp8-block?" in fault(weights="fp8block").allowed
    assert "did you mean sla_tpot_ms?" in fault(sla_tpot=20).allowed


@pytest.mark.parametrize("value", [True, "4", 4.0, None, [4], 0, 1025, -1])
def test_a_degree_is_a_whole_number_and_nothing_else(value: object) -> None:
    assert fault(tp=value).field == "tp"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "50", 0.0, 3.7e6])
def test_a_promise_is_a_number_and_nothing_else(value: object) -> None:
    assert fault(sla_tpot_ms=value).field == "sla_tpot_ms"


@pytest.mark.parametrize("value", ["yes", 1, 0, "ON", None, ""])
def test_overlap_is_on_or_off(value: object) -> None:
    assert "on, off" in fault(overlap=value).allowed


def test_overlap_is_a_bool_inside_and_a_word_outside() -> None:
    assert Scenario.model_validate({"overlap": "on"}).overlap is True
    assert Scenario(overlap=True).model_dump()["overlap"] == "on"


def test_values_are_shortened_and_control_characters_escaped() -> None:
    assert shown("a" * 500) == "a" * 79 + "…"
    assert shown("a\x1b[31m\n\u202e") == r"a\x1b[31m\n\u202e"
    assert len(fault(model="\x00" * 500).value) <= 80
    assert "\n" not in str(fault(model="a\nb"))


@pytest.mark.parametrize("name", ["AWS\n", "=cmd()", "<script>", "", " AWS", "a" * 61])
def test_names_hold_nothing_that_another_program_could_run(name: str) -> None:
    assert fault(provider=name).field == "provider"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"prefill_tp": 2}, "prefill_tp"),
        ({"prefill_gpu": "h200-sxm", "prefill": "excluded"}, "prefill_gpu"),
        ({"kv_link_eff": 0.8}, "kv_link_eff"),
        ({"decode_workers": 2}, "decode_workers"),
        ({"accept": 0.9}, "accept"),
        ({"draft": 0.2}, "draft"),
        ({"max_len": 1279}, "max_len"),
        ({"at_batch": 300, "max_seqs": 256}, "at_batch"),
        ({"chunk": 4096, "token_budget": 2048}, "chunk"),
        ({"prefill": "disaggregated", "decode_workers": 2, "fix_replicas": 3}, "decode_workers"),
        ({"model": "custom"}, "x"),
        ({"x": "1abc"}, "x"),
        ({"profile": "custom"}, "profile"),
        ({"v": 2}, "v"),
    ],
)
def test_contradictions_are_refused(values: dict[str, object], field: str) -> None:
    assert fault(**values).field == field


@pytest.mark.parametrize(
    "values",
    [
        {"prefill": "disaggregated"},
        {"prefill": "disaggregated", "prefill_tp": 2, "decode_workers": 3, "fix_replicas": 3},
        {"accept": 0.8, "draft": 0.1},
        {"spec": 3, "accept": 0.0},
        {"max_len": 1280},
        {"at_batch": 512, "max_seqs": 256, "dp": 2},
        {"prefix": 1.0},
        {"price": 0.0},
        {"price": 2.5, "provider": "Lambda"},
        {"tp": 3, "ep": 7},
    ],
)
def test_what_defaults_make_harmless_is_not_refused(values: dict[str, object]) -> None:
    assert Scenario.model_validate(values)


@pytest.mark.parametrize("field", SCENARIO_FIELDS)
def test_every_field_says_what_it_means_and_allows(field: str) -> None:
    text = describe(field)
    assert text.meaning.endswith(".")
    assert "\n" not in text.meaning
    assert text.allowed.startswith("must be ")
    assert text.default == DEFAULTS_V1[field]
    assert (text.low is None) == (text.kind not in ("whole", "number"))
    assert bool(text.options) == (text.kind in ("menu", "switch"))
    assert text.optional == (text.default is None)


def test_bounds_are_allowed_and_what_lies_beyond_is_not() -> None:
    for field in SCENARIO_FIELDS:
        text = describe(field)
        if text.kind != "whole" or text.low is None or text.high is None:
            continue
        assert {item.field for item in faults(**{field: int(text.high) + 1})} == {field}
        assert {item.field for item in faults(**{field: int(text.low) - 1})} == {field}
