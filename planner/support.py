"""What an engine offers: techniques that it does not combine and degrees that it does not take, each with its source.

A refusal says that the engine does not offer the plan. It says nothing about whether the plan could be built: memory,
speed and cost stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from planner.specs.engine import Demand, Engine, LayoutLaw, Refusal
from planner.specs.layout import Layout
from planner.specs.model import Attention, ExpertFFN, GroupedAttention, LatentAttention, LinearAttention, ModelSpec
from planner.specs.scenario import Scenario

Flags: TypeAlias = npt.NDArray[np.bool_]
Broken: TypeAlias = Callable[[Layout], Flags]

DEGREES: Final = ("tp", "pp", "dp", "ep", "cp", "dcp")
"""Conditions that differ from row to row of a table of layouts."""


@dataclass(frozen=True)
class EngineRule:
    """A named reason for which an engine does not take a layout; `broken` is true where it applies."""

    name: str
    reason: str
    broken: Broken
    source: str
    date: str


def refusal(engine: Engine, model: ModelSpec, scenario: Scenario) -> Refusal | None:
    """The first refusal that this model and the scenario's switches meet in every layout; None when there is none."""
    for item in engine.refuses:
        if not _degrees(item.when) and not _degrees(item.unless) and _possible(item, model, scenario):
            return replace(item, reason=_said(engine, item))
    return None


def layout_rules(engine: Engine, model: ModelSpec, scenario: Scenario) -> tuple[EngineRule, ...]:
    """Rules on degrees that hold for this model and the scenario's switches; the scenario's own degrees are not read.

    Returns:
        rules in the order in which they are reported; each is a column of flags over a table of layouts.
    """
    return (*_combined(engine, model, scenario), *_demanded(engine, model, scenario))


def _combined(engine: Engine, model: ModelSpec, scenario: Scenario) -> Iterator[EngineRule]:
    """Refusals in which a degree takes part."""
    for item in engine.refuses:
        when, unless = _degrees(item.when), _degrees(item.unless)
        if (when or unless) and _possible(item, model, scenario):
            name = "+".join(item.when)
            yield EngineRule(name, _said(engine, item), _all_but(when, unless), item.source, item.date)


def _demanded(engine: Engine, model: ModelSpec, scenario: Scenario) -> Iterator[EngineRule]:
    """Laws of degrees, as far as the model has what they speak of."""
    for item in engine.demands:
        for broken in _laws(item.law, model, scenario.redundant):
            yield EngineRule(item.law, _said(engine, item), broken, item.source, item.date)


def _said(engine: Engine, item: Refusal | Demand) -> str:
    """A reason with the engine's name before it."""
    return f"{engine.name}: {item.reason}"


def _possible(item: Refusal, model: ModelSpec, scenario: Scenario) -> bool:
    """Whether the conditions beside the degrees let a refusal apply."""
    fixed = [name for name in item.when if not _is_degree(name)]
    spared = [name for name in item.unless if not _is_degree(name)]
    traits = model_traits(model)
    held = all(_holds(name, traits, scenario) for name in fixed)
    return held and not any(_holds(name, traits, scenario) for name in spared)


def _holds(condition: str, traits: frozenset[str], scenario: Scenario) -> bool:
    """Whether a trait or a switch is there."""
    if condition in traits:
        return True
    field, equals, value = condition.partition("=")
    if equals:
        return bool(getattr(scenario, field) == value)
    field, _, floor = condition.partition(">")
    return field in SWITCHES and bool(getattr(scenario, field) > float(floor or 0.0))


SWITCHES: Final = ("spec", "overlap", "prefix", "chunk", "redundant")
"""Scenario fields that are on when above zero."""


def model_traits(model: ModelSpec) -> frozenset[str]:
    """What conditions may ask of a model: its kinds of attention, sparse indices, heads that predict several tokens."""
    blocks = [group.attention for group in model.groups if group.attention is not None]
    indices = [block.index for block in blocks if isinstance(block, LatentAttention) and block.index is not None]
    found = {_kind(block) for block in blocks}
    found |= {"sparse"} if indices else set()
    found |= {"shared-index"} if any(index.heads == 0 for index in indices) else set()
    return frozenset(found | ({"mtp"} if model.mtp else set()))


def _kind(attention: Attention) -> str:
    """Trait of one kind of attention."""
    if isinstance(attention, LatentAttention):
        return "latent"
    return "linear" if isinstance(attention, LinearAttention) else "grouped"


def _is_degree(condition: str) -> bool:
    """Whether a condition speaks of a degree."""
    return condition.partition(">")[0] in DEGREES


def _degrees(conditions: tuple[str, ...]) -> tuple[str, ...]:
    """The conditions that speak of degrees."""
    return tuple(name for name in conditions if _is_degree(name))


def _all_but(when: tuple[str, ...], unless: tuple[str, ...]) -> Broken:
    """Where every degree of `when` is above its floor and none of `unless` is."""

    def broken(layout: Layout) -> Flags:
        every = np.ones(layout.devices.shape, dtype=np.bool_)
        held = reduce(np.logical_and, (_above(name, layout) for name in when), every)
        return reduce(np.logical_and, (~_above(name, layout) for name in unless), held)

    return broken


def _above(condition: str, layout: Layout) -> Flags:
    """Where a degree is above its floor, which is 1 unless named."""
    field, _, floor = condition.partition(">")
    degree: npt.NDArray[np.float64] = getattr(layout, field)
    return degree > float(floor or 1.0)


def _laws(law: LayoutLaw, model: ModelSpec, redundant: int) -> tuple[Broken, ...]:
    """Where a law is broken: one column function for each kind of block that it speaks of, none when it has no object."""
    match law:
        case "ep-stage":
            return (_below_stage,)
        case "dcp-tp":
            return (_leaves_tp,)
        case "dcp-tp-or-pcp":
            return (_leaves_tp_or_pcp,)
        case "dcp-kv-heads":
            return tuple(_over_kv_heads(*pair) for pair in _grouped_heads(model))
        case "dcp-kv-copies":
            return tuple(_leaves_copies(kv_heads) for kv_heads in sorted({pair[1] for pair in _grouped_heads(model)}))
        case "redundant-even":
            return tuple(_leaves_slots(count + redundant) for count in _expert_counts(model) if redundant)


def _below_stage(layout: Layout) -> Flags:
    """EP is neither 1 nor the whole stage."""
    below: Flags = (layout.ep > 1.0) & (layout.expert_tp != 1.0)
    return below


def _leaves_tp(layout: Layout) -> Flags:
    """DCP leaves a remainder of TP."""
    left: Flags = np.mod(layout.tp, layout.dcp) != 0
    return left


def _leaves_tp_or_pcp(layout: Layout) -> Flags:
    """DCP leaves a remainder of TP; with CP it is none of 1, CP, TP·CP."""
    spans = (layout.dcp == 1.0) | (layout.dcp == layout.cp) | (layout.dcp == layout.tp * layout.cp)
    return np.where(layout.cp > 1.0, ~spans, _leaves_tp(layout))


def _over_kv_heads(heads: int, kv_heads: int) -> Broken:
    """DCP shards a cache that TP has not yet split by heads, exceeds its copies, or splits the queries unevenly."""

    def broken(layout: Layout) -> Flags:
        copies = np.floor(layout.tp / kv_heads)
        uneven = np.mod(heads // kv_heads, layout.dcp) != 0
        over: Flags = (layout.dcp > 1.0) & ((layout.tp <= kv_heads) | (layout.dcp > copies) | uneven)
        return over

    return broken


def _leaves_copies(kv_heads: int) -> Broken:
    """DCP does not divide the copies of a KV head over TP."""

    def broken(layout: Layout) -> Flags:
        copies = np.floor(layout.tp / kv_heads)
        left: Flags = (layout.dcp > 1.0) & ((layout.dcp > copies) | (np.mod(copies, layout.dcp) != 0))
        return left

    return broken


def _leaves_slots(slots: int) -> Broken:
    """Experts and their extra copies leave a remainder of EP."""

    def broken(layout: Layout) -> Flags:
        left: Flags = np.mod(slots, layout.ep) != 0
        return left

    return broken


def _grouped_heads(model: ModelSpec) -> list[tuple[int, int]]:
    """Query heads and KV heads of every kind of grouped attention."""
    blocks = (group.attention for group in model.groups)
    return sorted({(block.heads, block.kv_heads) for block in blocks if isinstance(block, GroupedAttention)})


def _expert_counts(model: ModelSpec) -> list[int]:
    """Routed experts of every kind of expert layer."""
    return sorted({group.ffn.count for group in model.groups if isinstance(group.ffn, ExpertFFN)})
