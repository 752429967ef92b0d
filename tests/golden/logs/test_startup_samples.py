"""Excerpts of real start-up logs, read; every expected number was read off the excerpt by hand.

GiB, tokens and sequences as printed. Sums and quotients are written as such.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from planner.logs.startup import looks_like_start_up, read_start_up

SAMPLES = Path(__file__).parent / "startup"
GIB = 2.0**30

MEMORY: dict[str, dict[str, float]] = {
    "vllm-v0-phi-4-gptq": {
        "weights_bytes": 8.5107, "runtime_bytes": 0.26, "activation_bytes": 0.94, "kv_pool_bytes": 2.18,
        "graph_bytes": 0.27, "total_bytes": 79.25, "kv_capacity_tokens": 715 * 16, "max_concurrency": 5.59,
    },
    "vllm-v1-llama-70b-w8a8": {"weights_bytes": 67.7229, "kv_capacity_tokens": 1381 * 16, "max_concurrency": 10.79},
    "vllm-v0-three-ranks": {
        "weights_bytes": 21.21, "runtime_bytes": 0.20, "activation_bytes": 0.37, "kv_pool_bytes": 1.57,
        "total_bytes": 23.58,
    },
    "vllm-v0-phi-4-bnb": {
        "weights_bytes": 8.63, "runtime_bytes": 0.09, "activation_bytes": 1.16, "kv_pool_bytes": 45.21,
        "graph_bytes": 1.12, "total_bytes": 79.15, "kv_capacity_tokens": 14815 * 16, "max_concurrency": 462.97,
    },
    "vllm-v1-kimi-linear-tp2": {"kv_pool_bytes": 2.30, "kv_capacity_tokens": 75_840, "max_concurrency": 2.48},
    "vllm-0.19-qwen2.5-72b-tp4": {
        "weights_bytes": 33.98, "graph_bytes": 2.62, "kv_pool_bytes": 5.11, "kv_capacity_tokens": 67_024,
        "max_concurrency": 8.18,
    },
    "vllm-0.28-qwen3-14b": {
        "weights_bytes": 27.52, "kv_pool_bytes": 11.57, "kv_capacity_tokens": 75_824, "max_concurrency": 1.85,
    },
    "vllm-0.28-qwen3.8-flash-tp4": {
        "weights_bytes": 19.07, "activation_bytes": 1.46, "runtime_bytes": 24.58 - 19.07, "graph_bytes": 0.49,
        "kv_pool_bytes": 4.87, "kv_capacity_tokens": 651_081, "max_concurrency": 2.48, "total_bytes": 31.86,
        "free_before_bytes": 31.23,
    },
    "vllm-llama-70b-fp8-too-long": {"weights_bytes": 67.7, "kv_pool_bytes": 5.11, "max_concurrency": 5.11 / 20.0},
    "vllm-qwen3.5-0.8b-too-long": {"kv_pool_bytes": 1.48, "max_concurrency": 1.48 / 3.05},
    "vllm-qwen2.5-vl-7b-no-room": {
        "weights_bytes": 6.5935, "runtime_bytes": 8.29, "activation_bytes": 4.93, "kv_pool_bytes": -7.83,
        "max_concurrency": 0.0,
    },
    "vllm-qwen3.8-27b-memory-taken": {"free_before_bytes": 7.34, "total_bytes": 15.49},
    "vllm-v0-out-of-memory": {"total_bytes": 14.62},
    "ascend-0.11-qwen3-8b": {
        "weights_bytes": 15.2684, "kv_pool_bytes": 10_701_063_270 / GIB, "total_bytes": 31_662_800_896 / GIB,
        "kv_capacity_tokens": 72_448, "max_concurrency": 7.16,
    },
    "ascend-eight-ranks": {
        "kv_pool_bytes": 19_443_365_990 / GIB, "total_bytes": 31_662_800_896 / GIB, "kv_capacity_tokens": 791_040,
        "max_concurrency": 193.12,
    },
    "ascend-qwen3-14b-negative": {"weights_bytes": 27.5376, "kv_pool_bytes": -0.87},
    "sglang-qwq-32b-tp4": {
        "weights_bytes": 15.54, "kv_pool_bytes": 1.42 + 1.42, "kv_capacity_tokens": 46_611, "graph_bytes": 0.93,
        "free_before_bytes": 21.63, "free_after_bytes": 2.09,
    },
    "sglang-kimi-k2.5-tp8": {
        "weights_bytes": 73.58, "kv_pool_bytes": 160.63, "kv_capacity_tokens": 2_454_421, "free_after_bytes": 45.23,
    },
    "sglang-diffusiongemma-two-pools": {
        "weights_bytes": 49.18, "kv_pool_bytes": 2 * 5.40 + 2 * 0.68, "kv_capacity_tokens": 70_656,
    },
    "sglang-qwen3.8-flash-mtp": {
        "weights_bytes": 82.97, "kv_pool_bytes": 2 * 1.83, "kv_capacity_tokens": 159_552, "graph_bytes": 0.11,
        "free_before_bytes": 28.81,
    },
    "sglang-dsv4-pro-no-room": {"weights_bytes": 125.65},
    "sglang-mamba-48-slots": {"kv_pool_bytes": 2 * 19.98, "kv_capacity_tokens": 2_618_868},
    "trtllm-0.8-llama-7b": {"weights_bytes": 6683 / 1024, "kv_pool_bytes": 69_524_783_104 / GIB, "kv_capacity_tokens": 132_608},
    "trtllm-memory-guide": {
        "weights_bytes": 6695 / 1024, "activation_bytes": 1134.01 / 1024, "kv_pool_bytes": 63.44,
        "kv_capacity_tokens": 259_840, "total_bytes": 79.10,
    },
    "trtllm-dynamo-example": {"kv_pool_bytes": 26.91, "kv_capacity_tokens": 220_480},
    "trtllm-kimi-k2.5": {"kv_pool_bytes": 166.02, "kv_capacity_tokens": 5_073_376},
    "trtllm-pytorch-profiling": {"kv_pool_bytes": 41.11, "total_bytes": 139.81},
}  # fmt: skip

STATED: dict[str, dict[str, object]] = {
    "vllm-v0-phi-4-gptq": {"max_len": 2048, "util": 0.15},
    "vllm-v1-llama-70b-w8a8": {"max_len": 2048, "util": 0.98},
    "vllm-v0-three-ranks": {"util": 0.99},
    "vllm-v0-phi-4-bnb": {"max_len": 512, "util": 0.70},
    "vllm-v1-kimi-linear-tp2": {"max_len": 120_000, "tp": 2},
    "vllm-0.19-qwen2.5-72b-tp4": {"max_len": 8192, "tp": 4, "util": 0.9},
    "vllm-0.28-qwen3-14b": {"max_len": 40_960},
    "vllm-0.28-qwen3.8-flash-tp4": {"max_len": 262_144, "util": 0.97},
    "vllm-llama-70b-fp8-too-long": {"max_len": 131_072},
    "vllm-qwen3.5-0.8b-too-long": {"max_len": 262_144},
    "vllm-qwen2.5-vl-7b-no-room": {"max_len": 4096},
    "vllm-qwen3.8-27b-memory-taken": {"util": 0.8},
    "ascend-0.11-qwen3-8b": {
        "tp": 1, "pp": 1, "dp": 1, "kv": "bf16", "weights": "bf16", "max_len": 10_000, "token_budget": 4096,
    },
    "ascend-eight-ranks": {"max_len": 4096},
    "sglang-qwq-32b-tp4": {
        "tp": 4, "dp": 1, "ep": 1, "util": 0.85, "max_seqs": 2049, "max_len": 131_072, "token_budget": 2048, "kv": "bf16",
    },
    "sglang-kimi-k2.5-tp8": {"kv": "bf16"},
    "sglang-diffusiongemma-two-pools": {"kv": "bf16"},
    "sglang-qwen3.8-flash-mtp": {"kv": "bf16"},
    "sglang-mamba-48-slots": {"max_seqs": 48, "max_len": 16_384},
    "trtllm-dynamo-example": {"max_seqs": 2048, "max_len": 131_072, "token_budget": 8192},
    "trtllm-kimi-k2.5": {"max_len": 262_144},
    "trtllm-pytorch-profiling": {"util": 0.85},
}  # fmt: skip

MODELS = {
    "vllm-v0-phi-4-gptq": "kaitchup/Phi-4-AutoRound-GPTQ-4bit",
    "vllm-v1-llama-70b-w8a8": "neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8",
    "vllm-0.19-qwen2.5-72b-tp4": "Qwen/Qwen2.5-72B-Instruct",
    "vllm-0.28-qwen3-14b": "Qwen/Qwen3-14B",
    "ascend-0.11-qwen3-8b": "Qwen/Qwen3-8B",
    "sglang-qwen3.8-flash-mtp": "RadixArk/Qwen3.8-Flash-Next-NVFP4",
}

UNREADY = frozenset(
    (
        "vllm-v1-llama-70b-w8a8",
        "vllm-v0-three-ranks",
        "vllm-v0-phi-4-bnb",
        "vllm-v1-kimi-linear-tp2",
        "vllm-0.28-qwen3-14b",
        "vllm-0.28-qwen3.8-flash-tp4",
        "ascend-eight-ranks",
        "sglang-kimi-k2.5-tp8",
        "sglang-mamba-48-slots",
        "trtllm-0.8-llama-7b",
        "trtllm-memory-guide",
        "trtllm-kimi-k2.5",
        "trtllm-pytorch-profiling",
    )
)
"""Excerpts that hold no line about readiness."""

OUTCOMES = {
    "vllm-llama-70b-fp8-too-long": "length above the cache",
    "vllm-qwen3.5-0.8b-too-long": "length above the cache",
    "vllm-qwen2.5-vl-7b-no-room": "no room for a cache",
    "vllm-qwen3.8-27b-memory-taken": "memory taken before the start",
    "vllm-v0-out-of-memory": "out of memory",
    "ascend-qwen3-14b-negative": "no room for a cache",
    "sglang-dsv4-pro-no-room": "no room for a cache",
}


def index() -> list[dict[str, str]]:
    with (SAMPLES / "INDEX.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def text(name: str) -> str:
    return (SAMPLES / f"{name}.log").read_text(encoding="utf-8")


def test_every_sample_has_a_source_and_expected_values() -> None:
    rows = index()
    assert [row["file"] for row in rows if not row["source"]] == []
    assert {row["file"] for row in rows} == {path.name for path in SAMPLES.glob("*.log")}
    assert {row["file"].removesuffix(".log") for row in rows} == set(MEMORY)


@pytest.mark.parametrize("name", MEMORY)
def test_memory_as_read_by_hand(name: str) -> None:
    found = dict(read_start_up(text(name)).memory)
    shown = {term: value / GIB if term.endswith("_bytes") else value for term, value in found.items()}
    assert shown == {term: pytest.approx(value, rel=1e-9, abs=1e-9) for term, value in MEMORY[name].items()}


@pytest.mark.parametrize("name", MEMORY)
def test_configuration_as_read_by_hand(name: str) -> None:
    read = read_start_up(text(name))
    assert dict(read.stated) == STATED.get(name, {})
    assert read.model == MODELS.get(name, "")
    assert read.outcome == ("readiness not reached in this text" if name in UNREADY else OUTCOMES.get(name, "ok"))


@pytest.mark.parametrize("row", index(), ids=lambda row: row["file"])
def test_engine_and_version(row: dict[str, str]) -> None:
    read = read_start_up(text(row["file"].removesuffix(".log")))
    assert (read.engine, read.version) == (row["engine"], row["version"])


@pytest.mark.parametrize("name", MEMORY)
def test_where_it_was_found_is_told(name: str) -> None:
    """The line of a number holds that number, to the digits that are printed."""
    lines = text(name).split("\n")
    for told in read_start_up(text(name)).understood:
        assert 0 <= told.line <= len(lines)
        if told.name in ("kv_capacity_tokens", "max_len") and told.line and "blocks:" not in lines[told.line - 1]:
            digits = re.sub(r"\D", "", told.value)
            assert digits in re.sub(r"[,]", "", lines[told.line - 1])


@pytest.mark.parametrize("name", MEMORY)
def test_samples_are_recognised(name: str) -> None:
    assert looks_like_start_up(text(name))
