"""An example to try the reader with: a curve of the shipped public measurements, written as Headroom's own CSV."""

from __future__ import annotations

from functools import cache
from typing import Final

from planner.logs.template import FIGURE_COLUMNS, SCENARIO_COLUMNS
from planner.predicted import ServedPoint, served_points
from planner.specs.spelling import decimal

MODEL, ACCELERATOR, ENGINE, PRECISION, LAYOUT = "Llama-3.1-70B", "B200", "vLLM", "fp8", "TP4"
LENGTHS: Final = (922.0, 922.0)
STATED: Final = ("llama-3.1-70b", "b200-sxm", "vllm", "fp8", "", "4", "1", "1", "1")
"""The same in the words of a scenario; the source does not state the cache's precision."""


@cache
def example_csv() -> str:
    """The curve as CSV, its source in the first line.

    Raises:
        CatalogueError: when the shipped measurements cannot be read.
    """
    points = sorted((each for each in served_points() if _chosen(each)), key=lambda each: each.concurrency or 0.0)
    source = f"# Measured by others: {points[0].source} ({points[0].date})" if points else "# No measurement is shipped"
    rows = (",".join((*_figures(each), *STATED)) for each in points)
    return "\n".join((source, ",".join((*FIGURE_COLUMNS, *SCENARIO_COLUMNS)), *rows)) + "\n"


def _chosen(point: ServedPoint) -> bool:
    """Whether a shipped point is of the curve."""
    named = (point.model, point.accelerator, point.engine, point.precision, point.layout)
    return (
        named == (MODEL, ACCELERATOR, ENGINE, PRECISION, LAYOUT)
        and (point.isl, point.osl) == LENGTHS
        and None not in (point.concurrency, point.measured.tpot_ms)
    )


def _figures(point: ServedPoint) -> tuple[str, ...]:
    """A point's figures in the order of the columns; empty for what was not measured."""
    figures = (point.concurrency, point.isl, point.osl, point.measured.tpot_ms, point.measured.ttft_ms, None)
    return tuple("" if value is None else decimal(value) for value in figures)
