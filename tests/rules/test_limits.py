"""docs/LIMITS.md says what the code refuses and ignores, and the bands that the presets hold."""

from __future__ import annotations

import pytest

from planner.catalog.calibrated import band_after
from planner.catalog.engines import engine, engine_ids
from planner.catalog.fitted_constants import served, serving
from planner.single import plan_of
from planner.specs.scenario import Scenario


@pytest.fixture(scope="module")
def limits(root):
    return (root / "docs" / "LIMITS.md").read_text(encoding="utf-8")


def chapter(limits, title):
    return limits.partition(f"\n## {title}")[2].partition("\n## ")[0]


def test_what_is_judged_otherwise_than_on_means_is_named(limits):
    notes = plan_of(Scenario(spec=2, overlap=True, redundant=8, sla_pct=99, tp=4, sla_ttft_ms=400)).notes
    fields = {note.field for note in notes if note.code == "percentile"}
    assert fields == {"sla_pct"}
    assert "`sla_pct`" in chapter(limits, "Judged on means, and where queues come in")


@pytest.mark.parametrize(
    ("ep", "asked", "counted"), [(8, 64.0, "8 is counted"), (8, 8.0, None), (8, 1.5, None), (1, 2.0, "1 is counted")]
)
def test_an_imbalance_that_cannot_occur_is_named(ep, asked, counted):
    at = {"model": "deepseek-v3", "weights": "fp8", "gpu": "h200-sxm", "dp": ep, "tp": 8 // ep, "ep": ep}
    notes = [note.text for note in plan_of(Scenario(**at, imbalance=asked)).notes if note.code == "imbalance_capped"]
    assert [counted in text for text in notes] == ([True] if counted else [])


def test_bands_are_those_of_the_presets(limits):
    band, said = serving().band, chapter(limits, "How wide the error is")
    widths = sorted((own.high / own.low, own.low, own.high) for own in band.own)
    for low, high in (
        (band.low, band.high),
        (band.borrowed_low, band.borrowed_high),
        (band.wide_low, band.wide_high),
        *(ends for _, *ends in (widths[0], widths[-1])),
        *((each.low, each.high) for each in band.span),
    ):
        assert f"×{low:.2f} to ×{high:.2f}" in said
    (total,) = (each for each in served().error if each.group == "all")
    assert f"within {100 * total.out_of_fold:.1f} % when their" in said


def test_the_models_without_a_source_are_counted(root, limits):
    texts = [path.read_text(encoding="utf-8") for path in (root / "presets" / "models").glob("*.toml")]
    unsourced = sum("unsourced" in text for text in texts)
    assert f"| {unsourced} of {len(texts)} models have" in limits


def test_bands_after_a_calibration_are_those_of_the_presets(limits):
    said = chapter(limits, "How wide the error is")
    for points in (1, 3):
        low, high = band_after(points)
        assert f"×{low:.2f} to ×{high:.2f}" in said


@pytest.mark.parametrize("name", engine_ids())
def test_what_no_engine_document_settles_is_said(limits, name):
    said = chapter(limits, "Engines: read, not run")
    assert [text for text in engine(name).unverified if f"- {text}\n" not in said] == []
