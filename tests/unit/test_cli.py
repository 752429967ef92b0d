"""The command line, as a process: exit codes, one clear line per fault, never a traceback."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import main
from planner.export import DOCUMENT_KEYS, from_csv, from_json
from planner.share import scenario_from_text


def run(*arguments: str, root: Path) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "planner", *arguments)
    return subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


def test_plan_as_text(root: Path) -> None:
    done = run("plan", "llama70b-fp8-c", root=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fits. ")
    assert "tpot_ms" in done.stdout
    assert done.stderr == ""


def test_plan_as_json_and_csv_read_back(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = scenario_from_text("llama70b-fp8-c")
    assert main(["plan", "llama70b-fp8-c", "--json"]) == 0
    text = capsys.readouterr().out
    assert tuple(json.loads(text)) == DOCUMENT_KEYS
    assert from_json(text) == asked
    assert main(["plan", "preset=llama70b-fp8-c", "--csv"]) == 0
    assert from_csv(capsys.readouterr().out) == (asked,)


def test_infeasible_is_an_answer_not_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "model=llama-3.1-405b&tp=1"]) == 0
    assert capsys.readouterr().out.startswith("Does not fit. ")


def test_each_fault_is_one_line_on_stderr(root: Path) -> None:
    done = run("plan", "tp=banana&isl=1000000000000&colour=red", root=root)
    assert done.returncode == 2
    assert done.stdout == ""
    assert [line.split(" = ")[0] for line in done.stderr.splitlines()] == ["tp", "isl", "colour"]


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("plan",), ("nothing",), ("plan", "nothing"), ("plan", ""), ("plan", "tp=4", "--json", "--csv"),
        ("plan", "tp=4", "--what"), ("catalogue", "nothing"), ("plan", "model=custom&x=1AAAA"), ("plan", "\x1b[31m"),
        ("plan", "tp=1\n\n2"),
    ],
)  # fmt: skip
def test_bad_input_is_exit_2_and_no_traceback(arguments: tuple[str, ...], root: Path) -> None:
    done = run(*arguments, root=root)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "--help"), ("catalogue", "--help")])
def test_help(arguments: tuple[str, ...], root: Path) -> None:
    done = run(*arguments, root=root)
    assert done.returncode == 0
    assert "usage: python -m planner" in done.stdout
    assert done.stderr == ""


def test_help_of_plan_explains_every_field(root: Path) -> None:
    text = run("plan", "--help", root=root).stdout
    assert "sla_tpot_ms" in text
    assert "from 1 to 10,000,000 (tokens)" in text


@pytest.mark.parametrize("part", ["models", "accelerators", "prices", "presets"])
def test_catalogue(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", part]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == part
    assert lines[1].rstrip().endswith("source")
    assert len(lines) > 10


def test_the_whole_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"models", "accelerators", "prices", "presets"} <= set(lines)


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    command = (sys.executable, "-m", "planner", "catalogue")
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(timeout=120) == 0
    assert said == b""


def test_output_is_utf8_whatever_the_locale(root: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    command = (sys.executable, "-m", "planner", "plan", "llama70b-fp8-c", "--csv")
    done = subprocess.run(command, cwd=root, capture_output=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0
    assert done.stdout.startswith(b"\xef\xbb\xbf")
    assert done.stdout.count(b"\r\n") == 2
    assert len(list(csv.reader(io.StringIO(done.stdout.decode("utf-8-sig"), newline="")))) == 2


@pytest.fixture
def bad_files(tmp_path: Path) -> dict[str, Path]:
    binary, empty = tmp_path / "binary.csv", tmp_path / "empty.csv"
    binary.write_bytes(bytes(range(256)))
    empty.write_bytes(b"")
    return {"missing": tmp_path / "no.csv", "directory": tmp_path, "binary": binary, "empty": empty}


@pytest.mark.parametrize("kind", ["missing", "directory", "binary", "empty"])
def test_predict_refuses_what_is_no_table(kind: str, bad_files: dict[str, Path], root: Path) -> None:
    pytest.importorskip("planner.predict")
    done = run("predict", str(bad_files[kind]), root=root)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
