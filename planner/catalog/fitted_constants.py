"""Serving constants that a fit found (`presets/profiles/served.toml`), laid over the values that the fit started from.

`measured.toml` says which constants there are, what they mean and where a fit starts; `served.toml` is written by
`python -m planner calibrate --serving` and holds what it found, with range, counts and errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from pydantic import Field

from planner.catalog.band_records import Bands
from planner.catalog.kernel_laws import LENDING_ENGINES
from planner.catalog.profile_records import (
    FOLDER,
    Borrower,
    Constant,
    Era,
    LawFactor,
    Serving,
    read,
    starting,
)
from planner.catalog.records import Record
from planner.errors import CatalogueError

MOVED = 0.005
"""A number that a fit leaves this near its start is one that points say nothing of."""


class FittedValue(Record):
    """One number that was fitted.

    `name` is that of a constant (`gemm_floor`), of its factor under one engine (`gemm_floor.trtllm`), of an engine
    version's cost (`era.vllm.0.11.host_sequence`, `era.vllm.0.11.expert_layer.h100-sxm`) or of a borrowed accelerator's
    bandwidth (`borrower.mi300x`). `range` spans the fits that each left one pair of model and accelerator family out.
    """

    name: str
    unit: str
    value: float = Field(gt=0)
    start: float = Field(gt=0)
    range: tuple[float, float]


class GroupError(Record):
    """Error of TPOT per configuration over one group, within the fit and out of fold."""

    group: str
    configurations: int
    points: int
    within: float
    out_of_fold: float
    mean: float
    p90: float
    bias: float


class Served(Record):
    """`served.toml`."""

    id: str
    date: str
    source: str
    points: int
    configurations: int
    pairs: int
    fitted: tuple[FittedValue, ...]
    law_factor: tuple[LawFactor, ...]
    error: tuple[GroupError, ...]
    band: Bands


@cache
def served() -> Served:
    """What the last fit to served points found."""
    return read(FOLDER / "served.toml", Served)


@cache
def serving() -> Serving:
    """The serving constants of the measured profile."""
    return laid_over(starting(), served())


def laid_over(start: Serving, found: Served) -> Serving:
    """The serving constants with what a fit found in place of what it started from.

    Raises:
        CatalogueError: the fit names a number that the start does not have.
    """
    values = {each.name: each for each in found.fitted}
    for name in sorted(set(values).difference(_names(start))):
        raise CatalogueError(f"served.toml: {name} is not a number of measured.toml")
    source = f"fit to {found.points:,} served points of {found.configurations} configurations"
    constants = {name: _constant(name, known, values, source) for name, known in start.constant.items()}
    return start.model_copy(
        update={
            "constant": constants,
            "era": tuple(_era(each, values) for each in start.era),
            "borrower": tuple(_borrower(each, values) for each in start.borrower),
            "band": found.band,
            "law_factor": found.law_factor,
        }
    )


def _names(start: Serving) -> Iterator[str]:
    """Every name that a fit may give a value to; for what they mean see `FittedValue`."""
    for constant in start.constant:
        yield constant
        yield from (f"{constant}.{engine}" for engine in LENDING_ENGINES)
    for era in start.era:
        name = f"era.{era.engine}.{era.from_version}"
        yield f"{name}.host_sequence"
        yield from (f"{name}.expert_layer.{extra.accelerators[0]}" for extra in era.expert_layer_extra)
    yield from (f"borrower.{each.accelerators[0]}" for each in start.borrower if each.like is None)


def with_values(start: Serving, values: Iterable[tuple[str, float]], factors: tuple[LawFactor, ...]) -> Serving:
    """The serving constants with some of them replaced, as a fit tries them."""
    fitted = tuple(FittedValue(name=n, unit="", value=v, start=v, range=(v, v)) for n, v in values)
    found = Served(
        id="", date="", source="", points=0, configurations=0, pairs=0,
        fitted=fitted, law_factor=factors, error=(), band=start.band,
    )  # fmt: skip
    return laid_over(start, found)


def _constant(name: str, known: Constant, values: dict[str, FittedValue], source: str) -> Constant:
    """One constant, its engines' factors included; as it was where nothing about it was fitted."""
    engines = {key.split(".", 1)[1]: each.value for key, each in values.items() if key.startswith(f"{name}.")}
    found = values.get(name)
    if found is None and not engines:
        return known
    moved = bool(engines) or (found is not None and abs(found.value / found.start - 1.0) >= MOVED)
    said = {"source": source, "tag": "fitted"} if moved else {"source": f"{source}, which leave it", "tag": "assumed"}
    new = known.model_copy(update={"engine_factor": {**known.engine_factor, **engines}, **said})
    return new if found is None else new.model_copy(update={"value": found.value, "range": found.range})


def _era(era: Era, values: dict[str, FittedValue]) -> Era:
    """The costs of one engine version."""
    name = f"era.{era.engine}.{era.from_version}"
    found = values.get(f"{name}.host_sequence")
    extras = tuple(
        each.model_copy(
            update={"value_us": _value(f"{name}.expert_layer.{each.accelerators[0]}", each.value_us, values)}
        )
        for each in era.expert_layer_extra
    )
    if found is None:
        return era.model_copy(update={"expert_layer_extra": extras})
    update = {"host_sequence_us": found.value, "host_sequence_range_us": found.range, "expert_layer_extra": extras}
    return era.model_copy(update=update)


def _borrower(each: Borrower, values: dict[str, FittedValue]) -> Borrower:
    """What measurements say of a borrowed accelerator, or of the one whose factor it shares."""
    name = f"borrower.{each.like or each.accelerators[0]}"
    return each.model_copy(update={"eff_bw_factor": _value(name, each.eff_bw_factor, values)})


def _value(name: str, start: float, values: dict[str, FittedValue]) -> float:
    """A fitted number, or where the fit would have started."""
    found = values.get(name)
    return start if found is None else found.value
