"""The few constants of serving that are fitted, where each starts, and how far it is believed to lie from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.fitted_constants import with_values
from planner.catalog.profile_records import LawFactor, Serving

Floats = NDArray[np.float64]

WIDTHS: Final = {
    "gemm_floor": 0.6,
    "experts_floor_factor": 0.6,
    "decode_attention_floor_factor": 0.6,
    "all_reduce_floor_factor": 0.6,
    "elementwise_floor": 0.6,
    "state_floor": 0.6,
    "gemm_eff_bw_factor": 0.2,
    "experts_eff_bw_factor": 0.2,
    "attention_eff_bw_factor": 0.2,
    "gemm_eff_flops_factor": 0.25,
    "experts_eff_flops_factor": 0.25,
    "prefill_attention_eff_flops_factor": 0.25,
    "host_step": 1.0,
    "host_sequence": 1.0,
    "phi": 0.5,
}
"""Constants that all engines share -> width of the belief around the start, in logarithms."""

ENGINE_WIDTHS: Final = {
    "gemm_floor": 0.35,
    "experts_floor_factor": 0.35,
    "decode_attention_floor_factor": 0.35,
    "all_reduce_floor_factor": 0.35,
    "host_step": 0.7,
}
"""Constants that differ by engine -> width of the engines' factors around 1."""

ENGINES: Final = ("trtllm", "vllm", "sglang")
LAW_WIDTH: Final = 0.5
"""Width of a single kernel's factor around 1."""

ERA_WIDTHS: Final = {"host_sequence": 1.0, "expert_layer": 0.6}
BORROWER_WIDTH: Final = 0.5


@dataclass(frozen=True)
class LawKey:
    """One kernel that served points reach, and how many of their configurations and pairs do."""

    accelerator: str
    engine: str
    kind: str
    precision: str
    configurations: int
    pairs: int


@dataclass(frozen=True)
class Parameter:
    """One fitted number: what it replaces, its unit, where it starts, and the width of the belief around it (in logs)."""

    name: str
    unit: str
    start: float
    width: float
    law: LawKey | None = None


def parameters(start: Serving, laws: Sequence[LawKey]) -> tuple[Parameter, ...]:
    """Every number that the fit may move."""
    return (*_shared(start), *_by_engine(start), *_eras(start), *_borrowers(start), *map(_law, laws))


def _shared(start: Serving) -> Iterator[Parameter]:
    """Constants of all engines."""
    for name, width in WIDTHS.items():
        yield Parameter(name, start.constant[name].unit, start.constant[name].value, width)


def _by_engine(start: Serving) -> Iterator[Parameter]:
    """Factors of single engines; the share of prefill that decoders feel differs for SGLang alone."""
    for name, width in ENGINE_WIDTHS.items():
        for engine in ENGINES:
            yield Parameter(f"{name}.{engine}", "1", start.constant[name].engine_factor.get(engine, 1.0), width)
    yield Parameter("phi.sglang", "1", start.constant["phi"].engine_factor["sglang"], WIDTHS["phi"])


def _eras(start: Serving) -> Iterator[Parameter]:
    """Costs of single engine versions."""
    for era in start.era:
        name = f"era.{era.engine}.{era.from_version}"
        yield Parameter(f"{name}.host_sequence", "us", era.host_sequence_us, ERA_WIDTHS["host_sequence"])
        for extra in era.expert_layer_extra:
            where = f"{name}.expert_layer.{extra.accelerators[0]}"
            yield Parameter(where, "us", extra.value_us, ERA_WIDTHS["expert_layer"])


def _borrowers(start: Serving) -> Iterator[Parameter]:
    """Bandwidth of accelerators without kernel tables, where points of their own say something."""
    for each in start.borrower:
        if each.tag == "fitted":
            yield Parameter(f"borrower.{each.accelerators[0]}", "1", each.eff_bw_factor, BORROWER_WIDTH)


def _law(key: LawKey) -> Parameter:
    """The factor of one kernel."""
    return Parameter(f"law.{key.accelerator}.{key.engine}.{key.kind}.{key.precision}", "1", 1.0, LAW_WIDTH, key)


def served_with(start: Serving, known: Sequence[Parameter], theta: Floats) -> Serving:
    """The serving constants at a point of the fit; `theta` is the logarithm of each number over its start."""
    values = [each.start * float(np.exp(move)) for each, move in zip(known, theta, strict=True)]
    shared = ((each.name, value) for each, value in zip(known, values, strict=True) if each.law is None)
    return with_values(start, shared, tuple(law_factors(known, theta)))


def law_factors(known: Sequence[Parameter], theta: Floats) -> Iterator[LawFactor]:
    """The factors of single kernels at a point of the fit, as records."""
    for each, move in zip(known, theta, strict=True):
        if each.law is not None:
            key = each.law
            yield LawFactor(
                accelerator=key.accelerator, engine=key.engine, kind=key.kind, precision=key.precision,
                factor=float(np.exp(move)), configurations=key.configurations, pairs=key.pairs,
            )  # fmt: skip
