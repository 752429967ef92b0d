"""Prompts: how they are cut into steps, how long one takes, and TTFT."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.formula import formula
from planner.physics import forward, passes
from planner.physics.forward import Placed
from planner.physics.roofline import pass_seconds
from planner.specs.profile import Profile
from planner.work import ONE, ZERO, Column, Entry, Ledger, Work


@dataclass(frozen=True)
class Prompt:
    """One prompt as the engine reads it in.

    Attributes:
        tokens: tokens to compute, prefix hits left out [tokens].
        cached: tokens that the prefix cache serves [tokens].
        chunk: tokens of it in one step [tokens].
        chunks: steps it takes (may be fractional: the mean over prompts).
    """

    tokens: float
    cached: float
    chunk: float
    chunks: float


def prompt(isl: float, prefix: float, chunk: float, token_budget: float) -> Prompt:
    """Cut a prompt into steps.

    Args:
        isl: prompt length [tokens].
        prefix: share of it that the prefix cache serves; at least one token is always computed.
        chunk: tokens a step asked for (0 = the whole prompt).
        token_budget: most tokens that one engine step takes; inf = no limit.
    """
    cached = min(prefix * isl, isl - 1.0)
    tokens = isl - cached
    largest = min(token_budget, chunk) if chunk else token_budget
    size = min(tokens, largest)
    return Prompt(tokens, cached, size, tokens / size)


def prefill_share(placed: Placed, work: Prompt) -> Ledger:
    """Attention of one chunk: the prompt's whole attention, spread evenly over its chunks."""
    step = passes.prefill_pass(work.tokens * ONE, work.cached * ONE)
    return tuple(times(entry, ONE / work.chunks) for entry in forward.prefill_cores(placed, step))


def times(entry: Entry, factor: Column) -> Entry:
    """An entry with so many times the work in each launch."""
    w = entry.work
    return Entry(
        entry.name,
        entry.group,
        Work(
            w.kind,
            w.precision,
            w.flops * factor,
            w.hbm_bytes * factor,
            w.launches,
            w.link_bytes * factor,
            w.messages,
            w.length,
        ),
    )


def chunk_ledger(placed: Placed, work: Prompt, *, alone: bool = True) -> Ledger:
    """One step that reads one chunk of a prompt: of a lone one, or of one on every attention rank."""
    step = replace(passes.prefill_pass(work.chunk * ONE, ZERO, ONE / work.chunks), alone=alone)
    return (*forward.matrices(placed, step), *prefill_share(placed, work), forward.host(ZERO))


@formula("a pipeline works on several chunks at once: (chunks + pp − 1) stage times instead of chunks · pp", "1")
def pipelined(chunks: float, pp: Column) -> Column:
    """Passes that a prompt of so many chunks takes through a pipeline, in passes through all stages."""
    return (chunks + pp - 1.0) / pp  # [1]


@formula("Meta 2024 (arXiv:2411.01783): context parallelism reaches a share of linear scaling", "1")
def context_loss(cp: Column, efficiency: float) -> Column:
    """Factor on prefill time for what context parallelism falls short of dividing it."""
    return np.where(cp > 1.0, 1.0 / efficiency, 1.0)  # [1]


def prompt_seconds(placed: Placed, profile: Profile, work: Prompt, *, alone: bool = True) -> Column:
    """Time to read in a lone prompt on an idle replica, or one on each of its attention ranks at the same time [s]."""
    layout = placed.layout
    passes_taken = pipelined(work.chunks, layout.pp) * context_loss(layout.cp, profile.context_efficiency)
    return passes_taken * pass_seconds(chunk_ledger(placed, work, alone=alone), profile)


@formula("fit to public serving measurements of prompts up to 8,000 tokens; beyond, the excess is held", "s")
def unloaded_ttft(prompt_time: Column, fixed: float, factor: float, ceiling: float) -> Column:
    """Time to first token on an idle replica: front end, the prompt, and what first steps take beyond their kernels."""
    within = np.minimum(prompt_time, ceiling)  # [s]
    excess = (factor - 1.0) * within  # [s]
    return fixed + prompt_time + excess  # [s]


@formula("definition: an arriving request waits half a running step on average, before any queue", "s")
def ttft_seconds(unloaded: Column, step: Column) -> Column:
    """Time to first token before queues are modelled."""
    return unloaded + np.asarray(step) / 2.0  # [s]
