"""CSV and JSON Lines as blocks of cells: nothing is guessed, nothing is filled in, and no cell is more than data."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import numpy as np

from planner.simulate.requests import Whole
from planner.simulate.trace_text import refused
from planner.specs.fields import shown

BLOCK: Final = 1 << 16
"""Rows that are held as text at a time."""

MOST_COLUMNS: Final = 100

_FIRST: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(.)", re.DOTALL)

_JSON: Final = "must hold one JSON object a line"

Row: TypeAlias = "list[str] | dict[str, Any]"


@dataclass(frozen=True)
class Block:
    """Rows of a table.

    Attributes:
        rows: cells by position (CSV) or by key (JSON Lines).
        lines: the line of the file, from 1, that each row stands in.
    """

    rows: Sequence[Any]
    lines: Whole

    def cells(self, key: int | str) -> list[Any]:
        """A column's cells; None where a JSON object has no such key."""
        if isinstance(key, int):
            return [row[key] for row in self.rows]
        return [row.get(key) for row in self.rows]


@dataclass(frozen=True)
class Table:
    """A table that is read once, block by block.

    Attributes:
        names: column names, or keys of the first object.
        kind: "CSV" or "JSON Lines".
    """

    names: tuple[str, ...]
    blocks: Iterator[Block]
    kind: str

    def key(self, name: str) -> int | str | None:
        """How a column is asked for; None when a CSV has none of this name, whose case does not matter."""
        folded = [found.casefold() for found in self.names]
        at = folded.index(name.casefold()) if name.casefold() in folded else None
        if self.kind == "CSV":
            return at
        return name if at is None else self.names[at]


def table_of(data: bytes) -> Table:
    """The table that a text in UTF-8 holds: JSON Lines when it begins with a brace, else CSV.

    Raises:
        InputError: when it is neither; blocks raise it for the rows that they hold.
    """
    first = _FIRST.match(data)
    if first and first[1] == b"[":
        raise refused("a JSON array", f"{_JSON}, not an array of them")
    return _json_lines(data) if first and first[1] == b"{" else _csv(data)


def _lines(data: bytes, newline: str) -> io.TextIOWrapper:
    """A text's lines, one at a time: neither the text nor the list of them is held."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline=newline)


def _csv(data: bytes) -> Table:
    reader = csv.reader(_lines(data, ""), strict=True)
    names: list[str] = []
    while not names:
        names = next(iter(_taken(reader, 1)), ["", ""])
    if any("\n" in name or "\r" in name for name in names):
        raise refused("a column name over several lines", "must have each row on a line of its own")
    names = [name.strip() for name in names]
    _once(names, f"line {reader.line_num:,}")
    return Table(tuple(names), _csv_blocks(reader, len(names)), "CSV")


def _csv_blocks(reader: Any, width: int) -> Iterator[Block]:
    before = reader.line_num
    while rows := _taken(reader, BLOCK):
        lines = np.arange(before + 1, before + 1 + len(rows), dtype=np.int64)
        if reader.line_num != before + len(rows):
            at = next((n for n, row in enumerate(rows) if any("\n" in cell or "\r" in cell for cell in row)), 0)
            allowed = "must not have a line break inside quotes: each row stands on a line of its own"
            raise refused(f"line {lines[at]:,}", allowed)
        before = reader.line_num
        if not all(rows):
            lines = lines[[bool(row) for row in rows]]
            rows = [row for row in rows if row]
        if rows and set(map(len, rows)) != {width}:
            at = next(n for n, row in enumerate(rows) if len(row) != width)
            raise refused(
                f"line {lines[at]:,} with {len(rows[at]):,} cells", f"must have {width:,} cells, one a column"
            )
        if rows:
            yield Block(rows, lines)


def _taken(reader: Any, most: int) -> list[list[str]]:
    """The next rows of a CSV, empty ones included."""
    try:
        return list(islice(reader, most))
    except csv.Error as error:
        raise refused(f"line {reader.line_num:,}", f"must be CSV with commas: {error}") from None


def _json_lines(data: bytes) -> Table:
    blocks = _json_blocks(data)
    first = next(blocks)
    names = tuple(first.rows[0])
    _once(names, f"line {first.lines[0]:,}")
    return Table(names, chain((first,), blocks), "JSON Lines")


def _json_blocks(data: bytes) -> Iterator[Block]:
    numbered = ((n, line) for n, line in enumerate(_lines(data, "\n"), 1) if not line.isspace())
    while part := list(islice(numbered, BLOCK)):
        lines = np.array([n for n, _ in part], dtype=np.int64)
        rows = [_object(line, n) for n, line in part]
        _keys_once(rows, part)
        yield Block(rows, lines)


def _object(line: str, at: int) -> dict[str, Any]:
    """The JSON object of a line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise refused(f"line {at:,}, {shown(line.strip(), 40)}", f"{_JSON}; this line is not JSON") from None
    if not isinstance(found, dict):
        raise refused(f"line {at:,}, {shown(line.strip(), 40)}", f"{_JSON}; this line holds something else")
    return found


def _keys_once(rows: Sequence[dict[str, Any]], part: Sequence[tuple[int, str]]) -> None:
    """Refuse an object with a key twice; where the text holds as many keys as the objects there is none."""
    for name in islice(rows[0], MOST_COLUMNS):
        spelt, held = f'"{name}"', sum(name in row for row in rows)
        if sum(line.count(spelt) for _, line in part) > held:
            for at, line in part:
                _pairs_once(line, at)


def _pairs_once(line: str, at: int) -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise refused(f"line {at:,}, {shown(line.strip(), 40)}", "must not hold a key twice")
        return found

    json.loads(line, object_pairs_hook=once)


def _once(names: Sequence[str], where: str) -> None:
    """Refuse a header with too many columns, or with one twice."""
    if len(names) > MOST_COLUMNS:
        raise refused(f"{where} with {len(names):,} columns", f"must have at most {MOST_COLUMNS} columns")
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise refused(f"{where}, column {shown(name, 40)}", "stands twice; each column must have a name of its own")
        seen.add(name.casefold())
