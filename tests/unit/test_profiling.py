"""Activation peaks of profiling runs, against what engines printed at start (GiB) and arithmetic by hand."""

from __future__ import annotations

import pytest

from planner.catalog.accelerators import accelerator
from planner.catalog.engines import engine
from planner.catalog.models import model
from planner.physics.profiling import Profiled, activation_peak, profiled_tokens
from planner.specs.engine import Engine
from planner.specs.layout import layout
from planner.units import GIB
from tests.asking import one

H100 = accelerator("h100-sxm")


def peak(rules: Engine, name: str, tp: int, seats: float, tokens: float, longest: float = 8192) -> float:
    """Activation peak [GiB]."""
    return one(activation_peak(rules, model(name), layout(tp=tp), Profiled(seats, tokens, longest))) / GIB


@pytest.mark.parametrize(
    ("name", "tp", "printed"),
    [
        ("qwen3-8b", 1, 2.21),
        ("llama-3.1-8b", 1, 1.89),
        ("llama-3.1-8b", 4, 1.89),
        ("gpt-oss-20b", 1, 2.87),
        ("gpt-oss-20b", 2, 2.87),
        # 32k vocabulary: the widest layer, 8,192 tokens · (3 · 11,008 + 4 · 4,096) · 2 B
        ("codellama-7b", 1, 0.77),
        ("granite-3.1-8b", 1, 0.85),
        # experts: the sampler and two buffers of tokens · top-k rows
        ("qwen3-30b-a3b", 1, 2.68),
        ("qwen1.5-moe-a2.7b", 1, 2.47),
        ("deepseek-v2-lite", 1, 1.93),
        ("kimi-vl-a3b", 1, 2.92),
        ("kimi-vl-a3b", 2, 2.85),
        ("mixtral-8x7b", 2, 1.21),
        ("llama-4-scout", 4, 3.19),
    ],
)
def test_vllm_0_19_on_h100_printed(name: str, tp: int, printed: float) -> None:
    """1,024 sequences, 8,192 tokens a step."""
    assert peak(engine("vllm", "0.19.0", H100), name, tp, 1024, 8192) == pytest.approx(printed, rel=0.08)


@pytest.mark.parametrize(
    ("name", "longest", "printed"),
    [("qwen2.5-7b", 16384, 2.18), ("qwen2.5-7b", 32768, 4.35), ("qwen2.5-1.5b", 32768, 2.02)],
)
def test_v0_profiles_whole_prompts(name: str, longest: float, printed: float) -> None:
    rules = engine("vllm", "0.7.3", accelerator("l40s"))
    tokens = profiled_tokens(rules, None, longest)
    assert tokens == longest
    assert peak(rules, name, 1, 256, tokens, longest) == pytest.approx(printed, rel=0.01)


def test_longer_prompts_and_later_versions_are_read_in_chunks() -> None:
    device = accelerator("l40s")
    assert profiled_tokens(engine("vllm", "0.7.3", device), None, 32769) == 2048
    assert profiled_tokens(engine("vllm", "0.11.0", device), None, 32768) == 2048
    assert profiled_tokens(engine("vllm", "0.11.0", device), 4096, 32768) == 4096


@pytest.mark.parametrize(
    ("version", "printed"), [("0.15.0", 5.64), ("0.16.0", 5.64), ("0.17.0", 2.23), ("0.18.0", 2.23)]
)
def test_the_sampler_by_version(version: str, printed: float) -> None:
    """Qwen3-14B on H100."""
    assert peak(engine("vllm", version, H100), "qwen3-14b", 1, 1024, 8192) == pytest.approx(printed, rel=0.02)


def test_sparse_attention_gathers_its_index() -> None:
    """DeepSeek-V3.2 at its longest: 40 · 163,840 · 132 B = 865,075,200 B more than at length 0."""
    rules = engine("vllm", "0.19.0", H100)
    more = peak(rules, "deepseek-v3.2", 8, 64, 8192, 163840) - peak(rules, "deepseek-v3.2", 8, 64, 8192, 0)
    assert more * GIB == pytest.approx(865_075_200)
    assert peak(rules, "deepseek-v3", 8, 64, 8192, 163840) == peak(rules, "deepseek-v3", 8, 64, 8192, 0)


def test_images_of_any_size_are_profiled_up_to_0_16() -> None:
    rules = engine("vllm", "0.11.0", accelerator("a100-80g-sxm"))
    text, seen = peak(rules, "qwen3-30b-a3b", 1, 256, 2048), peak(rules, "qwen3-vl-30b-a3b", 1, 256, 2048)
    assert seen - text == pytest.approx(3.5)


def test_a_small_peak_has_a_floor_and_sglang_has_none_in_its_share() -> None:
    assert peak(engine("vllm", "0.19.0", H100), "opt-125m", 1, 1, 16) == 0.26
    assert peak(engine("sglang", None, H100), "llama-3.1-8b", 1, 2048, 8192) == 0.0
