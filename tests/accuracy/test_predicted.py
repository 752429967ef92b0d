"""presets/measurements/predicted.csv holds what the planner predicts today; `make docs` writes it."""

from __future__ import annotations

from collections.abc import Callable

from planner.predicted import predicted_text


def test_predictions_are_fresh(document: Callable[[str, str], None]) -> None:
    document("presets/measurements/predicted.csv", predicted_text())
