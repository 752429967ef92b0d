"""Public measurements that stand beside an estimate: same model, accelerator, engine, precision, layout and workload."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from planner.case_words import CaseError, Row, degree, engine_id, number, weight_precision
from planner.catalog.accelerators import find_accelerator
from planner.catalog.models import find_model, model
from planner.predict import read_table
from planner.specs.scenario import Scenario

TABLE: Final = Path(__file__).resolve().parent.parent / "presets" / "measurements" / "serving.csv"

CLOSE: Final = 0.25
"""How far a measured mean length may be from the planned one, as a share of it."""


@dataclass(frozen=True)
class MeasuredPoint:
    """One measured TPOT.

    Attributes:
        batch: concurrent requests per replica [sequences].
        tpot_ms: measured time per output token [ms].
        isl, osl: mean lengths that it was measured at [tokens].
        engine: engine and version; source, date: where and when it was published.
    """

    batch: float
    tpot_ms: float
    isl: float
    osl: float
    engine: str
    source: str
    date: str


Key: TypeAlias = tuple[int, str, str, str, int, int]
"""Parameters of the model (equal shapes are equal to the clock), accelerator, engine, weights, tp, ep."""


@dataclass(frozen=True)
class _Case:
    """What must agree for a point to be shown, and the point."""

    key: Key
    point: MeasuredPoint


def measured_points(scenario: Scenario) -> tuple[MeasuredPoint, ...]:
    """Measured points of a scenario's own configuration, lengths within a quarter; by batch.

    Points are never blended with the estimate. Scenarios without colocated prefill have none: no source measures them.
    """
    if scenario.profile == "textbook" or scenario.prefill != "colocated" or scenario.prefix > 0:
        return ()
    if scenario.model == "custom":
        return ()
    key = (
        model(scenario.model).total_params,
        scenario.gpu,
        scenario.engine,
        scenario.weights,
        scenario.tp,
        scenario.ep,
    )
    found = (case.point for case in _cases() if case.key == key)
    close = (p for p in found if _near(p.isl, scenario.isl) and _near(p.osl, scenario.osl))
    return tuple(sorted(close, key=lambda point: point.batch))


def _near(measured: float, planned: int) -> bool:
    """Whether a measured length is close enough to the planned one."""
    return abs(measured - planned) <= CLOSE * planned


@functools.cache
def _cases() -> tuple[_Case, ...]:
    """All measured points that name what we know."""
    _, rows = read_table(TABLE)
    return tuple(case for row in rows if (case := _case(row)) is not None)


def _case(row: Row) -> _Case | None:
    """A row as a case; None where it names a model, accelerator, engine or layout that we do not plan."""
    spec, gpu = find_model(row["model"]), find_accelerator(row["gpu"])
    batch, tpot = number(row, "concurrency_eff", "concurrency"), number(row, "tpot_best_ms")
    isl, osl = number(row, "isl"), number(row, "osl")
    if spec is None or gpu is None or None in (batch, tpot, isl, osl) or degree(row, "dp") > 1 or degree(row, "pp") > 1:
        return None
    try:
        engine = engine_id(row["engine"])
        weights, _ = weight_precision(row["weight_precision"], spec, row["model"])
    except CaseError:
        return None
    key = (spec.total_params, gpu.id, engine, weights, degree(row, "tp"), degree(row, "ep"))
    said = f"{row['engine']} {row['engine_version']}".strip()
    return _Case(
        key, MeasuredPoint(batch or 0.0, tpot or 0.0, isl or 0.0, osl or 0.0, said, row["source"], row["source_date"])
    )
