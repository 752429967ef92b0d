"""An answer as CSV (a row a plan, which reads back) and as one JSON document; its link holds the question."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Final
from urllib.parse import quote

from planner.catalog.version import catalogue_version
from planner.export import Json, document, to_csv
from planner.optimise.answer import Answer, Choice, FrontPoint
from planner.optimise.calibrated import calibration_words
from planner.optimise.question import Question
from planner.optimise.search import OnProgress
from planner.optimise.shadow import Relaxation, relaxations
from planner.optimise.spelling import QUESTION_FIELDS, question_texts, spell_value
from planner.optimise.trial import Trial
from planner.optimise.verdict import verdict
from planner.optimise.verified import Verified
from planner.promised import MEDIAN
from planner.share import pinned, to_link
from planner.single import plan_of

SAFE: Final = ","
"""Characters of a list that an address keeps as they are."""


def question_link(question: Question, base: str = "") -> str:
    """A link to a question: `base`, `?`, what differs from the defaults, and today's catalogue version.

    No price is written down: it would be that of every accelerator that is tried.
    """
    scenario = to_link(question.scenario.with_(c=catalogue_version()), base)
    own = (f"&{name}={quote(text, safe=SAFE)}" for name, text in question_texts(question).items())
    return scenario + "".join(own)


def answer_csv(answer: Answer, start: str = "") -> str:
    """The best of each kind as `export.to_csv` writes plans, best first.

    Args:
        answer: what a search found.
        start: address of the Plan page, without query.
    """
    return to_csv([plan_of(choice.scenario) for choice in answer.best], start)


def answer_json(answer: Answer, start: str = "", base: str = "", more: Mapping[str, Json] | None = None) -> str:
    """The answer as one JSON object; what is not a number becomes null.

    Args:
        answer: what a search found.
        start, base: addresses of the Plan page and of the Optimise page, without query.
        more: what stands around the answer (prices of constraints, sensitivity), appended as it is.
    """
    whole = {**answered(answer, start, base), **(more or {})}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def answered(answer: Answer, start: str = "", base: str = "") -> Mapping[str, Json]:
    """What `answer_json` writes."""
    return {
        "question": _question(answer.question),
        "calibration": calibration_words(answer.question),
        "plans": [_choice(choice, start) for choice in answer.best],
        "beyond": [_left_out(choice, start) for choice in answer.beyond],
        "front_on": "means",
        "front": [_point(point, start) for point in answer.front],
        "candidates": answer.candidates,
        "considered": answer.considered,
        "refused": {f"{each.rule}: {each.reason}": each.count for each in answer.refused},
        "seconds": answer.seconds,
        "link": question_link(answer.question, base),
    }


def remedies(
    answer: Answer, on_progress: OnProgress | None = None, executor: Executor | None = None
) -> Mapping[str, Json]:
    """What would make an infeasible question feasible, one change each; nothing where something stands."""
    if answer.winner is not None:
        return {}
    found = relaxations(answer.question, None, executor, on_progress, answer.beyond)
    return {"relaxations": [{**plain_fields(each), "link": to_link(pinned(each.choice.scenario))} for each in found]}


def verified_json(found: Verified, start: str = "") -> Mapping[str, Json]:
    """What simulations said of the answer: every trial with its link, what is chosen, and a sentence."""
    chosen = None if found.chosen is None else to_link(pinned(found.chosen), start)
    trials = [_trial(each, start) for each in found.trials]
    pct = found.question.scenario.sla_pct
    return {"verified": {"sla_pct": pct, "verdict": verdict(found), "chosen": chosen, "trials": trials}}


def _trial(trial: Trial, start: str) -> Mapping[str, Json]:
    """One trial: its numbers as they are called in Python, shares with their margins, the plan as a link."""
    numbers = {name: plain(value) for name, value in vars(trial).items() if name not in ("scenario", "ttft", "tpot")}
    shares = {f"share_{name}": plain(vars(getattr(trial, name))) for name in ("ttft", "tpot")}
    return {**numbers, **shares, "link": to_link(pinned(trial.scenario), start)}


def plain_fields(found: Relaxation) -> dict[str, Json]:
    """A relaxation's numbers, by what plans were judged, and what then wins."""
    on = "means" if found.choice.scenario.sla_pct == MEDIAN else "percentile"
    return {"field": found.field, "now": found.now, "needed": found.needed, "on": on, "kind": found.choice.kind}


def _question(question: Question) -> Mapping[str, Json]:
    """The question: its scenario, and every field; an empty list is the scenario's own value."""
    own = {name: _written(getattr(question, name)) for name in QUESTION_FIELDS}
    return {"scenario": question.scenario.model_dump(mode="json"), **own}


def _written(value: object) -> Json:
    """A value of a question: numbers as numbers, lists as lists, limits as they are written."""
    match value:
        case int() | str():
            return value
        case tuple():
            return [_written(item) for item in value]
        case _:
            return spell_value(value)


def _choice(choice: Choice, start: str) -> Mapping[str, Json]:
    """One of the best: the whole plan, and before it what it is called and what it is worth."""
    return {"kind": choice.kind, "value": plain(choice.value), **document(plan_of(choice.scenario), start)}


def _left_out(choice: Choice, start: str) -> Mapping[str, Json]:
    """One that stands on means and not at the percentile, within the question: what it would take, its plan as a link."""
    found = choice.outcome
    numbers = {name: plain(getattr(found, name)) for name in ("replicas", "gpus", "usd_per_hour", "usd_per_m_goodput")}
    said = {"kind": choice.kind, "value": plain(choice.value), "holds": found.stands, **numbers}
    return {**said, "link": to_link(pinned(choice.scenario), start)}


def _point(point: FrontPoint, start: str) -> Mapping[str, Json]:
    """One point of the front, its plan as a link."""
    numbers = {name: plain(value) for name, value in vars(point).items() if name != "scenario"}
    return {**numbers, "link": to_link(pinned(point.scenario), start)}


def plain(value: object) -> Json:
    """A value that JSON can hold: dataclasses' fields are walked, what is not a number becomes null."""
    match value:
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case str() | bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case _:
            return str(value)
