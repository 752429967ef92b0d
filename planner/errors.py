"""What can go wrong with what a person hands us.

    HeadroomError
    ├── InputError            one or more faults in a scenario, each naming field, value and what is allowed
    │   └── LinkError         the same, found in a link
    ├── CatalogueError        a preset is missing or malformed
    └── ModelConfigError      a config.json that we cannot size truthfully

Physics raises none of these: a layout that does not fit is a row with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One thing wrong with one field."""

    field: str
    value: str
    allowed: str

    def __str__(self) -> str:
        """One sentence that a person can act on."""
        return f"{self.field} = {self.value}: {self.allowed}"


class HeadroomError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(HeadroomError):
    """A scenario that cannot be planned; holds every fault found, not only the first."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__("; ".join(str(fault) for fault in faults))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Fault, ...]]]:
        """The way between processes: made again from its faults."""
        return type(self), (self.faults,)


class LinkError(InputError):
    """A link with refused values."""


class CatalogueError(HeadroomError):
    """A preset that is missing or does not say what it must."""


class ModelConfigError(HeadroomError):
    """A model configuration that we refuse rather than guess; names the key."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        self.key = key
        self.value = str(value)[:80]
        self.reason = reason
        super().__init__(f"{key} = {self.value}: {reason}")

    def __reduce__(self) -> tuple[type[ModelConfigError], tuple[str, str, str]]:
        """The way between processes: made again from its parts."""
        return type(self), (self.key, self.value, self.reason)
