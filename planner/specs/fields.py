"""What a scenario field may hold: menus, ranges, and the sentence that says so.

Types here are the one source; the page, the command line's help and every refusal read them through `FieldText`.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic.fields import FieldInfo

from planner.units import unit_of

EngineId: TypeAlias = Literal["vllm", "sglang", "trtllm", "vllm-ascend"]
ProfileId: TypeAlias = Literal["measured", "textbook", "custom"]
WeightPrecision: TypeAlias = Literal["bf16", "fp8", "fp8-block", "int8", "int4", "nvfp4", "mxfp4"]
CachePrecision: TypeAlias = Literal["bf16", "fp8", "int8"]
PrefillMode: TypeAlias = Literal["colocated", "excluded", "disaggregated"]
PriceKind: TypeAlias = Literal["on-demand", "reserved", "spot"]
Language: TypeAlias = Literal["en", "zh"]


def _no_bool(value: object) -> object:
    """Python takes True for 1; a version does not."""
    if isinstance(value, bool):
        raise ValueError("a version is a number")
    return value


LinkVersion: TypeAlias = Annotated[Literal[1], BeforeValidator(_no_bool)]

_SWITCH: Final = {"on": True, "off": False}


def _from_switch(value: object) -> object:
    return _SWITCH.get(value, value) if isinstance(value, str) else value


def _to_switch(value: bool) -> str:
    return "on" if value else "off"


Switch: TypeAlias = Annotated[bool, BeforeValidator(_from_switch), PlainSerializer(_to_switch, return_type=str)]
"""A bool in the code, `on` or `off` wherever it is written down."""

Degree: TypeAlias = Annotated[int, Field(ge=1, le=1024)]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=10_000_000)]
TokensOrZero: TypeAlias = Annotated[int, Field(ge=0, le=10_000_000)]
Length: TypeAlias = Annotated[int, Field(ge=2, le=20_000_000)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Spare: TypeAlias = Annotated[int, Field(ge=0, le=10_000)]
Experts: TypeAlias = Annotated[int, Field(ge=0, le=4096)]
DraftTokens: TypeAlias = Annotated[int, Field(ge=0, le=32)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
PositiveShare: TypeAlias = Annotated[float, Field(ge=0.01, le=1)]
Skew: TypeAlias = Annotated[float, Field(ge=1, le=1024)]
Rate: TypeAlias = Annotated[float, Field(ge=0, le=1_000_000)]
Milliseconds: TypeAlias = Annotated[float, Field(ge=0.001, le=3_600_000)]
Percentile: TypeAlias = Annotated[float, Field(ge=1, le=99.99)]
Dollars: TypeAlias = Annotated[float, Field(ge=0, le=100_000)]

Identifier: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9.\-]{0,78}[a-z0-9])?\z")]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9 ._()&+/\-]{0,58}[A-Za-z0-9.)])?\z")]
Token: TypeAlias = Annotated[str, Field(min_length=3, max_length=131_072, pattern=r"^[0-9][A-Za-z0-9_\-]+\z")]

Kind: TypeAlias = Literal["whole", "number", "switch", "menu", "text"]


@dataclass(frozen=True)
class FieldText:
    """Everything a person may be told about one scenario field.

    Attributes:
        kind: `whole` and `number` have `low` and `high`; `menu` and `switch` have `options`; `text` has neither.
        above: whether `low` itself is refused.
        unit: empty for plain ratios, degrees and words.
        optional: whether the field may be left empty (then the planner or the engine chooses).
    """

    name: str
    meaning: str
    unit: str
    kind: Kind
    optional: bool
    default: str | int | float | bool | None
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()
    above: bool = False

    @property
    def allowed(self) -> str:
        """What is allowed, as the second half of a sentence about a refused value."""
        return f"must be {self._values}{', or left out' if self.optional else ''}"

    @property
    def _values(self) -> str:
        unit = f" ({self.unit})" if self.unit else ""
        match self.kind:
            case "menu" | "switch" if len(self.options) == 1:
                return self.options[0]
            case "menu" | "switch":
                return f"one of {', '.join(self.options)}"
            case "text":
                return TEXT_RULES[self.name]
            case _:
                noun = "a whole number" if self.kind == "whole" else "a number"
                if self.above:
                    return f"{noun} above {plain(self.low)} and at most {plain(self.high)}{unit}"
                return f"{noun} from {plain(self.low)} to {plain(self.high)}{unit}"


TEXT_RULES: Final = {
    "model": "a model's id from the catalogue, or custom",
    "gpu": "an accelerator's id from the catalogue",
    "prefill_gpu": "an accelerator's id from the catalogue",
    "provider": "a provider's name of at most 60 letters, digits, spaces and . _ ( ) & + / -",
    "c": "a catalogue version (lower-case letters, digits, dots and hyphens)",
    "x": "a token made by this planner: a version digit, then base64url text of at most 131,072 characters in all",
}


def plain(value: float | None) -> str:
    """A bound in full, with thousands separators and no needless decimals."""
    if value is None:
        return "any"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,}"


def field_text(name: str, hint: Any, meaning: str, default: str | int | float | bool | None) -> FieldText:
    """Read a field's type hint into words."""
    bare, optional = _without_none(hint)
    base, extras = _base(bare)
    kind, options = _kind(base)
    above = next((float(extra.gt) for extra in extras if isinstance(extra, Gt)), None)  # type: ignore[arg-type]
    low = next((float(extra.ge) for extra in extras if isinstance(extra, Ge)), above)  # type: ignore[arg-type]
    high = next((float(extra.le) for extra in extras if isinstance(extra, Le)), None)  # type: ignore[arg-type]
    return FieldText(name, meaning, unit_of(name), kind, optional, default, low, high, options, above is not None)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    inner = [arm for arm in get_args(hint) if arm is not type(None)]
    return inner[0], True


def _base(hint: Any) -> tuple[Any, tuple[object, ...]]:
    if get_origin(hint) is not Annotated:
        return hint, ()
    base, *extras = get_args(hint)
    return base, tuple(_flat(extras))


def _flat(extras: Iterable[object]) -> Iterator[object]:
    for extra in extras:
        yield from extra.metadata if isinstance(extra, FieldInfo) else (extra,)


def _kind(base: Any) -> tuple[Kind, tuple[str, ...]]:
    if get_origin(base) is Literal:
        return "menu", tuple(str(option) for option in get_args(base))
    if base is bool:
        return "switch", tuple(_SWITCH)
    kinds: dict[type, Kind] = {int: "whole", float: "number", str: "text"}
    return kinds[base], ()


def options_of(menu: object) -> tuple[str, ...]:
    """Words of a menu, in its order."""
    return tuple(str(option) for option in get_args(menu))


def near(word: str, options: Iterable[str]) -> str:
    """` (did you mean …?)` when one of the options is close to the word, else nothing."""
    return _near(word.lower()[:80], tuple(options))


@lru_cache(maxsize=1024)
def _near(word: str, options: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def shown(value: object, limit: int = 80) -> str:
    """A refused value as it may be repeated: at most `limit` characters, unprintable ones escaped."""
    text = "empty" if value is None or value == "" else str(value)[: limit + 1]
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"
