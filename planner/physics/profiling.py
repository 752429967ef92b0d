"""What a start-up profiling run leaves as its activation peak: sampler, widest layer, expert buffers, index, images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.formula import formula
from planner.specs.engine import Engine
from planner.specs.layout import Layout
from planner.specs.model import DenseFFN, ExpertFFN, LatentAttention, LayerGroup, ModelSpec
from planner.work import Column

MOST_EXPERT_TOKENS = 16384.0
"""Tokens that fused-expert kernels take at a time (vLLM's VLLM_FUSED_MOE_CHUNK_SIZE) [tokens]."""


@dataclass(frozen=True)
class Profiled:
    """What the profiling run is made of: most sequences, tokens in one step, and the longest sequence (0 = not known)."""

    seats: float
    tokens: float
    longest: float


@formula("engine logs: the sampler's float32 logits, sorted, for every sequence at once", "B")
def sampler_bytes(max_num_seqs: float, vocab: int, per_logit: float) -> Column:
    """Peak of sampling on the last pipeline stage."""
    logits = max_num_seqs * vocab  # [elements]
    return np.asarray(per_logit * logits)  # [B]


@formula("engine logs: gate, up and their product on a rank, four vectors of the hidden width, 2 bytes an element", "B")
def forward_bytes(tokens: float, inner: Column, hidden: int, matrices: int) -> Column:
    """Peak of one dense layer while a step of prompt tokens passes."""
    widths = matrices * inner + 4.0 * hidden  # [elements]
    return tokens * widths * 2.0  # [B]


@formula("fused-expert kernels: tokens · top-k rows of gate and up, and as many of what comes out, 2 bytes", "B")
def expert_buffer_bytes(tokens: float, top_k: int, inner: Column, hidden: int) -> Column:
    """Two work buffers of routed experts on a rank."""
    rows = tokens * top_k  # [rows]
    first = np.maximum(2.0 * inner, hidden)  # [elements]
    second = np.maximum(inner, hidden)  # [elements]
    return np.asarray(rows * (first + second) * 2.0)  # [B]


@formula("sparse attention: a work buffer of a few longest sequences' cache", "B")
def index_buffer_bytes(longest: float, per_token: float) -> Column:
    """Work buffer in which sparse attention gathers what it reads of a prompt."""
    return np.asarray(longest * per_token)  # [B]


@formula("engine logs: sampling follows the layers, so the larger counts; work buffers stay beside both", "B")
def activation_bytes(sampler: Column, forward: Column, kept: Column, floor: float) -> Column:
    """Activation peak of one device."""
    peak = np.maximum(np.maximum(sampler, forward), floor)  # [B]
    return peak + kept  # [B]


def profiled_tokens(engine: Engine, asked: float | None, longest: float) -> float:
    """Tokens of the profiling step: those asked for, the engine's budget, or a whole prompt where it takes prompts whole.

    Args:
        engine: rules of a version.
        asked: tokens a step as configured; None = the engine's own.
        longest: longest sequence that is admitted [tokens], 0 = not known.
    """
    if asked is not None:
        return asked
    whole = longest if longest <= engine.whole_prompt_tokens else 0.0
    return max(float(engine.token_budget), whole)


def activation_peak(engine: Engine, model: ModelSpec, layout: Layout, run: Profiled) -> Column:
    """Activation peak of one device in the profiling run of an engine [B]."""
    sampler = sampler_bytes(run.seats, model.vocab, engine.sampler_bytes_per_logit)
    none = np.zeros(np.shape(layout.tp))
    if not engine.sampler_bytes_per_logit:
        return none
    forward = np.maximum.reduce([_dense_forward(model, group, layout, run.tokens) for group in model.groups])
    buffers = np.maximum.reduce([_expert_buffers(model, group, layout, run.tokens) for group in model.groups])
    forward = forward if engine.keeps_expert_buffers else forward + buffers
    kept = buffers if engine.keeps_expert_buffers else none
    return activation_bytes(sampler, forward, kept + _other_buffers(engine, model, run), engine.activation_floor)


def _dense_forward(model: ModelSpec, group: LayerGroup, layout: Layout, tokens: float) -> Column:
    """Peak of one layer, routed experts excluded."""
    match group.ffn:
        case DenseFFN(linears=linears) | ExpertFFN(shared=linears) if linears:
            inner, count = linears[-1].inputs / np.minimum(layout.tp, linears[-1].shards), len(linears)
        case _:
            inner, count = np.zeros(np.shape(layout.tp)), 0
    return forward_bytes(tokens, inner, model.hidden, count)


def _expert_buffers(model: ModelSpec, group: LayerGroup, layout: Layout, tokens: float) -> Column:
    """Work buffers of a layer's routed experts; MXFP4 kernels have none of their own (logs of gpt-oss)."""
    if not isinstance(group.ffn, ExpertFFN) or model.experts_precision == "mxfp4":
        return np.zeros(np.shape(layout.tp))
    down = group.ffn.expert[-1]
    taken = min(tokens, MOST_EXPERT_TOKENS)
    return expert_buffer_bytes(taken, group.ffn.top_k, down.inputs / layout.expert_tp, down.outputs)


def _other_buffers(engine: Engine, model: ModelSpec, run: Profiled) -> Column:
    """Buffers of sparse attention and of images of any size."""
    sparse = any(isinstance(group.attention, LatentAttention) and group.attention.index for group in model.groups)
    index = index_buffer_bytes(run.longest, engine.index_buffer_per_token if sparse else 0.0)
    return index + (engine.image_bytes if model.any_size_images else 0.0)
