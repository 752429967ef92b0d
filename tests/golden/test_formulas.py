"""Every registered formula against arithmetic done by hand; `derivation` says how. Nothing here was computed by the code."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.formulas import registered

CASES = list(csv.DictReader((Path(__file__).parent / "formulas.csv").read_text(encoding="utf-8").splitlines()))
IDS = [f"{case['formula']}-{number}" for number, case in enumerate(CASES)]


def column(value):
    """A column of equal numbers; a switch stays a switch."""
    return value if isinstance(value, bool) else np.full((3, 1), float(value))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_formula_gives_what_hand_arithmetic_gives(case):
    found = registered()[case["formula"]].function(**json.loads(case["inputs"]))
    assert float(np.asarray(found)) == pytest.approx(float(case["expected"]), rel=float(case["rtol"]), abs=0)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_column_of_inputs_gives_the_same_row_by_row(case):
    inputs = {name: column(value) for name, value in json.loads(case["inputs"]).items()}
    found = np.broadcast_to(registered()[case["formula"]].function(**inputs), (3, 1))
    assert found == pytest.approx(np.full((3, 1), float(case["expected"])), rel=float(case["rtol"]), abs=0)


def test_every_formula_has_a_case():
    assert set(registered()) == {case["formula"] for case in CASES}
    assert all(case["derivation"] for case in CASES)
