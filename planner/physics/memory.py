"""What fits on one device: the budget, what weights and workspace take, the cache pool, and the largest batch it holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.formula import formula
from planner.physics.kv import EXACT, Allocation
from planner.physics.profiling import Profiled, activation_peak
from planner.specs.engine import Engine
from planner.specs.layout import Layout
from planner.specs.model import ModelSpec
from planner.specs.profile import Conventions
from planner.work import Column


@formula("engine rule: share of the memory that the driver shows; what it keeps from frameworks counts as runtime", "B")
def usable_bytes(physical: float, utilisation: float) -> float:
    """Memory that the engine may use."""
    return physical * utilisation  # [B]


@formula("engine logs: a base and a share of the weights", "B")
def graph_bytes(weights: Column, base: float, per_weight_byte: float) -> Column:
    """CUDA-graph memory of one device."""
    return base + per_weight_byte * weights  # [B]


@formula("engine rule (vLLM): the share of all memory, less everything that is in it", "B")
def pool_of_total(usable: float, weights: Column, activation: Column, runtime: Column, graphs: Column) -> Column:
    """Cache pool of one device; negative when the weights do not fit."""
    workspace = activation + runtime + graphs  # [B]
    return usable - weights - workspace  # [B]


@formula("engine rule (SGLang): the share of what is free at start, less the weights; workspace lives in the rest", "B")
def pool_of_static(usable: float, weights: Column, runtime: Column, utilisation: float) -> Column:
    """Cache pool of one device; negative when the weights do not fit."""
    return usable - utilisation * runtime - weights  # [B]


@formula("engine rule (TensorRT-LLM): the share of what is free once weights and workspace are in", "B")
def pool_of_free(
    physical: float, weights: Column, activation: Column, runtime: Column, graphs: Column, utilisation: float
) -> Column:
    """Cache pool of one device; negative when the weights do not fit."""
    free = physical - weights - activation - runtime - graphs  # [B]
    return utilisation * free  # [B]


@formula("definition, floored: whole sequences that a pool holds beside one copy of what they share", "sequences")
def sequences_held(pool: Column, sequence: Column, shared: Column, paging: float, ranks: Column) -> Column:
    """Sequences of one size that a replica's pools hold; blocks of a common prefix are stored once a rank."""
    usable_pool = np.maximum(pool * paging - shared, 0.0)  # [B]
    per_rank = np.floor(usable_pool / (sequence - shared))  # [sequences]
    return per_rank * ranks  # [sequences]


@formula("engine rule (SGLang): recurrent states and growing cache share the static pool as the ratio to one", "B")
def growing_pool(pool: Column, ratio: float) -> Column:
    """What a pool leaves for keys and values once states have their part."""
    parts = 1.0 + ratio  # [1]
    return pool / parts  # [B]


@formula("definition, floored: whole states in their part of the pool", "sequences")
def states_held(pool: Column, growing: Column, state: Column, ranks: Column) -> Column:
    """Sequences whose recurrent states a replica's pools hold."""
    slots = np.floor(np.maximum(pool - growing, 0.0) / state)  # [sequences]
    return slots * ranks  # [sequences]


@formula("definition, floored to whole blocks: tokens of full-length sequences that one device's pool holds", "tokens")
def tokens_held(pool: Column, token_bytes: Column, paging: float, block: int) -> Column:
    """Cache tokens of one attention rank, as the engine's log counts them."""
    usable_pool = np.maximum(pool, 0.0) * paging  # [B]
    blocks = np.floor(usable_pool / (token_bytes * block))  # [blocks]
    return blocks * block  # [tokens]


@dataclass(frozen=True)
class Workspace:
    """Memory beside weights and cache on one device, all bytes, columns where they depend on the layout.

    `runtime` includes what the driver keeps of the memory that it shows (the framework sees that much less).
    """

    activation: Column
    graphs: Column
    runtime: Column


def workspace(
    engine: Engine,
    weights: Column,
    model: ModelSpec,
    layout: Layout,
    run: Profiled,
    hidden_from_framework: float,
    convention: Conventions,
) -> Workspace:
    """Activation peak, CUDA graphs and runtime memory of one device under an engine (zero in the textbook).

    Args:
        engine: rules of a version on a device.
        weights: weights of one device [B], shaped as the layout.
        model, layout: what is profiled, and how it is divided.
        run: sequences, tokens and longest sequence of the profiling run.
        hidden_from_framework: what the driver shows and the framework does not [B].
        convention: what the profile counts.
    """
    zero = np.zeros(np.shape(weights))
    if not convention.overheads:
        return Workspace(zero, zero, zero)
    activation = activation_peak(engine, model, layout, run)
    graphs = graph_bytes(weights, engine.graph_base, engine.graph_per_weight_byte)
    return Workspace(activation + zero, graphs, runtime_bytes(engine, layout.tp) + hidden_from_framework + zero)


def starts(engine: Engine, total: float, utilisation: float) -> bool:
    """Whether the share is free when the engine starts; vLLM refuses to start when it is not.

    Args:
        engine: rules of a version on a device.
        total: what the framework reports as the device's memory [B].
        utilisation: memory share.
    """
    return usable_bytes(total, utilisation) <= total - engine.start_bytes


def pool_bytes(engine: Engine, physical: float, utilisation: float, weights: Column, space: Workspace) -> Column:
    """Cache pool of one device by the engine's own rule; negative when the weights do not fit [B]."""
    usable = usable_bytes(physical, utilisation)
    match engine.budget:
        case "total":
            graphs = space.graphs if engine.graphs_in_budget else np.zeros(np.shape(weights))
            return pool_of_total(usable, weights, space.activation, space.runtime, graphs)
        case "static":
            return pool_of_static(usable, weights, space.runtime, utilisation)
        case "free":
            return pool_of_free(physical, weights, space.activation, space.runtime, space.graphs, utilisation)


def splits(engine: Engine, state: Column) -> bool:
    """Whether an engine keeps states in a part of the pool of their own, and there are any."""
    return engine.state_ratio > 0.0 and bool(np.any(state > 0.0))


def runtime_bytes(engine: Engine, tp: Column) -> Column:
    """Non-framework memory by TP degree: the nearest tabulated degree at or below."""
    degrees = np.asarray([degree for degree, _ in engine.runtime_bytes], dtype=float)
    taken = np.asarray([taken for _, taken in engine.runtime_bytes])
    at = np.searchsorted(degrees, tp, side="right") - 1
    return np.asarray(taken[np.maximum(at, 0)], dtype=np.float64)


def allocation_rules(engine: Engine, token_budget: float, convention: Conventions) -> Allocation:
    """How cache is handed out: exactly in the textbook, in blocks by engines."""
    if not convention.overheads:
        return EXACT
    return Allocation(engine.block_size, token_budget - 1.0, padded=engine.id in ("vllm", "vllm-ascend"))
