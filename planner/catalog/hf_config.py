"""A Hugging Face `config.json` becomes a `ModelSpec`, or is refused by the key that we cannot size truthfully.

    check_refused → read_shape → plans (kind of each layer) → blocks → groups of equal layers → leftovers

The kind of model is read from its fields, never from class names; see `hf_conventions` for what `model_type` adds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.catalog.hf_attention import attention
from planner.catalog.hf_ffn import feed_forward
from planner.catalog.hf_fields import Fields, same
from planner.catalog.hf_kept import stored_groups
from planner.catalog.hf_keys import check_finite, check_refused, ignored_note, leftovers
from planner.catalog.hf_layers import BLOCK_ATTENTION, BLOCK_FFN, attention_plan, ffn_plan
from planner.catalog.hf_precision import storage
from planner.catalog.hf_shape import BLOCK_LETTERS, Shape, read_shape
from planner.catalog.hf_vision import vision_kind, vision_params
from planner.errors import ModelConfigError
from planner.specs.model import LayerGroup, ModelSpec

LARGEST_FILE = 1_000_000
"""Largest `config.json` that is read (bytes); real ones stay under 100 kB."""

TEXT_SECTIONS = ("text_config", "llm_config", "language_config")
MOST_PREDICTION_LAYERS = 100


def model_from_json(text: str | bytes, *, id: str = "custom", name: str = "", source: str = "") -> ModelSpec:
    """Read the text of a `config.json`.

    Args:
        text: the file's content, at most `LARGEST_FILE` bytes.
        id, name, source: identity and provenance of the result.

    Raises:
        ModelConfigError: too large, not JSON, not an object, or refused as in `model_from_config`.
    """
    if len(text) > LARGEST_FILE:
        raise ModelConfigError("config.json", f"{len(text)} bytes", f"is larger than {LARGEST_FILE} bytes")
    try:
        parsed = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as fault:
        raise ModelConfigError("config.json", "…", f"is not readable JSON ({str(fault)[:80]})") from None
    if not isinstance(parsed, dict):
        raise ModelConfigError("config.json", parsed, "must be a JSON object")
    if not _is_text(json.dumps(parsed, ensure_ascii=False)):
        raise ModelConfigError("config.json", "…", "holds half of a character pair, which no text may")
    return model_from_config(parsed, id=id, name=name, source=source)


def _is_text(written: str) -> bool:
    """Whether what was read can be written again (JSON admits lone surrogates, texts do not)."""
    try:
        written.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    repeated = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
    if repeated:
        raise ModelConfigError(repeated[0][:80], "…", "is stated twice")
    return dict(pairs)


def model_from_config(
    config: Mapping[str, object], *, id: str = "custom", name: str = "", source: str = "", hf_id: str = ""
) -> ModelSpec:
    """Turn a configuration into a model.

    Args:
        config: the fields of a `config.json`, parsed.
        id, name, source, hf_id: identity and provenance of the result.

    Raises:
        ModelConfigError: names the key that is missing, malformed, contradictory or not understood.
    """
    check_finite(config)
    outer = Fields(config)
    check_refused(outer, config)
    fields = _text_fields(outer)
    shape = read_shape(fields)
    stored = storage(fields, outer, has_experts=shape.experts > 0)
    tied = _tied(fields, outer, shape)
    vision, vision_notes = vision_params(outer, shape.hidden)
    vocab = fields.integer("vocab_size")
    groups, prediction = _main_layers(shape), _prediction_layers(shape)
    final = _final_params(shape, vocab)
    weights = stored_groups(groups, prediction, stored)
    notes = (*shape.notes, *stored.notes, *weights.notes, *vision_notes)
    ignored = leftovers(fields, outer=fields is outer and outer.has("vision_config"))
    if fields is not outer:
        outer.skip(*_repeated(outer, fields))
        ignored += leftovers(outer, outer=True)
    return ModelSpec(
        id=id,
        name=name or id,
        hf_id=hf_id,
        groups=weights.groups,
        order=_order(shape),
        hidden=shape.hidden,
        vocab=vocab,
        tied=tied,
        embed_params=vocab * shape.hidden,
        head_params=0 if tied else vocab * shape.hidden,
        final_params=final,
        max_len=shape.max_len,
        precision=weights.precision,
        experts_precision=weights.experts_precision,
        int4_group=stored.group,
        mtp=weights.prediction,
        mtp_extra_params=_prediction_extras(shape),
        vision_params=vision,
        vision_kind=vision_kind(outer),
        source=source,
        notes=notes + ignored_note(ignored),
    )


def _text_fields(outer: Fields) -> Fields:
    """The section that describes the language model."""
    nested = [(key, section) for key in TEXT_SECTIONS if (section := outer.section(key)) is not None]
    if not nested:
        return outer
    if len(nested) > 1:
        raise outer.refuse(nested[1][0], f"stands beside {nested[0][0]}")
    key, section = nested[0]
    stated = outer.get(key)
    if isinstance(stated, Mapping):
        check_refused(section, stated)
    return section


def _repeated(outer: Fields, fields: Fields) -> tuple[str, ...]:
    """Keys of the outer section that the text section states too, with the same value."""
    return tuple(key for key, value in outer.unread().items() if same(value, fields.get(key)))


def _tied(fields: Fields, outer: Fields, shape: Shape) -> bool:
    stated = [
        place.boolean("tie_word_embeddings", False) for place in (fields, outer) if place.has("tie_word_embeddings")
    ]
    if stated:
        return stated[0]
    shape.assume(f"tie_word_embeddings is not stated: taken as {str(shape.convention.tied).lower()}")
    return shape.convention.tied


def _final_params(shape: Shape, vocab: int) -> int:
    """Last norm, embedding norm, learned positions and head bias."""
    convention, fields = shape.convention, shape.fields
    norm = shape.hidden * (2 if convention.norm_bias else 1)
    total = norm * (2 if convention.embedding_norm else 1) + vocab * convention.head_bias
    if fields.integer("word_embed_proj_dim", default=shape.hidden) != shape.hidden:
        raise fields.refuse("word_embed_proj_dim", f"differs from hidden_size = {shape.hidden}, which is not supported")
    if convention.learned_positions < 0:
        return total
    if shape.max_len is None:
        raise fields.refuse("max_position_embeddings", "is required, since positions are learned")
    return total + (shape.max_len + convention.learned_positions) * shape.hidden


def _norm_params(shape: Shape) -> int:
    """Norm vectors of one layer."""
    fields, convention = shape.fields, shape.convention
    norms = 1 if shape.blocks else convention.norms
    if fields.has("parallel_attn") and not fields.boolean("new_decoder_architecture", False):
        norms = 1 if fields.boolean("parallel_attn", True) else 2
    return norms * shape.hidden * (2 if convention.norm_bias else 1)


def _main_layers(shape: Shape) -> tuple[LayerGroup, ...]:
    return _grouped(shape, attention_plan(shape), ffn_plan(shape))


def _order(shape: Shape) -> tuple[int, ...]:
    """Group of each layer, groups counted in order of first appearance."""
    layers = tuple(zip(attention_plan(shape), ffn_plan(shape), strict=True))
    kinds = {kind: at for at, kind in enumerate(dict.fromkeys(layers))}
    return tuple(kinds[kind] for kind in layers)


def _grouped(shape: Shape, attentions: Sequence[str], ffns: Sequence[str]) -> tuple[LayerGroup, ...]:
    """Groups of equal layers, in order of first appearance."""
    norms = _norm_params(shape)
    return tuple(
        LayerGroup(count, attention(shape, mixer), feed_forward(shape, ffn), norms)
        for (mixer, ffn), count in Counter(zip(attentions, ffns, strict=True)).items()
    )


def _prediction_count(shape: Shape) -> int:
    """Multi-token-prediction layers whose weights the checkpoint holds."""
    fields = shape.fields
    fields.skip("use_mtp", "mtp_transformer_layers")
    stated = fields.synonym(("num_nextn_predict_layers", "mtp_num_hidden_layers"), high=MOST_PREDICTION_LAYERS)
    modules = fields.optional_integer("num_mtp_modules", high=MOST_PREDICTION_LAYERS)
    if modules and not stated:
        shape.assume(f"num_mtp_modules = {modules}: published checkpoints leave these out, so they are not counted")
    if stated is None and shape.convention.mtp_layers:
        shape.assume(f"prediction layers are not stated: the released checkpoint holds {shape.convention.mtp_layers}")
    return shape.convention.mtp_layers if stated is None else stated


def _prediction_layers(shape: Shape) -> tuple[LayerGroup, ...]:
    count = _prediction_count(shape)
    blocks = _prediction_blocks(shape)
    if not count:
        return ()
    if shape.blocks:
        kinds = [BLOCK_ATTENTION[block] for block in blocks], [BLOCK_FFN[block] for block in blocks]
    else:
        kinds = ["full"], ["moe" if shape.experts else "dense"]
    return tuple(replace(group, count=group.count * count) for group in _grouped(shape, *kinds))


def _prediction_blocks(shape: Shape) -> tuple[str, ...]:
    """Blocks of one prediction layer, where a layer is one block."""
    fields = shape.fields
    words = fields.strings("mtp_layers_block_type", most=MOST_PREDICTION_LAYERS)
    pattern = fields.text("mtp_hybrid_override_pattern")
    blocks = words or tuple(BLOCK_LETTERS.get(letter, letter) for letter in pattern[:MOST_PREDICTION_LAYERS])
    for block in blocks:
        if block not in BLOCK_ATTENTION:
            key = "mtp_layers_block_type" if words else "mtp_hybrid_override_pattern"
            raise fields.refuse(key, f"may hold only {', '.join(BLOCK_ATTENTION)}")
    return blocks or ("attention", "moe")


def _prediction_extras(shape: Shape) -> int:
    """Each prediction layer joins two hidden states (2h x h) and has three more norms."""
    return _prediction_count(shape) * (2 * shape.hidden * shape.hidden + 3 * shape.hidden)
