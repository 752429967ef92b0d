"""The importer of Hugging Face configurations: each family, each refusal by its key, and nothing but its own error."""

from __future__ import annotations

import copy
import json
import math
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.hf_config import LARGEST_FILE, model_from_config, model_from_json
from planner.catalog.hf_keys import HARMLESS, REFUSED
from planner.errors import ModelConfigError
from planner.specs.model import (
    DenseFFN,
    ExpertFFN,
    GroupedAttention,
    LatentAttention,
    Linear,
    LinearAttention,
    ModelSpec,
)

Config = dict[str, Any]

LLAMA: Config = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "rms_norm_eps": 1e-5, "rope_theta": 5e5, "attention_bias": False, "mlp_bias": False,
}  # fmt: skip
QWEN_MOE: Config = {
    "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
    "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936,
    "tie_word_embeddings": False, "max_position_embeddings": 40960,
}  # fmt: skip
DEEPSEEK: Config = {
    "model_type": "deepseek_v32", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "first_k_dense_replace": 3,
    "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
    "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048, "num_nextn_predict_layers": 1,
    "max_position_embeddings": 163840, "tie_word_embeddings": False,
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
}  # fmt: skip
QWEN_NEXT: Config = {
    "model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "vocab_size": 151936,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "full_attention_interval": 4, "moe_intermediate_size": 512, "num_experts": 512,
    "shared_expert_intermediate_size": 512, "num_experts_per_tok": 10, "tie_word_embeddings": False,
}  # fmt: skip
NEMOTRON: Config = {
    "model_type": "nemotron_h", "hidden_size": 2688, "hybrid_override_pattern": "MEM*E-", "intermediate_size": 1856,
    "num_hidden_layers": 6, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "conv_kernel": 4,
    "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "mlp_hidden_act": "relu2",
    "n_routed_experts": 128, "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "n_shared_experts": 1,
    "moe_shared_expert_intermediate_size": 3712, "vocab_size": 131072, "tie_word_embeddings": False,
}  # fmt: skip
GPT_OSS: Config = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 2, "head_dim": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 32, "num_experts_per_tok": 4,
    "experts_per_token": 4, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 128,
    "attention_bias": True, "vocab_size": 201088, "max_position_embeddings": 131072, "tie_word_embeddings": False,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
}  # fmt: skip
LLAMA_4: Config = {
    "model_type": "llama4", "text_config": {
        "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
        "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
        "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "vocab_size": 202048,
        "attention_chunk_size": 8192, "max_position_embeddings": 1048576, "use_qk_norm": False,
    },
}  # fmt: skip
MINIMAX: Config = {
    "model_type": "minimax_m1", "hidden_size": 6144, "intermediate_size": 9216, "num_hidden_layers": 8, "head_dim": 128,
    "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 32, "num_experts_per_tok": 2,
    "attn_type_list": [0] * 7 + [1], "vocab_size": 200064, "shared_intermediate_size": 0, "tie_word_embeddings": False,
}  # fmt: skip
FAMILIES = {
    "llama": LLAMA, "qwen3_moe": QWEN_MOE, "deepseek": DEEPSEEK, "qwen3_next": QWEN_NEXT, "nemotron": NEMOTRON,
    "gpt_oss": GPT_OSS, "llama4": LLAMA_4, "minimax": MINIMAX,
}  # fmt: skip


def changed(base: Config, **changes: object) -> Config:
    return {**copy.deepcopy(base), **changes}


def without(base: Config, *keys: str) -> Config:
    return {key: value for key, value in base.items() if key not in keys}


def refused(config: Config) -> str:
    """The key that the importer names."""
    with pytest.raises(ModelConfigError) as caught:
        model_from_config(config)
    return caught.value.key


def matrix(linears: tuple[Linear, ...], name: str) -> Linear:
    return next(linear for linear in linears if linear.name == name)


def attentions(spec: ModelSpec) -> list[tuple[int, object]]:
    return [(group.count, group.attention) for group in spec.groups]


# ---- families


def test_llama_by_hand() -> None:
    spec = model_from_config(LLAMA, id="mine", name="Mine", source="hand")
    (group,) = spec.groups
    assert isinstance(group.attention, GroupedAttention)
    assert isinstance(group.ffn, DenseFFN)
    assert (group.count, group.norm_params) == (32, 2 * 4096)
    assert (group.attention.heads, group.attention.kv_heads, group.attention.head_dim) == (32, 8, 128)
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096
    assert spec.total_params == 32 * layer + 2 * 128256 * 4096 + 4096
    assert {linear.kernel for linear in group.attention.linears} == {"qkv", "o"}
    assert any("head_dim is not stated" in note for note in spec.notes)
    assert (spec.id, spec.name, spec.source, spec.precision) == ("mine", "Mine", "hand", "bf16")


@pytest.mark.parametrize("family", FAMILIES)
def test_text_and_dict_give_the_same_model(family: str) -> None:
    config = FAMILIES[family]
    spec = model_from_config(config)
    assert model_from_json(json.dumps(config)) == spec
    assert model_from_json(json.dumps(config).encode()) == spec
    assert hash(spec) == hash(model_from_config(copy.deepcopy(config)))
    assert 0 < spec.active_params <= spec.total_params


@pytest.mark.parametrize("family", FAMILIES)
def test_class_names_do_not_matter(family: str) -> None:
    config = changed(FAMILIES[family], architectures=["T5ForConditionalGeneration"])
    assert model_from_config(config) == model_from_config(FAMILIES[family])


def test_experts_and_their_router() -> None:
    (group,) = model_from_config(QWEN_MOE).groups
    assert isinstance(group.ffn, ExpertFFN)
    assert (group.ffn.count, group.ffn.top_k, group.ffn.expert_params) == (128, 8, 3 * 2048 * 768)
    assert matrix(group.ffn.outer, "gate").quantised is False
    assert group.ffn.shared == ()


def test_dense_layers_among_experts() -> None:
    spec = model_from_config(changed(QWEN_MOE, decoder_sparse_step=2, mlp_only_layers=[1]))
    counts = {type(group.ffn): group.count for group in spec.groups}
    assert counts == {ExpertFFN: 23, DenseFFN: 25}


def test_latent_attention_with_index_and_prediction_layer() -> None:
    spec = model_from_config(DEEPSEEK)
    block = spec.groups[0].attention
    assert isinstance(block, LatentAttention)
    assert (block.kv_lora_rank, block.rope_dim, block.q_lora_rank) == (512, 64, 1536)
    assert block.index is not None
    assert (block.index.heads, block.index.dim, block.index.top_k) == (64, 128, 2048)
    assert [group.count for group in spec.groups] == [3, 58]
    assert sum(group.count for group in spec.mtp) == 1
    assert spec.mtp_extra_params == 2 * 7168 * 7168 + 3 * 7168
    assert spec.precision == "fp8-block"


def test_shared_index_from_frequency_equals_the_list() -> None:
    config = without(DEEPSEEK, "quantization_config") | {"num_hidden_layers": 78}
    types = ["full"] * 3 + ["shared"] * 3 + (["full"] + ["shared"] * 3) * 18
    by_list = model_from_config(config | {"indexer_types": types})
    by_rule = model_from_config(config | {"index_topk_freq": 4, "index_skip_topk_offset": 3})
    assert by_list == by_rule
    shared = [group.count for group in by_list.groups if group.attention.index.heads == 0]
    assert sum(shared) == 57


def test_query_without_rank_is_one_matrix() -> None:
    config = without(DEEPSEEK, "index_topk", "index_n_heads", "index_head_dim") | {"q_lora_rank": None}
    block = model_from_config(config).groups[0].attention
    assert isinstance(block, LatentAttention)
    assert matrix(block.linears, "q_proj").kernel == "q"
    assert block.index is None


def test_delta_net_by_hand() -> None:
    spec = model_from_config(QWEN_NEXT)
    linear = spec.groups[0].attention
    assert isinstance(linear, LinearAttention)
    assert [group.count for group in spec.groups] == [36, 12]
    assert linear.state_elements == 32 * 128 * 128
    assert linear.conv_elements == 3 * (2 * 16 * 128 + 32 * 128)
    assert (linear.state_shards, linear.state_bytes) == (32, 4)
    full = spec.groups[1].attention
    assert isinstance(full, GroupedAttention)
    assert matrix(full.linears, "q_proj").outputs == 2 * 16 * 256
    assert isinstance(spec.groups[0].ffn, ExpertFFN)
    assert matrix(spec.groups[0].ffn.outer, "shared_expert_gate").params == 2048


def test_state_precision_follows_the_configuration() -> None:
    linear = model_from_config(changed(QWEN_NEXT, mamba_ssm_dtype="bfloat16")).groups[0].attention
    assert isinstance(linear, LinearAttention)
    assert linear.state_bytes == 2
    assert refused(changed(QWEN_NEXT, mamba_ssm_dtype="int8")) == "mamba_ssm_dtype"


def test_blocks_in_layers_of_their_own() -> None:
    spec = model_from_config(NEMOTRON)
    kinds = [(group.count, type(group.attention).__name__, type(group.ffn).__name__) for group in spec.groups]
    assert kinds == [
        (2, "LinearAttention", "NoneType"),
        (2, "NoneType", "ExpertFFN"),
        (1, "GroupedAttention", "NoneType"),
        (1, "NoneType", "DenseFFN"),
    ]
    dense = spec.groups[3].ffn
    assert isinstance(dense, DenseFFN)
    assert [linear.name for linear in dense.linears] == ["up_proj", "down_proj"]


def test_block_words_equal_block_letters() -> None:
    words = ["mamba", "moe", "mamba", "attention", "moe", "mlp"]
    config = without(NEMOTRON, "hybrid_override_pattern", "num_hidden_layers") | {"layers_block_type": words}
    assert model_from_config(config) == model_from_config(NEMOTRON)


def test_latent_experts_have_projections_around_them() -> None:
    spec = model_from_config(changed(NEMOTRON, moe_latent_size=1024))
    experts = spec.groups[1].ffn
    assert isinstance(experts, ExpertFFN)
    assert experts.expert_params == 2 * 1024 * 1856
    assert matrix(experts.outer, "fc1_latent_proj").params == 2688 * 1024
    assert matrix(experts.outer, "gate").inputs == 2688


def test_lightning_attention_has_no_convolution() -> None:
    spec = model_from_config(MINIMAX)
    assert [count for count, _ in attentions(spec)] == [7, 1]
    linear = spec.groups[0].attention
    assert isinstance(linear, LinearAttention)
    assert (linear.state_elements, linear.conv_elements) == (64 * 128 * 128, 0)


def test_gpt_oss_counts_biases_and_sinks() -> None:
    spec = model_from_config(GPT_OSS)
    block, experts = spec.groups[0].attention, spec.groups[0].ffn
    assert isinstance(block, GroupedAttention)
    assert isinstance(experts, ExpertFFN)
    assert block.extra_params == (64 + 2 * 8) * 64 + 2880 + 64
    assert experts.expert_extra_params == 2 * 2880 + 2880
    assert (spec.precision, spec.experts_precision) == ("bf16", "mxfp4")


def test_chunked_layers_and_interleaved_experts() -> None:
    spec = model_from_config(LLAMA_4)
    windows = {block.window: 0 for _, block in attentions(spec)}
    for count, block in attentions(spec):
        windows[block.window] += count
    assert windows == {8192: 36, None: 12}
    assert sum(group.count for group in spec.groups if isinstance(group.ffn, ExpertFFN)) == 24
    listed = copy.deepcopy(LLAMA_4)
    listed["text_config"]["no_rope_layers"] = [1, 1, 1, 0] * 12
    assert model_from_config(listed) == spec


# ---- windows


@pytest.mark.parametrize(
    ("changes", "windowed"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 32),
        ({"model_type": "mistral", "sliding_window": None}, 0),
        ({"model_type": "gemma2", "sliding_window": 4096}, 16),
        ({"model_type": "gemma2", "sliding_window": 4096, "sliding_window_size": 4096}, 16),
        ({"model_type": "gemma3_text", "sliding_window": 1024}, 27),
        ({"model_type": "new", "sliding_window": 1024, "sliding_window_pattern": 4}, 24),
        ({"model_type": "qwen2", "sliding_window": 1024, "use_sliding_window": False, "max_window_layers": 8}, 0),
        ({"model_type": "qwen2", "sliding_window": 1024, "use_sliding_window": True, "max_window_layers": 20}, 12),
        (
            {"model_type": "new", "sliding_window": 1024, "layer_types": ["sliding_attention", "full_attention"] * 16},
            16,
        ),
        ({"model_type": "new", "sliding_window": 131072}, 0),
    ],
)
def test_which_layers_have_a_window(changes: Config, windowed: int) -> None:
    spec = model_from_config(changed(LLAMA, **changes))
    assert sum(count for count, block in attentions(spec) if block.window is not None) == windowed


def test_window_of_unknown_layers_is_refused() -> None:
    assert refused(changed(LLAMA, model_type="new", sliding_window=1024)) == "sliding_window"
    assert refused(changed(LLAMA, model_type="new", attention_chunk_size=1024)) == "attention_chunk_size"


# ---- storage

AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}
KEPT = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|down)_proj.*"]


def tensors(weights: Config, inputs: object = None, **more: object) -> Config:
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": inputs}}
    return {"quant_method": "compressed-tensors", "config_groups": groups, **more}


@pytest.mark.parametrize(
    ("method", "precision"),
    [
        (AWQ, "int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_algo": "FP8", "producer": {"name": "modelopt"}}, "fp8"),
        (tensors({"num_bits": 8, "type": "float", "strategy": "channel"}, {"num_bits": 8}), "fp8"),
        (tensors({"num_bits": 8, "type": "int", "strategy": "channel"}, {"num_bits": 8}), "int8"),
        (tensors({"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group"}), "int4"),
        (tensors({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}), "fp8-block"),
        (tensors({"num_bits": 4, "type": "float", "group_size": 16}), "nvfp4"),
    ],
)
def test_quantisation_methods(method: Config, precision: str) -> None:
    assert model_from_config(changed(LLAMA, quantization_config=method)).precision == precision


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ({"quant_method": "quip"}, "quant_method"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "quant_method"),
        ({}, "quant_method"),
        ({"quant_method": "gptq", "bits": 8}, "bits"),
        ({"quant_method": "awq"}, "bits"),
        ({"quant_method": "fp8", "weight_block_size": [1, 128]}, "weight_block_size"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quant_algo"),
        ({"quant_method": "mxfp4"}, "quant_method"),
        ({"quant_method": "compressed-tensors"}, "config_groups"),
        (tensors({"num_bits": 4, "type": "int", "group_size": 128}, {"num_bits": 8}), "config_groups"),
        (tensors({"num_bits": 2, "type": "int"}), "config_groups"),
    ],
)
def test_unknown_quantisation_is_refused_by_name(method: Config, key: str) -> None:
    assert refused(changed(LLAMA, quantization_config=method)).removeprefix("quantization_config.") == key


def test_only_routed_experts_are_quantised_when_the_rest_is_listed() -> None:
    weights = {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group"}
    spec = model_from_config(changed(DEEPSEEK, quantization_config=tensors(weights, ignore=KEPT)))
    assert (spec.precision, spec.experts_precision) == ("bf16", "int4")
    assert spec.int4_group == 32


def test_attention_listed_as_kept_stays_at_16_bits() -> None:
    kept = [f"model.layers.{layer}.self_attn.{name}_proj" for layer in range(32) for name in "qkvo"]
    spec = model_from_config(
        changed(LLAMA, quantization_config={"quant_method": "fbgemm_fp8", "modules_to_not_convert": kept})
    )
    (group,) = spec.groups
    assert group.attention is not None
    assert isinstance(group.ffn, DenseFFN)
    assert not any(linear.quantised for linear in group.attention.linears)
    assert all(linear.quantised for linear in group.ffn.linears)


def test_names_of_norms_routers_and_few_layers_spare_nothing() -> None:
    names = [
        "lm_head",
        "model.layers.0.self_attn.q_norm",
        "model.layers.0.self_attn.o_proj",
        "visual.blocks.0.attn.o_proj",
    ]
    names += [f"model.layers.{layer}.mlp.gate" for layer in range(48)]
    method = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": names}
    spec = model_from_config(changed(QWEN_MOE, quantization_config=method))
    assert (spec.precision, spec.experts_precision) == ("fp8-block", None)
    assert spec.groups == model_from_config(QWEN_MOE).groups


def test_float32_is_said() -> None:
    assert any("float32" in note for note in model_from_config(changed(LLAMA, torch_dtype="float32")).notes)
    assert refused(changed(LLAMA, torch_dtype="float8_e4m3fn")) == "torch_dtype"


# ---- towers


def test_text_inside_a_multimodal_configuration() -> None:
    tower = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16,
             "num_position_embeddings": 2304, "out_hidden_size": 4096, "spatial_merge_size": 2}  # fmt: skip
    spec = model_from_config({"model_type": "vl", "image_token_id": 7, "text_config": LLAMA, "vision_config": tower})
    assert spec.groups == model_from_config(LLAMA).groups
    assert spec.vision_params == 456_010_480


def test_keys_repeated_beside_the_text_section_pass() -> None:
    spec = model_from_config({**LLAMA, "text_config": LLAMA})
    assert spec.total_params == model_from_config(LLAMA).total_params
    assert refused({"hidden_size": 8192, "text_config": LLAMA}) == "hidden_size"


def test_tower_of_unknown_size_is_said() -> None:
    spec = model_from_config({"text_config": LLAMA, "vision_config": {"hidden_size": 1152}})
    assert spec.vision_params is None
    assert any("vision tower" in note for note in spec.notes)


# ---- refusals


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_refused_keys_are_named(key: str) -> None:
    assert refused(changed(LLAMA, **{key: 2})) == key
    assert refused({"text_config": changed(LLAMA, **{key: [1, 2]})}) == f"text_config.{key}"
    for empty in (None, False, 0, [], {}):
        model_from_config(changed(LLAMA, **{key: empty}))


@pytest.mark.parametrize(
    "key",
    ["kv_shared_layers", "num_memory_heads", "expert_choice", "attn_sparsity", "window_ramp", "mtp_depths", "swa_num_heads",
     "mamba_d_state", "layer_share_map", "q_compress_dim", "ffn_multiplier", "cache_groups", "quant_levels", "vision_layers"],
)  # fmt: skip
def test_unknown_keys_that_smell_of_structure_are_refused(key: str) -> None:
    assert refused(changed(LLAMA, **{key: 3})) == key
    model_from_config(changed(LLAMA, **{key: None}))


def test_other_unknown_keys_are_listed() -> None:
    spec = model_from_config(changed(LLAMA, curriculum="b", mood=1))
    assert "ignored keys: curriculum, mood" in spec.notes


def test_keys_of_another_architecture_are_refused() -> None:
    assert refused(changed(LLAMA, moe_latent_size=512)) == "moe_latent_size"
    assert refused(changed(LLAMA, linear_num_value_heads=32)) == "linear_num_value_heads"
    assert refused(changed(DEEPSEEK, share_q_dim=512)) == "share_q_dim"
    assert refused(changed(LLAMA, index_topk=2048)) == "index_topk"


@pytest.mark.parametrize(
    ("base", "changes", "key"),
    [
        (LLAMA, {"num_hidden_layers": 10_000}, "num_hidden_layers"),
        (LLAMA, {"num_hidden_layers": True}, "num_hidden_layers"),
        (LLAMA, {"num_hidden_layers": "32"}, "num_hidden_layers"),
        (LLAMA, {"num_hidden_layers": 32.0}, "num_hidden_layers"),
        (LLAMA, {"hidden_size": 10**7}, "hidden_size"),
        (LLAMA, {"hidden_size": -4096}, "hidden_size"),
        (LLAMA, {"hidden_size": 4095}, "num_attention_heads"),
        (LLAMA, {"hidden_size": 10**5000}, "hidden_size"),
        (LLAMA, {"hidden_size": math.nan}, "hidden_size"),
        (LLAMA, {"vocab_size": None}, "vocab_size"),
        (LLAMA, {"vocab_size": 0}, "vocab_size"),
        (LLAMA, {"num_key_value_heads": 7}, "num_key_value_heads"),
        (LLAMA, {"num_kv_heads": 4}, "num_kv_heads"),
        (LLAMA, {"model_type": "gemma2", "sliding_window": 4096, "sliding_window_size": 2048}, "sliding_window_size"),
        (LLAMA, {"intermediate_size": [14336, 7168]}, "intermediate_size"),
        (LLAMA, {"tie_word_embeddings": "no"}, "tie_word_embeddings"),
        (LLAMA, {"anything": math.inf}, "anything"),
        (LLAMA, {"nested": {"deep": [1.0, math.nan]}}, "nested.deep"),
        (LLAMA, {"model_type": "gpt_neox", "hidden_act": "gelu"}, "hidden_act"),
        (LLAMA, {"model_type": "step3p7"}, "model_type"),
        (LLAMA, {"layer_types": ["full_attention"]}, "layer_types"),
        (LLAMA, {"layer_types": ["magic_attention"] * 32}, "layer_types"),
        (LLAMA, {"layer_types": ["linear_attention"] * 32}, "linear_num_key_heads"),
        (LLAMA, {"llm_config": LLAMA, "text_config": LLAMA}, "llm_config"),
        (QWEN_MOE, {"num_experts_per_tok": 129}, "num_experts_per_tok"),
        (QWEN_MOE, {"num_experts_per_tok": None}, "num_experts_per_tok"),
        (QWEN_MOE, {"num_local_experts": 64}, "num_local_experts"),
        (QWEN_MOE, {"first_k_dense_replace": 3}, "decoder_sparse_step"),
        (QWEN_MOE, {"moe_intermediate_size": [768, 512]}, "moe_intermediate_size"),
        (DEEPSEEK, {"moe_layer_freq": [1] * 61}, "moe_layer_freq"),
        (DEEPSEEK, {"moe_layer_freq": [0, 1]}, "moe_layer_freq"),
        (DEEPSEEK, {"qk_head_dim": 200}, "qk_head_dim"),
        (DEEPSEEK, {"indexer_types": ["full"] * 60 + ["half"]}, "indexer_types"),
        (DEEPSEEK, {"q_lora_rank": None}, "q_lora_rank"),
        (QWEN_NEXT, {"layer_types": ["full_attention"] * 48}, "full_attention_interval"),
        (NEMOTRON, {"num_hidden_layers": 7}, "hybrid_override_pattern"),
        (NEMOTRON, {"hybrid_override_pattern": "MEMX"}, "hybrid_override_pattern"),
        (NEMOTRON, {"n_shared_experts": -1}, "n_shared_experts"),
        (MINIMAX, {"attn_type_list": [0, 1]}, "attn_type_list"),
        (LLAMA, {"model_type": "opt", "word_embed_proj_dim": 512}, "word_embed_proj_dim"),
    ],
)
def test_faults_name_the_key(base: Config, changes: Config, key: str) -> None:
    assert refused(changed(base, **changes)) == key


def test_encoders_are_refused() -> None:
    bert = changed(LLAMA, model_type="bert", type_vocab_size=2)
    assert refused(bert) == "type_vocab_size"
    assert refused({"model_type": "t5", "is_encoder_decoder": True, "d_model": 512}) == "is_encoder_decoder"
    assert refused({"model_type": "vit", "image_size": 224}) == "hidden_size"


def test_infinite_values_of_harmless_keys_pass() -> None:
    model_from_json('{"time_step_limit": [0.0, Infinity], ' + json.dumps(LLAMA)[1:])


# ---- text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '"x"',
        "\x00",
        b"\xff\xfe",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"hidden_size": ' + "9" * 9999 + "}",
    ],
    ids=range(11),
)
def test_text_that_is_no_configuration(text: str | bytes) -> None:
    with pytest.raises(ModelConfigError):
        model_from_json(text)


def test_a_key_stated_twice_is_refused() -> None:
    with pytest.raises(ModelConfigError, match="num_hidden_layers"):
        model_from_json(json.dumps(LLAMA)[:-1] + ', "num_hidden_layers": 64}')


def test_a_huge_file_is_refused_at_once() -> None:
    text = '{"a": "' + "x" * 50_000_000 + '"}'
    start = perf_counter()
    with pytest.raises(ModelConfigError, match=str(LARGEST_FILE)):
        model_from_json(text)
    assert perf_counter() - start < 0.1


def test_a_file_of_unknown_keys_is_read_quickly() -> None:
    start = perf_counter()
    spec = model_from_config(LLAMA | {f"zzz{number}": 1 for number in range(20_000)})
    assert perf_counter() - start < 5
    assert max(len(note) for note in spec.notes) < 500


# ---- fuzz

NAMES = sorted(
    {key for config in FAMILIES.values() for key in (*config, *config.get("text_config", {}))} | set(REFUSED)
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**30, -1, 0, 1, 2, 64])
)
VALUES = st.recursive(
    SCALARS | st.sampled_from(["silu", "full_attention", "fp8", "llama", "nemotron_h", "float32"]),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(
    [*NAMES, "layer_types", "moe_layers", "moe_layers_enum", "indexer_types", "vision_config", "text_config"]
)


def outcome(config: Config) -> ModelSpec | ModelConfigError:
    """The model, or the one error that is allowed."""
    try:
        return model_from_config(config)
    except ModelConfigError as fault:
        return fault


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.dictionaries(KEYS, VALUES, max_size=4), st.lists(KEYS, max_size=2))
def test_any_change_gives_a_model_or_our_error(family: str, changes: Config, dropped: list[str]) -> None:
    found = outcome(changed(without(FAMILIES[family], *dropped), **changes))
    if isinstance(found, ModelConfigError):
        assert found.key
        assert len(str(found)) < 1000
    else:
        assert 0 < found.active_params <= found.total_params
        assert found.layers >= 1


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS | st.text(max_size=12), VALUES, max_size=8))
def test_any_dictionary_gives_a_model_or_our_error(config: Config) -> None:
    assert isinstance(outcome(config), ModelSpec | ModelConfigError)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_gives_a_model_or_our_error(text: str | bytes) -> None:
    with pytest.raises(ModelConfigError):
        model_from_json(text)


def test_harmless_and_refused_keys_are_apart() -> None:
    assert not HARMLESS & set(REFUSED)


@pytest.mark.parametrize(
    ("key", "value"), [("intermediate_size", [1]), ("sliding_window", 0), ("num_key_value_heads", [8, 8])]
)
def test_lists_of_the_wrong_length_and_empty_windows_are_refused(key: str, value: object) -> None:
    config = {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, key: value,
    }  # fmt: skip
    with pytest.raises(ModelConfigError) as refused:
        model_from_config(config)
    assert refused.value.key == key


def test_a_lone_surrogate_is_no_text() -> None:
    with pytest.raises(ModelConfigError, match="half of a character pair"):
        model_from_json('{"\\ud800foo": 1}')
