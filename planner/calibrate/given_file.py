"""Writes `presets/profiles/calibrated.toml`: how wide the error stays once points of a curve were given."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from planner.calibrate.given_points import Given, curves, error_of
from planner.predict import read_table

SURE: Final = 0.8
"""Share of the points that stay below `sure`."""
NAME: Final = "calibrated.toml"
HEADER: Final = """# How wide the error stays once a benchmark of the same configuration was given: 80 % of measured over
# predicted TPOT at the points that were not given; four in five stay below `sure`. Public curves, as worked out by
# `python -m planner calibrate --given`.

"""
PLACES: Final = (
    (1, "after_one", "the middle point by concurrency"),
    (3, "after_three", "the lowest, the middle and the highest point by concurrency"),
)


def write_given(table: Path, out: Path, date: str) -> str:
    """Work the bands out from a table of served points and write them; returns both findings in a line each.

    Raises:
        InputError: the table cannot be read.
    """
    found = tuple(curves(read_table(table)[1]))
    results = [(error_of(found, count), name, given) for count, name, given in PLACES]
    head = (
        f'id = "calibrated"\ndate = "{date}"\n'
        'source = "presets/measurements/serving.csv: curves of one configuration over concurrency, the points that were '
        'not given"\n'
    )
    body = "".join(_table(*each) for each in results)
    (out / NAME).write_text(HEADER + head + body, encoding="utf-8")
    return "".join(_line(*each) for each in results)


def _table(found: Given, name: str, given: str) -> str:
    """One band."""
    return (
        f'\n[{name}]\ngiven = "{given}"\nlow = {found.low:.3f}\nhigh = {found.high:.3f}\n'
        f"sure = {np.quantile(found.ratios, SURE):.3f}\n"
        f'curves = {found.curves}\nrows = {found.rows}\ntag = "fitted"\n'
    )


def _line(found: Given, name: str, given: str) -> str:
    """One finding."""
    return f"{name}: {given}: {found.before:.2%} before, {found.after:.2%} after, {found.curves} curves\n"
