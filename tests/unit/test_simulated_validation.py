"""`python -m planner validate CASES.csv --simulate`: errors of simulations beside those of the closed formulas."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from planner.cli import main
from planner.errors import InputError
from planner.measured import TABLE
from planner.optimise.answer import Cancelled
from planner.predict import read_table
from planner.simulate.simulated_points import COLUMNS, simulated_points, stating
from planner.simulate.validation import KINDS, compared, spread

LOGS = Path("tests") / "golden" / "engine_logs.csv"


def test_few_rows_are_spread_over_configurations() -> None:
    rows = [{"config_id": name, "at": str(at)} for name in "abcd" for at in range(5)]
    assert [(row["config_id"], row["at"]) for row in spread(rows, 4)] == [(name, "2") for name in "abcd"]
    assert [row["config_id"] for row in spread(rows, 2)] == ["a", "c"]
    assert len(spread(rows, 9)) == 9
    assert {row["config_id"] for row in spread(rows, 9)} == set("abcd")
    assert spread(rows, None) == rows
    assert spread(rows, 100) == rows
    with pytest.raises(InputError, match="at least 1"):
        spread(rows, 0)


def test_both_kinds_of_errors_are_of_the_same_rows() -> None:
    steps: list[int] = []
    found = compared(TABLE, ("engine",), 6, lambda progress: steps.append(progress.done))
    assert found.rows == 6
    assert steps == sorted(steps)
    assert steps[-1] == 6
    for metric in ("TPOT", "TTFT"):
        closed, simulated = (found.of(metric, kind) for kind in KINDS)
        assert closed is not None
        assert simulated is not None
        assert closed.rows == simulated.rows
    assert any(each.group.startswith("simulated, engine ") for each in found.errors)


def test_a_stop_is_heard() -> None:
    with pytest.raises(Cancelled):
        compared(TABLE, (), 3, None, lambda: True)


def test_the_command_writes_errors_or_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(TABLE), "--simulate", "--limit", "2"]) == 0
    said = capsys.readouterr()
    assert "simulated" in said.out
    assert "simulated 2 of 2 load tests" in said.err
    out = tmp_path / "simulated.csv"
    assert main(["validate", str(TABLE), "--simulate", "--limit", "2", "--out", str(out)]) == 0
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert next(csv.reader([lines[1]])) == list(COLUMNS)
    assert len(lines) == 4
    assert len(simulated_points(out)) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([str(TABLE), "--limit", "3"], "limit = 3"),
        ([str(TABLE), "--simulate", "--limit", "0"], "limit = 0"),
        ([str(LOGS), "--simulate"], "serving cases"),
        ([str(TABLE), "--simulate", "--by", "colour"], "must be a column"),
    ],
)
def test_what_cannot_be_simulated_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", *arguments]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert said in found.err
    assert len(found.err.splitlines()) == 1


def test_only_rows_that_state_a_first_token_are_kept() -> None:
    _, rows = read_table(TABLE)
    assert 0 < len(stating(rows)) < len(rows)
