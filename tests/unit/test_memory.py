"""What fits: budgets of three engines, workspace, and whole sequences in a pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.accelerators import accelerator
from planner.catalog.engines import engine
from planner.catalog.models import model
from planner.physics import memory
from planner.physics.kv import EXACT
from planner.physics.profiling import Profiled
from planner.specs.layout import layout
from planner.specs.profile import MEASURED, TEXTBOOK
from planner.units import GIB
from tests.asking import column, one, plan

H100 = accelerator("h100-sxm")
VLLM = engine("vllm", None, H100)
SGLANG = engine("sglang", None, H100)
TRTLLM = engine("trtllm", None, H100)
LLAMA = model("llama-3.1-8b")


def space(activation: float, graphs: float, runtime: float) -> memory.Workspace:
    return memory.Workspace(column(activation), column(graphs), column(runtime))


def pool(rules: object, physical: float, share: float, weights: float, work: memory.Workspace) -> float:
    return one(memory.pool_bytes(rules, physical, share, column(weights), work))  # type: ignore[arg-type]


def test_vllm_takes_everything_from_its_share() -> None:
    rules = replace(VLLM, budget="total", graphs_in_budget=True)
    assert pool(rules, 100, 0.9, 40, space(5, 2, 3)) == pytest.approx(40)


def test_older_vllm_captures_graphs_outside_its_share() -> None:
    rules = replace(VLLM, budget="total", graphs_in_budget=False)
    assert pool(rules, 100, 0.9, 40, space(5, 2, 3)) == pytest.approx(42)


def test_sglang_keeps_workspace_in_what_its_share_leaves() -> None:
    """Its own log: 230.20 − 287.18 · 0.089 = 204.64 GiB, where 230.20 is what loading 56.98 GiB of weights left."""
    rules = replace(SGLANG, budget="static")
    assert pool(rules, 287.18, 0.911, 56.98, space(5, 2, 0)) == pytest.approx(204.64, abs=0.005)


def test_tensorrt_llm_takes_a_share_of_what_is_free() -> None:
    rules = replace(TRTLLM, budget="free")
    assert pool(rules, 100, 0.9, 40, space(5, 2, 3)) == pytest.approx(45)


@pytest.mark.parametrize("rules", [VLLM, SGLANG, TRTLLM], ids=lambda rules: rules.id)
def test_weights_that_do_not_fit_leave_less_than_nothing(rules: object) -> None:
    assert pool(rules, 80e9, 0.9, 140e9, space(1e9, 1e9, 1e9)) < 0


def test_activation_of_a_device_does_not_grow_with_tp() -> None:
    assert plan(model="llama-3.1-70b", tp=8).activation_bytes == plan(model="llama-3.1-70b", tp=4).activation_bytes


def test_graphs_are_a_base_and_a_share_of_the_weights() -> None:
    assert one(memory.graph_bytes(column(35e9), 0.7 * GIB, 0.01)) == pytest.approx(0.7 * GIB + 0.35e9)


def test_runtime_memory_is_that_of_the_nearest_degree_below() -> None:
    rules = replace(VLLM, runtime_bytes=((1, 10.0), (4, 40.0), (8, 80.0)))
    assert memory.runtime_bytes(rules, column(1, 2, 4, 6, 8, 64)).tolist() == [10, 10, 40, 40, 80, 80]


def test_the_textbook_has_no_workspace() -> None:
    run = Profiled(1024, 8192, 8192)
    found = memory.workspace(VLLM, column(1e10), LLAMA, layout(tp=8), run, 1e9, TEXTBOOK)
    assert (one(found.activation), one(found.graphs), one(found.runtime)) == (0, 0, 0)


def work(rules: object, weights: object, tp: object, hidden: float) -> memory.Workspace:
    run = Profiled(1024, 8192, 8192)
    return memory.workspace(rules, weights, LLAMA, layout(tp=tp), run, hidden, MEASURED)  # type: ignore[arg-type]


def test_what_the_driver_keeps_is_runtime() -> None:
    with_it, without = (work(VLLM, column(1e10), 1, hidden) for hidden in (5e8, 0.0))
    assert one(with_it.runtime) - one(without.runtime) == 5e8


def test_whole_sequences_are_counted() -> None:
    assert memory.sequences_held(column(100, 99.9, 9, -5), column(10), column(0), 1.0, column(1)).tolist() == [
        10,
        9,
        0,
        0,
    ]


def test_every_rank_holds_its_own() -> None:
    assert one(memory.sequences_held(column(95), column(10), column(0), 1.0, column(4))) == 36


def test_paging_wastes_its_share() -> None:
    assert one(memory.sequences_held(column(100), column(10), column(0), 0.96, column(1))) == 9


def test_tokens_are_counted_in_whole_blocks() -> None:
    assert memory.tokens_held(column(1000, 1599, 1600, -1), column(1), 1.0, 160).tolist() == [960, 1440, 1600, 0]


def test_blocks_and_windows_belong_to_engines() -> None:
    assert memory.allocation_rules(VLLM, 8192, TEXTBOOK) == EXACT
    found = memory.allocation_rules(VLLM, 8192, MEASURED)
    assert (found.block, found.slack, found.padded) == (16, 8191.0, True)
    assert not memory.allocation_rules(SGLANG, 8192, MEASURED).padded


def test_engines_leave_different_pools() -> None:
    pools = {
        name: plan(model="llama-3.1-70b", tp=4, engine=name).kv_pool_bytes for name in ("vllm", "sglang", "trtllm")
    }
    assert len(set(pools.values())) == 3


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_the_parts_of_vllms_memory_add_up(tp: int) -> None:
    """usable = weights + activation + graphs + runtime + pool; usable + withheld = physical."""
    found = plan(model="llama-3.1-8b", tp=tp)
    parts = found.weights_bytes + found.activation_bytes + found.graph_bytes + found.runtime_bytes + found.kv_pool_bytes
    assert parts == pytest.approx(found.usable_bytes, rel=1e-12)
    assert found.usable_bytes + found.withheld_bytes == found.physical_bytes


def test_a_start_up_of_llama_70b_by_hand() -> None:
    """vLLM 0.30 on H100 at TP4: 79.1 GiB · 0.92 less weights, 1.83 GiB of logits, 2.17 of runtime, graphs."""
    found = plan(model="llama-3.1-70b", tp=4)
    weights = (70_553_706_496 - 161 * 8192) * 2 / 4 + 161 * 8192 * 2
    logits = 15.3 * 1024 * 128_256
    graphs = 0.70 * GIB + 0.010 * weights
    assert found.kv_pool_bytes == pytest.approx(79.1 * GIB * 0.92 - weights - logits - graphs - 2.17 * GIB, rel=1e-9)


def test_a_share_that_is_not_free_is_refused() -> None:
    """H100 under vLLM: 0.51 GiB are gone at start, so 79.1 · 0.995 = 78.70 GiB are not there and 0.99 · 79.1 = 78.31 are."""
    assert not memory.starts(VLLM, H100.engine_memory, 0.995)
    assert memory.starts(VLLM, H100.engine_memory, 0.99)
    assert memory.starts(SGLANG, H100.engine_memory, 0.999)
    assert plan(model="llama-3.1-8b", tp=1, util=0.99).reason == ""
    refused = plan(model="llama-3.1-8b", tp=1, util=0.995)
    assert "refuses to start" in refused.reason
    assert refused.binds == "engine"


def test_sglangs_pool_on_a_real_device_by_hand() -> None:
    """share · (framework's total − runtime) − weights; what the framework does not see is not its to share."""
    found = plan(model="llama-3.1-70b", tp=4, engine="sglang", util=0.88)
    runtime = one(memory.runtime_bytes(SGLANG, column(4)))
    expected = 0.88 * (H100.engine_memory - runtime) - found.weights_bytes
    assert found.kv_pool_bytes == pytest.approx(expected, rel=1e-9)


def test_tensorrt_llms_pool_on_a_real_device_by_hand() -> None:
    """share · (framework's total − weights − activation − runtime − graphs)."""
    found = plan(model="llama-3.1-70b", tp=4, engine="trtllm", util=0.88)
    runtime = one(memory.runtime_bytes(TRTLLM, column(4)))
    taken = found.weights_bytes + found.activation_bytes + found.graph_bytes + runtime
    assert found.kv_pool_bytes == pytest.approx(0.88 * (H100.engine_memory - taken), rel=1e-9)


def test_columns_and_lone_values_agree() -> None:
    weights, tp = np.array([1e10, 2e10, 9e10]), np.array([1.0, 2.0, 8.0])
    together = work(VLLM, weights, tp, 0.0)
    alone = [work(VLLM, column(w), t, 0.0) for w, t in zip(weights, tp, strict=True)]
    assert together.graphs.tolist() == [one(each.graphs) for each in alone]
    assert together.runtime.tolist() == [one(each.runtime) for each in alone]


def test_sglang_holds_as_many_sequences_as_states_or_cache_allow() -> None:
    """Qwen3.5-27B in SGLang: pool R leaves R / 1.9 for 64 KiB a token and 0.9 R / 1.9 for 48 layers of states."""
    found = plan(model="qwen3.5-27b", tp=1, engine="sglang", isl=1000, osl=24, util=0.9)
    state = 48 * (48 * 128 * 128 * 4 + (2 * 16 + 48) * 128 * 3 * 2)
    growing = found.kv_pool_bytes / 1.9
    by_cache, by_state = growing / (1024 * 65_536), 0.9 * growing / state
    assert found.b_max_kv == np.floor(min(by_cache, by_state))
    assert by_state < by_cache
