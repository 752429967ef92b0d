"""Lines of a pasted log, made safe to search: bounded, without terminal escapes, NUL and progress bars' carriage returns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.errors import Fault, InputError

LIMIT: Final = 4 * 2**20
"""Longest text that is read [characters, and bytes as UTF-8]."""

WIDEST: Final = 32_768
"""Longest part of a line that is searched [characters]; configurations of engines stay below 20,000."""

ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Colours and other control sequences of a terminal, and control characters other than line ends and tabs."""

BREAKS: Final = re.compile(r"\r\n|\n|\r")
"""Line ends; a progress bar returns the carriage, and what follows it is a line of its own."""


@dataclass(frozen=True)
class Line:
    """One line and where it stands: 1-based, by line feeds, as an editor numbers it."""

    number: int
    text: str


def lines_of(text: str) -> tuple[Line, ...]:
    """Lines of a text that hold anything, escapes removed, each at most `WIDEST` characters.

    Raises:
        InputError: for more than `LIMIT`.
    """
    if len(text) > LIMIT or len(text.encode("utf-8", "surrogatepass")) > LIMIT:
        allowed = f"must be at most {LIMIT // 2**20} MiB; paste the part from the engine's first line to its readiness"
        raise InputError((Fault("log", f"{len(text):,} characters", allowed),))
    return tuple(_numbered(text))


def _numbered(text: str) -> Iterator[Line]:
    for number, raw in enumerate(text.split("\n"), start=1):
        for part in BREAKS.split(raw) if "\r" in raw else (raw,):
            clean = ESCAPES.sub("", part[:WIDEST])
            if clean.strip():
                yield Line(number, clean)
