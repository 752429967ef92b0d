"""The command `optimise`: what it prints, what its JSON holds, what it refuses, progress on stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.calibrate.correction import calibrate
from planner.cli import main
from planner.export import from_csv
from planner.logs.readings import Point
from planner.share import from_link, to_link
from planner.single import plan_of

ASKED = "model=llama-3.1-70b&gpu=h200-sxm&weights=fp8"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert main(["optimise", *arguments]) == code
    found = capsys.readouterr()
    return found.out, found.err


def test_as_a_process_the_answer_is_on_stdout_and_progress_on_stderr(root: Path) -> None:
    command = (sys.executable, "-m", "planner", "optimise", ASKED, "--max-gpus", "8", "--json")
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["plans"]
    lines = done.stderr.splitlines()
    assert lines[0].startswith("searched 0 of ")
    assert "best so far" in lines[-1]


def test_json_holds_plans_as_plan_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(
        printed(capsys, ASKED, "--accelerators", "h200-sxm,b200-sxm", "--max-gpus", "8", "--top", "3", "--json")[0]
    )
    assert len(found["plans"]) == 3
    assert isinstance(found["considered"], int)
    assert found["considered"] > 0
    assert sum(found["refused"].values()) > 0
    assert found["question"]["max_gpus"] == 8
    assert found["question"]["accelerators"] == ["h200-sxm", "b200-sxm"]
    values = [each["value"] for each in found["plans"]]
    assert values == sorted(values)
    for each in found["plans"]:
        plan = plan_of(from_link(each["link"]))
        assert (plan.usd_per_m_goodput, plan.tpot_ms, plan.gpus) == (
            each["usd_per_m_goodput"],
            each["tpot_ms"],
            each["gpus"],
        )
        assert each["value"] == pytest.approx(each["usd_per_m_goodput"], rel=1e-12)


def test_its_own_link_asks_the_same_question(capsys: pytest.CaptureFixture[str]) -> None:
    one = json.loads(printed(capsys, ASKED, "--precisions", "fp8,bf16", "--max-gpus", "4", "--json")[0])
    two = json.loads(printed(capsys, one["link"], "--json")[0])
    assert [each["value"] for each in two["plans"]] == [each["value"] for each in one["plans"]]
    three = json.loads(printed(capsys, one["link"], "--max-gpus", "2", "--json")[0])
    assert three["question"]["max_gpus"] == 2


def test_csv_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = printed(capsys, ASKED, "--max-gpus", "4", "--top", "2", "--csv")
    assert len(from_csv(text)) == 2


def test_text_names_the_winner_first_and_why_others_fell(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = printed(capsys, ASKED, "--max-gpus", "4")
    assert text.startswith("TP2 · FP8 · H200 SXM 141 GB costs $")
    assert "tp does not divide the 64 attention heads" in text


def test_infeasible_is_an_answer_with_the_smallest_relaxation(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (f"{ASKED}&sla_tpot_ms=4", "--max-gpus", "8")
    text, _ = printed(capsys, *asked)
    assert text.startswith("Nothing within 8 GPUs")
    found = json.loads(printed(capsys, *asked, "--json")[0])
    assert found["plans"] == []
    (needed,) = [each for each in found["relaxations"] if each["field"] == "sla_tpot_ms"]
    assert needed["now"] == 4.0
    assert plan_of(from_link(needed["link"])).meets_sla


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--max-gpus", "0"), "max_gpus = 0: must be a whole number from 1 to 4,096 (GPUs)"),
        (("--objective", "cheap"), "objective = cheap: must be one of"),
        (("--accelerators", "h100-sxn"), "did you mean h100-sxm"),
        (("--precisions", "fp8,fp8"), "must stand once"),
        (("--limits", "tpot_ms<30"), "tpot_ms<=30"),
        (("--top", "0"), "top = 0: must be a whole number from 1 to 100"),
        (("--objective", "usd_per_hour"), "qps above 0"),
    ],
)
def test_wrong_options_are_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    out, err = printed(capsys, ASKED, *arguments, code=2)
    assert out == ""
    assert says in err
    assert "Traceback" not in err


CALIBRATED = calibrate(
    from_link("model=llama-3.1-70b&gpu=h100-sxm&weights=fp8&tp=4"), [Point(concurrency=16, tpot_ms=12.0)]
)


def asked_of(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The answer to the calibrated question as text and what its JSON says of the calibration."""
    link = to_link(CALIBRATED.with_(at_batch=None))
    text, _ = printed(capsys, link, "--max-gpus", "8", *arguments)
    return text, json.loads(printed(capsys, link, "--max-gpus", "8", *arguments, "--json")[0])["calibration"]


def test_a_search_over_calibrated_and_other_accelerators_says_which(capsys: pytest.CaptureFixture[str]) -> None:
    text, found = asked_of("--accelerators", "h100-sxm,h200-sxm,b200-sxm", capsys=capsys)
    assert found == (
        "H100 SXM 80 GB is calibrated by 1 measured point, H200 SXM 141 GB and B200 SXM 180 GB are not: "
        "their order holds a measurement against a prediction."
    )
    assert found in text.splitlines()
    assert text.count("calibrated) ") == 1
    assert "calibrated) costs" in text.splitlines()[0]


def test_precisions_that_were_not_measured_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = asked_of("--precisions", "fp8,bf16", capsys=capsys)
    assert found.startswith("H100 SXM 80 GB with FP8 weights is calibrated by 1 measured point, ")
    assert "H100 SXM 80 GB with BF16 weights is not" in found


def test_a_search_in_which_all_or_none_are_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    text, found = asked_of(capsys=capsys)
    assert found == ""
    assert "calibrated)" not in text
    text, found = asked_of("--accelerators", "h200-sxm", capsys=capsys)
    assert found == "The calibration holds for nothing that is tried: every plan has the uncalibrated constants."
    assert found in text
    assert "calibration" not in printed(capsys, ASKED, "--max-gpus", "8")[0]


SERVED = "model=llama-3.1-8b&gpu=h100-sxm&weights=fp8"
LIGHT = f"{SERVED}&osl=64&qps=10&sla_pct=99&sla_ttft_ms=500&sla_tpot_ms=8"
BUSY = f"{SERVED}&isl=4096&osl=128&load=1&qps=6.439&sla_pct=50&sla_ttft_ms=500&sla_tpot_ms=12"
"""On means one replica of the smallest layout is cheapest; at 97 % of what it carries a queue grows that half of all feel."""


def test_verify_adds_trials_and_what_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    text, told = printed(capsys, BUSY, "--max-gpus", "2", "--verify", "2", "--json")
    found = json.loads(text)
    verified, first = found["verified"], found["plans"][0]
    assert verified["sla_pct"] == 50
    assert [each["rank"] for each in verified["trials"]][:2] == [1, 2]
    winner = verified["trials"][0]
    assert winner["link"] == first["link"]
    assert winner["holds"] is False
    assert winner["ttft_at_pct_ms"] > 500
    assert winner["share_ttft"]["high"] < 0.5
    (taken,) = (each for each in verified["trials"] if each["link"] == verified["chosen"])
    assert taken["holds"] is True
    assert taken["ttft_at_pct_ms"] <= 500
    assert plan_of(from_link(verified["chosen"])).usd_per_hour == taken["usd_per_hour"]
    assert verified["verdict"].startswith("The winner fails at P50 in simulation: TTFT ")
    assert "simulated 0 of " in told


def test_verify_says_in_text_what_holds(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = printed(capsys, LIGHT, "--max-gpus", "1", "--verify")
    assert text.startswith("TP1 · FP8 · H100 SXM 80 GB costs $")
    said = text[text.index("The winner holds at P99 in simulation: TTFT ") :]
    assert "TTFT P99 (ms)" in said
    assert said.splitlines()[3].endswith("holds")


def test_verify_takes_nothing_beyond_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    # By queue theory the P99 of TTFT takes nine replicas that all but stand idle; one GPU is allowed.
    text, _ = printed(capsys, LIGHT.replace("ttft_ms=500", "ttft_ms=75"), "--max-gpus", "1", "--verify")
    said = text[text.index("By queue theory what comes nearest takes 9 GPUs at P99, more than 1. ") :]
    assert "Nothing within that holds in simulation; nearest comes TP1" in said
    assert "1 −8 " in said


def test_without_verify_nothing_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    text, told = printed(capsys, LIGHT, "--max-gpus", "1", "--json")
    assert "verified" not in json.loads(text)
    assert "simulated" not in told


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--verify", "0"), "verify = 0: must be a whole number from 1 to 100"),
        (("--verify", "two"), "verify = two: must be a whole number from 1 to 100"),
        (("--verify", "3", "--csv"), "verify = 3: has no columns in CSV"),
    ],
)
def test_a_verify_that_cannot_be_is_refused(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], fault: str
) -> None:
    out, told = printed(capsys, LIGHT, "--max-gpus", "1", *options, code=2)
    assert out == ""
    assert told.startswith(fault)


def test_nothing_is_verified_where_nothing_stands(capsys: pytest.CaptureFixture[str]) -> None:
    text, told = printed(capsys, f"{ASKED}&sla_tpot_ms=1", "--max-gpus", "2", "--verify", "--json")
    assert "verified" not in json.loads(text)
    assert "simulated" not in told
