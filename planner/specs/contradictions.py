"""Values that are each allowed but cannot be meant together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from planner.errors import Fault
from planner.specs.fields import shown

if TYPE_CHECKING:
    from planner.specs.scenario import Scenario

POOL_FIELDS: Final = ("prefill_gpu", "prefill_tp", "prefill_workers", "decode_workers", "kv_link_eff")
"""Fields that mean something only when prefill runs in a pool of its own."""


def contradictions(scenario: Scenario) -> tuple[Fault, ...]:
    """Every contradiction, each as the fault of one field; empty when the scenario is consistent."""
    rules = (_pool, _speculation, _limits, _workers, _custom)
    return tuple(fault for rule in rules for fault in rule(scenario))


def _pool(s: Scenario) -> Iterator[Fault]:
    """A prefill pool is described only when there is one, and feeds a decode pool only when there is something to decode."""
    if s.prefill == "disaggregated":
        if s.osl == 1:
            yield Fault("prefill", s.prefill, "needs osl of 2 or more: requests of one output token are never decoded")
        return
    for field in POOL_FIELDS:
        if (value := getattr(s, field)) is not None:
            yield Fault(field, shown(value), f"allowed only with prefill = disaggregated (it is {s.prefill})")


def _speculation(s: Scenario) -> Iterator[Fault]:
    """Acceptance and draft cost are described only when something is drafted."""
    if s.spec > 0:
        return
    defaults = type(s).model_fields
    for field in ("accept", "draft"):
        if getattr(s, field) != defaults[field].default:
            yield Fault(field, shown(getattr(s, field)), "allowed only with spec of 1 or more (it is 0)")


def _limits(s: Scenario) -> Iterator[Fault]:
    """Engine limits admit what the workload asks for."""
    if s.max_len is not None and s.max_len < s.isl + s.osl:
        yield Fault("max_len", str(s.max_len), f"must be at least isl + osl = {s.isl + s.osl:,} (tokens), or left out")
    if s.at_batch is not None and s.max_seqs is not None and s.at_batch > s.max_seqs * s.dp:
        yield Fault("at_batch", str(s.at_batch), f"must be at most max_seqs · dp = {s.max_seqs * s.dp:,} (sequences)")
    if s.token_budget is not None and s.chunk > s.token_budget:
        yield Fault("chunk", str(s.chunk), f"must be at most token_budget = {s.token_budget:,} (tokens)")


def _workers(s: Scenario) -> Iterator[Fault]:
    """The decode pool has one size."""
    if None not in (s.decode_workers, s.fix_replicas) and s.decode_workers != s.fix_replicas:
        yield Fault(
            "decode_workers", str(s.decode_workers), f"must equal fix_replicas = {s.fix_replicas}, or be left out"
        )


def _custom(s: Scenario) -> Iterator[Fault]:
    """A custom model or a calibration comes with its token, and a token with something to describe."""
    if s.model == "custom" and s.x is None:
        yield Fault("x", "empty", "must hold the custom model's token when model = custom")
    if s.profile == "custom" and s.x is None and s.model != "custom":
        yield Fault("profile", "custom", "needs a calibration's token in x (it is empty)")
    if "custom" not in (s.model, s.profile) and s.x is not None:
        only = f"allowed only with model = custom (it is {s.model}) or profile = custom (it is {s.profile})"
        yield Fault("x", shown(s.x), only)
