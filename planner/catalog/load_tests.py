"""How the load tests behind the measurements were run: `presets/measurements/load_tests.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import CatalogueError

FILE: Final = Path(__file__).resolve().parents[2] / "presets" / "measurements" / "load_tests.toml"

Mode: TypeAlias = Literal["closed", "burst"]
"""So many requests in flight, each replaced as it ends; or all at once."""

PER_CLIENT: Final = 10
"""Requests that each client sends where a source does not say."""


class _Record(BaseModel):
    """A table of the file: nothing unknown, never changed, with who says so and when."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sources: tuple[str, ...] = ()
    note: str = ""
    source: str = Field(default="", pattern=r"^(https://[^\s<>\"]+)?$")
    date: str = Field(default="", pattern=r"^(\d{4}(-\d{2}){0,2})?$")


class Harness(_Record):
    """How the client of a source sends requests.

    Attributes:
        per_client: requests of each client, at least `least` in all; requests: in all, whatever the clients (0 = not so).
        spread: lengths are uniform within this share of their mean.
    """

    mode: Mode = "closed"
    per_client: int = Field(default=PER_CLIENT, ge=1)
    least: int = Field(default=1, ge=1)
    requests: int = Field(default=0, ge=0)
    spread: float = Field(default=0.0, ge=0.0, le=1.0)


class Launch(_Record):
    """What an engine was told beside its defaults, and at which points.

    Attributes:
        engine: as tables name it; family, accelerator: how those names begin; tp_below, dp_from: only below this degree, only
            from this one on; longest: only prompts and outputs of at most so many tokens; clients_from: only from so many
            requests in flight on.
        tokens, isl, osl, clients: token budget of a step = tokens + isl · longest prompt + osl · longest output + clients ·
            requests in flight; 0 = the engine's own.
        wait_steps: decode steps for which new prompts are left waiting; wait_share: the share of the budget that ends it;
            wait_each: whether a prompt for every attention rank does. With neither only the steps do.
    """

    engine: str = ""
    family: str = ""
    accelerator: str = ""
    tp_below: int = 1_000_000
    dp_from: int = 1
    longest: int = 1_000_000
    clients_from: int = 0
    tokens: int = Field(default=0, ge=0)
    isl: float = Field(default=0.0, ge=0.0)
    osl: float = Field(default=0.0, ge=0.0)
    clients: float = Field(default=0.0, ge=0.0)
    wait_steps: int = Field(default=0, ge=0)
    wait_share: float = Field(default=0.0, ge=0.0, le=1.0)
    wait_each: bool = False


class _File(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    harness: tuple[Harness, ...]
    launch: tuple[Launch, ...]


@cache
def _file() -> _File:
    """The file, checked.

    Raises:
        CatalogueError: an entry does not say what it must.
    """
    try:
        return _File.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise CatalogueError(f"load_tests.toml: {error}") from error


def harness(source_id: str) -> Harness:
    """How a source's client sends requests; ten each, of equal lengths, where nothing is known."""
    return next((each for each in _file().harness if source_id in each.sources), Harness())


def launches(source_id: str) -> tuple[Launch, ...]:
    """What a source's engines were told, in the order in which the first that fits holds."""
    return tuple(each for each in _file().launch if source_id in each.sources)
