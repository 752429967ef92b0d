"""Plans of a search with more or fewer replicas: whether the question allows them, and how they are ordered."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from planner import promised
from planner.optimise.answer import Choice
from planner.optimise.question import Question
from planner.optimise.trial import Candidate, Trial, per_million
from planner.plan import Plans
from planner.specs.scenario import Scenario
from planner.tabulate import is_fixed, table
from planner.variants import changed, known

Key: TypeAlias = tuple[float, float]
"""By what plans on trial are ordered: the objective, then the bill or the devices; less is better."""


def with_more(trial: Trial, more: int, spare: int) -> Scenario | None:
    """The scenario of a trial with more replicas, at its rate; None where that contradicts the rest of it."""
    asked, serving = trial.scenario, trial.replicas - spare + more
    named = {"fix_replicas": serving} if asked.decode_workers is None else {"decode_workers": serving}
    return changed(asked, {**named, "qps": asked.qps or trial.rate})


def most(allowed: Callable[[int], bool], highest: int) -> int:
    """The largest whole number up to `highest` that is allowed, where all smaller ones are; 0 where none is."""
    low, high = 0, highest
    while high - low > 0:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle - 1)
    return low


def fewer(question: Question, choice: Choice, rank: int) -> Candidate | None:
    """A choice that is sized beyond the question, with the most replicas that it allows; None where none can be tried.

    Queue theory asked for more than that; only a simulation can say otherwise.
    """
    asked = choice.scenario
    if is_fixed(asked) or asked.qps == 0 or choice.outcome.replicas is None:
        return None
    needed = round(choice.outcome.replicas) - asked.spare
    count = most(lambda at: affordable(question, asked.with_(fix_replicas=at)), min(needed, question.max_gpus))
    cut = asked.with_(fix_replicas=count) if count else asked
    return Candidate(cut, choice.kind, rank, count - needed) if count and within(question, cut) else None


def within(question: Question, scenario: Scenario) -> bool:
    """Whether a plan is within the question's GPUs and limits, and keeps the promise at least on means."""
    plans = row_of(scenario)
    stands = bool((plans.fits & plans.engine_ok & plans.meets_sla)[0])
    least = [(limit, _value(plans, limit.field)) for limit in question.limits if not limit.at_most]
    return stands and affordable(question, scenario) and all(value >= limit.value for limit, value in least)


def affordable(question: Question, scenario: Scenario) -> bool:
    """Whether a plan is within the question's GPUs and whatever it wants at most; what is not known is."""
    plans = row_of(scenario)
    largest = [(limit, _value(plans, limit.field)) for limit in question.limits if limit.at_most]
    return _value(plans, "gpus") <= question.max_gpus and not any(value > limit.value for limit, value in largest)


def _value(plans: Plans, field: str) -> float:
    """One field of a table of one row."""
    return float(getattr(plans, field)[0])


@lru_cache(maxsize=256)
def row_of(scenario: Scenario) -> Plans:
    """The plan of a scenario as a table of one row: what `plan_of` says, and its simulation runs on.

    A plan that keeps its promise on means but not at the percentile, by queue theory, stands here as it is on means: GPUs and
    bill are the same, and whether it holds is what it is tried for.
    """
    found = known(scenario)
    row = promised.row_of(found.setting, found.bounds)
    if row.meets_sla[0]:
        return row
    batch = None if scenario.at_batch is None else np.full((1, 1), float(scenario.at_batch))
    return table(found.setting, found.bounds, batch)


def key_of(question: Question, scenario: Scenario, rate: float) -> Key:
    """By what a plan is ordered: the objective, for which money is the bill over the traffic, then the bill or the devices."""
    plans = row_of(scenario)
    gpus, bill = _value(plans, "gpus"), _value(plans, "usd_per_hour")
    billed = per_million(bill, rate * scenario.osl) if math.isfinite(bill) else None
    if question.objective.startswith("usd"):
        return (math.inf if billed is None else billed, gpus)
    if question.objective == "gpus":
        return gpus, gpus if billed is None else billed
    value = _value(plans, question.objective)
    if question.objective == "goodput_tok_s":
        value *= -(_value(plans, "replicas") - scenario.spare)
    return value, gpus if billed is None else billed
