"""The Fleet page: the answer first, tables that change it, an address that holds it, and designed states for what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
import vl_convert
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from planner.fleet import sentence
from planner.fleet.example import example
from planner.fleet.mix import fleet_of
from planner.fleet.question import FleetQuestion, PlaceLimit, Stock, TrafficClass
from planner.fleet.spelling import from_token, to_token
from planner.share import from_link, pinned
from planner.specs.scenario import Scenario
from planner.ui import fleet_charts, fleet_data, fleet_inputs, fleet_solving, fleet_tables, fleet_words
from planner.ui.fleet_tables import Goals
from tests.app import browser as harness
from tests.app.test_plan_page import MAIN, heading, read, said

SETTLED_MS = 300
"""The grid takes a typed value over a moment after it was typed."""

SLOW_SECONDS = 1000.0

CARDS = ("mix", "traffic", "stock", "goals", "bill", "grounds", "served", "idle", "failure", "share")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine, an answer is worked out at once unless a test says that the last one took long."""
    monkeypatch.setattr(fleet_solving, "QUICK", SLOW_SECONDS / 2)


def changed(**more: object) -> FleetQuestion:
    """The example with some fields changed."""
    return FleetQuestion(**{**{name: getattr(example(), name) for name in FleetQuestion.model_fields}, **more})


def opened(token: str | None = None, **state: object) -> AppTest:
    """The Fleet page, with a fleet in its address."""
    at = AppTest.from_file(str(MAIN), default_timeout=60)
    for name, value in state.items():
        at.session_state[name] = value
    at.run()
    if token is not None:
        at.query_params["fleet"] = token
    at.switch_page("app_pages/fleet.py").run()
    assert not at.exception
    return at


def key(at: AppTest, name: str) -> str:
    return f"_fleet_{name}_{at.session_state['_fleet_version']}"


def edited(at: AppTest, name: str, rows: dict[int, dict[str, Any]], added: tuple[dict[str, Any], ...] = ()) -> AppTest:
    """The page after cells of a table were changed."""
    at.session_state[key(at, name)] = {"edited_rows": rows, "added_rows": list(added), "deleted_rows": []}
    at.run()
    assert not at.exception
    return at


def asked(at: AppTest) -> FleetQuestion:
    """What the address holds."""
    token = at.query_params["fleet"]
    return from_token(token if isinstance(token, str) else token[0])


def test_the_answer_comes_first_and_every_part_of_the_page_is_there() -> None:
    at = opened()
    assert heading(at) == read(sentence.answer(fleet_of(example())))
    assert [header.value for header in at.header] == [fleet_words.EN[name] for name in CARDS]
    assert [read(tile.label) for tile in at.metric] == ["$/h", "GPUs", "Good tokens/s", "Capacity used"]
    assert "fleet" not in at.query_params


def test_tables_say_what_the_fleet_is() -> None:
    at, fleet = opened(), fleet_of(example())
    assert list(at.data_editor[0].value["name"]) == ["Chat", "Documents", "Agents"]
    assert list(at.data_editor[1].value["accelerator"]) == ["h100-sxm", "h200-sxm"]
    assert column(at, "mix", "Replicas") == [str(group.replicas) for group in fleet.groups]
    assert column(at, "mix", "$/h") == [f"${group.usd_per_hour:,.2f}" for group in fleet.groups]
    assert column(at, "served", "Asked, req/s") == ["20.00", "2.00", "3.00"]
    assert column(at, "idle", "Idle") == [str(taken.idle) for taken in fleet.taken]
    assert len(column(at, "failure", "Left, req/s")) == len(fleet.groups)


def column(at: AppTest, name: str, title: str) -> list[str]:
    """Cells of a column of a table of the answer."""
    alt = fleet_words.EN[f"{name}_alt"]
    (body,) = (block.proto.body for block in at.main.get("html") if f'<table aria-label="{alt}"' in block.proto.body)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]
    place = rows[0].index(title)
    return [row[place] for row in rows[1:]]


def test_every_plan_of_the_mix_opens_by_a_link_in_its_row() -> None:
    links = column(opened(), "mix", "Open as plan")
    for link, group in zip(links, fleet_of(example()).groups, strict=True):
        (address,) = re.findall(r'href="([^"]+)"', link)
        assert from_link(unescape(address)) == pinned(group.scenario)
        assert f'aria-label="Open {group.traffic.name}, ' in link


def test_a_class_that_nothing_can_serve_is_named_with_the_sla_that_would_do() -> None:
    hasty = TrafficClass(name="Hasty", scenario=example().classes[0].scenario.with_(sla_tpot_ms=1.0, qps=0.05))
    at = opened(to_token(changed(classes=(hasty, *example().classes[1:]))))
    assert heading(at).startswith("Hasty cannot be served: TPOT is at best ")
    assert all(tile.delta.startswith("without Hasty") for tile in at.metric)
    assert "Proven best" not in said(at)
    at.button(key="_fleet_set_0").click().run()
    assert not at.exception
    assert asked(at).classes[0].scenario.sla_tpot_ms > 1.0
    assert asked(at).classes[1:] == example().classes[1:]
    assert heading(at).startswith("Serves all 3 classes with ")
    assert not any("without" in tile.delta for tile in at.metric)


def test_owned_gpus_stand_beside_the_bar_that_they_are_no_part_of() -> None:
    fleet = fleet_of(example())
    owned = sum(group.gpus for group in fleet.groups if group.stock.owned and group.traffic.name == "Chat")
    totals = {row["name"]: row["label"] for row in fleet_data.bill(fleet)["totals"].to_pylist()}
    assert totals["Chat"].endswith(f" + {owned} owned GPUs at $0")
    assert totals["Agents"] == "$100.88"
    free = fleet_of(changed(classes=example().classes[1:2], stock=example().stock[:1]))
    assert fleet_data.bill(free)["totals"].to_pylist() == [
        {"name": "Documents", "label": f"$0.00 + {free.gpus} owned GPUs at $0"}
    ]


def test_an_edited_cell_changes_the_answer_and_the_address() -> None:
    at = edited(opened(), "classes", {0: {"qps": 30.0}})
    question = asked(at)
    assert question.classes[0].scenario.qps == 30.0
    assert heading(at) == read(sentence.answer(fleet_of(question)))
    again = opened(to_token(question))
    assert heading(again) == heading(at)


def test_a_row_that_is_added_is_a_class() -> None:
    at = edited(
        opened(), "classes", {}, ({"name": "Small", "model": "llama-3.1-8b", "qps": 5.0, "isl": 500, "osl": 100},)
    )
    small = asked(at).classes[3]
    assert (small.name, small.scenario) == ("Small", Scenario(model="llama-3.1-8b", qps=5.0, isl=500, osl=100))


def test_goals_are_in_the_address() -> None:
    at = opened()
    at.segmented_control(key=key(at, "objective")).set_value("goodput_tok_s").run()
    at.number_input(key=key(at, "budget")).set_value(60.0).run()
    at.segmented_control(key=key(at, "failures")).set_value("availability").run()
    assert not at.exception
    assert asked(at) == changed(objective="goodput_tok_s", budget=60.0, spare=0, availability=0.99, target=0.999)


def test_a_link_opens_its_own_fleet_with_limits_of_places() -> None:
    stock = (*example().stock, Stock(accelerator="b200-sxm", place="eu-west", price=6.0, gpus=24, instance=8))
    question = changed(stock=stock, limits=(PlaceLimit(place="eu-west", gpus=16),), spare=0)
    at = opened(to_token(question))
    assert heading(at) == read(sentence.answer(fleet_of(question)))
    assert asked(at) == question
    assert len(at.data_editor) == 3


def test_what_cannot_be_served_says_what_stands_in_the_way() -> None:
    question = changed(budget=60.0, spare=0)
    at = opened(to_token(question))
    assert heading(at).startswith("Cannot serve all of it: at most ")
    for obstacle in sentence.obstacles(fleet_of(question)):
        assert read(obstacle) in said(at)
    assert "without Documents: " in said(at)


def test_wrong_rows_are_named_and_no_number_is_shown() -> None:
    at = edited(opened(), "classes", {0: {"qps": 0.0}, 1: {"name": "<script>"}})
    assert heading(at) == fleet_words.EN["refused"]
    assert list(at.dataframe[0].value["Parameter"]) == ["class 1, qps", "class 2, name"]
    assert list(at.dataframe[0].value["Value"]) == ["0", "<script>"]
    assert not at.metric
    assert len(at.data_editor) == 2
    assert "fleet" not in at.query_params


@pytest.mark.parametrize("token", ["1abcdef", "2abc", "banana", "1<script>"])
def test_a_damaged_link_is_refused_until_the_reader_goes_on(token: str) -> None:
    at = opened(token)
    assert heading(at) == fleet_words.EN["refused"]
    assert not at.metric
    assert not at.data_editor
    at.button(key="_fleet_continue").click().run()
    assert heading(at) == read(sentence.answer(fleet_of(example())))


def test_a_fleet_outlives_a_visit_to_another_page() -> None:
    at = edited(opened(), "classes", {0: {"qps": 30.0}})
    before = heading(at)
    at.switch_page("app_pages/plan.py").run()
    at.query_params.clear()
    at.switch_page("app_pages/fleet.py").run()
    assert heading(at) == before
    assert asked(at).classes[0].scenario.qps == 30.0


def test_stepping_back_through_the_history_steps_back() -> None:
    first = to_token(changed(spare=0))
    at = opened(first)
    edited(at, "classes", {0: {"qps": 30.0}})
    assert asked(at) != changed(spare=0)
    at.query_params["fleet"] = first
    at.run()
    assert asked(at) == changed(spare=0)
    assert heading(at) == read(sentence.answer(fleet_of(changed(spare=0))))


def test_an_edit_that_overtakes_the_address_is_not_lost() -> None:
    first = to_token(changed(spare=0))
    at = opened(first)
    edited(at, "classes", {0: {"qps": 30.0}})
    at.query_params["fleet"] = first  # the browser has not yet heard of the first edit
    edited(at, "classes", {0: {"qps": 35.0}})
    assert asked(at).classes[0].scenario.qps == 35.0


def test_the_sidebars_plan_becomes_a_class_with_its_techniques() -> None:
    at = opened()
    at.number_input(key="qps").set_value(4.0).run()
    at.button(key="_fleet_add").click().run()
    assert not at.exception
    assert asked(at).classes[-1] == TrafficClass(name="Plan 1", scenario=Scenario(qps=4.0))
    at.button(key="_fleet_reset").click().run()
    assert asked(at) == example()


def test_what_no_column_shows_stays_and_is_told() -> None:
    special = TrafficClass(name="Special", scenario=Scenario(qps=1.0, weights="fp8", chunk=2048, load=0.6))
    question = changed(classes=(special,))
    at = edited(opened(to_token(question)), "classes", {0: {"qps": 2.0}})
    assert asked(at).classes[0].scenario == special.scenario.with_(qps=2.0)
    assert at.data_editor[0].value["also"][0] == "Usable share of throughput 0.6, Prefill chunk 2048"


def test_a_slow_answer_stays_and_is_marked_until_the_new_one_is_asked_for() -> None:
    at = opened()
    before = heading(at)
    at.session_state["_fleet_took"] = SLOW_SECONDS
    edited(at, "classes", {0: {"qps": 30.0}})
    assert heading(at) == before
    assert fleet_words.EN["old"] in said(at)
    assert fleet_words.EN["share"] not in [header.value for header in at.header]
    at.button(key="_fleet_solve").click().run()
    assert heading(at) == read(sentence.answer(fleet_of(asked(at))))
    assert fleet_words.EN["old"] not in said(at)


def test_tables_read_back_as_the_question_they_show() -> None:
    question = changed(limits=(PlaceLimit(place="CoreWeave", gpus=32),), budget=500.0)
    goals = Goals(question.objective, question.budget, question.spare, question.availability, question.target)
    frames = (fleet_tables.classes(question), fleet_tables.stock(question), fleet_tables.limits(question))
    assert fleet_tables.question_of(question, *frames, goals) == question


def test_every_word_of_the_page_exists_in_english() -> None:
    assert set(fleet_words.ZH) <= set(fleet_words.EN)
    assert fleet_inputs.added(example(), Scenario()).classes[-1].scenario.qps == fleet_inputs.NEW_RATE


@pytest.mark.parametrize("shown", ["light", "dark"])
def test_the_bill_is_drawn_and_adds_up(shown: Any) -> None:
    fleet = fleet_of(changed(stock=(Stock(accelerator="h200-sxm", price=3.0, instance=16), *example().stock)))
    data = fleet_data.bill(fleet)
    parts = data["parts"].to_pylist()
    assert sum(part["end"] - part["start"] for part in parts) == pytest.approx(fleet.usd_per_hour)
    spec = {
        **fleet_charts.bill(shown),
        "datasets": {name: table.to_pylist() for name, table in data.items()},
        "width": 400,
    }
    assert "<svg" in vl_convert.vegalite_to_svg(json.dumps(spec))
    assert fleet_charts.bill(shown) is fleet_charts.bill(shown)


# --- in a browser -----------------------------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_the_page_can_be_read_by_everybody(open_page: Callable[..., Page], width: int, theme: str) -> None:
    page = open_page("", charts=1, width=1440, theme=theme)
    page.get_by_role("link", name="Fleet", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Serves all 3 classes")
    page.set_viewport_size({"width": width, "height": 1240})
    harness.settle(page, charts=1)
    assert harness.axe_violations(page) == []
    assert harness.overflow(page) == 0


@pytest.mark.browser
def test_a_cell_that_is_typed_into_changes_answer_and_address(open_page: Callable[..., Page]) -> None:
    page = open_page("", charts=1)
    page.get_by_role("link", name="Fleet", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Serves all 3 classes")
    harness.settle(page, charts=1)
    before = page.get_by_role("heading", level=1).inner_text()
    editor = page.locator('.st-key-card_traffic [data-testid="stDataFrame"] canvas').first
    box = editor.bounding_box()
    assert box is not None
    page.mouse.dblclick(box["x"] + 34 + 100 + 118 + 38, box["y"] + 35 + 17)
    cell = page.locator("#portal input").first
    cell.fill("40")
    expect(cell).to_have_value("40")
    page.wait_for_timeout(SETTLED_MS)
    cell.press("Enter")
    page.wait_for_url(re.compile("fleet=1"))
    harness.settle(page, charts=1)
    if (again := page.get_by_role("button", name="Work it out again")).is_visible():  # a slow machine asks first
        again.click()
        harness.settle(page, charts=1)
    assert page.get_by_role("heading", level=1).inner_text() != before
    token = page.url.partition("fleet=")[2]
    assert from_token(token).classes[0].scenario.qps == 40.0
