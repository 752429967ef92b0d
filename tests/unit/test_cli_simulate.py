"""The command `simulate`: what it prints, what its JSON and CSV hold, what it refuses, progress on stderr."""

from __future__ import annotations

import csv
import io
import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.cli import main
from planner.export import BOM
from planner.share import from_link, pinned
from planner.simulate import Traffic, command, simulate
from planner.simulate.document import (
    GIVEN,
    REQUEST_COLUMNS,
    SUMMARY_COLUMNS,
    request_lines,
    requests_csv,
    run_document,
    summary_csv,
)
from planner.simulate.figures import FIGURES, Digest
from planner.simulate.replicate import Replicated, estimates
from planner.simulate.report import percentile_name, replicated_verdict, verdict
from planner.simulate.requests import NONE, Requests
from planner.simulate.run import Run
from planner.simulate.spelling import asked_of, traffic_from_texts
from planner.simulate.summary import Spread, Summary
from planner.simulate.traces import read_trace
from planner.simulate.traffic import TRAFFIC_FIELDS
from planner.single import plan_of
from planner.specs.scenario import SCENARIO_FIELDS, Scenario

ASKED = "model=llama-3.1-8b&osl=32&qps=40&sla_ttft_ms=500&sla_tpot_ms=40&sla_pct=99"
FEW = ("--requests", "300")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert main(["simulate", *arguments]) == code
    found = capsys.readouterr()
    return found.out, found.err


def rows(text: str) -> list[dict[str, str]]:
    assert text.startswith(BOM)
    assert text.endswith("\r\n")
    return list(csv.DictReader(io.StringIO(text.removeprefix(BOM), newline=""), strict=True))


# --- text -----------------------------------------------------------------------------------------------------------


def test_as_a_process_the_verdict_is_first_and_progress_on_stderr(root: Path) -> None:
    command = (sys.executable, "-m", "planner", "simulate", ASKED, *FEW)
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Holds at P99: TTFT ")
    assert done.stderr.splitlines()[-1].startswith("simulated 300 of 300 requests, ")


def test_what_breaks_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    """All at once on one replica: the last of 300 prompts waits for the 299 before it."""
    asked = "model=llama-3.1-8b&osl=32&qps=1&sla_ttft_ms=500&sla_tpot_ms=40&sla_pct=99"
    text, _ = printed(capsys, asked, *FEW, "--rate", "100000")
    assert text.startswith("Does not hold at P99: TTFT ")
    assert " s against 500 ms" in text.splitlines()[0]


def spread(at: float | None) -> Spread:
    return Spread(at, at, at, at, at, at)


def summary(**changes: object) -> Summary:
    known = Summary(
        requests=2000, served=2000, rejected=0, too_long=0, counted=1800, ttft=spread(412.0), tpot=spread(31.0),
        e2e=spread(4000.0), share_good=1.0, meets_sla=True, output_tok_s=1000.0, good_tok_s=1000.0, goodput_tok_s=1000.0,
        qps=4.0, running=10.0, waiting=0.0, used=0.5, used_peak=0.9, preemptions=0, hit=0.0, little=1.0, duration_s=500.0,
    )  # fmt: skip
    return replace(known, **changes)


PROMISE = Scenario(sla_ttft_ms=500.0, sla_tpot_ms=40.0, sla_pct=99.9)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "Holds at P99.9: TTFT 412 ms of 500 ms, TPOT 31.0 ms of 40.0 ms."),
        ({"tpot": spread(None)}, "Holds at P99.9: TTFT 412 ms of 500 ms."),
        ({"meets_sla": False, "ttft": spread(812.0)}, "Does not hold at P99.9: TTFT 812 ms against 500 ms."),
        (
            {"meets_sla": False, "ttft": spread(812.0), "tpot": spread(40.5)},
            "Does not hold at P99.9: TTFT 812 ms against 500 ms, TPOT 40.5 ms against 40.0 ms.",
        ),
        (
            {"meets_sla": False, "served": 1958, "rejected": 41, "too_long": 1},
            "Does not hold at P99.9: 42 of 2,000 requests were not served (41 turned away, 1 longer than the cache).",
        ),
        (
            {"meets_sla": False, "served": 0, "counted": 0, "ttft": spread(None), "tpot": spread(None)},
            "Does not hold at P99.9: 2,000 of 2,000 requests were not served (2,000 never served).",
        ),
    ],
)
def test_the_verdict_in_a_sentence(changes: dict[str, object], says: str) -> None:
    assert verdict(summary(**changes), PROMISE) == says


def test_the_verdict_of_several_runs() -> None:
    """TTFT 400, 412, 424: mean 412, s = 12, half = 4.303 · 12 / √3 = 29.8; 0, 30 and 60 are turned away."""
    told = [
        Digest(
            PROMISE,
            Traffic(seed=at),
            4.0,
            8,
            1,
            summary(ttft=spread(400.0 + 12 * at), rejected=30 * at, meets_sla=at < 1),
        )
        for at in range(3)
    ]
    found = Replicated(tuple(told), estimates(told), 1 / 3, (3,))
    assert replicated_verdict(found) == (
        "Holds at P99.9 in 1 of 3 runs: TTFT 412 ± 29.8 ms against 500 ms, TPOT 31.0 ± 0 ms against 40 ms, "
        "30.0 requests turned away a run on average. 1 run was lost by the workers."
    )


def test_percentiles_are_named_without_needless_zeros() -> None:
    assert [percentile_name(each) for each in (50.0, 99.0, 99.9)] == ["P50", "P99", "P99.9"]


# --- JSON -----------------------------------------------------------------------------------------------------------


def test_json_holds_what_was_asked_and_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, ASKED, *FEW, "--seed", "7", "--json")[0])
    assert list(found) == [
        "scenario", "link", "traffic", *GIVEN, "sla_pct", *FIGURES, "plan", "trace",
    ]  # fmt: skip
    run = simulate(from_link(ASKED), Traffic(requests=300, seed=7))
    assert list(found["traffic"]) == list(TRAFFIC_FIELDS)
    assert found["traffic"]["seed"] == 7
    assert (found["rate"], found["sla_pct"], found["requests"]) == (40.0, 99.0, 300)
    assert found["ttft_p99_ms"] == found["ttft_pct_ms"] == run.summary.ttft.p99
    assert found["kv_used"] == run.summary.used
    assert found["meets_sla"] is True
    plan = plan_of(from_link(ASKED))
    assert found["plan"] == {
        "tpot_ms": plan.tpot_ms, "ttft_ms": plan.ttft_ms, "b_max": plan.b_max, "batch": plan.batch,
        "output_tok_s": plan.output_tok_s, "goodput_tok_s": plan.goodput_tok_s,
    }  # fmt: skip
    assert (found["in_flight"], found["replicas"], found["trace"]) == (plan.batch, plan.replicas, None)


def test_its_own_link_repeats_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    one = json.loads(printed(capsys, ASKED, *FEW, "--arrival", "gamma", "--cv", "3", "--json")[0])
    two = json.loads(printed(capsys, one["link"], "--json")[0])
    assert {name: two[name] for name in FIGURES} == {name: one[name] for name in FIGURES}
    three = json.loads(printed(capsys, one["link"], "--cv", "1.5", "--json")[0])
    assert three["traffic"] == {**one["traffic"], "cv": 1.5}
    assert three["ttft_p99_ms"] != one["ttft_p99_ms"]


def test_what_is_no_number_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = printed(capsys, ASKED.replace("osl=32", "osl=1"), *FEW, "--json")
    found = json.loads(text, parse_constant=pytest.fail)
    assert found["tpot_p99_ms"] is None
    assert found["ttft_p99_ms"] > 0


def test_runs_have_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (ASKED, *FEW, "--runs", "3", "--seed", "5")
    found = json.loads(printed(capsys, *arguments, "--json")[0])
    told = found["replications"]
    assert (told["runs"], told["seeds"], told["lost_seeds"], told["share_meets"]) == (3, [5, 6, 7], [], 1.0)
    p99 = told["figures"]["ttft_p99_ms"]
    assert p99["low"] < p99["mean"] < p99["high"]
    assert found["ttft_p99_ms"] == simulate(from_link(ASKED), Traffic(requests=300, seed=5)).summary.ttft.p99
    text, errors = printed(capsys, *arguments)
    assert text.startswith("Holds at P99 in all 3 runs: TTFT ")
    assert "95 % interval" in text
    assert errors.splitlines()[-1] == "simulated 3 of 3 runs, 900 requests"
    assert [each["seed"] for each in rows(printed(capsys, *arguments, "--csv")[0])] == ["5", "6", "7"]


# --- CSV ------------------------------------------------------------------------------------------------------------


def test_figures_are_a_row_that_says_what_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = printed(capsys, ASKED, *FEW, "--isl-cv", "0.5", "--csv")
    (row,) = rows(text)
    assert tuple(row) == SUMMARY_COLUMNS
    assert len(set(SUMMARY_COLUMNS)) == len(SUMMARY_COLUMNS)
    assert SUMMARY_COLUMNS[: len(SCENARIO_FIELDS)] == SCENARIO_FIELDS
    assert (row["qps"], row["isl_cv"], row["rate"], row["run_rate"], row["requests"]) == ("40", "0.5", "", "40", "300")
    scenario, texts = asked_of(row["link"])
    assert scenario == pinned(from_link(ASKED))
    assert traffic_from_texts(texts) == Traffic(requests=300, isl_cv=0.5)
    run = simulate(from_link(ASKED), Traffic(requests=300, isl_cv=0.5))
    assert float(row["tpot_p95_ms"]) == run.summary.tpot.p95
    assert float(row["run_qps"]) == run.summary.qps
    assert row["meets_sla"] == "true"


def test_no_cell_is_a_formula() -> None:
    run = simulate(from_link(ASKED), Traffic(requests=20))
    (row,) = rows(summary_csv([run], "=cmd()"))
    assert row["link"].startswith("'=cmd()?")


def test_requests_are_rows(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = printed(capsys, ASKED, *FEW, "--osl-cv", "0.5", "--requests-csv")
    found = rows(text)
    assert tuple(found[0]) == REQUEST_COLUMNS
    assert len(found) == 300
    outcome = simulate(from_link(ASKED), Traffic(requests=300, osl_cv=0.5)).outcome
    assert [float(row["time_s"]) for row in found] == outcome.requests.arrival.tolist()
    assert [int(row["output_tokens"]) for row in found] == outcome.requests.osl.tolist()
    for name, values in (("ttft_ms", outcome.ttft), ("tpot_ms", outcome.tpot), ("e2e_ms", outcome.e2e)):
        assert [float(row[name]) for row in found] == pytest.approx((values * 1e3).tolist(), abs=5.001e-4)
    assert {row["state"] for row in found} == {"done"}
    assert [int(row["replica"]) for row in found] == outcome.replica.tolist()


def test_requests_that_are_not_served_have_empty_times() -> None:
    run = simulate(from_link(ASKED), Traffic(requests=300, over="reject", in_flight=1, router="round-robin"))
    found = rows(requests_csv(run))
    turned = [row for row in found if row["state"] == "rejected"]
    assert len(turned) == run.summary.rejected > 0
    assert {(row["ttft_ms"], row["tpot_ms"], row["e2e_ms"], row["replica"]) for row in turned} == {("", "", "", "")}


def again(run: Run) -> Requests:
    return read_trace(requests_csv(run).encode(), "again").requests


@pytest.mark.parametrize("prefix", [0.0, 0.5])
def test_requests_read_back_as_a_trace(prefix: float) -> None:
    """Lengths, sessions and shared prompts are the same; times are counted from the first arrival."""
    asked = from_link(ASKED).with_(prefix=prefix)
    run = simulate(asked, Traffic(requests=200, turns=1 if prefix else 4, isl_cv=0.0 if prefix else 0.3))
    made, read = run.outcome.requests, again(run)
    assert np.diff(read.arrival) == pytest.approx(np.diff(made.arrival), abs=1e-12)
    assert (read.isl.tolist(), read.osl.tolist()) == (made.isl.tolist(), made.osl.tolist())
    assert read.shared.tolist() == made.shared.tolist()
    assert (read.group == NONE).tolist() == (made.group == NONE).tolist()
    assert len(set(zip(read.session.tolist(), made.session.tolist(), strict=True))) == len(set(made.session.tolist()))


def test_a_trace_of_a_run_repeats_it() -> None:
    """The same requests on the same plan: times move by less than the digits of an arrival that was shifted."""
    run = simulate(from_link(ASKED), Traffic(requests=300, osl_cv=0.5))
    repeated = simulate(from_link(ASKED), Traffic(), again(run))
    assert repeated.outcome.ttft == pytest.approx(run.outcome.ttft, abs=1e-9)
    assert repeated.outcome.e2e == pytest.approx(run.outcome.e2e, abs=1e-9)


def test_prefixes_that_no_trace_can_name_are_left_out() -> None:
    """Lengths that differ share differently much with one group: a trace has one length a prefix."""
    run = simulate(from_link(ASKED).with_(prefix=0.5), Traffic(requests=50, isl_cv=0.5))
    assert {row["prefix"] for row in rows(requests_csv(run))} == {""}
    assert len(again(run)) == 50


def test_files_are_written_in_parts_and_fast() -> None:
    """120,000 rows in three parts (a header, 50,000 rows, …), within seconds."""
    run = simulate(from_link(ASKED), Traffic(requests=100))
    many = {name: np.resize(getattr(run.outcome, name), 120_000) for name in ("state", "first", "end", "ttft")}
    whole = {name: np.resize(getattr(run.outcome, name), 120_000) for name in ("cached", "preempted", "replica")}
    asked = run.outcome.requests
    columns = {
        name: np.resize(getattr(asked, name), 120_000)
        for name in ("arrival", "isl", "osl", "group", "shared", "session")
    }
    large = replace(run, outcome=replace(run.outcome, requests=replace(asked, **columns), **many, **whole))
    start = time.perf_counter()
    parts = list(request_lines(large))
    assert time.perf_counter() - start < 10
    assert [part.count("\r\n") for part in parts] == [1, 50_000, 50_000, 20_000]


# --- traces ---------------------------------------------------------------------------------------------------------


def test_a_trace_takes_the_place_of_made_requests(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "four.csv"
    path.write_text("time_s,input_tokens,output_tokens\n0,100,8\n1,200,8\n2,300,8\n4,400,8\n", encoding="utf-8")
    found = json.loads(printed(capsys, ASKED, "--trace", str(path), "--json")[0])
    assert (found["requests"], found["counted"]) == (4, 4)
    assert found["rate"] == pytest.approx(3 / 4)
    assert (found["trace"]["name"], found["trace"]["format"], found["trace"]["rows"]) == ("four.csv", "template", 4)
    text, _ = printed(capsys, ASKED, "--trace", str(path))
    assert "trace four.csv\n" in text
    fewer = json.loads(printed(capsys, ASKED, "--trace", str(path), "--requests", "3", "--rate", "10", "--json")[0])
    assert fewer["requests"] == 3
    assert fewer["rate"] == pytest.approx(10.0)


def test_block_names_are_cut_with_their_requests(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "blocks.jsonl"
    lines = [
        {"timestamp": 100 * at, "input_length": 1000, "output_length": 4, "hash_ids": [1, at + 2]} for at in range(4)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = json.loads(printed(capsys, ASKED, "--trace", str(path), "--requests", "2", "--json")[0])
    assert found["requests"] == 2
    assert found["prefix_hit"] == pytest.approx(512 / 2000)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rate", "0"), "rate = 0: must be a number from 0.001 to 1,000,000 (requests/s), or left out"),
        (("--rate", "nan"), "rate = nan: must be a number from 0.001"),
        (("--arrival", "poison"), "did you mean poisson?"),
        (("--seed", "-1"), "seed = -1: must be a whole number from 0 to 4,294,967,295"),
        (("--runs", "0"), "runs = 0: must be a whole number from 1 to 10,000"),
        (("--runs", "00000000199999999999"), "must be a whole number from 1 to 10,000"),
        (("--runs", "ten"), "runs = ten: must be a whole number from 1 to 10,000"),
        (("--runs", "2", "--requests-csv"), "must be 1 with --requests-csv"),
        (("--trace", "nowhere.csv"), "nowhere.csv: No such file or directory"),
        (("--turns", "100", "--requests", "10"), "turns = 100"),
        (("--json", "--csv"), "not allowed with argument"),
        (("--nothing",), "unrecognized arguments"),
    ],
)
def test_wrong_options_are_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    asked = ["simulate", ASKED.replace("osl=32", "osl=256"), *arguments]
    try:
        code = main(asked)
    except SystemExit as leaving:
        code = leaving.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_every_fault_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = printed(capsys, ASKED, "--cv", "0", "--over", "drop", "--runs", "x", code=2)
    assert [line.split(" = ")[0] for line in err.splitlines()] == ["cv", "over", "runs"]


def test_a_plan_that_holds_no_request_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = printed(capsys, "model=llama-3.1-405b&tp=1", *FEW, code=2)
    assert "must stand before traffic can run on it" in err


def test_settings_of_made_requests_say_nothing_beside_a_trace(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "one.csv"
    path.write_text("time_s,input_tokens,output_tokens\n0,100,8\n", encoding="utf-8")
    _, err = printed(capsys, ASKED, "--trace", str(path), "--arrival", "gamma", "--isl-cv", "1", code=2)
    assert [line.split(" = ")[0] for line in err.splitlines()] == ["arrival", "isl_cv"]
    assert "must be left out" in err
    assert printed(capsys, f"{ASKED}&isl_cv=1", "--trace", str(path))[0].startswith("Holds")


def test_a_file_that_is_no_trace_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    _, err = printed(capsys, ASKED, "--trace", str(path), code=2)
    assert err.startswith("trace = columns a, b: ")
    assert len(err.splitlines()) == 1


def test_interrupted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "simulate", stopped)
    assert printed(capsys, ASKED, code=130) == ("", "")


def test_interrupted_as_a_process(root: Path) -> None:
    asked = (sys.executable, "-m", "planner", "simulate", ASKED, "--requests", "1000000")
    with subprocess.Popen(asked, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err


def test_help_explains_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name in TRAFFIC_FIELDS:
        assert f"--{name.replace('_', '-')}" in text
    assert "Must be a number from 0.01 to 20 (default 2)." in text


def test_numbers_that_are_none_never_reach_json() -> None:
    run = simulate(from_link(ASKED), Traffic(requests=20))
    odd = replace(run, summary=replace(run.summary, little=math.nan))
    assert run_document(odd)["little"] is None
