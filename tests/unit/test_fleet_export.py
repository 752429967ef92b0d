"""A fleet's token, CSV and JSON: they read back, and refuse what they do not understand."""

from __future__ import annotations

import base64
import csv
import io
import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.packed import DECODE_LIMIT, packed
from planner.errors import InputError
from planner.export import from_csv
from planner.fleet import export, sentence
from planner.fleet.example import example
from planner.fleet.mix import fleet_of
from planner.fleet.question import FleetQuestion, PlaceLimit, Stock, TrafficClass
from planner.fleet.spelling import from_text, from_token, spelled, to_token
from planner.plan import PLAN_FIELDS
from planner.share import from_link, pinned
from planner.specs.scenario import Scenario

BASE = "https://planner.example/"


def faults(text: str) -> list[str]:
    with pytest.raises(InputError) as error:
        from_text(text)
    return [str(fault) for fault in error.value.faults]


@st.composite
def questions(draw: st.DrawFn) -> FleetQuestion:
    scenario = st.builds(
        Scenario,
        qps=st.floats(0.001, 1e6), isl=st.integers(1, 100_000), osl=st.integers(2, 10_000), prefix=st.floats(0, 1),
        overlap=st.booleans(), max_seqs=st.none() | st.integers(1, 1000), engine=st.sampled_from(("vllm", "sglang")),
    )  # fmt: skip
    label = st.text("abcXYZ059äß聊天_", min_size=1, max_size=8).map(
        lambda text: f"{text} ({text}), {text}"[:40].rstrip(" (,")
    )
    names = draw(st.lists(label, min_size=1, max_size=3, unique=True))
    precisions = st.lists(st.sampled_from(("bf16", "fp8", "int4")), unique=True, max_size=3).map(tuple)
    stock = st.builds(
        Stock, accelerator=st.sampled_from(("h100-sxm", "l40s")), gpus=st.integers(0, 99), place=label,
        price=st.floats(0, 100), owned=st.booleans(), instance=st.none() | st.integers(1, 16),
    )  # fmt: skip
    shelves = tuple(draw(st.lists(stock, min_size=1, max_size=3)))
    return FleetQuestion(
        classes=tuple(TrafficClass(name=n, scenario=draw(scenario), precisions=draw(precisions)) for n in names),
        stock=shelves,
        limits=draw(st.sampled_from(((), (PlaceLimit(place=shelves[0].place, gpus=4),)))),
        objective=draw(st.sampled_from(("usd_per_hour", "goodput_tok_s"))),
        budget=draw(st.none() | st.floats(0, 1e6)),
        **draw(st.sampled_from(({}, {"spare": 2}, {"availability": 0.99, "target": 0.9995}))),
    )


@settings(max_examples=60, deadline=None)
@given(questions())
def test_a_token_reads_back_as_what_was_asked(question: FleetQuestion) -> None:
    assert from_token(to_token(question)) == question


def test_a_link_holds_the_whole_question_and_nothing_that_is_a_default() -> None:
    link = export.link(fleet_of(example()), BASE + "fleet")
    assert link.startswith(f"{BASE}fleet?fleet=1")
    assert len(link) < 500
    assert from_token(link.partition("fleet=")[2]) == example()
    assert spelled(example())["stock"][1] == {"accelerator": "h200-sxm", "gpus": 64, "place": "CoreWeave"}


def test_every_fault_of_every_row_is_told() -> None:
    said = faults(
        '{"classes":[{"name":"a","scenario":{"qps":-1,"tp":3.5,"foo":1,"overlap":true}},{"name":"","x":1,"scenario":{"qps":1}}],'
        '"stock":[{"accelerator":"h200"},{"gpus":4}]}'
    )
    assert [each.partition(" =")[0] for each in said] == [
        "class 1, qps", "class 1, tp", "class 1, foo", "class 1, overlap", "class 2, name", "class 2, x",
        "stock 1, accelerator", "stock 2, accelerator",
    ]  # fmt: skip
    assert said[-1] == "stock 2, accelerator = empty: must be an accelerator's id from the catalogue"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "{",
        '{"classes":1}',
        '{"classes":[1]}',
        '{"budget":NaN}',
        '{"budget":1,"budget":2}',
        "[" * 5000,
        "{}",
    ],
)
def test_what_is_no_fleet_is_refused_without_a_traceback(text: str) -> None:
    assert faults(text)


def test_a_damaged_token_names_its_parameter() -> None:
    bomb = "1" + base64.urlsafe_b64encode(zlib.compress(b" " * 50_000_000, 9)).rstrip(b"=").decode()
    for token, why in (
        ("2abc", "must begin with version 1"),
        ("1abc!", "base64url"),
        ("1abcdef", "deflated"),
        (bomb, f"at most {DECODE_LIMIT:,} bytes"),
        (packed("{}") + "AAAA", "damaged"),
    ):
        with pytest.raises(InputError) as error:
            from_token(token)
        (fault,) = error.value.faults
        assert fault.field == "fleet"
        assert why in fault.allowed


def test_the_csv_reads_back_as_the_plans_of_the_mix() -> None:
    fleet = fleet_of(example())
    text = export.to_csv(fleet, BASE)
    assert from_csv(text.encode()) == tuple(group.scenario for group in fleet.groups)
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert [row["traffic"] for row in rows] == [group.traffic.name for group in fleet.groups]
    assert sum(float(row["usd_per_hour"]) for row in rows) == pytest.approx(fleet.usd_per_hour)
    assert sum(int(row["gpus"]) for row in rows) == fleet.gpus
    for row, group in zip(rows, fleet.groups, strict=True):
        assert row["stock"].startswith("H")
        assert from_link(row["link"]) == pinned(group.scenario)


def test_an_empty_mix_is_a_header() -> None:
    fleet = fleet_of(FleetQuestion(classes=example().classes, stock=(Stock(accelerator="l4", gpus=0, owned=True),)))
    assert fleet.groups == ()
    assert from_csv(export.to_csv(fleet)) == ()


def test_the_json_says_what_the_page_says() -> None:
    fleet = fleet_of(example())
    found = json.loads(export.to_json(fleet, BASE + "fleet", BASE))
    assert from_text(json.dumps(found["question"])) == example()
    assert found["answer"] == sentence.answer(fleet)
    assert found["usd_per_hour"] == pytest.approx(fleet.usd_per_hour)
    assert [each["replicas"] for each in found["mix"]] == [group.replicas for group in fleet.groups]
    assert set(PLAN_FIELDS) <= set(found["mix"][0])
    assert [each["served_qps"] for each in found["mix"]] == [group.qps for group in fleet.groups]
    assert [(each["qps"], each["served_qps"]) for each in found["classes"]] == [(20.0, 20.0), (2.0, 2.0), (3.0, 3.0)]
    assert all("qps" not in each for each in found["mix"])
    assert found["mix"][0]["link"].startswith(BASE + "?")
    assert {each["outcome"] for each in [found]} == {"found"}


def test_a_json_of_an_impossible_fleet_has_no_infinity() -> None:
    question = FleetQuestion(classes=example().classes, stock=example().stock, budget=10.0)
    text = export.to_json(fleet_of(question))
    assert "Infinity" not in text
    assert json.loads(text)["outcome"] == "impossible"
