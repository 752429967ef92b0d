"""Sample traces from `presets/traces`: one of each format, synthetic, to try a format or a page with."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import CatalogueError, Fault, InputError
from planner.simulate.traces import Trace, read_trace
from planner.specs.fields import near, shown

FOLDER: Final = Path(__file__).resolve().parents[2] / "presets" / "traces"


@dataclass(frozen=True)
class Sample:
    """A sample trace.

    Attributes:
        id, title: how it is asked for and what a menu shows.
        format: id of its format.
        date: day on which it was made.
        source: where its numbers come from.
        file: its file in the folder.
    """

    id: str
    title: str
    format: str
    date: str
    source: str
    file: str


class _Record(BaseModel):
    """One entry of the index."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    title: str = Field(min_length=1)
    format: str = Field(min_length=1)
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    source: str = Field(min_length=1)
    file: str = Field(pattern=r"^[a-z0-9-]+\.(csv|jsonl)$")


class _Index(BaseModel):
    """The index of the folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sample: list[_Record]


@cache
def samples() -> tuple[Sample, ...]:
    """All sample traces in the order in which a menu shows them.

    Raises:
        CatalogueError: when the index is malformed.
    """
    try:
        index = _Index.model_validate(tomllib.loads((FOLDER / "index.toml").read_text(encoding="utf-8")))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"presets/traces/index.toml: {error}") from error
    return tuple(Sample(**record.model_dump()) for record in index.sample)


def sample_bytes(id: str) -> bytes:
    """What stands in a sample trace, for a download.

    Raises:
        InputError: when no sample has this id.
    """
    return (FOLDER / _sample(id).file).read_bytes()


@cache
def read_sample(id: str) -> Trace:
    """A sample trace.

    Raises:
        InputError: when no sample has this id.
    """
    return read_trace(sample_bytes(id), _sample(id).file)


def _sample(id: str) -> Sample:
    """The sample with this id; a path is never made of what comes from outside."""
    known = {sample.id: sample for sample in samples()}
    if id not in known:
        allowed = f"no sample trace is called this{near(id, known)}; known are {', '.join(known)}"
        raise InputError((Fault("sample", shown(id), allowed),))
    return known[id]
