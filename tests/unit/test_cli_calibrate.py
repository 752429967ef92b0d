"""`calibrate` with a file of one's own: text, JSON, the link; one line per fault and exit 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.catalog.calibration import correction_in
from planner.cli import main
from planner.share import from_link

LOGS = Path(__file__).parents[1] / "golden" / "logs"
TEMPLATE = LOGS / "benchmarks" / "headroom_template.csv"
START = LOGS / "startup" / "vllm-0.19-qwen2.5-72b-tp4.log"


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["calibrate", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["calibrate", *arguments]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
    return found.err


def test_results_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "weights=fp8&tp=4", "--results", str(TEMPLATE))
    assert text.startswith("understood: Headroom CSV of llama-3.1-70b")
    assert "differs" not in text
    assert "12.50" in text
    assert "median error: " in text
    link = from_link(text.rpartition("link: ")[2].strip())
    assert link.profile == "custom"
    assert correction_in(str(link.x)).points == 3


def test_results_of_another_subject_say_so_first(capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "weights=fp8&tp=4&gpu=h200-sxm", "--results", str(TEMPLATE))
    assert "gpu = h100-sxm, the scenario has gpu = h200-sxm" in text


def test_results_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ran(capsys, "weights=fp8&tp=4", "--results", str(TEMPLATE), "--json"))
    assert [point["measured_ms"] for point in found["points"]] == [12.5, 24.5, 38.0]
    assert found["correction"]["subject"]["tp"] == 4
    assert from_link(found["link"]).profile == "custom"
    assert found["differs"] == []


RESULT = {
    "backend": "vllm", "model_id": "acme/finetune-9b", "max_concurrency": 16, "request_rate": "inf", "completed": 160,
    "output_throughput": 1240.0, "total_input_tokens": 163_840, "total_output_tokens": 40_960, "mean_ttft_ms": 90.0,
    "mean_tpot_ms": 12.5,
}  # fmt: skip


def written(folder: Path, **changes: object) -> str:
    """The path of a saved result of vLLM with some of its figures changed."""
    path = folder / "result.json"
    path.write_text(json.dumps({**RESULT, **changes}), encoding="utf-8")
    return str(path)


def test_results_of_another_model_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = refused(capsys, "weights=fp8&tp=4", "--results", written(tmp_path, model_id="Qwen/Qwen3-32B"))
    assert said.startswith("model = llama-3.1-70b: the results are of qwen3-32b: name the model in SCENARIO")


def test_a_model_that_nobody_knows_is_a_difference_in_json_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = json.loads(ran(capsys, "weights=fp8&tp=4", "--results", written(tmp_path), "--json"))
    (differs,) = found["differs"]
    assert (differs["field"], differs["stated"], differs["planned"]) == ("model", "acme/finetune-9b", "llama-3.1-70b")
    assert found["assumed"] == []


def test_results_that_no_calibration_meets_leave_no_link(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "falling.csv"
    path.write_text("concurrency,isl,osl,tpot_ms\n1,1024,256,40\n16,1024,256,20\n128,1024,256,11\n", encoding="utf-8")
    assert "TPOT does not fall with load" in refused(capsys, "weights=fp8&tp=4", "--results", str(path))
    drafted = written(tmp_path, spec_decode_acceptance_length=2.9, mean_tpot_ms=6.0)
    assert "set spec and accept" in refused(capsys, "weights=fp8&tp=4", "--results", drafted)
    assert "state drafts" in refused(capsys, "weights=fp8&tp=4&spec=1", "--results", written(tmp_path))


def test_a_service_of_several_replicas_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "weights=fp8&tp=4&qps=40", "--results", str(TEMPLATE))
    assert "taken as one replica's" in text


def test_a_log_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "model=qwen2.5-72b", "--log", str(START))
    assert "understood: start-up log of Qwen/Qwen2.5-72B-Instruct" in text
    assert "tp = 4, the scenario has tp = 1" in text
    row = next(line for line in text.splitlines() if line.startswith("weights_bytes  "))
    assert row.split() == ["weights_bytes", "135.43", "GiB", "33.98", "GiB", "0.25", "differs"]
    assert "weights_bytes: The log states tp = 4" in text
    link = from_link(text.rpartition("says: ")[2].strip())
    assert (link.tp, link.max_len, link.util) == (4, 8192, 0.9)


def test_a_log_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ran(capsys, "model=qwen2.5-72b&tp=4", "--log", str(START), "--json"))
    terms = {term["term"]: term for term in found["terms"]}
    assert terms["weights_bytes"]["agrees"]
    assert terms["weights_bytes"]["printed"] == pytest.approx(33.98 * 2**30)
    assert found["outcome"] == "ok"


def test_a_log_that_failed_early_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "llama70b-fp8-c", "--log", str(LOGS / "startup" / "vllm-v0-out-of-memory.log"))
    assert "it ended with: out of memory" in text


def test_a_log_that_does_not_reach_readiness_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = START.read_text(encoding="utf-8")
    cut = tmp_path / "cut.log"
    cut.write_text(whole[: whole.index("67,024") + 4], encoding="utf-8")
    text = ran(capsys, "model=qwen2.5-72b&tp=4", "--log", str(cut))
    assert "Readiness not reached in this text: later lines may state other figures." in text
    assert "kv_capacity_tokens" not in text
    assert json.loads(ran(capsys, "model=qwen2.5-72b", "--log", str(cut), "--json"))["outcome"] != "ok"
    assert "eadiness" not in ran(capsys, "model=qwen2.5-72b&tp=4", "--log", str(START))


def test_two_logs_in_one_file_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    two = tmp_path / "two.log"
    two.write_text(
        START.read_text(encoding="utf-8") + (START.parent / "sglang-qwq-32b-tp4.log").read_text(encoding="utf-8")
    )
    assert "two engines or models: give one" in refused(capsys, "tp=4", "--log", str(two))


def test_each_fault_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    binary = tmp_path / "core"
    binary.write_bytes(b"\x7fELF\x00\xff")
    assert "a text file in UTF-8 or UTF-16" in refused(capsys, "tp=4", "--log", str(binary))
    assert "--log explains a log" in refused(capsys, "tp=4", "--results", str(START))
    assert "--results reads a load test" in refused(capsys, "tp=4", "--log", str(TEMPLATE))
    assert "No such file" in refused(capsys, "tp=4", "--log", str(tmp_path / "missing"))
    assert refused(capsys, "--results", str(TEMPLATE)).startswith("SCENARIO = nothing")
    assert refused(capsys, "tp=banana", "--results", str(TEMPLATE)).startswith("tp = banana")


@pytest.mark.parametrize("arguments", [[], ["--results", "a", "--log", "b"], ["tp=4"]])
def test_what_to_calibrate_with_must_be_said_once(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["calibrate", *arguments])
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
