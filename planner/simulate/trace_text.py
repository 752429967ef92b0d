"""A trace before it is read: its size, and that it is text; and how a trace is refused, in one sentence with the place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.errors import Fault, InputError
from planner.simulate.traffic import MOST_REQUESTS
from planner.specs.fields import shown

MOST_BYTES: Final = 64 << 20
"""Largest trace that is read [bytes]."""

LONGEST_LINE: Final = 1 << 20
"""Longest line that is read [bytes]: ten million tokens named in blocks of 512 need less than half of it."""

MOST_LINES: Final = MOST_REQUESTS + MOST_REQUESTS // 10
"""Most lines, empty ones included: more cannot be a trace of as many rows as are read."""

_FOREIGN: Final = (
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip or xlsx"),
    (b"PK\x05\x06", "zip or xlsx"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf", "7z"),
    (b"PAR1", "Parquet"),
    (b"\xd0\xcf\x11\xe0", "xls"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
"""First bytes of what people hand in by mistake."""

_POINTER: Final = b"version https://git-lfs.github.com/spec/"


def refused(value: str, allowed: str) -> InputError:
    """A trace that is not read: what was found, and where, and what is allowed."""
    return InputError((Fault("trace", value, allowed),))


@dataclass(frozen=True)
class CellFault(Fault):
    """A fault of one cell. `line`: from 1, as an editor shows it; `column`, `cell`: as they may be repeated."""

    line: int
    column: str
    cell: str


def refused_cell(line: int, column: str, cell: object, allowed: str) -> InputError:
    """A trace that is not read because of one cell; lines count from 1, as an editor or a spreadsheet shows them."""
    name, said = shown(column, 40), shown(cell, 40)
    return InputError((CellFault("trace", f"line {line:,}, {name} {said}", allowed, line, name, said),))


def sized(size: int, name: str, most: int = MOST_BYTES) -> None:
    """Refuse a trace by its size, before anything of it is read.

    Args:
        size, most: what it has and what is allowed [bytes].

    Raises:
        InputError: when it is too large.
    """
    if size > most:
        allowed = f"must be at most {most:,} bytes; cut it to fewer rows"
        raise refused(f"{shown(name, 40)} with {size:,} bytes", allowed)


def readable(data: bytes) -> None:
    """Refuse what is no text, or no text of lines that a trace may have.

    Raises:
        InputError: when it is empty, no text in UTF-8, or has lines too long or too many.
    """
    if not data or data.isspace():
        raise refused("empty", "must hold one request a row, as CSV below column names or as one JSON object a line")
    for first, kind in _FOREIGN:
        if data.startswith(first):
            raise refused(
                f"a {kind} file", "must be plain text in UTF-8, CSV or JSON Lines; unpack it or save it as such"
            )
    if data.startswith(_POINTER):
        raise refused("a Git LFS pointer", "is not the trace itself; download the file that it stands for")
    if (at := data.find(b"\0")) >= 0:
        raise refused(f"line {_line(data, at):,} holds a zero byte", "must be plain text in UTF-8, CSV or JSON Lines")
    _shaped(data)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"line {_line(data, error.start):,} is not UTF-8"
        raise refused(where, "must be plain text in UTF-8, CSV or JSON Lines") from None


def _shaped(data: bytes) -> None:
    """Refuse by its lines what would take long to be refused row by row."""
    if len(data) <= LONGEST_LINE:
        return
    found = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero((found == ord("\n")) | (found == ord("\r")))
    newlines = max(data.count(b"\n"), data.count(b"\r"))
    if newlines > MOST_LINES:
        raise refused(f"{newlines:,} lines", f"must have at most {MOST_REQUESTS:,} rows; cut it to fewer")
    lengths = np.diff(ends, prepend=-1, append=len(data)) - 1
    at = int(lengths.argmax())
    if lengths[at] > LONGEST_LINE:
        line = _line(data, int(ends[at - 1]) + 1) if at else 1
        raise refused(
            f"line {line:,} with {lengths[at]:,} bytes", f"must be at most {LONGEST_LINE:,} bytes, one request"
        )


def _line(data: bytes, at: int) -> int:
    """The line, from 1, that a byte stands in."""
    return data.count(b"\n", 0, at) + 1
