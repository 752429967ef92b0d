"""Which matrices a quantised checkpoint leaves at 16 bits, from the list of names in its configuration.

Lists name modules (`model.layers.3.self_attn.o_proj`), with wildcards or without. They are matched by the words of a
block and the name of a matrix, never run as patterns. A name that spares a few layers only does not spare the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.catalog.hf_precision import Storage
from planner.specs.model import (
    Attention,
    DenseFFN,
    ExpertFFN,
    FeedForward,
    GroupedAttention,
    LatentAttention,
    LayerGroup,
    Linear,
    LinearAttention,
)

ATTENTION = ("self_attn", "linear_attn", "attn", "mixer")
SHARED = ("shared_experts", "shared_expert")
ROUTED = ("experts",)
DENSE = ("mlp", "feed_forward")
ELSEWHERE = ("visual", "vision", "audio", "mtp")
"""Parts of names outside the main model's layers."""


@dataclass(frozen=True)
class Stored:
    """Layers with what stays at 16 bits marked, and the precision of the rest."""

    groups: tuple[LayerGroup, ...]
    prediction: tuple[LayerGroup, ...]
    precision: str
    experts_precision: str | None = None
    notes: tuple[str, ...] = ()


def stored_groups(groups: Sequence[LayerGroup], prediction: Sequence[LayerGroup], stored: Storage) -> Stored:
    """Mark what the checkpoint keeps; say so in a note where anything is kept."""
    if stored.precision == "bf16":
        return Stored(tuple(groups), tuple(prediction), "bf16")
    layers = sum(group.count for group in groups)
    names = [name for name in stored.kept if not any(word in name for word in ELSEWHERE)]
    marked = tuple(_marked(group, names, layers) for group in groups)
    if any(isinstance(group.ffn, ExpertFFN) for group in groups) and (stored.experts_only or _experts_only(marked)):
        note = f"only the routed experts are taken as {stored.precision}"
        return Stored(tuple(groups), tuple(prediction), "bf16", stored.precision, (note,))
    kept = {linear.name for group in marked for linear in _quantisable(group) if not linear.quantised}
    kept -= {linear.name for group in groups for linear in _quantisable(group) if not linear.quantised}
    notes = (f"kept at 16 bits by the checkpoint: {', '.join(sorted(kept))}",) if kept else ()
    predicted = tuple(_marked(group, names, layers) for group in prediction)
    return Stored(marked, predicted, stored.precision, None, notes)


def _experts_only(groups: Sequence[LayerGroup]) -> bool:
    """Whether nothing beside the routed experts is quantised (a few dense layers aside)."""
    routed = [group for group in groups if isinstance(group.ffn, ExpertFFN)]
    around = [linear for group in groups for linear in _attention_linears(group)]
    around += [linear for group in routed if isinstance(group.ffn, ExpertFFN) for linear in group.ffn.shared]
    experts = [linear for group in routed if isinstance(group.ffn, ExpertFFN) for linear in group.ffn.expert]
    return not any(linear.quantised for linear in around) and all(linear.quantised for linear in experts)


def _attention_linears(group: LayerGroup) -> tuple[Linear, ...]:
    return () if group.attention is None else group.attention.linears


def _quantisable(group: LayerGroup) -> tuple[Linear, ...]:
    match group.ffn:
        case DenseFFN():
            return _attention_linears(group) + group.ffn.linears
        case ExpertFFN():
            return _attention_linears(group) + group.ffn.expert + group.ffn.shared
    return _attention_linears(group)


def _marked(group: LayerGroup, names: Sequence[str], layers: int) -> LayerGroup:
    attention = _marked_attention(group.attention, names, group.count)
    return replace(group, attention=attention, ffn=_marked_ffn(group.ffn, names, group.count, layers))


def _marked_attention(block: Attention | None, names: Sequence[str], count: int) -> Attention | None:
    match block:
        case GroupedAttention():
            return replace(block, linears=_spared(block.linears, names, ATTENTION, count))
        case LatentAttention():
            return replace(block, linears=_spared(block.linears, names, ATTENTION, count))
        case LinearAttention():
            return replace(block, linears=_spared(block.linears, names, ATTENTION, count))
    return None


def _marked_ffn(block: FeedForward | None, names: Sequence[str], count: int, layers: int) -> FeedForward | None:
    unshared = [name for name in names if "shared" not in name]
    match block:
        case DenseFFN():
            plain = [name for name in unshared if "experts" not in name]
            return replace(block, linears=_spared(block.linears, plain, DENSE, layers))
        case ExpertFFN():
            routed = [name for name in unshared if "experts" in name]
            return replace(
                block,
                expert=_spared(block.expert, routed, ROUTED, count),
                shared=_spared(block.shared, [name for name in names if "shared" in name], SHARED, count),
            )
    return None


def _spared(linears: Sequence[Linear], names: Sequence[str], words: Sequence[str], count: int) -> tuple[Linear, ...]:
    """The matrices, those that the names spare marked as not quantised."""
    here = [name for name in names if any(word in name for word in words)]
    whole = _covers([name for name in here if name.rstrip("*.").endswith(tuple(words))], count)
    return tuple(
        replace(
            linear, quantised=linear.quantised and not (whole or _covers([n for n in here if linear.name in n], count))
        )
        for linear in linears
    )


def _covers(names: Sequence[str], count: int) -> bool:
    """Whether the names reach at least half of `count` layers (a name without a number reaches all)."""
    return any(not any(letter.isdigit() for letter in name) for name in names) or (
        bool(names) and 2 * len(names) >= count
    )
