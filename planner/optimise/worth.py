"""What rows of a table of plans are worth by an objective; nothing where the plan does not stand."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.optimise.question import Objective
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
        return value, ""
    return None, plans.reasons[int(plans.reason[0])] or (NO_PRICE if asked.osl > 1 else NO_RATE)
