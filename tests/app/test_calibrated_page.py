"""A calibrated scenario on the pages: the link opens, speeds show it, and leaving it takes the calibration along."""

from __future__ import annotations

import pytest

from planner import calibrate, to_link
from planner.answer import answer
from planner.logs.readings import Point
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.variants import outcome
from tests.app.test_plan_page import heading, opened, read, said, state_of

BASE = Scenario(weights="fp8", tp=4)


@pytest.fixture(scope="module")
def calibrated() -> Scenario:
    tpot = outcome(BASE.with_(at_batch=16)).tpot_ms
    assert tpot is not None
    return calibrate(BASE, [Point(concurrency=16, tpot_ms=1.3 * tpot)])


def query(scenario: Scenario) -> str:
    return to_link(scenario).removeprefix("?")


def test_a_calibrated_link_opens_as_it_was_made(calibrated: Scenario) -> None:
    at = opened(query(calibrated), sections=True)
    assert state_of(at) == calibrated
    assert heading(at) == read(answer(plan_of(calibrated)))
    assert "Calibrated by 1 measured point" in said(at)


def test_leaving_the_calibration_takes_its_token_out_of_the_address(calibrated: Scenario) -> None:
    at = opened(query(calibrated), sections=True)
    at.button_group(key="profile").set_value("measured").run()
    assert not at.exception
    assert state_of(at) == BASE
    assert "x" not in at.query_params


def test_another_model_keeps_the_calibration_and_is_told_that_it_is_not_applied(calibrated: Scenario) -> None:
    at = opened(query(calibrated), sections=True)
    at.selectbox(key="model").set_value("qwen3-32b").run()
    assert state_of(at) == calibrated.with_(model="qwen3-32b")
    assert "is not applied" in said(at)


def test_without_a_calibration_it_cannot_be_chosen() -> None:
    assert opened("tp=4", sections=True).button_group(key="profile").options == ["measured", "textbook"]
