"""Which layouts are considered, and named rules that say why one is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.specs.layout import Column, Layout
from planner.specs.model import (
    Attention,
    DenseFFN,
    ExpertFFN,
    GroupedAttention,
    Linear,
    LinearAttention,
    ModelSpec,
)

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Candidates:
    """Layouts (columns of shape (n, 1)) crossed with batches ((1, m), (n, m), or None = each layout's own largest)."""

    layout: Layout
    batch: Column | None

    @property
    def rows(self) -> int:
        """Rows that evaluating them makes."""
        across = 1 if self.batch is None else int(self.batch.shape[1])
        return int(self.layout.tp.shape[0]) * across


def candidates(layout: Layout, batch: Column | None = None) -> Candidates:
    """Bring layout columns to shape (n, 1) and batches to (1, m)."""
    return Candidates(layout.tall, None if batch is None else np.atleast_2d(batch))


@dataclass(frozen=True)
class Rule:
    """A named reason to refuse a layout; `broken` is true where it applies."""

    name: str
    reason: str
    broken: Callable[[Layout], Flags]
    by_engine: bool = False
    """It is the engine that does not offer the layout; memory and speed of it are known."""


def rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Every rule that a layout of this model must keep, in the order in which they are reported."""
    return (
        *_head_rules(model),
        *_width_rules(model),
        *_expert_rules(model),
        *_context_rules(model),
        _stage_rule(model),
    )


Broken = Callable[[Layout], Flags]


def _head_rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Attention heads divide by TP; KV heads divide by it or are replicated evenly."""
    blocks = [group.attention for group in model.groups if group.attention is not None]
    queries = sorted({_query_heads(block) for block in blocks})
    shared = sorted({block.kv_heads for block in blocks if isinstance(block, GroupedAttention)})
    heads = [Rule("heads", f"tp does not divide the {n} attention heads", _leaves("tp", n)) for n in queries]
    text = "tp neither divides the {} KV heads nor is a multiple of them"
    return (*heads, *(Rule("kv_heads", text.format(n), _uneven(n)) for n in shared))


def _query_heads(attention: Attention) -> int:
    """Heads that TP must divide."""
    return attention.state_shards if isinstance(attention, LinearAttention) else attention.heads


def _width_rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Dense feed-forward widths divide by TP, experts' widths by their share of it."""
    dense = sorted({_width(group.ffn.linears) for group in model.groups if isinstance(group.ffn, DenseFFN)})
    expert = sorted({_width(group.ffn.expert) for group in model.groups if isinstance(group.ffn, ExpertFFN)})
    text = "an expert's width {:,} does not divide by tp·dp·cp/ep"
    return (
        *(Rule("ffn", f"tp does not divide the feed-forward width {n:,}", _leaves("tp", n)) for n in dense),
        *(Rule("experts", text.format(n), _leaves("expert_tp", n)) for n in expert),
    )


def _width(linears: tuple[Linear, ...]) -> int:
    """Intermediate width of a feed-forward block: the ways that its matrices divide."""
    return linears[0].shards


def _expert_rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Expert parallelism needs experts, and must divide the stage."""
    divides = Rule("ep", "ep does not divide tp·dp·cp (the devices of a pipeline stage)", _ep_leaves)
    if model.has_experts:
        return (divides,)
    return (Rule("ep", "ep above 1 needs a mixture of experts; this model has none", _above("ep", 1)), divides)


def _context_rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Decode context parallelism shares a context among tensor-parallel ranks that hold copies of the same heads."""
    divides = Rule("dcp", "dcp does not divide tp", lambda layout: _uneven_parts(layout.tp, layout.dcp))
    shards = sorted({_cache_shards(group.attention) for group in model.groups if _keeps_context(group.attention)})
    text = "dcp above tp / {} would cut the context of ranks that hold different KV heads"
    return (divides, *(Rule("dcp", text.format(n), _beyond_copies(n)) for n in shards))


def _keeps_context(attention: Attention | None) -> bool:
    """Whether a block caches every token, so that its cache can be cut along the context."""
    return attention is not None and not isinstance(attention, LinearAttention)


def _cache_shards(attention: Attention | None) -> int:
    """Ways that tensor parallelism divides a block's cache before ranks hold copies."""
    return attention.kv_heads if isinstance(attention, GroupedAttention) else 1


def _beyond_copies(shards: int) -> Broken:
    """Whether more ranks share a context than hold copies of the same heads."""
    return lambda layout: layout.dcp > np.maximum(layout.tp / np.minimum(layout.tp, shards), 1.0)


def block_rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Block-FP8 kernels of vLLM and SGLang need whole blocks of 128 of an expert's width on a rank.

    They refuse to load such a model (vllm-project/vllm issue 17569: `output_size … is not divisible by block_n = 128`).
    """
    widths = sorted({_width(group.ffn.expert) for group in model.groups if isinstance(group.ffn, ExpertFFN)})
    text = "block-FP8 kernels need a multiple of 128 of an expert's width {:,} on a rank: raise ep"
    return tuple(Rule("blocks", text.format(n), _breaks_blocks(n), by_engine=True) for n in widths)


def _breaks_blocks(width: int) -> Broken:
    """Whether a rank's share of an expert's width is not whole blocks."""
    return lambda layout: np.asarray(np.mod(width / layout.expert_tp, 128.0) != 0.0)


def _stage_rule(model: ModelSpec) -> Rule:
    """Every pipeline stage has a layer."""
    return Rule("pp", f"pp exceeds the {model.layers} layers", _above("pp", model.layers))


def _uneven_parts(whole: Column, parts: Column) -> Flags:
    """Whether a degree does not divide another."""
    return np.asarray(np.mod(whole, parts) != 0.0)


def _above(field: str, limit: int) -> Broken:
    """Whether a degree exceeds a limit."""

    def broken(layout: Layout) -> Flags:
        degree: Column = getattr(layout, field)
        return degree > limit

    return broken


def _leaves(field: str, size: int) -> Broken:
    """Whether a degree leaves a remainder of a size."""

    def broken(layout: Layout) -> Flags:
        degree: Column = getattr(layout, field)
        left: Flags = np.mod(size, degree) != 0
        return left

    return broken


def _uneven(size: int) -> Broken:
    """Whether TP neither divides a size nor is a multiple of it."""

    def broken(layout: Layout) -> Flags:
        left: Flags = (np.mod(size, layout.tp) != 0) & (np.mod(layout.tp, size) != 0)
        return left

    return broken


def _ep_leaves(layout: Layout) -> Flags:
    """Whether EP leaves a remainder of the devices of a stage."""
    left: Flags = np.mod(layout.tp * layout.dp * layout.cp, layout.ep) != 0
    return left


def refusals(found: tuple[Rule, ...], layout: Layout) -> npt.NDArray[np.int64]:
    """Index into `found` of the first broken rule of each row; −1 where none is."""
    first = np.full(layout.tp.shape, -1, dtype=np.int64)
    for index, rule in enumerate(found):
        first = np.where((first < 0) & rule.broken(layout), index, first)
    return first
