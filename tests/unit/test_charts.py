"""Charts: constant specifications that compile, with every number in a named dataset."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
import vl_convert

from planner.catalog.scenarios import Preset, preset, presets
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import charts, curve_chart, data
from planner.ui.charts import GROUPS, PARTS
from planner.ui.theme import DARK, LIGHT

HALF = Scenario(weights="fp8", tp=4)
PLANS = {
    "dense": HALF,
    "experts": Scenario(model="deepseek-v3", gpu="h200-sxm", weights="fp8-block", tp=8),
    "textbook": Scenario(model="llama-70b-nominal", weights="fp8", tp=4, profile="textbook", prefill="excluded"),
    "late": HALF.with_(sla_tpot_ms=5.0),
    "asked": HALF.with_(at_batch=64, qps=20.0),
}
CHARTS = {
    "memory": (charts.memory, data.memory),
    "curve": (curve_chart.curve, data.curve),
    "step": (charts.step, data.step),
}


def whole(name: str, scenario: Scenario, shown: str) -> dict:
    """A specification with its rows inside, as Vega-Lite alone wants it."""
    spec, rows = CHARTS[name]
    return {**spec(shown), "datasets": {key: table.to_pylist() for key, table in rows(plan_of(scenario)).items()}}


@pytest.mark.parametrize("shown", ["light", "dark"])
@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("plan", PLANS)
def test_every_chart_compiles_and_draws(name: str, plan: str, shown: str) -> None:
    svg = vl_convert.vegalite_to_svg({**whole(name, PLANS[plan], shown), "width": 480})
    assert svg.startswith("<svg")
    assert "NaN" not in svg
    assert "undefined" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_a_specification_holds_no_number_of_a_plan(name: str) -> None:
    """It is the same object for every plan: only rows change, so a chart is never drawn anew."""
    spec, _ = CHARTS[name]
    before = json.dumps(spec("light"))
    for scenario in PLANS.values():
        whole(name, scenario, "light")
    assert spec("light") is spec("light")
    assert json.dumps(spec("light")) == before


@pytest.mark.parametrize("name", CHARTS)
def test_every_dataset_of_a_specification_is_delivered_with_its_fields(name: str) -> None:
    spec, rows = CHARTS[name]
    for scenario in PLANS.values():
        tables = rows(plan_of(scenario))
        for layer in spec("light")["layer"]:
            columns = tables[layer["data"]["name"]].column_names
            channels = [channel for channel in layer["encoding"].values() if isinstance(channel, dict)]
            channels += layer["encoding"].get("tooltip", [])
            assert {channel["field"] for channel in channels if "field" in channel} <= set(columns)


def test_memory_parts_fill_the_device_exactly() -> None:
    plan = plan_of(HALF)
    rows = data.memory(plan)["parts"].to_pylist()
    assert [row["part"] for row in rows] == list(PARTS)
    assert rows[-1]["end"] == pytest.approx(plan.physical_bytes / 1e9)
    assert all(left["end"] == pytest.approx(right["start"]) for left, right in pairwise(rows))


def test_what_does_not_fit_is_marked_with_what_is_missing() -> None:
    plan = plan_of(Scenario())
    (row,) = data.memory(plan)["overrun"].to_pylist()
    assert row["start"] == pytest.approx(plan.usable_bytes / 1e9)
    assert row["label"].endswith("GB missing")
    assert data.memory(plan_of(HALF))["overrun"].num_rows == 0


def test_both_limits_and_the_operating_point_are_on_the_curve() -> None:
    plan = plan_of(HALF)
    sets = data.curve(plan)
    assert [(row["batch"], row["label"]) for row in sets["limits"].to_pylist()] == [
        (plan.b_max_sla, f"{plan.b_max_sla} by SLA"),
        (plan.b_max_kv, f"{plan.b_max_kv} by KV cache"),
    ]
    (point,) = sets["point"].to_pylist()
    assert (point["batch"], point["tpot"]) == (plan.batch, pytest.approx(plan.tpot_ms, rel=1e-6))
    assert sets["promise"].to_pylist() == [{"ms": 50.0, "label": "SLA 50 ms"}]


def test_close_limits_share_a_label_that_names_the_binding_one_first() -> None:
    """198 and some 320 requests are a twelfth of the axis apart: one label, at the left one, and only it is bold."""
    plan = plan_of(preset("llama70b-pd").scenario)
    served = int(plan.b_max_sla)
    rows = data.curve(plan)["limits"].to_pylist()
    assert [(row["batch"], row["label"], row["binds"]) for row in rows] == [
        (198, f"198 by KV cache, {served} by SLA", "first"),
        (served, "", "later"),
    ]
    assert 300 < served < 340
    assert len({row["row"] for row in rows}) == 1


@pytest.mark.parametrize(
    ("shares", "groups"),
    [([], []), ([0.2, 0.8], [[0], [1]]), ([0.2, 0.25, 0.8], [[0, 1], [2]]), ([0.2, 0.28, 0.36], [[0, 1, 2]])],
)
def test_marks_closer_than_a_tenth_are_neighbours(shares: list[float], groups: list[list[int]]) -> None:
    assert [list(group) for group in data._neighbours(shares)] == groups


def test_a_label_of_several_limits_stands_outside_of_them() -> None:
    limits = [(10, "by SLA"), (11, "by KV cache")]
    assert data._labels(limits, [0, 1], "right") == [(0, "10 by SLA, 11 by KV cache"), (1, "")]
    assert data._labels(limits, [0, 1], "left") == [(0, ""), (1, "10 by SLA, 11 by KV cache")]


@pytest.mark.parametrize("item", presets(), ids=lambda item: item.id)
def test_the_time_axis_has_three_ticks(item: Preset) -> None:
    if not plan_of(item.scenario).curve:
        return
    svg = vl_convert.vegalite_to_svg({**whole("curve", item.scenario, "light"), "width": 380})
    labels = [part for part in svg.split('class="mark-text role-axis-label"')[1:] if 'text-anchor="end"' in part[:200]]
    assert labels[0].partition("</g>")[0].count("<text") >= 3


def test_a_limit_of_zero_has_no_rule() -> None:
    labels = [row["label"] for row in data.curve(plan_of(PLANS["late"]))["limits"].to_pylist()]
    assert len(labels) == 1
    assert labels[0].endswith("by KV cache")


def test_the_engines_own_limit_is_on_the_curve_where_it_binds() -> None:
    plan = plan_of(HALF.with_(max_seqs=32))
    labels = {row["label"]: row["batch"] for row in data.curve(plan)["limits"].to_pylist()}
    assert labels["32 by engine"] == 32
    assert len(labels) == 3


@pytest.mark.parametrize(
    ("shares", "places"),
    [
        ([], []),
        ([0.1], [(2, "left")]),
        ([0.9], [(2, "right")]),
        ([0.6, 0.9], [(2, "right"), (1, "right")]),
        ([0.1, 0.2], [(1, "left"), (2, "left")]),
        ([0.1, 0.6], [(1, "left"), (2, "left")]),
        ([0.1, 0.9], [(1, "left"), (2, "right")]),
        ([0.1, 0.8, 0.9], [(0, "left"), (2, "right"), (1, "right")]),
    ],
)
def test_a_rule_ends_below_the_labels_that_reach_over_it(shares: list[float], places: list[tuple[int, str]]) -> None:
    assert data._places(shares) == places


def test_the_marks_of_memory_have_room_for_their_labels() -> None:
    sides = {row["mark"]: row["side"] for row in data.memory(plan_of(HALF))["marks"].to_pylist()}
    assert sides == {"usable": "right", "physical": "right"}
    far = data.memory(plan_of(Scenario(model="llama-3.1-405b")))["marks"].to_pylist()
    assert {row["side"] for row in far} == {"left"}


@pytest.mark.parametrize("scenario", [Scenario(), Scenario(model="llama-3.1-405b", tp=4), HALF])
def test_no_name_on_the_bar_is_crossed_by_a_mark(scenario: Scenario) -> None:
    plan = plan_of(scenario)
    bar = max(sum(data.parts(plan).values()), plan.physical_bytes) / 1e9
    named = [row for row in data.memory(plan)["parts"].to_pylist() if row["label"]]
    assert named
    for mark in (plan.usable_bytes / 1e9, plan.physical_bytes / 1e9):
        assert all(abs(row["middle"] - mark) / bar > data.SMALLEST_LABEL / 2 - 1e-6 for row in named)


def test_measured_points_have_not_the_colour_of_the_sla() -> None:
    layers = {layer["data"]["name"]: layer["mark"].get("color") for layer in curve_chart.curve("light")["layer"]}
    assert layers["measured"] != layers["promise"]


def test_the_step_adds_up_to_tpot() -> None:
    plan = plan_of(HALF)
    rows = data.step(plan)["operators"].to_pylist()
    assert sum(row["end"] - row["start"] for row in rows) == pytest.approx(plan.tpot_ms, rel=0.02)
    assert [row["group"] for row in data.step(plan)["totals"].to_pylist()] == list(GROUPS.values())


def test_tables_say_what_the_charts_say() -> None:
    plan = plan_of(HALF)
    assert data.curve_table(plan).num_rows == len(plan.curve)
    assert data.step_table(plan).num_rows == len(plan.ledger)
    memory = {part: float(gb) for part, gb, *_ in data.memory_table(plan)}
    assert memory["Weights"] == pytest.approx(plan.weights_bytes / 1e9, abs=0.01)
    assert memory["Physical"] == pytest.approx(plan.physical_bytes / 1e9, abs=0.01)


def luminance(colour: str) -> float:
    """Relative luminance of WCAG."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_on_charts_can_be_read(palette: object) -> None:
    for ink in (palette.ink, palette.muted, palette.promise, palette.link):
        assert contrast(ink, palette.paper) >= 4.5
    pairs = ((palette.on_weights, palette.weights), (palette.on_kv, palette.kv), (palette.on_free, palette.free))
    assert all(contrast(ink, hue) >= 4.5 for ink, hue in pairs)


def test_measurements_beside_the_curve_stand_in_a_table_with_who_says_so() -> None:
    plan = plan_of(Scenario(model="gpt-oss-120b", gpu="h200-sxm", weights="mxfp4", tp=2, isl=1024, osl=1024))
    drawn, table = data.curve(plan)["measured"].to_pylist(), data.measured_table(plan).to_pylist()
    assert len(table) == len(drawn) > 0
    assert [row["TPOT measured, ms"] for row in table] == [row["tpot"] for row in drawn]
    assert all(row["Says who"].startswith("github:") and row["Says who"].endswith(")") for row in table)
    assert data.measured_table(plan_of(HALF)).num_rows == 0
