"""What engines refuse: every refusal and every law of degrees, with a scenario that breaks it and one that keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from planner.catalog.engines import engine, engine_ids
from planner.catalog.models import model
from planner.specs.engine import TECHNIQUES
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.support import layout_rules, model_traits, refusal

LLAMA, QWEN, V3, V32 = "llama-3.1-70b", "qwen3-235b-a22b", "deepseek-v3", "deepseek-v3.2"
"""64 heads over 8 KV heads; 64 over 4 with 128 experts; latent attention with 256 experts; the same with an index."""

DISAGGREGATED = {"prefill": "disaggregated"}


@dataclass(frozen=True)
class Case:
    """One rule, what breaks it, and the same with as little as possible changed so that it is kept."""

    engine: str
    rule: str
    breaks: tuple[str, dict[str, int]]
    keeps: tuple[str, dict[str, int]]
    switches: dict[str, object] = field(default_factory=dict)
    kept_switches: dict[str, object] | None = None


CASES = [
    Case("vllm", "overlap", (V3, {"tp": 8, "ep": 8}), (V3, {"dp": 8, "ep": 8}), {"overlap": True}),
    Case("vllm", "overlap", (V3, {"dp": 8}), (V3, {"dp": 8, "ep": 8}), {"overlap": True}),
    Case("vllm", "overlap+cp", (V3, {"dp": 4, "cp": 2, "ep": 8}), (V3, {"dp": 8, "ep": 8}), {"overlap": True}),
    Case("vllm", "cp+grouped", (LLAMA, {"tp": 4, "cp": 2}), (V3, {"tp": 4, "cp": 2})),
    Case("vllm", "cp+dcp", (V3, {"tp": 4, "cp": 2, "dcp": 8}), (V32, {"tp": 4, "cp": 2, "dcp": 8})),
    Case("vllm", "redundant", (V3, {"tp": 8}), (V3, {"tp": 8, "ep": 8}), {"redundant": 32}),
    Case("vllm", "ep-stage", (V3, {"tp": 8, "ep": 4}), (V3, {"tp": 8, "ep": 8})),
    Case("vllm", "dcp-tp-or-pcp", (V3, {"tp": 8, "dcp": 3}), (V3, {"tp": 8, "dcp": 2})),
    Case("vllm", "dcp-tp-or-pcp", (V32, {"tp": 8, "cp": 2, "dcp": 4}), (V32, {"tp": 8, "cp": 2, "dcp": 16})),
    Case("vllm", "dcp-kv-heads", (QWEN, {"tp": 8, "dcp": 4}), (QWEN, {"tp": 8, "dcp": 2})),
    Case("vllm", "dcp-kv-heads", (LLAMA, {"tp": 8, "dcp": 2}), (LLAMA, {"tp": 16, "dcp": 2})),
    Case("vllm", "redundant-even", (V3, {"tp": 8, "ep": 8}), (V3, {"tp": 4, "ep": 4}), {"redundant": 4}),
    Case("sglang", "overlap", (V3, {"tp": 8}), (V3, {"tp": 4, "dp": 2}), {"overlap": True}),
    Case("sglang", "pp+spec+prefill=disaggregated", (LLAMA, {"pp": 2}), (LLAMA, {"tp": 2}), {"spec": 3, **DISAGGREGATED}),
    Case("sglang", "pp+spec+dp", (V3, {"pp": 2, "dp": 8}), (V3, {"pp": 2, "tp": 8}), {"spec": 3}),
    Case("sglang", "cp+dcp", (V3, {"tp": 4, "cp": 2, "dcp": 2}), (V3, {"tp": 4, "dcp": 2})),
    Case("sglang", "dcp+sparse+prefill=disaggregated", (V32, {"tp": 8, "dcp": 8}), (V3, {"tp": 8, "dcp": 8}), DISAGGREGATED),
    Case("sglang", "dcp+grouped", (QWEN, {"tp": 8, "dcp": 2}), ("qwen3-next-80b-a3b", {"tp": 8, "dcp": 2})),
    Case("sglang", "dcp-tp", (V3, {"tp": 4, "dp": 2, "dcp": 8}), (V3, {"tp": 4, "dp": 2, "dcp": 4})),
    Case("sglang", "redundant-even", (V3, {"tp": 8, "ep": 8}), (V3, {"tp": 8, "ep": 4}), {"redundant": 4}),
    Case("trtllm", "pp+spec", (V3, {"tp": 8, "pp": 2}), (V3, {"tp": 8}), {"spec": 1}),
    Case("trtllm", "tp+dp", (V3, {"tp": 2, "dp": 4}), (V3, {"dp": 8})),
    Case("trtllm", "dcp+prefill=colocated", (V3, {"tp": 8, "dcp": 8}), (V3, {"tp": 8, "dcp": 8}), {}, DISAGGREGATED),
    Case("trtllm", "redundant", (V3, {"tp": 8}), (V3, {"tp": 8, "ep": 4}), {"redundant": 32}),
    Case("trtllm", "redundant-even", (V3, {"dp": 8, "ep": 8}), (V3, {"dp": 8, "ep": 4}), {"redundant": 4}),
    Case("vllm-ascend", "cp+pp", (V3, {"cp": 2, "pp": 2}), (V3, {"cp": 2, "tp": 2})),
    Case("vllm-ascend", "cp+dp", (V3, {"cp": 2, "dp": 2}), (V3, {"cp": 2, "tp": 2})),
    Case("vllm-ascend", "cp+spec+prefill=colocated", (V3, {"cp": 2}), (V32, {"cp": 2}), {"spec": 1}),
    Case("vllm-ascend", "dcp+spec+prefill=colocated", (V3, {"tp": 8, "dcp": 8}), (V32, {"tp": 8, "dcp": 8}), {"spec": 1}),
    Case("vllm-ascend", "pp+spec+mtp", (V3, {"pp": 2}), (LLAMA, {"pp": 2}), {"spec": 1}),
    Case("vllm-ascend", "pp+prefill=disaggregated", (V3, {"pp": 2}), (V3, {"tp": 2}), DISAGGREGATED),
    Case("vllm-ascend", "redundant", (V3, {"tp": 8}), (V3, {"tp": 8, "ep": 8}), {"redundant": 16}),
    Case("vllm-ascend", "ep-stage", (QWEN, {"tp": 4, "dp": 2, "ep": 4}), (QWEN, {"tp": 4, "dp": 2, "ep": 8})),
    Case("vllm-ascend", "dcp-tp", (V3, {"tp": 8, "dcp": 3}), (V3, {"tp": 8, "dcp": 4})),
    Case("vllm-ascend", "dcp-kv-copies", (QWEN, {"tp": 12, "dcp": 2}), (QWEN, {"tp": 12, "dcp": 3})),
    Case("vllm-ascend", "redundant-even", (V3, {"tp": 16, "ep": 16}), (V3, {"tp": 8, "ep": 8}), {"redundant": 8}),
]  # fmt: skip

SWITCHES = [
    # engine, model, switches that it refuses in every layout, the same where it does not
    ("sglang", "glm-5.2", {"overlap": True}, V32, {"overlap": True}),
    ("vllm-ascend", V3, {"overlap": True}, V3, {}),
    ("vllm-ascend", LLAMA, {"spec": 16}, LLAMA, {"spec": 15}),
]


def broken(name: str, model_id: str, degrees: dict[str, int], switches: dict[str, object]) -> list[str]:
    """Names of the rules that a layout breaks."""
    found = layout_rules(engine(name), model(model_id), Scenario(engine=name, **switches))
    return [rule.name for rule in found if bool(rule.broken(layout(**degrees).tall).reshape(-1)[0])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.engine}-{case.rule}")
def test_a_rule_refuses_what_breaks_it_and_nothing_else(case: Case) -> None:
    kept = case.switches if case.kept_switches is None else case.kept_switches
    assert case.rule in broken(case.engine, *case.breaks, case.switches)
    assert case.rule not in broken(case.engine, *case.keeps, kept)


@pytest.mark.parametrize(("name", "refused", "switches", "kept", "others"), SWITCHES)
def test_a_switch_is_refused_in_every_layout(name, refused, switches, kept, others) -> None:
    found = refusal(engine(name), model(refused), Scenario(engine=name, **switches))
    assert found is not None
    assert found.reason.startswith(engine(name).name)
    assert found.source
    assert refusal(engine(name), model(kept), Scenario(engine=name, **others)) is None


@pytest.mark.parametrize("name", engine_ids())
def test_every_rule_of_a_record_has_a_case(name: str) -> None:
    rules = engine(name)
    asked = {case.rule for case in CASES if case.engine == name}
    stated = {"+".join(item.when) for item in rules.refuses} | {item.law for item in rules.demands}
    alone = {"overlap", "spec>15", "overlap+shared-index"} & stated - asked
    assert stated - asked == alone
    assert len(alone) == sum(item[0] == name for item in SWITCHES)


@pytest.mark.parametrize("name", engine_ids())
def test_a_plain_plan_is_refused_by_no_engine(name: str) -> None:
    """Nothing beside tensor parallelism, with caching, chunks and FP8."""
    asked = Scenario(engine=name, prefix=0.5, chunk=512, weights="fp8", kv="fp8")
    assert refusal(engine(name), model(LLAMA), asked) is None
    assert broken(name, LLAMA, {"tp": 8}, {"prefix": 0.5, "chunk": 512}) == []


@pytest.mark.parametrize(
    ("name", "model_id", "degrees", "switches"),
    [
        # deployments that the engines' own documents show
        ("vllm", V3, {"dp": 16, "ep": 16}, {"overlap": True, "redundant": 32}),
        ("vllm", "kimi-k2", {"tp": 16, "dcp": 8}, {"spec": 3}),
        ("vllm", QWEN, {"tp": 8, "dcp": 2}, {}),
        ("sglang", V3, {"dp": 72, "ep": 72}, {"overlap": True, "redundant": 32, **DISAGGREGATED}),
        ("trtllm", V3, {"tp": 8, "ep": 2}, {"spec": 3}),
        ("trtllm", V3, {"dp": 32, "ep": 32}, {"redundant": 32, **DISAGGREGATED}),
        ("vllm-ascend", V3, {"dp": 32, "ep": 32}, {"spec": 1, **DISAGGREGATED}),
        ("vllm-ascend", V3, {"tp": 8, "cp": 2, "dcp": 8, "ep": 16}, {"spec": 1, **DISAGGREGATED}),
    ],
)
def test_published_deployments_are_offered(name, model_id, degrees, switches) -> None:
    assert broken(name, model_id, degrees, switches) == []
    assert refusal(engine(name), model(model_id), Scenario(engine=name, **switches)) is None


def test_rules_are_columns_over_a_table_of_layouts() -> None:
    found = layout_rules(engine("vllm"), model(V3), Scenario())
    stage = next(rule for rule in found if rule.name == "ep-stage")
    flags = stage.broken(layout(tp=[8, 8, 1], dp=[1, 1, 8], ep=[1, 4, 8]).tall)
    assert flags.shape == (3, 1)
    np.testing.assert_array_equal(flags.reshape(-1), [False, True, False])


def test_degrees_of_the_scenario_itself_are_not_read() -> None:
    """A table of layouts decides, whatever the link says."""
    asked = Scenario(engine="trtllm", spec=2, pp=2)
    rule = next(rule for rule in layout_rules(engine("trtllm"), model(V3), asked) if rule.name == "pp+spec")
    assert not rule.broken(layout(tp=8).tall).any()


@pytest.mark.parametrize(
    ("model_id", "traits"),
    [
        (LLAMA, {"grouped"}),
        (V3, {"latent", "mtp"}),
        (V32, {"latent", "sparse", "mtp"}),
        ("qwen3-next-80b-a3b", {"grouped", "linear", "mtp"}),
    ],
)
def test_traits_are_read_from_the_layers(model_id: str, traits: set[str]) -> None:
    assert model_traits(model(model_id)) == traits


@pytest.mark.parametrize("name", engine_ids())
def test_what_is_offered_has_a_source_and_what_is_not_known_is_said(name: str) -> None:
    rules = engine(name)
    assert set(rules.offers) <= set(TECHNIQUES)
    assert rules.unverified
    assert all(item.source and item.date and item.reason for item in (*rules.refuses, *rules.demands))
