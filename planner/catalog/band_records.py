"""How wide predictions are: 80 % bands of measured over predicted, as preset files hold them."""

from __future__ import annotations

from typing import Literal

from planner.catalog.records import Record


class OwnBand(Record):
    """80 % band of one engine on one accelerator; `sure` is what four points in five stay below."""

    engine: str
    accelerator: str
    low: float
    high: float
    sure: float

    @property
    def words(self) -> str:
        """The engine and accelerator in words; `any` stands for accelerators without a band of their own."""
        where = "other accelerators with kernels" if self.accelerator == "any" else self.accelerator
        return f"{self.engine} on {where}"


class Span(Record):
    """80 % band of measured over predicted of another quantity than TPOT, over one group of points.

    `of`: `ttft` with at most four requests in flight, `ttft_loop` with more, in a closed loop, or `rate`, output tokens
    a second of a closed loop. `group`: an engine, `fitted` or `borrowed`.
    """

    of: Literal["ttft", "ttft_loop", "rate"]
    group: str
    low: float
    high: float
    points: int

    @property
    def words(self) -> str:
        """The quantity in words."""
        return {
            "ttft": "TTFT, at most four requests in flight",
            "ttft_loop": "TTFT, more requests in a closed loop",
            "rate": "output tokens a second",
        }[self.of]


class Bands(Record):
    """80 % bands of measured over predicted TPOT, and of other quantities.

    `borrowed`: another accelerator's kernels with a bandwidth factor from points of this one. `unseen`: the same without
    any point of this one. `wide`: a convention where even the vendor or the link was never measured.
    """

    low: float
    high: float
    sure: float
    borrowed_low: float
    borrowed_high: float
    borrowed_sure: float
    unseen_low: float
    unseen_high: float
    unseen_sure: float
    wide_low: float
    wide_high: float
    wide_sure: float
    borrowed_vendors: tuple[str, ...]
    date: str
    source: str
    own: tuple[OwnBand, ...]
    span: tuple[Span, ...] = ()

    def spanned(self, of: str, *groups: str) -> tuple[float, float]:
        """Band of a quantity over the first of several groups that has one; the widest that is known otherwise."""
        known = {f"{each.of} {each.group}": (each.low, each.high) for each in self.span}
        return next(
            (known[f"{of} {group}"] for group in groups if f"{of} {group}" in known), (self.wide_low, self.wide_high)
        )


UNKNOWN = Bands(
    low=0.4, high=4.0, sure=4.0,
    borrowed_low=0.4, borrowed_high=4.0, borrowed_sure=4.0,
    unseen_low=0.4, unseen_high=4.0, unseen_sure=4.0,
    wide_low=0.4, wide_high=4.0, wide_sure=4.0,
    borrowed_vendors=(), date="2026-11-30", source="a convention before any fit", own=(),
)  # fmt: skip
"""Where nothing was fitted yet."""
