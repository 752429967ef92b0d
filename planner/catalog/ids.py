"""Whether the catalogue knows what a scenario names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner.catalog.accelerators import accelerator_ids
from planner.catalog.models import model_ids
from planner.catalog.prices import providers
from planner.errors import Fault
from planner.specs.fields import near, shown

CUSTOM: Final = "custom"
"""Model id of a scenario that carries its own model."""


def _models() -> tuple[str, ...]:
    return (*model_ids(), CUSTOM)


_KNOWN: Final[dict[str, tuple[str, Callable[[], tuple[str, ...]]]]] = {
    "model": ("model", _models),
    "gpu": ("accelerator", accelerator_ids),
    "prefill_gpu": ("accelerator", accelerator_ids),
    "provider": ("provider of any price", providers),
}


def unknown_id(field: str, value: object) -> Fault | None:
    """The fault of naming something that the catalogue does not have; None when it has it or nothing is named."""
    if value is None or field not in _KNOWN:
        return None
    noun, options = _KNOWN[field]
    known = options()
    return None if value in known else Fault(field, shown(value), _sentence(noun, str(value), known))


def _sentence(noun: str, value: str, known: tuple[str, ...]) -> str:
    return f"no {noun} of the catalogue is called this{near(value, known)}; {len(known)} are known"
