"""How far off predicted speed is, against public measurements; writes docs/VALIDATION.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from planner.case_words import number
from planner.predict import predict_rows, read_table
from planner.predict_serving import predicted_plan
from planner.validate import Errors, Validation, validate

TABLE = Path("presets") / "measurements" / "serving.csv"
LOGS = Path("tests") / "golden" / "engine_logs.csv"
MEMORY_METRICS = ("cache bytes per token", "weights", "cache pool", "largest concurrency")
GROUPS = ("engine", "gpu", "model_family")
SMALLEST_GROUP = 10
"""Groups of fewer configurations say more about luck than about us."""


@pytest.fixture(scope="module")
def found(root: Path) -> Validation:
    return validate(str(root / TABLE), GROUPS)


@pytest.fixture(scope="module")
def logs(root: Path) -> Validation:
    return validate(str(root / LOGS))


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
    both = zip(rows, predict_rows(header, rows), strict=True)
    pairs = [(number(cells, "pred_tpot_ms"), number(row, "floor_tpot_ms")) for row, cells in both]
    made = [(predicted, floor) for predicted, floor in pairs if predicted is not None and floor is not None]
    assert made
    assert all(predicted >= 0.98 * floor for predicted, floor in made)


def test_eighty_percent_band_holds_about_eighty_percent(root: Path) -> None:
    """The band of this accelerator and engine, held against configurations of it (H100, H200 and B200)."""
    _, rows = read_table(root / TABLE)
    inside = []
    for row in rows:
        measured, plans = number(row, "tpot_best_ms"), predicted_plan(row)
        if row["gpu"] in ("H100-SXM", "H200", "B200") and measured is not None and plans is not None:
            inside.append(plans.tpot_low_ms[0] <= measured <= plans.tpot_high_ms[0])
    assert len(inside) > 1000
    assert 0.70 <= sum(inside) / len(inside) <= 0.95


def test_validation_document_is_fresh(
    found: Validation, logs: Validation, document: Callable[[str, str], None]
) -> None:
    document("docs/VALIDATION.md", _document(found, logs))


def test_readme_shows_these_errors(found: Validation, logs: Validation, root: Path) -> None:
    """The first screen's table is made of the same figures."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    wanted = [
        *(found.of(name) for name in ("TPOT", "output tokens/s per GPU", "TTFT")),
        *(logs.of(name) for name in MEMORY_METRICS),
    ]
    missing = [
        f"| {e.median:.1%} | {e.p90:.1%} |" for e in wanted if e and f"| {e.median:.1%} | {e.p90:.1%} |" not in readme
    ]
    assert missing == []


INTRODUCTION = """\
# How far off we are

`presets/measurements/serving.csv` holds {rows:,} public points of served models (permissive licences, source and date in
each row); {coverage:.0%} of them can be predicted. Errors are |predicted / measured − 1|, averaged per configuration (one
model, layout, engine, precision and workload over its concurrencies), then taken over configurations.

The serving constants of the measured profile were fitted to these and similar points, so these are in-sample figures.
Left out pair by pair (model family, accelerator), the fit behind them errs by 10.9 %; with a whole model family left out,
by 12.7 %. Expect that of a model that is not in the table.

TTFT is that of a lone request on an idle replica. The measurements include the queue of a closed loop that starts with
all requests at once, which is why measured TTFT is about twice the prediction: read it as a lower bound. Measured
throughput counts the time that requests spend waiting and reading their prompts; the prediction is that of a full batch.
"""

LOGGED = """\
`tests/golden/engine_logs.csv` holds {rows:,} public start-up logs that state model and tensor-parallel degree;
{coverage:.0%} of them can be predicted. The mean of the pool is ruled by a few nearly empty pools.
"""


def _document(found: Validation, logs: Validation) -> str:
    served = [found.of(name) for name in ("TPOT", "output tokens/s per GPU", "TTFT")]
    parts = [
        INTRODUCTION.format(rows=found.rows, coverage=found.coverage),
        _table("what", "configurations", [e for e in served if e is not None]),
        "## TPOT by group\n",
        _table("group", "configurations", [e for e in found.errors if _worth_showing(e)]),
        "## Memory against engine logs\n",
        LOGGED.format(rows=logs.rows, coverage=logs.coverage),
        _table("what", "logs", list(logs.errors)),
        "## Not predicted\n",
        "| points | reason |\n|--:|---|",
        *(f"| {count:,} | {reason} |" for reason, count in found.reasons if count > 1),
    ]
    return "\n".join(parts) + "\n"


def _table(first: str, second: str, rows: list[Errors]) -> str:
    header = f"| {first} | {second} | points | median | mean | 90th percentile | bias |\n|---|--:|--:|--:|--:|--:|--:|"
    return "\n".join([header, *(_row(each) for each in rows), ""])


def _worth_showing(errors: Errors) -> bool:
    return errors.metric == "TPOT" and errors.group != "all" and errors.configurations >= SMALLEST_GROUP


def _row(errors: Errors) -> str:
    name = errors.metric if errors.group == "all" else errors.group
    return (
        f"| {name} | {errors.configurations:,} | {errors.rows:,} | {errors.median:.1%} | {errors.mean:.1%} "
        f"| {errors.p90:.1%} | ×{errors.bias:.2f} |"
    )
