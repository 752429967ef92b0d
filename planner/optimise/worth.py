"""What rows of a table of plans are worth by an objective; nothing where the plan does not stand."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.optimise.pairing import best_batch
from planner.optimise.question import MOST_GPUS, Objective, Question
from planner.plan import Column, Flags, Plans
from planner.rows import bounds
from planner.setting import Setting
from planner.specs.layout import Layout, layout
from planner.specs.scenario import Scenario
from planner.tabulate import table

NO_PRICE: Final = "no price of this accelerator is known: name one"
NO_RATE: Final = "requests of one output token have no TPOT: good tokens are not counted"


def standing(plans: Plans) -> Flags:
    """Rows that fit, are served and keep the promise."""
    return plans.fits & plans.engine_ok & plans.meets_sla & np.isfinite(plans.tpot_ms)


def worth(plans: Plans, objective: Objective, asked: Scenario) -> Column:
    """The objective of each row in its own unit; NaN where the plan does not stand or has no such number.

    Good tokens a second are those of all replicas that serve, spares left out.
    """
    value = getattr(plans, objective)
    if objective == "goodput_tok_s":
        value = value * (plans.replicas - asked.spare)
    return np.where(standing(plans), value, np.nan)


def own_layout(asked: Scenario) -> Layout:
    """The scenario's own layout, a table of one row."""
    return layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp).tall


def value_of(setting: Setting, objective: Objective) -> tuple[float | None, str]:
    """Objective of a setting at its own layout and batch; None, and why, where it has none."""
    asked = setting.scenario
    batch = None if asked.at_batch is None else np.full((1, 1), float(asked.at_batch))
    plans = table(setting, bounds(setting, own_layout(asked)), batch)
    value = float(worth(plans, objective, asked)[0])
    if np.isfinite(value):
        return _at_best(setting, objective, value), ""
    return None, plans.reasons[int(plans.reason[0])] or (NO_PRICE if asked.osl > 1 else NO_RATE)


def _at_best(setting: Setting, objective: Objective, value: float) -> float:
    """The objective at the batch that a search would choose: with two pools and no rate the largest batch may ask for one
    more prefill worker than it is worth."""
    asked = setting.scenario
    if setting.pool is None or asked.qps > 0 or asked.at_batch is not None or asked.prefill_workers is not None:
        return value
    question = Question(scenario=asked, objective=objective, max_gpus=MOST_GPUS)
    found = best_batch(setting, question, own_layout(asked), float(asked.decode_workers or asked.fix_replicas or 1))
    return question.shown(float(found.value[0])) if len(found) else value
