"""Phrases of TensorRT-LLM's start-up log, engines and the PyTorch back end.

Read in github.com/NVIDIA/TensorRT-LLM, releases 0.8 to 1.2, and in public logs (tests/golden/logs/startup).
"""

from __future__ import annotations

from typing import Final

from planner.logs.facts import Fact, Found, Rule, renamed, says
from planner.units import GIB

NAME: Final = "trtllm"

MIB: Final = GIB / 1024.0

RULES: Final[tuple[Rule, ...]] = (
    says("Loaded engine size", r"Loaded engine size: {weights_bytes} MiB", scale=MIB),
    says("IExecutionContext creation", r"now: CPU [0-9]{1,9}, GPU {managed_bytes} \(MiB\)", scale=MIB),
    says("loading model weights", r"after loading model weights \(inside torch\)[^:]{0,60}: {weights_bytes} GiB"),
    says("execution context memory", r"Allocated {activation_bytes} MiB for execution context memory", scale=MIB),
    says(
        "for max tokens",
        r"Allocated {kv_pool_bytes} GiB for max tokens(?: in paged KV cache)? \({kv_capacity_tokens}\)",
    ),
    says("bytes for k/v cache", r"Allocate {kv_pool_bytes} bytes for k/v cache", scale=1.0),
    says("tokens in paged KV cache", r"Using {kv_capacity_tokens} tokens in paged KV cache"),
    says(
        "calculating max tokens in paged", r"kv cache: total: {total_bytes} GiB, available: {free_at_sizing_bytes} GiB"
    ),
    says("memory usage profiling", r"usage profiling \(torch \+ non-torch\): {peak_bytes} GiB"),
    says("memory usage profiling", r"when calculating max tokens: {available_bytes} GiB"),
    says("memory usage profiling", r"fraction is set {util}"),
    says("memory usage profiling", r"device total memory {total_bytes} GiB"),
    says("quota set to", r"device quota set to {kv_pool_bytes} ?GiB"),
    says("max_seq_len=", r"max_seq_len={max_len}, max_num_requests={max_seqs}"),
    says("max_num_requests=", r"max_num_tokens={token_budget}"),
    says("max sequence length=", r"max sequence length={max_len}"),
    says("tokens per block", r"okens per block: {block_size}"),
    says("TensorRT", r"TensorRT[ -]LLM version: {version:w}"),
)

SIGNS: Final = ("TensorRT-LLM", "TRT-LLM", "[TRT]", "[MemUsageChange]", "trtllm")
"""What only TensorRT-LLM's own lines hold."""


def memory(found: Found) -> tuple[Fact, ...]:
    """Memory facts: the fullest rank's weights, the tightest rank's final cache.

    TensorRT's own allocations are an engine's weights where the size of the engine is not printed. A cache is allocated
    twice, small for a trial run and then in full: a rank's last line counts.
    """
    told = (
        found.largest("weights_bytes") or renamed(found.largest("managed_bytes"), "weights_bytes"),
        found.largest("activation_bytes"),
        _final(found.of("kv_pool_bytes")) or renamed(_final(found.of("available_bytes")), "kv_pool_bytes"),
        _final(found.of("kv_capacity_tokens")),
        found.smallest("total_bytes"),
    )
    return tuple(fact for fact in told if fact is not None)


def _final(facts: tuple[Fact, ...]) -> Fact | None:
    """The smallest of each rank's last statements."""
    last = {fact.rank: fact for fact in facts}
    return min(last.values(), key=lambda fact: fact.value, default=None)
