"""What a `model_type` implies and no field of its configuration states.

Only small conventions live here: bias and norm vectors, which layers a bare `sliding_window` means, whether the head
is tied when the file does not say. Which kind of attention and feed-forward block a model has is read from its fields.
Sources: the reference implementations in PyPI transformers 5.24.0 (`models/<type>/`), unless a line says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Convention:
    """Defaults of one family.

    Attributes:
        qk_norm: vectors of query and key norms: `none`, `head` (one head wide, shared) or `full` (all heads wide).
        qk_norm_on: whether they are there when `use_qk_norm` does not say.
        qkv_bias: query, key and value biases when no field says.
        bias_on_output: whether `attention_bias` covers the output projection too.
        norms: norm vectors of a layer.
        norm_bias: LayerNorm (weight and bias) instead of RMSNorm.
        tied: whether the head is the embedding when no field says.
        plain_ffn: two matrices (up, down) instead of three.
        all_bias: biases on every projection when no field says.
        head_bias: the output head has a bias vector.
        windows: layers that a bare `sliding_window` means: `unstated`, `all`, `even`, or `pattern` (5 in 6).
        chunk_period: every n-th layer is full, the others are chunked (0 = not chunked).
        shared_experts: shared experts of the routed experts' size when no field says.
        output_gate: the query projection also makes an output gate (doubles its width).
        mtp_layers: multi-token-prediction layers that the released checkpoint holds when no field says.
        sinks: one learned sink a head.
        expert_bias: experts and router have bias vectors.
        ffn_ratio: feed-forward width over hidden size when no field says (0 = must be stated).
        embedding_norm: one more norm after the embedding.
        learned_positions: rows of a learned position table beyond `max_position_embeddings` (-1 = no table).
    """

    qk_norm: str = "none"
    qk_norm_on: bool = True
    qkv_bias: bool = False
    bias_on_output: bool = True
    norms: int = 2
    norm_bias: bool = False
    tied: bool = False
    plain_ffn: bool = False
    all_bias: bool = False
    head_bias: bool = False
    windows: str = "unstated"
    chunk_period: int = 0
    shared_experts: int = 0
    output_gate: bool = False
    mtp_layers: int = 0
    sinks: bool = False
    expert_bias: bool = False
    ffn_ratio: int = 0
    embedding_norm: bool = False
    learned_positions: int = -1


PLAIN = Convention()
QWEN2 = Convention(qkv_bias=True, bias_on_output=False)
QWEN3 = Convention(qk_norm="head")

CONVENTIONS: dict[str, Convention] = {
    "llama": PLAIN,
    "granite": PLAIN,
    "internlm": PLAIN,
    "phi3": Convention(windows="all"),
    "mistral": Convention(windows="all"),
    "mistral3": Convention(windows="all"),
    "ministral3": Convention(windows="all"),
    "mixtral": Convention(windows="all"),
    "qwen2": QWEN2,
    "qwen2_moe": QWEN2,
    "qwen2_vl": QWEN2,
    "qwen2_5_vl": QWEN2,
    "qwen2_5_vl_text": QWEN2,
    "mimo": QWEN2,
    "qwen3": QWEN3,
    "qwen3_moe": QWEN3,
    "qwen3_vl_text": QWEN3,
    "qwen3_vl_moe_text": QWEN3,
    "qwen3_next": Convention(qk_norm="head", output_gate=True, mtp_layers=1),
    "qwen3_5_text": QWEN3,
    "qwen3_5_moe_text": QWEN3,
    "gemma": Convention(tied=True),
    "gemma2": Convention(tied=True, norms=4, windows="even"),
    "gemma3": Convention(tied=True, norms=4, qk_norm="head", windows="pattern"),
    "gemma3_text": Convention(tied=True, norms=4, qk_norm="head", windows="pattern"),
    "cohere": Convention(tied=True, norms=1, qk_norm="full", qk_norm_on=False),
    "llama4_text": Convention(qk_norm_on=False, chunk_period=4, shared_experts=1),
    "gpt_oss": Convention(sinks=True, expert_bias=True),
    "deepseek_v2": PLAIN,
    "deepseek_v3": PLAIN,
    "deepseek_v32": PLAIN,
    "kimi_k2": PLAIN,
    "kimi_linear": PLAIN,
    "glm_moe_dsa": PLAIN,
    "glm4_moe_lite": PLAIN,
    "glm4_moe": Convention(qk_norm="head", qk_norm_on=False, bias_on_output=False),
    "minimax_m1": PLAIN,
    "minimax_m2": Convention(qk_norm="full"),
    "seed_oss": PLAIN,
    "ernie4_5": Convention(tied=True),
    "ernie4_5_moe": Convention(tied=True),
    "hunyuan": Convention(qk_norm="head", tied=True),
    "hunyuan_v1_moe": Convention(qk_norm="head", tied=True),
    "step3_text": PLAIN,
    "nemotron_h": Convention(plain_ffn=True),
    "falcon": Convention(plain_ffn=True, norm_bias=True, tied=True, ffn_ratio=4),
    "opt": Convention(plain_ffn=True, norm_bias=True, tied=True, all_bias=True, learned_positions=2),
    "bloom": Convention(plain_ffn=True, norm_bias=True, tied=True, all_bias=True, ffn_ratio=4, embedding_norm=True),
    "phi": Convention(plain_ffn=True, norm_bias=True, all_bias=True, norms=1, head_bias=True),
    "starcoder2": Convention(plain_ffn=True, norm_bias=True, all_bias=True, tied=True, windows="all"),
}

GATED_ACTIVATIONS = ("", "silu", "swish", "swiglu")
"""Activations that, in a family we do not know, leave no doubt that the feed-forward block is gated."""
