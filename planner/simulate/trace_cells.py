"""Cells of a trace as numbers, lengths, moments, names and blocks; the first that is none is refused with its line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from planner.simulate.requests import Seconds, Whole
from planner.simulate.trace_text import refused_cell

LONGEST: Final = 10_000_000
"""Most tokens of an input or an output."""

_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DATE, _TIME = r"(?:19|20)\d\d-\d\d-\d\d", r"\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_MOMENT: Final = re.compile(rf"{_DATE}([ T]){_TIME}(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_MOMENTS: Final = "must be a date and time such as 2023-11-16 18:17:03.9799600"

Style: TypeAlias = tuple[str, str]
"""How a moment is written: what parts date and time, and the time zone."""


def numbers(cells: Sequence[Any], column: str, lines: Whole) -> Seconds:
    """Cells as finite numbers.

    Raises:
        InputError: for the first that is none.
    """
    text = "".join(cell for cell in cells if isinstance(cell, str))
    if set(map(type, cells)) <= {int, float, str} and text.isascii() and "_" not in text:
        try:
            found = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except (ValueError, OverflowError):
            found = np.full(1, np.nan)
        if np.isfinite(found).all():
            return found
    at = _first(cells, lambda cell: not _is_number(cell))
    raise refused_cell(int(lines[at]), column, cells[at], "must be a number")


def times(cells: Sequence[Any], column: str, lines: Whole, unit: str, most: float) -> Seconds:
    """Cells as times from 0 to `most`, in the trace's own unit.

    Raises:
        InputError: for the first that is none.
    """
    found = numbers(cells, column, lines)
    _within(cells, column, lines, (found < 0.0) | (found > most), f"must be a time in {unit} from 0 to {most:,.0f}")
    return found


def tokens(cells: Sequence[Any], column: str, lines: Whole, least: int) -> Whole:
    """Cells as whole tokens from `least` to 10 million.

    Raises:
        InputError: for the first that is none.
    """
    found = numbers(cells, column, lines)
    wrong = (found < least) | (found > LONGEST) | (found != np.floor(found))
    _within(cells, column, lines, wrong, f"must be a whole number of tokens from {least} to {LONGEST:,}")
    return found.astype(np.int64)


def moments(cells: Sequence[Any], column: str, lines: Whole, style: Style | None) -> tuple[Whole, Style]:
    """Cells as moments [ns], and how they are written; the zone, one for all of a trace, moves none against another.

    Args:
        style: how the moments before were written; None = these are the first.

    Raises:
        InputError: for the first that is no moment, or is written in another way than those before it.
    """
    wanted = style or _style(cells[0])
    if wanted is None:
        raise refused_cell(int(lines[0]), column, cells[0], _MOMENTS)
    written = [cell.strip(" ") if isinstance(cell, str) else "" for cell in cells]
    every = re.compile(f"(?:{_DATE}{re.escape(wanted[0])}{_TIME}{re.escape(wanted[1])}\n)*", re.ASCII)
    joined = "\n".join([*written, ""])
    if joined.count("\n") != len(cells) or not every.fullmatch(joined):
        at = _first(cells, lambda cell: _style(cell) != wanted)
        allowed = "is written in another way or time zone than the rows above it" if _style(cells[at]) else _MOMENTS
        raise refused_cell(int(lines[at]), column, cells[at], allowed)
    bare = [cell[: len(cell) - len(wanted[1])] for cell in written]
    try:
        return np.array(bare, dtype="datetime64[ns]").astype(np.int64), wanted
    except ValueError:
        at = _first(bare, _no_date)
        raise refused_cell(int(lines[at]), column, cells[at], _MOMENTS) from None


def _style(cell: Any) -> Style | None:
    """How a moment is written; None when it is none."""
    found = _MOMENT.fullmatch(cell.strip(" ")) if isinstance(cell, str) else None
    return (found[1], found[2] or "") if found else None


def _no_date(written: str) -> bool:
    """Whether the calendar or the clock has no such moment."""
    try:
        np.datetime64(written, "ns")
    except ValueError:
        return True
    return False


def names(cells: Sequence[Any], column: str, lines: Whole) -> list[str | None]:
    """Cells as names; None for an empty one.

    Raises:
        InputError: for the first that is neither text nor a whole number.
    """
    if not set(map(type, cells)) <= {str, int, type(None)}:
        at = _first(cells, lambda cell: type(cell) not in {str, int, type(None)})
        raise refused_cell(int(lines[at]), column, cells[at], "must be a name or a whole number, or empty")
    return [None if cell is None else str(cell).strip() or None for cell in cells]


def numbered(found: Sequence[str | None]) -> Whole:
    """Names as numbers in the order in which they first appear; NONE for no name."""
    codes, _ = pd.factorize(np.array(found, dtype=object))
    return np.asarray(codes, dtype=np.int64)


def blocks(cells: Sequence[Any], column: str, lines: Whole) -> tuple[Whole, Whole]:
    """How many block names each cell holds, and all of them one behind the other; an empty cell holds none.

    Raises:
        InputError: for the first that is no list of whole numbers.
    """
    lists = [_listed(cell) for cell in cells]
    allowed = "must be a list of whole numbers, one for each block of the input"
    wrong = np.fromiter((each is None for each in lists), dtype=bool, count=len(lists))
    _within(cells, column, lines, wrong, allowed)
    held = [each for each in lists if each is not None]
    counts = np.fromiter(map(len, held), dtype=np.int64, count=len(held))
    return counts, np.fromiter(chain.from_iterable(held), dtype=np.int64, count=int(counts.sum()))


def _listed(cell: Any) -> list[int] | None:
    """A cell as a list of names of blocks; None when it is none."""
    if isinstance(cell, str) and cell.strip():
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return None
    if cell is None or isinstance(cell, str):
        return []
    if not isinstance(cell, list) or not set(map(type, cell)) <= {int}:
        return None
    return cell if not cell or (min(cell) >= 0 and max(cell) < 1 << 63) else None


def _is_number(cell: Any) -> bool:
    if isinstance(cell, str):
        return _NUMBER.fullmatch(cell.strip(" \t")) is not None and math.isfinite(float(cell))
    if type(cell) not in {int, float}:
        return False
    try:
        return math.isfinite(float(cell))
    except OverflowError:
        return False


def _first(cells: Sequence[Any], wrong: Callable[[Any], bool]) -> int:
    """Where the first wrong cell stands."""
    return next((n for n, cell in enumerate(cells) if wrong(cell)), 0)


def _within(cells: Sequence[Any], column: str, lines: Whole, wrong: npt.NDArray[np.bool_], allowed: str) -> None:
    """Refuse the first cell that is wrong, if any is."""
    if wrong.any():
        at = int(np.argmax(wrong))
        raise refused_cell(int(lines[at]), column, cells[at], allowed)
