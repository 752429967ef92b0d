"""Typed, bounded reading of a configuration's fields; every fault names its key.

`Fields` also remembers which keys were looked at. Whatever a builder did not look at is judged afterwards by
`hf_keys.leftovers`, so a key cannot change a model's memory or speed without some code having read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.errors import ModelConfigError

WIDEST = 10**7
"""Largest size that a field may hold unless its reader says otherwise (elements)."""

LAYERS = 1000
"""Most layers that a configuration may hold."""


class Fields:
    """The fields of one configuration section.

    Args:
        values: the section, as parsed.
        scope: prefix of its keys in messages, for example `text_config.`.
    """

    def __init__(self, values: Mapping[str, object], scope: str = "") -> None:
        self._values = values
        self._seen: set[str] = set()
        self.scope = scope

    def refuse(self, key: str, reason: str) -> ModelConfigError:
        """The error for a key of this section."""
        return ModelConfigError(self.scope + key[:80], shown(self._values.get(key)), reason)

    def get(self, key: str) -> object:
        """The raw value (`None` when absent), and a mark that it was looked at."""
        self._seen.add(key)
        return self._values.get(key)

    def has(self, key: str) -> bool:
        """Whether the key holds something other than null."""
        return self.get(key) is not None

    def skip(self, *keys: str) -> None:
        """Mark keys that mean nothing for the architecture found."""
        self._seen.update(keys)

    def unread(self) -> dict[str, object]:
        """Keys that nobody looked at."""
        return {key: value for key, value in self._values.items() if key not in self._seen}

    def optional_integer(self, key: str, low: int = 0, high: int = WIDEST) -> int | None:
        """An integer in `low..high`, or `None` when absent or null.

        Raises:
            ModelConfigError: not an integer, or out of range.
        """
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(key, "must be a whole number")
        if not low <= value <= high:
            raise self.refuse(key, f"must lie between {low} and {high}")
        return value

    def integer(self, key: str, default: int | None = None, low: int = 1, high: int = WIDEST) -> int:
        """An integer in `low..high`; required when there is no default.

        Raises:
            ModelConfigError: missing, not an integer, or out of range.
        """
        value = self.optional_integer(key, low, high)
        if value is None and default is None:
            raise self.refuse(key, "is required and missing")
        return default if value is None and default is not None else value or 0

    def synonym(self, keys: Sequence[str], low: int = 0, high: int = WIDEST) -> int | None:
        """The integer that any of several names states, equal per-layer lists included.

        Raises:
            ModelConfigError: two names disagree, or a list holds different values.
        """
        found = {key: value for key in keys if (value := self.uniform(key, low, high)) is not None}
        if len(set(found.values())) > 1:
            first, second = list(found)[:2]
            raise self.refuse(second, f"disagrees with {first} = {found[first]}")
        return next(iter(found.values()), None)

    def uniform(self, key: str, low: int = 0, high: int = WIDEST) -> int | None:
        """An integer, or a per-layer list of one and the same integer."""
        value = self.get(key)
        if not isinstance(value, list):
            return self.optional_integer(key, low, high)
        if not value or len(value) > LAYERS:
            raise self.refuse(key, f"a per-layer list must hold 1 to {LAYERS} values")
        layers = self._values.get("num_hidden_layers")
        if isinstance(layers, int) and len(value) != layers:
            raise self.refuse(key, f"a per-layer list must hold one value for each of {layers} layers")
        if any(not same(item, value[0]) for item in value):
            raise self.refuse(key, "differs from layer to layer, which is not supported")
        return Fields({key: value[0]}, self.scope).optional_integer(key, low, high)

    def boolean(self, key: str, default: bool) -> bool:
        """True or false.

        Raises:
            ModelConfigError: anything else.
        """
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(key, "must be true or false")
        return value

    def text(self, key: str, default: str = "") -> str:
        """A string.

        Raises:
            ModelConfigError: anything else.
        """
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.refuse(key, "must be a string")
        return value

    def section(self, key: str) -> Fields | None:
        """A nested object, or `None` when absent or null.

        Raises:
            ModelConfigError: anything else.
        """
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.refuse(key, "must be an object")
        return Fields(value, f"{self.scope}{key}.")

    def strings(self, key: str, most: int = 10**5) -> tuple[str, ...]:
        """A list of strings; empty when absent.

        Raises:
            ModelConfigError: anything else.
        """
        value = self.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > most or not all(isinstance(item, str) for item in value):
            raise self.refuse(key, "must be a list of names")
        return tuple(value)

    def integers(self, key: str) -> tuple[int, ...] | None:
        """A list of layer numbers or 0/1 marks; `None` when absent.

        Raises:
            ModelConfigError: anything else.
        """
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > LAYERS or not all(is_layer_number(item) for item in value):
            raise self.refuse(key, f"must be a list of whole numbers from 0 to {LAYERS}")
        return tuple(value)


def shown(value: object) -> str:
    """The start of a value, for a message."""
    try:
        return str(value)[:80]
    except (ValueError, RecursionError):
        return "a value too large to show"


def same(left: object, right: object) -> bool:
    """Equality that keeps `true` and `1` apart."""
    return type(left) is type(right) and left == right


def is_layer_number(value: object) -> bool:
    """Whether the value can number a layer (or mark it with 0 or 1)."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LAYERS
