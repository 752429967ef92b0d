"""Predictions against measurements: how far off we are, per metric, configuration and group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from planner.case_words import Row, number
from planner.errors import Fault, InputError
from planner.predict import Cells, predict_rows, read_table


@dataclass(frozen=True)
class Metric:
    """A predicted column and the measured one it is held against."""

    name: str
    predicted: str
    measured: str


SERVING: Final = (
    Metric("TPOT", "pred_tpot_ms", "tpot_best_ms"),
    Metric("TTFT", "pred_ttft_ms", "ttft_mean_ms"),
    Metric("output tokens/s per GPU", "pred_out_tps_per_gpu", "out_tps_per_gpu"),
)
MEMORY: Final = (
    Metric("cache bytes per token", "pred_kv_bytes_per_token_per_gpu", "expected_kv_bytes_per_token_per_gpu"),
    Metric("weights", "pred_weights_gib_per_gpu", "weights_gib_per_gpu"),
    Metric("cache pool", "pred_kv_gib_per_gpu", "kv_cache_gib_per_gpu"),
    Metric("largest concurrency", "pred_max_concurrency", "max_concurrency"),
)


@dataclass(frozen=True)
class Errors:
    """Absolute relative errors of one metric over a set of rows.

    Attributes:
        metric, group: what of, and over which rows.
        rows, configurations: how many are in it.
        median, mean, p90: of the error averaged per configuration.
        row_median: of the error per row.
        bias: geometric mean of predicted over measured, median over configurations.
    """

    metric: str
    group: str
    rows: int
    configurations: int
    median: float
    mean: float
    p90: float
    row_median: float
    bias: float


@dataclass(frozen=True)
class Validation:
    """All errors of a table, the share of rows predicted, and why the others were not."""

    rows: int
    predicted: int
    errors: tuple[Errors, ...]
    reasons: tuple[tuple[str, int], ...]

    @property
    def coverage(self) -> float:
        """Share of rows that were predicted."""
        return self.predicted / self.rows if self.rows else 0.0

    def of(self, metric: str, group: str = "all") -> Errors | None:
        """Errors of one metric over one group; None when it has no rows."""
        return next((found for found in self.errors if (found.metric, found.group) == (metric, group)), None)


def validate(path: str, by: Sequence[str] = ()) -> Validation:
    """Predict a table and hold it against its measured columns.

    Args:
        path: CSV of serving or memory cases.
        by: columns to group the errors by as well.

    Raises:
        InputError: when the table cannot be read, is of neither kind or lacks a column of `by`.
    """
    header, rows = read_table(Path(path))
    for column in by:
        if column not in header:
            raise InputError((Fault("by", column[:80], "must be a column of the table"),))
    cells = list(predict_rows(header, rows))
    metrics = SERVING if "tpot_best_ms" in header else MEMORY
    errors = [found for metric in metrics for found in grouped(metric, rows, cells, by)]
    reasons = Counter(cell["pred_error"] for cell in cells if not _made(cell))
    return Validation(len(rows), sum(map(_made, cells)), tuple(errors), tuple(reasons.most_common()))


def _made(cell: Cells) -> bool:
    """Whether a row has any prediction."""
    return bool(cell["pred_tpot_ms"] or cell["pred_weights_gib_per_gpu"])


def grouped(metric: Metric, rows: Sequence[Row], cells: Sequence[Cells], by: Sequence[str]) -> Iterator[Errors]:
    """Errors of a metric over all rows, then by each value of each grouping column, most configurations first."""
    ratios = [_ratio(metric, row, cell) for row, cell in zip(rows, cells, strict=True)]
    pairs = [(row, ratio) for row, ratio in zip(rows, ratios, strict=True) if ratio is not None]
    if pairs:
        yield errors_of(metric.name, "all", [(row.get("config_id", ""), ratio) for row, ratio in pairs])
    for column in by:
        values = Counter(row.get(column, "") for row, _ in pairs)
        for value, _ in values.most_common():
            of_value = [(row.get("config_id", ""), ratio) for row, ratio in pairs if row.get(column, "") == value]
            yield errors_of(metric.name, f"{column} {value or '(empty)'}", of_value)


def _ratio(metric: Metric, row: Row, cell: Mapping[str, str]) -> float | None:
    """Predicted over measured; None where either is missing."""
    predicted, measured = number(cell, metric.predicted), number(row, metric.measured)
    if predicted is None or measured is None or measured <= 0 or predicted <= 0:
        return None
    return predicted / measured


def errors_of(metric: str, group: str, pairs: Sequence[tuple[str, float]]) -> Errors:
    """Errors of some rows, averaged per configuration.

    Args:
        metric, group: what of, and over which rows.
        pairs: of each row, at least one, its configuration (empty: one of its own) and predicted over measured.
    """
    configurations: dict[str, list[float]] = {}
    for index, (configuration, ratio) in enumerate(pairs):
        configurations.setdefault(configuration or f"row {index}", []).append(ratio)
    means = np.array([np.mean(np.abs(np.array(each) - 1.0)) for each in configurations.values()])
    biases = [np.mean(np.log(each)) for each in configurations.values()]
    single = np.abs(np.array([ratio for _, ratio in pairs]) - 1.0)
    return Errors(
        metric=metric,
        group=group,
        rows=len(pairs),
        configurations=len(configurations),
        median=float(np.median(means)),
        mean=float(np.mean(means)),
        p90=float(np.quantile(means, 0.9)),
        row_median=float(np.median(single)),
        bias=float(np.exp(np.median(biases))),
    )


def as_text(found: Validation) -> str:
    """The validation as aligned lines."""
    lines = [f"rows {found.rows:,}, predicted {found.coverage:.1%}"]
    lines += [
        f"{e.metric:24s} {e.group[:36]:36s} rows {e.rows:6,}  configurations {e.configurations:5,}  per configuration: "
        f"median {e.median:6.1%}  mean {e.mean:6.1%}  p90 {e.p90:6.1%}  bias ×{e.bias:.2f};  per row: median {e.row_median:6.1%}"
        for e in found.errors
    ]
    lines += [f"not predicted {count:5,}  {reason[:100]}" for reason, count in found.reasons]
    return "\n".join(lines) + "\n"
