"""From a table of served points to `served.toml`: the whole of `python -m planner calibrate --serving`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from planner.calibrate.cases import cases, odd
from planner.calibrate.served_file import Table, served, tables_of, write
from planner.calibrate.serving_fit import Fit, fit, problem
from planner.case_words import Row
from planner.catalog.fitted_constants import GroupError, Served
from planner.catalog.profile_records import starting
from planner.errors import Fault, InputError
from planner.predict import read_table
from planner.specs.fields import shown

FEWEST_CASES = 200


def calibrate_serving(path: Path, out: Path, date: str) -> str:
    """Fit the serving constants to a table, write them, and say how far off they are.

    Raises:
        InputError: the table cannot be read, or has too few points of tier T1 that can be predicted.
    """
    found = fitted(read_table(path)[1], path.name, date)
    write(found, out)
    return report(found)


def fitted(rows: Sequence[Row], name: str, date: str) -> Served:
    """The record of a fit to a table's rows."""
    known, found = fit_of(rows, name)
    return served(found, known, date)


def fit_of(rows: Sequence[Row], name: str) -> tuple[Table, Fit]:
    """The cases of a table and the fit to them."""
    found = cases(rows)
    if len(found) < FEWEST_CASES:
        allowed = f"must hold at least {FEWEST_CASES} points of tier T1 that can be predicted (it has {len(found)})"
        raise InputError((Fault("--serving", shown(name), allowed),))
    excluded = np.array([odd(rows[case.row]) for case in found])
    families = [rows[case.row].get("model_family", "") for case in found]
    return tables_of(found, families, excluded), fit(problem(found, starting(), excluded))


def report(found: Served) -> str:
    """Errors by group, as aligned lines."""
    head = f"{found.points:,} points of {found.configurations} configurations in {found.pairs} pairs\n"
    return head + "".join(_line(each) for each in found.error)


def _line(each: GroupError) -> str:
    """One group."""
    return (
        f"{each.group:32s} configurations {each.configurations:4d}  within {each.within:6.1%}"
        f"  out of fold {each.out_of_fold:6.1%}  mean {each.mean:6.1%}  p90 {each.p90:6.1%}  bias ×{each.bias:.2f}\n"
    )
