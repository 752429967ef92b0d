"""The shipped measurements with what is predicted of each, worked out when documents are made: a page reads them at once."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from planner.case_words import CaseError, Row, number
from planner.catalog.version import catalogue_version
from planner.errors import CatalogueError, HeadroomError
from planner.measured import TABLE
from planner.predict import read_table
from planner.predict_serving import ServingPrediction, predict_serving

PREDICTED: Final = TABLE.with_name("predicted.csv")
COLUMNS: Final = (
    "point", "tpot_ms", "tpot_low_ms", "tpot_high_ms", "ttft_ms", "out_tps_per_gpu", "grounds", "reason",
)  # fmt: skip
HEAD: Final = "# predicted from serving.csv by `make docs` with catalogue "
"""Start of the file's first line; the catalogue's version ends it."""

DEGREES: Final = ("tp", "pp", "dp", "ep")


@dataclass(frozen=True)
class Figures:
    """What is measured or predicted of one served point; None where it is not known.

    Attributes:
        tpot_ms: time per output token [ms].
        ttft_ms: time to first token [ms].
        out_tps_per_gpu: output tokens per second of one GPU.
    """

    tpot_ms: float | None
    ttft_ms: float | None
    out_tps_per_gpu: float | None


@dataclass(frozen=True)
class ServedPoint:
    """One measured point and what is predicted of it.

    Attributes:
        point: its key; `configuration` groups the points of one curve, empty for one alone.
        family: of the model; engine and version, accelerator, source and date are as the table spells them.
        layout: degrees of parallelism above one, "TP1" when there is none.
        isl, osl: mean lengths [tokens]; `concurrency`: concurrent requests of the deployment.
        low_ms, high_ms: 80 % band of the predicted TPOT [ms].
        grounds: whether the constants are fitted or borrowed, and what was taken as default.
        reason: why it is not predicted; empty when it is.
    """

    point: str
    configuration: str
    source_id: str
    source: str
    date: str
    model: str
    family: str
    accelerator: str
    devices: int
    engine: str
    version: str
    precision: str
    layout: str
    isl: float | None
    osl: float | None
    concurrency: float | None
    measured: Figures
    predicted: Figures
    low_ms: float | None
    high_ms: float | None
    grounds: str
    reason: str


def predicted_text() -> str:
    """The file of predictions, made anew from the shipped measurements."""
    _, rows = read_table(TABLE)
    out = io.StringIO()
    out.write(f"{HEAD}{catalogue_version()}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_cells(row) for row in rows)
    return out.getvalue()


def _cells(row: Row) -> tuple[str, ...]:
    """One row of the file: four digits, so that the last bit of a sum does not make it stale."""
    try:
        found: ServingPrediction = predict_serving(row)
    except (CaseError, HeadroomError) as error:
        return row["point"], "", "", "", "", "", "", str(error)
    numbers = (found.tpot_ms, found.tpot_low_ms, found.tpot_high_ms, found.ttft_ms, found.out_tps_per_gpu)
    return row["point"], *(f"{value:.4g}" for value in numbers), found.source, ""


def predicted_with() -> str:
    """Version of the catalogue that the predictions were made with.

    Raises:
        CatalogueError: the file is missing or does not begin as it must.
    """
    return _read(PREDICTED)[0]


@cache
def served_points() -> tuple[ServedPoint, ...]:
    """Every shipped measurement with its prediction, in the order of the table.

    Raises:
        CatalogueError: the two files do not hold the same points.
    """
    _, rows = read_table(TABLE)
    predictions = _read(PREDICTED)[1]
    if [row["point"] for row in rows] != [found.get("point") for found in predictions]:
        raise CatalogueError(f"{PREDICTED.name} does not hold the points of {TABLE.name}: run `make docs`")
    return tuple(_points(rows, predictions))


@cache
def _read(path: Path) -> tuple[str, tuple[Row, ...]]:
    """Version and rows of a file of predictions."""
    try:
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    except OSError as error:
        raise CatalogueError(f"{path.name} cannot be read: {error.strerror}") from None
    if not first.startswith(HEAD):
        raise CatalogueError(f"{path.name} does not say which catalogue made it: run `make docs`")
    return first.removeprefix(HEAD).strip(), tuple(csv.DictReader(io.StringIO(rest)))


def _points(rows: Iterable[Row], predictions: Iterable[Row]) -> Iterator[ServedPoint]:
    """Measurements joined with their predictions."""
    for row, found in zip(rows, predictions, strict=True):
        yield ServedPoint(
            point=row["point"],
            configuration=row["config_id"],
            source_id=row["source_id"],
            source=row["source"],
            date=row["source_date"],
            model=row["model"],
            family=row["model_family"],
            accelerator=row["gpu"],
            devices=int(number(row, "n_gpus") or 1),
            engine=row["engine"],
            version=row["engine_version"],
            precision=row["weight_precision"],
            layout=_layout(row),
            isl=number(row, "isl"),
            osl=number(row, "osl"),
            concurrency=number(row, "concurrency_eff", "concurrency"),
            measured=Figures(number(row, "tpot_best_ms"), number(row, "ttft_mean_ms"), number(row, "out_tps_per_gpu")),
            predicted=Figures(number(found, "tpot_ms"), number(found, "ttft_ms"), number(found, "out_tps_per_gpu")),
            low_ms=number(found, "tpot_low_ms"),
            high_ms=number(found, "tpot_high_ms"),
            grounds=found["grounds"],
            reason=found["reason"],
        )


def _layout(row: Row) -> str:
    """Degrees above one, in the order in which a layout is written."""
    degrees = ((name, number(row, name)) for name in DEGREES)
    return " ".join(f"{name.upper()}{degree:g}" for name, degree in degrees if degree and degree > 1) or "TP1"
