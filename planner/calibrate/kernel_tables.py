"""Tables of timed kernels: one CSV a kind of operator, checked row by row before anything is fitted to it.

Columns are those of the tables below; a table may have more. Times are in microseconds, messages in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import Fault, InputError
from planner.predict import read_table
from planner.specs.fields import shown
from planner.specs.profile import Kind

ACCELERATORS: Final = {
    "a100_sxm": "a100-80g-sxm",
    "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm",
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
}
"""Our accelerators by their names in the tables; rows of others are left out."""

Name = Annotated[str, Field(min_length=1, max_length=120)]
Count = Annotated[int, Field(ge=1, le=2**31)]
Microseconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Bytes = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]


class TimedRow(BaseModel):
    """One timing; what a table has beyond these columns is not read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    gpu: Name
    backend: Name
    backend_version: Name
    precision: Name
    measured_us: Microseconds


class OperatorRow(TimedRow):
    """One operator as timed alone; `shape` names the matrices or heads that it has."""

    kind: ClassVar[Kind]
    kernel_source: Name
    shape: Name


class GemmRow(OperatorRow):
    """A product of m tokens with an n by k matrix."""

    kind: ClassVar[Kind] = "gemm"
    m: Count
    n: Count
    k: Count


class ExpertsRow(OperatorRow):
    """The routed experts of one layer on one rank."""

    kind: ClassVar[Kind] = "experts"
    distribution: Name
    num_tokens: Count
    hidden_size: Count
    inter_size: Count
    topk: Count
    num_experts: Count
    moe_tp_size: Count
    moe_ep_size: Count


class DecodeRow(OperatorRow):
    """Decode attention over grouped heads."""

    kind: ClassVar[Kind] = "attn_decode"
    batch_size: Count
    ctx: Count
    num_heads: Count
    nkv: Count
    head_dim: Count


class PrefillRow(OperatorRow):
    """Causal prefill attention over grouped heads."""

    kind: ClassVar[Kind] = "attn_prefill"
    kv_cache_dtype: Name
    batch_size: Count
    isl: Count
    num_heads: Count
    nkv: Count
    head_dim: Count


class LatentDecodeRow(OperatorRow):
    """Absorbed decode attention over the latent."""

    kind: ClassVar[Kind] = "mla_decode"
    batch_size: Count
    ctx: Count
    num_heads: Count


class LatentPrefillRow(OperatorRow):
    """Causal prefill attention with the latent expanded to heads."""

    kind: ClassVar[Kind] = "mla_prefill"
    kv_cache_dtype: Name
    batch_size: Count
    isl: Count
    num_heads: Count


class CollectiveRow(TimedRow):
    """One collective; `bytes` is the message as nccl-tests counts it."""

    kernel: Name
    op: Name
    num_gpus: Annotated[int, Field(ge=2, le=1024)]
    bytes: Bytes


OPERATORS: Final[tuple[tuple[str, type[OperatorRow]], ...]] = (
    ("gemm.csv", GemmRow),
    ("moe_gemm.csv", ExpertsRow),
    ("attn_decode.csv", DecodeRow),
    ("mla_decode.csv", LatentDecodeRow),
    ("attn_prefill.csv", PrefillRow),
    ("mla_prefill.csv", LatentPrefillRow),
)
COLLECTIVES: Final = "comm_collectives.csv"

FEWEST: Final = 12
"""Rows that a table must have at least: with fewer it was cut off."""

Row = TypeVar("Row", bound=TimedRow)


@dataclass(frozen=True)
class Tables:
    """All timings of one folder, of accelerators that are in the catalogue."""

    operators: tuple[OperatorRow, ...]
    collectives: tuple[CollectiveRow, ...]


def read_tables(folder: Path) -> Tables:
    """Every table of a folder.

    Raises:
        InputError: the folder or a table is missing, or a table is not what its name says; one fault a table.
    """
    missing = [name for name in (*(name for name, _ in OPERATORS), COLLECTIVES) if not (folder / name).is_file()]
    if missing:
        raise InputError((Fault("--kernels", shown(folder.name), f"must be a folder that holds {', '.join(missing)}"),))
    operators = tuple(row for name, model in OPERATORS for row in _rows(folder / name, model))
    return Tables(operators, tuple(_rows(folder / COLLECTIVES, CollectiveRow)))


def _rows(path: Path, model: type[Row]) -> Iterator[Row]:
    """The checked rows of one table."""
    header, rows = read_table(path, path.name)
    absent = [name for name, field in model.model_fields.items() if name not in header and field.is_required()]
    if absent:
        raise _refused(path, ", ".join(header) or "empty", f"must have the columns {', '.join(absent)}")
    if len(rows) < FEWEST:
        raise _refused(path, f"{len(rows)} rows", f"must have at least {FEWEST} rows: this table was cut off")
    for line, cells in enumerate(rows, start=2):
        row = checked(path, cells, model, f" in row {line}")
        if row.gpu in ACCELERATORS:
            yield row


def checked(path: Path, cells: Mapping[str, object], model: type[Row], where: str = "") -> Row:
    """One timing as it must be.

    Raises:
        InputError: what is wrong with its first wrong cell.
    """
    try:
        return model.model_validate(cells)
    except ValidationError as error:
        first = error.errors()[0]
        column, message = str(first["loc"][0]), first["msg"].lower().removeprefix("input ")
        raise _refused(path, str(first["input"]), f"{column}{where} {message}") from None


def _refused(path: Path, value: str, allowed: str) -> InputError:
    return InputError((Fault(path.name, shown(value), allowed),))
