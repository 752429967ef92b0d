"""Weights: every parameter is stored once, in its format, and divided over the ranks that can divide it."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.models import model, model_ids
from planner.physics import weights
from planner.specs.layout import layout
from planner.specs.precision import WEIGHTS
from planner.specs.profile import MEASURED, TEXTBOOK, Conventions
from planner.units import GIB
from tests.asking import column, one


def held(
    name: str, precision: str = "bf16", convention: Conventions = MEASURED, redundant: float = 0.0, **degrees: int
) -> float:
    """Weight bytes on the fullest device."""
    spec = model(name)
    kinds = weights.formats(spec, precision, convention)
    return one(weights.weight_bytes(spec, kinds, layout(**degrees), redundant, convention))


@pytest.mark.parametrize("name", model_ids())
def test_one_device_holds_every_parameter_in_bf16(name: str) -> None:
    spec = model(name)
    assert held(name) == 2 * (spec.total_params + (spec.vision_params or 0) + spec.table_params)


@pytest.mark.parametrize(
    ("name", "tp", "precision", "printed"),
    [
        # Gemma 3: rotary tables of eight times its positions; 27B has heads of 128 and half the table
        ("gemma-3-4b", 1, "bf16", 8.58),
        ("gemma-3-12b", 1, "bf16", 23.31),
        ("gemma-3-27b", 1, "bf16", 51.45),
        # SigLIP is split, Pixtral is not
        ("granite-vision-3.3-2b", 1, "bf16", 5.54),
        ("granite-vision-3.3-2b", 2, "bf16", 2.79),
        ("mistral-small-3.1-24b", 1, "bf16", 44.76),
        ("llama-3.1-8b", 1, "fp32", 29.98),
    ],
)
def test_vllm_0_19_printed_these_weights(name: str, tp: int, precision: str, printed: float) -> None:
    assert held(name, precision, tp=tp) / GIB == pytest.approx(printed, rel=0.01)


def test_the_textbook_counts_no_tables() -> None:
    spec = model("gemma-3-4b")
    assert held("gemma-3-4b", convention=TEXTBOOK) == 2 * (spec.total_params + (spec.vision_params or 0))


@pytest.mark.parametrize(
    ("name", "precision", "ratio"),
    [("llama-3.1-8b", "fp8", 1.131), ("llama-3.1-70b", "fp8", 1.0298), ("qwen2.5-72b", "int4", 1.164)],
)
def test_embedding_and_head_stay_bf16(name: str, precision: str, ratio: float) -> None:
    """Over params · nominal bytes; engines print 1.135 and 1.031 for the first two, about 1.18 for 32B AWQ."""
    nominal = model(name).total_params * {"fp8": 1.0, "int4": 0.5}[precision]
    assert held(name, precision) / nominal == pytest.approx(ratio, rel=2e-3)


def test_fp8_of_llama_70b_by_hand() -> None:
    """70.554 G parameters, 2 · 128,256 · 8,192 of them in BF16, norms too."""
    plain = 2 * 128_256 * 8192 + (80 * 2 + 1) * 8192
    assert held("llama-3.1-70b", "fp8") == 70_553_706_496 - plain + 2 * plain


def test_the_textbook_stores_everything_in_the_named_format() -> None:
    assert held("llama-70b-nominal", "fp8", TEXTBOOK) == 70e9
    assert held("llama-3.1-70b", "fp8", TEXTBOOK) == 70_553_706_496


@pytest.mark.parametrize(
    ("name", "tp", "printed"),
    [
        ("gpt-oss-20b", 1, 13.64), ("gpt-oss-20b", 2, 7.01), ("gpt-oss-20b", 4, 3.63),
        ("gpt-oss-120b", 1, 65.97), ("gpt-oss-120b", 1, 64.38),
    ],
)  # fmt: skip
def test_experts_alone_are_mxfp4_in_gpt_oss(name: str, tp: int, printed: float) -> None:
    """GiB that vLLM 0.19 printed for the 20B, 0.10 and 0.11 for the 120B (65.97 with the kernels of 0.19)."""
    assert held(name, "mxfp4", tp=tp) / GIB == pytest.approx(printed, rel=0.03)


def test_mxfp4_kernels_pad_experts_by_hand() -> None:
    """gpt-oss-20b over 4: 2880 / 4 = 720 → 768 wide and 2880 → 3072 deep; 24 layers · 32 experts · 3 matrices of that."""
    padded = 24 * 32 * 3 * 768 * 3072 * (0.5 + 1 / 32)
    needed = 24 * 32 * 3 * 720 * 2880 * (0.5 + 1 / 32)
    rest = held("gpt-oss-20b", "mxfp4", tp=4) - padded
    assert padded / needed == pytest.approx(1.0667**2, rel=1e-4)
    assert 0.83 < rest / GIB < 0.87


def test_int4_kimi_keeps_attention_in_bf16() -> None:
    kinds = weights.formats(model("kimi-k2.5"), "int4", MEASURED)
    assert (kinds.dense.id, kinds.attention.id, kinds.experts.id, kinds.plain.id) == ("bf16", "bf16", "int4", "bf16")


def test_nvfp4_keeps_latent_attention_in_bf16() -> None:
    kinds = weights.formats(model("deepseek-v3"), "nvfp4", MEASURED)
    assert (kinds.attention.id, kinds.experts.id) == ("bf16", "nvfp4")


@pytest.mark.parametrize(("tp", "ways"), [(1, 1), (4, 4), (8, 8), (16, 8)])
def test_a_matrix_divides_up_to_its_shards(tp: int, ways: int) -> None:
    assert one(weights.matrix_bytes(1024, 2.0, 8, column(tp))) == 2048 / ways


@pytest.mark.parametrize(
    ("count", "redundant", "ep", "stored"),
    [(256, 0, 8, 32), (256, 0, 128, 2), (256, 32, 288, 1), (256, 0, 320, 1), (128, 0, 3, 43)],
)
def test_experts_on_the_fullest_rank(count: int, redundant: int, ep: int, stored: int) -> None:
    assert one(weights.experts_per_rank(count, redundant, column(ep))) == stored


def test_deepseek_v3_over_128_expert_ranks_with_data_parallel_attention() -> None:
    """The audit by hand: two routed experts in 58 layers 5.11 GB, shared 2.55, attention, dense layers, ends: 22.2 GB."""
    found = held("deepseek-v3", "fp8", TEXTBOOK, tp=1, dp=128, ep=128)
    assert found == pytest.approx(22.2253e9, rel=1e-3)


def test_redundant_experts_are_stored() -> None:
    one_expert = 3 * 7168 * 2048
    more = held("deepseek-v3", "fp8", TEXTBOOK, 128, dp=128, ep=128) - held(
        "deepseek-v3", "fp8", TEXTBOOK, dp=128, ep=128
    )
    assert more == 58 * one_expert


def test_experts_take_the_same_room_over_tp_as_over_ep() -> None:
    assert held("mixtral-8x7b", tp=8, ep=1) == held("mixtral-8x7b", tp=8, ep=8)


def test_norms_and_routers_are_on_every_rank() -> None:
    """Llama-2-7B: 65 norms of 4,096."""
    assert 2 * held("llama-2-7b", tp=2) - held("llama-2-7b") == 2 * 65 * 4096


def test_vision_towers_are_on_every_rank() -> None:
    spec = model("mistral-small-3.1-24b")
    assert spec.vision_params
    assert 8 * held("mistral-small-3.1-24b", tp=8) - held("mistral-small-3.1-24b") >= 7 * 2 * spec.vision_params


def test_a_stage_holds_whole_layers() -> None:
    """61 layers of Kimi-like depth over 2 stages: 31 on the fullest, with the larger of embedding and head."""
    spec = model("llama-3.1-70b")
    layer = (spec.total_params - spec.embed_params - spec.head_params - spec.final_params) / 80
    expected = 2 * (27 * layer + max(spec.embed_params, spec.head_params) + spec.final_params)
    assert held("llama-3.1-70b", pp=3) == pytest.approx(expected, rel=1e-12)


def test_prediction_layers_count_when_loaded() -> None:
    spec = model("glm-5.2")
    kinds = weights.formats(spec, "bf16", MEASURED)
    plain, loaded = (one(weights.weight_bytes(spec, kinds, layout(), 0.0, MEASURED, mtp=mtp)) for mtp in (False, True))
    assert loaded - plain == 2 * spec.mtp_params


def test_formats_with_scales() -> None:
    assert WEIGHTS["int4"].bytes == 4.25 / 8
    assert WEIGHTS["nvfp4"].bytes == 4.5 / 8
    assert WEIGHTS["mxfp4"].bytes == 4.25 / 8


def test_columns_and_lone_values_agree() -> None:
    spec = model("deepseek-v3")
    kinds = weights.formats(spec, "fp8-block", MEASURED)
    tp, ep = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 1.0, 2.0, 8.0])
    together = weights.weight_bytes(spec, kinds, layout(tp=tp, ep=ep), 0.0, MEASURED)
    alone = [
        one(weights.weight_bytes(spec, kinds, layout(tp=t, ep=e), 0.0, MEASURED)) for t, e in zip(tp, ep, strict=True)
    ]
    assert together.reshape(-1).tolist() == alone


def test_the_fullest_stage_of_a_teaching_model_has_its_whole_layers() -> None:
    """80 layers on three stages: 27 on the fullest, 27/80 of 70 GB."""
    assert held("llama-70b-nominal", "fp8", TEXTBOOK, pp=3) == pytest.approx(23.625e9)
    assert held("llama-70b-nominal", "fp8", TEXTBOOK, pp=2, tp=2) == pytest.approx(17.5e9)
