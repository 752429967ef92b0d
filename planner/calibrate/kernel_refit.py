"""The kernel constants of one accelerator made again from tables of timings.

A record says in `engine`, `kind`, `precision` and `source` which timings it is of: `source` names kernel and format
where an engine has several. What a record borrows follows its lender; what the tables do not time stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.calibrate.kernel_fit import Errors, errors, fitted, link_constants, rounded
from planner.calibrate.kernel_tables import (
    ACCELERATORS,
    FEWEST,
    CollectiveRow,
    ExpertsRow,
    GemmRow,
    OperatorRow,
    Tables,
)
from planner.calibrate.kernel_work import EVEN, Timings, link_traffic, seconds, timings
from planner.catalog.profile_records import CollectiveRecord, KernelTable, LawRecord
from planner.errors import Fault, InputError
from planner.physics.roofline import collective_seconds
from planner.specs.precision import WEIGHTS
from planner.work import Column

FORMATS: Final = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8-block",
    "nvfp4": "nvfp4",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
    "int4_wo": "int4",
    "int8_wo": "int8",
}
"""Our formats by their names in the tables."""

OPS: Final = {"all_to_all": "alltoall"}
"""Collectives that the tables call otherwise."""

PREFILL: Final = ("attn_prefill", "mla_prefill")
LEAST_SIZES: Final = 4
"""Message sizes that one group size of a collective must have been timed at."""

LARGEST_CACHE: Final = 2**27
"""Bytes that the largest on-chip cache of the accelerators holds (B200, RTX PRO 6000; recalled, unsourced)."""

LEAST_BEYOND: Final = 2
"""Matrices beyond that size which a law of GEMMs needs: a timing loop reads smaller ones from the chip, a model does not."""

POOR: Final = 0.25
"""Median error from which a law is said to fit poorly."""

OWN_REMARKS: Final = ("poor fit:", "skewed routing:")
"""Remarks of a note that a fit writes anew; the others are decisions and stay."""

DECISIONS: Final = ("eff_flops of its prefill", "no rise")
"""What a source says beside which timings a record is of, and a new fit leaves as it is."""

SATURATED: Final = 1024
"""Tokens from which the load of a rank is seen in its time."""


@dataclass(frozen=True)
class Change:
    """One law before and after: on the same timings, where there are any."""

    accelerator: str
    record: LawRecord
    old: Errors
    new: Errors


@dataclass(frozen=True)
class Refit:
    """The kernel table of one accelerator with its new constants, what changed, and how many fitted laws stay."""

    table: KernelTable
    changes: tuple[Change, ...]
    kept: int


def refit(table: KernelTable, tables: Tables) -> Refit:
    """Fit every law and collective of an accelerator that the tables time.

    Raises:
        InputError: a law has some timings, but too few to be fitted: its table was cut off.
    """
    timed = {id(record): rows for record in table.law if (rows := _rows_of(record, table.accelerator, tables))}
    first = {id(r): _refitted(r, timed[id(r)]) for r in table.law if id(r) in timed and r.kind != "attn_decode"}
    reach = {
        (r.engine, r.math): first[id(r)].eff_flops for r in table.law if r.kind == "attn_prefill" and id(r) in first
    }
    found = []
    for record in table.law:
        new = first.get(id(record), record)
        if record.kind == "attn_decode" and id(record) in timed:
            own = reach.get((record.engine, record.math), record.eff_flops)
            new = _refitted(record.model_copy(update={"eff_flops": own}), timed[id(record)])
        found.append(new)
    laws = tuple(found)
    changes = tuple(
        _change(table.accelerator, old, new, timed[id(old)])
        for old, new in zip(table.law, laws, strict=True)
        if id(old) in timed
    )
    collectives = tuple(_collective(record, table.accelerator, tables.collectives) for record in table.collective)
    kept = sum(record.tag == "fitted" for record in table.law) - len(changes)
    return Refit(table.model_copy(update={"law": laws, "collective": collectives}), changes, kept)


def _rows_of(record: LawRecord, accelerator: str, tables: Tables) -> list[OperatorRow]:
    """The timings that a fitted record is of."""
    if record.tag != "fitted":
        return []
    rows = [row for row in tables.operators if _matches(row, record, accelerator)]
    rows = _named(rows, record.source)
    if 0 < len(rows) < FEWEST:
        what = f"{accelerator} {record.engine} {record.kind} {record.precision}"
        raise InputError((Fault(what, f"{len(rows)} rows", f"must have at least {FEWEST}: its table was cut off"),))
    if record.kind == "gemm" and _beyond_chip(rows, record.precision) < LEAST_BEYOND:
        return []
    return sorted(rows, key=repr)  # sums, and so the last digits of a fit, must not depend on the order of a table


def _beyond_chip(rows: Sequence[OperatorRow], precision: str) -> int:
    """Matrices among timings that no on-chip cache holds."""
    sizes = {(row.n, row.k) for row in rows if isinstance(row, GemmRow)}
    return sum(n * k * WEIGHTS[precision].bytes >= LARGEST_CACHE for n, k in sizes)


def _matches(row: OperatorRow, record: LawRecord, accelerator: str) -> bool:
    """Whether a timing is of a record's accelerator, engine, kind and format; prefill goes by its arithmetic."""
    if (row.kind, row.backend, ACCELERATORS[row.gpu]) != (record.kind, record.engine, accelerator):
        return False
    if record.kind in PREFILL:
        return FORMATS.get(row.precision) == record.math
    return FORMATS.get(row.precision) == record.precision


def _named(rows: list[OperatorRow], source: str) -> list[OperatorRow]:
    """Those rows whose kernel and format a source names; all where it names none."""
    words = set(re.split(r"[ ,;]+", source))
    for name in ("kernel_source", "precision"):
        named = [row for row in rows if getattr(row, name) in words]
        rows = named or rows
    return rows


def _refitted(record: LawRecord, rows: Sequence[OperatorRow]) -> LawRecord:
    """A record with its constants and remarks made anew."""
    timed = _fit_rows(rows, record.precision)
    new = fitted(record, timed)
    poor = f"poor fit: half the timed rows are off by more than {new.median_error:.0%}".replace("%", " %")
    kept = [text for text in record.note.split("; ") if text and not text.startswith(OWN_REMARKS)]
    notes = (*kept, poor if new.median_error >= POOR else "", skew_remark(new, rows))
    return new.model_copy(update={"note": "; ".join(filter(None, notes)), "source": _source(record)})


def _source(record: LawRecord) -> str:
    """Which timings a record is of, without what an earlier fit did to them."""
    bare, *others = record.source.split("; ")
    kept = [text for text in others if text.startswith(DECISIONS)]
    return "; ".join((bare, *kept))


def _fit_rows(rows: Sequence[OperatorRow], precision: str) -> Timings:
    """The timings that a law is fitted to.

    Skewed routing over several ranks times the fullest rank, whose load plans count as work; on one rank the same
    tokens are computed whoever takes them. Where nothing else was timed the skewed rows have to do.
    """
    mean = [row for row in rows if not (isinstance(row, ExpertsRow) and _fullest(row))]
    return timings(mean if any(_even(row) for row in rows) else rows, precision)


def _even(row: OperatorRow) -> bool:
    """Whether a timing is of evenly dealt tokens, or of none."""
    return not isinstance(row, ExpertsRow) or row.distribution == EVEN


def _fullest(row: ExpertsRow) -> bool:
    """Whether a timing is of the fullest of several ranks under skewed routing."""
    return row.moe_ep_size > 1 and not _even(row)


def skew_remark(record: LawRecord, rows: Sequence[OperatorRow]) -> str:
    """Whether one law holds evenly and skewed routed tokens, and what skew does to the fullest rank; "" = not timed."""
    even, skewed = [r for r in rows if _even(r)], [r for r in rows if not _even(r)]
    alone = [row for row in skewed if isinstance(row, ExpertsRow) and not _fullest(row)]
    if not even or not alone:
        return ""
    off = [errors(record, timings(part, record.precision)).median for part in (even, alone)]
    loads = [f"{load:.1f} times on {ranks} ranks" for ranks, load in _loads(even, skewed)]
    text = f"skewed routing: the law is off by {100 * off[1]:.0f} % on one rank (evenly routed {100 * off[0]:.0f} %)"
    return f"{text}, the fullest rank takes {', '.join(loads)} what an even one does" if loads else text


def _loads(even: Sequence[OperatorRow], skewed: Sequence[OperatorRow]) -> Iterator[tuple[int, float]]:
    """Median time of the fullest rank over that of an even one, by ranks, where launches are large."""
    dealt = {_case(row): row.measured_us for row in even if isinstance(row, ExpertsRow)}
    pairs = [
        (row.moe_ep_size, row.measured_us / dealt[_case(row)])
        for row in skewed
        if isinstance(row, ExpertsRow) and _fullest(row) and row.num_tokens >= SATURATED and _case(row) in dealt
    ]
    for ranks in sorted({each for each, _ in pairs}):
        yield ranks, float(np.median([load for each, load in pairs if each == ranks]))


def _case(row: ExpertsRow) -> tuple[str, int, int, int, str]:
    """What two timings share that differ in their routing only."""
    return row.shape, row.num_tokens, row.moe_tp_size, row.moe_ep_size, row.kernel_source


def _change(accelerator: str, old: LawRecord, new: LawRecord, rows: Sequence[OperatorRow]) -> Change:
    """Both laws on the timings that the new one was fitted to."""
    timed = _fit_rows(rows, new.precision)
    return Change(accelerator, new, errors(old, timed), errors(new, timed))


def _collective(record: CollectiveRecord, accelerator: str, timed: Sequence[CollectiveRow]) -> CollectiveRecord:
    """A collective with new constants for the group sizes that were timed; the others stay."""
    rows = [row for row in timed if record.tag == "fitted" and _is_of(row, record, accelerator)]
    found = {n: part for n in record.devices if len(part := [r for r in rows if r.num_gpus == n]) >= LEAST_SIZES}
    if not found:
        return record
    laws = [
        link_constants(*link_traffic(found[n]), seconds(found[n])) if n in found else (alpha, bus)
        for n, alpha, bus in zip(record.devices, record.alpha_us, record.bus_gb_per_s, strict=True)
    ]
    new = record.model_copy(update={"alpha_us": tuple(a for a, _ in laws), "bus_gb_per_s": tuple(b for _, b in laws)})
    used = [row for part in found.values() for row in part]
    return new.model_copy(update={"rows": len(used), "median_error": rounded(Errors.of(link_ratio(new, used)).median)})


def _is_of(row: CollectiveRow, record: CollectiveRecord, accelerator: str) -> bool:
    """Whether a timing is of the collective that a source names: engine, version, kernel."""
    words = set(re.split(r"[ ,;]+", record.source))
    same = (ACCELERATORS[row.gpu], row.backend, row.op) == (accelerator, record.engine, OPS.get(record.op, record.op))
    return same and {row.kernel, row.backend_version} <= words


def link_ratio(record: CollectiveRecord, rows: Sequence[CollectiveRow]) -> Column:
    """Predicted over measured times of collectives."""
    traffic, ranks = link_traffic(rows)
    return collective_seconds(traffic, ranks, *record.as_collective().constants(ranks)) / seconds(rows)
