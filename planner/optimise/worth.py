"""What rows of a table of plans are worth by an objective; nothing where the plan does not stand."""

from __future__ import annotations

import numpy as np

from planner.optimise.question import Objective
from planner.plan import Column, Flags, Plans
from planner.specs.scenario import Scenario


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
