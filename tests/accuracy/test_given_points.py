"""What a benchmark of one's own is worth, on public curves: a point or three of each given, the others predicted."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.calibrate.given_points import Given, curves, error_of
from planner.calibrate.report import given_text
from planner.catalog.calibrated import band_after, sure_after
from planner.predict import read_table

TABLE = Path("presets") / "measurements" / "serving.csv"


@pytest.fixture(scope="module")
def given(root: Path) -> dict[int, Given]:
    _, rows = read_table(root / TABLE)
    found = tuple(curves(rows))
    return {points: error_of(found, points) for points in (1, 3)}


@pytest.mark.parametrize(("points", "curves", "most"), [(1, 300, 0.07), (3, 200, 0.03)])
def test_the_other_points_of_a_curve_are_near(given: dict[int, Given], points: int, curves: int, most: float) -> None:
    found = given[points]
    assert found.curves >= curves
    assert found.after <= most
    assert found.after < 0.9 * found.before


@pytest.mark.parametrize("points", [1, 3])
def test_stated_bands_hold_four_fifths_of_the_other_points(given: dict[int, Given], points: int) -> None:
    assert 0.75 <= given[points].within(*band_after(points)) <= 0.85


@pytest.mark.parametrize("points", [1, 3])
def test_four_fifths_of_the_other_points_stay_below_what_is_called_sure(given: dict[int, Given], points: int) -> None:
    assert 0.75 <= given[points].within(0.0, sure_after(points)) <= 0.85
    assert sure_after(points) < band_after(points)[1]


def test_what_giving_points_does_is_said_in_a_sentence(given: dict[int, Given]) -> None:
    said = given_text(given[3])
    assert f"within {given[3].after:.1%}" in said
    assert "the lowest, the middle and the highest" in said
