"""From measured points to the constants of a correction: TPOT is linear in them, so three plans of a point say it all.

    tpot = scale · (kernels + interference · crowd) + host_step · steps

`kernels` is the plan without what grows with the batch beside the kernels, `crowd` is that part (others' prefill, host
time a sequence), `steps` is how much TPOT grows with each second of host time a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.catalog.calibrated import MANY
from planner.serving import decode
from planner.setting import Setting, reclocked
from planner.specs.correction import retimed
from planner.specs.layout import layout
from planner.specs.profile import Profile

SCALE: Final = (0.2, 5.0)
"""How far a correction may move every time."""

INTERFERENCE: Final = (0.1, 10.0)
"""How far it may move others' prefill and the host's time of a sequence."""

MOST_HOST: Final = 5.0
"""Longest host time that a step may gain, over the predicted TPOT at the lowest point."""

NOISE: Final = 0.02
"""How far a measured TPOT repeats: weight of a point against what is expected beforehand (natural logarithm)."""

EXPECTED: Final = (0.3, 0.5, 0.7)
"""How far scale (logarithm), host time (over TPOT at the lowest point) and interference (logarithm) are expected to lie
from none; widths from 27 pairs of model and accelerator, wide enough that three points decide."""

PROBE: Final = 1e-3
"""Host time a step that the plan is asked with to learn how TPOT follows it [s]."""


@dataclass(frozen=True)
class Measured:
    """One point as it is fitted: the setting that it ran in, its batch [sequences a replica] and its TPOT [s]."""

    setting: Setting
    batch: float
    tpot: float


@dataclass(frozen=True)
class Parts:
    """TPOT at a point in parts [s]; `steps` is per second of host time a step [1]."""

    kernels: float
    crowd: float
    steps: float

    def tpot(self, by: Constants) -> float:
        """TPOT under other constants [s]."""
        return by.scale * (self.kernels + by.interference * self.crowd) + by.host_step * self.steps


@dataclass(frozen=True)
class Constants:
    """Scale [1], host time that each step takes beyond it [s], interference [1]."""

    scale: float = 1.0
    host_step: float = 0.0
    interference: float = 1.0


NONE: Final = Constants()
"""The measured constants as they are."""


SAME_LOAD: Final = 0.05
"""Share of the larger one within which two loads are one."""


def loads_among(loads: Sequence[float]) -> int:
    """How many loads are told apart: one that lies within `SAME_LOAD` above another is the same."""
    count, lowest = 0, 0.0
    for load in sorted(loads):
        if not count or load - lowest > SAME_LOAD * load:
            count, lowest = count + 1, load
    return count


def tpot_of(setting: Setting, batch: float) -> float:
    """TPOT of a setting's own layout at a batch [s]."""
    s = setting.scenario
    at = decode.clock(setting.decoding, layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp).tall)
    return float(decode.tpot(at, np.full((1, 1), batch))[0][0, 0])


def retimed_setting(setting: Setting, by: Constants) -> Setting:
    """The setting under corrected constants."""
    return reclocked(setting, lambda profile: retimed(profile, by.scale, by.host_step, by.interference))


def parts_of(setting: Setting, batch: float, whole: float | None = None) -> Parts:
    """TPOT at a point in parts; `whole` is its TPOT where that is known [s]."""
    known = tpot_of(setting, batch) if whole is None else whole
    kernels = tpot_of(reclocked(setting, _alone), batch)
    slower = tpot_of(retimed_setting(setting, Constants(host_step=PROBE)), batch)
    return Parts(kernels, max(known - kernels, 0.0), (slower - known) / PROBE)


def _alone(profile: Profile) -> Profile:
    """A clock without others' prefill and without host time a sequence."""
    return replace(profile, phi=0.0, host_sequence=0.0)


def constants_of(parts: Sequence[Parts], measured: Sequence[float], loads: Sequence[float]) -> Constants:
    """The constants that a few points speak for: one from one or two different loads, three from three on.

    Args:
        parts: TPOT at each point in parts, lowest load first.
        measured: TPOT measured there [s].
        loads: concurrency there, by which points are told apart [requests].
    """
    ratios = [tpot / part.tpot(NONE) for tpot, part in zip(measured, parts, strict=True)]
    scale = float(np.clip(np.exp(np.mean(np.log(ratios))), *SCALE))
    if loads_among(loads) < MANY:
        return Constants(scale)
    return _three(parts, np.asarray(measured), scale)


def _three(parts: Sequence[Parts], measured: np.ndarray, scale: float) -> Constants:
    """Scale, host time and interference, drawn weakly towards none."""
    unit = parts[0].tpot(NONE)

    def constants(x: np.ndarray) -> Constants:
        return Constants(float(np.exp(x[0])), float(x[1]) * unit, float(np.exp(x[2])))

    def misses(x: np.ndarray) -> np.ndarray:
        by = constants(x)
        found = np.array([part.tpot(by) for part in parts])
        return np.concatenate([np.log(found / measured) / NOISE, x / np.array(EXPECTED)])

    return constants(_least(misses, np.array([np.log(scale), 1e-3, 0.0])))


def _least(misses: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """Where the misses are least, within the bounds of the constants."""
    from scipy.optimize import least_squares

    low = np.array([np.log(SCALE[0]), 0.0, np.log(INTERFERENCE[0])])
    high = np.array([np.log(SCALE[1]), MOST_HOST, np.log(INTERFERENCE[1])])
    inside = np.clip(start, low + 1e-6, high - 1e-6)
    return np.asarray(least_squares(misses, inside, bounds=(low, high)).x)
