"""Named scenarios from `presets/scenarios`: the articles' examples, their real twins, and places to start from."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.catalog.ids import unknown_id
from planner.errors import CatalogueError, Fault, InputError
from planner.specs.fields import near, shown
from planner.specs.scenario import Scenario

FOLDER: Final = Path(__file__).resolve().parents[2] / "presets" / "scenarios"


@dataclass(frozen=True)
class Preset:
    """A named scenario.

    Attributes:
        story: one sentence: what it shows.
        source, date: where the numbers come from.
        real: id of the same scenario on the real model in the measured profile; None when it is one itself.
    """

    id: str
    title: str
    story: str
    scenario: Scenario
    source: str
    date: str
    real: str | None = None


class _Record(BaseModel):
    """One file of the folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str = Field(min_length=1)
    title: str = Field(min_length=1)
    story: str = Field(min_length=1)
    source: str = Field(min_length=1)
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    order: int
    real: str | None = None
    scenario: dict[str, str | int | float]


def preset_ids() -> tuple[str, ...]:
    """Ids of all presets in the order in which a menu shows them."""
    return tuple(_presets())


def presets() -> tuple[Preset, ...]:
    """All presets in the order in which a menu shows them."""
    return tuple(_presets().values())


def preset(id: str) -> Preset:
    """One preset.

    Raises:
        InputError: when no preset has this id.
    """
    found = _presets()
    if id not in found:
        allowed = f"no preset is called this{near(id, found)}; known are {', '.join(found)}"
        raise InputError((Fault("preset", shown(id), allowed),))
    return found[id]


def load_preset(id: str) -> Scenario:
    """The scenario of a preset.

    Raises:
        InputError: when no preset has this id.
    """
    return preset(id).scenario


@cache
def _presets() -> dict[str, Preset]:
    records = sorted((_record(path) for path in FOLDER.glob("*.toml")), key=lambda record: record.order)
    found = {record.id: _preset(record) for record in records}
    lost = [record.id for record in records if record.real is not None and record.real not in found]
    if lost:
        raise CatalogueError(f"presets/scenarios: `real` of {', '.join(lost)} names no preset")
    return found


def _record(path: Path) -> _Record:
    try:
        record = _Record.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"presets/scenarios/{path.name}: {error}") from error
    if record.id != path.stem:
        raise CatalogueError(f"presets/scenarios/{path.name}: id = {record.id} is not the file's name")
    return record


def _preset(record: _Record) -> Preset:
    try:
        scenario = Scenario.model_validate(record.scenario)
    except InputError as error:
        raise CatalogueError(f"presets/scenarios/{record.id}.toml: {error}") from error
    unknown = [fault for field, value in scenario if (fault := unknown_id(field, value))]
    if unknown:
        raise CatalogueError(f"presets/scenarios/{record.id}.toml: {InputError(tuple(unknown))}")
    return Preset(record.id, record.title, record.story, scenario, record.source, record.date, record.real)
