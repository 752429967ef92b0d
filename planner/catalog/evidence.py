"""Why predictions are off where they are, and what other tools say of themselves: `presets/measurements/*.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import CatalogueError

FOLDER: Final = Path(__file__).resolve().parents[2] / "presets" / "measurements"

MetricName: TypeAlias = Literal["TPOT", "TTFT", "output tokens/s per GPU"]
"""What a prediction is held against, as validation calls it."""


class _Record(BaseModel):
    """A table of these files: complete, nothing unknown, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Sourced(_Record):
    """Who says so, and when."""

    source: str = Field(pattern=r"^https://[^\s<>\"]+$")
    date: str = Field(pattern=r"^\d{4}(-\d{2}){0,2}$")


class Where(_Record):
    """Which measured points are meant: every field that is stated must agree; names as the table spells them.

    Attributes:
        isl: mean input length [tokens]; `concurrency_from`: least concurrent requests of the deployment.
    """

    source_id: str = ""
    engine: str = ""
    version: str = ""
    accelerator: str = ""
    family: str = ""
    precision: str = ""
    isl: float | None = None
    concurrency_from: float = 0.0


class KnownError(_Sourced):
    """A group of points that is predicted badly, with the cause as far as it is known."""

    id: str = Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")
    title: str = Field(min_length=1)
    metrics: tuple[MetricName, ...] = Field(min_length=1)
    where: Where
    cause: str = Field(min_length=20)
    evidence: str = Field(min_length=20)


class Peer(_Sourced):
    """What another tool is off by.

    Attributes:
        kind: "compared" on points of our own table's sources, "published" by the tool itself, "reported" by somebody else.
    """

    tool: str = Field(min_length=1)
    claim: str = Field(min_length=1)
    metric: str = Field(min_length=1)
    conditions: str = Field(min_length=20)
    kind: Literal["compared", "published", "reported"]


class _Errors(_Record):
    error: tuple[KnownError, ...]


class _Peers(_Record):
    peer: tuple[Peer, ...]


@cache
def known_errors() -> tuple[KnownError, ...]:
    """Groups that are known to be predicted badly, in the order of the file.

    Raises:
        CatalogueError: an entry does not say what it must.
    """
    try:
        return _Errors.model_validate(_read("known_errors.toml")).error
    except ValidationError as error:
        raise CatalogueError(f"known_errors.toml: {error}") from error


@cache
def peers() -> tuple[Peer, ...]:
    """What other tools are off by, in the order of the file.

    Raises:
        CatalogueError: an entry does not say what it must.
    """
    try:
        return _Peers.model_validate(_read("peers.toml")).peer
    except ValidationError as error:
        raise CatalogueError(f"peers.toml: {error}") from error


def _read(name: str) -> object:
    """A file of the folder as it stands."""
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))
