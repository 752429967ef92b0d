"""Draws: scenarios around one scenario, with price and traffic as nobody knows them exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.errors import Fault, InputError
from planner.plan import Column
from planner.setting import resolve
from planner.specs.fields import shown
from planner.specs.scenario import Scenario, describe

DRAWN: Final = ("price", "qps", "isl", "osl")
"""Fields that may be drawn; each has random numbers of its own, so that one more field changes no other."""


@dataclass(frozen=True)
class Draw:
    """A lognormal distribution: never negative, its tail towards the large.

    Attributes:
        cv: coefficient of variation, standard deviation over mean.
        mean: in the field's unit; None = the scenario's own value.
    """

    cv: float
    mean: float | None = None

    def of(self, mean: float, normal: Column) -> Column:
        """Values for standard normal numbers: σ² = ln(1 + cv²), so that mean and cv are those of the values themselves."""
        variance = np.log1p(self.cv**2)
        return np.asarray(mean * np.exp(np.sqrt(variance) * normal - variance / 2.0))


def monte_carlo(
    scenario: Scenario,
    draws: int,
    seed: int = 0,
    price: Draw | None = None,
    qps: Draw | None = None,
    isl: Draw | None = None,
    osl: Draw | None = None,
) -> tuple[Scenario, ...]:
    """Scenarios with price and traffic drawn independently of each other; what is not drawn stays.

    Args:
        scenario: around which.
        draws: how many.
        seed: of the random numbers; equal seeds give equal scenarios.
        price, qps, isl, osl: distributions of $/GPU-hour, requests/s and mean lengths [tokens]. Lengths are rounded to
            whole tokens; values that a field does not allow are set to the nearest that it does, lengths also to `max_len`.

    Raises:
        InputError: for a distribution without a positive mean (a price that is not known, a rate that is not asked) or a
            negative spread.
    """
    chosen = {name: draw for name, draw in zip(DRAWN, (price, qps, isl, osl), strict=True) if draw is not None}
    means = {name: _mean(scenario, name, draw) for name, draw in chosen.items()}
    faults = tuple(fault for name, draw in chosen.items() for fault in _faults(name, draw, means[name]))
    if faults or draws < 0:
        raise InputError(faults or (Fault("draws", shown(draws), "must be 0 or more"),))
    columns = {
        name: _column(scenario, name, draw.of(means[name], _normal(seed, name, draws))) for name, draw in chosen.items()
    }
    return tuple(_drawn(scenario, columns, at) for at in range(draws))


def _mean(scenario: Scenario, name: str, draw: Draw) -> float:
    """Mean of a field: named, else the scenario's own; a price that it leaves open is the catalogue's."""
    if draw.mean is not None:
        return draw.mean
    own = resolve(scenario).cost.price if name == "price" else getattr(scenario, name)
    return 0.0 if own is None else float(own)


def _faults(name: str, draw: Draw, mean: float) -> Iterator[Fault]:
    """What cannot be drawn."""
    if not (np.isfinite(mean) and mean > 0.0):
        yield Fault(name, shown(f"{mean:g}"), "must have a positive mean to be drawn around: name one")
    if not (np.isfinite(draw.cv) and draw.cv >= 0.0):
        yield Fault(name, shown(f"{draw.cv:g}"), "must have a coefficient of variation of 0 or more")


def _normal(seed: int, name: str, draws: int) -> Column:
    """Standard normal numbers of one field."""
    return np.random.default_rng((seed, DRAWN.index(name))).standard_normal(draws)


def _column(scenario: Scenario, name: str, values: Column) -> Column:
    """Values that the field allows; a request that decodes goes on decoding."""
    text = describe(name)
    low = 2.0 if name == "osl" and scenario.osl > 1 else text.low
    whole = np.rint(values) if text.kind == "whole" else values
    return np.clip(whole, low, text.high)


def _drawn(scenario: Scenario, columns: dict[str, Column], at: int) -> Scenario:
    """One scenario; prompts are no longer than the longest sequence leaves beside the output."""
    values = {name: float(column[at]) for name, column in columns.items()}
    isl, osl = (round(values.get(name, getattr(scenario, name))) for name in ("isl", "osl"))
    if scenario.max_len is not None:
        osl = min(osl, scenario.max_len - 1)
        isl = min(isl, scenario.max_len - osl)
    money = {name: values[name] for name in ("price", "qps") if name in values}
    return scenario.with_(isl=isl, osl=osl, **money)
