"""How much a benchmark of one's own helps: public curves, a few points of each given, the others predicted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from planner.calibrate.constants import NONE, Parts, constants_of, parts_of
from planner.case_words import CaseError, Row, number
from planner.errors import HeadroomError
from planner.predict_serving import planned
from planner.setting import Setting

TIER: Final = "T1"
"""Rows that state everything a prediction needs."""

FEWEST: Final = {1: 3, 3: 5}
"""Fewest points of a curve of which so many are given, so that others are left to be predicted."""


@dataclass(frozen=True)
class Given:
    """What giving points of a curve does to the others.

    Attributes:
        given: points given of each curve. curves, rows: how many curves, and other points on them.
        before, after: mean |predicted/measured − 1| of a curve's other points, median over curves.
        low, high: 80 % of measured over predicted at the other points lie between these.
        ratios: measured over predicted at each of them.
    """

    given: int
    curves: int
    rows: int
    before: float
    after: float
    low: float
    high: float
    ratios: tuple[float, ...]

    def within(self, low: float, high: float) -> float:
        """Share of the other points whose measured over predicted TPOT lies in a band."""
        return float(np.mean([low <= ratio <= high for ratio in self.ratios]))


@dataclass(frozen=True)
class CurvePoint:
    """One row of a curve: how it ran (setting, batch, concurrency), TPOT predicted and measured [s]."""

    setting: Setting
    batch: float
    concurrency: float
    predicted: float
    measured: float

    @cached_property
    def parts(self) -> Parts:
        """Its TPOT in parts; worked out only where three constants are fitted."""
        return parts_of(self.setting, self.batch, self.predicted)

    @property
    def whole(self) -> Parts:
        """Its TPOT in one part, which is all that a scale needs."""
        return Parts(self.predicted, 0.0, 0.0)


Curve: TypeAlias = tuple[CurvePoint, ...]


def error_given(rows: Sequence[Row], how_many: int) -> Given:
    """Error at the other points of each curve when one (the middle) or three (lowest, middle, highest) are given.

    Args:
        rows: table of served points; a curve is the T1 rows of one configuration that can be predicted.
        how_many: 1 or 3.
    """
    return error_of(tuple(curves(rows)), how_many)


def error_of(found: Sequence[Curve], how_many: int) -> Given:
    """As `error_given`, for curves that are already predicted."""
    before, after, ratios = [], [], []
    for curve in found:
        if len(curve) < FEWEST[how_many]:
            continue
        plain, fitted = _others(curve, how_many)
        before.append(np.mean(np.abs(1.0 / plain - 1.0)))
        after.append(np.mean(np.abs(1.0 / fitted - 1.0)))
        ratios += fitted.tolist()
    low, high = np.quantile(ratios, (0.1, 0.9)).tolist()
    errors = float(np.median(before)), float(np.median(after))
    return Given(how_many, len(after), len(ratios), *errors, low, high, tuple(ratios))


def _others(curve: Curve, how_many: int) -> tuple[np.ndarray, np.ndarray]:
    """Measured over predicted TPOT at the points that are not given, without and with a correction by the given ones."""
    parts = [point.whole if how_many == 1 else point.parts for point in curve]
    chosen = (len(curve) // 2,) if how_many == 1 else (0, len(curve) // 2, len(curve) - 1)
    known = [curve[at] for at in chosen]
    by = constants_of([parts[at] for at in chosen], [p.measured for p in known], [p.concurrency for p in known])
    rest = [at for at in range(len(curve)) if at not in chosen]
    measured = np.array([curve[at].measured for at in rest])
    plain, fitted = (measured / np.array([parts[at].tpot(each) for at in rest]) for each in (NONE, by))
    return plain, fitted


def curves(rows: Sequence[Row]) -> Iterator[Curve]:
    """Curves of a table with a point to spare, each by concurrency."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["tier"] == TIER and row["config_id"] and number(row, "tpot_best_ms"):
            grouped[row["config_id"]].append(row)
    for members in grouped.values():
        if len(members) >= FEWEST[1]:
            yield tuple(sorted(_points(members), key=lambda point: point.concurrency))


def _points(rows: Sequence[Row]) -> Iterator[CurvePoint]:
    """The rows that can be predicted, at the batch that really runs."""
    for row in rows:
        try:
            plans, setting, _ = planned(row)
        except (CaseError, HeadroomError):
            continue
        batch, predicted = float(plans.batch[0]), float(plans.tpot_ms[0]) * 1e-3
        concurrency = number(row, "concurrency_eff", "concurrency") or batch
        yield CurvePoint(setting, batch, concurrency, predicted, (number(row, "tpot_best_ms") or 0.0) * 1e-3)
