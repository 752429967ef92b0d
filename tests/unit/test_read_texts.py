"""Whatever is pasted or uploaded: a benchmark, a start-up log, or one sentence; and what it states beside a scenario."""

from __future__ import annotations

import codecs
import random
from dataclasses import replace
from pathlib import Path

import pytest

from planner.calibrate.correction import correction
from planner.calibrate.loads import advice, constants, largest, place
from planner.catalog.calibration import correction_in
from planner.errors import InputError
from planner.logs.deployed import apart, as_stated, unknown_model
from planner.logs.example import example_csv
from planner.logs.read import LARGEST, decoded, read
from planner.logs.readings import Benchmark, Point, Reading, StartUp
from planner.specs.scenario import Scenario
from planner.variants import outcome

LOGS = Path(__file__).parents[1] / "golden" / "logs"
BENCHMARKS = sorted(path for path in (LOGS / "benchmarks").iterdir() if path.name != "INDEX.csv")
STARTS = sorted((LOGS / "startup").glob("*.log"))
FOREIGN = (
    "\0",
    "\ud800",
    "<script>",
    "=cmd|' /C calc'!A0",
    "显存占用 27 GiB",
    "9" * 400,
    "{",
    "\x1b[31m",
    "1e999",
    "\r",
)
BASE = Scenario(weights="fp8", tp=4)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def answer(text: str) -> Reading | str:
    """What was read, or the sentence; any other exception fails the test."""
    try:
        return read(text)
    except InputError as error:
        return str(error) if len(error.faults) == 1 else ""


def refusal(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        decoded(data)
    return str(caught.value)


def measured(*batches: int) -> list[Point]:
    """Points a tenth above the plan."""
    return [Point(concurrency=b, tpot_ms=1.1 * (outcome(BASE.with_(at_batch=b)).tpot_ms or 0.0)) for b in batches]


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.name)
def test_every_benchmark_is_one(path: Path) -> None:
    assert isinstance(read(text_of(path)), Benchmark)


@pytest.mark.parametrize("path", STARTS, ids=lambda path: path.name)
def test_every_start_up_log_is_one(path: Path) -> None:
    assert isinstance(read(text_of(path)), StartUp)


@pytest.mark.parametrize("seed", range(4))
def test_two_thousand_damaged_texts_are_read_or_refused_in_one_sentence(seed: int) -> None:
    dice, texts = random.Random(seed), [text_of(path) for path in (*BENCHMARKS, *STARTS)]
    read_ones = 0
    for number in range(500):
        text = dice.choice(texts)
        lines = text.splitlines()
        match number % 5:
            case 0:
                text = text[dice.randrange(len(text)) :]
            case 1:
                dice.shuffle(lines)
                text = "\n".join(lines)
            case 2:
                at = dice.randrange(len(text))
                text = text[:at] + dice.choice(FOREIGN) * dice.choice((1, 30)) + text[at:]
            case 3:
                text = "".join(dice.choice("0123456789.-e") if c.isdigit() and dice.random() < 0.3 else c for c in text)
            case _:
                text = "\n".join((*lines, *dice.choice(texts).splitlines()))
        found = answer(text)
        read_ones += not isinstance(found, str)
        assert not isinstance(found, str) or (0 < len(found) <= 400 and found.isprintable()), found
    assert read_ones > 150


def test_both_kinds_in_one_text_are_refused() -> None:
    said = answer(text_of(BENCHMARKS[0]) + "\n" + text_of(LOGS / "startup" / "vllm-0.28-qwen3-14b.log"))
    assert said == "text = a load test and a start-up log in one: read them one at a time"


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff", "\0\0"])
def test_nothing_is_asked_for(text: str) -> None:
    assert str(answer(text)).startswith("text = nothing: paste")


@pytest.mark.parametrize("text", ["hello", "[]", '{"a": 1}', "你好", "Model loading", "<b>" * 1000])
def test_another_kind_is_told_what_is_read(text: str) -> None:
    said = str(answer(text))
    assert "GuideLLM" in said
    assert "TensorRT-LLM" in said
    assert "<" not in said


def test_a_text_above_the_limit_is_refused() -> None:
    assert "at most 4,194,304 are read" in str(answer("a" * (LARGEST + 1)))


@pytest.mark.parametrize(
    "data",
    [
        "Größe 27 GiB 显存".encode(),
        codecs.BOM_UTF8 + "Größe 27 GiB 显存".encode(),
        "Größe 27 GiB 显存".encode("utf-16"),
        codecs.BOM_UTF16_BE + "Größe 27 GiB 显存".encode("utf-16-be"),
    ],
)
def test_files_of_three_encodings_are_text(data: bytes) -> None:
    assert decoded(data) == "Größe 27 GiB 显存"


def test_other_files_are_refused() -> None:
    assert "UTF-8 or UTF-16" in refusal("Größe".encode("latin-1"))
    assert "UTF-8 or UTF-16" in refusal(b"\x1f\x8b\x08\xff")
    assert "UTF-8 or UTF-16" in refusal(codecs.BOM_UTF16_LE + b"\x00")
    assert "a text file is read" in refusal(b"PK\x03\x04\x00\x00")
    assert refusal(b"a" * (LARGEST + 1)) == "file = 4.0 MiB: at most 4 MiB are read"


# --- what a text states beside a scenario -------------------------------------------------------------


def test_a_benchmark_is_put_beside_a_scenario_field_by_field() -> None:
    found = read(example_csv())
    fields = {each.field: (each.stated, each.planned) for each in apart(found, BASE)}
    assert fields == {"gpu": ("b200-sxm", "h100-sxm"), "isl": (922, 1024), "osl": (922, 256)}
    taken = as_stated(found, BASE)
    assert taken.scenario == BASE.with_(gpu="b200-sxm", isl=922, osl=922)
    assert (taken.changed, taken.kept) == (("gpu", "isl", "osl"), ())
    assert apart(found, taken.scenario) == ()


def test_what_contradicts_the_scenario_is_kept_with_the_reason() -> None:
    start = read(text_of(LOGS / "startup" / "vllm-0.19-qwen2.5-72b-tp4.log"))
    found = {each.field: each.reason for each in apart(start, Scenario(model="qwen2.5-72b", isl=16_384))}
    assert found["tp"] == ""
    assert found["max_len"]
    assert as_stated(start, Scenario(model="qwen2.5-72b", isl=16_384)).kept == ("max_len",)


def test_another_model_takes_a_calibration_of_the_old_one_away() -> None:
    calibrated = correction(BASE, measured(16)).scenario
    now = as_stated(read(text_of(LOGS / "startup" / "vllm-0.28-qwen3-14b.log")), calibrated).scenario
    assert (now.model, now.profile, now.x) == ("qwen3-14b", "measured", None)


def test_a_model_that_nobody_knows_is_named() -> None:
    assert unknown_model(Benchmark("AIPerf", "acme/secret-9b", ())) == "acme/secret-9b"
    assert unknown_model(Benchmark("AIPerf", "meta-llama/Llama-3.1-70B-Instruct", ())) == ""


def test_lengths_of_several_kinds_are_no_length() -> None:
    points = (Point(isl=1000.0, osl=100.0), Point(isl=1050.0, osl=200.0))
    assert apart(Benchmark("x", "", points), BASE) == (), "1,025 tokens in are the scenario's 1,024"
    assert {each.field for each in apart(Benchmark("x", "", points[:1]), BASE)} == {"isl", "osl"}, "1,000 are not"


# --- which point would help ---------------------------------------------------------------------------


def test_the_only_point_is_placed_in_the_range_of_loads() -> None:
    top = largest(correction(BASE, measured(16)))
    middle = round(top**0.5)
    for batch, where in ((1, "low"), (middle, "middle"), (top, "high")):
        fit = correction(BASE, measured(batch))
        assert place(fit) == where
        assert ("Add a point at mid load" in advice(fit)) == (where != "middle")
        assert (f"about {middle:,} requests" in advice(fit)) == (where != "middle")


def test_constants_are_counted() -> None:
    assert constants(correction(BASE, measured(16))) == 1
    assert constants(correction(BASE, measured(8, 16))) == 1
    assert constants(correction(BASE, measured(2, 16, 64))) == 3
    first = Point(concurrency=1.0, tpot_ms=measured(1)[0].tpot_ms, ttft_ms=200.0)
    assert constants(correction(BASE, [first])) == 2
    assert constants(correction(BASE, [replace(first, ttft_ms=4000.0)])) == 1, "a TTFT that is not followed"
    assert constants(correction(BASE, measured(63, 64, 65))) == 1, "three points of one load"
    assert advice(correction(BASE, measured(2, 16, 64))) == ""


def test_a_note_tells_errors_and_no_host_time_below_a_microsecond() -> None:
    made = correction_in(str(correction(BASE, measured(16)).scenario.x))
    assert "more a step" not in replace(made, host_step=2e-20).words
    assert "2 ms more a step" in replace(made, host_step=2e-3).words
    assert "Median error of TPOT there: 9.1% before, 0.0% after." in made.note
