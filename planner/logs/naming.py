"""What may be kept of what a tool says about the deployment: a model's public name and degrees, never a place."""

from __future__ import annotations

import re
from typing import Final

from planner.errors import InputError
from planner.logs.statements import Statement, Statements
from planner.specs.spelling import Value, read

_PART: Final = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,95}"
_MODEL: Final = re.compile(rf"{_PART}(?:/{_PART})?(?::[A-Za-z0-9._-]{{1,32}})?", re.ASCII)
_PLACE: Final = re.compile(r"^[/~.]|^[A-Za-z]:[\\/]|\\|/.*/")
_ADDRESS: Final = re.compile(r"://|@|\b\d{1,3}(?:\.\d{1,3}){3}\b|localhost|:\d{2,5}(?:/|$)")
_SECRET: Final = re.compile(r"^(?:sk-|hf_|nvapi-|ghp_|xox)|(?:sk-|hf_|nvapi-|ghp_)[A-Za-z0-9]{20}|[0-9a-fA-F]{32}")
_CACHED: Final = re.compile(r"models--([A-Za-z0-9._+-]{1,96}?)--([A-Za-z0-9._+-]{1,96})")

DEGREES: Final = {
    "tp": ("tp", "tp_size", "tensor_parallel_size", "server_info.tp_size"),
    "pp": ("pp", "pp_size", "pipeline_parallel_size", "server_info.pp_size"),
    "dp": ("dp", "dp_size", "data_parallel_size", "server_info.dp_size"),
    "ep": ("ep", "ep_size", "expert_parallel_size", "server_info.ep_size"),
}
ENGINES: Final = (
    (re.compile(r"sglang(?:-.*)?"), "sglang"),
    (re.compile(r"vllm(?:-chat)?"), "vllm"),
    (re.compile(r"tensorrt-?llm|trt-?(?:llm)?"), "trtllm"),
)
"""Back ends of the load generators that name an engine; `openai` names none."""


def model_name(text: str) -> str:
    """A model's name as it may be shown: of a path the last part; empty for what may be an address, a key or mark-up."""
    text = text.strip()
    if _ADDRESS.search(text) or len(text) > 512:
        return ""
    if _PLACE.search(text):
        text = _in_path(text)
    return text if _MODEL.fullmatch(text) and not _SECRET.search(text) else ""


def _in_path(text: str) -> str:
    if cached := _CACHED.search(text):
        return f"{cached[1]}/{cached[2]}"
    return re.split(r"[\\/]", text.rstrip("\\/"))[-1]


def degrees(said: Statements) -> tuple[tuple[str, Value], ...]:
    """Parallel degrees that a result states, as scenario values; values that no scenario allows are left out."""
    found = ((field, said.find(*names)) for field, names in DEGREES.items())
    return tuple((field, value) for field, row in found if row and (value := _degree(field, row)) is not None)


def engine_of(backend: str) -> tuple[tuple[str, Value], ...]:
    """The engine that a load generator's back end names, as a scenario value; nothing when it names a protocol."""
    name = backend.strip().lower()
    return tuple(("engine", engine) for pattern, engine in ENGINES if pattern.fullmatch(name))


def _degree(field: str, row: Statement) -> Value:
    try:
        return read(field, str(row.value).strip())
    except InputError:
        return None
