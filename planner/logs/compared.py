"""A log beside a plan: the terms that both have, the fields in which they differ, and what counts as agreement."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.catalog.models import find_model
from planner.errors import InputError
from planner.logs.readings import StartUp
from planner.logs.supposed import TERMS, Held, Term, held, older, own
from planner.specs.scenario import Scenario
from planner.specs.spelling import Value
from planner.units import GIB

TOLERANCE: Final[dict[Term, float]] = {
    "weights_bytes": 0.03, "kv_pool_bytes": 0.05, "kv_capacity_tokens": 0.03, "max_concurrency": 0.03,
    "kv_bytes_per_token": 0.02, "activation_bytes": 0.25, "runtime_bytes": 0.25, "graph_bytes": 0.25,
}  # fmt: skip
"""Largest share by which plan and log may differ and still agree; workspace is planned from medians of many logs."""

SLACK: Final[dict[Term, float]] = {
    "weights_bytes": 0.006 * GIB, "kv_pool_bytes": 0.006 * GIB, "kv_capacity_tokens": 0.0, "max_concurrency": 0.006,
    "kv_bytes_per_token": 0.0, "activation_bytes": 0.3 * GIB, "runtime_bytes": 0.3 * GIB, "graph_bytes": 0.3 * GIB,
}  # fmt: skip
"""What is allowed beside it: the last printed digit, and for workspace what varies from one start to the next."""


@dataclass(frozen=True)
class Printed:
    """A term as the log has it; `slack` is how far its digits allow the true value to be."""

    term: Term
    value: float
    slack: float

    def agrees(self, planned: float | None) -> bool:
        """Whether a planned value is close enough."""
        return planned is not None and abs(self.value - planned) <= TOLERANCE[self.term] * abs(planned) + self.slack

    def distance(self, planned: float | None) -> float:
        """How far a planned value is, to whole percents: what is closer by less is not the better explanation."""
        return math.inf if not planned else round(abs(self.value / planned - 1.0), 2)


@dataclass(frozen=True)
class Case:
    """A log and a plan's scenario.

    Attributes:
        scenario: the plan's.
        logged: fields that the log states otherwise than the plan.
        version: the log's engine version where older rules than the plan's hold for it, else empty.
        length: longest sequence of the log [tokens]; None = not stated.
        printed: the terms of the log, in the order of `TERMS`.
    """

    start: StartUp
    scenario: Scenario
    logged: tuple[tuple[str, Value], ...]
    version: str
    length: float | None
    printed: tuple[Printed, ...]

    def told(self, term: Term) -> Printed | None:
        """A term of the log."""
        return next((each for each in self.printed if each.term == term), None)

    def held(self, scenario: Scenario, version: str = "") -> Held | None:
        """Memory terms of a scenario at the log's longest sequence."""
        return held(scenario, version, self.length)

    def fact(self, name: str) -> float | None:
        """A memory fact of the log that need not be a term of the plan."""
        return next((value for known, value in self.start.memory if known == name), None)

    def score(self, at: Held) -> int:
        """How many of the log's terms agree with a plan's."""
        return sum(each.agrees(at.of(each.term)) for each in self.printed)


def case_of(start: StartUp, scenario: Scenario) -> Case:
    """A log and a scenario, compared field by field."""
    length = dict(start.stated).get("max_len")
    same = start.engine == scenario.engine
    return Case(
        start=start,
        scenario=scenario,
        logged=tuple(differing(start, scenario)),
        version=start.version if same and older(scenario, start.version) else "",
        length=float(length) if isinstance(length, int) else None,
        printed=tuple(sorted(_printed(start), key=lambda each: TERMS.index(each.term))),
    )


def differing(start: StartUp, scenario: Scenario) -> Iterator[tuple[str, Value]]:
    """Fields that the log states otherwise than the scenario: engine and model first, then its settings."""
    if start.engine != scenario.engine:
        yield "engine", start.engine
    model = find_model(start.model) if start.model else None
    if model is not None and model.id != scenario.model:
        yield "model", model.id
    for field, value in start.stated:
        if value != own(scenario, field):
            yield field, value


def _printed(start: StartUp) -> Iterator[Printed]:
    """Terms of the log; bytes per token are its pool over its tokens, or over those that its concurrency stands for."""
    facts = {str(name): value for name, value in start.memory}
    for term in TERMS:
        if term in facts and facts[term] > 0.0:
            yield Printed(term, facts[term], SLACK[term])
    pool, tokens = facts.get("kv_pool_bytes", 0.0), facts.get("kv_capacity_tokens", 0.0) or _implied(start, facts)
    if pool > 0.0 and tokens > 0.0:
        yield Printed("kv_bytes_per_token", pool / tokens, SLACK["kv_pool_bytes"] / tokens)


def _implied(start: StartUp, facts: dict[str, float]) -> float:
    """Tokens that a printed concurrency stands for; 0 when the log states no length."""
    length = dict(start.stated).get("max_len")
    return facts.get("max_concurrency", 0.0) * (length if isinstance(length, int) else 0)


@dataclass(frozen=True)
class AsLogged:
    """A scenario with what a log states: which fields it changed, and which it could not (they contradict the rest)."""

    scenario: Scenario
    changed: tuple[str, ...]
    kept: tuple[str, ...]


def scenario_from(start: StartUp, scenario: Scenario) -> AsLogged:
    """The user's scenario with what the log states, field by field; a field that contradicts the user's own is kept.

    A longest sequence below what the user asks for, for example, cannot be meant together with it.
    """
    now, changed, kept = scenario, list[str](), list[str]()
    for field, value in differing(start, scenario):
        try:
            now = now.with_(model=value, x=None) if field == "model" else now.with_(**{field: value})
            changed.append(field)
        except InputError:
            kept.append(field)
    return AsLogged(now, tuple(changed), tuple(kept))
