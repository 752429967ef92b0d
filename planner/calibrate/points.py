"""Measured points as the plan can meet them: which of them say something about this scenario, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from planner.calibrate.constants import SAME_LOAD
from planner.errors import Fault, InputError
from planner.logs.readings import Point
from planner.logs.statements import MOST_POINTS
from planner.specs.correction import CALIBRATED
from planner.specs.scenario import Scenario
from planner.units import show
from planner.variants import known, outcome

SAME_LENGTH: Final = 0.10
"""Share of the larger one within which two mean lengths are the same."""

FALLS: Final = 0.20
"""Share by which TPOT may lie below that of a lower load; no engine is faster with more requests beyond noise."""

APART: Final = 2.0
"""Factor between two TPOTs of the same load beyond which one of them must be of something else."""

FAR: Final = 5.0
"""Factor between measured and predicted TPOT beyond which a point is not of this scenario."""

CAUSES: Final = (
    "check its unit (ms or s), model, precision and layout, and whether tokens were drafted (speculative decoding)"
)
"""What may be behind a point that is far from the plan."""


@dataclass(frozen=True)
class Usable:
    """One point that is compared with the plan.

    Attributes:
        number: its place in the text, from 1.
        scenario: the uncalibrated scenario at its batch and lengths.
        batch: sequences a replica.
        tpot_ms, ttft_ms: measured [ms]; TTFT is None where the text does not state it.
    """

    number: int
    scenario: Scenario
    batch: int
    tpot_ms: float
    ttft_ms: float | None

    @property
    def predicted_ms(self) -> float:
        """TPOT of the uncalibrated plan [ms]."""
        return outcome(self.scenario).tpot_ms or float("nan")


@dataclass(frozen=True)
class LeftOut:
    """A point that is not used, and the sentence that says why."""

    number: int
    reason: str


def usable(scenario: Scenario, points: Sequence[Point]) -> tuple[tuple[Usable, ...], tuple[LeftOut, ...]]:
    """The points that a correction is fitted to, by batch, and those that are left out.

    Raises:
        InputError: when points contradict each other or are far from the plan, or when none is left.
    """
    if len(points) > MOST_POINTS:
        raise InputError((Fault("points", f"{len(points):,}", f"at most {MOST_POINTS:,} are fitted to"),))
    base = uncalibrated(scenario)
    read = [_read(base, number, point) for number, point in enumerate(points, 1)]
    left = tuple(each for each in read if isinstance(each, LeftOut))
    kept = sorted((each for each in read if isinstance(each, Usable)), key=lambda each: each.batch)
    if faults := (*_contradicting(kept), *_far(kept)) or tuple(_falling(kept)):
        raise InputError(faults)
    if not kept:
        said = " ".join(f"Point {each.number}: {each.reason}" for each in left[:3])
        raise InputError((Fault("points", str(len(points)), f"none can be compared with the plan. {said}".strip()),))
    return tuple(kept), left


def uncalibrated(scenario: Scenario) -> Scenario:
    """The scenario under the measured constants as they are."""
    token = scenario.x if scenario.model == "custom" else None
    plain = "measured" if scenario.profile in (CALIBRATED, "textbook") else scenario.profile
    return scenario.with_(profile=plain, x=token, at_batch=None)


def concurrency_of(point: Point) -> float | None:
    """Requests in flight: as stated, else by Little's law from throughput and the time of a request."""
    if point.concurrency is not None:
        return _positive(point.concurrency)
    rate, osl, whole = point.output_tok_s, point.osl, point.e2e_ms
    if None in (rate, osl, whole) or not osl:
        return None
    return _positive((rate or 0.0) / osl * (whole or 0.0) / 1e3)


def tpot_of(point: Point) -> float | None:
    """TPOT as stated: its mean, its median, the mean gap between tokens, else what the whole request leaves [ms]."""
    stated = next((v for v in (point.tpot_ms, point.tpot_median_ms, point.itl_ms) if v is not None), None)
    if stated is not None:
        return _positive(stated)
    whole, first, osl = point.e2e_ms, point.ttft_ms, point.osl
    if whole is None or first is None or osl is None or osl < 2:
        return None
    return _positive((whole - first) / (osl - 1.0))


def _positive(value: float) -> float | None:
    """A number above 0 that ends; None for any other."""
    return value if 0.0 < value < 1e12 else None


def _read(base: Scenario, number: int, point: Point) -> Usable | LeftOut:
    """A point as the plan can meet it, or why it cannot."""
    tpot, load = tpot_of(point), concurrency_of(point)
    if point.osl is not None and 0.0 < point.osl < 1.5:
        return LeftOut(number, "requests of one output token have no time per output token (TPOT).")
    if tpot is None:
        return LeftOut(number, "it states no TPOT above 0 ms.")
    if load is None:
        return LeftOut(number, "it states no concurrency (requests in flight).")
    batch = max(1, round(load / (base.fix_replicas or 1)))
    lengths = {"isl": _length(point.isl, base.isl), "osl": _length(point.osl, base.osl)}
    try:
        at = base.with_(at_batch=batch, **lengths)
        reason = _outside(at, batch)
    except InputError as error:
        reason = f"it is outside of this scenario: {error.faults[0]}."
    return LeftOut(number, reason) if reason else Usable(number, at, batch, tpot, _first_token(point))


def _length(stated: float | None, planned: int) -> int:
    """A mean length in whole tokens; the scenario's where the text does not state it."""
    return planned if stated is None or not 0.0 < stated < 1e12 else max(1, round(stated))


def _first_token(point: Point) -> float | None:
    """TTFT as stated: its mean, else its median [ms]."""
    stated = point.ttft_median_ms if point.ttft_ms is None else point.ttft_ms
    return None if stated is None else _positive(stated)


def _outside(at: Scenario, batch: int) -> str:
    """Why the plan has nothing to compare a point with; empty when it has."""
    found = outcome(at)
    if found.tpot_ms is None:
        return f"the plan has no TPOT there ({found.reason or 'requests of one output token have none'})."
    limits = known(at).bounds
    held, seats = float(limits.space.held_mean[0, 0]), float(limits.limits.seats[0, 0])
    if batch > held:
        return (
            f"{show(batch, 'requests')} {_are(batch)} more than the cache pool of the plan holds ({held:,.0f} at mean "
            "length): the others waited, and TPOT is that of a smaller batch."
        )
    if batch > seats:
        said = f"{show(batch, 'requests')} {_are(batch)} more than the engine admits ({seats:,.0f})"
        return f"{said}: state max_seqs if it was raised."
    return ""


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _contradicting(points: Sequence[Usable]) -> Iterator[Fault]:
    """Points of the same load whose TPOTs cannot both be of this scenario, each beside the first that it contradicts."""
    sound: list[Usable] = []
    for other in points:
        one = next((each for each in sound if _same(each, other) and _apart(each, other) > APART), None)
        if one is None:
            sound.append(other)
        else:
            yield Fault(
                f"point {other.number}",
                _at(other),
                f"contradicts point {one.number}, {show(one.tpot_ms, 'ms')} at the same load: {CAUSES}",
            )


def _apart(one: Usable, other: Usable) -> float:
    return max(one.tpot_ms, other.tpot_ms) / min(one.tpot_ms, other.tpot_ms)


def _at(point: Usable) -> str:
    return f"{show(point.tpot_ms, 'ms')} at {show(point.batch, 'requests')}"


def _falling(points: Sequence[Usable]) -> Iterator[Fault]:
    """The point whose TPOT lies furthest below that of a lower load at the same lengths, when that is more than noise."""
    pairs = [
        (one, other) for one, other in combinations(points, 2) if _lengths_agree(one, other) and not _same(one, other)
    ]
    low = min(pairs, key=lambda pair: pair[1].tpot_ms / pair[0].tpot_ms, default=None)
    if low is None or low[1].tpot_ms >= (1.0 - FALLS) * low[0].tpot_ms:
        return
    one, other = low
    yield Fault(
        f"point {other.number}",
        _at(other),
        f"is {1.0 - other.tpot_ms / one.tpot_ms:.0%} below point {one.number}, {_at(one)}: "
        "TPOT does not fall with load; check which load each row is of, and its unit",
    )


def _same(one: Usable, other: Usable) -> bool:
    """Whether two points were measured at the same load and lengths."""
    return abs(one.batch - other.batch) <= SAME_LOAD * max(one.batch, other.batch) and _lengths_agree(one, other)


def _lengths_agree(one: Usable, other: Usable) -> bool:
    """Whether two points have about the same mean lengths."""
    a, b = one.scenario, other.scenario
    pairs = ((a.isl, b.isl), (a.osl, b.osl))
    return all(abs(left - right) <= SAME_LENGTH * max(left, right) for left, right in pairs)


def _far(points: Sequence[Usable]) -> Iterator[Fault]:
    """Points that are too far from the plan to be of this scenario."""
    for point in points:
        ratio = point.tpot_ms / point.predicted_ms
        if not 1.0 / FAR <= ratio <= FAR:
            times, side = (ratio, "above") if ratio > 1.0 else (1.0 / ratio, "below")
            yield Fault(
                f"point {point.number}",
                _at(point),
                f"is {times:,.1f} times {side} the predicted {show(point.predicted_ms, 'ms')}: {CAUSES}",
            )
