"""Plans of a search with more replicas: whether the question allows them, and how they are ordered."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from planner.optimise.question import Question
from planner.optimise.trial import Trial, per_million
from planner.plan import Plans
from planner.specs.scenario import Scenario
from planner.tabulate import table
from planner.variants import changed, known

Key: TypeAlias = tuple[float, float]
"""By what plans on trial are ordered: the objective, then the bill or the devices; less is better."""


def with_more(trial: Trial, more: int, spare: int) -> Scenario | None:
    """The scenario of a trial with more replicas, at its rate; None where that contradicts the rest of it."""
    asked, serving = trial.scenario, trial.replicas - spare + more
    named = {"fix_replicas": serving} if asked.decode_workers is None else {"decode_workers": serving}
    return changed(asked, {**named, "qps": asked.qps or trial.rate})


def within(question: Question, scenario: Scenario) -> bool:
    """Whether a plan stands within the question's GPUs and limits."""
    plans = row_of(scenario)
    stands = bool((plans.fits & plans.engine_ok & plans.meets_sla)[0]) and float(plans.gpus[0]) <= question.max_gpus
    values = [(limit, float(getattr(plans, limit.field)[0])) for limit in question.limits]
    return stands and all(value <= limit.value if limit.at_most else value >= limit.value for limit, value in values)


def row_of(scenario: Scenario) -> Plans:
    """The plan of a scenario as a table of one row."""
    found = known(scenario)
    batch = None if scenario.at_batch is None else np.full((1, 1), float(scenario.at_batch))
    return table(found.setting, found.bounds, batch)


def key_of(question: Question, scenario: Scenario, rate: float) -> Key:
    """By what a plan is ordered: the objective, for which money is the bill over the traffic, then the bill or the devices."""
    plans = row_of(scenario)
    gpus, bill = float(plans.gpus[0]), float(plans.usd_per_hour[0])
    billed = per_million(bill, rate * scenario.osl) if math.isfinite(bill) else None
    if question.objective.startswith("usd"):
        return (math.inf if billed is None else billed, gpus)
    if question.objective == "gpus":
        return gpus, gpus if billed is None else billed
    value = float(getattr(plans, question.objective)[0])
    if question.objective == "goodput_tok_s":
        value *= -(float(plans.replicas[0]) - scenario.spare)
    return value, gpus if billed is None else billed
