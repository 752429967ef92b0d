"""Memory against what engines printed at start-up (`tests/golden/engine_logs.csv`, one row a public log)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.case_words import Row, number
from planner.predict import Cells, predict_rows, read_table

LOGS = Path("tests") / "golden" / "engine_logs.csv"
Pairs = list[tuple[Row, Cells]]


@pytest.fixture(scope="module")
def logs(root: Path) -> Pairs:
    header, rows = read_table(root / LOGS)
    return list(zip(rows, predict_rows(header, rows), strict=True))


def ratios(logs: Pairs, predicted: str, printed: str) -> np.ndarray:
    """Predicted over printed of every row that prints; NaN where it is not predicted."""
    pairs = [(number(cells, predicted), number(row, printed)) for row, cells in logs]
    return np.array([np.nan if p is None else p / m for p, m in pairs if m is not None and m > 0])


def share_within(found: np.ndarray, tolerance: float) -> float:
    """Share of all rows that are within a tolerance; a row without a prediction is not."""
    return float(np.mean(np.abs(found - 1.0) <= tolerance))


def test_cache_bytes_per_token_are_exact(logs: Pairs) -> None:
    agreed = [pair for pair in logs if pair[0]["consistent"] == "y"]
    found = ratios(agreed, "pred_kv_bytes_per_token_per_gpu", "expected_kv_bytes_per_token_per_gpu")
    assert len(found) >= 90
    assert share_within(found, 0.002) >= 0.97


def test_weights_are_within_five_percent(logs: Pairs) -> None:
    found = ratios(logs, "pred_weights_gib_per_gpu", "weights_gib_per_gpu")
    assert len(found) >= 100
    assert share_within(found, 0.05) >= 0.80


def test_cache_pool_is_within_ten_percent(logs: Pairs) -> None:
    found = ratios([p for p in logs if p[1]["pred_kv_gib_per_gpu"]], "pred_kv_gib_per_gpu", "kv_cache_gib_per_gpu")
    assert len(found) >= 90
    assert share_within(found, 0.10) >= 0.80


def test_starts_that_engines_refused_do_not_fit(logs: Pairs) -> None:
    judged = [(row, cells) for row, cells in logs if cells["pred_max_concurrency"]]
    refused = [cells for row, cells in judged if row["outcome"] in ("no_kv_room", "max_len_gt_kv")]
    assert refused
    assert all(cells["pred_fits"] == "false" for cells in refused)
