"""The deployment that a benchmark was run on: what the text states of it, beside the scenario that is to be calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.catalog.models import find_model
from planner.errors import InputError
from planner.logs.compared import AsLogged, differing
from planner.logs.readings import Benchmark, Reading
from planner.logs.supposed import own
from planner.specs.scenario import Scenario
from planner.specs.spelling import Value

SUBJECT: Final = ("model", "gpu", "engine", "weights", "kv", "tp", "pp", "dp", "ep")
"""Fields that say what was measured: a correction fitted to another subject would be of nothing that runs."""

SAME_LENGTH: Final = 0.1
"""Share by which mean lengths may differ and still be called one length."""

NEAR_LENGTH: Final = 0.02
"""Share by which a text's mean length may differ from the scenario's without being spoken of: lengths are drawn at random."""


@dataclass(frozen=True)
class Apart:
    """A field that a text states otherwise than a scenario.

    Attributes:
        stated, planned: the text's value and the scenario's (or what the engine takes by itself).
        reason: why the scenario cannot take it, in a sentence; empty when it can.
    """

    field: str
    stated: Value
    planned: Value
    reason: str = ""


def apart(reading: Reading, scenario: Scenario) -> tuple[Apart, ...]:
    """Every field in which a text and a scenario differ, with those that the scenario cannot take last."""
    now, taken, kept = scenario, list[Apart](), list[Apart]()
    for field, value in _differing(reading, scenario):
        before = own(scenario, field)
        try:
            now = _put(now, field, value)
            taken.append(Apart(field, value, before))
        except InputError as error:
            kept.append(Apart(field, value, before, error.faults[0].allowed))
    return (*taken, *kept)


def as_stated(reading: Reading, scenario: Scenario) -> AsLogged:
    """The scenario with what a text states, field by field; what contradicts the rest is kept as it was."""
    found = apart(reading, scenario)
    now = scenario
    for each in found:
        now = now if each.reason else _put(now, each.field, each.stated)
    changed = tuple(each.field for each in found if not each.reason)
    return AsLogged(now, changed, tuple(each.field for each in found if each.reason))


def unknown_model(reading: Reading) -> str:
    """The model that a text names and the catalogue does not know; empty when it is known or none is named."""
    return reading.model if reading.model and find_model(reading.model) is None else ""


def _put(scenario: Scenario, field: str, value: Value) -> Scenario:
    """A scenario with one field otherwise; another model takes no token of one's own along."""
    if field == "model":
        return scenario.with_(model=value, x=None, profile="measured" if scenario.x else scenario.profile)
    return scenario.with_(**{field: value})


def _differing(reading: Reading, scenario: Scenario) -> Iterator[tuple[str, Value]]:
    """Fields and the text's values, what was measured first."""
    if not isinstance(reading, Benchmark):
        yield from differing(reading, scenario)
        return
    told = dict(reading.stated)
    model = find_model(str(told.get("model", "")) or reading.model) if reading.model or "model" in told else None
    known = {**told, "model": None if model is None else model.id, **dict(_lengths(reading, scenario))}
    for field in (*SUBJECT, *(name for name in known if name not in SUBJECT)):
        if known.get(field) is not None and known[field] != own(scenario, field):
            yield field, known[field]


def _lengths(benchmark: Benchmark, scenario: Scenario) -> Iterator[tuple[str, Value]]:
    """Mean lengths that are not the scenario's, where all points that state them have about the same."""
    for field in ("isl", "osl"):
        stated = [value for point in benchmark.points if (value := getattr(point, field)) is not None]
        length, planned = _one_length(stated), getattr(scenario, field)
        if length is not None and abs(length - planned) > NEAR_LENGTH * planned:
            yield field, length


def _one_length(stated: Sequence[float]) -> int | None:
    """The mean of lengths that are about the same [tokens]; None when they are not."""
    if not stated or min(stated) < 1.0 or max(stated) > (1.0 + SAME_LENGTH) * min(stated):
        return None
    return round(float(np.mean(stated)))
