"""How far simulated load tests are from the shipped measurements, and how a steady service differs from a load test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Final

from planner.catalog.evidence import MetricName
from planner.predicted import Figures, served_points
from planner.simulate.simulated_points import SimulatedPoint, simulated_points
from planner.simulate.validation import KINDS
from planner.validate import Errors, errors_of

METRICS: Final[tuple[MetricName, ...]] = ("TTFT", "TPOT", "output tokens/s per GPU")

ENGINES: Final = ("TensorRT-LLM", "vLLM", "SGLang")
"""Engines that are told apart, as the table names them."""

LOADS: Final = ((2.0, 8.0), (9.0, 32.0), (33.0, 128.0), (129.0, float("inf")))
"""Ranges of requests in flight that are told apart, both ends included."""


@dataclass(frozen=True)
class Steady:
    """Simulated TTFT of a steady service, and of a load test past its start, as shares of the load test's mean.

    Attributes:
        least, most: requests in flight of the load tests, both included.
        points: load tests.
        later: after the first two rounds; steady: as many requests a second at random; medians over the load tests.
    """

    least: float
    most: float
    points: int
    later: float
    steady: float


@cache
def loaded_points() -> tuple[SimulatedPoint, ...]:
    """Simulated load tests with more than one request in flight."""
    return tuple(each for each in simulated_points() if not each.reason and each.clients > 1)


@cache
def loaded_errors(engine: str = "") -> tuple[Errors, ...]:
    """Errors of closed formulas and of simulations on the same load tests; of one engine, or of all."""
    return tuple(_errors([each for each in loaded_points() if engine in ("", each.engine)]))


def _errors(points: Sequence[SimulatedPoint]) -> Iterator[Errors]:
    """Errors of every metric by either kind, in turn."""
    closed = {each.point: each.predicted for each in served_points()}
    for metric in METRICS:
        values = [(each.configuration, _sides(each, closed[each.point], metric)) for each in points]
        whole = [(name, sides) for name, sides in values if all(sides)]
        if whole:
            yield errors_of(metric, KINDS[0], [(name, one / here) for name, (here, one, _) in whole])
            yield errors_of(metric, KINDS[1], [(name, other / here) for name, (here, _, other) in whole])


def _sides(point: SimulatedPoint, closed: Figures, metric: MetricName) -> tuple[float, float, float]:
    """One figure as measured, by the closed formulas and as simulated."""
    return _value(point.measured, metric), _value(closed, metric), _value(point.simulated, metric)


def _value(figures: Figures, metric: MetricName) -> float:
    """One figure; 0 for none."""
    value = {"TPOT": figures.tpot_ms, "TTFT": figures.ttft_ms}.get(metric, figures.out_tps_per_gpu)
    return value or 0.0


@cache
def steady_shares() -> tuple[Steady, ...]:
    """What a load test that starts with all requests at once adds to TTFT, by requests in flight."""
    return tuple(_share(least, most) for least, most in LOADS)


def _share(least: float, most: float) -> Steady:
    """The shares of one range."""
    within = (each for each in loaded_points() if least <= each.clients <= most)
    figures = ((each.simulated.ttft_ms, each.later_ms, each.steady_ms) for each in within)
    found = [(later / mean, steady / mean) for mean, later, steady in figures if mean and later and steady]
    return Steady(least, most, len(found), median(later for later, _ in found), median(steady for _, steady in found))
