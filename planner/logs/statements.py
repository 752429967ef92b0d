"""What a result says before anything is made of it: names and values, each with its line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from planner.errors import Fault, InputError
from planner.specs.fields import shown

Stated: TypeAlias = str | int | float | bool | None
"""A value as the text has it: a JSON scalar, or text of a table's cell."""

UNSTATED: Final = frozenset({"", "n/a", "none", "null", "-", "not set", "unlimited", "trace"})
"""Cells that say that there is no value."""

_NUMBER: Final = re.compile(
    r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,400})(?:\.[0-9]{0,400})?(?:[eE][-+]?[0-9]{1,4})?", re.ASCII
)
_ENDLESS: Final = re.compile(r"[-+]?(?:inf|infinity|nan)", re.ASCII | re.IGNORECASE)
MOST_POINTS: Final = 200
"""Runs of one text that are read."""
_NESTED: Final = 12
"""Objects inside objects that are looked into; every format's figures lie within eight."""


def refusal(what: str, allowed: str, line: int = 0) -> InputError:
    """The error of a text that is not taken; `what` is shortened and made printable, `line` counts from 1 (0 = all)."""
    return InputError((Fault(f"line {line}" if line else "results", shown(what), allowed),))


@dataclass(frozen=True)
class Statement:
    """One name with its value, and the line where it stands (1-based; 0 = the file)."""

    name: str
    value: Stated
    line: int


@dataclass(frozen=True)
class Statements:
    """All that one run of a load test says; of a name that is said twice the later value counts."""

    line: int
    rows: tuple[Statement, ...]

    @cached_property
    def _by_name(self) -> dict[str, Statement]:
        return {row.name: row for row in self.rows}

    @property
    def names(self) -> Iterable[str]:
        """Every name that is said."""
        return self._by_name.keys()

    def find(self, *names: str) -> Statement | None:
        """The first of these names that is said with a value."""
        found = (self._by_name.get(name) for name in names)
        return next((row for row in found if row is not None and not _unstated(row.value)), None)

    def text(self, *names: str) -> str:
        """The first of these names as text; empty when none is said."""
        row = self.find(*names)
        return "" if row is None else str(row.value).strip()


def amount(row: Statement) -> float:
    """The number that a statement holds; may be infinite or not a number.

    Raises:
        InputError: when it holds something else, which is not repeated: it may be what nobody meant to paste.
    """
    value = row.value
    if isinstance(value, str) and (text := value.strip()):
        if _NUMBER.fullmatch(text):
            return float(text.replace(",", ""))
        if _ENDLESS.fullmatch(text):
            return float(text)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return _real(value)
    raise refusal(row.name, "a number is expected here", row.line)


def is_number(row: Statement) -> bool:
    """Whether a statement holds a number."""
    try:
        amount(row)
    except InputError:
        return False
    return True


def statements(document: dict[str, Any], line: int) -> Statements:
    """A JSON object with its nested objects as names joined by dots; of lists only the first text is kept."""
    return Statements(line, tuple(Statement(name, value, line) for name, value in _flat(document, "", _NESTED)))


def _flat(document: dict[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Stated]]:
    for key, value in document.items():
        if isinstance(value, dict):
            if depth:
                yield from _flat(value, f"{prefix}{key}.", depth - 1)
        elif isinstance(value, list):
            if value and isinstance(value[0], str):
                yield prefix + key, value[0]
        else:
            yield prefix + key, value


def _real(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return math.inf


def _unstated(value: Stated) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in UNSTATED)
