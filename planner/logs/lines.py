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

SHORTEST: Final = 8
"""Shorter lines state nothing [characters]."""

ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Colours and other control sequences of a terminal, and control characters other than line ends and tabs."""

BREAKS: Final = re.compile(r"\r\n|\n|\r")
"""Line ends; a progress bar returns the carriage, and what follows it is a line of its own."""


@dataclass(frozen=True)
class Line:
    """One line and where it stands: 1-based, by line feeds, as an editor numbers it."""

    number: int
    text: str


@dataclass(frozen=True)
class Log:
    """Lines of a text, and all of them as one text, to see quickly whether a phrase is in it at all."""

    lines: tuple[Line, ...]
    whole: str

    def holding(self, phrases: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some phrases that are anywhere in the text."""
        return tuple(phrase for phrase in phrases if phrase in self.whole)


def log_of(text: str) -> Log:
    """Lines of a text that could state something, escapes removed, each at most `WIDEST` characters.

    Raises:
        InputError: for more than `LIMIT`.
    """
    if len(text) > LIMIT or len(text.encode("utf-8", "surrogatepass")) > LIMIT:
        allowed = f"must be at most {LIMIT // 2**20} MiB; paste the part from the engine's first line to its readiness"
        raise InputError((Fault("log", f"{len(text):,} characters", allowed),))
    lines = tuple(_numbered(text))
    return Log(lines, "\n".join(line.text for line in lines))


def _numbered(text: str) -> Iterator[Line]:
    for number, raw in enumerate(text.split("\n"), start=1):
        if len(raw) < SHORTEST:
            continue
        for part in BREAKS.split(raw) if "\r" in raw else (raw,):
            clean = ESCAPES.sub("", part[:WIDEST])
            if len(clean) >= SHORTEST:
                yield Line(number, clean)
