"""The model presets: exact counts against independent ones, cache sizes, names."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from planner.catalog.models import FOLDER, find_model, model, model_ids, preset
from planner.errors import CatalogueError
from planner.specs.model import (
    UNSPLIT,
    DenseFFN,
    ExpertFFN,
    GroupedAttention,
    LatentAttention,
    LayerGroup,
    Linear,
    LinearAttention,
    ModelSpec,
)
from planner.specs.precision import WEIGHTS

GOLDEN = Path(__file__).parents[1] / "golden" / "model_params.csv"

KERNELS = {
    "qkv", "q", "qkv_a", "q_b", "kv_b", "o", "gate_up", "down", "router", "shared_gate", "index", "in_proj", "out_proj",
    "latent_down", "latent_up",
}  # fmt: skip


@cache
def golden() -> dict[str, dict[str, str]]:
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def cache_elements(group: LayerGroup) -> int:
    """Growing cache of one layer, elements a token."""
    match group.attention:
        case GroupedAttention() as gqa:
            return gqa.kv_heads * (gqa.head_dim + gqa.v_head_dim)
        case LatentAttention() as mla:
            return mla.kv_lora_rank + mla.rope_dim
    return 0


def window_of(group: LayerGroup) -> int | None:
    return group.attention.window if isinstance(group.attention, GroupedAttention) else None


def index_elements(group: LayerGroup) -> int:
    index = group.attention.index if isinstance(group.attention, LatentAttention) else None
    return index.dim if index is not None and index.heads else 0


def linears(spec: ModelSpec) -> list[Linear]:
    found: list[Linear] = []
    for group in (*spec.groups, *spec.mtp):
        if group.attention is not None:
            found += group.attention.linears
        match group.ffn:
            case DenseFFN() as dense:
                found += dense.linears
            case ExpertFFN() as experts:
                found += (*experts.expert, *experts.shared, *experts.outer)
    return found


def test_every_preset_has_a_golden_row() -> None:
    assert set(model_ids()) == set(golden())
    assert len(model_ids()) >= 60
    assert list(model_ids()) == sorted(path.stem for path in FOLDER.glob("*.toml"))


@pytest.mark.parametrize("id", sorted(golden()))
def test_parameters_to_the_last_one(id: str) -> None:
    row, spec = golden()[id], model(id)
    assert spec.total_params == int(row["total"])
    assert spec.mtp_params == int(row["mtp"])
    assert spec.embed_params == int(row["embed"])
    assert spec.head_params == int(row["lm_head"])
    if spec.nominal_params is None:
        assert round(spec.active_params / 1e9, 3) == float(row["active_b"])


@pytest.mark.parametrize("id", sorted(golden()))
def test_cache_and_state_elements(id: str) -> None:
    row, spec = golden()[id], model(id)
    full = sum(group.count * cache_elements(group) for group in spec.groups if window_of(group) is None)
    windowed = sum(group.count * cache_elements(group) for group in spec.groups if window_of(group) is not None)
    assert full == int(row["kv_full"])
    assert windowed == int(row["kv_windowed"])
    assert {window for group in spec.groups if (window := window_of(group))} == (
        {int(row["window"])} if row["window"] else set()
    )
    assert sum(group.count * index_elements(group) for group in spec.groups) == int(row["kv_index"])
    states = [(group.count, group.attention) for group in spec.groups if isinstance(group.attention, LinearAttention)]
    assert sum(count * block.state_elements for count, block in states) == int(row["state"])
    assert sum(count * block.conv_elements for count, block in states) == int(row["conv"])
    assert all(block.state_bytes == 4 for _, block in states)


@pytest.mark.parametrize("id", model_ids())
def test_published_size_is_met(id: str) -> None:
    entry, spec = preset(id), model(id)
    if entry.published_total_b is None or spec.nominal_params is not None:
        return
    candidates = [spec.total_params + extra for extra in (0, spec.vision_params or 0, spec.mtp_params)]
    nearest = min(abs(count / 1e9 / entry.published_total_b - 1) for count in candidates)
    assert nearest < (
        0.06 if entry.published_total_b < 10 and entry.published_total_b == int(entry.published_total_b) else 0.031
    )


@pytest.mark.parametrize("id", model_ids())
def test_record_is_complete(id: str) -> None:
    entry, spec = preset(id), model(id)
    assert spec.id == id
    assert spec.source
    assert spec.date
    assert spec.confidence
    assert spec.precision in WEIGHTS
    assert spec.experts_precision is None or spec.experts_precision in WEIGHTS
    assert all(entry.sources)
    assert spec.vision_params is not None
    assert not any(note.startswith("ignored keys") for note in spec.notes)


@pytest.mark.parametrize("id", model_ids())
def test_matrices_are_well_formed(id: str) -> None:
    for linear in linears(model(id)):
        assert linear.kernel in KERNELS
        assert min(linear.inputs, linear.outputs, linear.shards, linear.copies) >= 1
        if linear.kernel in {"router", "shared_gate", "index"}:
            assert not linear.quantised
            assert linear.shards == UNSPLIT
        if linear.kernel in {"qkv_a", "latent_down", "latent_up"}:
            assert linear.shards == UNSPLIT
        if linear.name in {"gate_proj", "up_proj", "down_proj"}:
            assert linear.shards == (linear.inputs if linear.kernel == "down" else linear.outputs)


@pytest.mark.parametrize("id", model_ids())
def test_attention_splits_by_its_heads(id: str) -> None:
    for group in model(id).groups:
        match group.attention:
            case GroupedAttention() as gqa:
                by_name = {linear.name: linear for linear in gqa.linears}
                assert by_name["o_proj"].shards == gqa.heads
                assert by_name["k_proj"].shards == by_name["v_proj"].shards == gqa.kv_heads
                assert by_name["k_proj"].outputs == gqa.kv_heads * gqa.head_dim
                assert by_name["o_proj"].inputs == gqa.heads * gqa.v_head_dim
            case LatentAttention() as mla:
                split = {linear.shards for linear in mla.linears if linear.kernel in {"q", "q_b", "kv_b", "o"}}
                assert split == {mla.heads}
            case LinearAttention() as linear:
                assert {part.shards for part in linear.linears if part.kernel != "qkv_a"} == {linear.state_shards}


def test_glm_5_2_keeps_index_keys_in_21_layers_and_reads_top_k_in_all() -> None:
    spec = model("glm-5.2")
    blocks = [(group.count, group.attention) for group in spec.groups]
    indexed = [(count, block.index) for count, block in blocks if isinstance(block, LatentAttention) and block.index]
    assert sum(count for count, _ in indexed) == 78
    assert {index.top_k for _, index in indexed} == {2048}
    assert sum(count for count, index in indexed if index.heads) == 21
    assert sum(group.count for group in spec.groups if isinstance(group.ffn, DenseFFN)) == 3


def test_only_the_experts_of_gpt_oss_and_kimi_are_quantised() -> None:
    assert (model("gpt-oss-120b").precision, model("gpt-oss-120b").experts_precision) == ("bf16", "mxfp4")
    assert (model("kimi-k2.5").precision, model("kimi-k2.5").experts_precision) == ("bf16", "int4")
    assert model("deepseek-v3").precision == "fp8-block"


def test_llama_405b_fp8_keeps_attention_at_16_bits() -> None:
    kept = {linear.name for linear in linears(model("llama-3.1-405b-fp8")) if not linear.quantised}
    assert kept == {"q_proj", "k_proj", "v_proj", "o_proj"}
    assert all(linear.quantised for linear in linears(model("llama-3.1-405b")))


def test_nominal_model_has_exactly_seventy_billion() -> None:
    spec = model("llama-70b-nominal")
    assert spec.total_params == spec.active_params == 70_000_000_000
    assert (spec.layers, spec.hidden, spec.vocab) == (80, 8192, 128256)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "llama-3.1-8b"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "llama-3.1-8b"),
        ("redhatai/Llama-3.3-70B-Instruct-fp8-dynamic", "llama-3.3-70b"),
        ("nvidia/Llama-3.3-70B-Instruct-FP8", "llama-3.3-70b"),
        ("meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", "llama-3.1-405b-fp8"),
        ("DeepSeek-R1-0528", "deepseek-r1"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2"),
        ("lukealonso/GLM-5.1-NVFP4-MTP", "glm-5.1"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "qwen2.5-72b"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b-2507"),
        ("openai/GPT-OSS-120B", "gpt-oss-120b"),
        ("Llama-3-8B", "llama-3-8b"),
        ("Llama 3.1 8B", "llama-3.1-8b"),
        ("BLOOM-176B", "bloom-176b"),
        ("glm-5.2", "glm-5.2"),
    ],
)
def test_names_in_tables_resolve(text: str, id: str) -> None:
    found = find_model(text)
    assert found is not None
    assert found.id == id


@pytest.mark.parametrize(
    "text", ["", "  ", "/", "DeepSeek-V4-Flash", "MiniMax-M3", "llama", "-fp8", "x" * 10_000, "any, 1M context"]
)
def test_unknown_names_resolve_to_nothing(text: str) -> None:
    assert find_model(text) is None


def test_unknown_id_names_near_matches() -> None:
    with pytest.raises(CatalogueError, match=r"near matches: .*llama-3\.1-70b"):
        model("llama-3.1-70")
    with pytest.raises(CatalogueError, match="not in the catalogue"):
        model("zzzzzzzz" * 1000)


def test_reading_is_cached() -> None:
    assert model("llama-3.1-8b") is model("llama-3.1-8b")
