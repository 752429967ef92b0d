"""The planner, asked as the articles ask it: Llama-70B of 70 billion parameters, the textbook, H100s, 1,024 + 256 tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.catalog.accelerators import accelerator
from planner.catalog.article import article
from planner.catalog.models import model
from planner.physics import forward, kv, passes, roofline
from planner.physics.weights import formats, weight_bytes
from planner.plan import Plan
from planner.serving import baselines, goodput
from planner.setting import Setting
from planner.specs.layout import layout
from planner.specs.profile import TEXTBOOK
from tests import asking
from tests.asking import column, one, setting, total

ARTICLE = {"model": "llama-70b-nominal", "profile": "textbook", "prefill": "excluded", "isl": 1024, "osl": 256}
Inputs = dict[str, Any]


def at(**changes: Any) -> Setting:
    return setting(**{**ARTICLE, **changes})


def plan(**changes: Any) -> Plan:
    return asking.plan(**{**ARTICLE, **changes})


def step_ms(batch: float, context: float, tp: int = 1, **changes: Any) -> float:
    """A decode step of the textbook, whether or not the model fits."""
    return one(asking.step_seconds(at(tp=tp, **changes), batch, context, tp=tp)) * 1e3


def prompt_flops(tokens: int, *groups: str) -> float:
    found = [e for e in asking.prompt_ledger(at(), tokens) if not groups or e.group in groups]
    return sum(total(e, "flops") for e in found)


def prompt_ms(tokens: int, term: int) -> float:
    """Compute (term 0) or memory (term 1) time of a prompt on one H100."""
    timed = [e for e in asking.prompt_ledger(at(), tokens) if e.group != "host"]
    return (
        sum(one(roofline.over_kernels(roofline.terms(e.work, at().profile)[term] * e.work.launches)) for e in timed)
        * 1e3
    )


def ttft_ms(tokens: int, tp: int = 1) -> float:
    return one(asking.ttft_seconds(at(isl=tokens, tp=tp), layout(tp))) * 1e3


def memory_bound_up_to(context: float) -> float:
    """Largest batch whose step takes its memory time."""
    batch = np.arange(1.0, 2001.0)
    ledger = asking.decode_ledger(at(), batch, context)
    parts = [(roofline.terms(e.work, at().profile), e.work.launches) for e in ledger if e.group != "host"]
    compute, moved = (sum(np.ravel(part[0][term] * part[1]) for part in parts) for term in (0, 1))
    return float(np.count_nonzero(compute <= moved))


def end_to_end_ms(found: Plan, tokens: int) -> float:
    """TTFT and the TPOT of every further token, both from the plan."""
    assert found.ttft_ms is not None
    assert found.tpot_ms is not None
    return one(baselines.request_seconds(column(found.ttft_ms), column(found.tpot_ms), tokens))


def sequence_bytes(tokens: float, kv_precision: str = "bf16", name: str = "llama-70b-nominal") -> float:
    return one(asking.sequence_bytes(at(kv=kv_precision, model=name), tokens))


def blocks(tokens: float, block: int) -> float:
    return one(kv.kept_tokens(column(tokens), float("inf"), 0.0, block)) / block


def pools_gb(**changes: Any) -> float:
    found = plan(**changes)
    return found.kv_pool_bytes * found.gpus_per_replica / 1e9


def read_ms(gigabytes: float, gpu: str, efficiency: float = 1.0) -> float:
    return one(roofline.memory_seconds(column(gigabytes * 1e9), efficiency, accelerator(gpu).bandwidth)) * 1e3


def rate(batch: float, tpot_ms: float) -> float:
    return one(goodput.output_rate(column(batch), column(tpot_ms / 1e3)))


# --- the articles' fitted constants ---------------------------------------------------------------------------------


def fitted(**changes: Any) -> Setting:
    """The same question under the profile that makes the article's tables come out."""
    found = at(**changes)
    profile = article(found.gpu)
    return replace(found, profile=profile, decoding=replace(found.decoding, profile=profile))


def fitted_tpot_ms(batch: float, tp: int) -> float:
    return one(asking.tpot_seconds(fitted(tp=tp), batch, layout(tp))) * 1e3


def fitted_batch(tpot_ms: float, tp: int) -> float:
    """Largest batch whose fitted TPOT stays within a limit."""
    times = asking.tpot_seconds(fitted(tp=tp), np.arange(1.0, 513.0), layout(tp)) * 1e3
    return float(np.count_nonzero(times <= tpot_ms))


# --- several ranks --------------------------------------------------------------------------------------------------


def stored_gb(name: str, precision: str, **degrees: Any) -> float:
    """Weights of one rank at nominal bytes."""
    spec = model(name)
    return one(weight_bytes(spec, formats(spec, precision, TEXTBOOK), layout(**degrees), 0.0, TEXTBOOK)) / 1e9


def read_gb(name: str, precision: str, batch: float, **degrees: Any) -> float:
    """Weights that a decode step reads on the slowest rank."""
    ledger = asking.decode_ledger(at(model=name, weights=precision), batch, 0, **degrees)
    return sum(total(e, "hbm_bytes") for e in ledger if e.group in ("weights", "experts")) / 1e9


def cached_share(name: str, tp: int, dcp: int = 1) -> float:
    """What one of `tp` ranks caches of a sequence, over the sequence."""
    parts = asking.cache_parts(name)
    rank, whole = (
        one(kv.sequence_bytes(parts, column(1024.0), column(t), asking.ONE, column(d), kv.EXACT))
        for t, d in ((tp, dcp), (1, 1))
    )
    return rank / whole


def all_reduced_bytes(tokens: float, tp: int, *, prompt: bool = False) -> tuple[float, float]:
    """Bytes that all-reduces put on one link in a step: of one of them, and of all."""
    counted = setting(model="llama-70b-nominal", tp=tp)
    ledger = asking.prompt_ledger(counted, tokens, tp=tp) if prompt else asking.decode_ledger(counted, tokens, 0, tp=tp)
    found = [e.work for e in ledger if e.work.kind == "all_reduce"]
    return one(found[0].link_bytes), sum(one(w.link_bytes) * one(w.launches) for w in found)


def verified_up_to(tokens: int) -> float:
    """Largest batch whose step of so many tokens a sequence takes its memory time, without context."""
    batch = np.arange(1.0, 2001.0)
    step = passes.decode_pass(batch, column(0.0), column(float(tokens)))
    ledger = [e for e in forward.forward(asking.placed(at()), step) if e.group in ("weights", "experts")]
    parts = [(roofline.terms(e.work, at().profile), e.work.launches) for e in ledger]
    compute, moved = (sum(np.ravel(part[0][term] * part[1]) for part in parts) for term in (0, 1))
    return float(np.count_nonzero(compute <= moved))
