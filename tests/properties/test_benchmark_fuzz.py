"""Whatever is pasted as a result of a load test, it is read or refused in one short sentence, and fast."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from math import isfinite
from pathlib import Path
from statistics import median
from time import process_time

import pytest

from planner.errors import InputError
from planner.logs.benchmarks import MOST_CHARACTERS, looks_like_benchmark, read_benchmark, template_csv
from planner.logs.readings import Benchmark, Point

LOGS = Path(__file__).parents[1] / "golden" / "logs" / "benchmarks"
INDEX = (LOGS / "INDEX.csv").read_text(encoding="utf-8").splitlines()[1:]
SAMPLES = [(LOGS / line.split(",")[0]).read_text(encoding="utf-8") for line in INDEX] + [template_csv()]
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
SEEDS = 20
PER_SEED = 500
"""20 seeds of 500 texts: ten thousand."""

HOSTILE = (
    "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "-5", "0", "9" * 400, "9" * 5000, "1" + "0" * 60, "1,2,3,4", "0x10",
    "\0", "\ud800", "\u202e", "测试结果：每秒请求数", "=cmd|' /C calc'!A0", "@SUM(1+1)", "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>', "http://user:secret@10.0.0.1:8000/v1", "sk-" + "a" * 48, "'; DROP TABLE runs; --",
    "\\", '"', "\r\n", "\x1b[31m", "null", "true", "[]", "{}", "1e-400", "--", "|" * 300, "=" * 300, ",",
)  # fmt: skip
SECRETS = ("secret", "alert(1)", "10.0.0.1", "sk-aaa", "calc", "srv/", "DROP", "onerror")


def flipped(text: str, dice: random.Random) -> str:
    """Some characters replaced by any other."""
    letters = list(text)
    for _ in range(dice.randint(1, 12)):
        letters[dice.randrange(len(letters))] = chr(dice.choice((dice.randrange(1, 128), dice.randrange(0x20, 0xD7FF))))
    return "".join(letters)


def truncated(text: str, dice: random.Random) -> str:
    start = dice.choice((0, 0, dice.randrange(len(text))))
    return text[start : dice.randrange(start, len(text)) + 1]


def shuffled(text: str, dice: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    dice.shuffle(lines)
    return "".join(lines)


def without_lines(text: str, dice: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if dice.random() > 0.15)


def joined(text: str, dice: random.Random) -> str:
    return text + dice.choice(("", "\n", "\n\n", " ")) + dice.choice(SAMPLES)


def with_number(text: str, dice: random.Random) -> str:
    """One number replaced by something hostile."""
    found = NUMBER.search(text, dice.randrange(len(text))) or NUMBER.search(text)
    start, end = found.span() if found else (0, 0)
    return text[:start] + dice.choice(HOSTILE) + text[end:]


def with_hostile(text: str, dice: random.Random) -> str:
    place = dice.randrange(len(text))
    return text[:place] + dice.choice(HOSTILE) * dice.choice((1, 1, 40)) + text[place:]


def with_model(text: str, dice: random.Random) -> str:
    """A hostile text where a model's name stands."""
    name = dice.choice(HOSTILE[12:21]).replace('"', '\\"').replace("\0", "")
    for known in ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", "llama-3.1-70b", "Qwen3-32B"):
        text = text.replace(known, name)
    return text


def nested(text: str, dice: random.Random) -> str:
    depth = dice.choice((5, 30, 500, 20_000))
    return dice.choice(('{"a":' * depth, "[" * depth + "{", '{"benchmarks":' + "[{" * 3 + '"a":[' * depth)) + text


def repeated(text: str, dice: random.Random) -> str:
    return text * dice.choice((2, 2, 3, 3, 8))


def doubled_keys(text: str, dice: random.Random) -> str:
    return text.replace(dice.choice(("max_concurrency", "avg", "mean", "Mean", "concurrency", "Metric")), "completed")


MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    flipped, truncated, shuffled, without_lines, joined, with_number, with_hostile, with_model, nested, repeated,
    doubled_keys,
)  # fmt: skip


def outcome(text: str) -> tuple[str, float]:
    """How a text was taken, and what processor time that took [s]. Anything but a benchmark or one short sentence fails."""
    start = process_time()
    looks_like_benchmark(text)
    try:
        found = read_benchmark(text)
    except InputError as error:
        check_refusal(error)
        return "refused", process_time() - start
    took = process_time() - start
    check_benchmark(found)
    return "read", took


def check_refusal(error: InputError) -> None:
    said = str(error)
    assert len(error.faults) == 1
    assert len(said) <= 300, said
    assert said.isprintable(), said
    assert error.faults[0].field == "results" or error.faults[0].field.removeprefix("line ").isdigit(), said
    assert error.faults[0].allowed


def check_benchmark(found: Benchmark) -> None:
    assert found.points
    assert len(found.points) <= 200
    for point in found.points:
        numbers = [getattr(point, item.name) for item in fields(Point) if item.name != "request_rate"]
        assert all(value is None or (isfinite(value) and 0 <= value <= 1e9) for value in numbers), point
        assert point.requests != 0
    shown = [found.model, *(str(value) for _, value in found.stated), *(item.value for item in found.understood)]
    assert all(text.isprintable() and len(text) <= 300 for text in shown)
    assert not any(secret in text for text in shown for secret in SECRETS), shown


@pytest.mark.parametrize("seed", range(SEEDS))
def test_ten_thousand_mutations_are_read_or_refused(seed: int) -> None:
    dice = random.Random(seed)
    outcomes = Counter()
    times = []
    for number in range(PER_SEED):
        text = SAMPLES[number % len(SAMPLES)]
        for _ in range(dice.choice((1, 1, 2))):
            text = dice.choice(MUTATIONS)(text or " ", dice)
        how, took = outcome(text[:MOST_CHARACTERS])
        outcomes[how] += 1
        times.append(took)
    assert outcomes["refused"] > PER_SEED / 10
    assert outcomes["read"] > PER_SEED / 20
    assert median(times) < 0.05


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"' + '\\"' * 200_000,
        "[" * 400_000,
        '{"a":' * 100_000,
        "=" * 400_000,
        ("=" * 3999 + "\n") * 100 + "= Serving Benchmark Result =",
        "= Serving Benchmark Result =\n" + ("-" * 3999 + "!\n") * 100,
        "= Serving Benchmark Result =\n" * 10_000,
        "Benchmarks Stats:\n" * 20_000,
        "Metric,avg,min,max,p99,p95,p90,p75\n" * 10_000,
        "concurrency,tpot_ms\n" + "1,1\n" * 100_000,
        '{"output_throughput":1,"completed":1}\n' * 20_000,
        '{"benchmarks":[' + "{}," * 100_000 + "{}]}",
        "a_," * 100_000,
        '"' * 300_000,
        "NVIDIA AIPerf |\n" + "│ a │\n" * 50_000,
        "Concurrency" * 30_000,
        " \n" * 200_000,
        "Mean TPOT (ms): " * 20_000,
        "model='" * 50_000,
    ],
    ids=lambda text: text[:24],
)
def test_texts_that_are_made_to_be_slow_are_not(text: str) -> None:
    assert outcome(text)[1] < 2.0
