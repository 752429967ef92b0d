"""Other engines and packed weights in measurement tables: one of ours is planned, then clocked and stored as theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.case_words import ENGINES, engine_id
from planner.catalog.fitted_constants import serving
from planner.catalog.other_engines import OtherEngine, other_engine
from planner.physics.weights import Formats
from planner.plan import Plans
from planner.setting import Setting, reclocked
from planner.specs.model import (
    UNSPLIT,
    Attention,
    DenseFFN,
    FeedForward,
    GroupedAttention,
    LayerGroup,
    Linear,
    ModelSpec,
)
from planner.specs.precision import WEIGHTS, Precision
from planner.specs.profile import Profile

SPOKEN = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
"""Our engines as they are written."""

SPLIT_BY_INPUT = ("o", "down")
"""Kernels whose matrices tensor parallelism splits along their inputs; all others along their outputs."""


@dataclass(frozen=True)
class Served:
    """The engine that serves a case.

    Attributes:
        id: id of the engine that is planned.
        other: whose times are meant, where that is another engine.
    """

    id: str
    other: OtherEngine | None = None

    @property
    def said(self) -> tuple[str, ...]:
        """What a reader of the prediction has to know."""
        if self.other is None:
            return ()
        floor = self.other.layer_floor_us
        least = f", at least {floor:g} us a layer" if floor else ""
        return (f"borrowed: {self.other.name} clocked as {SPOKEN[self.id]} × {self.other.factor:g}{least}",)

    @property
    def utilisation(self) -> float | None:
        """Share of memory that the engine may use; None = as the planned engine."""
        return self.other.utilisation if self.other else None

    def layout_model(self, model: ModelSpec, tp: int) -> ModelSpec:
        """The model as the engine lays it out over so many ranks."""
        return padded(model, tp) if self.other is not None and self.other.pads_heads else model

    def step_floor_ms(self, layers: int) -> float:
        """What the host takes at least for one step of so many layers [ms]."""
        return self.other.layer_floor_us * layers * 1e-3 if self.other else 0.0


def served_engine(text: str) -> Served:
    """The engine that a table names.

    Raises:
        CaseError: for an engine that is neither planned nor clocked; names the engine.
    """
    found = None if text.strip().lower() in ENGINES else other_engine(text)
    return Served(engine_id(text)) if found is None else Served(found.like, found)


def as_served(setting: Setting, served: Served, bits: float | None) -> Setting:
    """A setting under another engine's clock and with packed weights; as it is where there is neither."""
    stored = setting if bits is None else with_packed_weights(setting, bits)
    other = served.other
    return stored if other is None else reclocked(stored, lambda clock: _clocked(clock, other))


def _clocked(clock: Profile, other: OtherEngine) -> Profile:
    """Times of another engine, in the band of borrowed constants or the profile's own where that is wider.

    What the planned engine's front end adds to a first token says nothing about another's: none is added.
    """
    bands = serving().band
    band = min(clock.band[0], bands.borrowed_low), max(clock.band[1], bands.borrowed_high)
    slower = replace(clock, scale=clock.scale * other.factor, band=band)
    return replace(slower, ttft_fixed=0.0, ttft_factor=1.0, closed_loop_wait=0.0)


def with_packed_weights(setting: Setting, bits: float) -> Setting:
    """A setting whose every weight takes so many bits, embedding and head included, and is multiplied in BF16."""
    kind = packed(bits)
    machine = replace(setting.machine, formats=Formats(kind, kind, kind, kind))
    return replace(setting, machine=machine, decoding=replace(setting.decoding, machine=machine))


def packed(bits: float) -> Precision:
    """A weight-only format of so many bits a weight, scales included."""
    width = bits / 8.0
    return replace(WEIGHTS["int4"], id=f"{bits:g}-bit", bytes=width, nominal_bytes=width, note="published mean bits")


def slowed(plans: Plans, least_ms: float) -> Plans:
    """Plans whose steps take at least so long [ms]: TPOT, its band and output follow."""
    stretch = np.maximum(1.0, least_ms / plans.tpot_ms)  # [1]
    return replace(
        plans,
        tpot_ms=plans.tpot_ms * stretch,
        tpot_low_ms=plans.tpot_low_ms * stretch,
        tpot_high_ms=plans.tpot_high_ms * stretch,
        output_tok_s=plans.output_tok_s / stretch,
    )


def padded(model: ModelSpec, tp: int) -> ModelSpec:
    """A model whose heads and feed-forward widths are padded to whole multiples of TP; equal where TP divides them."""
    return replace(model, groups=tuple(_padded_group(group, tp) for group in model.groups))


def _padded_group(group: LayerGroup, tp: int) -> LayerGroup:
    """A group of layers, padded."""
    return replace(group, attention=_padded_attention(group.attention, tp), ffn=_padded_ffn(group.ffn, tp))


def _padded_attention(block: Attention | None, tp: int) -> Attention | None:
    """Grouped attention, padded; other kinds as they are."""
    if not isinstance(block, GroupedAttention):
        return block
    heads, shared = whole_multiple(block.heads, tp), whole_multiple(block.kv_heads, tp)
    linears = tuple(_padded_linear(linear, tp) for linear in block.linears)
    return replace(block, heads=heads, kv_heads=shared, linears=linears)


def _padded_ffn(block: FeedForward | None, tp: int) -> FeedForward | None:
    """A dense feed-forward block, padded; experts as they are."""
    if not isinstance(block, DenseFFN):
        return block
    return replace(block, linears=tuple(_padded_linear(linear, tp) for linear in block.linears))


def _padded_linear(linear: Linear, tp: int) -> Linear:
    """A matrix whose split side is padded."""
    if linear.shards == UNSPLIT:
        return linear
    shards = whole_multiple(linear.shards, tp)
    if linear.kernel in SPLIT_BY_INPUT:
        return replace(linear, shards=shards, inputs=linear.inputs // linear.shards * shards)
    return replace(linear, shards=shards, outputs=linear.outputs // linear.shards * shards)


def whole_multiple(count: int, tp: int) -> int:
    """The count rounded up to a multiple of TP."""
    return -(-count // tp) * tp
