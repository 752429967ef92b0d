"""Phrases of SGLang's start-up log.

Read in github.com/sgl-project/sglang, releases 0.4 to 0.5, and in public logs (tests/golden/logs/startup). Its "GB" are
GiB: K and V sizes over tokens give whole bytes per token only with 2^30.
"""

from __future__ import annotations

from typing import Final

from planner.logs.facts import Fact, Found, Rule, renamed, says

NAME: Final = "sglang"

RULES: Final[tuple[Rule, ...]] = (
    says("oad weight begin", r"oad weight begin\. avail mem={free_before_bytes} GB"),
    says("oad weight end", r"oad weight end\..{0,200}?mem usage={weights_bytes} GB"),
    says("oad weight end", r"oad weight end\..{0,200}?\bquant={quant:w}"),
    says("oad weight end", r"oad weight end\..{0,200}?dtype=torch\.{dtype:w}"),
    says("KV Cache is allocated", r"KV Cache is allocated\..{0,60}?#tokens: {pool_tokens}"),
    says("K size:", r"K size: {k_bytes} GB, V size: {v_bytes} GB"),
    says("KV size:", r"KV size: {kv_bytes} GB"),
    says("KV Cache is allocated. dtype:", r"allocated\. dtype: torch\.{cache:w}"),
    says("KV cache dtype:", r"Using KV cache dtype: torch\.{cache:w}"),
    says("Memory pool end", r"Memory pool end\. avail mem={free_after_bytes} GB"),
    says("graph end", r"graph end\..{0,80}?mem usage={graph_bytes} GB"),
    says("max_total_num_tokens=", r"max_total_num_tokens={kv_capacity_tokens}"),
    says("max_total_num_tokens=", r"chunked_prefill_size={token_budget}"),
    says("max_total_num_tokens=", r"max_running_requests={max_seqs}"),
    says("max_total_num_tokens=", r"context_len={max_len}"),
    says("sglang", r"sglang(?:==|[ _]version[:= ]{1,3}v?){version:w}"),
)

SIGNS: Final = ("sglang", "ServerArgs(", "max_total_num_tokens", "oad weight end", "Memory pool end")
"""What only SGLang's own lines hold."""

COMPONENTS: Final = ("k_bytes", "v_bytes", "kv_bytes")
"""What a line about an allocated cache states: keys and values, or both as one."""


def pools(found: Found) -> tuple[Fact, ...]:
    """Cache of each rank: all that it allocates (the model's, a draft model's, a sliding window's own pool)."""
    return summed(found, "kv_pool_bytes", *COMPONENTS)


def summed(found: Found, name: str, *parts: str) -> tuple[Fact, ...]:
    """Sum over a rank's lines of what each states in its parts, one fact a rank.

    A rank that prints the same numbers twice means one thing; a negative line (memory came back) is passed over.
    """
    facts = [fact for part in parts for fact in found.of(part)]
    return tuple(
        _summed(name, rank, [fact for fact in facts if fact.rank == rank])
        for rank in dict.fromkeys(fact.rank for fact in facts)
    )


def _summed(name: str, rank: str, facts: list[Fact]) -> Fact:
    by_line = [tuple(fact.value for fact in facts if fact.line == at) for at in dict.fromkeys(f.line for f in facts)]
    sizes = [sum(values) for values in dict.fromkeys(by_line)]
    return Fact(name, sum(size for size in sizes if size > 0.0), facts[-1].line, rank)


def memory(found: Found) -> tuple[Fact, ...]:
    """Memory facts: the fullest rank's weights and graphs, the tightest rank's cache."""
    told = (
        _most(summed(found, "weights_bytes", "weights_bytes")),
        _most(summed(found, "graph_bytes", "graph_bytes")),
        _least(pools(found)),
        found.smallest("kv_capacity_tokens") or _tokens(found),
        found.smallest("free_before_bytes"),
        found.smallest("free_after_bytes"),
    )
    return tuple(fact for fact in told if fact is not None)


def _most(facts: tuple[Fact, ...]) -> Fact | None:
    return max(facts, key=lambda fact: fact.value, default=None)


def _least(facts: tuple[Fact, ...]) -> Fact | None:
    return min(facts, key=lambda fact: fact.value, default=None)


def _tokens(found: Found) -> Fact | None:
    """Tokens of the tightest rank where no total is printed: of several pools of a rank the largest is the full one's."""
    own = found.of("pool_tokens")
    ranks = dict.fromkeys(fact.rank for fact in own)
    full = (max((f for f in own if f.rank == rank), key=lambda f: f.value) for rank in ranks)
    return renamed(min(full, key=lambda fact: fact.value, default=None), "kv_capacity_tokens")
