"""Models that are known and cannot be sized: which key of their configuration says what is not supported."""

from __future__ import annotations

from functools import cache

from pydantic import Field

from planner.catalog.hf_keys import REFUSED
from planner.catalog.profile_records import FOLDER, read
from planner.catalog.records import Record
from planner.errors import CatalogueError


class RefusedModel(Record):
    """Models of one structure.

    Attributes:
        stems: how their names start, in lower case, without the organisation.
        key: key of their configuration that is refused.
        source: where the configuration comes from.
    """

    stems: tuple[str, ...] = Field(min_length=1)
    key: str
    source: str = Field(min_length=1)


class RefusedModels(Record):
    """`presets/refused-models.toml`."""

    id: str
    date: str
    model: tuple[RefusedModel, ...]


def refusal(text: str) -> str | None:
    """Why a model of this name cannot be sized, by the key of its configuration; None for a name that is not known.

    Raises:
        CatalogueError: the preset is malformed.
    """
    name = "-".join(text.casefold()[:200].split()).rpartition("/")[2]
    found = (each.key for each in refused_models().model if name.startswith(each.stems))
    key = next(found, None)
    return None if key is None else f"{key}: {REFUSED[key]}"


@cache
def refused_models() -> RefusedModels:
    """All models that are known to be refused.

    Raises:
        CatalogueError: a key is not one that configurations are refused for.
    """
    known = read(FOLDER.parent / "refused-models.toml", RefusedModels)
    stray = [each.key for each in known.model if each.key not in REFUSED]
    if stray:
        raise CatalogueError(f"refused-models.toml: {stray[0]} is not a key that is refused")
    return known
