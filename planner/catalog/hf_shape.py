"""What every builder needs to know of a model: its width, its layers, its conventions, and its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.catalog.hf_conventions import CONVENTIONS, GATED_ACTIVATIONS, PLAIN, Convention
from planner.catalog.hf_fields import LAYERS, Fields

WIDEST_HIDDEN = 10**6
MOST_HEADS = 10**5
MOST_EXPERTS = 10**5

BLOCK_LETTERS: Mapping[str, str] = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
"""Letters of `hybrid_override_pattern`, as words of `layers_block_type`."""

HEADS = ("num_attention_heads", "n_head")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "num_attention_groups")
HEAD_DIM = ("head_dim", "attention_head_dim")
EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")


@dataclass(frozen=True)
class Shape:
    """A model's frame, read once.

    Attributes:
        fields: the text model's section.
        convention: what its `model_type` implies.
        hidden: width (elements).
        layers: layers of the main model.
        blocks: kind of block of each layer where a layer is one block (`mamba`, `attention`, `moe`, `mlp`); else empty.
        experts: routed experts of a layer (0 = dense model).
        plain_ffn: two feed-forward matrices instead of three.
        all_bias: every projection has a bias.
        max_len: longest position (tokens), if stated.
        notes: what was assumed; builders add to it.
    """

    fields: Fields
    convention: Convention
    hidden: int
    layers: int
    blocks: tuple[str, ...]
    experts: int
    plain_ffn: bool
    all_bias: bool
    max_len: int | None
    notes: list[str] = field(default_factory=list)

    def assume(self, note: str) -> None:
        """Record an assumption once."""
        if note not in self.notes:
            self.notes.append(note)


def read_shape(fields: Fields) -> Shape:
    """Read the frame of a text model.

    Raises:
        ModelConfigError: a size is missing, out of range or contradictory.
    """
    kind = fields.text("model_type")
    notes = [] if kind in CONVENTIONS else [_unknown_type(kind)]
    convention = CONVENTIONS.get(kind, PLAIN)
    hidden = fields.synonym(("hidden_size", "n_embed"), low=1, high=WIDEST_HIDDEN)
    if hidden is None:
        raise fields.refuse("hidden_size", "is required and missing")
    blocks = _blocks(fields)
    return Shape(
        fields=fields,
        convention=convention,
        hidden=hidden,
        layers=_layers(fields, blocks),
        blocks=blocks,
        experts=fields.synonym(EXPERTS, high=MOST_EXPERTS) or 0,
        plain_ffn=_plain_ffn(fields, convention, known=kind in CONVENTIONS),
        all_bias=fields.boolean("enable_bias", fields.boolean("use_bias", convention.all_bias)),
        max_len=_max_len(fields),
        notes=notes,
    )


def _unknown_type(kind: str) -> str:
    named = f"model_type {kind[:60]} is unknown" if kind else "no model_type"
    return f"{named}: assumed RMSNorm, two norms a layer, no bias and no query or key norms beyond what fields say"


def _blocks(fields: Fields) -> tuple[str, ...]:
    pattern = fields.text("hybrid_override_pattern")
    if any(letter not in BLOCK_LETTERS for letter in pattern):
        raise fields.refuse("hybrid_override_pattern", f"may hold only the letters {''.join(BLOCK_LETTERS)}")
    letters = tuple(BLOCK_LETTERS[letter] for letter in pattern)
    words = fields.strings("layers_block_type", most=LAYERS)
    if any(word not in BLOCK_LETTERS.values() for word in words):
        raise fields.refuse("layers_block_type", f"may hold only {', '.join(BLOCK_LETTERS.values())}")
    if letters and words and letters != words:
        raise fields.refuse("layers_block_type", "disagrees with hybrid_override_pattern")
    return words or letters


def _layers(fields: Fields, blocks: tuple[str, ...]) -> int:
    stated = fields.synonym(("num_hidden_layers", "n_layer"), low=1, high=LAYERS)
    if stated is None and not blocks:
        raise fields.refuse("num_hidden_layers", "is required and missing")
    if len(blocks) > LAYERS or (blocks and stated not in (None, len(blocks))):
        key = "layers_block_type" if fields.has("layers_block_type") else "hybrid_override_pattern"
        raise fields.refuse(key, f"has {len(blocks)} layers, num_hidden_layers says {stated}")
    return stated or len(blocks)


def _plain_ffn(fields: Fields, convention: Convention, known: bool) -> bool:
    key = next((key for key in ("mlp_hidden_act", "hidden_act", "hidden_activation") if fields.has(key)), "hidden_act")
    activation = fields.text(key)
    if not known and activation not in (*GATED_ACTIVATIONS, "relu2"):
        raise fields.refuse(key, "does not tell whether the feed-forward block of this unknown model_type is gated")
    return convention.plain_ffn or activation == "relu2"


def _max_len(fields: Fields) -> int | None:
    fields.skip("n_positions", "max_sequence_length")
    longest = fields.optional_integer("model_max_length", low=1, high=10**9)
    positions = fields.synonym(("max_position_embeddings", "seq_length"), low=1, high=10**9)
    return longest or _stretched(fields, positions)


def _stretched(fields: Fields, positions: int | None) -> int | None:
    """Positions after rotary scaling: YaRN multiplies the original length, linear and dynamic scaling the stated one."""
    scaling = fields.get("rope_scaling")
    if positions is None or not isinstance(scaling, Mapping):
        return positions
    kind, factor = scaling.get("rope_type", scaling.get("type")), scaling.get("factor")
    original = scaling.get("original_max_position_embeddings", positions)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not isinstance(original, int):
        return positions
    base = original if kind == "yarn" else positions if kind in ("linear", "dynamic") else 0
    return max(positions, min(int(base * factor), 10**9)) if factor > 0 else positions
