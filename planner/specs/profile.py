"""Law constants: how a speed profile turns work into seconds on one accelerator under one engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.specs.collective import Tag
from planner.specs.links import Links

Kind = Literal[
    "gemm", "experts", "attn_decode", "mla_decode", "attn_prefill", "mla_prefill", "state", "elementwise", "index"
]
"""Operator kinds that the law has constants for. Collectives have laws of their own."""


@dataclass(frozen=True)
class Law:
    """Constants of `seconds = floor + ((flops/(eff_flops·peak))^p + (bytes/(eff_bw·bandwidth))^p)^(1/p)`.

    Attributes:
        floor: time of a launch that does nothing [s].
        eff_bw, eff_flops: reachable fraction of the peaks below (above 1 only where an on-chip cache helps).
        p: sharpness of the corner; `inf` is the plain roofline.
        peak: FLOP/s that `eff_flops` was fitted against.
        bandwidth: B/s that `eff_bw` was fitted against.
        rise, rise_scale: decode attention's extra term `rise·(1 − exp(−t_mem/rise_scale))` [s]; 0 elsewhere.
        half_length: prefill attention reaches half of `eff_flops` at this prompt length [tokens]; 0 elsewhere.
        tag, source, rows, median_error: provenance of the fit.
        out_of_fold_error: median error on shapes that the fit had not seen; None = not known.
        note: what stands between this law and a timed kernel of the engine, precision and accelerator; empty = nothing.
    """

    floor: float
    eff_bw: float
    eff_flops: float
    p: float
    peak: float
    bandwidth: float
    rise: float = 0.0
    rise_scale: float = 1.0
    half_length: float = 0.0
    tag: Tag = "fitted"
    source: str = ""
    rows: int = 0
    median_error: float | None = None
    out_of_fold_error: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Profile:
    """All constants for one (profile, accelerator, engine), resolved; nothing is looked up later.

    Attributes:
        id: `measured`, `textbook`, `article` or `custom`.
        per_operator: apply the law operator by operator (`measured`) or once to the summed work of the pass (`textbook`).
        laws: by (kind, kernel precision); every kind has at least (kind, "bf16").
        links: collectives and expert exchange inside and across scale-up domains.
        host_step: host time a step [s]; host_sequence: host time per running sequence and step [s].
        phi: share of a prompt's prefill cost that lands on the steps of running sequences (the scheduler's).
        band: 80 % band of measured/predicted TPOT, as (low, high) factors.
        borrowed_from: accelerator whose kernels stand in; None = this accelerator's own.
        expert_layer_extra: extra time of each expert layer with block-FP8 weights in this engine version [s].
        expert_popularity: popularity of experts under real routing, standard deviation over mean (0 = uniform).
    """

    id: str
    per_operator: bool
    laws: dict[tuple[str, str], Law] = field(hash=False)
    links: Links
    host_step: float
    host_sequence: float
    phi: float
    band: tuple[float, float]
    borrowed_from: str | None = None
    notes: tuple[str, ...] = ()
    expert_layer_extra: float = 0.0
    expert_popularity: float = 0.0
    context_efficiency: float = 1.0
    """Share of linear scaling that context-parallel prefill reaches."""
    ttft_fixed: float = 0.0
    """Front-end time of a request before its prompt is computed [s]."""
    ttft_factor: float = 1.0
    """How much longer a lone prompt takes than its kernels."""
    ttft_ceiling: float = float("inf")
    """Prompt time up to which that factor was fitted; what comes beyond is not stretched [s]."""
    band_sure: float = 1.0
    """What measured over predicted TPOT stays below in four cases of five."""
    band_ttft: tuple[float, float] = (1.0, 1.0)
    """80 % band of measured over predicted TTFT with few requests in flight."""
    band_rate: tuple[float, float] = (1.0, 1.0)
    """80 % band of measured over predicted output tokens a second."""
    closed_loop_wait: float = 0.0
    """Share of the prompts of all requests in flight that one waits for in a closed loop (start-up burst, scheduler)."""
    scale: float = 1.0
    """Factor on every operator's and the host's time, from measurements of the same configuration (1 = none)."""

    def law(self, kind: str, precision: str) -> Law:
        """The law for an operator kind at a kernel precision, falling back to the kind's BF16 constants."""
        found = self.laws.get((kind, precision))
        return self.laws[(kind, "bf16")] if found is None else found


@dataclass(frozen=True)
class Conventions:
    """How a profile counts, beside how it clocks; see the last section of the contract for the textbook's.

    Attributes:
        causal: prefill attention skips the masked half (the textbook counts 4·S², all of it).
        head_all_tokens: the output head runs for every prompt token instead of the last one.
        nominal_bytes: weights take their nominal bytes, every weight in the named precision.
        marketing_memory: memory is the marketing figure instead of what the driver shows.
        utilisation: share of memory to use when the scenario names none; None = the engine's own.
        cache_utilisation: share of the cache pool that paging leaves usable.
        overheads: activations, graphs, runtime and block rounding are counted.
        index_key_bytes: bytes of one element of a sparse-index key, scales included.
    """

    causal: bool
    head_all_tokens: bool
    nominal_bytes: bool
    marketing_memory: bool
    utilisation: float | None
    cache_utilisation: float
    overheads: bool
    index_key_bytes: float


TEXTBOOK = Conventions(False, True, True, True, 1.0, 0.96, False, 2.0)
MEASURED = Conventions(True, False, False, False, None, 1.0, True, 132 / 128)


def conventions(profile_id: str) -> Conventions:
    """The counting conventions that go with a profile."""
    return TEXTBOOK if profile_id in ("textbook", "article") else MEASURED
