"""At which loads a benchmark was measured, how many constants that allows, and which point would help next."""

from __future__ import annotations

from math import log, sqrt
from typing import Final, Literal

from planner.calibrate.constants import loads_among
from planner.calibrate.correction import Fit
from planner.catalog.calibrated import MANY
from planner.variants import known

MIDDLE: Final = (1.0 / 3.0, 2.0 / 3.0)
"""Which part of the logarithm of the load range counts as its middle."""

TPOT_CONSTANTS: Final = 3
"""Scale, host time and interference."""


def loads(fit: Fit) -> int:
    """How many loads the points have that are told apart."""
    return loads_among([float(point.batch) for point in fit.points])


def constants(fit: Fit) -> int:
    """How many constants were fitted, that of the first token included."""
    return (TPOT_CONSTANTS if loads(fit) >= MANY else 1) + (fit.first_token is not None and fit.first_token.fitted)


def largest(fit: Fit) -> int:
    """The most requests a replica of the plan can hold at mean length, or the engine admits."""
    limits = known(fit.scenario).bounds
    return max(1, int(min(limits.space.held_mean[0, 0], limits.limits.seats[0, 0])))


def place(fit: Fit) -> Literal["low", "middle", "high"]:
    """Where the only load lies in the range from one request to the most that the replica holds."""
    share = log(max(fit.points[0].batch, 1)) / log(max(largest(fit), 2))
    return "low" if share < MIDDLE[0] else "high" if share > MIDDLE[1] else "middle"


def advice(fit: Fit) -> str:
    """What another measurement would add; empty when three loads or more are known."""
    count = loads(fit)
    if count >= MANY:
        return ""
    three = "three loads (low, middle, high) also tell host time and interference apart."
    if count > 1:
        return f"{count} loads measured: one factor on every time is fitted; {three}"
    where = place(fit)
    if where == "middle":
        return f"1 load measured, in the middle of the range: one factor on every time is fitted; {three}"
    return (
        f"Add a point at mid load, about {max(2, round(sqrt(largest(fit)))):,} requests a replica. The one that is measured "
        f"lies at the {where} end: on public curves a point at mid load brings the others to about 6 %, the lowest or the "
        f"highest alone hardly helps; {three}"
    )
