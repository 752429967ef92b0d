"""What kind of model it is: where its parameters are, what steps read and compute on one device that holds all of it.

A use of the physics below a plan: the layout plays no part, the batch is that of a whole replica.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.anatomy_parts import Part, parts_of
from planner.anatomy_steps import (
    USUAL_LONGEST,
    Phase,
    Reads,
    Steps,
    alone,
    first,
    knee_of,
    lengths,
    overtaken,
    prompt_of,
    reads_of,
    steps_of,
    weight_reads,
)
from planner.candidates import candidates
from planner.catalog.kernel_laws import bf16_peak
from planner.evaluate import evaluate_setting
from planner.physics.ffn import distinct_experts
from planner.physics.forward import Placed
from planner.physics.intensity import intensity, ridge
from planner.physics.kv import bytes_per_token
from planner.physics.tiles import expected_tiles, expert_ridge_batch, tile_fill, tile_intensity, tokens_per_expert
from planner.physics.weights import stored_bytes
from planner.serving.decode import LARGEST_BATCH, largest_batch
from planner.setting import Setting, resolve
from planner.specs.accelerator import Accelerator
from planner.specs.layout import layout
from planner.specs.model import ExpertFFN, LatentAttention, LayerGroup
from planner.specs.precision import Precision
from planner.specs.scenario import Scenario
from planner.work import ONE, Column

BATCHES: Final[Column] = np.unique(np.round(np.geomspace(1.0, 16_384.0, 113)))
"""Batches of the curves: every power of two and, where they are whole, seven between."""

EXAMPLE_BATCH: Final = 128
"""Batch of the sentences where the scenario has none that can be served."""

TILES: Final = (64.0, 8.0)
"""Rows of a tensor-core instruction that tokens may take: m of m64n8k32, or its n when weights take the rows."""


@dataclass(frozen=True)
class Roof:
    """The corner of an accelerator for the precision in which the weights compute.

    Attributes:
        math: precision whose peak counts.
        wanted: precision that the weights would compute in where the accelerator could.
        peak: [FLOP/s]; bandwidth: [B/s]; ridge: [FLOP/B].
    """

    math: str
    wanted: str
    peak: float
    bandwidth: float
    ridge: float


@dataclass(frozen=True, eq=False)
class Experts:
    """Routed experts over batch, columns of shape (m,).

    Attributes:
        count, top_k, layers: experts, chosen ones and layers that have them.
        batch, distinct: sequences and the distinct experts that they hit in a layer.
        mean: tokens on an expert; fills: share of the rows of its tiles that hold a token, by tile.
        full: batch at which the mean fills the larger tile; full_fill: how full it is there.
        tile_intensity: operations per weight byte of the larger tile.
        ridge_batch: batch at which the experts' matrices reach the ridge.
    """

    count: int
    top_k: int
    layers: int
    batch: Column
    distinct: Column
    mean: Column
    fills: tuple[Column, ...]
    full: float
    full_fill: float
    tile_intensity: float
    ridge_batch: float


@dataclass(frozen=True, eq=False)
class Depth:
    """A decode step at one context.

    Attributes:
        context: tokens behind a sequence.
        here: the step at the batch of the sentences.
        limit: intensity that no batch exceeds; inf when nothing but weights is read [FLOP/B].
    """

    context: float
    here: Steps
    limit: float


@dataclass(frozen=True, eq=False)
class Anatomy:
    """A model under a scenario.

    Attributes:
        setting: the scenario, resolved.
        parts: where the parameters are.
        batch, served: batch of the sentences, and whether it is the plan's (else an example).
        context: tokens behind a decoding sequence.
        steps, here: steps over `BATCHES`, and at `batch`.
        stored_weights: weight bytes that a step reads once every expert is hit [B].
        routing, routing_here: experts over `BATCHES`, and at `batch`; None without experts.
        roof: corner of the accelerator.
        limit: intensity that no batch exceeds at this context [FLOP/B].
        far: a step at a long context, for comparison; None where the scenario's is as long or the model admits less.
        crossing, weights_crossing: first batch at the ridge with all bytes and with weights alone; None = beyond the search.
        reads, reads_here: cache reads over context, and at `context`.
        knee: most of the tokens behind it that a token's attention reads, where an index or windows choose them; else None.
        overtaken: context from which on index keys read exceed everything else read of the cache; None without one.
        prompt, decode: a whole prompt and one step.
    """

    setting: Setting
    parts: tuple[Part, ...]
    batch: int
    served: bool
    context: float
    steps: Steps
    here: Steps
    stored_weights: float
    routing: Experts | None
    routing_here: Experts | None
    roof: Roof
    limit: float
    far: Depth | None
    crossing: int | None
    weights_crossing: int | None
    reads: Reads
    knee: int | None
    overtaken: float | None
    reads_here: Reads
    prompt: Phase
    decode: Phase

    @property
    def total(self) -> int:
        """All parameters, MTP layers and vision towers included."""
        return sum(part.params for part in self.parts)

    @property
    def active(self) -> int:
        """Parameters that one token multiplies; a lookup in the embedding table is none."""
        return sum(part.active for part in self.parts)

    @property
    def indexers(self) -> int:
        """Layers with a sparse index of their own; others of a sparse model share a neighbour's choice."""
        return sum(group.count for group in self.setting.model.groups if _scans(group))

    @property
    def token_bytes(self) -> float:
        """Cache bytes that one more token costs while no window is full [B]."""
        return first(bytes_per_token(self.setting.cache, ONE, ONE))

    @property
    def never(self) -> bool:
        """Whether decoding stays below the ridge at every batch."""
        return self.limit < self.roof.ridge


def _scans(group: LayerGroup) -> bool:
    """Whether layers score all cached tokens with an index."""
    attention = group.attention
    return isinstance(attention, LatentAttention) and attention.index is not None and attention.index.heads > 0


@functools.lru_cache(maxsize=64)
def anatomy_of(scenario: Scenario) -> Anatomy:
    """The anatomy of a scenario's model in its precisions, at its context, beside its accelerator.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    setting = resolve(scenario)
    placed = alone(setting)
    context, (batch, served) = setting.decoding.context, operating_batch(setting)
    roof = roof_of(setting.gpu, weights_precision(setting))
    at = depth_of(placed, batch, context)
    return Anatomy(
        setting=setting,
        parts=parts_of(setting.model),
        batch=batch,
        served=served,
        context=context,
        steps=steps_of(placed, BATCHES, context),
        here=at.here,
        stored_weights=first(weight_reads(placed, np.full(1, 1e9))),
        routing=routing_of(setting, roof, BATCHES),
        routing_here=routing_of(setting, roof, batch * ONE),
        roof=roof,
        limit=at.limit,
        far=far_of(placed, setting, batch),
        crossing=crossing(lambda b: steps_of(placed, b, context).intensity, roof.ridge),
        weights_crossing=crossing(lambda b: steps_of(placed, b, context).weights_intensity, roof.ridge),
        reads=(read := reads_of(placed, setting, lengths(setting))),
        knee=knee_of(setting.model),
        overtaken=overtaken(read),
        reads_here=reads_of(placed, setting, context * ONE),
        prompt=prompt_of(placed, setting),
        decode=Phase(float(batch), first(at.here.flops), first(at.here.moved)),
    )


def depth_of(placed: Placed, batch: int, context: float) -> Depth:
    """A step at one context, and the intensity that it approaches: that of what one more sequence adds."""
    lone = steps_of(placed, ONE, context)
    grown = lone.activations + lone.cache + lone.index
    limit = first(intensity(lone.flops, grown)) if grown[0] else float("inf")
    return Depth(context, steps_of(placed, batch * ONE, context), limit)


def far_of(placed: Placed, setting: Setting, batch: int) -> Depth | None:
    """A step at 128 Ki tokens."""
    admitted = setting.model.max_len is None or setting.model.max_len >= USUAL_LONGEST
    longer = setting.decoding.context < USUAL_LONGEST
    return depth_of(placed, batch, USUAL_LONGEST) if admitted and longer else None


def operating_batch(setting: Setting) -> tuple[int, bool]:
    """The batch asked for, else the plan's, else an example; and whether it can be served."""
    scenario = setting.scenario
    asked = None if scenario.at_batch is None else np.full((1, 1), float(scenario.at_batch))
    where = layout(scenario.tp, scenario.pp, scenario.dp, scenario.ep, scenario.cp, scenario.dcp)
    row = evaluate_setting(setting, candidates(where, asked))
    if np.isfinite(row.tpot_ms[0]) and row.batch[0] >= 1:
        return int(row.batch[0]), True
    return scenario.at_batch or EXAMPLE_BATCH, False


def weights_precision(setting: Setting) -> Precision:
    """Precision of most weights: the routed experts' where there are any."""
    kinds = setting.machine.formats
    return kinds.experts if setting.model.has_experts else kinds.dense


def roof_of(gpu: Accelerator, precision: Precision) -> Roof:
    """An accelerator's corner, at the BF16 peak where it has nothing faster (INT8 serving computes in INT8 anyhow)."""
    plain, own = bf16_peak(gpu), gpu.peak.get(precision.math)
    runs = own is not None and (own >= plain or precision.math == "int8")
    peak = own if own is not None and runs else plain
    corner = first(ridge(peak * ONE, gpu.bandwidth * ONE))
    return Roof(precision.math if runs else "bf16", precision.math, peak, gpu.bandwidth, corner)


def crossing(measure: Callable[[Column], Column], corner: float) -> int | None:
    """The first whole batch at which a measure that rises with the batch reaches the ridge; None beyond the search."""
    below = largest_batch(lambda batch: (measure(batch[0]) < corner)[None, :], (1, 1))
    found = int(first(below)) + 1
    return None if found > LARGEST_BATCH else found


def routing_of(setting: Setting, roof: Roof, batch: Column) -> Experts | None:
    """Experts at batches of shape (m,), for the kind of experts that most layers have; None for a dense model."""
    found = [(group.ffn, group.count) for group in setting.model.groups if isinstance(group.ffn, ExpertFFN)]
    if not found:
        return None
    feed = max(found, key=lambda pair: pair[1])[0]
    count, top_k = feed.count * ONE, feed.top_k * ONE
    share = tokens_per_expert(ONE, top_k, count)
    width = stored_bytes(weights_precision(setting), setting.convention) * ONE
    full = np.ceil(TILES[0] / share)
    return Experts(
        count=feed.count,
        top_k=feed.top_k,
        layers=sum(layers for _, layers in found),
        batch=batch,
        distinct=distinct_experts(feed.count, feed.top_k, batch),
        mean=tokens_per_expert(batch, top_k, count),
        fills=tuple(fill_of(batch, share, tile) for tile in TILES),
        full=first(full),
        full_fill=first(fill_of(full, share, TILES[0])),
        tile_intensity=first(tile_intensity(TILES[0] * ONE, width)),
        ridge_batch=first(expert_ridge_batch(roof.ridge * ONE, width, top_k, count)),
    )


def fill_of(batch: Column, share: Column, tile: float) -> Column:
    """Share of the rows of an expert's tiles that hold a token under random routing."""
    rows = tile * ONE
    return tile_fill(batch * share, rows, expected_tiles(batch, share, rows))
