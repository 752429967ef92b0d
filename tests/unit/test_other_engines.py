"""Engines that no scenario names: how they are fitted, clocked, laid out and stored; by hand on a few points."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from planner.calibrate.other_engines import (
    Clock,
    Group,
    Point,
    as_toml,
    clock,
    error_out_of_fold,
    fit,
    fitted,
    write_other_engines,
)
from planner.case_engines import Served, padded, served_engine
from planner.case_words import ENGINES, CaseError
from planner.catalog.engines import engine_ids
from planner.catalog.models import model
from planner.catalog.other_engines import FOLDER, other_engine, other_engines, packed_bits, packed_formats
from planner.predict_serving import ServingPrediction, predict_serving, predicted_plan
from planner.specs.model import DenseFFN, GroupedAttention

CASE = {
    "model": "meta-llama/Meta-Llama-3-8B", "gpu": "RTX-3090", "engine": "vLLM", "engine_version": "", "tier": "T1",
    "weight_precision": "fp16", "kv_precision": "fp16", "tp": "1", "pp": "1", "isl": "500", "osl": "200",
    "concurrency": "1", "model_family": "Llama-3.x-8B", "config_id": "one",
}  # fmt: skip
GROUP = Group("Other", ("other",))
FLOORED = Group("Eager", ("eager",), floored=True)


def point(measured: float, predicted: float, configuration: str = "a", gpu: str = "x", layers: int = 10) -> Point:
    """A point of one model family."""
    return Point(configuration, ("family", gpu), measured, predicted, layers)


def predicted(**changes: str) -> ServingPrediction:
    """The prediction of one row."""
    return predict_serving({**CASE, **changes})


def test_a_factor_is_the_geometric_mean_over_configurations() -> None:
    """Configuration a: measured over predicted 2 and 8, so 4; b: 1. Their geometric mean is 2."""
    found = [point(20, 10, "a"), point(80, 10, "a"), point(7, 7, "b")]
    assert clock(GROUP, found).factor == pytest.approx(2.0)


def test_the_error_leaves_whole_pairs_out() -> None:
    """Pair x is 2, pair y is 1: x by y's factor errs by |1/2 - 1|, y by x's by |2/1 - 1|; the median is 75 %."""
    found = [point(20, 10, "a", "x"), point(10, 10, "b", "y")]
    assert error_out_of_fold(GROUP, found) == pytest.approx(0.75)
    assert error_out_of_fold(GROUP, found[:1]) is None


def test_an_engine_that_launches_kernels_one_by_one_has_a_floor_of_a_layer() -> None:
    """Ten layers: 5.6 ms however little the GPU does is 560 us a layer; above it steps take 1.5 times the prediction."""
    found = [point(5.6, 1.0), point(5.6, 2.0), point(30.0, 20.0), point(45.0, 30.0)]
    assert clock(FLOORED, found) == Clock(1.5, 560.0)
    assert Clock(1.5, 560.0).seconds_ms(found) == pytest.approx([5.6, 5.6, 30.0, 45.0])


def test_an_engine_without_a_point_is_not_fitted() -> None:
    assert fit(GROUP, []) is None
    names = {engine.name for engine in fitted([CASE])}
    assert names == {"NIM"}


def test_a_fit_is_written_and_read_back(tmp_path: Path) -> None:
    """LMDeploy measured at three times what vLLM is predicted to take has the factor 3; other tiers do not count."""
    table, out = tmp_path / "served.csv", tmp_path / "out.toml"
    row = {**CASE, "engine": "LMDeploy", "tpot_best_ms": repr(3.0 * predicted().tpot_ms)}
    other = {**row, "tier": "T2", "tpot_best_ms": "1"}
    lines = [",".join(row), *(",".join(each.values()) for each in (row, other))]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_other_engines(str(table), str(out))
    found = {each["name"]: each for each in tomllib.loads(out.read_text(encoding="utf-8"))["engine"]}
    assert set(found) == {"LMDeploy", "NIM"}
    assert found["LMDeploy"]["factor"] == pytest.approx(3.0, abs=1e-3)
    assert (found["LMDeploy"]["tag"], found["LMDeploy"]["configurations"]) == ("fitted", 1)
    assert "error" not in found["LMDeploy"]


def test_an_engine_may_take_the_clock_of_another() -> None:
    lent, taken = other_engine("llama.cpp"), other_engine("Ollama")
    assert lent is not None
    assert taken is not None
    assert (taken.factor, taken.layer_floor_us, taken.tag) == (lent.factor, lent.layer_floor_us, "borrowed")


def test_the_shipped_preset_is_as_it_is_written() -> None:
    assert as_toml(other_engines().engine) == (FOLDER / "other-engines.toml").read_text(encoding="utf-8")


def test_every_other_engine_stands_on_one_of_ours_and_has_names_of_its_own() -> None:
    names = [name.casefold() for engine in other_engines().engine for name in engine.names]
    assert len(names) == len(set(names))
    assert not set(names) & set(ENGINES)
    for engine in other_engines().engine:
        assert engine.like in engine_ids()
        assert 0.5 < engine.factor < 2.0
        assert (engine.tag == "fitted") == (engine.configurations > 0)
        assert (engine.error is None) == (engine.pairs < 2)


def test_another_engine_takes_its_factor_times_as_long() -> None:
    engine = other_engine("LLAMA.CPP")
    assert engine is not None
    ours, theirs = predicted(), predicted(engine="llama.cpp")  # 20 ms: far above the floor of its 32 layers
    assert theirs.tpot_ms == pytest.approx(engine.factor * ours.tpot_ms, rel=1e-9)
    assert theirs.source.startswith(
        f"borrowed from a100-80g-sxm; borrowed: llama.cpp clocked as vLLM × {engine.factor:g}"
    )


def test_the_floor_of_a_layer_holds_where_the_gpu_would_be_faster() -> None:
    """80 layers of the model on eight accelerators: the host's share times 80, whatever the accelerator."""
    engine = other_engine("vLLM (modified; Splitwise paper)")
    assert engine is not None
    at = {"model": "meta-llama/Llama-2-70b-hf", "gpu": "A100-80G-SXM", "tp": "8", "engine": engine.names[0]}
    found = predicted(**at)
    plan = predicted_plan({**CASE, **at})
    assert plan is not None
    assert found.tpot_ms == float(plan.tpot_ms[0]) == pytest.approx(engine.layer_floor_us * 80 / 1000)
    assert plan.tpot_low_ms[0] < found.tpot_ms < plan.tpot_high_ms[0]
    assert f"at least {engine.layer_floor_us:g} us a layer" in found.source
    assert found.source.startswith("borrowed: vLLM of 2023")


@pytest.mark.parametrize("name", ["MLC-LLM", "sambaflow", "", "Deepspeed", "llama.cpp v2"])
def test_an_engine_that_nothing_is_known_of_is_refused_by_name(name: str) -> None:
    with pytest.raises(CaseError, match="is not served") as refused:
        served_engine(name)
    assert (name or "(none)") in str(refused.value)


def test_ours_are_planned_as_they_are() -> None:
    assert served_engine(" vLLM ") == Served("vllm")
    assert served_engine("TRT-LLM").id == "trtllm"
    assert predicted(engine="TRT-LLM").tpot_ms == predicted(engine="TensorRT-LLM").tpot_ms


def test_heads_and_widths_are_padded_to_the_ranks() -> None:
    """Over 12 ranks 32 query heads become 36, 8 KV heads 12, and a width of 14,336 becomes 12 x 1,195."""
    group = padded(model("llama-3-8b"), 12).groups[0]
    attention, ffn = group.attention, group.ffn
    assert isinstance(attention, GroupedAttention)
    assert isinstance(ffn, DenseFFN)
    assert (attention.heads, attention.kv_heads) == (36, 12)
    shapes = {linear.name: (linear.inputs, linear.outputs) for linear in (*attention.linears, *ffn.linears)}
    assert shapes["q_proj"] == (4096, 36 * 128)
    assert shapes["k_proj"] == (4096, 12 * 128)
    assert shapes["o_proj"] == (36 * 128, 4096)
    assert shapes["up_proj"] == (4096, 14340)
    assert shapes["down_proj"] == (14340, 4096)
    assert padded(model("llama-3-8b"), 8) == model("llama-3-8b")
    assert padded(model("qwen3-30b-a3b"), 1) == model("qwen3-30b-a3b")


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("q4_0", 18 * 8 / 32),  # 32 nibbles and a 16-bit scale: 18 bytes
        ("Q8_0", 34 * 8 / 32),
        ("q4_k_m", 4.84),
        ("exl2-4.0bpw", 4.0),
        ("exl2-2.5bpw", 2.5),
        ("exl2-99bpw", None),
        ("exl2-0.1bpw", None),
        ("q4_0_extra", None),
        ("gguf q8_K_XL", None),
        ("fp8", None),
        ("", None),
    ],
)
def test_bits_of_packed_formats(text: str, bits: float | None) -> None:
    assert packed_bits(text) == bits


def test_packed_weights_take_their_bits() -> None:
    """8.03 billion weights of Llama 3 8B at 4.5 bits, embedding and head included."""
    found = predicted(engine="llama.cpp", weight_precision="q4_0")
    assert found.weights_gib == pytest.approx(8.03e9 * 4.5 / 8 / 2**30, rel=2e-3)
    assert "weights at 4.5 bits" in found.source
    assert found.tpot_ms < 0.45 * predicted(engine="llama.cpp").tpot_ms


def test_a_packed_format_without_published_bits_is_refused() -> None:
    with pytest.raises(CaseError, match="gguf q8_K_XL"):
        predicted(engine="llama.cpp", weight_precision="gguf q8_K_XL")


def test_packed_formats_have_bits_and_a_source() -> None:
    names = [each.name for each in packed_formats().format]
    assert len(names) == len(set(names))
    assert all(2.0 < each.bits < 9.0 and each.source for each in packed_formats().format)


def test_generation_from_an_empty_prompt_starts_from_one_token() -> None:
    empty, one = (predicted(engine="llama.cpp", isl=isl).tpot_ms for isl in ("0", "1"))
    assert empty == pytest.approx(one)
    with pytest.raises(CaseError, match="must be above 0"):
        predicted(isl="0")
