"""Which configuration keys matter: refused by name, known to be harmless, or judged by their name.

A key that a builder read is understood. The rest is either in `HARMLESS`, or refused when its name smells of structure
and its value is not empty, or listed on the model as ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from planner.catalog.hf_fields import Fields, shown
from planner.errors import ModelConfigError

DEEPEST = 20
"""Deepest nesting that a configuration may have."""

MOST_LISTED = 20
"""Most ignored keys that a note lists."""

REFUSED: dict[str, str] = {
    "compress_ratios": "attention over compressed tokens is not supported",
    "sparse_attention_config": "block-sparse attention is not supported",
    "hybrid_layer_pattern": "sliding layers with their own head counts are not supported",
    "attention_other_setting": "sliding layers with their own head counts are not supported",
    "use_head_wise_attn_gate": "head-wise attention gates are not supported",
    "global_head_dim": "global layers with their own head size are not supported",
    "num_global_key_value_heads": "global layers with their own head counts are not supported",
    "attention_k_eq_v": "keys that double as values are not supported",
    "num_kv_shared_layers": "layers that share a cache are not supported",
    "use_cla": "layers that share a cache are not supported",
    "cross_attention_layers": "cross-attention layers are not supported",
    "cross_attention_hidden_size": "cross-attention layers are not supported",
    "add_cross_attention": "cross-attention layers are not supported",
    "is_encoder_decoder": "encoder-decoder models are not supported",
    "type_vocab_size": "encoders are not supported, only decoders",
    "block_configs": "layers that differ one by one are not supported",
    "hc_mult": "hyper-connections are not supported",
    "o_lora_rank": "a low-rank output projection is not supported",
    "routed_expert_hidden_size": "experts in a latent of their own are supported only as moe_latent_size",
    "index_topk_pattern": "only indexer_types and index_topk_freq are understood",
    "use_double_wide_mlp": "layers of double width are not supported",
    "hidden_size_per_layer_input": "per-layer embeddings are not supported",
    "num_hash_layers": "hash-routed layers are not supported",
    "layer_pattern": "free text cannot be read; use layer_types",
    "mtp_use_dedicated_embeddings": "extra prediction layers with embeddings of their own are not supported",
    "pruned_heads": "pruned heads are not supported",
    "bias": "this bias flag is not supported",
    "mamba_proj_bias": "biases on state-space projections are not supported",
}
"""Keys that change memory or speed in ways that `ModelSpec` cannot say, whatever the rest holds."""

UNSIZEABLE: dict[str, str] = {
    "step3p7": "its sliding layers have head counts and gates that configuration copies leave out",
    "step3p5": "its sliding layers have head counts and gates that configuration copies leave out",
}
"""Values of `model_type` whose published configurations do not state the whole shape."""

_TRAINING = """
    _name_or_path architectures auto_map model_type transformers_version torch_dtype dtype torchscript use_bfloat16
    attention_dropout embd_pdrop resid_pdrop hidden_dropout hidden_dropout_prob attention_probs_dropout_prob
    layer_dropout classifier_dropout dropout activation_dropout initializer_range initializer_factor init_std
    aux_loss_alpha router_aux_loss_coef router_z_loss_coef seq_aux output_router_logits router_jitter_noise
    pretraining_tp moe_aux_loss_coeff use_cache output_attentions output_hidden_states output_scores return_dict
    gradient_checkpointing return_dict_in_generate finetuning_task problem_type task_specific_params id2label
    label2id num_reward_heads ep_size moe_router_dtype moe_shared_expert_overlap slow_but_exact unk_token_id
    masked_softmax_fusion bias_dropout_fusion offset_alibi layerdrop do_layer_norm_before _remove_final_layer_norm
    is_decoder layer_norm_elementwise_affine attention_softmax_in_fp32 attn_implementation _attn_implementation
    scale_attention_softmax_in_fp32 skip_bias_add skip_bias_add_qkv norm_type embedding_dropout residual_dropout
    mlp_dropout unsloth_version unsloth_fixed keys_to_ignore_at_inference model_name use_fused_rope
    apply_query_key_layer_scaling
"""
_TOKENS = """
    bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id mask_token_id decoder_start_token_id
    forced_bos_token_id forced_eos_token_id suppress_tokens begin_suppress_tokens bad_words_ids prefix
    tokenizer_class max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty
    temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size
    encoder_no_repeat_ngram_size num_return_sequences exponential_decay_length_penalty remove_invalid_values
    tf_legacy_loss tie_encoder_decoder chunk_size_feed_forward ignore_index num_logits_to_keep eoa_token_index
    image_token_index video_token_index media_placeholder_token_id language_model_only generation_config
    chat_template
"""
_ARITHMETIC = """
    hidden_act hidden_activation activation_function mlp_hidden_act mamba_hidden_act swiglu_limit swiglu_alpha
    rms_norm_eps norm_eps layer_norm_epsilon layer_norm_eps layernorm_epsilon norm_epsilon rope_theta rope_scaling
    rope_parameters rope_interleave rope_local_base_freq rotary_dim rotary_pct partial_rotary_factor rotary_emb_base
    initial_context_length original_max_position_embeddings indexer_rope_interleave use_mrope rope_type
    position_embedding_type attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar logit_scale
    attention_multiplier embedding_multiplier residual_multiplier logits_scaling attn_temperature_tuning floor_scale
    attn_scale qk_layernorm_eps routed_scaling_factor scoring_func topk_method norm_topk_prob n_group topk_group
    moe_router_activation_func moe_norm_min router_scoring use_routing_bias use_moe_router_bias moe_use_aux_free
    moe_router_scaling_factor moe_gate use_grouped_topk num_expert_group moe_renormalize shared_moe_mode norm_min
    routed_scaling moe_router_use_sigmoid norm_expert_weight use_gemma_norm residual_in_fp32
    rescale_prenorm_residual layernorm_full_attention_alpha layernorm_full_attention_beta
    layernorm_linear_attention_alpha layernorm_linear_attention_beta layernorm_mlp_alpha layernorm_mlp_beta postnorm
    alibi time_step_floor time_step_limit time_step_max time_step_min time_step_rank use_mamba_kernels chunk_size
    expand output_gate_type attention_value_scale apply_residual_connection_post_layernorm
    use_bidirectional_attention use_parallel_residual index_share_for_mtp_iteration mamba_chunk_size
    cache_implementation rope_ratio
"""
_TOWERS_AND_CLASSES = """
    add_classification_head class_num dense_list pool_type cla_share_factor org_vocab_size num_media_embeds
    mask_init_id use_mixed_mlp_moe use_rotary_pos_emb anyres_pooling_size vit_input_resolution vit_mapping_type
    vit_norm_type vit_patch vit_token im_end_id im_newline_id im_start_id text_start_id text_end_id video_start_id
    video_end_id pad_id
"""
HARMLESS = frozenset((_TRAINING + _TOKENS + _ARITHMETIC + _TOWERS_AND_CLASSES).split())
"""Keys that change neither bytes nor floating-point work."""

OUTER_PREFIXES = (
    "vision_", "image_", "video_", "img_", "mm_", "multimodal_", "projector_", "boi_", "eoi_", "boa_", "eoa_",
    "audio_token", "spatial_merge", "process_image", "use_unified_vision", "downsample_ratio", "ps_version",
    "dynamic_image", "max_dynamic_patch", "min_dynamic_patch", "use_thumbnail", "select_layer", "adapter_bias",
)  # fmt: skip
"""Beginnings of keys that describe a tower of a multimodal model, beside its text part."""

SMELLS = (
    "layer", "head", "expert", "attn", "attention", "window", "rank", "dim", "size", "moe", "mlp", "ffn", "kv",
    "cache", "mamba", "ssm", "linear", "conv", "sparse", "index", "compress", "latent", "share", "vision", "audio",
    "mtp", "nextn", "quant", "pattern", "block", "state", "group", "proj", "lora", "depth", "width", "interval",
    "freq", "step", "bits", "embed", "bias", "norm", "gate", "chunk", "stride", "recurrent", "encoder", "cross",
    "adapter", "router", "hybrid", "topk", "top_k", "num_", "n_", "swa",
)  # fmt: skip
"""Parts of a key's name that suggest structure."""


def check_refused(fields: Fields, values: Mapping[str, object]) -> None:
    """Refuse what cannot be sized truthfully, before anything is built.

    Raises:
        ModelConfigError: a refused key holds something, or the family's files never state their whole shape.
    """
    for key, reason in REFUSED.items():
        if not is_empty(values.get(key)):
            raise fields.refuse(key, reason)
    reason = UNSIZEABLE.get(str(values.get("model_type")), "")
    if reason:
        raise fields.refuse("model_type", reason)


def check_finite(values: Mapping[str, object], scope: str = "", depth: int = 0) -> None:
    """Refuse NaN and infinity outside harmless keys, keys that are not names, and bottomless nesting.

    Raises:
        ModelConfigError: naming the key.
    """
    for key, value in values.items():
        if not isinstance(key, str):
            raise ModelConfigError(scope + shown(key), "…", "a key must be a name")
        if key not in HARMLESS:
            _check_value(scope + key, value, depth)


def _check_value(key: str, value: object, depth: int) -> None:
    if depth > DEEPEST:
        raise ModelConfigError(key, "…", f"is nested deeper than {DEEPEST} levels")
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelConfigError(key, value, "must be a finite number")
    if isinstance(value, Mapping):
        check_finite(value, key + ".", depth + 1)
    if isinstance(value, list | tuple):
        for item in value:
            _check_value(key, item, depth + 1)


def leftovers(fields: Fields, outer: bool = False) -> tuple[str, ...]:
    """Names of the keys that were ignored, once every builder has run.

    Raises:
        ModelConfigError: an unread key smells of structure and holds something.
    """
    unread = {key: value for key, value in fields.unread().items() if not _is_known(key, outer) and not is_empty(value)}
    for key in unread:
        if smells(key):
            raise fields.refuse(key, "is not understood and may change memory or speed")
    return tuple(fields.scope + key for key in unread)


def _is_known(key: str, outer: bool) -> bool:
    return key in HARMLESS or key in REFUSED or key.endswith("_token_id") or (outer and key.startswith(OUTER_PREFIXES))


def smells(key: str) -> bool:
    """Whether a key's name suggests structure."""
    name = key.lower()
    return any(part in name for part in SMELLS)


def is_empty(value: object) -> bool:
    """Null, false, zero, or an empty string, list or object."""
    return (
        value is None or value is False or (isinstance(value, int | float) and value == 0) or value in ("", [], {}, ())
    )


def ignored_note(keys: Iterable[str]) -> tuple[str, ...]:
    """One note that lists ignored keys, or none."""
    names = [key[:80] for key in sorted(keys)]
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return (f"ignored keys: {', '.join(names[:MOST_LISTED])}{more}",) if names else ()
