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

_ALIKE: Final = 5.0
"""How far typical gaps of one traffic may differ; in milliseconds they are then 200 to 5000 times as wide."""

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
    for at in jumps:
        before, after = _typical(gaps[: at - 1][-_NEAR:]), _typical(gaps[at : at + _NEAR])
        for unit in _UNITS:
            step = seconds[at] / unit - seconds[at - 1]
            if -before <= step <= 20.0 * before and before < _ALIKE * after / unit < _ALIKE**2 * before:
                return int(at)
    return 0


def _typical(gaps: Seconds) -> float:
    """The median gap of requests that do not come together; 0 with fewer than two."""
    apart = gaps[gaps > 0.0]
    return float(np.median(apart)) if len(apart) > 1 else 0.0
