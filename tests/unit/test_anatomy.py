"""Anatomy: every parameter once, steps that agree with the plan's own ledger, a ridge that is met where it is said."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from planner.anatomy import BATCHES, EXAMPLE_BATCH, TILES, anatomy_of, roof_of
from planner.anatomy_parts import PARTS, parts_of
from planner.anatomy_steps import alone, steps_of
from planner.catalog.accelerators import accelerator, accelerator_ids
from planner.catalog.models import model, model_ids
from planner.physics.tiles import expected_tiles
from planner.setting import resolve
from planner.single import plan_of
from planner.specs.precision import WEIGHTS
from planner.specs.scenario import Scenario
from tests import asking
from tests.asking import column, total

HALF = Scenario(weights="fp8", tp=4)
SCENARIOS = {
    "dense": HALF,
    "textbook": Scenario(model="glm-5.2", weights="fp8", profile="textbook", prefill="excluded"),
    "latent": Scenario(model="deepseek-v3", weights="fp8-block", gpu="h200-sxm", tp=8),
    "index": Scenario(model="glm-5.2", weights="fp8", isl=32_768),
    "hybrid": Scenario(model="qwen3-next-80b-a3b", tp=4),
    "window": Scenario(model="gpt-oss-120b", weights="mxfp4"),
    "nominal": Scenario(model="llama-70b-nominal", weights="fp8", tp=4, profile="textbook", prefill="excluded"),
    "tied": Scenario(model="qwen3-0.6b"),
    "no attention in most layers": Scenario(model="nemotron-3-nano", weights="fp8"),
}
EACH = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


@pytest.mark.parametrize("name", model_ids())
def test_every_parameter_is_in_one_part(name: str) -> None:
    spec = model(name)
    parts = parts_of(spec)
    assert sum(part.params for part in parts) == spec.total_params + spec.mtp_params + (spec.vision_params or 0)
    looked_up = 0 if spec.tied or spec.nominal_params else spec.embed_params
    assert sum(part.active for part in parts) == spec.active_params - looked_up
    assert all(0 <= part.active <= part.params and part.params > 0 for part in parts)
    assert [part.name for part in parts] == [name for name in PARTS if name in {part.name for part in parts}]


def test_a_tied_head_is_active_and_a_table_that_is_only_looked_up_is_not() -> None:
    tied = {part.name: part for part in parts_of(model("qwen3-0.6b"))}
    assert tied["embedding"].active == tied["embedding"].params
    assert "head" not in tied
    untied = {part.name: part for part in parts_of(model("llama-3.1-70b"))}
    assert untied["embedding"].active == 0
    assert untied["head"].params == 8192 * 128_256


@EACH
def test_a_step_is_the_ledger_of_one_device(scenario: Scenario) -> None:
    found, setting = anatomy_of(scenario), resolve(scenario)
    ledger = asking.decode_ledger(setting, found.batch, setting.decoding.context)
    assert found.decode.flops == pytest.approx(sum(total(e, "flops") for e in ledger), rel=1e-12)
    assert found.decode.moved == pytest.approx(sum(total(e, "hbm_bytes") for e in ledger), rel=1e-9)
    assert found.here.moved[0] == pytest.approx(found.decode.moved, rel=1e-12)


def test_the_textbook_moves_weights_cache_and_index_and_nothing_else() -> None:
    found = anatomy_of(SCENARIOS["textbook"])
    assert found.steps.activations == pytest.approx(np.zeros(BATCHES.size), abs=1.0)
    assert found.steps.weights[0] == pytest.approx(found.active - 1_169_664, rel=1e-9), "one byte a matrix weight"


@EACH
def test_reads_rise_to_all_weights_and_no_further(scenario: Scenario) -> None:
    found = anatomy_of(scenario)
    assert np.all(np.diff(found.steps.weights) >= 0)
    assert np.all(found.steps.weights <= found.stored_weights * (1 + 1e-12))
    assert np.all(np.diff(found.steps.intensity) > 0)
    assert np.all(found.steps.intensity <= found.steps.weights_intensity * (1 + 1e-12))
    assert np.all(found.steps.intensity < found.limit * (1 + 1e-9))


@EACH
def test_the_ridge_is_first_reached_at_the_crossing(scenario: Scenario) -> None:
    found, placed = anatomy_of(scenario), alone(resolve(scenario))
    for batch, measure in ((found.crossing, "intensity"), (found.weights_crossing, "weights_intensity")):
        if batch is None:
            assert found.never
            continue
        around = getattr(steps_of(placed, column(max(batch - 1, 1), batch), found.context), measure)
        assert around[1] >= found.roof.ridge
        assert batch == 1 or around[0] < found.roof.ridge


def test_the_limit_is_what_huge_batches_approach() -> None:
    for scenario in SCENARIOS.values():
        found, placed = anatomy_of(scenario), alone(resolve(scenario))
        far = steps_of(placed, column(1e9), found.context)
        assert far.intensity[0] == pytest.approx(found.limit, rel=1e-3)


@EACH
def test_the_layout_plays_no_part(scenario: Scenario) -> None:
    found, other = anatomy_of(scenario), anatomy_of(scenario.with_(tp=2))
    assert found.steps.moved == pytest.approx(other.steps.moved, rel=1e-12)
    assert found.limit == other.limit


def test_an_asked_imbalance_of_ranks_does_not_reach_a_lone_device() -> None:
    asked = SCENARIOS["latent"].with_(imbalance=2.0, at_batch=64)
    assert anatomy_of(asked).steps.moved == pytest.approx(anatomy_of(SCENARIOS["latent"]).steps.moved)


def test_the_batch_is_the_plans_or_what_was_asked_or_an_example() -> None:
    assert (anatomy_of(HALF).batch, anatomy_of(HALF).served) == (plan_of(HALF).batch, True)
    assert anatomy_of(HALF.with_(at_batch=8)).batch == 8
    nowhere = Scenario(model="glm-5.2", weights="fp8")
    assert (anatomy_of(nowhere).batch, anatomy_of(nowhere).served) == (EXAMPLE_BATCH, False)
    assert (anatomy_of(nowhere.with_(at_batch=7)).batch, anatomy_of(nowhere.with_(at_batch=7)).served) == (7, False)


def test_a_dense_model_has_no_routing_and_reads_all_weights() -> None:
    found = anatomy_of(HALF)
    assert found.routing is None
    assert found.steps.weights == pytest.approx(np.full(BATCHES.size, found.stored_weights))


def test_reads_of_each_kind_of_cache() -> None:
    """Keys and values: everything stored is read. A sparse index: at most top-k tokens are. A state: read and written."""
    dense = anatomy_of(HALF).reads
    assert dense.cache == pytest.approx(dense.stored)
    sparse = anatomy_of(SCENARIOS["index"]).reads
    assert np.ptp(sparse.cache[sparse.context >= 2048]) == 0
    assert sparse.index[-1] / sparse.context[-1] == pytest.approx(21 * 132)
    hybrid = anatomy_of(SCENARIOS["hybrid"]).reads
    assert np.ptp(hybrid.state) == 0
    assert hybrid.stored == pytest.approx(hybrid.cache + hybrid.state / 2)


def test_a_prompt_is_read_in_as_the_engine_cuts_it() -> None:
    whole, cut = anatomy_of(HALF), anatomy_of(HALF.with_(chunk=256))
    assert cut.prompt.tokens == whole.prompt.tokens == 1024
    assert cut.prompt.moved - whole.prompt.moved == pytest.approx(3 * whole.stored_weights, rel=1e-3)
    assert whole.prompt.intensity > whole.roof.ridge > cut.prompt.intensity


@pytest.mark.parametrize("name", accelerator_ids())
def test_the_ridge_is_that_of_a_peak_in_the_catalogue(name: str) -> None:
    gpu = accelerator(name)
    for precision in WEIGHTS.values():
        roof = roof_of(gpu, precision)
        assert roof.ridge == pytest.approx(roof.peak / gpu.bandwidth)
        if roof.math != "bf16":
            assert roof.peak == gpu.peak[precision.math]


def test_a_precision_without_a_faster_peak_computes_in_bf16() -> None:
    a100 = accelerator("a100-80g-sxm")
    roof = roof_of(a100, WEIGHTS["fp8"])
    assert (roof.math, roof.wanted, roof.peak) == ("bf16", "fp8", a100.peak["bf16"])
    b300 = accelerator("b300-sxm")
    slow = roof_of(b300, WEIGHTS["int8"])
    assert b300.peak["int8"] < b300.peak["bf16"], "INT8 serving computes in INT8 even where that is slow"
    assert (slow.math, slow.peak) == ("int8", b300.peak["int8"])


@pytest.mark.parametrize("share", [8 / 256, 10 / 512, 2 / 8, 1 / 128, 1.0])
@pytest.mark.parametrize("tile", TILES)
def test_expected_tiles_are_those_of_the_binomial_distribution(share: float, tile: float) -> None:
    """E⌈n/m⌉ is the sum over j of the chance of more than j·m tokens."""
    for batch in (1.0, 7.0, 64.0, 2048.0, 16_384.0):
        edges = np.arange(0.0, batch, tile)
        assert expected_tiles(column(batch), share, tile)[0] == pytest.approx(
            float(np.sum(binom.sf(edges, batch, share))), rel=1e-6
        )
