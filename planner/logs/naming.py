"""What may be kept of what a tool says about the deployment: a model's public name and degrees, never a place or a key."""

from __future__ import annotations

import re
from typing import Final

from planner.catalog.models import find_model
from planner.errors import InputError
from planner.logs.statements import Statement, Statements
from planner.specs.spelling import Value, read

_PART: Final = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_MODEL: Final = re.compile(rf"{_PART}(?:/{_PART})?", re.ASCII)
"""A name as public hubs give them: organisation/name, or the name alone."""
LONGEST: Final = 96
_PLACE: Final = re.compile(r"^[/~.]|^[A-Za-z]:[\\/]|\\|/.*/")
_ADDRESS: Final = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|localhost"
    r"|\.(?:corp|local|localdomain|internal|intranet|lan|home|svc|cluster|com|net|org|io|ai|dev|cloud|edu|gov)(?:[./]|$)"
    r"|^[^/.]+\.[^/.]+\.[^/]+/",
    re.IGNORECASE,
)
"""Addresses of hosts: numbers, endings of domains, and an organisation with two dots."""
_TOKENS: Final = (
    r"sk-|hf_|nvapi-|gh[opsur]_|github_pat_|glpat-|gsk_|xox[a-z]-|AKIA|ASIA|AIza|eyJ|npm_|pypi-|dckr_pat_|r8_|tgp_v1_"
)
_SECRET: Final = re.compile(
    rf"^(?:{_TOKENS})|[/._-](?:{_TOKENS})|(?:sk-|hf_|nvapi-|ghp_)[A-Za-z0-9]{{20}}|[A-Za-z0-9]{{32}}"
)
"""Beginnings of keys that services hand out, and anything as long as one without a break."""
_CACHED: Final = re.compile(r"models--([A-Za-z0-9._-]{1,96}?)--([A-Za-z0-9._-]{1,96})")

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
    """A model's name as it may be shown: as public hubs give them; of a path only what the catalogue knows; else empty."""
    text = text.strip()
    if len(text) > 512:
        return ""
    if _PLACE.search(text):
        text = _in_path(text)
        return text if _public(text) and find_model(text) is not None else ""
    return text if _public(text) else ""


def _public(text: str) -> bool:
    """Whether a text has the form of a public name, and none of an address or a key."""
    long = len(text) > LONGEST
    return not long and bool(_MODEL.fullmatch(text)) and not _ADDRESS.search(text) and not _SECRET.search(text)


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
