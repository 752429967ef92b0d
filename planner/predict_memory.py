"""Memory cases: one row of a table of engine start-ups to predicted weights, cache rate, pool and concurrency."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.candidates import refusals, rules
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
from planner.catalog.accelerators import find_accelerator, smallest_variant
from planner.catalog.engines import engine
from planner.physics import kv, memory
from planner.physics.profiling import Profiled, profiled_tokens
from planner.physics.weights import formats, weight_bytes
from planner.specs.accelerator import Accelerator
from planner.specs.engine import Engine
from planner.specs.layout import Layout, layout
from planner.specs.model import LatentAttention, ModelSpec
from planner.specs.precision import CACHE, FP32
from planner.specs.profile import MEASURED
from planner.work import Column

GIB = 2.0**30
BLOCK_WORDS = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm", "vllm-ascend": "vllm-ascend"}


@dataclass(frozen=True)
class MemoryPrediction:
    """What is predicted of one start-up, per device; None = the row states too little, `missing` says what."""

    weights_gib: float
    kv_bytes_per_token: float
    kv_gib: float | None
    kv_tokens: float | None
    max_concurrency: float | None
    fits: bool | None
    source: str
    missing: str


@dataclass(frozen=True)
class Shape:
    """Model, layout and precisions of a case: all that weights and cache rate need."""

    model: ModelSpec
    layout: Layout
    parts: tuple[kv.CacheComponent, ...]
    weights: float
    said: tuple[str, ...]


def predict_memory(row: Row) -> MemoryPrediction:
    """Predict one start-up; measured columns are never read.

    Raises:
        CaseError: when the row does not state model and TP, or names something that is not served.
    """
    shape = _shape(row)
    rules = _rules(row)
    held = kv.allocated(shape.parts, memory.allocation_rules(rules, rules.token_budget, MEASURED))
    token = float(kv.bytes_per_token(held, shape.layout.tp, shape.layout.pp)[0]) / degree(row, "dcp")
    total, share = _device_bytes(row), _share(row)
    if total is None or share is None:
        what = "accelerator memory" if total is None else "memory utilisation"
        source, missing = "; ".join(shape.said), f"{what} is not stated: no pool"
        return MemoryPrediction(shape.weights / GIB, token, None, None, None, None, source, missing)
    return _with_pool(row, shape, rules, total, share, token)


def _share(row: Row) -> float | None:
    """Memory share of a row.

    Raises:
        CaseError: when it is not a share.
    """
    share = number(row, "mem_util")
    if share is not None and not 0.0 < share <= 1.0:
        raise CaseError(f"mem_util = {share:g}: must be above 0 and at most 1")
    return share


def _shape(row: Row) -> Shape:
    """Model, layout, weights and cache components of a row."""
    name = row.get("model") or row.get("model_as_written", "")
    model = model_of(name)
    whole(row, "tp")
    tp, pp, dp = degree(row, "tp"), degree(row, "pp"), degree(row, "dp")
    at = _placed(row, tp, pp, dp)
    found = rules(model)
    broken = int(refusals(found, at)[0])
    if broken >= 0:
        raise CaseError(found[broken].reason)
    weights, own = (FP32.id, False) if _full(row) else weight_precision(row.get("weight_quant", ""), model, name)
    cache, default = cache_precision(row.get("kv_dtype", ""), _default_cache(row, model))
    stored = FP32 if cache == FP32.id else CACHE[cache]
    kinds = formats(model, weights, MEASURED)
    draft = row.get("spec_decode", "").lower()
    total = float(weight_bytes(model, kinds, at, 0.0, MEASURED, mtp="mtp" in draft)[0])
    parts = kv.cache_components(_with_drafter(model, draft), stored, MEASURED.index_key_bytes, mtp="mtp" in draft)
    said = (*(["weights as the checkpoint's"] if own else []), *([f"{cache} cache by default"] if default else []))
    return Shape(model, at, parts, total, said)


def _full(row: Row) -> bool:
    """Whether a row's weights are float32."""
    return row.get("weight_quant", "").lower() in ("fp32", "float32")


def _default_cache(row: Row, model: ModelSpec) -> str:
    """Cache precision when a row states none: the weights' 16 or 32 bits, or FP8 for sparse attention in SGLang."""
    if _full(row):
        return FP32.id
    sparse = any(isinstance(g.attention, LatentAttention) and g.attention.index for g in model.groups)
    return "fp8" if sparse and row.get("engine", "").startswith("sglang") else "bf16"


def _with_drafter(model: ModelSpec, draft: str) -> ModelSpec:
    """The model with an EAGLE drafter, which is one more layer of its first kind; others as they are."""
    if "eagle" not in draft:
        return model
    first = replace(model.groups[0], count=model.groups[0].count + 1)
    return replace(model, groups=(first, *model.groups[1:]))


def _placed(row: Row, tp: int, pp: int, dp: int) -> Layout:
    """The layout of a row. SGLang's tp counts all devices: attention runs data parallel inside it."""
    inside = row.get("engine", "").startswith("sglang") and dp > 1
    attention_tp = max(1, tp // dp) if inside else tp
    experts = degree(row, "ep")
    whole_stage = attention_tp * dp
    return layout(tp=attention_tp, pp=pp, dp=dp, ep=experts if whole_stage % experts == 0 else 1)


def _rules(row: Row) -> Engine:
    """Memory rules of the engine and version that a row names; forks follow their parent's."""
    name = row.get("engine", "").lower().split(" ")[0]
    served = BLOCK_WORDS.get(name)
    if served is None:
        raise CaseError(f"engine {row.get('engine') or '(none)'} is not served")
    device = _device(row)
    version = row.get("engine_version", "")
    return engine(served, version if any(c.isdigit() for c in version) else None, device)


def _device(row: Row) -> Accelerator | None:
    """The accelerator that a row names; the one of least memory where the name leaves it open."""
    name = row.get("gpu", "")
    return find_accelerator(name, memory_only=True) or smallest_variant(name)


def _variant(row: Row) -> tuple[str, ...]:
    """What was taken where the name leaves the accelerator open and the memory follows from it."""
    sized = positive(row, "gpu_mem_gib_printed", "gpu_mem_gb_nominal") is not None
    name = row.get("gpu", "")
    found = None if sized or find_accelerator(name, memory_only=True) else smallest_variant(name)
    return () if found is None else (f"of all {name[:40]} the smallest, {found.name}",)


def _device_bytes(row: Row) -> float | None:
    """Device memory: as printed, else what the driver shows of the named accelerator, else the nominal size."""
    printed, nominal = positive(row, "gpu_mem_gib_printed"), positive(row, "gpu_mem_gb_nominal")
    if printed is not None:
        return printed * GIB
    found = find_accelerator(row.get("gpu", ""), memory_only=True)
    if found is None and nominal is not None:
        return nominal * GIB * 0.985
    device = _device(row)
    return None if device is None else device.engine_memory


def _with_pool(row: Row, shape: Shape, rules: Engine, total: float, share: float, token: float) -> MemoryPrediction:
    """The pool that a budget leaves, its tokens, and how many longest sequences it holds."""
    run = _profiled(row, shape, rules)
    eager = row.get("enforce_eager", "").lower() in ("true", "1", "1.0", "yes")
    weights = np.full(1, shape.weights)
    space = memory.workspace(rules, weights, shape.model, shape.layout, run, 0.0, MEASURED)
    space = replace(space, graphs=np.zeros(1)) if eager else space
    pool, slots = _split(shape, rules, memory.pool_bytes(rules, total, share, weights, space))
    block = whole(row, "block_size", rules.block_size)
    rule = replace(memory.allocation_rules(rules, run.tokens, MEASURED), block=block)
    longest = positive(row, "max_model_len")
    concurrency = None
    if longest is not None:
        own = _longest(shape, longest, degree(row, "dcp"), rule) - (0.0 if slots is None else _state(shape))
        concurrency = min(max(pool, 0.0) / own, np.inf if slots is None else slots)
    tokens = float(memory.tokens_held(np.full(1, pool), np.full(1, token), 1.0, block)[0]) if token > 0 else None
    fits = memory.starts(rules, total, share) and (pool > 0 if concurrency is None else concurrency >= 1.0)
    source = "; ".join((f"{rules.name} {rules.version}", *shape.said, *_variant(row)))
    return MemoryPrediction(shape.weights / GIB, token, max(pool, 0.0) / GIB, tokens, concurrency, fits, source, "")


def _state(shape: Shape) -> float:
    """Bytes of one sequence's recurrent states on the tightest rank."""
    return float(kv.state_bytes(shape.parts, shape.layout.tp, shape.layout.pp)[0])


def _split(shape: Shape, rules: Engine, pool: Column) -> tuple[float, float | None]:
    """The pool of keys and values, and how many sequences' states fit beside it; None where both share blocks."""
    state = np.full(1, _state(shape))
    if not memory.splits(rules, state):
        return float(pool[0]), None
    growing = memory.growing_pool(pool, rules.state_ratio)
    return float(growing[0]), float(memory.states_held(pool, growing, state, np.ones(1))[0])


def _profiled(row: Row, shape: Shape, rules: Engine) -> Profiled:
    """What the engine profiles at start, as far as the row says; the engine's and model's own for the rest."""
    longest = positive(row, "max_model_len") or float(shape.model.max_len or 0)
    tokens = profiled_tokens(rules, positive(row, "max_num_batched_tokens"), longest)
    return Profiled(positive(row, "max_num_seqs") or float(rules.max_num_seqs), tokens, longest)


def _longest(shape: Shape, tokens: float, cut: int, rule: kv.Allocation) -> float:
    """Cache bytes of one sequence of the longest length on the tightest rank."""
    at: Column = np.full(1, tokens)
    ways = np.full(1, float(cut))
    return float(kv.sequence_bytes(shape.parts, at, shape.layout.tp, shape.layout.pp, ways, rule)[0])
