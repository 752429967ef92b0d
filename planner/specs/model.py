"""A model as the planner sees it: groups of equal layers, each an attention and a feed-forward block made of matrices.

Everything that memory and speed depend on is here, worked out once from the fields of a `config.json`; nothing
downstream looks at a configuration key or a class name again. Parameter counts follow from the same matrices that
the clock prices, so a model cannot be sized one way and timed another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

UNSPLIT = 1
"""Shard units of a tensor that every tensor-parallel rank holds in full."""

SPLIT_TOWERS = {"siglip": 16, "qwen2": 16, "qwen3": 16}
"""Vision towers that engines divide by tensor parallelism, with their heads: SigLIP by vLLM's start-up logs of
granite-vision, Qwen's by its documentation (mm_encoder_tp_mode = weights). The others seen in logs (Pixtral, Llama 4's)
are held in full by every rank."""


@dataclass(frozen=True)
class Linear:
    """One weight matrix of a layer.

    Args:
        name: field's usual name, for example `q_proj`.
        kernel: matrices of one layer with the same kernel name run as one launch (`qkv`, `gate_up` …).
        inputs, outputs: matrix shape (elements); parameters = inputs · outputs · copies.
        shards: ways tensor parallelism can split it; further ranks hold copies. `UNSPLIT` = replicated.
        quantised: whether the scenario's weight precision applies. Router, norms, embedding and head stay BF16.
        copies: how many such matrices the layer has (not experts: those are `Experts.count`).
    """

    name: str
    kernel: str
    inputs: int
    outputs: int
    shards: int
    quantised: bool = True
    copies: int = 1

    @property
    def params(self) -> int:
        """Weights in the matrix (or its copies)."""
        return self.inputs * self.outputs * self.copies


@dataclass(frozen=True)
class SparseIndex:
    """Index keys that choose which cached tokens attention reads (DeepSeek sparse attention).

    A layer that shares its neighbour's choice has `heads = 0`: it reads top-k tokens but scans and stores no keys.
    """

    heads: int
    dim: int
    top_k: int


@dataclass(frozen=True)
class GroupedAttention:
    """Multi-head, grouped-query and multi-query attention; `window` caps what is read and, in the cache, what is kept."""

    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    linears: tuple[Linear, ...]
    window: int | None = None
    extra_params: int = 0
    """Biases, query/key norms, sinks: counted, replicated, not timed."""


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (MLA): one latent of `kv_lora_rank + rope_dim` a token, not divisible by heads."""

    heads: int
    q_lora_rank: int
    kv_lora_rank: int
    rope_dim: int
    nope_dim: int
    v_head_dim: int
    linears: tuple[Linear, ...]
    index: SparseIndex | None = None
    extra_params: int = 0


@dataclass(frozen=True)
class LinearAttention:
    """Attention with a fixed recurrent state (gated delta net, Mamba-2, lightning): no growing cache.

    `state_elements` (kept in float32 unless the config says otherwise) and `conv_elements` (BF16) are per sequence
    and layer; both divide by heads, `state_shards` ways.
    """

    state_elements: int
    conv_elements: int
    state_shards: int
    state_bytes: int
    linears: tuple[Linear, ...]
    extra_params: int = 0


Attention: TypeAlias = GroupedAttention | LatentAttention | LinearAttention


@dataclass(frozen=True)
class DenseFFN:
    """A feed-forward block that every token passes; gated blocks have three matrices, plain ones two."""

    linears: tuple[Linear, ...]
    extra_params: int = 0


@dataclass(frozen=True)
class ExpertFFN:
    """A mixture of experts: `top_k` of `count` routed experts a token, shared experts for every token.

    `expert` holds the matrices of ONE routed expert, `shared` those of all shared experts together,
    `outer` router, shared-expert gate and latent projections (run once per token).
    """

    count: int
    top_k: int
    expert: tuple[Linear, ...]
    shared: tuple[Linear, ...]
    outer: tuple[Linear, ...]
    expert_extra_params: int = 0
    extra_params: int = 0

    @property
    def expert_params(self) -> int:
        """Parameters of one routed expert."""
        return sum(linear.params for linear in self.expert) + self.expert_extra_params


FeedForward: TypeAlias = DenseFFN | ExpertFFN


@dataclass(frozen=True)
class LayerGroup:
    """`count` equal layers. Either block may be absent (hybrids put them in separate layers)."""

    count: int
    attention: Attention | None
    ffn: FeedForward | None
    norm_params: int
    """Layer norms and other replicated vectors of one layer."""


@dataclass(frozen=True)
class ModelSpec:
    """A decoder-only language model.

    Attributes:
        id, name, hf_id, source, date: identity and provenance.
        groups: the main model's layers, in groups of equal ones.
        mtp: multi-token-prediction layers (counted apart; loaded only with speculative decoding).
        hidden, vocab: widths in elements; `vocab` as stored (padding included).
        tied: whether the output head is the embedding.
        embed_params, head_params: `head_params` is 0 when tied, though the head is still read and multiplied.
        final_params: last norm and other vectors outside layers.
        vision_params: parameters of vision or audio towers (loaded, not timed); None = has one, size unknown.
        table_params: elements of rotary tables of stretched positions, loaded beside the weights by every rank, in no count.
        vision_kind: family of the vision tower (`siglip`, `pixtral`, `qwen` …); empty = none, or not known.
        max_len: longest position the configuration admits; None = not stated.
        precision: what the published checkpoint's linear layers are stored in (`bf16`, `fp8-block`, `mxfp4` …).
        experts_precision: the routed experts' own precision when it differs from the rest; else None.
        notes: what a reader should know (assumptions made while reading the configuration).
    """

    id: str
    name: str
    hf_id: str
    groups: tuple[LayerGroup, ...]
    hidden: int
    vocab: int
    tied: bool
    embed_params: int
    head_params: int
    final_params: int
    max_len: int | None
    precision: str
    experts_precision: str | None = None
    int4_group: int = 128
    """Weights that share a scale in this checkpoint's INT4 format."""
    mtp: tuple[LayerGroup, ...] = ()
    mtp_extra_params: int = 0
    vision_params: int | None = 0
    vision_kind: str = ""
    table_params: int = 0
    source: str = ""
    date: str = ""
    confidence: str = ""
    notes: tuple[str, ...] = field(default=())
    order: tuple[int, ...] = ()
    """Index into `groups` of each layer, first to last; empty = one group after the other."""
    nominal_params: int | None = None
    """Set only for teaching models (`llama-70b-nominal`): every parameter is in one TP-split bucket of this size."""

    @property
    def layer_order(self) -> tuple[int, ...]:
        """Group of each layer, first to last; group after group where the configuration does not say."""
        if self.order:
            return self.order
        return tuple(at for at, group in enumerate(self.groups) for _ in range(group.count))

    @property
    def layers(self) -> int:
        """Layers of the main model."""
        return sum(group.count for group in self.groups)

    @property
    def total_params(self) -> int:
        """Parameters of the main model, embeddings and head included, MTP and vision excluded."""
        if self.nominal_params is not None:
            return self.nominal_params
        outside = self.embed_params + self.head_params + self.final_params
        return outside + sum(group.count * layer_params(group) for group in self.groups)

    @property
    def active_params(self) -> int:
        """Parameters that one token uses, embedding included (the published convention of most cards)."""
        return self.total_params - sum(group.count * idle_expert_params(group) for group in self.groups)

    @property
    def mtp_params(self) -> int:
        """Parameters of the multi-token-prediction layers."""
        return self.mtp_extra_params + sum(group.count * layer_params(group) for group in self.mtp)

    @property
    def vision_shards(self) -> int:
        """Ways tensor parallelism divides the vision tower: heads of those that engines split, one copy a rank else."""
        return SPLIT_TOWERS.get(self.vision_kind, UNSPLIT)

    @property
    def any_size_images(self) -> bool:
        """Whether the tower takes images of any size, so that the largest one is profiled at start."""
        return self.vision_kind.startswith("qwen")

    @property
    def has_experts(self) -> bool:
        """Whether any layer routes tokens to experts."""
        return any(isinstance(group.ffn, ExpertFFN) for group in self.groups)


def linear_params(linears: tuple[Linear, ...]) -> int:
    """Parameters in a tuple of matrices."""
    return sum(linear.params for linear in linears)


def attention_params(attention: Attention | None) -> int:
    """Parameters of one attention block."""
    return 0 if attention is None else linear_params(attention.linears) + attention.extra_params


def ffn_params(ffn: FeedForward | None) -> int:
    """Parameters of one feed-forward block, all experts included."""
    match ffn:
        case None:
            return 0
        case DenseFFN():
            return linear_params(ffn.linears) + ffn.extra_params
        case ExpertFFN():
            always = linear_params(ffn.shared) + linear_params(ffn.outer) + ffn.extra_params
            return ffn.count * ffn.expert_params + always


def layer_params(group: LayerGroup) -> int:
    """Parameters of one layer of a group."""
    return attention_params(group.attention) + ffn_params(group.ffn) + group.norm_params


def idle_expert_params(group: LayerGroup) -> int:
    """Parameters of the routed experts that one token does not use, in one layer."""
    if not isinstance(group.ffn, ExpertFFN):
        return 0
    return (group.ffn.count - group.ffn.top_k) * group.ffn.expert_params
