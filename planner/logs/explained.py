"""A start-up log against a plan, line by line: which memory terms differ, by how much, and what that suggests.

Suggestions are found by planning again: the fields that the log states, the rules of its version, and one field at a
time are put otherwise, and what makes a term agree (and, of several, the most terms) is what is said. What was found
for one term holds for the terms after it, so that a pool is not blamed for weights that were explained before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from planner.catalog.engines import engine
from planner.logs import explained_words as words
from planner.logs.compared import AsLogged, Case, Printed, case_of, scenario_from
from planner.logs.readings import StartUp
from planner.logs.suggestions import cause, rest
from planner.logs.supposed import Held, Supposition, Term, menus, stated
from planner.plan import Plan
from planner.specs.scenario import Scenario
from planner.specs.spelling import Value

__all__ = ["AsLogged", "Difference", "contradictions", "scenario_from"]

WHOLE: Final = ("engine", "model")
"""Fields that change every term; they are tried first, for whichever term differs first."""

FIELDS: Final[dict[Term, tuple[str, ...]]] = {
    "weights_bytes": (*WHOLE, "weights", "tp", "pp", "dp", "ep", "spec"),
    "activation_bytes": (*WHOLE, "max_seqs", "token_budget"),
    "runtime_bytes": (*WHOLE, "tp"),
    "graph_bytes": (*WHOLE,),
    "kv_bytes_per_token": (*WHOLE, "kv", "tp", "pp", "dp", "dcp", "spec"),
    "kv_pool_bytes": (*WHOLE, "util", "max_seqs", "token_budget"),
    "kv_capacity_tokens": (*WHOLE, "util", "max_seqs", "token_budget"),
    "max_concurrency": ("max_len",),
}
"""Scenario fields that move a term."""

RULED: Final = ("activation_bytes", "runtime_bytes", "graph_bytes", "kv_pool_bytes", "kv_capacity_tokens")
"""Terms that an engine's version decides."""


CAUSES_FIRST: Final = ("kv_pool_bytes", "kv_capacity_tokens", "max_concurrency", "activation_bytes", "runtime_bytes")
"""Terms of which the log itself may tell the cause; only else is a field tried that it does not state."""


@dataclass(frozen=True)
class Difference:
    """One memory term of a log beside the plan's.

    Attributes:
        term: its name; `kv_bytes_per_token` is the log's pool over its tokens.
        planned, printed: per device [B, bytes/token], tokens of one attention rank, or sequences of full length.
        agrees: whether they are close enough to be the same.
        suggestion: what the difference suggests, in a sentence; empty when they agree.
    """

    term: Term
    planned: float
    printed: float
    agrees: bool
    suggestion: str

    @property
    def ratio(self) -> float | None:
        """The log's over the plan's; None when the plan has nothing."""
        return self.printed / self.planned if self.planned else None


@dataclass(frozen=True)
class Judged:
    """The plan with what was accepted so far, and that in words."""

    scenario: Scenario
    version: str
    causes: tuple[str, ...]


def contradictions(start: StartUp, plan: Plan) -> tuple[Difference, ...]:
    """Every memory term that both have, in the order in which one follows from another; empty when there is none."""
    return tuple(_differences(case_of(start, plan.scenario)))


def _differences(case: Case) -> Iterator[Difference]:
    base = case.held(case.scenario)
    judged = Judged(case.scenario, "", ())
    for told in case.printed:
        planned = base.of(told.term) if base is not None else None
        if base is None or planned is None:
            continue
        if told.agrees(planned):
            yield Difference(told.term, planned, told.value, True, "")
            continue
        judged, text = _judge(case, told, judged, base)
        yield Difference(told.term, planned, told.value, False, text)


def _judge(case: Case, told: Printed, judged: Judged, base: Held) -> tuple[Judged, str]:
    """What a differing term suggests, and the plan with it."""
    now = case.held(judged.scenario, judged.version) or base
    if judged.causes and told.agrees(now.of(told.term)):
        return judged, words.follows(judged.causes)
    found = _by_version(case, told, judged) or _by_fields(case, told, judged, _stated(case, told, judged))
    if found is not None:
        return found
    judged, stated = _as_logged(case, told, judged)
    found = _by_fields(case, told, judged, menus(judged.scenario, case.logged, FIELDS[told.term]))
    text = cause(case, told, judged.scenario, _version(case, told, judged))
    if found is not None and (not text or told.term not in CAUSES_FIRST):
        return found[0], stated + found[1]
    return judged, stated + (text or rest(case, told, judged.scenario, _version(case, told, judged)))


def _version(case: Case, told: Printed, judged: Judged) -> str:
    """The version whose rules a term is judged by."""
    return judged.version or (case.version if told.term in RULED else "")


def _stated(case: Case, told: Printed, judged: Judged) -> Iterator[Supposition]:
    return stated(_open(case, judged), FIELDS[told.term])


def _as_logged(case: Case, told: Printed, judged: Judged) -> tuple[Judged, str]:
    """The plan with all that the log states of a term's fields, though they alone do not explain it, and that in words."""
    version = _version(case, told, judged)
    known = tuple(each for each in _open(case, judged) if _moves(case, told, judged, each, version))
    what = Supposition(known, logged=True)
    scenario = what.apply(judged.scenario)
    if scenario == judged.scenario:
        return judged, ""
    then = case.held(scenario, version)
    value = then.of(told.term) if then is not None else None
    now = _with(replace(judged, scenario=scenario), str(what), judged.version)
    return now, "" if value is None else words.in_part(told.term, what, value, what.instead_of(judged.scenario))


def _moves(case: Case, told: Printed, judged: Judged, change: tuple[str, Value], version: str) -> bool:
    """Whether one of a term's fields, put as the log states it, changes the term at all."""
    if change[0] not in FIELDS[told.term]:
        return False
    now = case.held(judged.scenario, version)
    then = case.held(Supposition((change,)).apply(judged.scenario), version)
    return now is not None and then is not None and now.of(told.term) != then.of(told.term)


def _by_version(case: Case, told: Printed, judged: Judged) -> tuple[Judged, str] | None:
    """The rules of the log's version, when they alone make the term agree."""
    if not case.version or judged.version or told.term not in RULED:
        return None
    then = case.held(judged.scenario, case.version)
    value = then.of(told.term) if then is not None else None
    if value is None or not told.agrees(value):
        return None
    name = engine(case.scenario.engine).name
    text = words.ruled(told.term, name, case.version, value)
    return _with(judged, f"rules of {name} {case.version}", case.version), text


def _by_fields(case: Case, told: Printed, judged: Judged, tried: Iterator[Supposition]) -> tuple[Judged, str] | None:
    """The field or fields that make the term agree without undoing earlier ones: the most terms, then the closest."""
    version = _version(case, told, judged)
    fitting = [(each, at) for each in tried if (at := _fitting(case, told, judged, each, version)) is not None]
    if not fitting:
        return None
    best, at = max(fitting, key=lambda pair: (case.score(pair[1]), -told.distance(pair[1].of(told.term))))
    text = words.supposed(told.term, best, at.of(told.term) or 0.0, best.instead_of(judged.scenario))
    return _with(replace(judged, scenario=best.apply(judged.scenario)), str(best), version), text


def _fitting(case: Case, told: Printed, judged: Judged, what: Supposition, version: str) -> Held | None:
    """The plan with a supposition, when the term then agrees and no earlier term that agreed stops to."""
    changed = what.apply(judged.scenario)
    then = None if changed == judged.scenario else case.held(changed, version)
    now = case.held(judged.scenario, judged.version)
    if then is None or now is None or not told.agrees(then.of(told.term)):
        return None
    before = case.printed[: case.printed.index(told)]
    undone = any(each.agrees(now.of(each.term)) and not each.agrees(then.of(each.term)) for each in before)
    return None if undone else then


def _open(case: Case, judged: Judged) -> tuple[tuple[str, Value], ...]:
    """What the log states and the plan so far has otherwise."""
    return tuple((field, value) for field, value in case.logged if getattr(judged.scenario, field) != value)


def _with(judged: Judged, why: str, version: str) -> Judged:
    return replace(judged, version=version, causes=(*judged.causes, why))
