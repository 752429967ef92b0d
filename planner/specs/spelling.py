"""Scenario values as text and back: one spelling for links, CSV cells and presets, stricter than the widgets.

Numbers are plain decimals: no exponent, sign, underscore, space, leading zero, `nan` or `inf`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import Final, TypeAlias, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from planner.errors import InputError
from planner.specs.fields import Kind
from planner.specs.scenario import Scenario, describe, refusal

Value: TypeAlias = str | int | float | bool | None

_WHOLE: Final = re.compile(r"(?:0|[1-9][0-9]{0,19})", re.ASCII)
_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]{0,19})(?:\.[0-9]{1,400})?", re.ASCII)


def spell(value: Value) -> str:
    """A scenario value as it stands in links and cells; empty for None. Shortest digits that read back the same."""
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case float():
            return decimal(value)
        case _:
            return str(value)


def decimal(value: float) -> str:
    """The shortest decimal that reads back as the same float, without exponent or needless zeros."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def read(field: str, text: str) -> Value:
    """The value that a text stands for.

    Raises:
        InputError: when the field does not exist, or the text is empty, malformed, off the menu or out of range.
    """
    if field not in Scenario.model_fields:
        raise InputError((refusal(field, text),))
    return check(field, parsed("whole" if field == "v" else describe(field).kind, text), text)


def check(field: str, value: object, written: object) -> Value:
    """A value if its field allows it; `written` is what the refusal repeats.

    Raises:
        InputError: when the field does not allow it.
    """
    try:
        return _adapter(field).validate_python(value)
    except ValidationError:
        raise InputError((refusal(field, written),)) from None


def parsed(kind: Kind, text: str) -> Value:
    """Text as a field's kind of value; text that is malformed for its kind stays text, for its field to refuse."""
    if kind == "whole":
        return int(text) if _WHOLE.fullmatch(text) else text
    if kind == "number":
        return float(text) if _NUMBER.fullmatch(text) else text
    return text


@cache
def _adapter(field: str) -> TypeAdapter[Value]:
    hint = get_type_hints(Scenario, include_extras=True)[field]
    return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))
