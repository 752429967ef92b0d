"""What the files under `presets/profiles` must say, and the one place that reads them.

Records keep the units of their keys (`floor_us`, `peak_tflops`, `bandwidth_tb_per_s`); `as_law` and `as_collective`
convert to SI.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import CatalogueError
from planner.specs.collective import CollectiveLaw, Tag
from planner.specs.profile import Kind, Law

FOLDER = Path(__file__).resolve().parents[2] / "presets" / "profiles"

UNITS = {"us": 1e-6, "ms": 1e-3, "1": 1.0, "GB/s": 1e9}
"""Units of serving constants, in SI."""


class Record(BaseModel):
    """A table of a preset file: complete, nothing unknown, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed, which works out anew whatever the original had worked out from its own."""
        copied = super().model_copy(update=update, deep=deep)
        for name in set(copied.__dict__).difference(type(self).model_fields):
            del copied.__dict__[name]
        return copied


class LawRecord(Record):
    """Constants of one kernel of one engine, as timed alone."""

    engine: str
    kind: Kind
    precision: str
    math: str
    floor_us: float = Field(ge=0)
    eff_bw: float = Field(gt=0, le=1)
    eff_flops: float = Field(gt=0, le=1)
    p: float = Field(ge=1)
    peak_tflops: float = Field(gt=0)
    bandwidth_tb_per_s: float = Field(gt=0)
    rise_us: float = Field(default=0.0, ge=0)
    rise_scale_us: float = Field(default=1.0, gt=0)
    half_length_tokens: float = Field(default=0.0, ge=0)
    tag: Tag
    source: str
    rows: int = Field(ge=0)
    median_error: float = Field(ge=0)
    out_of_fold_error: float | None = Field(default=None, ge=0)
    note: str = ""

    def as_law(self) -> Law:
        """The same constants in SI."""
        return Law(
            floor=self.floor_us * 1e-6,
            eff_bw=self.eff_bw,
            eff_flops=self.eff_flops,
            p=self.p,
            peak=self.peak_tflops * 1e12,
            bandwidth=self.bandwidth_tb_per_s * 1e12,
            rise=self.rise_us * 1e-6,
            rise_scale=self.rise_scale_us * 1e-6,
            half_length=self.half_length_tokens,
            tag=self.tag,
            source=self.source,
            rows=self.rows,
            median_error=self.median_error,
            out_of_fold_error=self.out_of_fold_error,
            note=self.note,
        )


class CollectiveRecord(Record):
    """Constants of one collective of one engine by group size."""

    engine: str
    op: str
    devices: tuple[int, ...]
    alpha_us: tuple[float, ...]
    bus_gb_per_s: tuple[float, ...]
    link_gb_per_s: float = Field(gt=0)
    tag: Tag
    source: str
    rows: int
    median_error: float
    note: str = ""

    def as_collective(self) -> CollectiveLaw:
        """The same constants in SI."""
        alpha = tuple(us * 1e-6 for us in self.alpha_us)
        bus = tuple(gb * 1e9 for gb in self.bus_gb_per_s)
        return CollectiveLaw(self.devices, alpha, bus, self.tag, self.source, self.median_error)


class KernelTable(Record):
    """All kernel constants of one accelerator."""

    id: str
    accelerator: str
    licence: str
    date: str
    law: tuple[LawRecord, ...]
    collective: tuple[CollectiveRecord, ...]

    @cached_property
    def by_key(self) -> dict[tuple[str, str, str], LawRecord]:
        """Laws by (engine, kind, precision)."""
        return {(record.engine, record.kind, record.precision): record for record in self.law}

    @cached_property
    def peaks(self) -> dict[str, float]:
        """Dense peaks that the fractions were fitted against, by precision [FLOP/s]."""
        return {record.math: record.peak_tflops * 1e12 for record in self.law}


class Constant(Record):
    """One serving constant: a value that an engine may scale or replace."""

    unit: str
    value: float
    range: tuple[float, float] | None = None
    engine_factor: dict[str, float] = {}
    by_engine: dict[str, float] = {}
    tag: Tag
    source: str

    def of(self, engine: str) -> float:
        """The constant under one engine, in SI."""
        return self.by_engine.get(engine, self.value * self.engine_factor.get(engine, 1.0)) * UNITS[self.unit]


class LayerExtra(Record):
    """Extra time of a block-FP8 expert layer on some accelerators."""

    accelerators: tuple[str, ...]
    value_us: float


class Era(Record):
    """What a range of versions of one engine adds."""

    engine: str
    from_version: str = Field(alias="from")
    below: str
    host_sequence_us: float
    host_sequence_range_us: tuple[float, float]
    date: str
    source: str
    note: str
    expert_layer_extra: tuple[LayerExtra, ...]


class OwnBand(Record):
    """80 % band of one engine on one accelerator."""

    engine: str
    accelerator: str
    low: float
    high: float


class Bands(Record):
    """80 % bands of measured over predicted TPOT."""

    low: float
    high: float
    borrowed_low: float
    borrowed_high: float
    wide_low: float
    wide_high: float
    borrowed_vendors: tuple[str, ...]
    date: str
    source: str
    own: tuple[OwnBand, ...]


class Borrower(Record):
    """What measurements of accelerators without kernel tables say about the lender's fractions."""

    accelerators: tuple[str, ...]
    like: str | None = None
    """Accelerator whose fitted factor these share; None = their own."""
    eff_bw_factor: float
    bus_factor: float
    tag: Tag
    date: str
    source: str


class LawFactor(Record):
    """What serving says about one kernel's time beside the constants that all kernels of its kind share."""

    accelerator: str
    engine: str
    kind: Kind
    precision: str
    factor: float = Field(gt=0)
    configurations: int = Field(ge=1)
    pairs: int = Field(ge=1)


class StandIn(Record):
    """Accelerator whose law serves one kind and precision that no table of the accelerator itself has."""

    kind: Kind
    precision: str
    accelerator: str


class PublishedLaw(Record):
    """A kernel whose reached shares its makers published, on accelerators of which no kernel table exists."""

    accelerators: tuple[str, ...]
    kind: Kind
    floor_us: float = Field(ge=0)
    eff_bw: float = Field(gt=0, le=1)
    eff_flops: float = Field(gt=0, le=1)
    p: float = Field(ge=1)
    date: str
    source: str
    note: str


class Pcie(Record):
    """Accelerator whose collectives stand in for those of PCIe accelerators."""

    accelerator: str


class Serving(Record):
    """`measured.toml`."""

    id: str
    date: str
    source: str
    engine_alias: dict[str, str]
    constant: dict[str, Constant]
    era: tuple[Era, ...]
    band: Bands
    borrower: tuple[Borrower, ...]
    stand_in: tuple[StandIn, ...]
    published: tuple[PublishedLaw, ...]
    pcie: Pcie
    law_factor: tuple[LawFactor, ...] = ()

    @cached_property
    def factors(self) -> dict[tuple[str, str, str, str], float]:
        """Factors on the time of single kernels by (accelerator, engine, kind, precision)."""
        return {(each.accelerator, each.engine, each.kind, each.precision): each.factor for each in self.law_factor}


class TextbookLaw(Record):
    """The article's roofline."""

    floor_us: float
    eff_bw: float
    eff_flops: float
    p: float
    tag: Tag
    source: str


class TextbookBandwidth(Record):
    """Accelerators for which the article takes another memory efficiency."""

    accelerators: tuple[str, ...]
    value: float
    source: str


class Textbook(Record):
    """`textbook.toml`."""

    id: str
    date: str
    law: TextbookLaw
    eff_bw: tuple[TextbookBandwidth, ...]


Parsed = TypeVar("Parsed", bound=Record)


def read(path: Path, record: type[Parsed]) -> Parsed:
    """One preset file as its record.

    Raises:
        CatalogueError: the file is missing, is not TOML, or does not say what the record requires.
    """
    try:
        return record.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CatalogueError(f"{path.name}: cannot be read") from error
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{path.name}: not TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise CatalogueError(f"{path.name}: {where}: {first['msg']}") from error


@cache
def starting() -> Serving:
    """The serving constants of the measured profile as a fit starts from them."""
    return read(FOLDER / "measured.toml", Serving)


@cache
def textbook() -> Textbook:
    """The constants of the textbook profile."""
    return read(FOLDER / "textbook.toml", Textbook)


def has_kernels(accelerator_id: str) -> bool:
    """Whether kernels of this accelerator were timed."""
    return (FOLDER / f"kernels-{accelerator_id}.toml").is_file()


@cache
def kernels(accelerator_id: str) -> KernelTable:
    """The kernel constants of one accelerator.

    Raises:
        CatalogueError: no kernels of it were timed.
    """
    return read(FOLDER / f"kernels-{accelerator_id}.toml", KernelTable)
