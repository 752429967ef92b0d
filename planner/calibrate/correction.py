"""A small correction of the measured constants from a benchmark of one's own, and how much nearer the plan is with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Final

import numpy as np

from planner.calibrate.assumed import assumed
from planner.calibrate.constants import INTERFERENCE, SCALE, constants_of, loads_among, parts_of
from planner.calibrate.points import LeftOut, Usable, uncalibrated, usable
from planner.catalog.calibrated import band_after, sure_after
from planner.catalog.calibration import correction_in, encode_calibration
from planner.catalog.custom import decode_custom
from planner.errors import Fault, InputError
from planner.logs.readings import Point
from planner.setting import resolve, subject_of, traffic_of
from planner.specs.correction import CALIBRATED, Correction, taken_over
from planner.specs.scenario import Scenario
from planner.variants import outcome

UNLOADED: Final = 4
"""Most requests a replica at which a stated TTFT still is that of an idle replica: no queue of prompts before it."""

CREDIBLE: Final = (0.5, 2.0)
"""Factors on TTFT that one point is believed; beyond them a unit or a queue is the likelier cause."""

MOST_AFTER: Final = 0.25
"""Largest median error of TPOT with a correction at which it still says something about the scenario."""

CLOSE: Final = 0.01
"""Share of a bound within which a fit is said to end on it."""


@dataclass(frozen=True)
class Compared:
    """One point before and after.

    Attributes:
        number: its place in the text, from 1.
        batch: sequences a replica; isl, osl: mean lengths [tokens].
        measured_ms, before_ms, after_ms: TPOT measured, predicted without and with the correction [ms].
    """

    number: int
    batch: int
    isl: int
    osl: int
    measured_ms: float
    before_ms: float
    after_ms: float

    @property
    def before(self) -> float:
        """Predicted over measured, less 1, without the correction."""
        return self.before_ms / self.measured_ms - 1.0

    @property
    def after(self) -> float:
        """The same with it."""
        return self.after_ms / self.measured_ms - 1.0


@dataclass(frozen=True)
class FirstToken:
    """TTFT of an idle replica.

    Attributes:
        number: the point that states it.
        measured_ms, before_ms, after_ms: measured, predicted without and with the correction [ms].
        fitted: whether it was followed; it is not where the factor would be beyond what one point is believed.
    """

    number: int
    measured_ms: float
    before_ms: float
    after_ms: float
    fitted: bool = True


@dataclass(frozen=True)
class Fit:
    """A benchmark against the plan.

    Attributes:
        correction: what was fitted. scenario: the one that was asked, planned with it from here on.
        points: those it was fitted to, by batch. left_out: those it was not, and why.
        first_token: what TTFT was fitted to; None = no point was as good as unloaded, and TTFT only follows the scale.
        assumed: what the points do not state and was assumed, a sentence each.
    """

    correction: Correction
    scenario: Scenario
    points: tuple[Compared, ...]
    left_out: tuple[LeftOut, ...] = ()
    first_token: FirstToken | None = None
    assumed: tuple[str, ...] = ()

    @property
    def band(self) -> tuple[float, float]:
        """80 % band of measured over predicted TPOT of the scenario, which may be unlike what was measured."""
        return resolve(self.scenario).profile.band

    @property
    def apart(self) -> str:
        """In what the scenario is unlike what was measured; empty where it is like it."""
        return taken_over(self.correction, subject_of(self.scenario), traffic_of(self.scenario))


def calibrate(scenario: Scenario, points: Sequence[Point]) -> Scenario:
    """The scenario planned with a correction by measured points: profile = custom, and the correction in its token.

    Raises:
        InputError: as `correction`.
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    return correction(scenario, points).scenario


def correction(scenario: Scenario, points: Sequence[Point]) -> Fit:
    """Fit a correction: a scale from one or two loads; host time and interference beside it from three on.

    Args:
        scenario: what was measured; its batch and lengths are the points' own, its profile counts as `measured`.
        points: as read. Concurrency is of the whole service: of `fix_replicas` replicas, else of one.

    Raises:
        InputError: when points contradict each other, are far from the plan, none can be compared with it, or no
            correction meets them.
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    kept, left = usable(scenario, points)
    base = uncalibrated(scenario)
    timed = _timed(base, kept)
    with_first, first = _first_token(kept, timed)
    compared = _compared(base, kept, with_first)
    made = _judged(with_first, compared)
    if said := _failed(made):
        raise InputError((Fault("calibration", made.words, said),))
    calibrated = _with(base, made).with_(at_batch=scenario.at_batch)
    supposed = assumed(base, [points[each.number - 1] for each in kept])
    return Fit(correction_in(str(calibrated.x)), calibrated, compared, left, first, supposed)


def _failed(made: Correction) -> str:
    """Why a correction is not one of the scenario; empty when it may be."""
    causes = "the points are not of this scenario; check its model, precision, layout and drafts, and each row's load"
    for name, value, bounds in (("scale", made.scale, SCALE), ("interference", made.interference, INTERFERENCE)):
        if value <= bounds[0] * (1.0 + CLOSE) or value >= bounds[1] * (1.0 - CLOSE):
            return f"ends on the bounds of {name} ({bounds[0]:g} to {bounds[1]:g}): {causes}"
    if made.after > MOST_AFTER:
        return f"leaves a median error of {made.after:.0%}, above {MOST_AFTER:.0%}: {causes}"
    return ""


def _timed(base: Scenario, points: Sequence[Usable]) -> Correction:
    """The constants of TPOT."""
    parts = [parts_of(resolve(point.scenario), float(point.batch)) for point in points]
    found = constants_of(parts, [point.tpot_ms * 1e-3 for point in points], [float(p.batch) for p in points])
    # Of several lengths one that was measured stands for all: between them there may be none.
    lengths = {name: median_low(getattr(point.scenario, name) for point in points) for name in ("isl", "osl")}
    return Correction(
        subject_of(base), found.scale, found.host_step, found.interference, points=len(points), band=(1.0, 1.0),
        traffic=replace(traffic_of(base), **lengths),
    )  # fmt: skip


def _with(scenario: Scenario, made: Correction) -> Scenario:
    """A scenario that carries a correction, beside the model of one's own where it has one."""
    own = decode_custom(scenario.x) if scenario.model == "custom" and scenario.x else None
    return scenario.with_(profile=CALIBRATED, x=encode_calibration(made, own))


def _first_token(points: Sequence[Usable], timed: Correction) -> tuple[Correction, FirstToken | None]:
    """One factor on TTFT, from the lowest point that states it, if that is as good as unloaded and can be believed.

    TTFT is linear in the factor, so that the plan at two factors gives the third.
    """
    point = next((each for each in points if each.ttft_ms is not None), None)
    if point is None or point.ttft_ms is None or point.batch > UNLOADED:
        return timed, None
    plain, twice = (outcome(_with(point.scenario, replace(timed, ttft=ttft))).ttft_ms for ttft in (1.0, 2.0))
    if plain is None or twice is None or twice <= plain:
        return timed, None
    factor = 1.0 + (point.ttft_ms - plain) / (twice - plain)
    before = outcome(point.scenario).ttft_ms or plain
    if not CREDIBLE[0] <= factor <= CREDIBLE[1]:
        return timed, FirstToken(point.number, point.ttft_ms, before, plain, fitted=False)
    made = replace(timed, ttft=factor)
    after = outcome(_with(point.scenario, made)).ttft_ms or plain
    return made, FirstToken(point.number, point.ttft_ms, before, after)


def _compared(base: Scenario, points: Sequence[Usable], made: Correction) -> tuple[Compared, ...]:
    """Every point without and with the correction, by the plan itself."""
    token = _with(base, made).x
    found = []
    for point in points:
        at = point.scenario
        after = outcome(at.with_(profile=CALIBRATED, x=token)).tpot_ms or float("nan")
        found.append(Compared(point.number, point.batch, at.isl, at.osl, point.tpot_ms, point.predicted_ms, after))
    return tuple(found)


def _judged(made: Correction, points: Sequence[Compared]) -> Correction:
    """The correction with median errors, and a band as public curves show it, no narrower than the given points."""
    loads = loads_among([float(point.batch) for point in points])
    low, high = band_after(loads)
    ratios = [point.measured_ms / point.after_ms for point in points]
    own_low, own_sure, own_high = (float(each) for each in np.quantile(ratios, (0.1, 0.8, 0.9)))
    return replace(
        made,
        before=float(np.median([abs(point.before) for point in points])),
        after=float(np.median([abs(point.after) for point in points])),
        band=(min(low, own_low), max(high, own_high)),
        sure=max(sure_after(loads), own_sure),
    )
