"""Engines of the catalogue, read from `presets/engines`: one set of rules per era of versions and class of device."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.catalog.accelerators import MIB, PRESETS
from planner.errors import CatalogueError
from planner.specs.accelerator import Accelerator
from planner.specs.engine import TECHNIQUES, Budget, Demand, Engine, LayoutLaw, Refusal
from planner.units import GIB

STRICT = ConfigDict(extra="forbid", frozen=True)

NUMBERS = (
    "memory_utilisation",
    "block_size",
    "max_num_seqs",
    "token_budget",
    "sampler_bytes_per_logit",
    "activation_floor",
    "keeps_expert_buffers",
    "index_buffer_per_token",
    "image_bytes",
    "whole_prompt_tokens",
    "start_bytes",
    "state_ratio",
    "runtime_bytes",
    "graphs_in_budget",
    "graph_base",
    "graph_per_weight_byte",
)
"""Fields of an era that each need a source."""


class DeviceDefaults(BaseModel):
    """What an engine chooses by the device it finds; the first entry that matches holds."""

    model_config = STRICT

    min_gib: float = Field(default=0.0, ge=0)
    not_named: str | None = None
    max_num_seqs: int = Field(ge=1)
    token_budget: int = Field(ge=1)
    activation_floor_gib: float = Field(ge=0)
    taken_gib: float = Field(default=0.0, ge=0)
    reserve_mib: float | None = Field(default=None, gt=0)

    def matches(self, device: Accelerator) -> bool:
        """Whether the engine would take these defaults on this device."""
        excluded = self.not_named is not None and self.not_named in device.id
        return device.engine_memory >= self.min_gib * GIB and not excluded


class EraRecord(BaseModel):
    """Rules of one era of versions."""

    model_config = STRICT

    since: str
    version: str
    memory_utilisation: float | None = Field(default=None, gt=0, le=1)
    block_size: int = Field(ge=1)
    sampler_bytes_per_logit: float = Field(ge=0)
    keeps_expert_buffers: bool = False
    index_buffer_per_token: float = Field(default=0.0, ge=0)
    image_gib: float = Field(default=0.0, ge=0)
    whole_prompt_tokens: int = Field(default=0, ge=0)
    state_ratio: float = Field(default=0.0, ge=0)
    runtime_gib: dict[int, float] = Field(min_length=1)
    runtime_plain_gib: dict[int, float] = {}
    graphs_in_budget: bool
    graph_base_gib: float = Field(ge=0)
    graph_per_weight_byte: float = Field(ge=0)
    devices: tuple[DeviceDefaults, ...] = Field(min_length=1)
    notes: tuple[str, ...] = ()
    sources: dict[str, str]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Every number has a source; the share is stated or follows from every device's reserve."""
        if set(self.sources) != set(NUMBERS):
            raise ValueError(f"era {self.since}: sources must be given for exactly {', '.join(NUMBERS)}")
        if (self.memory_utilisation is None) == any(item.reserve_mib is None for item in self.devices):
            raise ValueError(f"era {self.since}: state memory_utilisation or a reserve_mib per device")
        return self


CONDITION = (
    r"^((spec|redundant|tp|pp|dp|ep|cp|dcp)(>\d+)?|overlap|prefix|chunk|(prefill|weights|kv)=[a-z0-9-]+"
    r"|latent|grouped|linear|sparse|shared-index|mtp)$"
)
"""How a record spells one condition of a refusal; see `specs.engine.Refusal`."""

Condition = Annotated[str, Field(pattern=CONDITION)]
Sentence = Annotated[str, Field(min_length=20)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}(-\d{2})?$")]


class RefusalRecord(BaseModel):
    """One `[[refuses]]` of a file."""

    model_config = STRICT

    when: tuple[Condition, ...] = Field(min_length=1)
    unless: tuple[Condition, ...] = ()
    reason: Sentence
    source: Sentence
    date: Day


class DemandRecord(BaseModel):
    """One `[[demands]]` of a file."""

    model_config = STRICT

    law: LayoutLaw
    reason: Sentence
    source: Sentence
    date: Day


class EngineRecord(BaseModel):
    """One file of `presets/engines`."""

    model_config = STRICT

    id: str
    name: str
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    budget: Budget
    vendors: tuple[str, ...]
    supports_kv: tuple[str, ...]
    supports_weights: tuple[str, ...]
    notes: tuple[str, ...] = ()
    typical_mib: float = Field(default=81559.0, gt=0)
    """Device that the defaults are shown for when none is named [MiB of the driver]."""
    sources: dict[str, str]
    eras: tuple[EraRecord, ...] = Field(min_length=1)
    offers: dict[str, Sentence]
    refuses: tuple[RefusalRecord, ...]
    demands: tuple[DemandRecord, ...]
    unverified: tuple[Sentence, ...]

    @model_validator(mode="after")
    def _decided(self) -> Self:
        """Every technique is offered with a source, refused outright, or named as not verified."""
        alone = {item.when[0] for item in self.refuses if len(item.when) == 1 and not item.unless}
        named = {text.partition(":")[0] for text in self.unverified}
        wrong = [
            name for name in TECHNIQUES if [name in group for group in (self.offers, alone, named)].count(True) != 1
        ]
        if wrong or set(self.offers) - set(TECHNIQUES):
            raise ValueError(f"each technique is offered, refused or unverified, once: {', '.join(wrong)}")
        return self

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        """Eras are listed oldest first."""
        starts = [numbers_of(era.since) for era in self.eras]
        if starts != sorted(set(starts)):
            raise ValueError("eras must ascend")
        return self


def numbers_of(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, `v0.26.1rc1.dev608` -> (0, 26, 1); empty when it has none."""
    found = re.search(r"\d+(?:\.\d+)*", version)
    return () if found is None else tuple(int(part) for part in found.group().split("."))


def read_record(path: Path) -> EngineRecord:
    """One validated preset file.

    Raises:
        CatalogueError: malformed, or its id is not its file name.
    """
    try:
        record = EngineRecord.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"engine preset {path.name}: {error}") from error
    if record.id != path.stem:
        raise CatalogueError(f"engine preset {path.name}: id = {record.id} is not the file name")
    return record


@cache
def records() -> dict[str, EngineRecord]:
    """Every engine record by id."""
    found = [read_record(path) for path in sorted((PRESETS / "engines").glob("*.toml"))]
    return {record.id: record for record in found}


def engine_ids() -> tuple[str, ...]:
    """Ids of all engines, sorted."""
    return tuple(records())


def era_of(record: EngineRecord, version: str | None) -> EraRecord:
    """The rules that a version follows; the newest when none is named.

    Raises:
        CatalogueError: the version text holds no number.
    """
    if version is None:
        return record.eras[-1]
    asked = numbers_of(version)
    if not asked:
        raise CatalogueError(f"{record.id} version {version[:40]!r}: no version number in it")
    return max((era for era in record.eras if numbers_of(era.since) <= asked), key=lambda era: numbers_of(era.since))


def defaults_on(record: EngineRecord, era: EraRecord, device: Accelerator | None) -> DeviceDefaults:
    """What the era chooses on a device, or on the typical one.

    Raises:
        CatalogueError: no entry covers the device.
    """
    if device is None:
        fitting = (item for item in era.devices if record.typical_mib * MIB >= item.min_gib * GIB)
    else:
        fitting = (item for item in era.devices if item.matches(device))
    found = next(fitting, None)
    if found is None:
        raise CatalogueError(f"engine {record.id} {era.version}: no defaults for this device")
    return found


def share(record: EngineRecord, era: EraRecord, chosen: DeviceDefaults, device: Accelerator | None) -> float:
    """Default memory share: the era's own, or what its reserve leaves of the device, to three digits as engines do."""
    if chosen.reserve_mib is None:
        return 0.0 if era.memory_utilisation is None else era.memory_utilisation
    capacity = record.typical_mib if device is None else device.physical_memory / MIB
    return round((capacity - chosen.reserve_mib) / capacity, 3)


PLAIN_LINKS = ("PCIe", "NVLink 3 ")
"""How links begin over which vLLM holds no buffers for multicast all-reduces, which came with NVLink 4's switches."""


def runtime_on(era: EraRecord, device: Accelerator | None) -> tuple[tuple[int, float], ...]:
    """Runtime memory by TP degree [B]; less where an engine holds no buffers for switched all-reduces."""
    plain = device is not None and device.scale_up_name.startswith(PLAIN_LINKS)
    table = era.runtime_plain_gib if plain and era.runtime_plain_gib else era.runtime_gib
    return tuple((tp, gib * GIB) for tp, gib in sorted(table.items()))


@cache
def engine(id: str, version: str | None = None, device: Accelerator | None = None) -> Engine:
    """An engine as it behaves out of the box.

    Args:
        id: engine id.
        version: version as written (`0.19.0`, `v0.8.5.post1`); None = the newest era.
        device: accelerator whose size decides batch limits and, for some engines, the share; None = a typical one.

    Raises:
        CatalogueError: unknown engine (the message names near matches) or a version without a number.
    """
    record = records().get(id)
    if record is None:
        near = get_close_matches(id.lower(), engine_ids(), n=3, cutoff=0.4)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise CatalogueError(f"engine {id[:60]!r} is not in the catalogue{hint}")
    era = era_of(record, version)
    return from_record(record, era, defaults_on(record, era, device), device)


def from_record(record: EngineRecord, era: EraRecord, chosen: DeviceDefaults, device: Accelerator | None) -> Engine:
    """The engine of one era on one class of device, in SI units."""
    return Engine(
        id=record.id,
        name=record.name,
        version=era.version,
        date=record.date,
        memory_utilisation=share(record, era, chosen, device),
        block_size=era.block_size,
        max_num_seqs=chosen.max_num_seqs,
        token_budget=chosen.token_budget,
        sampler_bytes_per_logit=era.sampler_bytes_per_logit,
        activation_floor=chosen.activation_floor_gib * GIB,
        keeps_expert_buffers=era.keeps_expert_buffers,
        index_buffer_per_token=era.index_buffer_per_token,
        image_bytes=era.image_gib * GIB,
        whole_prompt_tokens=era.whole_prompt_tokens,
        state_ratio=era.state_ratio,
        start_bytes=chosen.taken_gib * GIB,
        runtime_bytes=runtime_on(era, device),
        graphs_in_budget=era.graphs_in_budget,
        graph_base=era.graph_base_gib * GIB,
        graph_per_weight_byte=era.graph_per_weight_byte,
        supports_kv=record.supports_kv,
        supports_weights=record.supports_weights,
        sources={**record.sources, **era.sources},
        notes=record.notes + era.notes,
        budget=record.budget,
        since=era.since,
        vendors=record.vendors,
        offers=record.offers,
        refuses=tuple(Refusal(**item.model_dump()) for item in record.refuses),
        demands=tuple(Demand(**item.model_dump()) for item in record.demands),
        unverified=record.unverified,
    )
