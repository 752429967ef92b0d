"""How sure a plan's figures are: the 80 % band beside each, and the largest batch with 80 % confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.plan import Plan
from planner.units import show, unit_of, whole

ENDS: Final = {
    "tpot_ms": ("tpot_low_ms", "tpot_high_ms"),
    "ttft_ms": ("ttft_low_ms", "ttft_high_ms"),
    "output_tok_s": ("output_low_tok_s", "output_high_tok_s"),
    "usd_per_m_goodput": ("usd_low_per_m_goodput", "usd_high_per_m_goodput"),
}
"""Plan fields that hold the ends of a figure's 80 % band, by the figure's own field."""

BAND_FIELDS: Final = {end: figure for figure, ends in ENDS.items() for end in ends}
"""The figure whose band a plan field is an end of."""


@dataclass(frozen=True)
class Span:
    """An 80 % band, in the unit of its figure."""

    low: float
    high: float

    def of(self, factor: float) -> Span:
        """The same band of a figure that is a multiple of this one."""
        return Span(self.low * factor, self.high * factor)

    def text(self, unit: str) -> str:
        """Its ends in words, the unit once where both have the same."""
        low, high = show(self.low, unit), show(self.high, unit)
        (first, _, own), (_, _, other) = low.partition(" "), high.partition(" ")
        return f"{first} to {high}" if own == other else f"{low} to {high}"


def band(plan: Plan, figure: str) -> Span | None:
    """The 80 % band of a figure in the figure's unit; None where it has none: no value, or a profile without error."""
    low, high = (getattr(plan, end) for end in ENDS[figure])
    return None if low is None or high is None or low >= high else Span(low, high)


def rate_band(plan: Plan, rate: float) -> Span | None:
    """The band of another rate of tokens of the same plan [tok/s]: in proportion to that of a replica's output."""
    known = band(plan, "output_tok_s")
    return known.of(rate / plan.output_tok_s) if known and plan.output_tok_s else None


def band_text(plan: Plan, figure: str) -> str:
    """The band of a figure with its unit; empty where there is none."""
    found = band(plan, figure)
    return "" if found is None else found.text(unit_of(figure))


def doubted(plan: Plan) -> bool:
    """Whether fewer sequences keep the promise with 80 % confidence than are expected to."""
    return plan.b_max_sure < plan.b_max


def sure_text(plan: Plan) -> str:
    """The largest batch in words: one number where the surest and the expected are the same."""
    if not doubted(plan):
        return whole(plan.b_max)
    if plan.b_max_sure == 0:
        return f"not sure to meet the SLA even at batch 1, {whole(plan.b_max)} expected"
    return f"{whole(plan.b_max_sure)} with 80\u00a0% confidence, {whole(plan.b_max)} expected"
