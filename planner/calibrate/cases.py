"""Served points as cases of a fit: what each pass of a row holds, worked out once, and what was measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.case_words import ENGINES, CaseError, Row, number
from planner.errors import HeadroomError
from planner.physics import forward
from planner.predict_serving import placed_at, planned
from planner.serving import decode, prefill
from planner.setting import Setting
from planner.specs.accelerator import Accelerator
from planner.work import Ledger


@dataclass(frozen=True)
class Clockwork:
    """Whose constants clock a case: one profile of the catalogue."""

    accelerator: Accelerator
    engine: str
    version: str | None


@dataclass(frozen=True)
class Case:
    """One served point.

    Attributes:
        row: index in the table. configuration: its `config_id`. pair: model family and accelerator family.
        clockwork: whose constants clock it. engine, gpu, family, source: as the table writes them, for reports.
        batch: sequences that run in the replica. held: those of one attention rank.
        alone, core, mixed, share: ledgers of the decode step's matrices, its cores and host, the matrices of a step
            that carries prompts too, and the attention of one prompt chunk.
        prompt: ledger of one pass of a lone prompt; passes: how many of them a prompt takes.
        together, chunks, osl, stretch: see `serving.decode`.
        tpot, ttft: measured [s]; rate: output tokens a second a GPU, measured; NaN where not stated.
        in_flight: requests in flight, of which `batch` run. gpus: of the replica.
    """

    row: int
    configuration: str
    pair: str
    clockwork: Clockwork
    setting: Setting
    batch: float
    held: float
    alone: Ledger
    core: Ledger
    mixed: Ledger
    share: Ledger
    prompt: Ledger
    passes: float
    together: float
    chunks: float
    osl: float
    stretch: float
    tpot: float
    ttft: float
    rate: float
    in_flight: float
    gpus: float


def eligible(row: Row) -> bool:
    """Whether a row may be fitted to: tier T1 of an engine of ours, with a measured TPOT and a configuration."""
    own = row.get("engine", "").strip().lower() in ENGINES
    return own and row.get("tier") == "T1" and number(row, "tpot_best_ms") is not None and bool(row.get("config_id"))


def cases(rows: Sequence[Row]) -> tuple[Case, ...]:
    """Every eligible row that can be predicted, as a case."""
    found = (case(index, row) for index, row in enumerate(rows) if eligible(row))
    return tuple(each for each in found if each is not None)


def case(index: int, row: Row) -> Case | None:
    """A row as a case; None when it cannot be predicted."""
    try:
        plans, setting, _ = planned(row)
    except (CaseError, HeadroomError):
        return None
    batch = np.full((1, 1), float(plans.batch[0]))
    clock = decode.clock(setting.decoding, placed_at(setting), together=False)
    step = decode.step_pass(clock, batch)
    work = setting.prompt
    together = decode.chunks_in_a_step(step.sequences, setting.decoding.osl, work.chunks)
    layout = clock.placed.layout
    return Case(
        row=index,
        configuration=row["config_id"],
        pair=f"{row.get('model_family', '')} on {family(row.get('gpu', ''))}",
        clockwork=Clockwork(setting.gpu, setting.scenario.engine, setting.engine_version),
        setting=setting,
        batch=float(batch[0, 0]),
        held=float(step.sequences[0, 0]),
        alone=forward.matrices(clock.placed, step),
        core=(*forward.decode_cores(clock.placed, step), forward.host(step.sequences)),
        mixed=forward.matrices(clock.placed, decode.mixed_pass(step, work, together)),
        share=clock.chunk,
        prompt=prefill.chunk_ledger(clock.placed, work),
        passes=_one(prefill.pipelined(work.chunks, layout.pp)),
        together=_one(together),
        chunks=work.chunks,
        osl=setting.decoding.osl,
        stretch=_one(decode.stage_stretch(setting.model.layers, layout.pp)),
        tpot=(number(row, "tpot_best_ms") or 0.0) / 1e3,
        ttft=(number(row, "ttft_mean_ms") or float("nan")) / 1e3,
        rate=number(row, "out_tps_per_gpu") or float("nan"),
        in_flight=max(number(row, "concurrency_eff", "concurrency") or 1.0, 1.0),
        gpus=float(plans.gpus_per_replica[0]),
    )


def family(gpu: str) -> str:
    """Accelerator family: the name as tables write it, without form factor and memory size."""
    return re.sub(r"-(SXM|PCIe|NVL|\d+G).*", "", gpu, flags=re.IGNORECASE)


ODD: Final = (
    ("S07", "", "time to first token of 4 s for 1,000 tokens, TPOT that falls with load: not a steady service"),
    ("S06", "GB200", "TPOT of 8 ms at one request and 42 ms at two, 14 ms at 448 requests of 15,000 tokens"),
)
"""Sources (and accelerators) that no steady service explains: predicted and scored, never fitted to. With the reason."""


def odd(row: Row) -> bool:
    """Whether a row is of a source that no steady service explains."""
    source, gpu = row.get("source_id", ""), row.get("gpu", "")
    return any(source.startswith(prefix) and gpu.startswith(part) for prefix, part, _ in ODD)


def _one(column: object) -> float:
    """The one number of a column."""
    return float(np.asarray(column, dtype=float).reshape(-1)[0])
