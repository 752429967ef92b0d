"""What is tried: every technique on and off, as changes of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from planner.advise.caches import copies_of
from planner.advise.drafts import DRAFTS
from planner.advise.pools import chunk_room
from planner.catalog.accelerators import accelerator
from planner.setting import resolve
from planner.specs.fields import CachePrecision, WeightPrecision, options_of
from planner.specs.model import ExpertFFN
from planner.specs.scenario import Scenario
from planner.techniques.rows import Trial
from planner.units import show
from planner.variants import outcome

HALF: Final = 0.5
"""Share of the prompt in the prefix cache that is tried beside none and the scenario's own."""

NATIVE: Final = {"fp8": "fp8", "fp8-block": "fp8", "int8": "int8", "nvfp4": "fp4"}
"""Weight precisions that need a peak of their own; the others are unpacked into BF16."""

QUALITY: Final = {
    "bf16": "reference",
    "fp8": "article 8.3: 0.5 % of MMLU lost on Llama-70B",
    "fp8-block": "no figure in the articles; FP8 with a scale per tensor loses 0.5 % of MMLU there",
    "int8": "no figure in the articles",
    "int4": "article 8.3: 1.3 % of MMLU lost on Llama-70B, more on smaller models",
    "nvfp4": "no figure in the articles",
    "mxfp4": "no figure in the articles",
}
"""What a weight precision costs in quality: the article's own figures, or that it has none."""


POOL: Final = "a second pool, and the cache is handed over; tok/s as in a large deployment, $ as this one would pay"
"""What a pool of its own costs, and at which size its two figures are."""


def trials(s: Scenario) -> Iterator[Trial]:
    """Variants in the order of the table."""
    yield from _weights(s)
    yield from _caches(s)
    yield from _drafting(s)
    yield from _prompts(s)
    yield from _expert_layouts(s)
    yield from _layouts(s)


def _weights(s: Scenario) -> Iterator[Trial]:
    """Every weight precision that the engine serves and the device computes."""
    setting, peak = resolve(s), accelerator(s.gpu).peak
    for word in options_of(WeightPrecision):
        offered = not setting.convention.overheads or word in setting.engine.supports_weights
        if word == s.weights or (offered and NATIVE.get(word, "bf16") in peak):
            yield Trial("weights", word, {"weights": word}, QUALITY[word])


def _caches(s: Scenario) -> Iterator[Trial]:
    """Every cache precision that the engine offers."""
    setting = resolve(s)
    for word in options_of(CachePrecision):
        if word == s.kv or not setting.convention.overheads or word in setting.engine.supports_kv:
            cost = "reference" if word == "bf16" else "no figure in the articles; long contexts feel it first"
            yield Trial("kv", word, {"kv": word}, cost)


def _drafting(s: Scenario) -> Iterator[Trial]:
    """Speculative decoding off, and on with the scenario's numbers or the article's."""
    off = {"spec": 0, "accept": 0.8, "draft": 0.1}
    yield Trial("spec", "off", off, "nothing")
    on = {"spec": s.spec or DRAFTS, "accept": s.accept, "draft": s.draft}
    name = f"{show(on['spec'], 'tokens').replace('token', 'draft token')}, accepted {percent(s.accept)}"
    cost = f"a draft model in memory, each draft token {percent(s.draft)} of a step; acceptance must be measured"
    yield Trial("spec", name, on, cost)


def percent(share: float) -> str:
    """A share as a whole or three-digit percentage, which no line break divides."""
    return f"{share * 100:.3g}\N{NO-BREAK SPACE}%"


def _prompts(s: Scenario) -> Iterator[Trial]:
    """Prefix cache, chunks, and where prefill runs."""
    for share in sorted({0.0, HALF, s.prefix}):
        yield Trial(
            "prefix", f"{percent(share)} of the prompt cached", {"prefix": share}, "needs shared prompts; takes cache"
        )
    for chunk in sorted({0, _room(s), s.chunk}):
        name = f"{chunk:,} tokens a step" if chunk else "whole prompt"
        cost = "longer TTFT for prompts of several chunks" if chunk else "steps that carry a prompt are long"
        yield Trial("chunk", name, {"chunk": chunk}, cost)
    pool = ("prefill_gpu", "prefill_tp", "prefill_workers", "decode_workers", "kv_link_eff")
    yield Trial(
        "prefill", "beside decoding", {"prefill": "colocated", **dict.fromkeys(pool)}, "steps carry prompts of others"
    )
    if s.prefill == "excluded":
        yield Trial("prefill", "not counted", {"prefill": "excluded"}, "no capacity is kept for reading prompts")
    yield Trial("prefill", "in a pool of its own", {"prefill": "disaggregated"}, POOL)


def _room(s: Scenario) -> int:
    """The chunk that the TPOT of the SLA leaves room for at the scenario's batch, in whole sixteens; 0 where it leaves none."""
    at = outcome(s)
    if at.ttft_ms is None or at.tpot_ms is None:
        return 0
    room = int(chunk_room(s, int(at.batch)) // 16 * 16)
    return 0 if room >= s.isl else room


def _expert_layouts(s: Scenario) -> Iterator[Trial]:
    """TP+EP against DP+EP on the same devices, overlap, and spare copies of experts."""
    n = s.tp * s.dp
    if not resolve(s).model.has_experts or n == 1:
        return
    yield Trial(
        "experts",
        f"TP+EP {n}",
        {"tp": n, "dp": 1, "ep": n, "dcp": 1},
        "all-reduces; a latent cache is held by every rank",
    )
    yield Trial(
        "experts", f"DP+EP {n}", {"tp": 1, "dp": n, "ep": n, "dcp": 1}, "all-to-alls; attention weights on every GPU"
    )
    yield Trial("overlap", "off", {"overlap": False}, "the exchange with experts is waited for")
    yield Trial("overlap", "two micro-batches", {"overlap": True}, "each expert sees half of the tokens at a time")
    spare = _copies(s)
    for extra in sorted({0, spare, s.redundant}) if spare or s.redundant else ():
        name = f"{extra} extra {'copy' if extra == 1 else 'copies'}"
        yield Trial("redundant", name, {"redundant": extra}, "memory for the copies" if extra else "nothing")


EXTRA: Final = 8
"""One extra copy for so many experts: DeepSeek's prefill units hold 32 beside 256."""


def _copies(s: Scenario) -> int:
    """Extra copies of experts that are tried: as many on every rank; 0 where experts are not spread."""
    counts = [group.ffn.count for group in resolve(s).model.groups if isinstance(group.ffn, ExpertFFN)]
    return max(round(counts[0] / EXTRA / s.ep), 1) * s.ep if counts and s.ep > 1 else 0


def _layouts(s: Scenario) -> Iterator[Trial]:
    """Pipeline stages on the same devices, and context parallelism of the cache and of prefill."""
    here = {"tp": s.tp, "pp": s.pp, "cp": s.cp, "dcp": s.dcp}
    yield Trial(
        "layout", ", ".join(f"{name}={ways}" for name, ways in here.items() if ways > 1 or name == "tp"), here, "–"
    )
    if s.tp > 1 and s.tp % 2 == 0:
        stages = {"pp": s.pp * 2, "tp": s.tp // 2, "ep": max(s.ep // 2, 1), "dcp": 1}
        name = f"pp={s.pp * 2}, tp={s.tp // 2}, same GPUs"
        yield Trial("layout", name, stages, "a token passes all stages; they idle with few requests")
    if s.tp > 1:
        dcp = s.dcp if s.dcp > 1 else max(int(copies_of(s)), 2)
        yield Trial("layout", f"dcp={dcp}", {"dcp": dcp}, "partial attention is merged over ranks in every layer")
    yield Trial("layout", f"cp={s.cp * 2}, twice the GPUs", {"cp": s.cp * 2}, "the added GPUs decode nothing more")
