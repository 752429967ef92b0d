"""Which layouts are considered, and named rules that say why one is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.specs.accelerator import Accelerator
from planner.specs.layout import Column, Layout
from planner.specs.model import (
    DenseFFN,
    ExpertFFN,
    GroupedAttention,
    LatentAttention,
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
        across = 1 if self.batch is None else self.batch.shape[1]
        return self.layout.tp.shape[0] * across


def candidates(layout: Layout, batch: Column | None = None) -> Candidates:
    """Bring layout columns to shape (n, 1) and batches to (1, m)."""
    columns = np.broadcast_arrays(layout.tp, layout.pp, layout.dp, layout.ep, layout.cp, layout.dcp)
    tall = Layout(*(column.reshape(-1, 1) for column in columns))
    return Candidates(tall, None if batch is None else np.atleast_2d(batch))


@dataclass(frozen=True)
class Rule:
    """A named reason to refuse a layout; `broken` is true where it applies."""

    name: str
    reason: str
    broken: Callable[[Layout], Flags]
    unpriced: bool = False
    """The layout exists and its memory is known; only its speed is not modelled."""


def rules(model: ModelSpec, gpu: Accelerator) -> tuple[Rule, ...]:
    """Every rule that a layout of this model on this accelerator must keep, in the order in which they are reported."""
    return (*_unpriced_rules(), *_head_rules(model), *_width_rules(model), *_expert_rules(model), *_domain_rules(gpu))


def _unpriced_rules() -> tuple[Rule, ...]:
    """Degrees whose communication is not modelled: refused rather than priced as free."""
    return tuple(
        Rule(field, f"{field} above 1 is not modelled yet: use {field}=1", _above_one(field), unpriced=True)
        for field in ("pp", "dp", "cp", "dcp")
    )


def _above_one(field: str) -> Callable[[Layout], Flags]:
    def broken(layout: Layout) -> Flags:
        degree: Column = getattr(layout, field)
        return degree > 1

    return broken


def _head_rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Attention heads divide by TP; KV heads divide by it or are replicated evenly."""
    found = []
    for heads in sorted({h for h in (_query_heads(group.attention) for group in model.groups) if h}):
        found.append(
            Rule("heads", f"tp does not divide the {heads} attention heads", lambda at, h=heads: h % at.tp != 0)
        )
    for kv in sorted({a.kv_heads for a in (g.attention for g in model.groups) if isinstance(a, GroupedAttention)}):
        found.append(
            Rule(
                "kv_heads",
                f"tp neither divides the {kv} KV heads nor is a multiple of them",
                lambda at, k=kv: (k % at.tp != 0) & (at.tp % k != 0),
            )
        )
    return tuple(found)


def _query_heads(attention: object) -> int:
    """Heads that TP must divide."""
    match attention:
        case GroupedAttention() | LatentAttention():
            return attention.heads
        case LinearAttention():
            return attention.state_shards
        case _:
            return 0


def _width_rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Dense feed-forward widths divide by TP, experts' widths by their share of it."""
    dense = sorted({_width(g.ffn.linears) for g in model.groups if isinstance(g.ffn, DenseFFN)})
    expert = sorted({_width(g.ffn.expert) for g in model.groups if isinstance(g.ffn, ExpertFFN)})
    return (
        *(Rule("ffn", f"tp does not divide the feed-forward width {w:,}", lambda at, w=w: w % at.tp != 0) for w in dense),
        *(
            Rule("experts", f"an expert's width {w:,} does not divide by tp·dp·cp/ep", lambda at, w=w: w % at.expert_tp != 0)
            for w in expert
        ),
    )


def _width(linears: tuple[object, ...]) -> int:
    """Intermediate width of a feed-forward block: the narrowest output of its matrices' input side."""
    first = linears[0]
    return int(getattr(first, "shards", 1))


def _expert_rules(model: ModelSpec) -> tuple[Rule, ...]:
    """Expert parallelism needs experts, and must divide the stage."""
    divides = Rule(
        "ep", "ep does not divide tp·dp·cp (the devices of a pipeline stage)",
        lambda at: (at.tp * at.dp * at.cp) % at.ep != 0,
    )  # fmt: skip
    if model.has_experts:
        return (divides,)
    return (Rule("ep", "ep above 1 needs a mixture of experts; this model has none", lambda at: at.ep > 1), divides)


def _domain_rules(gpu: Accelerator) -> tuple[Rule, ...]:
    """Tensor parallelism stays inside the scale-up domain: what crosses it is not priced yet."""
    domain = gpu.scale_up_domain
    if domain is None:
        return (
            Rule("domain", f"tp above 8 on {gpu.name}, whose scale-up domain is unknown", lambda at: at.tp > 8),
        )
    return (
        Rule("domain", f"tp exceeds the scale-up domain of {domain} × {gpu.name}", lambda at: at.tp > domain),
    )


def refusals(found: tuple[Rule, ...], layout: Layout) -> npt.NDArray[np.int64]:
    """Index into `found` of the first broken rule of each row; −1 where none is."""
    first = np.full(layout.tp.shape, -1, dtype=np.int64)
    for index, rule in enumerate(found):
        first = np.where((first < 0) & rule.broken(layout), index, first)
    return first
