"""The one path to plans: tables of rows, reasons in place, and inputs that cannot work."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from planner.candidates import candidates
from planner.evaluate import evaluate, evaluate_setting
from planner.physics.weights import weight_bytes
from planner.plan import BINDS, Plans
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from tests.asking import one, plan, setting, table

LIMITS = ("b_max", "b_max_kv", "b_max_kv_mean", "kv_capacity_tokens", "kv_capacity_tokens_rank")


def row(at: Any, batch: object = None, **degrees: object) -> Plans:
    """One row, with every floating-point slip an error."""
    with np.errstate(all="raise", under="ignore"):
        return table(at, layout(**degrees), batch)


def why(found: Plans) -> str:
    return found.reasons[int(found.reason[0])]


def binds(found: Plans) -> str:
    return BINDS[int(found.binds[0])]


def llama(**changes: Any) -> Any:
    return setting(**{"model": "llama-3.1-70b", **changes})


# --- tables ---------------------------------------------------------------------------------------------------------


def test_rows_are_layout_by_layout() -> None:
    found = table(llama(), layout(tp=[4, 8]), [1, 2, 3])
    assert found.tp.tolist() == [4, 4, 4, 8, 8, 8]
    assert found.batch.tolist() == [1, 2, 3, 1, 2, 3]


def test_every_column_has_every_row() -> None:
    found = table(llama(), layout(tp=[4, 8]), [1, 2, 3])
    assert {len(getattr(found, f.name)) for f in fields(Plans) if f.name != "reasons"} == {6}


def test_without_batches_each_layout_stands_at_its_own_largest() -> None:
    found = table(llama(), layout(tp=[4, 8]))
    assert found.batch.tolist() == np.maximum(found.b_max, 1).tolist()


def test_a_batch_for_each_layout() -> None:
    batches = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = evaluate_setting(llama(), candidates(layout(tp=[4, 8]), batches))
    assert found.batch.tolist() == [1, 2, 3, 4]


def test_a_scenario_and_its_setting_give_the_same_table() -> None:
    asked = candidates(layout(tp=[4, 8]))
    by_scenario, by_setting = evaluate(Scenario(model="llama-3.1-70b"), asked), evaluate_setting(llama(), asked)
    assert by_scenario.tpot_ms.tolist() == by_setting.tpot_ms.tolist()


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_blocks_do_not_change_numbers(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = candidates(layout(tp=np.tile([1.0, 2.0, 4.0, 8.0], 8)), np.arange(1.0, 12.0)[None, :])
    whole = evaluate_setting(llama(), asked)
    monkeypatch.setattr(import_module("planner.evaluate"), "BLOCK_ROWS", rows)
    pieces = evaluate_setting(llama(), asked)
    for field in fields(Plans):
        if field.name != "reasons":
            np.testing.assert_allclose(
                getattr(whole, field.name), getattr(pieces, field.name), rtol=1e-12, err_msg=field.name
            )


def test_no_candidates_make_an_empty_table() -> None:
    found = evaluate_setting(llama(), candidates(layout(tp=np.zeros(0))))
    assert len(found) == 0


# --- layouts that cannot be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("degrees", "words"),
    [
        ({"tp": 3}, "attention heads"),
        ({"tp": 8, "dcp": 4}, "dcp above tp / 8"),
        ({"tp": 8, "ep": 8}, "mixture of experts"),
    ],
)
def test_an_impossible_layout_is_a_row_with_a_reason(degrees: dict[str, int], words: str) -> None:
    found = row(llama(), **degrees)
    assert binds(found) == "layout"
    assert words in why(found)
    assert [found.fits[0], found.engine_ok[0], found.meets_sla[0]] == [False, False, False]
    assert found.b_max[0] == 0
    assert np.isnan(found.tpot_ms[0])


@pytest.mark.parametrize("degrees", [{"pp": 2}, {"dp": 2}, {"cp": 2}, {"dcp": 2}, {"dp": 2, "ep": 16}, {"tp": 16}])
def test_every_degree_has_memory_and_speed(degrees: dict[str, int]) -> None:
    found = row(setting(model="deepseek-v3", gpu="b200-sxm", weights="fp8-block"), **{"tp": 8, **degrees})
    assert why(found) == ""
    assert found.tpot_ms[0] > 0


# --- models, lengths and precisions that cannot be -------------------------------------------------------------------


def test_weights_that_do_not_fit() -> None:
    found = row(llama(), tp=1)
    assert binds(found) == "weights"
    assert found.reasons[int(found.reason[0])] == "the weights and workspace leave no room for a cache"
    assert found.kv_pool_bytes[0] == 0
    assert all(getattr(found, name)[0] == 0 for name in LIMITS)


def test_a_pool_smaller_than_one_sequence() -> None:
    found = row(llama(isl=120_000, osl=1000, model="llama-2-7b", max_len=200_000), tp=1)
    assert binds(found) in ("kv", "engine")
    found = row(setting(model="bloom-176b", gpu="h200-sxm", isl=2000, osl=40, weights="int4", util=0.72), tp=1)
    assert binds(found) in ("kv", "weights")
    assert found.b_max[0] == 0


def test_lengths_beyond_the_models_longest() -> None:
    found = row(llama(isl=131_072, osl=1), tp=8)
    assert binds(found) == "engine"
    assert "longest sequence" in why(found)
    assert not found.engine_ok[0]


def test_a_longest_sequence_of_ones_own() -> None:
    found = row(llama(isl=131_072, osl=1, max_len=200_000, sla_ttft_ms=3_600_000.0, sla_tpot_ms=1000.0), tp=8)
    assert found.engine_ok[0]


@pytest.mark.parametrize("osl", [1, 2, 10_000_000])
@pytest.mark.parametrize("isl", [1, 2, 8192, 8193, 10_000_000])
@pytest.mark.parametrize("profile", ["measured", "textbook"])
def test_any_length_within_limits_is_a_row(isl: int, osl: int, profile: str) -> None:
    for name in ("llama-3.1-70b", "glm-5.2", "qwen3-next-80b-a3b", "gpt-oss-120b"):
        found = row(setting(model=name, profile=profile, isl=isl, osl=osl, gpu="b200-sxm"), tp=8)
        assert len(found) == 1


def test_one_output_token_has_no_tpot() -> None:
    found = row(llama(osl=1), tp=8)
    assert np.isnan(found.tpot_ms[0])
    assert found.ttft_ms[0] > 0
    assert found.b_max[0] > 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": "mxfp4", "engine": "vllm-ascend", "gpu": "ascend-910c-die"}, "weight precision"),
        ({"kv": "int8"}, "cache precision"),
    ],
)
def test_what_the_engine_does_not_serve(changes: dict[str, str], words: str) -> None:
    found = row(llama(**changes), tp=8)
    assert binds(found) == "engine"
    assert words in why(found)
    assert not found.engine_ok[0]


def test_a_prefill_pool_that_cannot_hold_the_model_is_a_reason() -> None:
    found = row(llama(prefill="disaggregated", prefill_tp=1), tp=8)
    assert "prefill pool" in why(found)
    assert not found.meets_sla[0]
    assert np.isnan(found.tpot_ms[0])


def test_nothing_is_sized_for_a_promise_that_no_batch_keeps() -> None:
    found = row(llama(weights="fp8", qps=20.0, sla_ttft_ms=50.0), tp=4)
    assert np.isnan(found.gpus[0])
    assert np.isnan(found.usd_per_hour[0])


@pytest.mark.parametrize(("batch", "words"), [(1e6, "larger than the cache pool"), (1000, "promise at this batch")])
def test_a_batch_that_does_not_do_says_why(batch: float, words: str) -> None:
    found = row(llama(sla_tpot_ms=20.0, sla_ttft_ms=5000.0, isl=64, osl=64), batch, tp=8)
    assert words in why(found)


def test_a_batch_beyond_the_engines_seats() -> None:
    found = row(llama(isl=64, osl=64, max_seqs=16), 17, tp=8)
    assert why(found) == "the batch is larger than the engine's limit of running sequences"
    assert not found.engine_ok[0]


def test_a_promise_that_cannot_be_kept_names_the_promise() -> None:
    slow_token, slow_first = row(llama(sla_tpot_ms=0.01), tp=8), row(llama(sla_ttft_ms=0.01), tp=8)
    assert (binds(slow_token), binds(slow_first)) == ("tpot", "ttft")
    assert slow_token.b_max_sla[0] == slow_first.b_max_sla[0] == 0


def test_what_binds_is_the_smallest_limit() -> None:
    loose = {"sla_ttft_ms": 3_600_000.0, "sla_tpot_ms": 3_600_000.0}
    assert binds(row(llama(**loose), tp=4)) == "kv"
    assert binds(row(llama(**loose, max_seqs=4), tp=8)) == "engine"
    assert binds(row(llama(sla_tpot_ms=12.0), tp=8)) == "tpot"


def test_nothing_binds_falsely_where_the_search_ends() -> None:
    """A tiny model without promise, seats or a growing cache: the search stops, the promise still holds there."""
    loose = {"sla_ttft_ms": 3_600_000.0, "sla_tpot_ms": 3_600_000.0, "prefill": "excluded", "profile": "textbook"}
    found = row(setting(model="opt-125m", gpu="b300-sxm", isl=1, osl=2, **loose), tp=1)
    assert found.b_max_kv[0] > found.b_max_sla[0]
    assert binds(found) == "none"


def test_verdicts_are_never_unknown() -> None:
    at = setting(model="deepseek-v3", weights="fp8-block", gpu="h200-sxm")
    found = table(at, layout(tp=[1, 3, 8, 16, 8], dp=[1, 1, 1, 1, 2]), [1, 1e5])
    for name in ("fits", "meets_sla", "engine_ok"):
        assert getattr(found, name).dtype == np.bool_
    assert not np.isnan(np.stack([getattr(found, name) for name in LIMITS])).any()


def test_an_unfit_row_is_never_good() -> None:
    at = setting(model="llama-3.1-70b")
    found = table(at, layout(tp=[1, 2, 4, 8]), [1, 64, 4096, 100_000])
    assert not (found.goodput_tok_s[~found.fits & ~np.isnan(found.goodput_tok_s)] > 0).any()


def test_a_memory_of_another_size_only_moves_memory() -> None:
    at = llama()
    larger = replace(at, gpu=replace(at.gpu, visible_memory=100e9, framework_memory=100e9))
    small, large = table(at, layout(4), 8), table(larger, layout(4), 8)
    assert large.kv_pool_bytes[0] > small.kv_pool_bytes[0]
    assert large.tpot_ms[0] == small.tpot_ms[0]


def test_weights_in_the_table_are_those_of_the_physics() -> None:
    at = llama(weights="fp8")
    expected = weight_bytes(at.model, at.machine.formats, layout(8), 0.0, at.convention)
    assert table(at, layout(8)).weights_bytes[0] == one(expected)


def test_the_plan_is_the_row() -> None:
    found = table(llama(tp=8), layout(8))
    assert plan(model="llama-3.1-70b", tp=8).tpot_ms == found.tpot_ms[0]
