"""The law's constants from timed kernels: robust least squares on the logarithm of time, by the law that plans use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import least_squares

from planner.calibrate.kernel_work import Timings
from planner.catalog.profile_records import LawRecord
from planner.physics.roofline import collective_seconds, operator_seconds
from planner.work import Column

FREE: Final[dict[str, tuple[str, ...]]] = {
    "gemm": ("floor_us", "eff_bw", "eff_flops", "p"),
    "experts": ("floor_us", "eff_bw", "eff_flops", "p"),
    "attn_decode": ("floor_us", "eff_bw", "rise_us", "rise_scale_us"),
    "mla_decode": ("floor_us", "eff_bw", "eff_flops", "p", "rise_us", "rise_scale_us"),
    "attn_prefill": ("floor_us", "eff_flops", "half_length_tokens"),
    "mla_prefill": ("floor_us", "eff_flops", "half_length_tokens"),
}
"""Constants that are fitted, by kind; the others of a law stay what they are."""

RISE: Final = ("rise_us", "rise_scale_us")
"""Fitted only where a record has them: on small chips mid-size caches sit on the chip, and what rises is not a launch."""

RANGE: Final[dict[str, tuple[float, float]]] = {
    "floor_us": (0.5, 300.0),
    "eff_bw": (0.02, 1.0),
    "eff_flops": (0.02, 1.0),
    "p": (1.0, 4.0),
    "rise_us": (0.01, 200.0),
    "rise_scale_us": (0.3, 200.0),
    "half_length_tokens": (1.0, 10_000.0),
}
"""Physical range of each constant, in the units of the presets."""

STARTS: Final[tuple[dict[str, float], ...]] = (
    {"floor_us": 8.0, "eff_bw": 0.8, "eff_flops": 0.6, "p": 2.0, "rise_us": 8.0, "rise_scale_us": 20.0},
    {"floor_us": 30.0, "eff_bw": 0.6, "eff_flops": 0.2, "p": 1.2, "rise_us": 30.0, "rise_scale_us": 1.0},
)
"""Where the search begins; the better end is taken. Half lengths begin at `HALF_LENGTH`."""

HALF_LENGTH: Final = 1000.0
SOFT: Final = 0.02
"""Error in log time beyond which a timing counts less than its square: nearly all do, so outliers pull little."""

FOLDS: Final = 6
DIGITS: Final = 3


@dataclass(frozen=True)
class Errors:
    """How far a law is from its timings.

    Attributes:
        rows: timings.
        median, p90: of |predicted/measured − 1|.
        mean: mean of |log(predicted/measured)|, which is about what the fit makes least.
        bias: median of predicted/measured.
    """

    rows: int
    median: float
    p90: float
    mean: float
    bias: float

    @classmethod
    def of(cls, ratio: Column) -> Errors:
        """Errors by predicted over measured times."""
        off = np.abs(ratio - 1.0)
        mean = float(np.mean(np.abs(np.log(ratio))))
        return cls(ratio.size, float(np.median(off)), float(np.quantile(off, 0.9)), mean, float(np.median(ratio)))


def errors(record: LawRecord, timed: Timings) -> Errors:
    """Errors of a law on timings."""
    return Errors.of(operator_seconds(timed.work, record.as_law()) / timed.seconds)


def fitted(record: LawRecord, timed: Timings) -> LawRecord:
    """The record with constants fitted to timings, and how well they fit.

    Constants are rounded to three significant digits first, so that the errors are those of what is written down.
    """
    found = _solved(record, timed)
    return found.model_copy(
        update={
            "rows": len(timed),
            "median_error": rounded(errors(found, timed).median),
            "out_of_fold_error": _out_of_fold(record, timed),
        }
    )


def _solved(record: LawRecord, timed: Timings) -> LawRecord:
    """The constants at which the robust sum of squared errors in log time is least."""
    names = tuple(name for name in FREE[record.kind] if record.rise_us or name not in RISE)
    low, high = (np.array([_scaled(name, RANGE[name][end]) for name in names]) for end in (0, 1))

    def misses(at: Column) -> Column:
        predicted = operator_seconds(timed.work, _at(record, names, at).as_law())
        return np.asarray(np.log(predicted / timed.seconds))

    ends = [
        least_squares(misses, start, bounds=(low, high), loss="soft_l1", f_scale=SOFT, x_scale=0.3)
        for start in _starts(names)
    ]
    best = min(ends, key=lambda end: float(end.cost))
    return _at(record, names, best.x, digits=DIGITS)


def _starts(names: Sequence[str]) -> Iterator[Column]:
    """Where the search begins."""
    for start in STARTS:
        yield np.array([_scaled(name, start.get(name, HALF_LENGTH)) for name in names])


def _scaled(name: str, value: float) -> float:
    """A constant as the search sees it: its logarithm; the corner's exponent as it is."""
    return value if name == "p" else float(np.log(value))


def _at(record: LawRecord, names: Sequence[str], at: Column, digits: int | None = None) -> LawRecord:
    """The record at a point of the search."""
    values = [value if name == "p" else np.exp(value) for name, value in zip(names, at.tolist(), strict=True)]
    kept = values if digits is None else [rounded(value, digits) for value in values]
    return record.model_copy(update=dict(zip(names, map(float, kept), strict=True)))


def rounded(value: float, digits: int = DIGITS) -> float:
    """A constant to as many significant digits as the presets keep."""
    return float(f"{value:.{digits}g}")


def _out_of_fold(record: LawRecord, timed: Timings) -> float | None:
    """Median error on whole shapes that the fit was not shown; None when there is one shape only."""
    shapes = sorted(set(timed.shapes))
    if len(shapes) < 2:
        return None
    names = np.array(timed.shapes)
    off = []
    for fold in range(min(FOLDS, len(shapes))):
        held = np.isin(names, shapes[fold :: min(FOLDS, len(shapes))])
        rest, unseen = timed.where(~held), timed.where(held)
        ratio = operator_seconds(unseen.work, _solved(record, rest).as_law()) / unseen.seconds
        off.append(np.abs(ratio - 1.0))
    return rounded(float(np.median(np.concatenate(off))))


def link_constants(traffic: Column, ranks: Column, taken: Column) -> tuple[float, float]:
    """Latency [us] and bus bandwidth [GB/s] of a collective over one number of ranks."""

    def misses(at: Column) -> Column:
        alpha, bus = np.exp(at) * (1e-6, 1e9)
        return np.asarray(np.log(collective_seconds(traffic, ranks, alpha, bus) / taken))

    start = np.log([taken.min() * 1e6, float(np.max(traffic / taken)) * 1e-9])
    end = least_squares(misses, start, loss="soft_l1", f_scale=SOFT, x_scale=0.3)
    alpha_us, bus_gb_per_s = np.exp(end.x).tolist()
    return rounded(alpha_us), rounded(bus_gb_per_s)
