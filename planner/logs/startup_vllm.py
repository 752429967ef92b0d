"""Phrases of vLLM's start-up log, V0 and V1, and of its plug-in for Ascend.

Read in github.com/vllm-project/vllm, releases 0.5 to 0.30, and in public logs (tests/golden/logs/startup).
"""

from __future__ import annotations

from typing import Final

from planner.logs.facts import Fact, Found, Rule, marks, renamed, says

NAME: Final = "vllm"

RULES: Final[tuple[Rule, ...]] = (
    says("model weights took", r"model weights took {weights_bytes} ?Gi?B"),
    says("odel loading took", r"odel loading took {weights_bytes} ?Gi?B"),
    says("model weights take", r"model weights take {weights_bytes} ?GiB"),
    says("weights memory:", r"weights memory: {weights_bytes} ?GiB"),
    says("non_torch_memory takes", r"non_torch_memory takes {runtime_bytes} ?GiB"),
    says("activation peak memory takes", r"activation peak memory takes {activation_bytes} ?GiB"),
    says("reserved for KV Cache is", r"reserved for KV Cache is {kv_pool_bytes} ?GiB"),
    says("torch peak memory increase", r"torch peak memory increase: {activation_bytes} ?GiB"),
    says("non-torch forward increase", r"non-torch forward increase memory: {runtime_bytes} ?GiB"),
    says("KV cache memory:", r"Available KV cache memory: {kv_pool_bytes} ?GiB"),
    says("memory for KV Cache as specified", r"reserved {kv_pool_bytes} ?GiB memory for KV Cache as specified"),
    says("KV cache size:", r"KV cache size: {kv_capacity_tokens} tokens"),
    says("Maximum concurrency for", r"Maximum concurrency for {max_len} tokens per request: {max_concurrency}x"),
    says(" blocks: ", r"# (?!CPU)[A-Za-z]{2,12} blocks: {blocks}(?=\D|$)"),
    says("Graph capturing finished", r"Graph capturing finished in [0-9.]{1,8} secs?, took {graph_bytes} ?GiB"),
    says("graph pool memory", r"graph pool memory: {graph_bytes} GiB \(actual\), {graph_estimate_bytes} GiB"),
    says("graph memory: ", r"Estimated (?:CUDA|NPU|ACL) ?graph memory: {graph_estimate_bytes} GiB"),
    says("GiB for peak activation", r"{activation_bytes} GiB\s{1,4}for peak activation"),
    says("GiB for non-torch memory", r"{runtime_bytes} GiB\s{1,4}for non-torch memory"),
    says("GiB for CUDAGraph memory", r"{graph_bytes} GiB for CUDAGraph memory"),
    says("for consumed memory (weights", r"Actual usage is {consumed_bytes} GiB for consumed memory"),
    says("total_gpu_memory (", r"total_gpu_memory \({total_bytes} ?GiB\) x gpu_memory_utilization \({util}\)"),
    says("Free memory on device", r"Free memory on device[^(]{0,40}\({free_before_bytes}/{total_bytes} GiB\)"),
    says("esired GPU memory utilization", r"esired GPU memory utilization(?: is)? \({util},"),
    says("total capacity of", r"has a total capacity of {total_bytes} GiB"),
    says("Initial free memory", r"Initial free memory:? {free_before_bytes} GiB"),
    says("total memory: ", r"Available memory: {kv_pool_bytes}, total memory: {total_bytes}", scale=1.0),
    says("The current --gpu-memory-utilization=", r"The current --gpu-memory-utilization={util} is"),
    says("increase --gpu-memory-utilization from", r"increase --gpu-memory-utilization from {util} to"),
    says("max model len", r"Using max model len {max_len}"),
    says("max_num_batched_tokens=", r"Chunked prefill is enabled with max_num_batched_tokens={token_budget}"),
    says("max seq len (", r"max seq len \({max_len}\)"),
    says("stored in KV cache (", r"stored in KV cache \({kv_capacity_tokens}\)"),
    says("KV cache is needed", r"\(?{needed_bytes} GiB KV cache is needed"),
    says("available KV cache memory (", r"available KV cache memory \({kv_pool_bytes} GiB\)"),
    says("attention block size to", r"attention block size to {block_size} tokens"),
    says("engine (v", r"LLM engine \(v{version:w}\)"),
    says("server version", r"vLLM API server version v?{version:w}"),
    says("█", r"█[ ▄▀█]{1,12} version {version:w}"),
    says("data type to store kv cache", r"Using {cache:w} data type to store kv cache"),
    says("num_spec", r"num_spec(?:ulative)?_tokens['\"]?\s?[=:]\s?{spec}"),
    marks("vllm_ascend", "ascend"),
    marks("Platform plugin ascend", "ascend"),
    marks("device_config=npu", "ascend"),
    marks("worker_v1.py", "ascend"),
)

SIGNS: Final = ("vllm", "EngineCore", "VllmWorker", "gpu_model_runner", "kv_cache_utils", "gpu_executor")
"""What only vLLM's own lines hold."""


def ascend(found: Found) -> bool:
    """Whether the plug-in for Ascend printed the log."""
    return found.word("ascend") is not None


def memory(found: Found) -> tuple[Fact, ...]:
    """Memory facts: the fullest rank's weights and workspace, the tightest rank's cache."""
    weights = found.largest("weights_bytes")
    told = (
        weights,
        found.largest("activation_bytes"),
        found.largest("runtime_bytes") or _beside(found.largest("consumed_bytes"), weights),
        found.largest("graph_bytes") or renamed(found.largest("graph_estimate_bytes"), "graph_bytes"),
        found.smallest("kv_pool_bytes"),
        found.smallest("kv_capacity_tokens") or _from_blocks(found),
        found.smallest("max_concurrency") or _from_need(found),
        found.smallest("total_bytes"),
        found.smallest("free_before_bytes"),
    )
    return tuple(fact for fact in told if fact is not None)


def _beside(consumed: Fact | None, weights: Fact | None) -> Fact | None:
    """Non-torch memory where a log states it together with the weights."""
    if consumed is None or weights is None or consumed.value <= weights.value:
        return None
    return Fact("runtime_bytes", consumed.value - weights.value, consumed.line)


def _from_blocks(found: Found) -> Fact | None:
    """Tokens of older logs, which count blocks; the block's size follows from the concurrency that they print."""
    blocks, longest, held = found.smallest("blocks"), found.first("max_len"), found.smallest("max_concurrency")
    if blocks is None or blocks.value < 1:
        return None
    size = _block(blocks.value, longest, held) if longest and held else 0
    return Fact("kv_capacity_tokens", blocks.value * size, blocks.line) if size else None


def _block(blocks: float, longest: Fact, held: Fact) -> int:
    """The power of two that concurrency · length / blocks means; 0 when it means none."""
    size = held.value * longest.value / blocks
    return next((2**n for n in range(11) if abs(size / 2**n - 1.0) < 0.02), 0)


def _from_need(found: Found) -> Fact | None:
    """Concurrency where the engine gave up: the cache that there is over the cache of one sequence of full length."""
    pool, need = found.smallest("kv_pool_bytes"), found.largest("needed_bytes")
    if pool is None or need is None or need.value <= 0.0 or pool.value <= 0.0:
        return None
    return Fact("max_concurrency", pool.value / need.value, need.line)
