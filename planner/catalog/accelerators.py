"""Accelerators of the catalogue, read from `presets/accelerators` and converted to SI at this door."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.errors import CatalogueError
from planner.specs.accelerator import Accelerator
from planner.units import GIB

PRESETS = Path(__file__).resolve().parents[2] / "presets"

GIGA, TERA, MIB = 1e9, 1e12, 2.0**20

PEAKS = {
    "bf16": "bf16_dense_tflops",
    "fp16": "fp16_dense_tflops",
    "fp8": "fp8_dense_tflops",
    "int8": "int8_dense_tops",
    "fp4": "fp4_dense_tflops",
}
"""Precision -> preset key of its dense peak."""


class AcceleratorRecord(BaseModel):
    """One file of `presets/accelerators`: the unit is in the key, absent means unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    name: str
    vendor: str
    unit: str
    dies: int = Field(default=1, ge=1)
    source: str = Field(min_length=1)
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    confidence: str = Field(pattern="^(high|medium|low)$")
    borrows: str | None = None
    aliases: tuple[str, ...] = ()
    memory_aliases: tuple[str, ...] = ()
    scale_up_name: str
    memory_gb: float | None = Field(default=None, gt=0)
    memory_gib: float | None = Field(default=None, gt=0)
    visible_mib: float | None = Field(default=None, gt=0)
    visible_gib: float | None = Field(default=None, gt=0)
    framework_gib: float | None = Field(default=None, gt=0)
    hbm_tb_per_s: float = Field(gt=0)
    bf16_dense_tflops: float | None = Field(default=None, gt=0)
    fp16_dense_tflops: float | None = Field(default=None, gt=0)
    fp8_dense_tflops: float | None = Field(default=None, gt=0)
    int8_dense_tops: float | None = Field(default=None, gt=0)
    fp4_dense_tflops: float | None = Field(default=None, gt=0)
    scale_up_gb_per_s_per_direction: float | None = Field(default=None, gt=0)
    scale_up_domain: int | None = Field(default=None, ge=1)
    scale_out_gb_per_s_per_direction: float | None = Field(default=None, gt=0)
    tdp_w: float | None = Field(default=None, gt=0)
    release_year: int | None = None
    notes: tuple[str, ...] = ()
    sources: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_unit_each(self) -> Self:
        """Memory is written once, in one unit; every source belongs to a number that is there."""
        if (self.memory_gb is None) == (self.memory_gib is None):
            raise ValueError("state either memory_gb or memory_gib")
        if self.visible_mib is not None and self.visible_gib is not None:
            raise ValueError("state either visible_mib or visible_gib")
        stray = set(self.sources) - set(numbers(self))
        if stray:
            raise ValueError(f"sources without a number: {', '.join(sorted(stray))}")
        return self


def numbers(record: AcceleratorRecord) -> dict[str, float]:
    """Every number that the record states, by preset key (identity fields left out)."""
    values = record.model_dump(exclude={"dies"}, exclude_none=True)
    return {key: value for key, value in values.items() if isinstance(value, int | float)}


def si(value: float | None, unit: float) -> float | None:
    """A preset's figure in SI; unknown stays unknown."""
    return None if value is None else value * unit


def first(*values: float | None) -> float | None:
    """The first figure that is known."""
    return next((value for value in values if value is not None), None)


def read_record(path: Path) -> AcceleratorRecord:
    """One validated preset file.

    Raises:
        CatalogueError: malformed, or its id is not its file name.
    """
    try:
        record = AcceleratorRecord.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"accelerator preset {path.name}: {error}") from error
    if record.id != path.stem:
        raise CatalogueError(f"accelerator preset {path.name}: id = {record.id} is not the file name")
    return record


def from_record(record: AcceleratorRecord) -> Accelerator:
    """The accelerator in SI units, with a source for every number."""
    memory = first(si(record.memory_gb, GIGA), si(record.memory_gib, GIB))
    peaks = {precision: getattr(record, key) for precision, key in PEAKS.items()}
    return Accelerator(
        id=record.id,
        name=record.name,
        vendor=record.vendor,
        memory=0.0 if memory is None else memory,
        visible_memory=first(si(record.visible_mib, MIB), si(record.visible_gib, GIB)),
        bandwidth=record.hbm_tb_per_s * TERA,
        peak={precision: value * TERA for precision, value in peaks.items() if value is not None},
        scale_up_name=record.scale_up_name,
        scale_up_bandwidth=si(record.scale_up_gb_per_s_per_direction, GIGA),
        scale_up_domain=record.scale_up_domain,
        scale_out_bandwidth=si(record.scale_out_gb_per_s_per_direction, GIGA),
        tdp=record.tdp_w,
        unit=record.unit,
        release_year=record.release_year,
        sources={key: record.sources.get(key, record.source) for key in numbers(record)},
        date=record.date,
        confidence=record.confidence,
        notes=all_notes(record),
        borrows=record.borrows,
        framework_memory=si(record.framework_gib, GIB),
        dies=record.dies,
        aliases=record.aliases,
        memory_aliases=record.memory_aliases,
    )


def all_notes(record: AcceleratorRecord) -> tuple[str, ...]:
    """The record's notes, and a warning where the marketing figure stands in for the driver's."""
    unknown = record.visible_mib is None and record.visible_gib is None
    warning = ("Driver-visible memory is not known; the vendor's figure stands in.",) if unknown else ()
    return record.notes + warning


@cache
def accelerators() -> dict[str, Accelerator]:
    """Every accelerator by id, in order of id.

    Raises:
        CatalogueError: a preset is malformed, or one name means two accelerators.
    """
    files = sorted((PRESETS / "accelerators").glob("*.toml"), key=lambda path: path.stem)
    records = [read_record(path) for path in files]
    found = {record.id: from_record(record) for record in records}
    for accelerator in found.values():
        if accelerator.borrows is not None and accelerator.borrows not in found:
            raise CatalogueError(
                f"accelerator {accelerator.id}: borrows = {accelerator.borrows} is not in the catalogue"
            )
    return found


def accelerator_ids() -> tuple[str, ...]:
    """Ids of all accelerators, sorted."""
    return tuple(accelerators())


def accelerator(id: str) -> Accelerator:
    """The accelerator with this id.

    Raises:
        CatalogueError: unknown id; the message names near matches.
    """
    found = accelerators().get(id)
    if found is None:
        near = get_close_matches(id.lower(), accelerator_ids(), n=3, cutoff=0.5)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise CatalogueError(f"accelerator {id[:60]!r} is not in the catalogue{hint}")
    return found


def spelling(text: str) -> str:
    """A name without case, spaces, hyphens and underscores, so that `H100 SXM` and `h100-sxm` are one."""
    return "".join(letter for letter in text.casefold() if letter not in " -_")


@cache
def names(memory_only: bool) -> dict[str, str]:
    """Spelling -> accelerator id.

    Raises:
        CatalogueError: one name would mean two accelerators.
    """
    known: dict[str, str] = {}
    for item in accelerators().values():
        for name in (item.id, *item.aliases, *(item.memory_aliases if memory_only else ())):
            if known.setdefault(spelling(name), item.id) != item.id:
                raise CatalogueError(f"{name} names both {known[spelling(name)]} and {item.id}")
    return known


def find_accelerator(text: str, *, memory_only: bool = False) -> Accelerator | None:
    """The accelerator that a measurement table's name means; None when unknown or when it does not fix the form factor.

    Args:
        text: name as written, for example `H100-SXM`, `Ascend-910C(die)`.
        memory_only: also accept names that fix the memory but not the form factor (`H100 80GB`); never for speed.
    """
    found = names(memory_only).get(spelling(text))
    return None if found is None else accelerators()[found]


def smallest_variant(text: str) -> Accelerator | None:
    """The accelerator of least memory whose name a table's word begins (`Ascend 910B`: 910B1 to 910B4); None = none.

    For memory questions about a name that does not fix the variant: what fits the smallest fits them all.
    """
    word = spelling(text)
    if len(word) < SHORTEST_FAMILY:
        return None
    known = [accelerators()[key] for name, key in names(memory_only=True).items() if name.startswith(word)]
    return min(known, key=lambda item: (item.engine_memory, item.id), default=None)


SHORTEST_FAMILY = 4
"""Letters that a family's name has at least (`A100`); shorter words begin too much."""
