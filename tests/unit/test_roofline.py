"""The law: the only place where work becomes seconds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.physics import comms, roofline
from planner.specs.collective import CollectiveLaw
from planner.work import ONE, ZERO, Entry, Work
from tests.asking import column, one, setting

BIG = 1e12


def gemm(flops: float, moved: float, launches: float = 1.0, kind: str = "gemm") -> Entry:
    work = Work(kind, "bf16", column(flops), column(moved), column(launches), ZERO, ONE, ZERO)
    return Entry("work", "weights", work)


@pytest.mark.parametrize(("compute", "memory"), [(3.0, 4.0), (4.0, 3.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_an_infinite_exponent_is_the_plain_roofline(compute: float, memory: float) -> None:
    assert one(roofline.law_seconds(column(compute), column(memory), 0.5, math.inf)) == 0.5 + max(compute, memory)


@pytest.mark.parametrize(("p", "expected"), [(1.0, 7.0), (2.0, 5.0)])
def test_a_finite_exponent_rounds_the_corner(p: float, expected: float) -> None:
    assert one(roofline.law_seconds(column(3), column(4), 0.0, p)) == pytest.approx(expected, rel=1e-12)


def test_nothing_to_do_takes_the_floor_without_a_warning() -> None:
    with np.errstate(all="raise"):
        assert one(roofline.law_seconds(ZERO, ZERO, 1e-6, 2.0)) == 1e-6
        assert one(roofline.law_seconds(ZERO, ZERO, 1e-6, math.inf)) == 1e-6


def test_rates_are_the_reachable_share_of_the_peak() -> None:
    assert one(roofline.compute_seconds(column(742.05e12), 0.75, 989.4e12)) == pytest.approx(1.0)
    assert one(roofline.memory_seconds(column(3.35e12), 1.0, 3.35e12)) == 1.0


def test_the_extra_of_decode_attention_saturates() -> None:
    assert one(roofline.rise_seconds(ZERO, 5e-6, 1e-5)) == 0.0
    assert one(roofline.rise_seconds(column(1.0), 5e-6, 1e-5)) == pytest.approx(5e-6)


def test_short_prompts_are_half_as_efficient_at_the_half_length() -> None:
    assert one(roofline.short_prompt_seconds(column(1.0), column(512), 512.0)) == 2.0


def test_a_collective_of_one_rank_is_free() -> None:
    assert one(roofline.collective_seconds(ZERO, ONE, column(1e-5), column(1e11))) == 0.0


def test_a_ring_moves_twice_its_buffer_less_one_share() -> None:
    """S7.1-06: 1,024 tokens of Llama-70B over 4 ranks, two all-reduces a layer: 50.33 MB."""
    buffer = column(1024 * 8192 * 2)
    assert 2 * one(comms.all_reduce_traffic(buffer, column(4))) == pytest.approx(50.3316e6, rel=1e-5)


def test_an_all_reduce_by_hand() -> None:
    law = CollectiveLaw((2, 8), (5e-6, 9e-6), (100e9, 300e9))
    profile = replace(setting().profile, links=replace(setting().profile.links, all_reduce=law))
    (entry,) = comms.all_reduce("all-reduce", column(20_000), column(8), 8.0, column(3))
    assert one(roofline.entry_seconds(entry, profile)) == pytest.approx(
        3 * (9e-6 + 2 * 7 / 8 * 20_000 / 300e9), rel=1e-12
    )


def test_between_tabulated_groups_constants_follow_the_logarithm() -> None:
    alpha, bandwidth = CollectiveLaw((2, 8), (5e-6, 9e-6), (100e9, 300e9)).constants(column(4))
    assert one(alpha) == pytest.approx(7e-6)
    assert one(bandwidth) == pytest.approx(200e9)


def test_launches_multiply() -> None:
    profile = setting(model="llama-3.1-8b").profile
    assert one(roofline.entry_seconds(gemm(BIG, BIG, 7), profile)) == pytest.approx(
        7 * one(roofline.entry_seconds(gemm(BIG, BIG), profile)), rel=1e-12
    )


def test_the_textbook_adds_up_work_before_it_takes_the_larger() -> None:
    profile = setting(profile="textbook").profile
    compute_only, memory_only = gemm(742.05e12, 0.0), gemm(0.0, 3.35e12)
    assert one(roofline.pass_seconds((compute_only, memory_only), profile)) == pytest.approx(1.0)


def test_the_measured_clock_adds_up_operators() -> None:
    profile = setting(model="llama-3.1-8b").profile
    entries = (gemm(BIG, BIG), gemm(BIG, 0.0), gemm(0.0, BIG, 3))
    together = one(roofline.pass_seconds(entries, profile))
    assert together == pytest.approx(sum(one(roofline.entry_seconds(e, profile)) for e in entries), rel=1e-12)


def test_the_textbook_has_no_host_and_free_links() -> None:
    profile = setting(profile="textbook").profile
    host = Entry("host", "host", Work("host", "bf16", ZERO, ZERO, ONE, ZERO, ONE, column(100)))
    reduce = comms.all_reduce("all-reduce", column(1000 * 8192 * 2), column(16), 8.0, column(160))
    assert len(reduce) == 2
    assert one(roofline.pass_seconds((host, *reduce), profile)) == 0.0


def test_host_time_is_a_constant_and_a_share_a_sequence() -> None:
    assert one(roofline.host_seconds(1e-3, 1e-5, column(50))) == pytest.approx(1.5e-3)


@pytest.mark.parametrize(
    ("flops", "moved", "expected"), [(1e15, 1.0, "compute"), (1.0, 1e12, "memory"), (1.0, 1.0, "floor")]
)
def test_what_an_operator_waits_for(flops: float, moved: float, expected: str) -> None:
    assert roofline.bound_by(gemm(flops, moved), setting(model="llama-3.1-8b").profile) == expected


def test_a_precision_without_constants_takes_those_of_bf16() -> None:
    profile = setting(model="llama-3.1-8b").profile
    assert profile.law("elementwise", "no-such-precision") == profile.law("elementwise", "bf16")
