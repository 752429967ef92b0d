"""The Traffic page, without a browser: an answer belongs to the inputs shown, says whether it holds, and where to go."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from planner.share import from_link
from planner.simulate.run import simulate
from planner.simulate.spelling import traffic_from_texts, traffic_link
from planner.simulate.trace_samples import read_sample
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.ui import optimise_run, traffic_tasks, traffic_trace
from planner.ui.jobs import Workshop
from planner.ui.traffic_sentences import share
from planner.ui.traffic_tasks import Subject, Told
from planner.ui.traffic_trace import Held
from planner.units import show, whole
from tests import doubles
from tests.app.test_plan_page import MAIN, heading, read, said

HOLDS = "weights=fp8&tp=4&fix_replicas=2&osl=64&sla_pct=99&sla_ttft_ms=500&rate=10&requests=600"
BREAKS = HOLDS.replace("rate=10", "rate=200")
SOON = 20.0


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """A thread does the work, and no answer is remembered from another test."""
    made, shelf = Workshop(0), optimise_run.Shelf()
    monkeypatch.setattr(optimise_run, "workshop", lambda: made)
    monkeypatch.setattr(optimise_run, "shelf", lambda: shelf)
    yield made
    made.close()


def opened(query: str = "", **state: object) -> AppTest:
    """The page of a link, run once."""
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    for name, value in parse_qsl(query, keep_blank_values=True):
        at.query_params[name] = value
    for name, value in state.items():
        at.session_state[name] = value
    at.switch_page("app_pages/traffic.py").run()
    assert not at.exception
    return at


def until(at: AppTest, holds: Callable[[AppTest], bool]) -> AppTest:
    """Look at the page again and again, as a browser does, until something holds."""
    end = time.monotonic() + SOON
    while not holds(at) and time.monotonic() < end:
        time.sleep(0.02)
        at.run()
        assert not at.exception
    assert holds(at), heading(at)
    return at


def answered(at: AppTest) -> bool:
    return bool(re.match(r"(Holds|Does not hold) at P", heading(at)))


def simulated(query: str) -> AppTest:
    return until(opened(query).button(key="_traffic_run").click().run(), answered)


def asked(query: str) -> tuple:
    """Scenario and traffic of a link, read by the planner."""
    own = {name: value for name, value in parse_qsl(query) if name in Traffic.model_fields}
    rest = "&".join(f"{name}={value}" for name, value in parse_qsl(query) if name not in own)
    return from_link(rest), traffic_from_texts(own)


def html(at: AppTest) -> str:
    return read("".join(block.proto.body for block in at.main.get("html")))


def names(at: AppTest) -> list[str]:
    return [header.value for header in at.header]


def slowly(subject: Subject, report: object, stop: object) -> Told:
    """A run that takes ten seconds."""
    doubles.count_to(1000, report, stop)
    raise AssertionError("it was to be cancelled")


def test_before_a_run_the_question_theory_and_no_number_of_a_run() -> None:
    at = opened(HOLDS)
    assert heading(at) == "Does it hold at P99? Press Run to simulate it."
    assert "Queue theory says it holds at P99: TTFT P99 " in said(at)
    assert not at.metric
    assert not at.get("vega_lite_chart")
    assert at.button(key="_traffic_cancel").disabled


def test_the_answer_is_a_sentence_with_the_runs_own_numbers() -> None:
    at = simulated(HOLDS)
    found = simulate(*asked(HOLDS)).summary
    ttft, tpot = show(found.ttft.at_pct, "ms"), show(found.tpot.at_pct, "ms")
    assert heading(at) == (
        f"Holds at P99: {share(found.share_good).replace(chr(160), ' ')} of requests keep the SLA. TTFT P99 {ttft} of 500 ms, "
        f"TPOT P99 {tpot} of 50 ms, at 10.0 requests/s on 2 replicas."
    )
    assert at.main.children[0].children[0].type == "title"
    tiles = {tile.label: read(tile.value) for tile in at.metric}
    assert tiles["TTFT P99"] == ttft
    assert tiles["Good tokens/s, all replicas"] == show(found.good_tok_s * 2)
    assert len(tiles) == 8
    assert names(at) == [
        "What arrives", "How long requests take", "Queues and cache over time", "Goodput against rate",
        "Routers and the limit in flight", "When one replica fails", "Share this run",
    ]  # fmt: skip
    assert len(at.get("vega_lite_chart")) == 5
    assert f"99 % of requests have their first token within {ttft}" in said(at)
    run = at.button(key="_traffic_run")
    assert (run.disabled, run.label) == (True, "Up to date"), "what is shown is the answer"
    assert "P99 rests on the slowest 5 of 540 requests; the first 60 of 600 are warm-up" in said(at)
    assert "1,024 tokens in, 64 out · 10.0 requests/s on 2 replicas" in said(at)
    assert "the 10.0 offered here arrive" in said(at)


def test_what_does_not_hold_says_by_how_much_and_where_to_go() -> None:
    at = simulated(BREAKS)
    assert heading(at).startswith("Does not hold at P99: TTFT P99 ")
    assert " against 500 ms" in heading(at)
    scenario, _ = asked(BREAKS)
    plan = plan_of(scenario)
    each = plan.output_tok_s / 64 * scenario.load
    needed = -int(-200 // each)
    assert f"{needed} replicas are needed for 200" in html(at)
    assert f"fix_replicas={needed}" in "".join(block.proto.body for block in at.main.get("html"))


def test_where_less_is_promised_p99_is_told_too() -> None:
    at = simulated(HOLDS.replace("sla_pct=99", "sla_pct=50"))
    assert heading(at).startswith("Holds at P50: ")
    assert "At P99 it holds too: TTFT P99 " in html(at)
    assert "sla_pct=99" in html(at)


def test_changed_inputs_make_an_answer_an_old_one_and_the_way_back_is_a_link() -> None:
    at = simulated(HOLDS)
    before = heading(at)
    at.number_input(key="_traffic_rate").set_value(11.0).run()
    assert heading(at) == f"Old answer. {before}"
    assert "Inputs changed since this run" in html(at)
    assert "rate=10" in html(at)
    assert not [name for name in names(at) if name == "Share this run"], "an old answer is not handed on"
    at.number_input(key="_traffic_rate").set_value(10.0).run()
    assert heading(at) == before, "and it is remembered"


def test_the_address_is_the_traffic() -> None:
    at = opened(HOLDS)
    at.selectbox(key="_traffic_router").set_value("round-robin").run()
    at.number_input(key="_traffic_isl_cv").set_value(0.5).run()
    assert at.query_params["router"] in ("round-robin", ["round-robin"])
    assert at.query_params["isl_cv"] in ("0.5", ["0.5"])
    at.selectbox(key="_traffic_router").set_value("least-loaded").run()
    assert "router" not in at.query_params, "defaults are not in it"


def test_a_refused_link_shows_its_refusals_and_no_number_until_the_reader_goes_on() -> None:
    at = opened(f"{HOLDS.replace('rate=10', 'rate=-3')}&router=best")
    assert heading(at) == "This link cannot be planned as it is."
    assert "Nothing was simulated" in said(at)
    assert "rate = -3" in html(at)
    assert "router = best" in html(at)
    assert not at.metric
    at.button(key="_ask_continue").click().run()
    assert heading(at) == "Does it hold at P99? Press Run to simulate it."
    assert at.number_input(key="_traffic_rate").value is None
    assert at.number_input(key="_traffic_requests").value == 600, "what is sound is kept"


def test_faults_of_plan_and_traffic_stand_together() -> None:
    at = opened("tp=0&rate=-3")
    assert "tp = 0" in html(at)
    assert "rate = -3" in html(at)


def test_a_value_of_zero_is_refused_in_place() -> None:
    at = opened(HOLDS)
    at.number_input(key="_traffic_repair_s").set_value(0.0).run()
    assert heading(at) == "These inputs are refused."
    assert "must be a number above 0" in html(at)
    assert at.button(key="_traffic_run").disabled


def test_a_plan_that_does_not_stand_says_why_and_the_way_out() -> None:
    at = opened("model=deepseek-v3&tp=1&rate=3")
    assert heading(at) == "There is no plan to run traffic on."
    assert "This plan does not stand: the weights" in said(at)
    assert "./traffic?" in html(at)
    assert "rate=3" in html(at)
    assert at.button(key="_traffic_run").disabled


def test_cancel_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_tasks, "run", slowly)
    at = opened(HOLDS).button(key="_traffic_run").click().run()
    assert heading(at) == "Simulating."
    assert "Run it" not in said(at)
    assert not at.button(key="_traffic_cancel").disabled
    at.button(key="_traffic_cancel").click().run()
    assert heading(at) == "The run was cancelled."
    assert at.button(key="_traffic_run").label == "Run", "as the text beside it says"
    assert not at.metric
    assert not at.button(key="_traffic_run").disabled


def test_traffic_that_cannot_be_made_is_refused_in_one_sentence() -> None:
    at = opened(f"{HOLDS}&isl=100&turns=50").button(key="_traffic_run").click().run()
    until(at, lambda page: heading(page) == "This traffic cannot be simulated.")
    assert "turns = 50" in "".join(read(str(bar.proto)) for bar in at.main.get("progress"))


def test_a_trace_takes_the_place_of_made_requests() -> None:
    at = opened(HOLDS.replace("&rate=10", ""))
    at.selectbox(key="_traffic_sample").set_value("azure").run()
    at.button(key="_traffic_use").click().run()
    trace = read_sample("azure")
    assert f"{len(trace.requests):,} requests in " in said(at)
    assert at.number_input(key="_traffic_isl_cv").disabled
    assert "arrivals and lengths are a trace's" in said(at)
    until(at.button(key="_traffic_run").click().run(), answered)
    assert f"at {show(trace.mean_rate)} requests/s" in heading(at)
    assert "The trace is not part of it" in said(at)
    assert f"{whole(trace.mean_isl)} tokens in, {whole(trace.mean_osl)} out on average" in said(at), "what ran"
    assert "--trace" in "".join(block.value for block in at.main.code)
    at.button(key="_traffic_drop").click().run()
    assert not at.number_input(key="_traffic_isl_cv").disabled


def test_a_file_that_is_no_trace_has_its_one_sentence_and_keeps_what_there_was(monkeypatch: pytest.MonkeyPatch) -> None:
    class Upload:
        name = "broken.csv"

        @staticmethod
        def getvalue() -> bytes:
            return b"time_s,input_tokens,output_tokens\n0,12,3\nx,4,5\n"

    state: dict = {traffic_trace.FILE: Upload, traffic_trace.HELD: Held(read_sample("azure"), "kept")}
    monkeypatch.setattr(traffic_trace.st, "session_state", state)
    traffic_trace._uploaded()
    assert state[traffic_trace.REFUSED] == "broken.csv was not used: line 3: time_s is 'x', must be a number."
    assert state[traffic_trace.HELD].digest == "kept"


def test_the_share_row_holds_link_and_command() -> None:
    at = simulated(HOLDS)
    link, command = (block.value for block in at.main.code)
    scenario, traffic = asked(HOLDS)
    assert link.partition("&rate=")[2] == traffic_link(scenario, traffic).partition("&rate=")[2]
    assert heading(opened(link.partition("?")[2])) == "Does it hold at P99? Press Run to simulate it.", "and it opens"
    words = shlex.split(command)
    assert words[:4] == ["python", "-m", "planner", "simulate"]
    assert link.endswith(words[4]), "what the command asks is what the link holds"
    assert [button.proto.label for button in at.main.get("download_button")][-3:] == [
        "CSV of the summary", "JSON", "CSV of requests",
    ]  # fmt: skip


def test_the_knee_is_found_on_demand_and_the_answer_speaks_of_it() -> None:
    at = simulated(BREAKS)
    charts = len(at.get("vega_lite_chart"))
    at.button(key="_knee_run").click().run()
    until(at, lambda page: "Keeps the SLA up to" in said(page))
    assert len(at.get("vega_lite_chart")) == charts + 2
    assert re.search(r"By simulation the SLA is kept up to [\d.]+ requests/s; \d+ replicas would carry 200\.", html(at))


def test_the_best_router_can_be_taken_over() -> None:
    at = simulated(HOLDS.replace("rate=10", "rate=40"))
    at.button(key="_routing_run").click().run()
    until(at, lambda page: bool(re.search("Best: |least bad: |has the lowest TTFT", said(page))))
    if [button for button in at.button if button.key == "_routing_use"]:
        at.button(key="_routing_use").click().run()
        assert heading(at).startswith("Old answer.")
        assert at.query_params["in_flight"]
    else:
        assert "That is what is set." in said(at)


def test_a_failed_replica_is_told_with_and_without_a_spare() -> None:
    at = simulated(f"{HOLDS}&repair_s=20&fail_at_s=20".replace("requests=600", "requests=300"))
    at.button(key="_outage_run").click().run()
    until(at, lambda page: "One of 2 replicas fails" in said(page))
    text = said(at)
    assert "start again" in text or "has to start again" in text
    assert "spare" in text


def test_a_spare_can_be_added_where_a_failure_hurts() -> None:
    at = simulated(
        f"{HOLDS}&repair_s=20&fail_at_s=20".replace("fix_replicas=2", "fix_replicas=1").replace("rate=10", "rate=4")
    )
    at.button(key="_outage_run").click().run()
    until(at, lambda page: "The only replica fails: " in said(page))
    at.button(key="_outage_spare").click().run()
    assert at.session_state["_current"].spare == 1
    assert heading(at).startswith("Old answer.")


def test_a_failure_where_the_promise_is_broken_anyway_points_to_the_rate_that_holds() -> None:
    """200 requests/s are many times what two replicas carry: a spare would not help."""
    at = opened(f"{BREAKS}&repair_s=2&fail_at_s=2")
    at.button(key="_outage_run").click().run()
    until(at, lambda page: "The SLA is broken without any failure." in said(page))
    assert "Find the knee" in said(at)
    assert not [button for button in at.button if button.key == "_outage_spare"]
    assert "With a spare replica" not in said(at)


def test_a_study_of_other_inputs_is_an_old_one() -> None:
    at = opened(HOLDS)
    at.button(key="_knee_run").click().run()
    until(at, lambda page: "Keeps the SLA" in said(page))
    at.number_input(key="_traffic_requests").set_value(601).run()
    assert "Old answer" in said(at)
    assert [button for button in at.button if button.key == "_knee_run"]


def test_a_run_that_is_too_short_says_so_and_offers_a_longer_one() -> None:
    """200 requests/s that stay some seconds: hundreds are inside at a time, so 300 requests show a start only."""
    at = (
        opened("weights=fp8&tp=4&qps=200&sla_pct=99&sla_ttft_ms=500&requests=300")
        .button(key="_traffic_run")
        .click()
        .run()
    )
    until(at, lambda page: heading(page).startswith("Too short to tell. "))
    (more,) = [button for button in at.button if button.key == "_traffic_more_requests"]
    count = int(re.sub(r"\D", "", more.label))
    assert count >= 1000
    at = more.click().run()
    assert at.query_params["requests"] in (str(count), [str(count)])
    until(at, lambda page: heading(page) != "Simulating.")
    assert at.number_input(key="_traffic_requests").value == count


def test_a_load_test_names_its_clients_and_has_no_knee() -> None:
    at = simulated(f"{HOLDS}&arrival=closed&clients=8".replace("&rate=10", ""))
    assert re.search(r"at 8 clients \([\d.]+ requests/s\) on 2 replicas", heading(at))
    assert at.button(key="_knee_run").disabled


def test_other_pages_do_not_know_what_belongs_to_this_one() -> None:
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    at.query_params["arrival"] = "gamma"
    at.run()
    assert heading(at) == "This link cannot be planned as it is."


def test_headings_and_labels_are_chinese_where_asked() -> None:
    at = opened(f"{HOLDS}&lang=zh")
    assert "到达的请求" in names(at)
    assert at.button(key="_traffic_run").label == "运行"
