"""What must hold of plans whatever the scenario: rows, limits, monotony, and time that covers the work done in it."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.candidates import candidates
from planner.catalog.accelerators import accelerator_ids
from planner.catalog.models import model_ids
from planner.confidence import ENDS
from planner.evaluate import evaluate
from planner.physics import forward, passes, roofline
from planner.plan import BINDS, Plans
from planner.serving import prefill
from planner.setting import Setting, resolve
from planner.single import plan_of
from planner.specs.layout import Layout, layout
from planner.specs.model import GroupedAttention
from planner.specs.scenario import Scenario
from tests.asking import column, one, placed, table, tpot_seconds

QUICK = settings(max_examples=40, derandomize=True, deadline=None)
MODELS = st.sampled_from(model_ids())
EXPERT_MODELS = st.sampled_from(
    ("deepseek-v3", "glm-5.2", "qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-120b", "qwen3-next-80b-a3b")
)
LENGTHS = st.integers(1, 20_000)
OUTPUTS = st.integers(2, 4000)


@st.composite
def scenarios(draw: st.DrawFn, models: st.SearchStrategy[str] = MODELS, **fixed: Any) -> Scenario:
    """Any model on any accelerator under any engine, lengths, promise and formats."""
    chosen = {
        "model": draw(models),
        "gpu": draw(st.sampled_from(accelerator_ids())),
        "engine": draw(st.sampled_from(("vllm", "sglang", "trtllm"))),
        "profile": draw(st.sampled_from(("measured", "textbook"))),
        "weights": draw(st.sampled_from(("bf16", "fp8", "int4"))),
        "kv": draw(st.sampled_from(("bf16", "fp8"))),
        "prefill": draw(st.sampled_from(("colocated", "excluded"))),
        "isl": draw(LENGTHS),
        "osl": draw(OUTPUTS),
        "prefix": draw(st.sampled_from((0.0, 0.5, 1.0))),
        "chunk": draw(st.sampled_from((0, 512))),
        "sla_ttft_ms": draw(st.sampled_from((200.0, 5000.0, 3_600_000.0))),
        "sla_tpot_ms": draw(st.sampled_from((15.0, 50.0, 500.0))),
    }
    return Scenario(**{**chosen, **fixed})


@cache
def at(asked: Scenario) -> Setting:
    return resolve(asked)


def quiet(asked: Scenario, where: Layout, batch: object = None) -> Plans:
    """A table, with every floating-point slip an error."""
    with np.errstate(all="raise", under="ignore"):
        return table(at(asked), where, batch)


TP = (1.0, 2.0, 3.0, 4.0, 8.0, 16.0)


# --- tables -----------------------------------------------------------------------------------------------------------


@QUICK
@given(scenarios())
def test_a_row_of_a_table_is_the_row_alone(asked: Scenario) -> None:
    batches = [1.0, 17.0, 300.0]
    whole = quiet(asked, layout(tp=TP, ep=[1, 2, 1, 4, 8, 16]), batches)
    for index in range(len(whole)):
        here = layout(tp=whole.tp[index], ep=whole.ep[index])
        alone = quiet(asked, here, whole.batch[index])
        for field in fields(Plans):
            if field.name != "reasons":
                np.testing.assert_allclose(
                    getattr(whole, field.name)[index], getattr(alone, field.name)[0], rtol=1e-12, err_msg=field.name
                )


@QUICK
@given(scenarios())
def test_a_layouts_own_largest_batch_does_not_depend_on_its_neighbours(asked: Scenario) -> None:
    whole = quiet(asked, layout(tp=TP))
    for index, tp in enumerate(TP):
        alone = quiet(asked, layout(tp=tp))
        assert whole.b_max[index] == alone.b_max[0]
        assert whole.batch[index] == alone.batch[0]


@QUICK
@given(scenarios())
def test_verdicts_and_limits_are_never_unknown(asked: Scenario) -> None:
    found = quiet(asked, layout(tp=TP), [1.0, 1e6])
    assert found.fits.dtype == found.meets_sla.dtype == found.engine_ok.dtype == np.bool_
    for name in ("b_max", "b_max_kv", "b_max_kv_mean", "kv_capacity_tokens", "weights_bytes", "kv_pool_bytes", "batch"):
        assert np.all(np.isfinite(getattr(found, name)))
        assert np.all(getattr(found, name) >= 0)


@QUICK
@given(scenarios())
def test_what_does_not_stand_has_a_reason(asked: Scenario) -> None:
    found = quiet(asked, layout(tp=TP), [1.0, 1e6])
    stands = found.fits & found.engine_ok & found.meets_sla
    assert np.all(found.reason[~stands] > 0)
    assert np.all(found.reason[stands] == 0)


@QUICK
@given(scenarios())
def test_only_what_stands_is_good(asked: Scenario) -> None:
    found = quiet(asked, layout(tp=TP), [1.0, 64.0, 1e5])
    good = np.nan_to_num(found.goodput_tok_s) > 0
    assert np.all((found.fits & found.engine_ok & found.meets_sla)[good])


# --- memory -----------------------------------------------------------------------------------------------------------


@QUICK
@given(scenarios())
def test_the_largest_batch_by_cache_fits_and_one_more_does_not(asked: Scenario) -> None:
    for tp in (4.0, 8.0):
        largest = quiet(asked, layout(tp=tp)).b_max_kv[0]
        assume(0 < largest < 1e9)
        fits = quiet(asked, layout(tp=tp), [largest, largest + 1])
        possible = fits.binds[0] != BINDS.index("layout")
        assert fits.fits.tolist() == [possible, False]


@QUICK
@given(scenarios())
def test_mean_lengths_never_hold_fewer(asked: Scenario) -> None:
    found = quiet(asked, layout(tp=TP))
    assert np.all(found.b_max_kv_mean >= found.b_max_kv)


@QUICK
@given(scenarios(engine="vllm", profile="measured"))
def test_the_parts_of_memory_add_up(asked: Scenario) -> None:
    found = quiet(asked, layout(tp=TP))
    parts = found.weights_bytes + found.activation_bytes + found.graph_bytes + found.runtime_bytes + found.kv_pool_bytes
    room = found.kv_pool_bytes > 0
    np.testing.assert_allclose(parts[room], found.usable_bytes[room], rtol=1e-12)
    assert np.all(parts[~room] >= found.usable_bytes[~room] * (1 - 1e-12))


@QUICK
@given(scenarios(), st.sampled_from(("bf16", "fp8")))
def test_the_cache_format_changes_the_cache_alone(asked: Scenario, other: str) -> None:
    one_format, another = quiet(asked, layout(tp=TP)), quiet(asked.with_(kv=other), layout(tp=TP))
    for name in ("weights_bytes", "activation_bytes", "graph_bytes", "runtime_bytes", "kv_pool_bytes", "usable_bytes"):
        assert getattr(one_format, name).tolist() == getattr(another, name).tolist()


@QUICK
@given(scenarios())
def test_the_cache_of_a_gpu_is_flat_once_tp_passes_the_kv_heads(asked: Scenario) -> None:
    groups = at(asked).model.groups
    assume(all(isinstance(g.attention, GroupedAttention) or g.attention is None for g in groups))
    heads = max(g.attention.kv_heads for g in groups if isinstance(g.attention, GroupedAttention))
    found = quiet(asked, layout(tp=[heads, 2 * heads, 4 * heads]))
    assert len(set(found.kv_bytes_per_token.tolist())) == 1


@QUICK
@given(scenarios(profile="textbook"), st.integers(1, 20_000))
def test_longer_requests_never_fit_more(asked: Scenario, more: int) -> None:
    longer = asked.with_(isl=asked.isl + more)
    assert np.all(quiet(longer, layout(tp=TP)).b_max_kv <= quiet(asked, layout(tp=TP)).b_max_kv)


@QUICK
@given(scenarios(), st.sampled_from((0.5, 0.7, 0.95)))
def test_a_larger_share_never_fits_less(asked: Scenario, share: float) -> None:
    less, more = quiet(asked.with_(util=share), layout(tp=TP)), quiet(asked.with_(util=1.0), layout(tp=TP))
    assert np.all(more.b_max_kv >= less.b_max_kv)


# --- speed ------------------------------------------------------------------------------------------------------------


@QUICK
@given(scenarios(prefill="excluded"))
def test_tpot_rises_with_batch(asked: Scenario) -> None:
    times = tpot_seconds(at(asked), np.arange(1.0, 2000.0, 7.0), layout(tp=8))
    assert np.all(np.diff(times) >= -1e-12 * times[..., :1])


@QUICK
@given(scenarios(prefill="colocated"))
def test_tpot_rises_with_batch_when_prompts_share_the_gpus(asked: Scenario) -> None:
    """The search for the largest batch relies on it: a promise once broken stays broken."""
    times = tpot_seconds(at(asked), np.arange(1.0, 2000.0, 7.0), layout(tp=8))
    assert np.all(np.diff(times) >= -1e-12 * times[..., :1])


@QUICK
@given(scenarios(EXPERT_MODELS, prefill="colocated"), st.integers(2, 16))
def test_tpot_rises_with_batch_for_short_answers_of_experts(asked: Scenario, osl: int) -> None:
    times = tpot_seconds(at(asked.with_(osl=osl)), np.arange(1.0, 300.0), layout(tp=8))
    assert np.all(np.diff(times) >= -1e-12 * times[..., :1])


@QUICK
@given(scenarios(prefill="colocated", profile="textbook"), st.sampled_from((1, 8, 64, 512)))
def test_a_step_takes_the_time_of_all_its_operations(asked: Scenario, batch: int) -> None:
    """A step of B sequences carries B / osl prompts: no roofline runs their operations faster than the peak."""
    s, where = at(asked), layout(tp=8)
    decode = forward.forward(placed(s, tp=8), passes.decode_pass(column(batch), column(s.decoding.context)))
    prompt = prefill.chunk_ledger(placed(s, tp=8), prefill.prompt(asked.isl, asked.prefix, 0, float("inf")))

    def compute(ledger: Any) -> float:
        timed = [e.work for e in ledger if e.group != "host"]
        return sum(one(roofline.over_kernels(roofline.terms(w, s.profile)[0] * w.launches)) for w in timed)

    least = compute(decode) + batch / asked.osl * compute(prompt)
    assert one(tpot_seconds(s, batch, where)) >= least * (1 - 1e-9)


@QUICK
@given(scenarios(), st.integers(1, 20_000))
def test_tpot_rises_with_context(asked: Scenario, more: int) -> None:
    asked = asked.with_(chunk=0)
    short, long = (tpot_seconds(at(s), [1, 64], layout(tp=8)) for s in (asked, asked.with_(isl=asked.isl + more)))
    assert np.all(long >= short * (1 - 1e-12))


@QUICK
@given(scenarios())
def test_the_promise_holds_at_its_largest_batch_and_not_at_one_more(asked: Scenario) -> None:
    s = at(asked)
    found = quiet(asked, layout(tp=8))
    largest = found.b_max_sla[0]
    assume(np.isfinite(largest) and 0 < largest < 131_072)
    rows = quiet(asked, layout(tp=8), [largest, largest + 1])
    assert rows.meets_sla.tolist() == [True, False]
    assert s.scenario == asked


@QUICK
@given(scenarios())
def test_the_largest_batch_is_the_smallest_limit(asked: Scenario) -> None:
    found = quiet(asked, layout(tp=TP))
    live = (found.b_max > 0) & np.isfinite(found.b_max_sla)
    assert np.all(found.b_max[live] <= np.minimum(found.b_max_kv, found.b_max_sla)[live])


@QUICK
@given(scenarios())
def test_a_looser_promise_never_admits_less(asked: Scenario) -> None:
    tight = quiet(asked, layout(tp=TP)).b_max
    looser = asked.with_(sla_tpot_ms=2 * asked.sla_tpot_ms, sla_ttft_ms=min(2 * asked.sla_ttft_ms, 3.6e6))
    assert np.all(quiet(looser, layout(tp=TP)).b_max >= tight)


@QUICK
@given(scenarios())
def test_throughput_is_batch_over_tpot(asked: Scenario) -> None:
    found = quiet(asked, layout(tp=8), [1.0, 40.0])
    assume(not np.isnan(found.tpot_ms).any())
    np.testing.assert_allclose(found.output_tok_s, found.batch / (found.tpot_ms / 1e3), rtol=1e-12)


@QUICK
@given(scenarios(), st.floats(0.1, 20.0), st.floats(0.001, 500.0) | st.just(0.0))
def test_money_follows_devices(asked: Scenario, price: float, qps: float) -> None:
    found = quiet(asked.with_(price=price, qps=qps), layout(tp=TP), [8.0])
    live = ~np.isnan(found.gpus)
    np.testing.assert_allclose(found.usd_per_hour[live], found.gpus[live] * price, rtol=1e-12)
    assert np.all(found.gpus[live] == found.replicas[live] * found.gpus_per_replica[live])


@QUICK
@given(scenarios(), st.floats(0.1, 200.0))
def test_more_requests_never_need_fewer_replicas(asked: Scenario, qps: float) -> None:
    few, many = (quiet(asked.with_(qps=rate), layout(tp=8), [32.0]).replicas[0] for rate in (qps, 2 * qps))
    assume(np.isfinite(few))
    assert many >= few


@QUICK
@given(scenarios(), st.sampled_from((0.0, 8.0)))
def test_a_band_holds_its_estimate_and_the_surest_batch_is_no_larger(asked: Scenario, qps: float) -> None:
    found = plan_of(asked.with_(tp=8, qps=qps))
    for figure, ends in ENDS.items():
        value, (low, high) = getattr(found, figure), (getattr(found, end) for end in ends)
        assert (value is None) == (low is None) == (high is None)
        assert value is None or low <= value <= high
        if asked.profile == "textbook":
            assert low == value == high
    assert 0 <= found.b_max_sure <= found.b_max
    if asked.profile == "textbook":
        assert found.b_max_sure == found.b_max


def test_ranks_that_share_a_context_take_as_long_in_a_table_as_alone():
    """How many contexts fit a scale-up domain differs from row to row: TP4 leaves room for two, TP8 for one."""
    scenario = Scenario(model="deepseek-v3", gpu="h200-sxm", weights="fp8", isl=128, osl=16, sla_ttft_ms=5000.0)
    batch = np.array([[1.0]])
    alone = evaluate(scenario, candidates(layout(tp=4, dp=2, cp=2), batch))
    beside = evaluate(scenario, candidates(layout(tp=[4, 8, 16], dp=[2, 1, 1], cp=[2, 2, 1]), batch))
    assert beside.tpot_ms[0] == pytest.approx(alone.tpot_ms[0], rel=1e-12)
    assert beside.ttft_ms[0] == pytest.approx(alone.ttft_ms[0], rel=1e-12)
