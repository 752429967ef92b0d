"""Errors against shipped measurements: by hand on small sets, and causes that still name rows that are still bad."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from planner import accuracy, predicted
from planner.accuracy import (
    METRICS,
    compared,
    error_within,
    errors,
    selected,
    share_in_band,
    share_within,
    split,
    troubles,
)
from planner.catalog import evidence
from planner.catalog.evidence import Where, known_errors, peers
from planner.catalog.version import catalogue_version
from planner.errors import CatalogueError
from planner.predicted import HEAD, Figures, ServedPoint, predicted_with, served_points

MEASURED_MS = re.compile(r"([\d,]+(?:\.\d+)?) ms")
READ_SECONDS = 0.1


def point(ratio=1.0, ms=10.0, **more):
    """A served point measured at `ms` of TPOT and predicted at `ratio` of it."""
    base = ServedPoint(
        point="P", configuration="c", source_id="S", source="github:a/b:c", date="2026-01", model="m", family="F",
        accelerator="H100-SXM", devices=1, engine="vLLM", version="0.12.0", precision="fp8", layout="TP1", isl=1000.0,
        osl=500.0, concurrency=8.0, measured=Figures(ms, None, None), predicted=Figures(ratio * ms, 100.0, None),
        low_ms=0.8 * ratio * ms, high_ms=1.25 * ratio * ms, grounds="fitted", reason="",
    )  # fmt: skip
    return replace(base, **more)


# --- by hand ------------------------------------------------------------------------------------------


def test_errors_are_averaged_per_configuration_first():
    """Configuration a errs by (10 + 30) / 2 = 20 %, b by 50 %: the median of both is 35 %, that of rows 30 %."""
    found = compared(
        [point(1.1, configuration="a"), point(0.7, configuration="a"), point(1.5, configuration="b")], "TPOT"
    )
    total = errors(found, "TPOT", "all")
    assert (total.rows, total.configurations) == (3, 2)
    assert total.median == pytest.approx(0.35)
    assert total.mean == pytest.approx(0.35)
    assert total.row_median == pytest.approx(0.3)
    assert error_within(found) == pytest.approx(0.3)
    assert share_within(found, 0.2) == pytest.approx(1 / 3)


def test_a_figure_that_is_missing_on_one_side_is_not_compared():
    assert not compared([point()], "TTFT")
    assert not compared([point(measured=Figures(None, 50.0, None))], "TPOT")
    assert not compared([point(predicted=Figures(None, None, None))], "TPOT")
    assert [each.ratio for each in compared([point(measured=Figures(None, 50.0, None))], "TTFT")] == [2.0]


def test_the_band_is_that_of_the_prediction():
    """Bands 8 to 12.5 and 16 to 25 ms around predictions of 10 and 20 ms; both measured 10 ms."""
    assert share_in_band(compared([point(1.0), point(2.0)], "TPOT")) == 0.5
    assert share_in_band(compared([point(low_ms=None, high_ms=None)], "TPOT")) is None


def test_nothing_is_within_anything_without_points():
    assert error_within(()) == 0.0
    assert share_within((), 0.2) == 0.0
    assert troubles((), "TPOT") == ()


def test_a_selection_agrees_with_everything_stated():
    points = [point(), point(engine="SGLang"), point(isl=2000.0), point(concurrency=64.0)]
    assert selected(points, Where()) == tuple(points)
    assert selected(points, Where(engine="SGLang")) == (points[1],)
    assert selected(points, Where(engine="vLLM", isl=2000)) == (points[2],)
    assert selected(points, Where(concurrency_from=32)) == (points[3],)
    assert selected(points, Where(engine="none of ours")) == ()


def test_groups_come_with_the_most_points_first():
    found = compared([point(engine="SGLang"), point(), point()], "TPOT")
    assert [(name, len(pairs)) for name, pairs in split(found, "engine")] == [("vLLM", 2), ("SGLang", 1)]


def test_a_bad_group_without_a_cause_is_named_as_unexplained():
    good = [point(1.05, configuration=f"good {n}") for n in range(20)]
    bad = [point(3.0, family="Novel", accelerator="X1", configuration=f"bad {n}") for n in range(5)]
    assert [(each.title, each.known) for each in troubles([*good, *bad], "TPOT")] == [("Novel on X1, vLLM", None)]
    assert troubles([*good, *bad[:4]], "TPOT") == (), "four points are luck"


# --- the shipped files --------------------------------------------------------------------------------


@pytest.mark.parametrize("known", known_errors(), ids=lambda known: known.id)
def test_a_cause_still_selects_points_that_are_still_bad(known):
    for metric in known.metrics:
        pairs = compared(selected(served_points(), known.where), metric)
        assert pairs, "the cause selects nothing: remove it"
        overall = errors(compared(served_points(), metric), metric, "all")
        own = errors(pairs, metric, known.id)
        assert own.median > overall.median, "these points are no worse than the rest: remove the cause"


@pytest.mark.parametrize("known", known_errors(), ids=lambda known: known.id)
def test_times_in_the_evidence_are_measured_in_these_rows(known):
    rows = [each.measured.tpot_ms for each in selected(served_points(), known.where)]
    for text in MEASURED_MS.findall(known.evidence):
        decimals = len(text.partition(".")[2])
        assert any(value is not None and f"{value:,.{decimals}f}" == text for value in rows), text


def test_causes_have_names_of_their_own_and_say_something():
    assert len({known.id for known in known_errors()}) == len(known_errors()) >= 10
    assert all(text.endswith(".") for known in known_errors() for text in (known.cause, known.evidence))


def test_the_worst_group_comes_first():
    for metric in METRICS:
        medians = [each.errors.median for each in troubles(served_points(), metric)]
        assert medians == sorted(medians, reverse=True)
        assert medians


def test_peers_include_those_held_against_the_same_points():
    kinds = [peer.kind for peer in peers()]
    assert kinds.count("compared") == 3
    assert kinds[:3] == ["compared"] * 3, "the page speaks of the first ones"
    assert all(peer.conditions.endswith(".") for peer in peers())


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("peers.toml", '[[peer]]\ntool = "x"\n', peers),
        ("peers.toml", 'peer = []\nother = 1\n', peers),
        ("known_errors.toml", '[[error]]\nid = "a"\nsource = "javascript:alert(1)"\n', known_errors),
    ],
)  # fmt: skip
def test_an_incomplete_record_is_refused(tmp_path, monkeypatch, name, text, read):
    (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(evidence, "FOLDER", tmp_path)
    with pytest.raises(CatalogueError, match=re.escape(name)):
        read.__wrapped__()


# --- the file of predictions --------------------------------------------------------------------------


def test_predictions_say_which_catalogue_made_them():
    assert predicted_with() == catalogue_version()


def test_every_point_is_predicted_or_says_why_not():
    for each in served_points():
        assert (each.predicted.tpot_ms is None) == bool(each.reason), each.point
        if each.low_ms is not None:
            assert each.low_ms <= each.predicted.tpot_ms <= each.high_ms


def test_the_files_are_read_at_once(best_of):
    def read():
        predicted._read.cache_clear()
        return served_points.__wrapped__()

    assert best_of(read) < 3 * READ_SECONDS, "three times the budget: other tests run beside this one"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("point,tpot_ms\nM00001,1\n", "does not say which catalogue"),
        (f"{HEAD}x\npoint,tpot_ms\nM00001,1\n", "does not hold the points"),
        (f"{HEAD}x\n", "does not hold the points"),
        (None, "cannot be read"),
    ],
)
def test_a_foreign_file_of_predictions_is_refused(tmp_path, monkeypatch, text, said):
    path = tmp_path / "predicted.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(predicted, "PREDICTED", path)
    with pytest.raises(CatalogueError, match=said):
        served_points.__wrapped__()


def test_names_of_metrics_are_those_of_validation():
    from planner.validate import SERVING

    assert tuple(metric.name for metric in SERVING) == accuracy.METRICS
