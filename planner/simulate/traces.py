"""Traces: when requests came and how long they were, read back from public formats and a template of our own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from planner.simulate import trace_cells as cells
from planner.simulate.requests import NONE, Hashes, Requests, Seconds, Whole
from planner.simulate.trace_clock import in_order
from planner.simulate.trace_formats import BLOCK_TOKENS, Format, format_of
from planner.simulate.trace_tables import Block, Table, table_of
from planner.simulate.trace_text import MOST_BYTES, readable, refused, refused_cell, sized
from planner.simulate.traffic import MOST_REQUESTS
from planner.specs.fields import shown

TEMPLATE_CSV: Final = """\
time_s,input_tokens,output_tokens,session,prefix,prefix_tokens
0.0,1200,150,,assistant,800
0.4,950,210,,assistant,800
1.1,400,90,chat-1,,
9.8,640,120,chat-1,,
"""
"""A trace in the template's format: the last three columns may be left out."""

_LATEST: Final = 1e11
"""Latest time that counts as seconds: dates since 1970 in seconds are below it, those in milliseconds above."""

_NO_ROWS: Final = "must hold one request a row below the column names"

Kept: TypeAlias = npt.NDArray[np.bool_]
"""Which rows are requests."""


@dataclass(frozen=True)
class Trace:
    """A trace that was read.

    Attributes:
        name: what it was called when it came in.
        requests: its requests; the first one arrives at 0.
        format: id of its format.
        notes: what was understood, assumed, and left out, one sentence each.
        rows: rows of the file, those that were left out included.
        span_s: time from the first arrival to the last [s].
        mean_rate: requests a second over the span [1/s]; None when all arrive at once.
        mean_isl, mean_osl: mean input and output [tokens].
    """

    name: str
    requests: Requests
    format: str
    notes: tuple[str, ...]
    rows: int
    span_s: float
    mean_rate: float | None
    mean_isl: float
    mean_osl: float


@dataclass
class _Columns:
    """Columns of a trace as they are gathered, block by block."""

    lines: list[Whole] = field(default_factory=list)
    time: list[Seconds] = field(default_factory=list)
    moment: list[Whole] = field(default_factory=list)
    isl: list[Whole] = field(default_factory=list)
    osl: list[Whole] = field(default_factory=list)
    shared: list[Whole] = field(default_factory=list)
    session: list[str | None] = field(default_factory=list)
    prefix: list[str | None] = field(default_factory=list)
    block_counts: list[Whole] = field(default_factory=list)
    block_ids: list[Whole] = field(default_factory=list)
    style: cells.Style | None = None
    rows: int = 0


def read_trace_file(path: Path) -> Trace:
    """A trace from a file, whose size is looked at before it is read.

    Raises:
        InputError: for what is no trace, in one sentence.
        OSError: when the file cannot be read.
    """
    sized(path.stat().st_size, path.name)
    with path.open("rb") as file:
        return read_trace(file.read(MOST_BYTES + 1), path.name)


def read_trace(data: bytes, name: str, most: int = MOST_BYTES) -> Trace:
    """A trace from its bytes: CSV or JSON Lines, in a format that its column names tell.

    Args:
        name: what to call it.
        most: largest trace that is read [bytes].

    Raises:
        InputError: for what is no trace, in one sentence that names line and column.
    """
    sized(len(data), name, most)
    readable(data)
    table = table_of(data)
    known = format_of(table)
    taken = _gathered(table, known)
    lines = np.concatenate(taken.lines)
    in_order(*_seconds(taken), lines)
    isl, osl = np.concatenate(taken.isl), np.concatenate(taken.osl)
    kept = (isl > 0) & (osl > 0)
    if not kept.any():
        raise refused(
            f"{_many(taken.rows, 'row')}, none with input and output",
            "must hold at least one request that was answered",
        )
    arrival = _from_first(taken, kept)
    group, shared = _prefixes(taken, lines, isl)
    found = Requests(
        arrival,
        isl[kept],
        osl[kept],
        group[kept],
        shared[kept],
        _sessions(taken, kept),
        _hashes(taken, lines, isl, kept),
    )
    notes = tuple(_notes(table, known, taken, found))
    return _trace(shown(name, 80), found, known, notes, taken.rows)


def _trace(name: str, found: Requests, known: Format, notes: tuple[str, ...], rows: int) -> Trace:
    """A trace with its means."""
    span = float(found.arrival[-1])
    rate = (len(found) - 1) / span if span > 0.0 else None
    return Trace(name, found, known.id, notes, rows, span, rate, float(found.isl.mean()), float(found.osl.mean()))


def _gathered(table: Table, known: Format) -> _Columns:
    """All columns of a table that the format knows."""
    taken = _Columns()
    for block in table.blocks:
        taken.rows += len(block.rows)
        if taken.rows > MOST_REQUESTS:
            raise refused(
                f"more than {MOST_REQUESTS:,} rows", f"must have at most {MOST_REQUESTS:,}; cut it to fewer rows"
            )
        _add(taken, table, block, known)
    if not taken.rows:
        raise refused("no rows", _NO_ROWS)
    return taken


def _add(taken: _Columns, table: Table, block: Block, known: Format) -> None:
    """What one block adds."""
    lines = block.lines
    taken.lines.append(lines)
    moment = _column(table, block, known.time)
    if known.per_second:
        unit = "milliseconds" if known.per_second == 1000.0 else "seconds"
        found = cells.times(moment, known.time, lines, unit, _LATEST * known.per_second)
        taken.time.append(found / known.per_second)
    else:
        since, taken.style = cells.moments(moment, known.time, lines, taken.style)
        taken.moment.append(since)
    least = 0 if known.failures else 1
    taken.isl.append(cells.tokens(_column(table, block, known.isl), known.isl, lines, least))
    taken.osl.append(cells.tokens(_column(table, block, known.osl), known.osl, lines, least))
    if _has(table, known.session):
        taken.session += cells.names(_column(table, block, known.session), known.session, lines)
    if _has(table, known.prefix) or _has(table, known.prefix_tokens):
        _add_prefixes(taken, table, block, known)
    if _has(table, known.hashes):
        counts, ids = cells.blocks(_column(table, block, known.hashes), known.hashes, lines)
        taken.block_counts.append(counts)
        taken.block_ids.append(ids)


def _add_prefixes(taken: _Columns, table: Table, block: Block, known: Format) -> None:
    """Names of the beginnings that a block's rows share, and how long they are; one is not without the other."""
    names = cells.names(_column(table, block, known.prefix), known.prefix, block.lines)
    asked = _column(table, block, known.prefix_tokens)
    empty = [cell is None or (isinstance(cell, str) and not cell.strip()) for cell in asked]
    filled = [0 if blank else cell for blank, cell in zip(empty, asked, strict=True)]
    shared = cells.tokens(filled, known.prefix_tokens, block.lines, 0)
    named = np.fromiter((name is not None for name in names), dtype=bool, count=len(names))
    for wrong, allowed in (
        (named & np.array(empty), "must say how many tokens the requests of this prefix share"),
        (~named & (shared > 0), "needs a name in the column prefix"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise refused_cell(int(block.lines[at]), known.prefix_tokens, asked[at], allowed)
    taken.prefix += names
    taken.shared.append(shared)


def _has(table: Table, name: str) -> bool:
    return bool(name) and table.key(name) is not None


def _column(table: Table, block: Block, name: str) -> list[Any]:
    """Cells of a column; None for each where the table has none of this name."""
    key = table.key(name)
    return [None] * len(block.rows) if key is None else block.cells(key)


def _seconds(taken: _Columns) -> tuple[Seconds, Seconds]:
    """Times of all rows from the zero of the trace, and the gaps between them [s]; dates are subtracted in whole ns."""
    if taken.moment:
        since = np.concatenate(taken.moment)
        return np.asarray(since * 1e-9, dtype=np.float64), np.diff(since) * 1e-9
    times = np.concatenate(taken.time)
    return times, np.diff(times)


def _from_first(taken: _Columns, kept: Kept) -> Seconds:
    """Arrivals counted from the first kept one [s]."""
    if taken.moment:
        since = np.concatenate(taken.moment)[kept]
        return np.asarray((since - since[0]) * 1e-9, dtype=np.float64)
    times = np.concatenate(taken.time)[kept]
    return np.asarray(times - times[0])


def _sessions(taken: _Columns, kept: Kept) -> Whole:
    """The session of each kept request, numbered as they first appear."""
    if not taken.session:
        return np.full(int(kept.sum()), NONE, dtype=np.int64)
    return cells.numbered([name for name, keep in zip(taken.session, kept, strict=True) if keep])


def _prefixes(taken: _Columns, lines: Whole, isl: Whole) -> tuple[Whole, Whole]:
    """Group and shared tokens of each row."""
    if not taken.prefix:
        return np.full(len(isl), NONE, dtype=np.int64), np.zeros(len(isl), dtype=np.int64)
    group, shared = cells.numbered(taken.prefix), np.concatenate(taken.shared)
    if (shared >= isl).any():
        at = int(np.argmax(shared >= isl))
        allowed = f"must be less than the row's {isl[at]:,} input tokens"
        raise refused_cell(int(lines[at]), "prefix_tokens", int(shared[at]), allowed)
    _, first = np.unique(group, return_index=True)
    same = shared[first][group + int(group.min() < 0)]
    if (shared != same).any():
        at = int(np.argmax(shared != same))
        allowed = f"must be the {same[at]:,} tokens that this prefix has in the rows above"
        raise refused_cell(int(lines[at]), "prefix_tokens", int(shared[at]), allowed)
    return group, shared


def _hashes(taken: _Columns, lines: Whole, isl: Whole, kept: Kept) -> Hashes | None:
    """Names of the blocks of kept prompts; None when no prompt has any."""
    if not taken.block_counts:
        return None
    counts, ids = np.concatenate(taken.block_counts), np.concatenate(taken.block_ids)
    most = -(-isl // BLOCK_TOKENS)
    if (counts > most).any():
        at = int(np.argmax(counts > most))
        allowed = f"must be at most {most[at]:,}: {isl[at]:,} input tokens in blocks of {BLOCK_TOKENS}"
        raise refused(f"line {lines[at]:,}, hash_ids with {counts[at]:,} blocks", allowed)
    if not len(ids):
        return None
    ids = ids[np.repeat(kept, counts)]
    return Hashes(np.concatenate(([0], np.cumsum(counts[kept]))).astype(np.int64), ids, BLOCK_TOKENS)


def _notes(table: Table, known: Format, taken: _Columns, found: Requests) -> Iterator[str]:
    """What was understood, assumed, and left out."""
    yield f"Read as {known.title}, {table.kind}: {_many(taken.rows, 'row')}, {_many(len(found), 'request')}."
    yield _clock_note(known, taken)
    if dropped := taken.rows - len(found):
        yield f"{_many(dropped, 'row')} without input or output tokens left out: requests that failed."
    if (sessions := int(found.session.max()) + 1) > 0:
        yield f"{_many(sessions, 'session')}: each turn is taken to hold the turns before it, as far as its input reaches."
    if (groups := int(found.group.max()) + 1) > 0:
        yield f"{_many(groups, 'shared prefix', 'es')}: requests of one begin with the same tokens."
    if found.hashes is not None:
        yield f"Prompts are named in blocks of {BLOCK_TOKENS} tokens: equal names are equal text."
    read = {name.casefold() for name in (*known.required, *known.optional)}
    unread = [name for name in table.names if name.casefold() not in read]
    if unread:
        yield f"Not read: {shown(', '.join(unread), 200)}."


def _many(count: int, noun: str, plural: str = "s") -> str:
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def _clock_note(known: Format, taken: _Columns) -> str:
    if taken.style is not None:
        zone = taken.style[1]
        return f"Times are dates, {f'at {zone}' if zone else 'without a time zone'}, counted from the first request."
    return f"Times are {'milliseconds' if known.per_second == 1000.0 else 'seconds'}, counted from the first request."
