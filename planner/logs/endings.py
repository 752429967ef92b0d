"""How a start ended: the engine was ready, something stopped it, or the text does not reach that far."""

from __future__ import annotations

import re
from typing import Final

from planner.logs.lines import Line, Log

OK: Final = "ok"
OUT_OF_MEMORY: Final = "out of memory"
NO_ROOM: Final = "no room for a cache"
TOO_LONG: Final = "length above the cache"
TAKEN: Final = "memory taken before the start"
UNREADY: Final = "readiness not reached in this text"

EVENTS: Final = (
    (re.compile(r"No available memory|try to increase --mem-fraction-static"), NO_ROOM),
    (re.compile(r"leave no GPU memory for the KV cache"), NO_ROOM),
    (
        re.compile(r"KV cache is needed|that can be stored in KV cache|must be large enough to process at least"),
        TOO_LONG,
    ),
    (re.compile(r"less than desired GPU memory utilization"), TAKEN),
    (re.compile(r"(?<![-A-Za-z])out of memory|OutOfMemoryError"), OUT_OF_MEMORY),
    (re.compile(r"Application startup complete|ready to roll|ready to serve|init engine \(profile"), OK),
)
"""What ends a start, or completes it; the last one in the text counts. Checked in this order within a line."""


def outcome_of(log: Log) -> tuple[str, int]:
    """How the start ended and on which line; at line 0 that no line says so."""
    return next(((word, log.lines[at].number) for at, word in reversed(ends(log))), (UNREADY, 0))


def ends(log: Log) -> tuple[tuple[int, str], ...]:
    """Every place among the lines at which a start ends or is complete, with how."""
    present = [event for event in EVENTS if event[0].search(log.whole)]
    told = ((at, _ending(line, present)) for at, line in enumerate(log.lines if present else ()))
    return tuple((at, word) for at, word in told if word)


def _ending(line: Line, present: list[tuple[re.Pattern[str], str]]) -> str:
    return next((word for pattern, word in present if pattern.search(line.text)), "")
