"""docs/LIMITS.md says what the code refuses and ignores, and the bands that the presets hold."""

from __future__ import annotations

import pytest

from planner.candidates import rules
from planner.catalog.accelerators import accelerator
from planner.catalog.engines import engine, engine_ids
from planner.catalog.models import model
from planner.catalog.profile_records import serving
from planner.single import plan_of
from planner.specs.scenario import Scenario


@pytest.fixture(scope="module")
def limits(root):
    return (root / "docs" / "LIMITS.md").read_text(encoding="utf-8")


def chapter(limits, title):
    return limits.partition(f"\n## {title}")[2].partition("\n## ")[0]


def test_every_layout_without_a_price_is_named_and_no_other(limits):
    refused = chapter(limits, "Refused")
    unpriced = {rule.name for rule in rules(model("deepseek-v3"), accelerator("h200-sxm")) if rule.unpriced}
    assert {field for field in ("pp", "dp", "cp", "dcp", "ep") if f"`{field}`" in refused} == unpriced


def test_every_field_without_effect_is_named(limits):
    notes = plan_of(Scenario(spec=2, overlap=True, tp=4)).notes
    ignored = {note.field for note in notes if note.code == "not_modelled"}
    said = chapter(limits, "Accepted, but without effect")
    assert {field for field in ("spec", "overlap") if f"`{field}`" in said} == ignored


def test_bands_are_those_of_the_presets(limits):
    band, said = serving().band, chapter(limits, "How wide the error is")
    for low, high in (
        (band.low, band.high),
        (band.borrowed_low, band.borrowed_high),
        (band.wide_low, band.wide_high),
        min(((own.low, own.high) for own in band.own), key=lambda own: own[1] / own[0]),
        max(((own.low, own.high) for own in band.own), key=lambda own: own[1]),
    ):
        assert any(f"×{low:{form}} to ×{high:{form}}" in said for form in (".2f", ".1f"))


def test_the_models_without_a_source_are_counted(root, limits):
    texts = [path.read_text(encoding="utf-8") for path in (root / "presets" / "models").glob("*.toml")]
    unsourced = sum("unsourced" in text for text in texts)
    assert f"| {unsourced} of {len(texts)} models have" in limits


@pytest.mark.parametrize("name", engine_ids())
def test_what_no_engine_document_settles_is_said(limits, name):
    said = chapter(limits, "Engines: read, not run")
    assert [text for text in engine(name).unverified if f"- {text}\n" not in said] == []
