"""How much a benchmark of one's own helps: public curves, a few points of each given, the others predicted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.calibrate.constants import Constants, Parts, constants_of, parts_of
from planner.case_words import CaseError, Row, number
from planner.errors import HeadroomError
from planner.predict_serving import _planned

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
class _Point:
    """One row of a curve: concurrency, TPOT in parts, TPOT predicted and measured [s]."""

    concurrency: float
    parts: Parts
    measured: float


def error_given(rows: Sequence[Row], how_many: int) -> Given:
    """Error at the other points of each curve when one (the middle) or three (lowest, middle, highest) are given.

    Args:
        rows: table of served points; a curve is the T1 rows of one configuration that can be predicted.
        how_many: 1 or 3.
    """
    before, after, ratios = [], [], []
    for curve in _curves(rows, FEWEST[how_many], parted=how_many > 1):
        chosen = _chosen(len(curve), how_many)
        known = [curve[at] for at in chosen]
        by = constants_of([p.parts for p in known], [p.measured for p in known], [p.concurrency for p in known])
        others = [point for at, point in enumerate(curve) if at not in chosen]
        plain = np.array([point.measured / point.parts.tpot(Constants()) for point in others])
        fitted = np.array([point.measured / point.parts.tpot(by) for point in others])
        before.append(np.mean(np.abs(1.0 / plain - 1.0)))
        after.append(np.mean(np.abs(1.0 / fitted - 1.0)))
        ratios += fitted.tolist()
    low, high = np.quantile(ratios, (0.1, 0.9)).tolist()
    return Given(
        how_many, len(after), len(ratios), float(np.median(before)), float(np.median(after)), low, high, tuple(ratios)
    )


def _chosen(points: int, how_many: int) -> tuple[int, ...]:
    """Which points of a curve are given."""
    middle = points // 2
    return (middle,) if how_many == 1 else (0, middle, points - 1)


def _curves(rows: Sequence[Row], fewest: int, *, parted: bool) -> Iterator[list[_Point]]:
    """Curves with enough points, each by concurrency; only where three points are given are parts worked out."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["tier"] == TIER and row["config_id"] and number(row, "tpot_best_ms"):
            grouped[row["config_id"]].append(row)
    for members in grouped.values():
        if len(members) >= fewest:
            found = [point for row in members if (point := _point(row, parted=parted)) is not None]
            if len(found) >= fewest:
                yield sorted(found, key=lambda point: point.concurrency)


def _point(row: Row, *, parted: bool) -> _Point | None:
    """A row as a point of its curve; None where it cannot be predicted."""
    try:
        plans, setting, _ = _planned(row)
    except (CaseError, HeadroomError):
        return None
    whole = float(plans.tpot_ms[0]) * 1e-3
    parts = parts_of(setting, float(plans.batch[0]), whole) if parted else Parts(whole, 0.0, 0.0)
    concurrency = number(row, "concurrency_eff", "concurrency") or 0.0
    return _Point(concurrency, parts, (number(row, "tpot_best_ms") or 0.0) * 1e-3)
