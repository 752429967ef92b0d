"""What collectives, hops and expert exchange put on links, inside a domain and across."""

from __future__ import annotations

from typing import Any

import pytest

from planner.physics import comms, forward, passes
from planner.specs.layout import layout, layout_name
from planner.work import ZERO, Ledger
from tests.asking import column, one, setting


def entry(ledger: Ledger, name: str) -> Any:
    return next(e.work for e in ledger if e.name == name)


def decode(model: str, batch: float = 8.0, gpu: str = "h100-sxm", **degrees: int) -> Ledger:
    at = setting(model=model, gpu=gpu, weights="fp8")
    return forward.forward(
        forward.place(at.machine, layout(**degrees)), passes.decode_pass(column(batch), column(1000.0))
    )


def names(ledger: Ledger) -> set[str]:
    return {e.name for e in ledger if e.group == "collectives"}


def test_a_group_of_one_has_no_collective() -> None:
    assert comms.all_reduce("x", column(1e6), column(1), 8.0, column(10)) == ()
    assert comms.gather("x", column(1e6), column(1), 8.0, column(10)) == ()
    assert comms.hops("x", column(1e6), ZERO, ZERO) == ()


def test_an_all_reduce_of_16_on_hosts_of_8_has_two_levels() -> None:
    """Each of 8 NICs carries 1 MB / 8 over two domains, there and back: 2 · ½ · 125 kB, two messages."""
    found = comms.all_reduce("all-reduce", column(1e6), column(16), 8.0, column(3))
    inside, across = entry(found, "all-reduce"), entry(found, "all-reduce across domains")
    assert one(inside.messages) == 8
    assert one(inside.link_bytes) == 2 * 7 / 8 * 1e6
    assert (one(across.messages), one(across.link_bytes), one(across.launches)) == (2, 125_000, 3)


def test_a_gather_of_32_on_hosts_of_8_has_two_levels() -> None:
    found = comms.gather("gather", column(8e6), column(32), 8.0, column(1))
    assert one(entry(found, "gather").link_bytes) == 7e6
    assert one(entry(found, "gather across domains").link_bytes) == 3 / 4 * 1e6


def test_inside_a_rack_nothing_crosses() -> None:
    assert "all-reduce across domains" in names(decode("llama-3.1-70b", tp=16))
    assert "all-reduce across domains" not in names(decode("llama-3.1-70b", gpu="gb200-nvl72", tp=16))


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [
        ({"tp": 8}, {"all-reduce"}),
        ({"tp": 8, "ep": 8}, {"all-reduce"}),
        ({"dp": 8, "ep": 8}, {"expert gather and scatter"}),
        ({"dp": 8}, {"expert gather and scatter"}),
        ({"dp": 16, "ep": 16}, {"dispatch", "combine"}),
        ({"dp": 4, "tp": 4, "ep": 16}, {"all-reduce", "dispatch", "combine"}),
        ({"dp": 4, "tp": 4, "ep": 8}, {"all-reduce", "expert gather and scatter", "expert gather and scatter across domains"}),
        ({"tp": 8, "dcp": 8}, {"all-reduce", "context queries", "context outputs"}),
        ({"tp": 4, "cp": 2}, {"all-reduce", "context outputs over cp", "expert gather and scatter"}),
        ({"tp": 4, "pp": 2}, {"all-reduce", "pipeline"}),
        ({"tp": 8, "pp": 2}, {"all-reduce", "pipeline across domains"}),
        ({}, set()),
    ],
)  # fmt: skip
def test_what_each_layout_sends(degrees: dict[str, int], expected: set[str]) -> None:
    """DeepSeek-V3: eight experts a token, so more than eight expert ranks dispatch."""
    assert names(decode("deepseek-v3", **degrees)) == expected


def test_experts_of_one_attention_rank_end_in_the_all_reduce_of_tensor_parallelism() -> None:
    """61 attention blocks, 3 dense ones and 58 of experts; with data parallelism the experts' 58 are elsewhere."""
    assert one(entry(decode("deepseek-v3", tp=8, ep=8), "all-reduce").launches) == 122
    assert one(entry(decode("deepseek-v3", tp=4, dp=4, ep=16), "all-reduce").launches) == 64


def test_dispatch_and_combine_of_128_tokens() -> None:
    """128 · 8 · 7,168 elements: 7.34 MB in FP8, 14.7 MB in BF16, in each of 58 layers."""
    found = decode("deepseek-v3", 128.0, gpu="h800-sxm", dp=128, ep=128)
    assert one(entry(found, "dispatch").link_bytes) == 7_340_032
    assert one(entry(found, "combine").link_bytes) == 14_680_064
    assert one(entry(found, "dispatch").launches) == 58


def test_tensor_parallel_ranks_share_the_dispatch() -> None:
    whole = entry(decode("deepseek-v3", 128.0, dp=32, ep=32), "dispatch")
    shared = entry(decode("deepseek-v3", 128.0, dp=8, tp=4, ep=32), "dispatch")
    assert one(shared.link_bytes) == one(whole.link_bytes) / 4


@pytest.mark.parametrize(
    ("degrees", "name"),
    [
        ((8, 1, 1, 1, 1, 1), ""),
        ((8, 1, 1, 8, 1, 1), "TP8+EP8"),
        ((1, 1, 8, 8, 1, 1), "DP8+EP8"),
        ((4, 1, 32, 128, 1, 1), "DP32×TP4+EP128"),
        ((8, 1, 1, 4, 1, 1), "TP8+EP4×ETP2"),
        ((4, 2, 1, 1, 1, 1), "PP2×TP4"),
        ((8, 1, 1, 1, 1, 8), "TP8+DCP8"),
        ((4, 1, 1, 1, 2, 1), "CP2×TP4"),
    ],
)
def test_the_name_of_a_layout_follows_from_its_degrees(degrees: tuple[int, ...], name: str) -> None:
    assert layout_name(*degrees) == name
