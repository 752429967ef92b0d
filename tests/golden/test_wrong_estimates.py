"""What other planners got wrong, with the right value, through this planner's public path.

`wrong_estimates.json` holds every collected record: what the tool said, what is right, and either the number that is
measured here (`expected`) or why it is not (`not_tested`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.accelerators import accelerator
from planner.catalog.hf_config import model_from_json
from planner.catalog.models import model
from planner.errors import ModelConfigError
from planner.physics import kv
from planner.physics.weights import formats, weight_bytes
from planner.plan import Plan
from planner.specs.layout import layout
from planner.specs.model import DenseFFN
from planner.specs.precision import WEIGHTS
from planner.specs.profile import MEASURED
from planner.units import GIB, show
from tests import asking
from tests.asking import ONE, column, one, setting, token_bytes

RECORDS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "wrong_estimates.json").read_text(encoding="utf-8"))
TESTED = [record for record in RECORDS if "expected" in record]

CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18944,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
"""A plain configuration, to which each record adds what a tool did not read."""


def plan(name: str, **changes: Any) -> Plan:
    return asking.plan(model=name, **changes)


def longest_gib(name: str, part: str = "keys and values", *, mtp: bool = False) -> float:
    """Cache of one longest sequence, exactly, without recurrent states."""
    chosen = tuple(p for p in asking.cache_parts(name, mtp=mtp) if p.name == part)
    return one(kv.sequence_bytes(chosen, column(model(name).max_len or 0), ONE, ONE, ONE, kv.EXACT)) / GIB


def visible_gib(gpu: str) -> float:
    return (accelerator(gpu).visible_memory or 0.0) / GIB


def total_weights(name: str, precision: str, tp: int = 1) -> float:
    spec = model(name)
    return one(weight_bytes(spec, formats(spec, precision, MEASURED), layout(tp), 0.0, MEASURED))


def imported(**extra: Any) -> Any:
    return model_from_json(json.dumps({**CONFIG, **extra}))


def refused_key(**extra: Any) -> str:
    with pytest.raises(ModelConfigError) as found:
        imported(**extra)
    return found.value.key


def memory_with(precision: str) -> Plan:
    return plan("llama-3.1-70b", tp=8, kv=precision)


def only_the_cache_changes() -> float:
    full, half = memory_with("bf16"), memory_with("fp8")
    rest = ("weights_bytes", "activation_bytes", "graph_bytes", "runtime_bytes", "kv_pool_bytes", "usable_bytes")
    assert [getattr(full, name) for name in rest] == [getattr(half, name) for name in rest]
    return half.kv_bytes_per_token / full.kv_bytes_per_token


def infeasible_stays_infeasible() -> int:
    found = plan("deepseek-v3", weights="fp8-block", tp=2)
    assert not found.fits
    assert found.kv_capacity_tokens == 0
    assert found.tpot_ms is None
    assert any(note.code in ("nearest_fit", "nothing_fits") for note in found.notes)
    return found.b_max


def starcoder_blocks() -> float:
    """Windowed layers keep window − 1 + step tokens and one block; full ones keep everything."""
    at = setting(model="starcoder2-3b", isl=16_128, osl=256, token_budget=8192)
    return 16_384 * 30 * 1024 / one(asking.sequence_bytes(at, 16_384, allocation=at.allocation))


def dense_layers_first() -> float:
    first = model("glm-5.2").groups[0]
    assert first.count == 3
    assert isinstance(first.ffn, DenseFFN)
    return token_bytes("glm-5.2", part="latent")


def unknown_method_is_refused() -> float:
    assert refused_key(quantization_config={"quant_method": "mystery"}) == "quantization_config.quant_method"
    return WEIGHTS["nvfp4"].bytes


def nvfp4_linear_bytes() -> float:
    """Weight bytes of a layer's matrices over their number."""
    spec = model("llama-3.1-70b")
    plain = 2.0 * (spec.embed_params + spec.head_params)
    linear = spec.total_params - spec.embed_params - spec.head_params
    return (total_weights("llama-3.1-70b", "nvfp4") - plain) / linear


def step_ms(name: str, context: float) -> float:
    return one(asking.step_seconds(setting(model=name, profile="textbook"), 1, context)) * 1e3


def tp8_tokens_over_divided() -> float:
    """F03: what a GPU holds when four heads cannot be cut eight ways."""
    found = plan("qwen3-30b-a3b", tp=8)
    divided = token_bytes("qwen3-30b-a3b") / 8
    return divided / found.kv_bytes_per_token


def capacity_over_mixed_units() -> float:
    """F05: an all-GPU pool over all-GPU bytes a token, and over one GPU's."""
    found = plan("llama-3.1-70b", tp=8, isl=7936, osl=256)
    assert abs(found.kv_capacity_tokens - found.b_max_kv * 8192) < 8192
    return found.kv_capacity_tokens / (found.kv_pool_bytes * 8 / found.kv_bytes_per_token)


def float32_note() -> str:
    notes = " ".join(imported(torch_dtype="float32").notes)
    return "2 bytes a parameter" if "2 bytes a parameter" in notes else notes


def yarn_length() -> int:
    scaled = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    return imported(rope_scaling=scaled).max_len


def gb200() -> list[float]:
    return [accelerator("gb200-nvl72").memory / 1e9, accelerator("gb200-nvl72").bandwidth / 1e12]


def default_length() -> float:
    found = plan("qwen3.5-9b", profile="textbook")
    return one(asking.sequence_bytes(setting(model="qwen3.5-9b", profile="textbook"), 1280)) / found.kv_bytes_per_token


def request_ratio() -> float:
    long, short = asking.sequence_bytes(setting(model="qwen3-235b-a22b", profile="textbook"), (4096, 2))
    return float(long / short)


def default_request_gb() -> float:
    found = plan("llama-3.1-70b", profile="textbook", tp=4)
    return found.kv_bytes_per_token * 4 * (found.scenario.isl + found.scenario.osl) / 1e9


def routed_experts_bytes() -> float:
    """P48: all routed experts, from what twice the expert ranks save of each rank."""
    spec = model("kimi-k2")
    few, many = (
        one(weight_bytes(spec, formats(spec, "bf16", MEASURED), where, 0.0, MEASURED))
        for where in (layout(16, dp=2, ep=32), layout(16, dp=4, ep=64))
    )
    return 64 * (few - many)


def plain_total(name: str) -> float:
    return model(name).total_params / 1e9


MEASURES: dict[str, Callable[[], Any]] = {
    "P04": lambda: token_bytes("gpt-oss-120b"),
    "P05": lambda: f"{show(2.0**30, 'bytes')} / {show(2.0**30, 'GiB')}",
    "P07": only_the_cache_changes,
    "P08": lambda: token_bytes("deepseek-v2-lite"),
    "P10": lambda: [
        longest_gib("gemma-3-27b"), longest_gib("qwen3.5-27b"), longest_gib("deepseek-v3", "latent"),
        longest_gib("glm-5", "latent", mtp=True), longest_gib("kimi-k2.5", "latent"), longest_gib("qwen3-0.6b"),
    ],
    "P12": lambda: [visible_gib("b200-sxm"), visible_gib("h100-sxm"), visible_gib("a100-80g-sxm")],
    "P14": unknown_method_is_refused,
    "P17": float32_note,
    "P22": default_length,
    "P27": lambda: total_weights("qwen2.5-72b", "int4") / 1e9,
    "P29": lambda: refused_key(type_vocab_size=2),
    "P30": yarn_length,
    "P34": lambda: plan("qwen3-0.6b").activation_bytes / GIB,
    "P40": starcoder_blocks,
    "P45": lambda: token_bytes("deepseek-v3.2", part="index keys") * 1_462_784 / GIB,
    "P46": lambda: token_bytes("qwen3-32b") / plan("qwen3-32b", tp=4).kv_bytes_per_token,
    "P48": routed_experts_bytes,
    "P48b": lambda: refused_key(routed_expert_hidden_size=3584),
    "P49": lambda: token_bytes("nemotron-h-56b"),
    "P50": infeasible_stays_infeasible,
    "P51": dense_layers_first,
    "P52": nvfp4_linear_bytes,
    "P57": lambda: show(accelerator("rtx-4090").physical_memory, "GiB"),
    "P58": request_ratio,
    "P63": lambda: 2 * total_weights("llama-2-7b", "bf16", 2) - total_weights("llama-2-7b", "bf16"),
    "P64": lambda: next(r.operator for r in plan("llama-3.1-70b", tp=16).ledger if "across" in r.operator),
    "F02": lambda: token_bytes("glm-5.2", part="latent"),
    "F03": tp8_tokens_over_divided,
    "F05": capacity_over_mixed_units,
    "F06": lambda: [visible_gib("h100-sxm"), visible_gib("h200-sxm"), visible_gib("b200-sxm")],
    "F07": lambda: step_ms("llama-3.1-8b", 32_768),
    "F10": lambda: plan("qwen3-30b-a3b", tp=8).kv_bytes_per_token,
    "F11": gb200,
    "F12": lambda: total_weights("deepseek-v3", "bf16", 8) / 2**20,
    "F14": lambda: plan("llama-3.1-70b", weights="fp8", tp=2).kv_bytes_per_token * 2 / (80 * 8 * 256),
    "F15": lambda: token_bytes("deepseek-v3"),
    "F17": lambda: plan("llama-3.1-8b").physical_bytes,
    "F18": lambda: token_bytes("llama-3-70b") * 32_768 * 8 / GIB,
    "F19": lambda: token_bytes("deepseek-r1", 16) / token_bytes("deepseek-r1"),
    "F20": lambda: [plain_total("qwen2.5-72b"), plain_total("llama-2-7b"), plain_total("llama-3.1-8b")],
    "F22": lambda: token_bytes("llama-3.1-70b", 32) / token_bytes("llama-3.1-70b", 8),
    "F23": default_request_gb,
}  # fmt: skip


@pytest.mark.parametrize("record", TESTED, ids=lambda record: record["id"])
def test_the_right_value(record: dict[str, Any]) -> None:
    value, expected = MEASURES[record["id"]](), record["expected"]
    wanted = expected if isinstance(expected, str) else pytest.approx(expected, rel=record["rel"])
    assert value == wanted, f"{record['measured']} [{record['unit']}]; tools said {record['tool_said']}"


def test_every_record_is_measured_or_says_why_not() -> None:
    assert set(MEASURES) == {record["id"] for record in TESTED}
    assert all(record.get("not_tested") for record in RECORDS if "expected" not in record)
    assert len({record["id"] for record in RECORDS}) == len(RECORDS) == 61


def test_no_length_beyond_the_window_is_charged_twice() -> None:
    """P04's idea: all layers cost the same up to the window, then only the full ones go on growing."""
    held = asking.sequence_bytes(setting(model="gpt-oss-120b", profile="textbook"), (127, 128, 130, 1130))
    assert held[1] - held[0] == 73_728
    assert held[3] - held[2] == 1000 * 36_864
