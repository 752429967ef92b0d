"""Engines that measurement tables name and no scenario does, and the packed weight formats that they read.

Such an engine is clocked as one of ours times a factor (`presets/profiles/other-engines.toml`, written by
`planner.calibrate.other_engines`). A packed format is known by the bits that it is published to take for each weight
(`weight-formats.toml`).
"""

from __future__ import annotations

import re
from functools import cache

from pydantic import Field

from planner.catalog.profile_records import FOLDER, read
from planner.catalog.records import Record
from planner.specs.collective import Tag

STATED_BITS = re.compile(r"^exl2-(\d{1,2}(?:\.\d{1,3})?)bpw$")
"""EXL2 writes the mean bits of a weight into the name of the format."""


class OtherEngine(Record):
    """How one other engine is clocked.

    Attributes:
        name: as it is spoken of; names: as tables write it, any case.
        like: id of the engine whose laws stand in.
        factor: measured over predicted under those laws, on every operator's and the host's time.
        layer_floor_us: what one layer of a step takes at least, however fast the accelerator [us]; 0 = nothing.
        utilisation: share of memory that it may use; absent = as the engine whose laws stand in.
        pads_heads: whether it pads heads and widths that TP does not divide, where ours refuse.
        tag: `fitted` to rows of this engine, or `borrowed` from `source`.
        configurations, pairs: how many configurations, and how many (model family, accelerator) pairs, were fitted.
        error: median over configurations of |predicted / measured - 1|, each pair predicted without its own rows;
            absent where a single pair was measured.
    """

    name: str
    names: tuple[str, ...] = Field(min_length=1)
    like: str
    factor: float = Field(gt=0)
    layer_floor_us: float = Field(default=0.0, ge=0)
    utilisation: float | None = Field(default=None, gt=0, le=1)
    pads_heads: bool = False
    tag: Tag
    configurations: int = Field(ge=0)
    pairs: int = Field(ge=0)
    error: float | None = Field(default=None, ge=0)
    source: str = Field(min_length=1)


class OtherEngines(Record):
    """`other-engines.toml`."""

    id: str
    date: str
    engine: tuple[OtherEngine, ...]


class PackedFormat(Record):
    """One packed format: the published mean bits of a weight, scales included."""

    name: str
    bits: float = Field(gt=0, le=16)
    source: str = Field(min_length=1)


class PackedFormats(Record):
    """`weight-formats.toml`."""

    id: str
    date: str
    format: tuple[PackedFormat, ...]


def other_engine(text: str) -> OtherEngine | None:
    """The engine that a table's name means, if it is one of the others."""
    return _by_name().get(text.strip().casefold())


def packed_bits(text: str) -> float | None:
    """Mean bits of a weight in a packed format; None for any other format, or one whose bits are not published."""
    name = text.strip().casefold()
    stated = STATED_BITS.match(name)
    if stated is not None:
        bits = float(stated[1])
        return bits if 1.0 <= bits <= 16.0 else None
    return _bits().get(name)


@cache
def other_engines() -> OtherEngines:
    """All other engines that are clocked."""
    return read(FOLDER / "other-engines.toml", OtherEngines)


@cache
def packed_formats() -> PackedFormats:
    """All packed formats whose bits are published."""
    return read(FOLDER / "weight-formats.toml", PackedFormats)


@cache
def _by_name() -> dict[str, OtherEngine]:
    return {name.casefold(): engine for engine in other_engines().engine for name in engine.names}


@cache
def _bits() -> dict[str, float]:
    return {known.name.casefold(): known.bits for known in packed_formats().format}
