"""JSON in a pasted text: one object, a list of objects, or one object after another (JSON lines), with their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Final

from planner.logs.statements import MOST_POINTS, refusal

DEPTH: Final = 24
"""Deepest nesting that is read; the deepest format (GuideLLM with single requests) uses eleven levels."""

_OPENING: Final = re.compile(r"\s*(?:\[\s*)?\{")
_SPACE: Final = re.compile(r"[\s,]*")
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A string, whole or cut off; possessive, so that each character is looked at once."""
_BRACKET: Final = re.compile(r"[\[\]{}]")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True)
class Document:
    """One JSON object of a text, and the line at which it begins (1-based)."""

    value: dict[str, Any]
    line: int


def is_json(text: str) -> bool:
    """Whether a text begins as JSON objects do."""
    return _OPENING.match(text) is not None


def documents(text: str) -> tuple[Document, ...]:
    """The objects of a text, in order.

    Raises:
        InputError: when it is cut off, is not JSON, or is nested too deep.
    """
    if _depth(text) > DEPTH:
        raise refusal("JSON nested too deep", f"at most {DEPTH} levels are read")
    found = tuple(islice(_objects(text), MOST_POINTS + 1))
    if len(found) > MOST_POINTS:
        raise refusal(f"more than {MOST_POINTS:,} JSON objects", "read fewer runs at a time")
    return found


def _objects(text: str) -> Iterator[Document]:
    place = line = 0
    while (start := _space_end(text, place)) < len(text):
        line += text.count("\n", place, start)
        value, end = _value(text, start, line + 1)
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, dict) for item in items):
            raise refusal("JSON that is not an object", "each result must be one JSON object", line + 1)
        yield from (Document(item, line + 1) for item in items)
        line += text.count("\n", start, end)
        place = end


def _space_end(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _value(text: str, start: int, line: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if text[error.pos :].strip() and not error.msg.startswith("Unterminated"):
            raise refusal("JSON with a fault", "it cannot be read from here on", _line(text, error.pos)) from None
        raise refusal("JSON that is cut off", "its end is missing; paste the whole file", line) from None
    except (ValueError, RecursionError):
        raise refusal("JSON with a number of thousands of digits", "it cannot be read", line) from None


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _depth(text: str) -> int:
    """Deepest nesting of a JSON text; brackets inside of its strings do not count."""
    brackets = _BRACKET.findall(_STRING.sub("", text))
    return max(accumulate(1 if bracket in "[{" else -1 for bracket in brackets), default=0)
