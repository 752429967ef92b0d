"""The models that we know: `presets/models/*.toml`, read once.

A preset keeps the fields of its `config.json` under `[config]`; its size is worked out from them by `hf_config`, never
typed in. What the preset says beside them (`precision`, for example) must agree with what was worked out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, Field

from planner.catalog.hf_config import model_from_config
from planner.errors import CatalogueError, ModelConfigError
from planner.specs.model import ModelSpec

FOLDER = Path(__file__).parents[2] / "presets" / "models"

PRECISION_SUFFIX = re.compile(
    r"-(?:bf16|fp16|fp8(?:-dynamic|-block|-static(?:-pertensor)?)?|nvfp4(?:-mtp)?|mxfp4|int4|int8|w8a8|w4a16"
    r"|awq(?:-4bit|-int4)?|gptq(?:-int4|-int8)?|autoround-int4|bnb-4bit|quantized\.(?:w8a8|w4a16|w8a16))$"
)
"""Endings that name how a checkpoint is stored, not which model it is."""


class ModelRecord(BaseModel):
    """One file of `presets/models`: what it says beside its configuration.

    `vision_params` and `vision_kind` are stated only where the configuration does not tell the towers' size and family,
    `table_params` where positions are stretched eightfold (Gemma 3);
    `nominal_params` only for teaching models.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str
    name: str = Field(min_length=1)
    hf_id: str
    aliases: list[str]
    precision: str
    experts_precision: str | None = None
    nominal_params: int | None = Field(default=None, gt=0)
    vision_params: int | None = Field(default=None, gt=0)
    vision_kind: str = ""
    table_params: int = Field(default=0, ge=0)
    confidence: str = Field(pattern="^(high|medium|low|teaching|recalled, unsourced)$")
    source: list[str] = Field(min_length=1)
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    published_total_b: float | None = Field(default=None, gt=0)
    published: str = ""
    notes: list[str]
    config: dict[str, object]


@dataclass(frozen=True)
class Preset:
    """A model and what its file says beside its configuration.

    Attributes:
        model: the model.
        aliases: other names that public tables use for it.
        sources: where its configuration comes from.
        published_total_b: parameters in billions as its vendor states them, if it does.
        published: that statement in words.
    """

    model: ModelSpec
    aliases: tuple[str, ...]
    sources: tuple[str, ...]
    published_total_b: float | None
    published: str


def model_ids() -> tuple[str, ...]:
    """Ids of all models, sorted."""
    return tuple(presets())


def model(id: str) -> ModelSpec:
    """The model of this id.

    Raises:
        CatalogueError: no such id; names the nearest ones.
    """
    return preset(id).model


def preset(id: str) -> Preset:
    """The model of this id with its aliases and published figures.

    Raises:
        CatalogueError: no such id; names the nearest ones.
    """
    known = presets()
    if id not in known:
        near = get_close_matches(id.lower()[:80], known, n=3, cutoff=0.5)
        hint = f"; near matches: {', '.join(near)}" if near else ""
        raise CatalogueError(f"model {id[:80]!r} is not in the catalogue of {len(known)} models{hint}")
    return known[id]


def find_model(text: str) -> ModelSpec | None:
    """The model that a Hugging Face id or a name in a table means, or `None`.

    Case, the organisation and an ending that only names a storage format are ignored; anything else must match a
    preset's id, `hf_id` or one of its aliases. The storage format itself is not read from the name.
    """
    name = "-".join(text.lower()[:200].split())
    while name:
        for candidate in (name, name.rpartition("/")[2]):
            if candidate in _names():
                return presets()[_names()[candidate]].model
        shorter = PRECISION_SUFFIX.sub("", name)
        name = shorter if shorter != name else ""
    return None


@cache
def presets() -> Mapping[str, Preset]:
    """Every preset by id, sorted.

    Raises:
        CatalogueError: a file is malformed, or two presets claim one name.
    """
    return MappingProxyType(
        {path.stem: _read(path) for path in sorted(FOLDER.glob("*.toml"), key=lambda path: path.stem)}
    )


@cache
def _names() -> Mapping[str, str]:
    """Lower-case name → id."""
    names: dict[str, str] = {}
    for key, entry in presets().items():
        for name in {key, entry.model.hf_id.lower(), *(alias.lower() for alias in entry.aliases)} - {""}:
            if names.setdefault(name, key) != key:
                raise CatalogueError(f"presets {names[name]} and {key} both claim the name {name}")
    return MappingProxyType(names)


def _read(path: Path) -> Preset:
    try:
        record = ModelRecord.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        return Preset(
            model=_build(path.stem, record),
            aliases=tuple(record.aliases),
            sources=tuple(record.source),
            published_total_b=record.published_total_b,
            published=record.published,
        )
    except (OSError, ValueError, ModelConfigError) as fault:
        raise CatalogueError(f"presets/models/{path.name}: {fault}") from None


def _build(stem: str, record: ModelRecord) -> ModelSpec:
    """The model of a record; what the record says of its precision must agree with its configuration."""
    if record.id != stem:
        raise ValueError(f"states id {record.id}, which is not its file's name")
    source = "; ".join(record.source)
    spec = model_from_config(record.config, id=record.id, name=record.name, source=source, hf_id=record.hf_id)
    found = spec.precision, spec.experts_precision
    if found != (record.precision, record.experts_precision):
        raise ValueError(f"states precision {record.precision}, its configuration says {found}")
    return replace(
        spec,
        date=record.date,
        confidence=record.confidence,
        nominal_params=record.nominal_params,
        vision_params=record.vision_params or spec.vision_params,
        vision_kind=record.vision_kind or spec.vision_kind,
        table_params=record.table_params,
        notes=tuple(record.notes) + spec.notes,
    )
