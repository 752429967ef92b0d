"""How measurement tables spell engines, precisions and lengths, and what each spelling means here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.catalog.models import find_model
from planner.catalog.refused_models import refusal
from planner.specs.model import LatentAttention, ModelSpec

Row = Mapping[str, str]
"""One row of a case table as text; empty = not stated."""


class CaseError(Exception):
    """Why a row is not predicted; its text becomes `pred_error`."""


ENGINES: Final = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "trtllm",
    "trtllm": "trtllm",
    "vllm-ascend": "vllm-ascend",
}

WEIGHT_WORDS: Final = (
    (r"nvfp4|modelopt_fp4", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"w4a8|mxfp8|exl2|gguf|bitsandbytes|q[2-8]_|bpw|fp32|turbo", ""),
    (r"w4a16|awq|gptq|auto_round|autoround|int4|4-?bit", "int4"),
    (r"w8a8_fp8|fp8|e4m3", "fp8"),
    (r"w8a8|int8|smoothquant", "int8"),
    (r"bf16|bfloat16|fp16|float16|half", "bf16"),
)
"""First match wins; an empty meaning is a format that we do not serve."""

CACHE_WORDS: Final = (
    (r"fp8|e4m3|e5m2", "fp8"),
    (r"bf16|bfloat16|fp16|float16|half", "bf16"),
    (r"int8", "int8"),
)


@dataclass(frozen=True)
class Words:
    """Precisions of a case, as scenario values, and what was taken as the engine's or checkpoint's default."""

    weights: str
    kv: str
    defaults: tuple[str, ...]


def number(row: Row, *names: str) -> float | None:
    """The first of several columns that holds a finite number."""
    for name in names:
        try:
            value = float(row.get(name, ""))
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    return None


def whole(row: Row, name: str, default: int | None = None) -> int:
    """A whole number of at least one.

    Raises:
        CaseError: when it is not stated and there is no default, or is not a whole number ≥ 1.
    """
    value = number(row, name)
    if value is None:
        if default is None:
            raise CaseError(f"{name} is not stated")
        return default
    if value < 1 or value != int(value):
        raise CaseError(f"{name} = {value:g}: must be a whole number of at least 1")
    return int(value)


LARGEST = 1e12
"""Above this no length, count or amount of a case is meant."""


def positive(row: Row, *names: str) -> float | None:
    """The first of several columns that is stated; None when none is.

    Raises:
        CaseError: when it is not above zero, or larger than anything that could be meant.
    """
    value = number(row, *names)
    if value is not None and not 0.0 < value <= LARGEST:
        raise CaseError(f"{names[0]} = {value:g}: must be above 0 and at most {LARGEST:g}")
    return value


def model_of(text: str) -> ModelSpec:
    """The model that a table names.

    Raises:
        CaseError: not in the catalogue; where its structure is known and not supported, with the key that says so.
    """
    found = find_model(text)
    if found is None:
        why = refusal(text)
        raise CaseError(
            f"model {text or '(none)'} {'is not in the catalogue' if why is None else f'is not supported: {why}'}"
        )
    return found


def degree(row: Row, name: str) -> int:
    """A degree of parallelism; not stated or 0 means that the technique is off."""
    value = number(row, name)
    return 1 if value is None or value == 0 else whole(row, name)


def engine_id(text: str) -> str:
    """The engine that a table names.

    Raises:
        CaseError: for an engine that we do not serve, forks and other platforms of it included.
    """
    found = ENGINES.get(text.strip().lower())
    if found is None:
        raise CaseError(f"engine {text or '(none)'} is not served (vLLM, SGLang, TensorRT-LLM, vLLM-Ascend)")
    return found


def weight_precision(text: str, model: ModelSpec, name: str) -> tuple[str, bool]:
    """Weight precision of a case and whether it is the checkpoint's default.

    A stated word decides; then a word in the checkpoint's name; then the checkpoint's own format.

    Raises:
        CaseError: for a format that we do not serve.
    """
    stated = _match(WEIGHT_WORDS, text) if text else None
    named = stated if stated is not None else _match(WEIGHT_WORDS, name)
    if named == "" or (text and named is None and not text.startswith("compressed")):
        raise CaseError(f"weight format {text or name} is not served")
    if named == "fp8" and blockwise(model, name):
        return "fp8-block", not text
    if named is not None:
        return named, not text
    return model.experts_precision or model.precision, True


def blockwise(model: ModelSpec, name: str) -> bool:
    """Whether a model's published FP8 checkpoint is scaled in 128 × 128 blocks."""
    qwen = re.search(r"qwen3", name.lower()) is not None
    return model.precision == "fp8-block" or (qwen and "redhat" not in name.lower())


def cache_precision(text: str, default: str) -> tuple[str, bool]:
    """Cache precision of a case and whether it is the engine's default.

    Raises:
        CaseError: for a format that we do not serve.
    """
    if not text or text.lower() in ("auto", "unstated"):
        return default, True
    found = _match(CACHE_WORDS, text)
    if found is None or "turbo" in text.lower() or text.lower().startswith("q"):
        raise CaseError(f"cache format {text} is not served")
    return found, False


def _match(words: tuple[tuple[str, str], ...], text: str) -> str | None:
    """Meaning of the first pattern found in a text."""
    lower = text.lower()
    return next((meaning for pattern, meaning in words if re.search(pattern, lower)), None)


def latent(model: ModelSpec) -> bool:
    """Whether a model caches a latent (MLA)."""
    return any(isinstance(group.attention, LatentAttention) for group in model.groups)
