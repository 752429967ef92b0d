"""How tests ask the planner: one scenario to its objects, one pass to its ledger and seconds, numbers out of columns."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from planner.candidates import candidates
from planner.evaluate import evaluate_setting
from planner.physics import forward, kv, passes, roofline
from planner.plan import Plan, Plans
from planner.rows import unloaded_ttft
from planner.serving import decode, prefill
from planner.setting import Setting, resolve
from planner.single import plan_of
from planner.specs.layout import Layout, layout
from planner.specs.precision import CACHE
from planner.specs.profile import MEASURED
from planner.specs.scenario import Scenario
from planner.work import Entry, Ledger

ONE = np.ones(1)


def one(column: object) -> float:
    """The first number of a column."""
    return float(np.asarray(column, dtype=float).reshape(-1)[0])


def column(*values: float) -> np.ndarray:
    """A column of floats."""
    return np.array(values, dtype=float)


@cache
def setting(**changes: Any) -> Setting:
    """A scenario with everything looked up."""
    return resolve(Scenario(**changes))


@cache
def plan(**changes: Any) -> Plan:
    """The plan of a scenario."""
    return plan_of(Scenario(**changes))


def table(at: Setting, where: Layout, batch: object = None) -> Plans:
    """Plans of layouts and batches under a setting."""
    return evaluate_setting(
        at, candidates(where, None if batch is None else np.atleast_2d(np.asarray(batch, dtype=float)))
    )


def total(entry: Entry, field: str) -> float:
    """Operations or bytes of an entry over all its launches, and over all kernels that are stacked in it."""
    return one(roofline.over_kernels(np.asarray(getattr(entry.work, field) * entry.work.launches)))


def placed(at: Setting, **degrees: Any) -> forward.Placed:
    """A setting's machine on a layout."""
    return forward.place(at.machine, layout(**degrees))


def decode_ledger(at: Setting, batch: object, context: float, **degrees: Any) -> Ledger:
    """A decode step, operator by operator."""
    step = passes.decode_pass(np.atleast_1d(np.asarray(batch, dtype=float)), column(context))
    return forward.forward(placed(at, **degrees), step)


def step_seconds(at: Setting, batch: object, context: float, **degrees: Any) -> np.ndarray:
    """Time of a decode step, whether or not the model fits."""
    seconds = roofline.pass_seconds(decode_ledger(at, batch, context, **degrees), at.profile)
    return np.asarray(seconds).reshape(-1)


def tpot_seconds(at: Setting, batch: object, where: Layout | None = None) -> np.ndarray:
    """TPOT over batch, whether or not the model fits."""
    clock = decode.clock(at.decoding, layout() if where is None else where)
    return np.asarray(decode.tpot(clock, np.atleast_2d(np.asarray(batch, dtype=float)))[0])


def prompt_ledger(at: Setting, tokens: float, **degrees: Any) -> Ledger:
    """A lone prompt, read in one step."""
    return prefill.chunk_ledger(placed(at, **degrees), prefill.prompt(tokens, 0.0, 0, float("inf")))


def ttft_seconds(at: Setting, where: Layout | None = None) -> np.ndarray:
    """Unloaded TTFT, whether or not the model fits."""
    clock = decode.clock(at.decoding, layout() if where is None else where)
    return np.asarray(unloaded_ttft(at, clock)).reshape(-1)


def cache_parts(name: str, precision: str = "bf16", *, mtp: bool = False) -> tuple[kv.CacheComponent, ...]:
    """What a catalogue model caches, with scaled index keys."""
    return kv.cache_components(setting(model=name).model, CACHE[precision], MEASURED.index_key_bytes, mtp=mtp)


def token_bytes(name: str, tp: float = 1, part: str = "", precision: str = "bf16", *, mtp: bool = False) -> float:
    """Cache bytes of one more token on one rank, before any window is full."""
    chosen = tuple(p for p in cache_parts(name, precision, mtp=mtp) if not part or p.name == part)
    return one(kv.bytes_per_token(chosen, column(tp), ONE))


def sequence_bytes(at: Setting, tokens: object, tp: float = 1, allocation: kv.Allocation = kv.EXACT) -> np.ndarray:
    """Cache bytes of one sequence on one rank, by default exactly (no blocks)."""
    lengths = np.atleast_1d(np.asarray(tokens, dtype=float))
    return np.asarray(kv.sequence_bytes(at.cache, lengths, column(tp), ONE, ONE, allocation))
