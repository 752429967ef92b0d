"""Every registered formula against arithmetic done by hand; `derivation` says how. Nothing here was computed by the code."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from planner.formula import REGISTRY
from tests.samples import registered

CASES = list(csv.DictReader((Path(__file__).parent / "formulas.csv").open(encoding="utf-8", newline="")))
IDS = [f"{case['formula']}-{number}" for number, case in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_formula_gives_what_hand_arithmetic_gives(case: dict[str, str]) -> None:
    registered()
    found = REGISTRY[case["formula"]].function(**json.loads(case["inputs"]))
    assert float(np.asarray(found).reshape(-1)[0]) == pytest.approx(float(case["expected"]), rel=float(case["rtol"]), abs=0)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_formula_gives_the_same_for_a_column(case: dict[str, str]) -> None:
    registered()
    inputs = json.loads(case["inputs"])
    columns = {name: np.full((3, 1), float(value)) if not isinstance(value, bool) else value for name, value in inputs.items()}
    found = np.broadcast_to(np.asarray(REGISTRY[case["formula"]].function(**columns)), (3, 1))
    assert found == pytest.approx(float(case["expected"]), rel=float(case["rtol"]), abs=0)
