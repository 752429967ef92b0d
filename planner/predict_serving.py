"""Serving cases: one row of a table of served points to a predicted TPOT, TTFT and throughput."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.candidates import candidates
from planner.case_engines import Served, as_served, served_engine, slowed
from planner.case_words import (
    CaseError,
    Row,
    cache_precision,
    degree,
    model_of,
    number,
    positive,
    weight_precision,
    whole,
)
from planner.catalog.accelerators import find_accelerator
from planner.catalog.engines import engine
from planner.catalog.other_engines import packed_bits
from planner.errors import HeadroomError, InputError
from planner.evaluate import evaluate_setting
from planner.plan import Plans
from planner.rows import running_step
from planner.serving import decode, prefill
from planner.serving.baselines import request_seconds
from planner.serving.closed_loop import (
    admission_seconds,
    closed_loop_rate,
    first_token_seconds,
)
from planner.setting import Setting, assemble
from planner.specs.accelerator import Accelerator
from planner.specs.layout import Layout, layout
from planner.specs.model import ModelSpec
from planner.specs.scenario import Scenario
from planner.units import GIB

NO_PROMISE_MS = 3_600_000.0
"""A promise so loose that it never binds: cases state none."""

UNDRAFTED = ("", "off", "no", "none", "unknown", "unstated", "nan")
"""Words for no drafts, or for nothing known of any: then none are assumed."""

UNSTATED_VERSIONS = ("", "unstated", "see repo envs/")


@dataclass(frozen=True)
class ServingPrediction:
    """What is predicted of one served point; seconds as milliseconds, as the table's columns.

    `tpot_low_ms` to `tpot_high_ms` is the 80 % band of TPOT.
    """

    tpot_ms: float
    tpot_low_ms: float
    tpot_high_ms: float
    ttft_ms: float
    out_tps_per_gpu: float
    weights_gib: float
    kv_bytes_per_token: float
    fits: bool
    source: str


def predict_serving(row: Row, served: Served | None = None) -> ServingPrediction:
    """Predict one served point; measured columns are never read.

    Args:
        row: the point.
        served: the engine that serves it; None = the one that the row names.

    Raises:
        CaseError: when the row states too little, or something that is not modelled.
    """
    return _prediction(*planned(row, served), positive(row, "concurrency_eff", "concurrency") or 1.0)


def predicted_plan(row: Row) -> Plans | None:
    """The plan behind a prediction, its band included; None when the row cannot be predicted."""
    try:
        return planned(row)[0]
    except (CaseError, HeadroomError):
        return None


def planned(row: Row, served: Served | None = None) -> tuple[Plans, Setting, tuple[str, ...]]:
    """The plan of a row at the batch that really runs, and what was taken as default."""
    served = served or served_engine(row.get("engine", ""))
    setting, said = resolved(row, served)
    concurrency = positive(row, "concurrency_eff", "concurrency")
    if concurrency is None:
        raise CaseError("concurrency is not stated")
    plans = _at(setting, max(concurrency, 1.0))
    held = float(plans.b_max_kv_mean[0])
    running = min(max(concurrency, 1.0), max(held, 1.0))
    if running < concurrency:
        plans = _at(setting, running)
        said = (*said, f"the cache holds {held:.0f} of {concurrency:.0f} sequences")
    return slowed(plans, served.step_floor_ms(setting.model.layers)), setting, said


def resolved(row: Row, served: Served) -> tuple[Setting, tuple[str, ...]]:
    """What a row is to the planner, whatever the load, and what was taken as default.

    Raises:
        CaseError: when the row states too little, or something that is not modelled.
    """
    model = served.layout_model(model_of(row.get("model", "")), whole(row, "tp"))
    return _setting(row, model, _accelerator(row), served)


def _accelerator(row: Row) -> Accelerator:
    """The accelerator that a row names."""
    found = find_accelerator(row.get("gpu", ""))
    if found is None:
        raise CaseError(f"accelerator {row.get('gpu') or '(none)'} is not in the catalogue")
    return found


def _setting(row: Row, model: ModelSpec, gpu: Accelerator, served: Served) -> tuple[Setting, tuple[str, ...]]:
    """The scenario of a row, resolved, and which inputs were the engine's or checkpoint's defaults."""
    stated = row.get("weight_precision", "")
    bits = packed_bits(stated)
    weights, own = ("int4", False) if bits else weight_precision(stated, model, row.get("model", ""))
    kv, default_kv = cache_precision(row.get("kv_precision", ""), default_cache(served.id, gpu, weights))
    said = (
        *served.said,
        *([f"weights at {bits:g} bits"] if bits else []),
        *(["weights as the checkpoint's"] if own else []),
        *([f"{kv} cache by engine default"] if default_kv else []),
    )
    if row.get("disagg", "no") not in ("no", ""):
        raise CaseError("disaggregated: the columns state one layout, not those of both pools")
    if row.get("spec_decode", "") not in UNDRAFTED:
        raise CaseError("speculative decoding: draft tokens and their acceptance are not stated")
    version = row.get("engine_version", "")
    known = None if version in UNSTATED_VERSIONS else version
    scenario = _scenario(row, model, gpu, served, weights, kv)
    planned = assemble(scenario, model, gpu, engine(served.id, None, gpu), known)
    return as_served(planned, served, bits), said


def default_cache(served: str, gpu: Accelerator, weights: str) -> str:
    """Cache precision when a row states none: the model's own, except in TensorRT-LLM's quantised recipes.

    TensorRT-LLM's published FP8 and FP4 checkpoints carry FP8 cache scales; vLLM and SGLang keep the model's type.
    """
    quantised = weights in ("fp8", "fp8-block", "nvfp4", "mxfp4")
    return "fp8" if served == "trtllm" and quantised and "fp8" in gpu.peak else "bf16"


def _scenario(row: Row, model: ModelSpec, gpu: Accelerator, served: Served, weights: str, kv: str) -> Scenario:
    """A row as a scenario.

    Raises:
        CaseError: for lengths or degrees that no scenario admits.
    """
    if number(row, "isl") is None or number(row, "osl") is None:
        raise CaseError("isl or osl is not stated")
    try:
        return Scenario(
            model=model.id, gpu=gpu.id, engine=served.id, weights=weights, kv=kv,  # type: ignore[arg-type]
            tp=whole(row, "tp"), pp=degree(row, "pp"), dp=degree(row, "dp"), ep=degree(row, "ep"),
            isl=_prompt_length(row, served), osl=_length(row, "osl"),
            sla_ttft_ms=NO_PROMISE_MS, sla_tpot_ms=NO_PROMISE_MS, util=served.utilisation,
        )  # fmt: skip
    except InputError as error:
        raise CaseError(str(error)) from None


def _length(row: Row, name: str) -> int:
    """A mean length, rounded to whole tokens."""
    return max(1, round(positive(row, name) or 1.0))


def placed_at(setting: Setting) -> Layout:
    """The layout of a row's scenario."""
    asked = setting.scenario
    return layout(asked.tp, asked.pp, asked.dp, asked.ep)


def _prompt_length(row: Row, served: Served) -> int:
    """A mean prompt; benchmarks of other engines generate from an empty context, which holds the first token."""
    return 1 if served.other is not None and number(row, "isl") == 0 else _length(row, "isl")


def _at(setting: Setting, batch: float) -> Plans:
    """The plan of a row at a batch of the whole deployment."""
    at = candidates(placed_at(setting), np.full((1, 1), batch))
    plans = evaluate_setting(setting, at)
    reason = plans.reasons[int(plans.reason[0])]
    if not np.isfinite(plans.tpot_ms[0]):
        raise CaseError(reason or "a request of one output token has no TPOT")
    return plans


@dataclass(frozen=True)
class ClosedLoop:
    """What a load test with a fixed number of requests in flight sees: TTFT [s] and output tokens a second a replica."""

    ttft: float
    rate: float


def closed_loop(plans: Plans, setting: Setting, in_flight: float) -> ClosedLoop:
    """TTFT and throughput of a closed loop at the plan's batch, which is what runs of the requests in flight."""
    profile, clock = setting.profile, decode.clock(setting.decoding, placed_at(setting))
    prompt = prefill.prompt_seconds(clock.placed, profile, setting.prompt)
    tpot, running = plans.tpot_ms[:1] / 1e3, plans.batch[:1]
    held = decode.held_batch(clock, running[:, None])
    unloaded, step = plans.ttft_unloaded_ms[:1] / 1e3, running_step(setting, clock, tpot)
    first = first_token_seconds(unloaded, step, held, prompt, profile.closed_loop_wait)
    residence = request_seconds(first, tpot, float(setting.scenario.osl))
    waiting = admission_seconds(np.full(1, max(in_flight, 1.0)), running, residence)
    rate = closed_loop_rate(running, float(setting.scenario.osl), residence)
    return ClosedLoop(float(np.ravel(first + waiting)[0]), float(np.ravel(rate)[0]))


def _prediction(plans: Plans, setting: Setting, said: tuple[str, ...], in_flight: float) -> ServingPrediction:
    """The row's predicted columns."""
    loop = closed_loop(plans, setting, in_flight)
    tag = "fitted" if setting.profile.borrowed_from is None else f"borrowed from {setting.profile.borrowed_from}"
    return ServingPrediction(
        tpot_ms=float(plans.tpot_ms[0]),
        tpot_low_ms=float(plans.tpot_low_ms[0]),
        tpot_high_ms=float(plans.tpot_high_ms[0]),
        ttft_ms=loop.ttft * 1e3,
        out_tps_per_gpu=loop.rate / float(plans.gpus_per_replica[0]),
        weights_gib=float(plans.weights_bytes[0]) / GIB,
        kv_bytes_per_token=float(plans.kv_bytes_per_token[0]),
        fits=bool(plans.fits[0]),
        source="; ".join(said if tag == "fitted" and said[:1] and said[0].startswith("borrowed") else (tag, *said)),
    )
