"""How wide the error stays after a benchmark of one's own (`presets/profiles/calibrated.toml`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from pydantic import Field

from planner.catalog.profile_records import FOLDER, read
from planner.catalog.records import Record
from planner.specs.collective import Tag

MANY: Final = 3
"""Points from which on three constants are fitted, and the narrower band holds."""


class AfterRecord(Record):
    """80 % band of measured over predicted TPOT at points that were not given; four in five of them stay below `sure`."""

    given: str
    low: float = Field(gt=0, le=1)
    high: float = Field(ge=1)
    sure: float = Field(gt=0)
    curves: int = Field(ge=1)
    rows: int = Field(ge=1)
    tag: Tag


class CalibratedRecord(Record):
    """`calibrated.toml`."""

    id: str
    date: str
    source: str
    after_one: AfterRecord
    after_three: AfterRecord


@cache
def calibrated() -> CalibratedRecord:
    """The bands that hold after a calibration."""
    return read(FOLDER / "calibrated.toml", CalibratedRecord)


def band_after(points: int) -> tuple[float, float]:
    """80 % band of measured over predicted TPOT once so many points were given."""
    after = _after(points)
    return after.low, after.high


def sure_after(points: int) -> float:
    """What measured over predicted TPOT stays below in four cases of five once so many points were given."""
    return _after(points).sure


def _after(points: int) -> AfterRecord:
    found = calibrated()
    return found.after_three if points >= MANY else found.after_one
