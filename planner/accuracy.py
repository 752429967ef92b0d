"""How far predictions are from the shipped measurements: selections of points, their errors, and where they are worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal, TypeAlias

from planner.catalog.evidence import KnownError, MetricName, Where, known_errors
from planner.predicted import Figures, ServedPoint
from planner.validate import Errors, errors_of

Grouping: TypeAlias = Literal["engine", "accelerator", "family"]
GROUPINGS: Final[tuple[Grouping, ...]] = ("engine", "accelerator", "family")
METRICS: Final[tuple[MetricName, ...]] = ("TPOT", "TTFT", "output tokens/s per GPU")

BAD: Final = 1.5
"""From how many times the overall median error on a group without a known cause is named."""

WORTH_NAMING: Final = 5
"""Points below which a group says more about luck than about us."""


@dataclass(frozen=True)
class Compared:
    """One point of one metric, where both its sides are known.

    Attributes:
        measured, predicted: in the metric's own unit: ms, or tokens per second of one GPU.
    """

    point: ServedPoint
    measured: float
    predicted: float

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted / self.measured


@dataclass(frozen=True)
class Trouble:
    """A group that is predicted badly, how badly today, and why if that is known."""

    errors: Errors
    title: str
    known: KnownError | None = None


def compared(points: Sequence[ServedPoint], metric: MetricName) -> tuple[Compared, ...]:
    """Points that have both a measurement and a prediction of a metric."""
    pairs = ((point, _value(point.measured, metric), _value(point.predicted, metric)) for point in points)
    return tuple(Compared(point, here, there) for point, here, there in pairs if here and there)


def _value(figures: Figures, metric: MetricName) -> float | None:
    """One figure; None for none, and for what is not above zero."""
    value = {"TPOT": figures.tpot_ms, "TTFT": figures.ttft_ms}.get(metric, figures.out_tps_per_gpu)
    return value if value is not None and value > 0 else None


def selected(points: Sequence[ServedPoint], where: Where) -> tuple[ServedPoint, ...]:
    """Points that agree with everything stated."""
    names = ("source_id", "engine", "version", "accelerator", "family", "precision")
    wanted = [(name, getattr(where, name)) for name in names if getattr(where, name)]
    return tuple(
        point
        for point in points
        if all(getattr(point, name) == value for name, value in wanted)
        and where.isl in (None, point.isl)
        and (point.concurrency or 0.0) >= where.concurrency_from
    )


def error_within(found: Sequence[Compared]) -> float:
    """The error that half of the points keep within, as a share; 0 without points."""
    return median(abs(each.ratio - 1.0) for each in found) if found else 0.0


def share_within(found: Sequence[Compared], error: float) -> float:
    """Share of points whose error is at most `error`, itself a share; 0 without points."""
    return sum(abs(each.ratio - 1.0) <= error for each in found) / len(found) if found else 0.0


def share_in_band(found: Sequence[Compared]) -> float | None:
    """Share of points measured inside the predicted 80 % band of TPOT; None without points that have one."""
    banded = [(each.point.low_ms, each.measured, each.point.high_ms) for each in found]
    inside = [low <= measured <= high for low, measured, high in banded if low is not None and high is not None]
    return sum(inside) / len(inside) if inside else None


def errors(found: Sequence[Compared], metric: MetricName, group: str) -> Errors:
    """Errors of at least one point, averaged per configuration."""
    return errors_of(metric, group, [(each.point.configuration, each.ratio) for each in found])


def split(found: Sequence[Compared], by: Grouping) -> tuple[tuple[str, tuple[Compared, ...]], ...]:
    """Points by the value of one grouping, most points first."""
    counted = Counter(getattr(each.point, by) for each in found)
    return tuple(
        (value, tuple(each for each in found if getattr(each.point, by) == value)) for value, _ in counted.most_common()
    )


def troubles(points: Sequence[ServedPoint], metric: MetricName) -> tuple[Trouble, ...]:
    """Groups that are predicted badly, worst first: those with a known cause, then those that none covers."""
    named = [(entry, selected(points, entry.where)) for entry in known_errors() if metric in entry.metrics]
    found = [
        Trouble(errors(pairs, metric, entry.id), entry.title, entry)
        for entry, group in named
        if (pairs := compared(group, metric))
    ]
    covered = {point.point for _, group in named for point in group}
    rest = compared([point for point in points if point.point not in covered], metric)
    limit = BAD * _median(compared(points, metric), metric)
    return tuple(sorted([*found, *_unexplained(rest, metric, limit)], key=lambda each: -each.errors.median))


def _median(found: Sequence[Compared], metric: MetricName) -> float:
    """Median error over configurations; 0 without points."""
    return errors(found, metric, "all").median if found else 0.0


def _unexplained(rest: Sequence[Compared], metric: MetricName, limit: float) -> list[Trouble]:
    """Groups of one model, accelerator and engine that err by more than `limit` and have no known cause."""
    groups: dict[str, list[Compared]] = {}
    for each in rest:
        name = f"{each.point.family} on {each.point.accelerator}, {each.point.engine}"
        groups.setdefault(name, []).append(each)
    found = [(name, errors(pairs, metric, name)) for name, pairs in groups.items() if len(pairs) >= WORTH_NAMING]
    return [Trouble(each, name) for name, each in found if each.median > limit]
