"""What was understood of a pasted or uploaded text: benchmark points and start-up facts, with where each was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.specs.spelling import Value


@dataclass(frozen=True)
class Point:
    """One measured operating point of a running service; None = the text does not state it.

    Attributes:
        concurrency: requests in flight in the whole service, on average or as held by the load generator [requests].
        request_rate: arrivals a second [1/s]; inf = all at once.
        isl, osl: mean input and output tokens of a request [tokens].
        tpot_ms, itl_ms, ttft_ms, e2e_ms: means [ms]. TPOT excludes the first token.
        tpot_median_ms, ttft_median_ms, tpot_p99_ms, ttft_p99_ms: other statistics of the same [ms].
        output_tok_s: output tokens a second of the whole service.
        requests: completed requests; failed: those that were not.
    """

    concurrency: float | None = None
    request_rate: float | None = None
    isl: float | None = None
    osl: float | None = None
    tpot_ms: float | None = None
    itl_ms: float | None = None
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    tpot_median_ms: float | None = None
    ttft_median_ms: float | None = None
    tpot_p99_ms: float | None = None
    ttft_p99_ms: float | None = None
    output_tok_s: float | None = None
    requests: int | None = None
    failed: int | None = None


@dataclass(frozen=True)
class Understood:
    """One statement that was found: what it is called, its value as shown, and the line (1-based; 0 = the file)."""

    name: str
    value: str
    line: int = 0


@dataclass(frozen=True)
class Benchmark:
    """Results of a load test.

    Attributes:
        format: tool, as shown (`vllm bench serve`, `AIPerf`, ...).
        model: model as the text names it; empty = not stated.
        points: in the order of the text.
        stated: scenario fields that the text states (tp, engine, weights ...), as scenario values.
        understood: what was found, to be shown. ignored: what was there and is not used, in one sentence each.
        drafted: whether it says that tokens were drafted (speculative decoding).
    """

    format: str
    model: str
    points: tuple[Point, ...]
    stated: tuple[tuple[str, Value], ...] = ()
    understood: tuple[Understood, ...] = ()
    ignored: tuple[str, ...] = ()
    drafted: bool = False


MemoryTerm: TypeAlias = Literal[
    "total_bytes", "weights_bytes", "activation_bytes", "runtime_bytes", "graph_bytes", "kv_pool_bytes",
    "kv_capacity_tokens", "max_concurrency", "free_before_bytes", "free_after_bytes",
]  # fmt: skip
"""Memory facts of a start-up, per GPU (tokens and concurrency as printed), under the plan's names where it has one."""


@dataclass(frozen=True)
class StartUp:
    """What an engine printed while it started.

    Attributes:
        engine: `vllm`, `sglang`, `trtllm`, `vllm-ascend`; version: as printed, empty = not stated.
        model: model as the text names it; empty = not stated.
        stated: scenario fields that the text states (tp, pp, dp, ep, kv, weights, util, max_len, max_seqs, ...).
        memory: memory facts [B, tokens, sequences]; the tightest rank's where several print one.
        outcome: `ok` where a line says that the engine was ready, what ended it in a word (`out of memory`, `no room for a
            cache`, `length above the cache`), or `readiness not reached in this text`.
        understood, ignored: as for benchmarks. Names, hosts, paths, addresses and tokens are never kept.
    """

    engine: str
    version: str
    model: str
    stated: tuple[tuple[str, Value], ...]
    memory: tuple[tuple[MemoryTerm, float], ...]
    outcome: str
    understood: tuple[Understood, ...] = ()
    ignored: tuple[str, ...] = ()


Reading: TypeAlias = Benchmark | StartUp
"""What a text turned out to be."""
