"""What the exchange tables and `scale-out.toml` under `presets/fabrics` must say, and the one place that reads them."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import Field

from planner.catalog.profile_records import FOLDER, Constant, read
from planner.catalog.records import Record
from planner.specs.collective import Tag
from planner.specs.links import ExchangeLaw

FABRICS = FOLDER.parent / "fabrics"

Family = Literal["low-latency", "high-throughput"]
"""Kernels for few tokens (decode) and for many (prefill)."""

Op = Literal["dispatch", "combine"]


class ExchangeRecord(Record):
    """Constants of one dispatch or combine by expert-parallel size; `tags` says for each size where they come from.

    `note` says how they were made, `caveat` what a plan that uses them must say.
    """

    engine: str
    family: Family
    op: Op
    element: str
    element_bytes: float = Field(gt=0)
    ranks: tuple[int, ...]
    alpha_us: tuple[float, ...]
    gb_per_s: tuple[float, ...]
    nodes: tuple[int, ...]
    tags: tuple[Tag, ...]
    source: str
    rows: int = Field(ge=0)
    median_error: float | None = Field(default=None, ge=0)
    note: str = ""
    caveat: str = ""

    def as_exchange(self) -> ExchangeLaw:
        """The same constants in SI."""
        alpha = tuple(us * 1e-6 for us in self.alpha_us)
        bandwidth = tuple(gb * 1e9 for gb in self.gb_per_s)
        return ExchangeLaw(self.ranks, alpha, bandwidth, self.tags[0], self.source, self.median_error)


class ExchangeTable(Record):
    """All exchange constants of one accelerator, with the links that they were timed on."""

    id: str
    accelerator: str
    licence: str
    source: str
    date: str
    domain: int = Field(gt=0)
    link_gb_per_s: float = Field(gt=0)
    nic_gb_per_s: float = Field(gt=0)
    exchange: tuple[ExchangeRecord, ...]


class Lender(Record):
    """Whose exchange table some accelerators borrow instead of that of the accelerator whose kernels they borrow."""

    accelerators: tuple[str, ...]
    lender: str
    reason: str


class ScaleOut(Record):
    """`scale-out.toml`."""

    id: str
    name: str
    date: str
    source: str
    confidence: str
    reference: str
    constant: dict[str, Constant]
    lender: tuple[Lender, ...]


@cache
def scale_out() -> ScaleOut:
    """Constants of the network between scale-up domains."""
    return read(FABRICS / "scale-out.toml", ScaleOut)


def has_exchanges(accelerator_id: str) -> bool:
    """Whether exchanges on this accelerator were timed or published."""
    return (FABRICS / f"exchange-{accelerator_id}.toml").is_file()


@cache
def exchanges(accelerator_id: str) -> ExchangeTable:
    """The exchange constants of one accelerator.

    Raises:
        CatalogueError: there are none.
    """
    return read(FABRICS / f"exchange-{accelerator_id}.toml", ExchangeTable)
