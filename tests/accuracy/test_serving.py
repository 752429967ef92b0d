"""How far off predicted speed is, against public measurements; writes docs/VALIDATION.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from planner.calibrate.given_points import curves, error_of
from planner.calibrate.report import given_text
from planner.case_words import number
from planner.catalog.fitted_constants import GroupError
from planner.catalog.fitted_constants import served as served_constants
from planner.predict import predict_rows, read_table
from planner.predict_serving import predicted_plan
from planner.validate import SERVING, Errors, Validation, errors_of, validate
from tests.loaded import section

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


def test_nearly_all_points_are_predicted(found: Validation) -> None:
    assert found.coverage >= 0.92


@pytest.mark.parametrize(("metric", "most"), [("TPOT", 0.09), ("output tokens/s per GPU", 0.10)])
def test_errors_at_the_median_configuration(found: Validation, metric: str, most: float) -> None:
    errors = found.of(metric)
    assert errors is not None
    assert errors.median <= most


def test_out_of_fold_errors_are_what_we_promise() -> None:
    """Each pair of model and accelerator family predicted by a fit without it, as the preset records it."""
    found = {each.group: each for each in served_constants().error}
    assert found["all"].out_of_fold <= 0.12
    assert abs(np.log(found["all"].bias)) <= 0.04
    assert all(each.out_of_fold <= 0.16 for name, each in found.items() if name.startswith("engine"))
    assert all(each.out_of_fold <= 0.18 for name, each in found.items() if name.startswith("accelerator"))
    assert all(each.within <= each.out_of_fold + 0.01 for each in found.values())


def test_the_band_of_tpot_is_not_biased(found: Validation) -> None:
    errors = found.of("TPOT")
    assert errors is not None
    assert 0.93 <= errors.bias <= 1.07


@pytest.mark.parametrize("engine", ["TensorRT-LLM", "vLLM", "SGLang"])
def test_no_engine_is_left_behind(found: Validation, engine: str) -> None:
    errors = found.of("TPOT", f"engine {engine}")
    assert errors is not None
    assert errors.median <= 0.12


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
    found: Validation, logs: Validation, root: Path, document: Callable[[str, str], None]
) -> None:
    known = tuple(curves(read_table(root / TABLE)[1]))
    given = "\n\n".join(given_text(error_of(known, count)).strip() for count in (1, 3))
    document("docs/VALIDATION.md", _document(found, logs, given))


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
    whole = served_constants().error[0]
    assert f"| {whole.out_of_fold:.1%} | {whole.p90:.1%} |" in readme


INTRODUCTION = """\
# How far off we are

`presets/measurements/serving.csv` holds {rows:,} public points of served models (permissive licences, source and date in
each row); {coverage:.0%} of them can be predicted. Errors are |predicted / measured − 1|, averaged per configuration (one
model, layout, engine, precision and workload over its concurrencies), then taken over configurations.

The constants of serving were fitted to these points, so the first two tables are *within* the fit. The third is *out of
fold*: every pair of model family and accelerator family predicted by a fit without it. Expect that, or somewhat more, of a
model that is not in the table.

TTFT and throughput are those of a closed loop, as these points were measured: all requests start at once, and each holds its
place until its last token. A running service has no such start; a plan's TTFT is that of a request that meets no queue.
"""

LOGGED = """\
`tests/golden/engine_logs.csv` holds {rows:,} public start-up logs that state model and tensor-parallel degree;
{coverage:.0%} of them can be predicted. The mean of the pool is ruled by a few nearly empty pools.
"""


FOLDED = """\
Fitted to {points:,} points of {configurations} configurations in {pairs} pairs. Two sources that no steady service explains are
predicted and counted below, but never fitted to. `python -m planner calibrate --serving` makes this table.
"""


def _folds(errors: tuple[GroupError, ...]) -> str:
    """Errors of TPOT out of fold, by group."""
    header = "| group | configurations | within | out of fold | mean | 90th percentile | bias |\n|---|--:|--:|--:|--:|--:|--:|"
    rows = (
        f"| {e.group} | {e.configurations:,} | {e.within:.1%} | {e.out_of_fold:.1%} | {e.mean:.1%} | {e.p90:.1%} "
        f"| ×{e.bias:.2f} |"
        for e in errors
    )
    return "\n".join([header, *rows, ""])


def _document(found: Validation, logs: Validation, given: str) -> str:
    folds = served_constants()
    served = [found.of(name) for name in ("TPOT", "output tokens/s per GPU", "TTFT")]
    served += _first_tokens()
    parts = [
        INTRODUCTION.format(rows=found.rows, coverage=found.coverage),
        _table("what", "configurations", [e for e in served if e is not None]),
        "## TPOT by group\n",
        _table("group", "configurations", [e for e in found.errors if _worth_showing(e)]),
        "## TPOT out of fold\n",
        FOLDED.format(points=folds.points, configurations=folds.configurations, pairs=folds.pairs),
        _folds(folds.error),
        section(),
        "## With points of one's own\n",
        given,
        "",
        "## Memory against engine logs\n",
        LOGGED.format(rows=logs.rows, coverage=logs.coverage),
        _table("what", "logs", list(logs.errors)),
        "## Not predicted\n",
        "| points | reason |\n|--:|---|",
        *(f"| {count:,} | {reason} |" for reason, count in found.reasons if count > 1),
    ]
    return "\n".join(parts) + "\n"


def _first_tokens() -> list[Errors]:
    """Errors of TTFT with one request in flight and with more."""
    header, rows = read_table(TABLE)
    cells = list(predict_rows(header, rows))
    metric = next(each for each in SERVING if each.name == "TTFT")
    found = []
    for name, alone in (("TTFT, one request in flight", True), ("TTFT, several", False)):
        group = [
            (row["config_id"], number(cell, metric.predicted) / number(row, metric.measured))
            for row, cell in zip(rows, cells, strict=True)
            if number(cell, metric.predicted)
            and number(row, metric.measured)
            and ((number(row, "concurrency") or 0.0) <= 1.0) == alone
        ]
        found.append(errors_of(name, "all", group))
    return found


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
