"""Matrices and experts: operations and bytes of a pass, per rank."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.models import model
from planner.physics import ffn, forward, passes, roofline
from planner.specs.layout import layout
from planner.specs.model import linear_params
from planner.specs.precision import BF16, WEIGHTS
from planner.specs.profile import MEASURED, TEXTBOOK
from planner.work import Entry
from tests.asking import column, one, setting, total

EVEN = ffn.Routing(1.0, 0.0, 0.0)
"""Every rank has the mean load."""


def dsv3() -> object:
    return next(g.ffn for g in model("deepseek-v3").groups if hasattr(g.ffn, "expert"))


def routed(tokens: float, routing: ffn.Routing = EVEN, convention: object = TEXTBOOK, **degrees: int) -> Entry:
    return ffn.experts(dsv3(), WEIGHTS["fp8"], column(tokens), layout(**degrees), 58, routing, convention)  # type: ignore[arg-type]


def test_two_operations_a_weight_and_token() -> None:
    assert one(ffn.matrix_flops(column(1000), column(7))) == 14_000


def test_a_matrix_moves_its_weights_and_its_activations() -> None:
    assert one(ffn.matrix_traffic(column(1000), column(7), column(10))) == 1000 + 7 * 10 * 2


@pytest.mark.parametrize(
    ("tokens", "expected"), [(1, 8.0), (2, 15.75), (32, 163.314), (128, 251.6011), (100_000, 256.0)]
)
def test_distinct_experts_of_256_with_8_chosen(tokens: int, expected: float) -> None:
    assert one(ffn.distinct_experts(256, 8, column(tokens))) == pytest.approx(expected, abs=5e-4)


def test_all_experts_chosen_are_all_hit() -> None:
    assert one(ffn.distinct_experts(4, 4, column(1))) == 4


def test_a_rank_reads_no_more_than_it_stores() -> None:
    assert one(ffn.rank_experts(column(250), 256, column(32), column(1.4236))) == 32
    assert one(ffn.rank_experts_at(column(250), 256, column(32), column(1.6))) == 32
    assert one(ffn.rank_experts_at(column(64), 256, column(32), column(1.25))) == 10


def test_operations_of_all_ranks_add_up() -> None:
    """Evenly hit: 8 · 44.04 M weights a token, whatever the layout."""
    params = linear_params(dsv3().expert)  # type: ignore[attr-defined]
    assert params == 3 * 7168 * 2048
    for degrees in ({"tp": 8}, {"tp": 8, "ep": 8}, {"tp": 8, "ep": 2}):
        assert 8 * total(routed(100, **degrees), "flops") == pytest.approx(58 * 100 * 8 * 2 * params, rel=1e-12)


def test_one_token_reads_its_experts_once() -> None:
    assert total(routed(1), "hbm_bytes") == pytest.approx(58 * 8 * 3 * 7168 * 2048, rel=1e-12)


def test_a_large_batch_reads_every_stored_expert() -> None:
    assert total(routed(100_000, tp=8, ep=8), "hbm_bytes") == pytest.approx(58 * 32 * 3 * 7168 * 2048, rel=1e-9)


def test_expert_tensor_parallelism_reads_a_slice_of_each() -> None:
    whole, split = total(routed(10), "hbm_bytes"), total(routed(10, tp=8), "hbm_bytes")
    assert split == pytest.approx(whole / 8, rel=1e-12)


def test_the_slowest_rank_sets_the_pace() -> None:
    even, skewed = routed(10, tp=8, ep=8), routed(10, ffn.Routing(2.0, 0.0, 0.0), tp=8, ep=8)
    assert total(skewed, "flops") == 2 * total(even, "flops")


def simulated(tokens: int, ep: int, redundant: int = 0) -> tuple[float, float]:
    """Load of the busiest rank over the mean, and experts that the rank with most of them reads: uniform routing."""
    draw = np.random.default_rng(7)
    loads, reads = [], []
    for _ in range(200):
        picked = np.argsort(draw.random((tokens, 256)), axis=1)[:, :8].reshape(-1)
        rank = picked * ep // 256
        loads.append(np.bincount(rank, minlength=ep).max() / (tokens * 8 / ep))
        reads.append(np.bincount(np.unique(picked) * ep // 256, minlength=ep).max())
    return float(np.mean(loads)), float(np.mean(reads))


@pytest.mark.parametrize(("tokens", "ep"), [(16, 8), (64, 8), (512, 8), (64, 32), (512, 32), (128, 128), (2048, 128)])
def test_the_slowest_rank_is_the_expected_maximum_over_ranks(tokens: int, ep: int) -> None:
    """Against a simulation of uniform routing, 8 of 256."""
    load, reads = simulated(tokens, ep)
    even = ffn.Routing(None, 0.0, 0.0)
    found, touched, _ = ffn.slowest(dsv3(), column(tokens), column(ep), even)  # type: ignore[arg-type]
    assert one(found) == pytest.approx(load, rel=0.15)
    assert one(touched) == pytest.approx(reads, rel=0.15)


def test_a_lone_token_costs_the_slowest_of_128_ranks_an_expert() -> None:
    """Eight of 128 ranks have one: the mean is 0.06, the maximum one (two with a chance of a tenth)."""
    _, touched, _ = ffn.slowest(dsv3(), column(1), column(128), ffn.Routing(None, 1.0, 0.0))  # type: ignore[arg-type]
    assert one(touched) == 1


def test_more_ranks_than_experts_leave_ranks_without_any() -> None:
    """EP320: 256 experts on 320 ranks, with 64 copies every rank has one."""
    for redundant, holding in ((0.0, 256), (64.0, 320)):
        routing = ffn.Routing(1.0, 0.0, redundant)
        load, touched, ranks = ffn.slowest(dsv3(), column(100_000), column(320), routing)  # type: ignore[arg-type]
        assert (one(load), one(touched), one(ranks)) == (1, 1, holding)


def test_copies_even_popularity_out() -> None:
    uneven, evened = (
        ffn.slowest(dsv3(), column(4096), column(32), ffn.Routing(None, 1.0, copies))[0]  # type: ignore[arg-type]
        for copies in (0.0, 32.0)
    )
    assert one(uneven) > 1.5 > 1.2 > one(evened) > 1


def test_the_textbook_counts_no_activations() -> None:
    plain, measured = routed(1000), routed(1000, convention=MEASURED)
    assert total(measured, "hbm_bytes") > total(plain, "hbm_bytes")


def test_matrices_of_one_kernel_run_together() -> None:
    """q, k and v of Llama-70B: one launch a layer over 8,192 × (64 + 8 + 8) · 128 weights."""
    spec = model("llama-3.1-70b")
    kinds = setting(model="llama-3.1-70b").machine.formats
    kernels = {k.name: k for k in ffn.place(spec.groups[0].attention.linears, BF16, kinds, column(1), 80, MEASURED)}  # type: ignore[union-attr]
    assert set(kernels) == {"qkv", "o"}
    assert one(kernels["qkv"].local) == 8192 * 80 * 128
    assert one(kernels["qkv"].launches) == 80


def test_kv_projections_are_copied_beyond_their_heads() -> None:
    """At TP16, a rank of Llama-70B computes 4 query heads and a whole KV head."""
    spec = model("llama-3.1-70b")
    kinds = setting(model="llama-3.1-70b").machine.formats
    kernels = {k.name: k for k in ffn.place(spec.groups[0].attention.linears, BF16, kinds, column(16), 1, MEASURED)}  # type: ignore[union-attr]
    assert one(kernels["qkv"].local) == 8192 * 128 * (4 + 1 + 1)


@pytest.mark.parametrize("profile", ["measured", "textbook"])
@pytest.mark.parametrize("name", ["llama-3.1-70b", "deepseek-v3", "glm-5.2", "qwen3-next-80b-a3b", "gpt-oss-120b"])
def test_stacked_kernels_take_the_time_of_single_ones(name: str, profile: str) -> None:
    at = setting(model=name, profile=profile, weights="fp8", gpu="h200-sxm")
    placed = forward.place(at.machine, layout(tp=[1, 2, 8]))
    step = passes.decode_pass(np.array([[1.0, 30.0, 500.0]]), column(1000))
    stacked, single = (
        roofline.pass_seconds(forward.matrices(placed, step, together=together), at.profile)
        for together in (True, False)
    )
    np.testing.assert_allclose(stacked, single, rtol=1e-12)


def test_the_head_runs_once_a_sequence_but_for_every_token_in_the_textbook() -> None:
    for profile, rows in (("measured", 1.0), ("textbook", 1000.0)):
        at = setting(model="llama-3.1-8b", profile=profile)
        step = passes.prefill_pass(column(1000))
        head = next(
            e for e in forward.matrices(forward.place(at.machine, layout()), step, together=False) if e.name == "head"
        )
        assert total(head, "flops") == rows * 2 * 4096 * 128_256


def test_active_weights_of_deepseek_v3_are_36_6_g() -> None:
    """S10-02: operations of one token over two, without the embedding and without attention cores."""
    at = setting(model="deepseek-v3", profile="textbook", weights="fp8")
    step = passes.decode_pass(column(1), column(0))
    matrices = forward.matrices(forward.place(at.machine, layout()), step, together=False)
    assert sum(total(entry, "flops") for entry in matrices) / 2e9 == pytest.approx(36.62, rel=1e-3)
