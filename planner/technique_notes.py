"""Remarks on layouts and techniques of a plan: what they take, what they yield, and what was assumed about them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.physics.ffn import holding_ranks
from planner.plan import Note, Plans
from planner.pools import Pool, Transfer, transfer
from planner.provenance import used_laws
from planner.rows import sequence
from planner.serving.speculative import expected_tokens
from planner.setting import Setting
from planner.specs.layout import Layout, layout, layout_name
from planner.specs.model import ExpertFFN
from planner.units import gigabytes, percent, show, whole
from planner.work import ONE


def technique_notes(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """Remarks on one plan, in the order layout, imbalance, cache, draft, prefill pool, links, kernels."""
    planned = (*_copies(setting, row), *_skew(setting), *_prefix(setting, row), *_draft(setting), *_pool(setting, row))
    return (*planned, *_links(setting), *_kernels(setting))


def _at(setting: Setting) -> Layout:
    """The scenario's own layout."""
    asked = setting.scenario
    return layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp).tall


def _copies(setting: Setting, row: Plans) -> Iterator[Note]:
    """Cache that tensor parallelism copies because its shards are used up."""
    tokens = float(setting.scenario.isl + setting.scenario.osl)
    at = _at(setting)
    group = float(at.tp[0, 0] * at.cp[0, 0])
    alone = sequence(setting, layout(pp=setting.scenario.pp).tall, tokens)
    copies = float((sequence(setting, at, tokens) * group / alone)[0, 0])
    if copies > 1.5 and row.fits[0]:
        text = (
            f"Each token's cache is held {copies:.1f} times within a replica's tensor-parallel group: more TP adds no room "
            "for it. Data parallelism (dp) or decode context parallelism (dcp) divides it."
        )
        yield Note("cache_copies", text, "tp")


def _skew(setting: Setting) -> Iterator[Note]:
    """An imbalance above what the layout can have: one expert rank can at most do the work of all that hold experts."""
    asked, at = setting.scenario.imbalance, _at(setting)
    counts = [group.ffn.count for group in setting.model.groups if isinstance(group.ffn, ExpertFFN)]
    if asked is None or not counts:
        return
    most = float(holding_ranks(max(counts), float(setting.scenario.redundant), at.ep)[0, 0])
    if asked > most:
        ranks = "all experts are on one rank" if most == 1.0 else f"{whole(most)} ranks hold experts"
        text = f"An imbalance of {show(asked)} cannot occur where {ranks}: {whole(most)} is counted."
        yield Note("imbalance_capped", text, "imbalance")


def _prefix(setting: Setting, row: Plans) -> Iterator[Note]:
    """What a shared prefix frees, and that conversation histories free nothing."""
    cached = setting.prompt.cached
    if cached < setting.allocation.block:
        return
    full = sequence(setting, _at(setting), float(setting.scenario.isl + setting.scenario.osl))
    paging = setting.convention.cache_utilisation
    apart = np.floor(row.kv_pool_bytes[0] * paging / float(full[0, 0])) * float(row.dp[0])
    text = (
        f"The cached prefix ({whole(cached)} tokens) is stored once for all running requests, as a system prompt or a "
        f"common document is. Histories of separate conversations are not shared: then the cache holds {whole(apart)} requests."
    )
    yield Note("prefix_shared", text, "prefix")


def _draft(setting: Setting) -> Iterator[Note]:
    """What a draft yields and keeps in memory; acceptance is the user's."""
    draft, memory = setting.decoding.draft, setting.draft
    if draft is None:
        return
    yields = float(expected_tokens(draft.accept * ONE, draft.tokens * ONE)[0])
    held = (
        "its prediction layers are loaded and cache too"
        if memory.own
        else f"a draft model of {percent(memory.share)} of the model's weights and cache is loaded"
    )
    text = (
        f"A verification yields {yields:.2f} tokens if {percent(draft.accept)} of draft tokens are accepted: an assumption, "
        f"which depends on the workload; {held}."
    )
    yield Note("draft", text, "accept")


def _pool(setting: Setting, row: Plans) -> Iterator[Note]:
    """The prefill pool and the transfer of caches."""
    pool = setting.pool
    if pool is None:
        return
    if not pool.admitted:
        return
    if not pool.fits:
        text = f"The prefill pool's {whole(pool.devices)} × {pool.gpu.name} a worker do not hold the model: raise prefill_tp."
        yield Note("prefill_pool_small", text, "prefill_tp")
        return
    if not np.isfinite(row.gpus[0]):
        return
    workers = (row.gpus[0] - row.replicas[0] * row.gpus_per_replica[0]) / pool.devices
    yield Note("prefill_pool", _pool_text(pool, transfer(setting, pool, _at(setting)), float(workers)), "prefill")
    if pool.price is not None and pool.gpu.id != setting.gpu.id:
        text = f"The prefill pool's {pool.gpu.name} are counted at ${pool.price:.2f} an hour, the catalogue's median."
        yield Note("pool_price", text, "price")
    if setting.scenario.prefill_workers is not None:
        yield from _feeding(setting, row, pool)
    if pool.price is None:
        yield Note(
            "no_price", f"No price of the prefill pool's {pool.gpu.name} is known: its cost is missing.", "price"
        )


def _feeding(setting: Setting, row: Plans, pool: Pool) -> Iterator[Note]:
    """What a fixed prefill pool feeds, where it is less than the decode pool could take."""
    asked = setting.scenario
    fed = float(asked.prefill_workers or 0) / pool.busy
    taken = float(row.batch[0] / row.tpot_ms[0]) * 1e3 / asked.osl * float(row.replicas[0] - asked.spare)
    if fed < taken:
        text = (
            f"The prefill pool feeds {show(fed)} requests/s, the decode pool could take {show(taken)}: throughput and goodput "
            "are those that it feeds."
        )
        yield Note("prefill_binds", text, "prefill_workers")
    elif taken > fed * asked.load and asked.qps == 0:
        text = (
            f"The prefill pool is busy {percent(taken / fed)} of the time, more than the {percent(asked.load)} that load allows: "
            "prompts queue. Left to the planner it has more workers."
        )
        yield Note("prefill_busy", text, "prefill_workers")


def _worker(pool: Pool) -> str:
    """A prefill worker in words."""
    at = {name: int(getattr(pool.at, name)[0, 0]) for name in ("tp", "pp", "dp", "ep", "cp", "dcp")}
    name = layout_name(**at)
    return f"{whole(pool.devices)} × {pool.gpu.name}{f' ({name})' if name else ''}"


def _pool_text(pool: Pool, moved: Transfer, workers: float) -> str:
    """What the pool is and what a prompt's way through it takes."""
    columns = (moved.seconds, moved.exposed, moved.links, moved.bandwidth)
    seconds, exposed, links, bandwidth = (float(column.reshape(-1)[0]) for column in columns)
    kind = f"{'scale-up link' if moved.scale_up.all() else 'NIC'}{'' if round(links) == 1 else 's'}"
    reached = f"{links:.0f} {kind} at {percent(moved.efficiency)} of {bandwidth / 1e9:,.0f} GB/s"
    return (
        f"Prefill pool: {whole(workers)} {'worker' if workers == 1 else 'workers'} of {_worker(pool)}, "
        f"{show(pool.busy * 1e3, 'ms')} of a worker each prompt. The cache of a prompt ({gigabytes(moved.cache_bytes)}) takes "
        f"{show(seconds * 1e3, 'ms')} over {reached}, all of it counted in TTFT; sent layer by layer {show(exposed * 1e3, 'ms')} "
        "would be left."
    )


def _links(setting: Setting) -> Iterator[Note]:
    """What the laws of links say of themselves, as far as this layout uses them."""
    asked = setting.scenario
    spread = asked.dp * asked.cp > 1 or asked.tp * asked.dp * asked.cp * asked.pp > setting.profile.links.domain
    if spread and setting.convention.overheads:
        for text in setting.profile.links.notes:
            if _concerns(setting, text):
                yield Note("links", text, "dp" if asked.dp > 1 else "tp")


def _concerns(setting: Setting, text: str) -> bool:
    """Whether a remark on links is about something that the layout does."""
    asked = setting.scenario
    dispatched = any(
        np.any(_at(setting).dispatches(group.ffn.top_k) > 0.0)
        for group in setting.model.groups
        if isinstance(group.ffn, ExpertFFN)
    )
    if text.startswith("Expert exchange"):
        return dispatched and not (asked.prefill != "colocated" and "prefill" in text)
    return asked.pp * asked.cp > 1 if text.startswith("A hop") else True


SLOW, POOR = "is this slow", "poor fit"
"""Words of a law's note that a reader of a plan must know."""


def _kernels(setting: Setting) -> Iterator[Note]:
    """Kernels of this plan that were timed as slow with this cache, or whose law fits poorly."""
    if not setting.convention.overheads:
        return
    for kind, precision in used_laws(setting.machine):
        law = setting.profile.law(kind, precision)
        name = KINDS.get(kind, kind)
        if SLOW in law.note:
            text = (
                f"{name} with a cache in {precision}: the kernel that was timed reaches {law.eff_bw:.0%} of the bandwidth, so a "
                "16-bit cache is faster; another attention backend may not be slow."
            )
            yield Note("slow_kernel", text, "kv")
        if POOR in law.note:
            error = f" (median {law.median_error:.0%})" if law.median_error else ""
            yield Note("poor_fit", f"{name} in {precision}: the law fits the timed kernels poorly{error}.", "weights")


KINDS = {
    "experts": "Experts", "mla_decode": "Latent attention", "attn_decode": "Attention", "mla_prefill": "Prefill attention",
    "attn_prefill": "Prefill attention", "gemm": "Matrices",
}  # fmt: skip
"""Operator kinds as the page calls them."""
