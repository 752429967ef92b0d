"""A formula shows the lines that ran, with the numbers in them."""

from __future__ import annotations

import numpy as np
import pytest

from planner.formula import REGISTRY, explain, formula, mark, number, recording

SCALE = 10.0


@formula("a test", "m")
def braking_distance(speed, deceleration, factor=1.0):
    """How far it rolls.

    A second paragraph.
    """
    square = speed**2  # [m^2/s^2]
    return np.asarray(factor * square / (2.0 * np.maximum(deceleration, SCALE)))  # [m]


@formula("a test", "m/s")
def same(speed):
    """What came in."""
    return speed  # [m/s]


def lines(run):
    with recording() as taken:
        run()
    return [line for worked in explain(taken.calls) for line in worked.lines]


def test_a_formula_is_registered_with_its_source_unit_and_first_sentence():
    entry = REGISTRY["braking_distance"]
    assert (entry.source, entry.unit, entry.sentence) == ("a test", "m", "How far it rolls.")


def test_each_line_has_name_expression_numbers_result_and_unit():
    first, second = lines(lambda: braking_distance(20.0, 4.0))
    assert (first.name, first.expression, first.numbers, first.result, first.unit) == (
        "square", "speed ** 2", "20 ** 2", "400", "m^2/s^2",
    )  # fmt: skip
    assert second.name == "braking_distance"
    assert second.expression == "factor * square / (2.0 * np.maximum(deceleration, SCALE))"
    assert second.numbers == "1 * 400 / (2.0 * np.maximum(4, 10))"
    assert second.result == "20"
    assert second.unit == "m"


def test_the_shown_result_is_what_the_function_returned():
    with recording() as taken:
        result = braking_distance(np.array([[31.5]]), 12.0)
    worked = explain(taken.calls)[0]
    assert float(worked.lines[-1].result) == pytest.approx(float(result[0, 0]), rel=1e-5)
    assert taken.calls[0].result is result


def test_a_negative_number_stands_in_parentheses():
    """`-2 ** 2` would read as minus four."""
    assert lines(lambda: braking_distance(-2.0, 10.0))[0].numbers == "(-2) ** 2"


def test_a_return_that_only_hands_back_a_name_is_left_out():
    assert lines(lambda: same(3.0)) == []


def test_equal_numbers_are_shown_once_with_everything_they_are_about():
    with recording() as taken:
        braking_distance(20.0, 4.0)
        braking_distance(20.0, 4.0)
        braking_distance(30.0, 4.0)
    worked = explain(taken.calls, ["front", "rear", ""])
    assert [each.subjects for each in worked] == [("front", "rear"), ()]


def test_nothing_is_recorded_outside_a_recording():
    with recording() as taken:
        braking_distance(1.0, 1.0)
        mark("made")
    braking_distance(2.0, 2.0)
    mark("later")
    assert len(taken.calls) == 1
    assert taken.marks == [(1, "made")]


def test_a_crooked_formula_cannot_be_shown():
    @formula("a test", "1")
    def crooked(x):
        """Branches."""
        if x:
            return 1.0
        return 2.0

    try:
        with recording() as taken:
            crooked(1.0)
        with pytest.raises(TypeError, match="not a straight line"):
            explain(taken.calls)
    finally:
        del REGISTRY["crooked"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (1280.0, "1,280"),
        (0.000123456789, "0.000123457"),
        (1234.5678, "1234.57"),
        (78_679_145_185.28, "78,679,145,185"),
        (9.89e14, "9.89e+14"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (True, "True"),
        (np.bool_(False), "False"),
        (np.array([[3.0]]), "3"),
        (np.array([2.0, 2.0]), "2"),
        (np.array([1.0, 2.0, 4.0]), "1 … 4 (3 values)"),
        (np.array([]), "[]"),
        ("word", "word"),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown
