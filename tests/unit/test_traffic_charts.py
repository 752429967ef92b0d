"""Charts of the Traffic page: constant specifications that compile, with every number in a named dataset."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import vl_convert

from planner.simulate.expected import expected
from planner.simulate.outage import outage
from planner.simulate.outcome import Line
from planner.simulate.run import simulate
from planner.simulate.studies import knee, routing
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import traffic_charts as charts
from planner.ui import traffic_data as data
from planner.ui.traffic_tasks import BINS, SHARES, Asked, Told, told
from planner.ui.traffic_tasks import _binned as binned

CALM = Scenario(weights="fp8", tp=4, fix_replicas=2, osl=32, sla_ttft_ms=500.0, sla_pct=99.0)
ASKED = {
    "calm": (CALM, Traffic(requests=300, rate=8.0, osl_cv=0.5, repair_s=10.0, fail_at_s=10.0)),
    "full": (CALM, Traffic(requests=300, rate=200.0, repair_s=5.0, fail_at_s=5.0)),
}
CHARTS = {
    "state": lambda shown: charts.state(shown), "cache": lambda shown: charts.cache_used(shown),
    "ttft": lambda shown: charts.spread(shown, "ttft"), "tpot": lambda shown: charts.spread(shown, "tpot"),
    "e2e": lambda shown: charts.spread(shown, "e2e"), "knee": lambda shown: charts.knee(shown),
    "ratio": lambda shown: charts.ratio(shown), "routing": lambda shown: charts.routing(shown),
    "outage": lambda shown: charts.outage(shown),
}  # fmt: skip


@cache
def run(which: str) -> Told:
    scenario, traffic = ASKED[which]
    return told(Asked(scenario, traffic), simulate(scenario, traffic), given=False)


@cache
def rows(name: str, which: str) -> dict:
    scenario, traffic = ASKED[which]
    match name:
        case "state":
            return data.state(run(which))
        case "cache":
            return data.cache_used(run(which))
        case "knee" | "ratio":
            found = knee(scenario, traffic)
            theory = expected(scenario, traffic.model_copy(update={"fail_at_s": None}), plan_of(scenario), [5.0, 8.0])
            return data.knee(found, scenario, theory) if name == "knee" else data.ratio(found, scenario)
        case "routing":
            return data.routing(routing(scenario, traffic), scenario)
        case "outage":
            return data.outage(outage(scenario, traffic), scenario)
    return data.spread(run(which), name)


@pytest.mark.parametrize("shown", ["light", "dark"])
@pytest.mark.parametrize("which", ASKED)
@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_compiles_and_draws(name: str, which: str, shown: str) -> None:
    whole = {key: table.to_pylist() for key, table in rows(name, which).items()}
    svg = vl_convert.vegalite_to_svg({**CHARTS[name](shown), "datasets": whole, "width": 480})
    assert svg.startswith("<svg")
    assert "NaN" not in svg
    assert "undefined" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_a_specification_holds_no_number_of_a_run(name: str) -> None:
    spec = CHARTS[name]
    before = json.dumps(spec("light"))
    for which in ASKED:
        rows(name, which)
    assert spec("light") is spec("light")
    assert json.dumps(spec("light")) == before


@pytest.mark.parametrize("name", CHARTS)
def test_every_dataset_of_a_specification_is_delivered_with_its_fields(name: str) -> None:
    for which in ASKED:
        tables = rows(name, which)
        for layer in CHARTS[name]("light")["layer"]:
            columns = tables[layer["data"]["name"]].column_names
            channels = [channel for channel in layer["encoding"].values() if isinstance(channel, dict)]
            channels += layer["encoding"].get("tooltip", [])
            assert {channel["field"] for channel in channels if "field" in channel} <= set(columns)


def test_distributions_are_those_of_the_summary() -> None:
    found = run("calm")
    half = int(np.argmin(np.abs(SHARES - 0.5)))
    assert SHARES[half] == pytest.approx(0.5)
    for name in ("ttft", "tpot", "e2e"):
        assert found.times[name][half] == getattr(found.summary, name).p50
        assert np.all(np.diff(found.times[name]) >= 0)
        point = rows(name, "calm")["points"].to_pylist()[0]
        assert point["x"] == getattr(found.summary, name).p99
        assert point["y"] == 99.0
    assert rows("ttft", "calm")["limits"].to_pylist()[0]["limit"] == 500.0
    assert rows("tpot", "calm")["limits"].to_pylist()[0]["limit"] == CALM.sla_tpot_ms
    assert len(rows("e2e", "calm")["limits"]) == 0, "nothing is promised of the whole request"


def test_the_knee_and_the_rate_asked_are_marked() -> None:
    scenario, traffic = ASKED["calm"]
    found = knee(scenario, traffic)
    marks = {row["label"]: row["limit"] for row in rows("knee", "calm")["limits"].to_pylist()}
    assert list(marks.values()) == [found.knee, 8.0]
    assert [label.split()[0] for label in marks] == ["knee", "asked"]
    level = rows("ratio", "calm")["levels"].to_pylist()
    assert [row["level"] for row in level] == [1.0], "a time over its SLA is held against 1"


def test_theory_is_drawn_where_it_is_sure_only() -> None:
    scenario, traffic = ASKED["calm"]
    found = knee(scenario, traffic)
    sure = expected(scenario, Traffic(), plan_of(scenario), [5.0])
    unsure = expected(scenario, Traffic(arrival="gamma"), plan_of(scenario), [5.0])
    assert [row["series"] for row in data.knee(found, scenario, sure)["lines"].to_pylist()].count(charts.THEORY) == 1
    assert charts.THEORY not in [row["series"] for row in data.knee(found, scenario, unsure)["lines"].to_pylist()]
    mixed = (*sure, *unsure, *sure)
    drawn = [row["series"] for row in data.knee(found, scenario, mixed)["lines"].to_pylist()]
    assert drawn.count(charts.THEORY) == 1, "the line ends where it is not sure: nothing is drawn across a gap"


def test_theory_without_a_line_is_not_in_the_legend() -> None:
    drawn, empty = charts.knee("light"), charts.knee("light", theory=False)
    assert drawn["layer"][0]["encoding"]["color"]["scale"]["domain"] == [charts.SIMULATED, charts.THEORY]
    assert empty["layer"][0]["encoding"]["color"]["scale"]["domain"] == [charts.SIMULATED]
    assert empty["layer"][0]["encoding"]["color"]["legend"] is None


def test_windows_of_a_failure_are_steps_that_begin_with_it() -> None:
    found = outage(*ASKED["calm"])
    lines = [row for row in rows("outage", "calm")["lines"].to_pylist() if row["series"] == charts.PLANNED]
    assert 0.0 in [row["x"] for row in lines]
    assert lines[-1]["x"] == pytest.approx(lines[-2]["x"] + found.width_s), "the last holds to its end"
    stops = rows("outage", "calm")["stops"].to_pylist()
    assert all(row["to"] == pytest.approx(row["from"] + found.width_s) for row in stops)
    assert "\u2212" in stops[0]["at"]
    assert charts.outage("light")["layer"][0]["mark"]["interpolate"] == "step-after"


def test_the_limit_is_drawn_where_requests_come_near_it() -> None:
    assert len(rows("state", "calm")["levels"]) == 0
    assert rows("state", "full")["levels"].to_pylist()[0]["level"] == run("full").limit * 2


def test_a_long_state_is_drawn_in_stretches_that_keep_its_peaks() -> None:
    time = np.linspace(10.0, 110.0, 5000)
    waiting = np.zeros(5000)
    waiting[2345] = 77.0
    line = binned(Line(time, np.full(5000, 3.0), waiting, np.full(5000, 0.25)), 10.0)
    assert len(line.time) <= BINS
    assert line.time[0] >= 0.0
    assert line.time[-1] <= 100.0
    assert line.waiting.max() == 77.0
    assert np.allclose(line.running, 3.0)
    assert np.allclose(line.used, 0.25)
