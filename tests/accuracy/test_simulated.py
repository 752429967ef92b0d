"""presets/measurements/simulated.csv: what simulated load tests come to, found again, and how far off they are."""

from __future__ import annotations

import csv
import io

import pytest

from planner.case_words import Row
from planner.measured import TABLE
from planner.predict import read_table
from planner.simulate.loaded import ENGINES, loaded_errors, loaded_points, steady_shares
from planner.simulate.measured import cases, of_one
from planner.simulate.simulated_points import SIMULATED, cells, simulated_points, stating
from planner.simulate.validation import KINDS

FOUND_AGAIN = 40
"""Rows that are simulated anew, by whole configurations spread over the table."""


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    return stating(read_table(TABLE)[1])


def test_the_file_holds_the_shipped_points_that_state_a_first_token(rows: tuple[Row, ...]) -> None:
    points = simulated_points()
    assert [each.point for each in points] == [row["point"] for row in rows]
    assert [each.measured.ttft_ms for each in points] == [float(row["ttft_mean_ms"]) for row in rows]
    assert sum(not each.reason for each in points) >= 0.95 * len(points)


def test_simulations_find_the_shipped_figures_again(rows: tuple[Row, ...]) -> None:
    """A part of the table, simulated anew, is in the file digit by digit; the last digit may round otherwise."""
    text = SIMULATED.read_text(encoding="utf-8").partition("\n")[2]
    shipped = list(csv.reader(io.StringIO(text)))[1:]
    groups, refused = cases(rows)
    small = [group for group in groups if sum(each.test.requests for each in group) <= 3000]
    again = 0
    for group in small[7 :: len(small) // 18]:
        for at, found in of_one(group, steady=True):
            for new, old in zip(cells(rows[at], found), shipped[at], strict=True):
                assert new == old or float(new) == pytest.approx(float(old), rel=1e-3)
            again += 1
    assert again >= FOUND_AGAIN
    for at, reason in refused.items():
        assert shipped[at][-1] == reason


def test_loaded_first_tokens_are_within_a_third_and_nearer_than_closed_formulas() -> None:
    closed, simulated = (next(e for e in loaded_errors() if (e.metric, e.group) == ("TTFT", kind)) for kind in KINDS)
    assert len(loaded_points()) > 1800
    assert simulated.rows == closed.rows
    assert simulated.median <= 0.33
    assert simulated.median < closed.median
    assert 0.9 <= simulated.bias <= 1.1


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_keeps_the_split_between_first_and_later_tokens(engine: str) -> None:
    """A scheduler's order alone, without a fitted share of prefill, gives both sides of it."""
    found = {each.metric: each for each in loaded_errors(engine) if each.group == KINDS[1]}
    assert found["TTFT"].median <= 0.35
    assert found["TPOT"].median <= 0.10
    assert 0.95 <= found["TPOT"].bias <= 1.05
    assert found["output tokens/s per GPU"].median <= 0.21


def test_a_steady_service_shows_less_than_a_load_test_that_starts_at_once() -> None:
    shares = steady_shares()
    assert all(each.steady < each.later <= 1.0 for each in shares)
    assert shares[0].steady > 0.8 > shares[1].steady > shares[2].steady
    assert sum(each.points for each in shares) > 1800
