"""What spreading a model over devices must keep: its operations, its bytes, its cache; and what degree one must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.candidates import candidates, refusals, rules
from planner.physics import forward, passes
from planner.physics.ffn import Routing
from planner.physics.weights import experts_per_rank, stored_bytes, weight_bytes
from planner.specs.layout import Layout, layout
from planner.specs.model import ExpertFFN, GroupedAttention, LatentAttention, Linear, ModelSpec
from planner.specs.scenario import Scenario
from tests.asking import column, one, setting, table, total

THOROUGH = settings(max_examples=150, derandomize=True, deadline=None)
MODELS = st.sampled_from(
    ("llama-3.1-70b", "deepseek-v3", "glm-5.2", "qwen3-235b-a22b", "mixtral-8x7b", "gpt-oss-120b", "qwen3-next-80b-a3b")
)
POWERS = st.sampled_from((1, 2, 4, 8))


@st.composite
def layouts(draw: st.DrawFn, model: str) -> dict[str, int]:
    """A layout that the model admits."""
    tp, dp, cp, dcp = draw(POWERS), draw(POWERS), draw(st.sampled_from((1, 2))), draw(st.sampled_from((1, 2, 4)))
    found = {"tp": tp, "dp": dp, "cp": cp, "dcp": dcp, "pp": draw(st.sampled_from((1, 2, 4)))}
    found["ep"] = draw(st.sampled_from([d for d in (1, 2, 4, 8, 16, 32, 64, 128) if tp * dp * cp % d == 0]))
    rules_of = rules(setting(model=model).model)
    assume(int(refusals(rules_of, candidates(layout(**found)).layout)[0, 0]) < 0)
    return found


@st.composite
def placements(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    model = draw(MODELS)
    return model, draw(layouts(model))


def even(model: str) -> forward.Machine:
    """A machine whose experts are hit evenly, every rank with the mean load."""
    machine = setting(model=model, profile="textbook", weights="fp8").machine
    return forward.Machine(
        machine.model, machine.formats, machine.cache, Routing(1.0, 0.0, 0.0), machine.convention, machine.domain,
        machine.wire,
    )  # fmt: skip


def linears(spec: ModelSpec) -> list[tuple[Linear, int, ExpertFFN | None]]:
    """Matrices that every token passes, the layers that have them, and the experts that they are shared beside."""
    found: list[tuple[Linear, int, ExpertFFN | None]] = []
    for group in spec.groups:
        if group.attention is not None:
            found += [(linear, group.count, None) for linear in group.attention.linears]
        if isinstance(group.ffn, ExpertFFN):
            found += [(linear, group.count, group.ffn) for linear in group.ffn.shared]
            found += [(linear, group.count, None) for linear in group.ffn.outer]
        elif group.ffn is not None:
            found += [(linear, group.count, None) for linear in group.ffn.linears]
    return found


def ledger(model: str, degrees: dict[str, int], sequences: float, context: float = 5000.0) -> forward.Ledger:
    """A decode step on one rank of a layout, `sequences` of them on each attention rank."""
    placed = forward.place(even(model), layout(**degrees))
    return forward.forward(placed, passes.decode_pass(column(sequences), column(context)))


def summed(entries: forward.Ledger, field: str, *groups: str) -> float:
    return sum(total(entry, field) for entry in entries if entry.group in groups)


@given(placements())
@THOROUGH
def test_operations_of_all_ranks_are_the_models_and_those_of_stated_copies(case: tuple[str, dict[str, int]]) -> None:
    """Matrices split min(tp, shards) ways: tp ranks together compute a matrix tp / min(tp, shards) times."""
    model, degrees = case
    spec, at = setting(model=model).model, layout(**degrees)
    stage, tokens = one(at.stage), 6.0
    found = summed(ledger(model, degrees, tokens), "flops", "weights") * stage
    copies = {linear: degrees["tp"] / min(degrees["tp"], linear.shards) for linear, _, _ in linears(spec)}
    body = sum(2.0 * linear.params * count * copies[linear] for linear, count, _ in linears(spec))
    head = 2.0 * spec.hidden * spec.vocab
    assert found == pytest.approx((body + head) * tokens * degrees["dp"] * degrees["cp"], rel=1e-9)


@given(placements())
@THOROUGH
def test_experts_of_all_ranks_compute_every_routed_token_once(case: tuple[str, dict[str, int]]) -> None:
    model, degrees = case
    spec = setting(model=model).model
    assume(spec.has_experts)
    tokens = 64.0
    found = summed(ledger(model, degrees, tokens), "flops", "experts")
    groups = [(g.ffn, g.count) for g in spec.groups if isinstance(g.ffn, ExpertFFN)]
    routed = sum(2.0 * sum(x.params for x in ffn.expert) * ffn.top_k * count for ffn, count in groups)
    holding = min(degrees["ep"], groups[0][0].count) * one(layout(**degrees).expert_tp)
    assert found * holding == pytest.approx(routed * tokens * degrees["dp"], rel=1e-9)


@given(placements())
@THOROUGH
def test_attention_of_all_ranks_reads_every_cached_byte_once_a_stated_copy(case: tuple[str, dict[str, int]]) -> None:
    """Operations add up to the model's; bytes to the model's times the copies that heads and context leave."""
    model, degrees = case
    spec = setting(model=model).model
    assume(all(isinstance(g.attention, GroupedAttention | LatentAttention) for g in spec.groups))
    assume(len({getattr(g.attention, "kv_heads", 1) for g in spec.groups}) == 1)
    assume(not any(isinstance(g.attention, LatentAttention) and g.attention.index for g in spec.groups))
    alone, spread = ledger(model, {}, 4.0), ledger(model, degrees, 4.0)
    ranks = degrees["tp"] * degrees["cp"]
    assert summed(spread, "flops", "kv") * ranks == pytest.approx(summed(alone, "flops", "kv"), rel=1e-9)
    shards = getattr(spec.groups[0].attention, "kv_heads", 1)
    copies = degrees["tp"] / min(degrees["tp"], shards) / degrees["dcp"]
    assert summed(spread, "hbm_bytes", "kv") * ranks == pytest.approx(
        summed(alone, "hbm_bytes", "kv") * copies, rel=1e-9
    )


@given(placements())
@THOROUGH
def test_weights_of_all_ranks_are_the_models_and_those_of_stated_copies(case: tuple[str, dict[str, int]]) -> None:
    model, degrees = case
    assume(degrees["pp"] == 1)
    machine, at = even(model), layout(**degrees)
    spec, kinds, convention = machine.model, machine.formats, machine.convention
    width = stored_bytes(kinds.dense, convention)
    found = one(weight_bytes(spec, kinds, at, 0.0, convention)) * one(at.stage)
    held = 0.0
    for linear, count, beside in linears(spec):
        whole = beside is not None and one(at.dispatches(beside.top_k)) > 0
        ways = 1 if whole else min(degrees["tp"], linear.shards)
        held += linear.params * count * width / ways * one(at.stage)
    for group in spec.groups:
        if isinstance(group.ffn, ExpertFFN):
            stored = one(experts_per_rank(group.ffn.count, 0.0, at.ep)) * degrees["ep"]
            held += group.count * stored * group.ffn.expert_params * width
        vectors = group.norm_params + sum(block.extra_params for block in (group.attention, group.ffn) if block)
        held += group.count * vectors * width * one(at.stage)
    held += (spec.embed_params + spec.head_params) * width * degrees["dp"] * degrees["cp"]
    held += (spec.final_params + (spec.vision_params or 0)) * width * one(at.stage)
    assert found == pytest.approx(held, rel=1e-9)


@given(placements(), st.sampled_from(("tp", "dp", "cp", "pp")))
@THOROUGH
def test_more_devices_never_hold_fewer_tokens_but_by_copies(case: tuple[str, dict[str, int]], grown: str) -> None:
    """Doubling a degree: total tokens do not fall, unless ranks then hold copies of the cache that they did not before."""
    model, degrees = case
    more = {**degrees, grown: degrees[grown] * 2}
    found = rules(setting(model=model).model)
    assume(int(refusals(found, candidates(layout(**more)).layout)[0, 0]) < 0)
    at = setting(model=model, gpu="b200-sxm", weights="fp8")
    few, many = (table(at, layout(**each)) for each in (degrees, more))
    copied = [float(p.kv_bytes_per_token[0] * d["tp"] * d["cp"]) for p, d in ((few, degrees), (many, more))]
    block = at.allocation.block * max(d["dp"] for d in (degrees, more))
    if copied[1] <= copied[0] * (1 + 1e-9):
        assert many.kv_capacity_tokens[0] >= few.kv_capacity_tokens[0] * 0.999 - block


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b", "qwen3-4b"])
def test_degree_one_of_everything_is_the_plan_of_one_device(model: str) -> None:
    """No link is used, and nothing waits."""
    at = setting(model=model, gpu="b200-sxm")
    ones: Layout = layout(1, 1, 1, 1, 1, 1)
    found = table(at, ones, [1.0, 8.0, 64.0])
    alone = table(at, layout(), [1.0, 8.0, 64.0])
    for name in ("tpot_ms", "ttft_ms", "kv_capacity_tokens", "b_max_kv", "weights_bytes", "output_tok_s"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
    placed = forward.place(at.machine, ones)
    entries = forward.forward(placed, passes.decode_pass(column(8.0), column(1000.0)))
    assert {entry.group for entry in entries} <= {"weights", "kv", "experts", "host"}


@given(st.sampled_from(("deepseek-v3", "qwen3-235b-a22b")), st.integers(1, 4000), st.sampled_from((8, 16, 64)))
@THOROUGH
def test_logical_bytes_of_an_exchange_follow_the_tokens_of_a_rank(model: str, batch: int, ranks: int) -> None:
    """They do not fall with more ranks when each keeps its batch."""
    asked: dict[str, Any] = {"model": model, "gpu": "h100-sxm", "weights": "fp8"}
    at = setting(**asked)
    sent = []
    for n in (ranks * 2, ranks * 4):
        placed = forward.place(at.machine, layout(dp=n, ep=n))
        step = passes.decode_pass(column(float(batch)), column(100.0))
        sent.append(sum(total(e, "link_bytes") for e in forward.forward(placed, step) if e.name == "dispatch"))
    assert sent[0] == pytest.approx(sent[1], rel=1e-12)
    assert (sent[0] > 0) == (ranks * 2 > 8)


def test_a_scenario_with_every_degree_at_one_is_the_default() -> None:
    assert Scenario(tp=1, pp=1, dp=1, ep=1, cp=1, dcp=1) == Scenario()
