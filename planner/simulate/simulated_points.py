"""The shipped measurements with what their load tests come to when simulated: `presets/measurements/simulated.csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from planner.case_words import Row, number
from planner.errors import CatalogueError
from planner.measured import TABLE
from planner.optimise.answer import Progress
from planner.predicted import Figures
from planner.simulate.measured import Found, Seen, simulated

SIMULATED: Final = TABLE.with_name("simulated.csv")
HEAD: Final = "# load tests of serving.csv that state a time to first token, simulated by `make simulated`"
"""The file's first line."""

COLUMNS: Final = (
    "point", "config_id", "engine", "concurrency", "requests", "ttft_mean_ms", "tpot_best_ms", "out_tps_per_gpu",
    "sim_ttft_ms", "sim_later_ms", "sim_steady_ms", "sim_tpot_ms", "sim_out_tps_per_gpu", "source_id", "source_date",
    "reason",
)  # fmt: skip


@dataclass(frozen=True)
class SimulatedPoint:
    """One measured point and its simulated load test.

    Attributes:
        point, configuration: its key, and that of its curve. engine, source, date: as the table spells them.
        clients: requests in flight; requests: sent in all (0 = not simulated).
        measured, simulated: what was measured, and what the simulated client saw.
        later_ms: simulated TTFT after the first two rounds; steady_ms: of a steady service at the same rate [ms].
        reason: why it is not simulated; empty when it is.
    """

    point: str
    configuration: str
    engine: str
    clients: float
    requests: int
    measured: Figures
    simulated: Figures
    later_ms: float | None
    steady_ms: float | None
    source: str
    date: str
    reason: str


def stating(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows that state a mean time to first token."""
    return tuple(row for row in rows if number(row, "ttft_mean_ms"))


def simulated_text(
    rows: Sequence[Row],
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> str:
    """The file, made anew from rows of served points.

    Raises:
        Cancelled: when `cancelled` says so.
    """
    out = io.StringIO()
    out.write(f"{HEAD}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(cells, rows, simulated(rows, on_progress, cancelled, steady=True)))
    return out.getvalue()


def cells(row: Row, found: Found) -> tuple[str, ...]:
    """One row of the file: four digits, so that the last bit of a sum does not make it stale."""
    names = ("ttft_mean_ms", "tpot_best_ms", "out_tps_per_gpu")
    known = [row.get(name, "") for name in ("point", "config_id", "engine", "concurrency")]
    measured, source = [row.get(name, "") for name in names], [row.get("source_id", ""), row.get("source_date", "")]
    if not isinstance(found, Seen):
        return (*known, "0", *measured, *[""] * 5, *source, found)
    numbers = (found.ttft_ms, found.later_ms, found.steady_ms, found.tpot_ms, found.out_tps_per_gpu)
    shown = ["" if value is None else f"{value:.4g}" for value in numbers]
    return (*known, str(found.requests), *measured, *shown, *source, "")


@cache
def simulated_points(path: Path = SIMULATED) -> tuple[SimulatedPoint, ...]:
    """Every point of the file, in its order.

    Raises:
        CatalogueError: the file is missing, or does not begin as it must.
    """
    try:
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    except OSError as error:
        raise CatalogueError(f"{path.name} cannot be read: {error.strerror}") from None
    if first != HEAD:
        raise CatalogueError(f"{path.name} does not say how it was made: run `make simulated`")
    return tuple(_point(row) for row in csv.DictReader(io.StringIO(rest)))


def _point(row: Row) -> SimulatedPoint:
    """One row of the file, read back."""
    return SimulatedPoint(
        point=row["point"],
        configuration=row["config_id"],
        engine=row["engine"],
        clients=number(row, "concurrency") or 1.0,
        requests=int(row["requests"]),
        measured=Figures(number(row, "tpot_best_ms"), number(row, "ttft_mean_ms"), number(row, "out_tps_per_gpu")),
        simulated=Figures(number(row, "sim_tpot_ms"), number(row, "sim_ttft_ms"), number(row, "sim_out_tps_per_gpu")),
        later_ms=number(row, "sim_later_ms"),
        steady_ms=number(row, "sim_steady_ms"),
        source=row["source_id"],
        date=row["source_date"],
        reason=row["reason"],
    )
