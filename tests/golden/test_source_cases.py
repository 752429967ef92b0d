"""The numbers of the two source articles, from the planner's own plans and formulas.

`source_cases.json` holds every case: inputs, the right value, what the article prints, and why the two differ.
`expected` is checked by hand in the audit of the articles, never taken from this code; where an article is wrong
(`article_wrong`) the right value stands. `fit` compares an unexplained table with the constants that were fitted to it
(presets/profiles/article.toml). Rules without a number are listed (`rule`). No expression of a case is evaluated:
tests/sources puts inputs into the planner.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.catalog.accelerators import accelerator
from planner.catalog.article import parameters
from planner.catalog.profiles import profile
from planner.errors import InputError
from planner.specs.model import attention_params
from planner.specs.profile import conventions
from planner.specs.scenario import Scenario
from tests.sources.asked import plan, step_ms
from tests.sources.cases import CASES, FITS, MEASURES
from tests.sources.glm import glm, glm_groups

TESTED = [case for case in CASES if "expected" in case]
PRINTED = [case for case in TESTED if "article" in case]
FITTED = [case for case in CASES if "fit" in case]
RULES = [case for case in CASES if "rule" in case]


@pytest.mark.parametrize("case", TESTED, ids=lambda case: case["id"])
def test_the_right_value(case: dict[str, Any]) -> None:
    value = MEASURES[case["id"]](case["inputs"])
    assert value == pytest.approx(case["expected"], **case["tolerance"]), f"{case['quantity']} [{case['unit']}]"


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: case["id"])
def test_what_the_article_prints(case: dict[str, Any]) -> None:
    value = MEASURES[case["id"]](case["inputs"])
    assert value == pytest.approx(case["article"], abs=case["article_abs"]), f"{case['quantity']} [{case['unit']}]"


@pytest.mark.parametrize("case", FITTED, ids=lambda case: case["id"])
def test_what_the_article_prints_without_explanation(case: dict[str, Any]) -> None:
    value, fit = FITS[case["id"]](case["inputs"]), case["fit"]
    assert value == pytest.approx(fit["article"], **fit["tolerance"]), f"{case['quantity']} [{case['unit']}]"


def test_every_case_is_measured_fitted_or_a_rule() -> None:
    assert set(MEASURES) == {case["id"] for case in TESTED}
    assert set(FITS) == {case["id"] for case in FITTED}
    assert [case["id"] for case in CASES if not {"expected", "fit", "rule"} & set(case)] == []


def test_every_case_is_listed_once() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) == 298
    assert len(RULES) == 35


def test_what_reproduces_is_compared_with_the_print_and_what_is_wrong_is_not() -> None:
    wrong = [case for case in TESTED if case["verdict"] == "seed_error"]
    assert all("article_wrong" in case or "fit" in case for case in wrong)
    assert not any("article" in case for case in wrong)


def test_what_differs_says_why() -> None:
    assert all(case.get("why") for case in CASES if case["verdict"] in ("seed_error", "ambiguous", "needs_calibration"))


def test_the_fitted_constants_say_that_they_are_not_physical() -> None:
    named = {name for name, found in parameters().items() if not found.physical}
    assert {"eff_bw", "eff_flops", "host_sequence", "speculation_gain"} <= named
    assert all(found.source for found in parameters().values())


def test_the_article_profile_is_an_ordinary_one() -> None:
    h100 = accelerator("h100-sxm")
    found = profile("article", h100, "vllm")
    assert found.host_sequence == pytest.approx(0.119e-3)
    assert found.law("gemm", "bf16").eff_flops * found.law("gemm", "bf16").peak == pytest.approx(119.7e12, rel=1e-3)
    assert any("not physical" in note for note in found.notes)
    assert conventions("article") == conventions("textbook")


def test_no_scenario_can_plan_with_them() -> None:
    with pytest.raises(InputError):
        Scenario(profile="article")


# --- what the cases say in more than one number ---------------------------------------------------------------------


def test_glm_constants() -> None:
    """G1-03: hidden 6144, first 3 of 78 layers dense, 256 experts of which 8, top-2048, 21 index layers."""
    dense, sharing, own = glm_groups()
    assert (glm().hidden, glm().vocab) == (6144, 154_880)
    assert (dense.count, sharing.count, own.count) == (3, 57, 18)
    assert (own.ffn.count, own.ffn.top_k) == (256, 8)
    assert {g.attention.index.top_k for g in glm_groups()} == {2048}
    assert attention_params(sharing.attention) < attention_params(own.attention)


def test_tpot_at_batch_one_is_42_and_10_4_ms() -> None:
    assert round(step_ms(1, 0)) == 42
    assert step_ms(1, 0, 4) == pytest.approx(10.4, abs=0.05)


def test_largest_batches_by_kv() -> None:
    """The article's 413, 23, 206, 573, and 1,144 where it prints 2,352."""
    assert 411 <= plan(tp=4).b_max_kv <= 413
    assert 22 <= plan(weights="fp8").b_max_kv <= 23
    assert 205 <= plan(weights="fp8", tp=2).b_max_kv <= 206
    assert 572 <= plan(weights="fp8", tp=4).b_max_kv <= 573
    assert plan(weights="fp8", tp=4, kv="fp8").b_max_kv == 1144


def test_cache_binds_before_latency_without_prefill() -> None:
    """S9.3-06: the article says latency binds first; its own roofline says memory does."""
    found = plan(tp=4)
    assert found.binds == "kv"
    assert found.b_max == found.b_max_kv
    assert found.b_max_sla > 2 * found.b_max_kv


def test_a_token_costs_327_680_bytes() -> None:
    assert plan(tp=4).kv_bytes_per_token * 4 == 327_680


def test_prefill_on_the_same_gpus_lowers_the_batch_that_latency_allows() -> None:
    """The audit: 1,060 sequences by the bare roofline (1,037 with attention's own operations), 179 with prefill at 75 %."""
    alone, together = plan(tp=4).b_max_sla, plan(tp=4, prefill="colocated").b_max_sla
    assert alone == pytest.approx(1037, abs=1)
    assert together == pytest.approx(179, rel=0.25)
