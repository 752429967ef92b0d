"""The parity plot: one specification for every selection, and rows that say what they are."""

from __future__ import annotations

import json
from math import log

import pytest
import vl_convert

from planner.accuracy import GROUPINGS, METRICS, compared, selected
from planner.catalog.evidence import Where
from planner.predicted import served_points
from planner.ui.optimise_chart import SHAPES
from planner.ui.theme import DARK, LIGHT
from planner.ui.trust_parity import TIPS, parity, series
from planner.ui.trust_parity_data import parity_data, parity_table, signed

HUES = 8


def found(metric="TPOT", **where):
    return compared(selected(served_points(), Where(**where)), metric)


@pytest.mark.parametrize("by", GROUPINGS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shown", ["light", "dark"])
def test_the_plot_compiles_and_draws(shown, metric, by):
    rows = parity_data(found(metric, family="Llama-3.x-8B"), metric, by)
    whole = {**parity(shown, metric, by), "datasets": {name: table.to_pylist() for name, table in rows.items()}}
    svg = vl_convert.vegalite_to_svg({**whole, "width": 600})
    assert svg.startswith("<svg")
    assert "NaN" not in svg


@pytest.mark.parametrize("by", GROUPINGS)
def test_a_selection_changes_rows_and_never_the_specification(by):
    before = json.dumps(parity("light", "TPOT", by))
    sizes = [parity_data(found(**where), "TPOT", by)["points"].num_rows for where in ({}, {"engine": "SGLang"})]
    assert sizes[0] > sizes[1] > 0
    assert parity("light", "TPOT", by) is parity("light", "TPOT", by)
    assert json.dumps(parity("light", "TPOT", by)) == before


@pytest.mark.parametrize("by", GROUPINGS)
def test_every_point_has_a_hue_and_a_shape_of_its_series(by):
    rows = parity_data(found(), "TPOT", by)["points"].to_pylist()
    assert {row["series"] for row in rows} == set(series(by))
    assert len(series(by)) <= min(HUES, len(SHAPES))
    for shown, ink in (("light", LIGHT), ("dark", DARK)):
        encoding = parity(shown, "TPOT", by)["layer"][0]["encoding"]
        assert len(set(encoding["color"]["scale"]["range"])) == len(series(by))
        assert encoding["shape"]["scale"]["domain"] == list(series(by))
        assert ink.paper not in encoding["color"]["scale"]["range"]


def test_every_tooltip_names_its_source_and_date():
    for row in parity_data(found(), "TPOT", "engine")["points"].to_pylist():
        assert all(row[name] for name in TIPS)
        assert row["source"].startswith(("github:", "https://"))


def test_a_tooltip_says_what_was_run_and_how_far_off_it_was():
    """Row M00001 of the table: DeepSeek-R1 on eight B200, 15.4536 ms measured at 8 requests of 922 tokens in and out."""
    each = next(each for each in found() if each.point.point == "M00001")
    (row,) = parity_data((each,), "TPOT", "engine")["points"].to_pylist()
    assert row["model"] == "DeepSeek-R1-0528"
    assert row["part"] == "8 × B200"
    assert (row["layout"], row["tokens"], row["load"]) == ("TP8 EP8", "922, 922", "8")
    assert row["here"] == "15.5 ms"
    assert row["error"] == signed(each.predicted / 15.4536 - 1)


def test_signs_are_typeset():
    assert signed(-0.123) == "−12 %"
    assert signed(0.5) == "+50 %"


def test_lines_lie_20_percent_off_the_diagonal_and_inside_the_plot():
    tables = parity_data(found(), "TPOT", "engine")
    rows = tables["lines"].to_pylist()
    for name, factor in (("exact", 1.0), ("above", 1.2), ("below", 0.8)):
        ends = [row for row in rows if row["line"] == name]
        assert [row["y"] / row["x"] for row in ends] == pytest.approx([factor, factor])
    both = [row["x"] for row in rows], [row["y"] for row in rows]
    assert min(both[0]) == pytest.approx(min(both[1]))
    assert max(both[0]) == pytest.approx(max(both[1]))


def test_the_table_behind_the_plot_holds_every_point_farthest_off_first():
    points = found(engine="SGLang")
    table = parity_table(points, "TPOT")
    worst = [abs(log(1 + value / 100)) for value in table["Error, %"].to_pylist()]
    assert table.num_rows == len(points)
    assert worst == pytest.approx(sorted(worst, reverse=True))
    assert all(table["Says who"].to_pylist())
