"""How far off predicted speed is, against public measurements; writes docs/VALIDATION.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from planner.case_words import number
from planner.predict import predict_rows, read_table
from planner.validate import Errors, Validation, validate

TABLE = Path("presets") / "measurements" / "serving.csv"
GROUPS = ("engine", "gpu", "model_family")
SMALLEST_GROUP = 10
"""Groups of fewer configurations say more about luck than about us."""


@pytest.fixture(scope="module")
def found(root: Path) -> Validation:
    return validate(str(root / TABLE), GROUPS)


def test_at_least_three_quarters_of_the_points_are_predicted(found: Validation) -> None:
    assert found.coverage >= 0.75


def test_tpot_is_within_sixteen_percent_at_the_median_configuration(found: Validation) -> None:
    errors = found.of("TPOT")
    assert errors is not None
    assert errors.median <= 0.16


def test_the_band_of_tpot_is_not_biased(found: Validation) -> None:
    errors = found.of("TPOT")
    assert errors is not None
    assert 0.93 <= errors.bias <= 1.07


@pytest.mark.parametrize("engine", ["TensorRT-LLM", "vLLM", "SGLang"])
def test_no_engine_is_left_behind(found: Validation, engine: str) -> None:
    errors = found.of("TPOT", f"engine {engine}")
    assert errors is not None
    assert errors.median <= 0.16


def test_no_prediction_is_faster_than_one_read_of_the_active_weights(root: Path) -> None:
    header, rows = read_table(root / TABLE)
    pairs = [(number(cells, "pred_tpot_ms"), number(row, "floor_tpot_ms")) for row, cells in zip(rows, predict_rows(header, rows), strict=True)]
    made = [(predicted, floor) for predicted, floor in pairs if predicted is not None and floor is not None]
    assert made
    assert all(predicted >= 0.98 * floor for predicted, floor in made)


def test_eighty_percent_band_holds_about_eighty_percent(root: Path) -> None:
    """The band of this accelerator and engine, held against configurations of it (H100, H200 and B200)."""
    from planner.predict_serving import predicted_plan

    header, rows = read_table(root / TABLE)
    inside = []
    for row in rows:
        measured = number(row, "tpot_best_ms")
        if row["gpu"] in ("H100-SXM", "H200", "B200") and measured is not None and (plans := predicted_plan(row)) is not None:
            inside.append(plans.tpot_low_ms[0] <= measured <= plans.tpot_high_ms[0])
    assert len(inside) > 1000
    assert 0.70 <= sum(inside) / len(inside) <= 0.95


def test_validation_document_is_fresh(found: Validation, document: Callable[[str, str], None]) -> None:
    document("docs/VALIDATION.md", _document(found))


def _document(found: Validation) -> str:
    tpot, ttft = found.of("TPOT"), found.of("TTFT")
    assert tpot is not None
    assert ttft is not None
    return "\n".join(
        [
            "# How far off we are",
            "",
            f"`presets/measurements/serving.csv` holds {found.rows:,} public points of served models (permissive licences, "
            f"source and date in each row); {found.coverage:.0%} of them can be predicted. Errors are |predicted / measured − 1|, "
            "averaged per configuration (one model, layout, engine, precision and workload over its concurrencies), "
            "then taken over configurations.",
            "",
            "The serving constants of the measured profile were fitted to these and similar points, so these are",
            "in-sample figures. Left out pair by pair (model family, accelerator), the fit behind them errs by 10.9 %;",
            "with a whole model family left out, by 12.7 %. Expect that of a model that is not in the table.",
            "",
            "| what | configurations | points | median | mean | 90th percentile | bias |",
            "|---|--:|--:|--:|--:|--:|--:|",
            *(_row(each) for each in (tpot, ttft)),
            "",
            "TTFT is that of a lone request on an idle replica. The measurements include the queue of a closed loop that",
            "starts with all requests at once, which is why measured TTFT is about twice the prediction: read it as a lower bound.",
            "",
            "## TPOT by group",
            "",
            "| group | configurations | points | median | mean | 90th percentile | bias |",
            "|---|--:|--:|--:|--:|--:|--:|",
            *(_row(e) for e in found.errors if e.metric == "TPOT" and e.group != "all" and e.configurations >= SMALLEST_GROUP),
            "",
            "## Not predicted",
            "",
            "| points | reason |",
            "|--:|---|",
            *(f"| {count:,} | {reason} |" for reason, count in found.reasons if count > 1),
            "",
        ]
    )


def _row(errors: Errors) -> str:
    name = errors.metric if errors.group == "all" else errors.group
    return (
        f"| {name} | {errors.configurations:,} | {errors.rows:,} | {errors.median:.1%} | {errors.mean:.1%} "
        f"| {errors.p90:.1%} | ×{errors.bias:.2f} |"
    )
