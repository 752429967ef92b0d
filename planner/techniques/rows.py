"""A row of the table of techniques: its figures, verdicts and differences."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from planner.advise.pools import at_full_use
from planner.specs.scenario import Scenario
from planner.variants import Change, Outcome, outcome, tpot_at


@dataclass(frozen=True)
class Figures:
    """What a variant is compared by; None = not applicable or not known.

    Attributes:
        b_max: sequences of a replica within every limit. tpot_ms: at the scenario's own batch.
        ttft_ms, output_gpu, usd_good: at the variant's own largest batch, or at the batch that the scenario sets; tokens a
            second and device, $ per million.
        kv_tokens: cache tokens of a replica.
    """

    b_max: float | None = None
    tpot_ms: float | None = None
    ttft_ms: float | None = None
    output_gpu: float | None = None
    usd_good: float | None = None
    kv_tokens: float | None = None


@dataclass(frozen=True)
class Trial:
    """A variant to be tried: its group and name, the fields it changes, and what it costs in words."""

    group: str
    name: str
    change: Change | None = field(hash=False)
    cost: str


@dataclass(frozen=True)
class Technique:
    """One technique, on or off, beside the scenario as it is.

    Attributes:
        group, name: what it is; `current`: the scenario as it is.
        change: fields that would apply it; None where no field of a scenario says it.
        fits, meets_sla, engine_ok: verdicts on it. reason: why it is refused or not priced; empty when it stands.
        figures: its numbers; deltas: those less the scenario's own. cost: what it costs, in words.
        whole: whether it counts all work of serving; one that leaves some out is never the best.
    """

    group: str
    name: str
    current: bool
    change: Change | None = field(hash=False)
    fits: bool
    meets_sla: bool
    engine_ok: bool
    reason: str
    figures: Figures
    deltas: Figures
    cost: str
    whole: bool = True

    @property
    def stands(self) -> bool:
        """Whether it fits, is served and keeps the SLA."""
        return self.fits and self.meets_sla and self.engine_ok and not self.reason


def batch_of(s: Scenario) -> float:
    """The scenario's own operating batch."""
    return outcome(s).batch


def refused_row(trial: Trial, current: bool, reason: str) -> Technique:
    """A row without numbers."""
    nothing = Figures()
    return Technique(
        trial.group, trial.name, current, trial.change, False, False, False, reason, nothing, nothing, trial.cost
    )


def row_of(trial: Trial, current: bool, found: Outcome, figures: Figures, base: Figures) -> Technique:
    """A row with numbers, and what they differ by."""
    return Technique(
        trial.group, trial.name, current, trial.change, found.fits, found.meets_sla, found.engine_ok,
        "" if found.stands else found.reason, figures, less(figures, base), trial.cost,
    )  # fmt: skip


def figures_of(s: Scenario, found: Outcome, batch: float) -> Figures:
    """Numbers of one outcome; TPOT at a given batch of the replica."""
    if not found.fits:
        return Figures()
    at = tpot_at(s, batch) if found.tpot_ms is not None else None
    full = outcome(at_full_use(s)) if s.prefill == "disaggregated" else found
    return Figures(
        b_max=found.b_max if found.ttft_ms is not None and found.engine_ok else None,
        tpot_ms=at,
        ttft_ms=found.ttft_ms,
        output_gpu=full.goodput_tok_s_gpu or None if found.engine_ok else None,
        usd_good=found.usd_per_m_goodput,
        kv_tokens=found.kv_capacity_tokens,
    )


def less(figures: Figures, base: Figures) -> Figures:
    """Figures less those of the scenario; None where either is unknown."""
    pairs = {each.name: (getattr(figures, each.name), getattr(base, each.name)) for each in fields(Figures)}
    return Figures(**{name: None if None in pair else pair[0] - pair[1] for name, pair in pairs.items()})
