"""Times of a trace: in order, and in one unit from one moment."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.simulate.requests import Seconds, Whole
from planner.simulate.trace_text import refused

_YEARS: Final = 10.0
_YEAR: Final = 365.25 * 86_400.0

_JUMP: Final = 500.0
"""How many times a value grows at the least from one row to the next when seconds become milliseconds."""

_MANY: Final = 8
"""Gaps on both sides of a jump from which on there are many."""

_FEW_ALIKE, _FEW_ON = 2.0, 3.0
_MANY_ALIKE, _MANY_ON = 5.0, 8.0
"""How far typical gaps of one traffic may differ, and how many typical gaps the next one may be, by how many were seen."""

_UNITS: Final = (1e3, 1e6, 1e9)
_NEAR: Final = 64
"""Gaps that are looked at before and after a jump."""


def in_order(seconds: Seconds, gaps: Seconds, lines: Whole) -> None:
    """Refuse times that fall, change their unit, or count from two moments.

    Args:
        seconds: times as the trace counts them, from its own zero [s].
        gaps: times from each row to the next [s]: those of dates are taken before they are rounded.

    Raises:
        InputError: for the first row where they do.
    """
    if (gaps < 0.0).any():
        at = int(np.argmax(gaps < 0.0)) + 1
        hint = " and give every time in one unit" if 0.0 < _JUMP * seconds[at] <= seconds[at - 1] else ""
        raise refused(
            f"line {lines[at]:,}",
            f"is {-gaps[at - 1]:,.6g} s before the row above it; sort the trace by time{hint}",
        )
    if (gaps > _YEARS * _YEAR).any():
        at = int(np.argmax(gaps > _YEARS * _YEAR)) + 1
        raise refused(
            f"line {lines[at]:,}",
            f"is {gaps[at - 1] / _YEAR:,.0f} years after the row above it; all times must count from one moment in one unit",
        )
    changed = _changed_unit(seconds, gaps)
    if changed:
        allowed = "and those below it are in another unit of time than the rows above; give every time in one unit"
        raise refused(f"line {lines[changed]:,}", allowed)


def _changed_unit(seconds: Seconds, gaps: Seconds) -> int:
    """The row from which on times are in a finer unit than above; 0 when none is.

    A burst and a pause look alike: values jump and gaps widen. A change of unit also goes on where it was: divided by
    1000 (or 10⁶, 10⁹) the jump is an ordinary gap, and so are the gaps after it.
    """
    jumps = np.flatnonzero((seconds[:-1] > 0.0) & (seconds[1:] >= _JUMP * seconds[:-1])) + 1
    return next((int(at) for at in jumps if _goes_on(seconds, gaps, int(at))), 0)


def _goes_on(seconds: Seconds, gaps: Seconds, at: int) -> bool:
    """Whether the rows from here on, divided by a unit, go on as the rows above did.

    Gaps of bursts are of every size before and after; those of another unit are all far wider than before.
    """
    above, below = (part[part > 0.0] for part in (gaps[: at - 1][-_NEAR:], gaps[at : at + _NEAR]))
    if min(len(above), len(below)) < 2:
        return False
    if np.quantile(below, 0.1) <= np.quantile(above, 0.9):
        return False
    before, after = float(np.median(above)), float(np.median(below))
    many = min(len(above), len(below)) >= _MANY
    alike, on = (_MANY_ALIKE, _MANY_ON) if many else (_FEW_ALIKE, _FEW_ON)
    for unit in _UNITS:
        step = seconds[at] / unit - seconds[at - 1]
        if -0.01 * before <= step <= on * before and before <= alike * after / unit <= alike**2 * before:
            return True
    return False
