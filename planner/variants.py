"""Variants of a scenario, each with what a comparison needs of its plan; worked out once and remembered.

A full plan also searches for the nearest plan that fits, draws a curve and lists its sources; a comparison of thirty
variants needs none of that, so it reads the table row alone, from the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from planner.errors import InputError
from planner.physics import forward
from planner.physics.comms import LINK_KINDS
from planner.physics.passes import Pass
from planner.physics.roofline import pass_seconds, terms
from planner.plan import BINDS, Column, Plans
from planner.promised import row_of
from planner.rows import Bounds, bounds
from planner.serving.decode import Clock, clock, micro_batch, rank_batch, tpot
from planner.setting import Setting, resolve
from planner.specs.layout import Layout, layout
from planner.specs.scenario import Scenario
from planner.work import ONE, ZERO

Change: TypeAlias = Mapping[str, str | int | float | bool | None]
"""Scenario fields with the values that they would take."""


@dataclass(frozen=True)
class Outcome:
    """One row of the table of plans as plain numbers; None = not applicable, unknown or not modelled.

    Bytes, milliseconds, tokens a second, sequences and dollars, as the plan fields of the same name.
    """

    fits: bool
    meets_sla: bool
    engine_ok: bool
    binds: str
    reason: str
    gpus_per_replica: float
    replicas: float | None
    gpus: float | None
    weights_bytes: float
    usable_bytes: float
    kv_pool_bytes: float
    kv_bytes_per_token: float
    kv_capacity_tokens: float
    b_max_kv: float
    b_max_sla: float | None
    b_max: float
    batch: float
    tpot_ms: float | None
    ttft_ms: float | None
    ttft_unloaded_ms: float | None
    output_tok_s: float | None
    goodput_tok_s: float | None
    goodput_tok_s_gpu: float | None
    usd_per_hour: float | None
    usd_per_m_goodput: float | None

    @property
    def stands(self) -> bool:
        """Whether it fits, is served and keeps the promise."""
        return self.fits and self.engine_ok and self.meets_sla and self.tpot_ms is not None

    @property
    def output_gpu(self) -> float | None:
        """Output tokens a second of one device, whether or not the promise is kept."""
        return None if self.output_tok_s is None else self.output_tok_s / self.productive_gpus

    @property
    def productive_gpus(self) -> float:
        """Devices that serve one replica's share of the load: its own, and its part of a prefill pool."""
        if not self.goodput_tok_s_gpu or not self.goodput_tok_s:
            return self.gpus_per_replica
        return self.goodput_tok_s / self.goodput_tok_s_gpu


@dataclass(frozen=True)
class Known:
    """A scenario's setting and everything about its layout that does not depend on the batch."""

    setting: Setting
    bounds: Bounds

    @property
    def layout(self) -> Layout:
        """Its layout, a table of one row."""
        return self.bounds.clock.placed.layout


def changed(scenario: Scenario, change: Change) -> Scenario | None:
    """The scenario with some fields changed; None where the changes contradict what stays."""
    try:
        return scenario.with_(**change)
    except InputError:
        return None


@lru_cache(maxsize=1024)
def known(scenario: Scenario) -> Known:
    """Setting, memory, clock and largest batches of a scenario's own layout."""
    s, setting = scenario, resolve(scenario)
    return Known(setting, bounds(setting, layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp).tall))


@lru_cache(maxsize=1024)
def outcome(scenario: Scenario) -> Outcome:
    """What the plan of a scenario says, at its own operating point.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    found = known(scenario)
    return _row(row_of(found.setting, found.bounds), 0)


def row(plans: Plans, at: int) -> Outcome:
    """One row of a table of plans."""
    return _row(plans, at)


def _row(plans: Plans, at: int) -> Outcome:
    """One row, NaN as None."""
    values = {name: getattr(plans, name)[at] for name in Outcome.__dataclass_fields__ if name not in _WORDS}
    plain: dict[str, Any] = {name: _plain(value) for name, value in values.items()}
    return Outcome(binds=BINDS[int(plans.binds[at])], reason=plans.reasons[int(plans.reason[at])], **plain)


_WORDS = ("binds", "reason")


def _plain(value: Any) -> bool | float | None:
    """A cell as Python has it; an infinity stays one, it is a number without a bound and not an unknown one."""
    if isinstance(value, np.bool_):
        return bool(value)
    return None if np.isnan(value) else float(value)


UNTIMED: Final = {
    name: Scenario.model_fields[name].default
    for name in (
        "c", "qps", "load", "sla_ttft_ms", "sla_tpot_ms", "sla_pct", "at_batch", "fix_replicas", "spare", "price",
        "price_kind", "provider", "lang",
    )
}  # fmt: skip
"""Fields that no clock looks at: a promise, a rate or a price that changes leaves every time as it was."""


def untimed(scenario: Scenario) -> Scenario:
    """The scenario with every field that no clock looks at left out, under which times are remembered."""
    return scenario.with_(**UNTIMED)


@lru_cache(maxsize=512)
def _clocked(scenario: Scenario) -> tuple[Setting, Clock]:
    """Setting and clock of an untimed scenario's own layout."""
    s, setting = scenario, resolve(scenario)
    return setting, clock(setting.decoding, layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp).tall)


def tpot_at(scenario: Scenario, batch: float) -> float | None:
    """TPOT at a batch of the scenario's layout [ms]; None where it has no speed."""
    if outcome(scenario).ttft_ms is None:
        return None
    return float(tpots(scenario, np.full((1, 1), float(batch)))[0, 0])


def tpots(scenario: Scenario, batches: Column) -> Column:
    """TPOT at batches of shape (1, m) of the scenario's layout [ms], whether or not it fits."""
    seconds, _ = tpot(_clocked(untimed(scenario))[1], batches)
    return np.broadcast_to(seconds * 1e3, batches.shape)


def step_of(scenario: Scenario, batch: Column, new_tokens: float = 1.0, prompt: Column = ZERO) -> Pass:
    """One engine step of the scenario: `batch` sequences of a replica decode, and a piece of a prompt is read beside them.

    The piece is the last of its prompt, which has most tokens behind it.
    """
    setting, timed = _clocked(untimed(scenario))
    whole, at = setting.prompt, timed.placed.layout
    behind = np.maximum(whole.tokens - prompt, 0.0) + whole.cached
    held = micro_batch(rank_batch(batch, at.dp), at.pp)
    return Pass(held, new_tokens * ONE, setting.decoding.context * ONE, prompt, behind, ZERO)


def step_seconds(scenario: Scenario, step: Pass) -> Column:
    """How long one engine step takes [s], for columns of any shape that broadcasts with (1, m)."""
    setting, timed = _clocked(untimed(scenario))
    return pass_seconds(forward.forward(timed.placed, step), setting.profile)


def step_sides(scenario: Scenario, step: Pass) -> tuple[Column, Column]:
    """Seconds that a step would take were it only to compute, and were it only to move bytes."""
    setting, timed = _clocked(untimed(scenario))
    compute, memory, scale = np.zeros(1), np.zeros(1), setting.profile.scale
    for entry in forward.forward(timed.placed, step):
        if entry.work.kind not in (*LINK_KINDS, "host"):
            flops, moved, _ = terms(entry.work, setting.profile)
            compute = compute + scale * entry.work.launches * flops
            memory = memory + scale * entry.work.launches * moved
    return compute, memory


def applicable(scenario: Scenario, change: Change, found: Outcome | None = None) -> Change | None:
    """The change when its plan has a speed and the engine serves it; None otherwise. `found`: that plan, where it is known."""
    variant = changed(scenario, change)
    if variant is None or variant == scenario:
        return None
    made = outcome(variant) if found is None else found
    return change if made.ttft_ms is not None and made.engine_ok else None


@dataclass(frozen=True)
class Gain:
    """What a variant saves: a share of the cost of a good token, or, without a price, more good tokens per device.

    Attributes:
        share: 1 − cost then / cost now, or rate then / rate now − 1; negative where the variant is worse.
        priced: whether it is a share of dollars.
    """

    share: float
    priced: bool


def gain(now: Outcome, then: Outcome) -> Gain | None:
    """What one outcome gains on another; None where either yields nothing that could be compared."""
    if now.usd_per_m_goodput and then.usd_per_m_goodput:
        return Gain(1 - then.usd_per_m_goodput / now.usd_per_m_goodput, True)
    if now.goodput_tok_s_gpu and then.goodput_tok_s_gpu:
        return Gain(then.goodput_tok_s_gpu / now.goodput_tok_s_gpu - 1, False)
    return None


def refused(found: Outcome) -> bool:
    """Whether a variant cannot be had: the layout, the memory or the engine says no."""
    return not found.fits or not found.engine_ok or found.ttft_ms is None
