"""The Optimise page, without a browser: an answer belongs to the inputs shown, and wrong links are refused."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from planner.calibrate.correction import calibrate
from planner.logs.readings import Point
from planner.optimise.answer import Answer, Choice
from planner.optimise.question import Question
from planner.optimise.shadow import Relaxation
from planner.optimise.verified import Verified
from planner.share import from_link, to_link
from planner.single import plan_of
from planner.ui import optimise_run, optimise_tasks
from planner.ui.jobs import MOST_JOBS, Workshop
from planner.ui.optimise_tasks import Moved, Weighed
from planner.units import dollars, significant
from planner.variants import outcome
from tests import doubles
from tests.app.test_plan_page import MAIN, heading, read, said

HALF = "weights=fp8&tp=4"
WIDE = f"{HALF}&accelerators=h100-sxm,h200-sxm"
SOON = 20.0


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """A thread does the work, with a search that a test can follow, and no answer is remembered from another test."""
    made, shelf = Workshop(0), optimise_run.Shelf()
    monkeypatch.setattr(optimise_run, "workshop", lambda: made)
    monkeypatch.setattr(optimise_run, "shelf", lambda: shelf)
    monkeypatch.setattr(optimise_tasks, "search", doubles.tensor_only)
    monkeypatch.setattr(optimise_tasks, "weigh", nothing_priced)
    monkeypatch.setattr(optimise_tasks, "move", nothing_moved)
    monkeypatch.setattr(optimise_tasks, "verify", nothing_verified)
    yield made
    made.close()


def nothing_priced(answer: object, report: object, stop: object) -> Weighed:
    return Weighed()


def nothing_moved(answer: object, report: object, stop: object) -> Moved:
    return Moved()


def nothing_verified(answer: Answer, report: object, stop: object) -> Verified:
    return Verified(answer.question, (), None)


def one_way_out(answer: Answer, report: object, stop: object) -> Weighed:
    scenario = answer.question.scenario.with_(tp=8)
    choice = Choice(scenario, "TP8", 1.0, outcome(scenario))
    return Weighed(relaxations=(Relaxation("sla_tpot_ms", 1.0, 11.0, choice),))


def opened(query: str = "") -> AppTest:
    """The page of a link, run once."""
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    for name, value in parse_qsl(query, keep_blank_values=True):
        at.query_params[name] = value
    at.switch_page("app_pages/optimise.py").run()
    assert not at.exception
    return at


def until(at: AppTest, holds: Callable[[AppTest], bool]) -> AppTest:
    """Look at the page again and again, as a browser does, until something holds."""
    end = time.monotonic() + SOON
    while not holds(at) and time.monotonic() < end:
        time.sleep(0.02)
        at.run()
        assert not at.exception
    assert holds(at)
    return at


def done(at: AppTest) -> bool:
    return heading(at).startswith("Cheapest: ")


def old(at: AppTest) -> bool:
    """Whether what is shown is marked as the answer to other inputs."""
    marked = any("Old answer" in badge.value for badge in at.markdown) and "Inputs changed since this run" in html(at)
    return marked and heading(at).startswith("Old answer. ")


def running(at: AppTest) -> bool:
    return heading(at) == "Searching."


def html(at: AppTest) -> str:
    return read("".join(block.proto.body for block in at.main.get("html")))


def address(at: AppTest) -> dict[str, str]:
    """The address's parameters, each given once."""
    return {name: value if isinstance(value, str) else ",".join(value) for name, value in at.query_params.items()}


def searched(query: str) -> AppTest:
    at = opened(query)
    return until(at.button(key="_search").click().run(), done)


def test_a_small_question_is_answered_without_a_button() -> None:
    asked = HALF.replace("tp=4", "tp=8")
    at = until(opened(asked), done)
    mine = plan_of(from_link(asked))
    costs = {tp: plan_of(from_link(f"weights=fp8&tp={tp}")).usd_per_m_goodput or 9e9 for tp in (1, 2, 4, 8)}
    degree = min(costs, key=lambda tp: costs[tp])
    best = costs[degree]
    assert heading(at).startswith(
        f"Cheapest: {degree} × H100 SXM 80 GB, FP8: {dollars(best)} per million good tokens, "
    )
    share = 100 * (mine.usd_per_m_goodput / best - 1)
    assert f"Your plan costs {significant(share, 2)} % more." in html(at)
    assert f"Layout TP{degree}, batch " in html(at)
    assert at.button(key="_search").disabled
    assert at.button(key="_cancel").disabled


def test_a_large_question_waits_for_its_button() -> None:
    at = opened(WIDE)
    assert heading(at) == "What would be cheapest?"
    assert not at.get("vega_lite_chart")
    assert done(until(at.button(key="_search").click().run(), done))


def test_answer_first_then_table_front_and_counts() -> None:
    at = searched(WIDE)
    assert at.main.children[0].children[0].type == "title"
    assert [header.value for header in at.header] == [
        "What may vary", "Best of each kind", "Does it hold?", "Speed for a user against output of a GPU",
        "What each constraint costs",
        "Why layouts were refused", "What moves the answer", "Share these results",
    ]  # fmt: skip
    table = html(at)
    assert "TP2 · fp8 · h200-sxm" in table
    assert progress(at).startswith("512 plans evaluated of 8 layouts, in ")


def test_progress_counts_and_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimise_tasks, "search", doubles.slowly)
    at = opened(WIDE).button(key="_search")
    start = time.monotonic()
    at = at.click().run()
    assert running(at)
    assert time.monotonic() - start < 2.0
    until(at, lambda page: "of 1,000 parts" in progress(page))
    assert at.button(key="_search").disabled
    at.button(key="_cancel").click().run()
    assert heading(at) == "The search was cancelled."
    assert at.button(key="_search").label == "Search again"
    assert not at.button(key="_search").disabled


def progress(at: AppTest) -> str:
    return "".join(read(block.proto.text) for block in at.get("progress"))


def test_a_changed_input_never_shows_the_old_answer_as_the_new_one() -> None:
    at = searched(WIDE)
    before = heading(at)
    at.number_input(key="sla_tpot_ms").set_value(30.0).run()
    assert old(at)
    assert heading(at) == f"Old answer. {before}"
    assert len(at.get("vega_lite_chart")) == 1, "the page keeps its shape"
    assert not at.get("download_button"), "an old answer is not handed on"
    assert at.button(key="_search").disabled is False
    assert 'href="./optimise?weights=fp8&amp;tp=4&amp;accelerators=h100-sxm,h200-sxm"' in html(at)
    at = until(at.button(key="_search").click().run(), done)
    assert heading(at) != before
    assert "Inputs changed since this run" not in html(at)


@pytest.mark.parametrize(
    "change",
    [
        lambda at: at.multiselect(key="_ask_precisions").set_value(["fp8", "bf16"]),
        lambda at: at.number_input(key="_ask_max_gpus").set_value(200),
        lambda at: at.selectbox(key="_ask_objective").set_value("gpus"),
        lambda at: at.number_input(key="_ask_limit_tpot_ms").set_value(10.0),
        lambda at: at.text_input(key="_ask_other_limits").set_value("batch>=8"),
        lambda at: at.number_input(key="isl").set_value(2048),
    ],
)
def test_every_input_makes_the_answer_an_old_one(change: Callable[[AppTest], object]) -> None:
    at = searched(WIDE)
    assert not old(at)
    change(at).run()
    assert old(at)


def test_going_back_shows_the_answer_at_once() -> None:
    at = searched(WIDE)
    before = heading(at)
    at.number_input(key="sla_tpot_ms").set_value(30.0).run()
    at.number_input(key="sla_tpot_ms").set_value(50.0).run()
    assert heading(at) == before


def test_the_language_is_no_part_of_the_question() -> None:
    at = searched(WIDE)
    english = html(at)
    at.session_state["_section_page"] = True
    at.run()
    at.selectbox(key="lang").set_value("zh").run()
    assert "Inputs changed since this run" not in html(at)
    assert "各类最优" in [header.value for header in at.header]
    assert "lang=zh" in html(at)
    assert "lang=zh" not in english


def test_a_change_while_it_runs_stops_the_search(monkeypatch: pytest.MonkeyPatch, shop: Workshop) -> None:
    monkeypatch.setattr(optimise_tasks, "search", doubles.slowly)
    at = opened(WIDE).button(key="_search").click().run()
    assert running(at)
    at.number_input(key="sla_tpot_ms").set_value(30.0).run()
    assert heading(at) == "What would be cheapest?"
    end = time.monotonic() + SOON
    while len(shop._crew.free) < MOST_JOBS and time.monotonic() < end:
        time.sleep(0.01)
    assert len(shop._crew.free) == MOST_JOBS, "the search for inputs that are gone goes on"


def test_two_sessions_share_an_answer_and_not_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    first = heading(searched(WIDE))
    monkeypatch.setattr(optimise_tasks, "search", doubles.slowly)
    assert heading(opened(WIDE)) == first, "the reader of a link waits for what is known"
    other = opened(f"{WIDE}&max_gpus=200").button(key="_search").click().run()
    assert running(other)
    assert not running(opened(f"{WIDE}&max_gpus=200"))


def test_nothing_feasible_says_why_and_what_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    at = until(opened(f"{HALF}&sla_tpot_ms=1&isl=8192"), lambda page: "fell because" in said(page))
    assert heading(at) == "Nothing keeps the SLA on at most 16 GPUs."
    assert "Of 4 layouts, those that came nearest fell because: " in said(at)


def test_what_would_be_feasible_stands_under_the_headline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimise_tasks, "weigh", one_way_out)
    at = until(opened(f"{HALF}&sla_tpot_ms=1"), lambda page: heading(page) == "Nothing keeps the TPOT SLA of 1 ms.")
    head = at.main.children[0]
    assert "With a TPOT SLA of 11 ms instead of 1 ms there is an answer: TP8." in read(head.get("html")[0].proto.body)
    assert 'href="./optimise?weights=fp8&amp;tp=4&amp;sla_tpot_ms=11"' in html(at)
    assert "fell because" not in said(at)


def test_what_a_search_refuses_is_said_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimise_tasks, "search", doubles.refuse)
    at = until(opened(HALF), lambda page: heading(page) == "This question cannot be searched.")
    assert progress(at) == "max_gpus = 0: must be at least 1"


def test_too_many_searches_is_a_state_and_not_an_error(shop: Workshop) -> None:
    running_jobs = [shop.start(doubles.count_to, 100_000) for _ in range(MOST_JOBS)]
    at = opened(HALF)
    assert heading(at) == "Too many searches wait already."
    assert "try again in a minute" in progress(at)
    for job in running_jobs:
        job.cancel()


# --- the address ------------------------------------------------------------------------------------


EVERYTHING = {
    "accelerators": "h100-sxm,h200-sxm", "precisions": "fp8,bf16", "caches": "fp8", "modes": "colocated,disaggregated",
    "prefill_accelerators": "l40s", "chunks": "0,3000", "drafts": "0,12", "max_gpus": "64", "objective": "tpot_ms",
    "limits": "tpot_ms<=30,batch>=8",
}  # fmt: skip


def test_every_part_of_a_question_is_read_from_the_address_and_kept_in_it() -> None:
    at = opened(HALF + "".join(f"&{name}={value}" for name, value in EVERYTHING.items()))
    asked = at.multiselect(key="_ask_accelerators").value, at.number_input(key="_ask_max_gpus").value
    assert asked == (["h100-sxm", "h200-sxm"], 64)
    assert at.multiselect(key="_ask_chunks").value == [0, 3000]
    assert at.number_input(key="_ask_limit_tpot_ms").value == 30.0
    assert at.text_input(key="_ask_other_limits").value == "batch>=8"
    assert {name: value for name, value in address(at).items() if name in EVERYTHING} == EVERYTHING


def test_an_input_writes_itself_into_the_address_and_a_default_leaves_it() -> None:
    at = opened(HALF)
    assert set(at.query_params) == {"weights", "tp"}
    at.multiselect(key="_ask_accelerators").set_value(["h200-sxm"]).run()
    at.number_input(key="_ask_max_gpus").set_value(32).run()
    assert address(at) == {"weights": "fp8", "tp": "4", "accelerators": "h200-sxm", "max_gpus": "32"}
    at.multiselect(key="_ask_accelerators").set_value([]).run()
    at.number_input(key="_ask_max_gpus").set_value(16).run()
    assert set(at.query_params) == {"weights", "tp"}


def test_all_measured_accelerators_by_one_press() -> None:
    at = opened(HALF)
    at.button(key="_measured").click().run()
    chosen = at.multiselect(key="_ask_accelerators").value
    assert {"h100-sxm", "h200-sxm", "b200-sxm"} <= set(chosen)
    assert "t4" not in chosen
    assert old(at)


@pytest.mark.parametrize(
    ("own", "field"),
    [
        ("accelerators=h9", "accelerators"),
        ("accelerators=", "accelerators"),
        ("max_gpus=0", "max_gpus"),
        ("objective=cheap", "objective"),
        ("limits=tpot_ms<30", "limits"),
        ("chunks=1,2,3,4,5,6,7,8,9", "chunks"),
        ("precisions=<img src=x>", "precisions"),
    ],
)
def test_a_wrong_question_is_refused_until_the_reader_goes_on(own: str, field: str) -> None:
    at = opened(f"{HALF}&{own}&caches=fp8")
    assert heading(at) == "This link cannot be planned as it is."
    assert refused(at) == [field]
    assert not at.get("vega_lite_chart")
    assert not at.multiselect
    at.button(key="_ask_continue").click().run()
    assert at.multiselect(key="_ask_caches").value == ["fp8"]
    until(at, done)
    assert field not in at.query_params


def test_a_repeated_parameter_is_refused() -> None:
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    at.query_params["max_gpus"] = ["8", "16"]
    at.switch_page("app_pages/optimise.py").run()
    assert refused(at) == ["max_gpus"]
    at.button(key="_ask_continue").click().run()
    assert not at.exception
    until(at, lambda page: bool(page.multiselect))


def refused(at: AppTest) -> list[str]:
    """Parameters that are refused, in the order in which they are named."""
    return re.findall(r"<dt[^>]*>([^ <]+) = ", html(at))


def test_faults_of_the_scenario_and_of_the_question_stand_in_one_refusal() -> None:
    at = opened("tp=banana&weights=fp8&max_gpus=0&caches=fp8&objective=cheap")
    assert heading(at) == "This link cannot be planned as it is."
    assert refused(at) == ["tp", "max_gpus", "objective"]
    assert "must be a whole number from 1 to 4,096" in html(at)
    until(at.button(key="_ask_continue").click().run(), done)
    assert at.multiselect(key="_ask_caches").value == ["fp8"]
    assert address(at) == {"weights": "fp8", "caches": "fp8"}


def test_inputs_that_contradict_each_other_have_no_answer() -> None:
    at = until(opened(HALF), done)
    at.selectbox(key="_ask_objective").set_value("usd_per_hour").run()
    assert heading(at) == "Set Requests/s in the sidebar first."
    assert not refused(at)
    assert at.button(key="_search").disabled
    assert any("Old answer" in badge.value for badge in at.markdown), "what is shown answers other inputs"
    assert "Best of each kind" in [header.value for header in at.header]
    at.number_input(key="qps").set_value(2.0).run()
    assert heading(at) != "Set Requests/s in the sidebar first."


def test_one_output_token_has_no_tpot_to_make_low() -> None:
    at = opened(f"{HALF}&osl=1&objective=tpot_ms")
    assert heading(at) == "Set Output tokens in the sidebar to 2 or more first."
    assert at.button(key="_search").disabled


def test_wrong_limits_are_refused_where_they_are_written() -> None:
    at = until(opened(HALF), done)
    at.text_input(key="_ask_other_limits").set_value("tpot<=3").run()
    assert heading(at) == "These inputs contradict each other."
    assert "limits = tpot&lt;=3" in html(at)


def test_links_open_plans_and_comparisons() -> None:
    page = html(searched(WIDE))
    assert 'href="./?gpu=h200-sxm&amp;weights=fp8&amp;tp=2&amp;at_batch=' in page
    assert 'href="./compare?plans=' in page


def test_the_page_asks_nothing_when_it_is_another(shop: Workshop) -> None:
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    at.run()
    assert len(shop._crew.free) == MOST_JOBS


def test_the_question_of_the_page_is_the_question_of_the_address() -> None:
    at = searched(WIDE)
    (asked, answer) = at.session_state["_search_last"]
    assert asked == Question(scenario=from_link(HALF), accelerators=("h100-sxm", "h200-sxm"))
    assert answer.question == asked


def test_which_accelerators_are_calibrated_is_said_below_the_winner() -> None:
    made = calibrate(from_link(HALF), [Point(concurrency=16, tpot_ms=12.0)]).with_(at_batch=None)
    at = searched(f"{to_link(made).removeprefix('?')}&accelerators=h100-sxm,h200-sxm")
    warned = [read(each.value) for each in at.warning]
    assert any("H100 SXM 80 GB is calibrated by 1 measured point, H200 SXM 141 GB is not" in text for text in warned)
    mark = "not calibrated" if " × H200" in heading(at) else "calibrated"
    assert f", FP8 ({mark}): " in heading(at)
