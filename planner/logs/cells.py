"""Rows of CSV text and of tables that terminals draw."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from planner.logs.statements import MOST_POINTS, Statement, Statements, refusal

MOST_ROWS: Final = 20_000
"""Rows of CSV that are read: a thousand runs of genai-perf with room to spare."""
_BARS: Final = re.compile(r"[┃│|]")
_SPAN: Final = re.compile(r"([^|]*)(\|+|$)")


@dataclass(frozen=True)
class Row:
    """One row of cells, and the line where it ends (1-based)."""

    cells: tuple[str, ...]
    line: int


def csv_rows(text: str) -> tuple[Row, ...]:
    """Rows of CSV text without blank lines and lines that begin with `#`.

    Raises:
        InputError: when it is no CSV, or too long.
    """
    rows = tuple(islice(_csv_rows(text), MOST_ROWS + 1))
    if len(rows) > MOST_ROWS:
        raise refusal(f"more than {MOST_ROWS:,} lines of CSV", "read fewer runs at a time")
    return tuple(row for row in rows if any(row.cells) and row.cells[0][:1] != "#")


def _csv_rows(text: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        for cells in reader:
            yield Row(tuple(cell.strip() for cell in cells), reader.line_num)
    except csv.Error:
        raise refusal("CSV with a fault", "it is cut off or its quotes do not match", reader.line_num) from None


def table_statements(rows: tuple[Row, ...]) -> tuple[Statements, ...]:
    """Statements of every row under the first one, which names the columns.

    Raises:
        InputError: for a row with another number of cells, a table without rows, or a column that stands twice.
    """
    if len(rows) < 2:
        raise refusal("a header without rows", "one row a point is expected below it")
    if len(rows) > MOST_POINTS + 1:
        raise refusal(f"{len(rows) - 1:,} rows", f"at most {MOST_POINTS:,} are read")
    head = rows[0].cells
    _once(rows[0])
    for row in rows[1:]:
        if len(row.cells) != len(head):
            raise refusal(f"number of cells {len(row.cells)}", f"the header names {len(head)} columns", row.line)
    return tuple(
        Statements(row.line, tuple(Statement(*pair, row.line) for pair in zip(head, row.cells, strict=True)))
        for row in rows[1:]
    )


def _once(head: Row) -> None:
    """Refuses two columns of one name: nobody can tell which one counts."""
    names = ["".join(name.lower().split()) for name in head.cells]
    for place, name in enumerate(names):
        if name and (first := names.index(name)) < place:
            raise refusal(f"one name over columns {first + 1} and {place + 1}", "each may stand once", head.line)


def drawn_cells(line: str) -> tuple[str, ...]:
    """Cells of a row of a drawn table, between its vertical bars."""
    return tuple(cell.strip() for cell in _BARS.split(line.strip())[1:-1])


def spanned(line: str) -> tuple[str, ...]:
    """Cells of a header row in which a cell is followed by as many bars as it has columns; each repeated so often."""
    return tuple(name.strip() for name, bars in _SPAN.findall(line) if bars for _ in bars)
