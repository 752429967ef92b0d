"""Trust, a measurement of one's own: read, held against the plan, planned with; whatever is pasted is a sentence at worst."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from planner.catalog.calibration import correction_in
from planner.logs.benchmarks import FORMATS
from planner.logs.example import example_csv
from planner.share import from_link, to_link
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import trust_calibrate
from planner.ui.trust_calibrate import measured
from planner.ui.trust_calibrate_words import name_of
from planner.variants import outcome
from tests.app import browser as harness
from tests.app.test_plan_page import read, said, state_of
from tests.app.test_trust_page import choose, main, show_trust, tables

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "tests" / "golden" / "logs"
TEMPLATE = (LOGS / "benchmarks" / "headroom_template.csv").read_text(encoding="utf-8")
SUBJECT = Scenario(weights="fp8", tp=4)
"""What the template's sample was measured on: llama-3.1-70b on h100-sxm under vLLM."""

HOSTILE = (
    "<script>alert(1)</script>", "**bold** [link](javascript:alert(1))", "$\\frac{1}{2}$ :red[x]", "=cmd|' /C calc'!A0",
    "\u202e\u0000", "{" * 5000, "=" * 5000, "测试结果", '{"output_throughput": "<img src=x>"}', "concurrency,tpot_ms\n<b>,1\n",
    "Model loading took nan GiB", "============ Serving Benchmark Result ============", "a" * 200_000,
)  # fmt: skip
QUIET = frozenset({"empty-table-header"})


def log(name: str) -> str:
    return (LOGS / "startup" / f"{name}.log").read_text(encoding="utf-8")


def opened(scenario: Scenario = SUBJECT) -> AppTest:
    at = AppTest.from_file(str(ROOT / "planner" / "ui" / "main.py"), default_timeout=30)
    for name, value in parse_qsl(to_link(scenario).removeprefix("?")):
        at.query_params[name] = value
    at.run()
    at.switch_page("app_pages/trust.py").run()
    return choose(at, "_trust_section", "calibrate")


def paste(at: AppTest, text: str) -> AppTest:
    at.text_area(key=trust_calibrate.TEXT).set_value(text).run()
    assert not at.exception
    return at


def click(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    assert not at.exception
    return at


def has(at: AppTest, key: str) -> bool:
    return any(button.key == key for button in at.button)


def points(at: AppTest):
    (table,) = (each.value for each in at.dataframe)
    return table


# --- nothing, and what is not read --------------------------------------------------------------------


def test_without_a_text_it_says_what_can_be_pasted() -> None:
    at = opened()
    page = main(at)
    assert all(tool in page for tool in FORMATS)
    assert "Nothing is stored or sent on" in page
    assert not at.warning
    assert not at.dataframe
    assert at.button(key="_calibrate_clear").disabled


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_a_hostile_text_is_one_sentence(text: str) -> None:
    at = paste(opened(), text)
    assert not at.exception
    assert not at.error
    (box,) = at.warning
    assert 0 < len(box.value) <= 700
    assert "\n" not in box.value
    assert "](" not in box.value
    assert "<" not in read(box.value) or "\\<" in box.value
    assert not at.dataframe


def test_both_kinds_in_one_text_are_refused() -> None:
    (box,) = paste(opened(), TEMPLATE + "\n" + log("vllm-0.28-qwen3-14b")).warning
    assert "one at a time" in box.value


# --- a benchmark --------------------------------------------------------------------------------------


def test_a_benchmark_is_shown_before_and_after() -> None:
    at = paste(opened(), TEMPLATE)
    table = points(at)
    assert list(table["Measured, ms"]) == [12.5, 24.5, 38.0]
    wanted = [outcome(SUBJECT.with_(at_batch=batch)).tpot_ms for batch in (16, 64, 128)]
    assert list(table["Plan, ms"]) == pytest.approx(wanted)
    assert list(table["Plan off, %"]) == pytest.approx(
        [100 * (plan / real - 1) for plan, real in zip(wanted, (12.5, 24.5, 38.0), strict=True)]
    )
    assert abs(table["Calibrated off, %"]).median() < abs(table["Plan off, %"]).median()
    assert "3 constants fitted to 3 points" in main(at)
    (chart,) = at.get("vega_lite_chart")
    assert {data.name for data in chart.proto.datasets} == {"lines", "points", "levels", "limits", "stops"}
    assert not has(at, "_calibrate_use")


def test_what_was_understood_stands_with_its_line() -> None:
    html = tables(paste(opened(), TEMPLATE))
    assert "What was understood" in html
    assert "Tensor parallel" in html
    assert "16 to 128 requests" in html


def test_planning_with_it_puts_it_into_the_address_and_back() -> None:
    at = click(paste(opened(), TEMPLATE), "_calibrate_plan")
    scenario = state_of(at)
    assert scenario.profile == "custom"
    assert at.query_params["x"] in (scenario.x, [scenario.x])
    assert to_link(scenario) == to_link(from_link(to_link(scenario)))
    made = correction_in(str(scenario.x))
    assert made.points == 3
    assert scenario.with_(profile="measured", x=None) == SUBJECT
    assert "Calibrated by 3 measured points" in main(at)
    assert f"{made.before:.1%} before, {made.after:.1%} after" in read(main(at)).replace(" %", "%")
    assert not has(at, "_calibrate_plan")
    at = click(at, "_calibrate_back")
    assert state_of(at) == SUBJECT
    assert "x" not in at.query_params
    assert has(at, "_calibrate_plan")


def test_the_plan_page_plans_with_it() -> None:
    at = click(paste(opened(), TEMPLATE), "_calibrate_plan")
    at.switch_page("app_pages/plan.py").run()
    assert not at.exception
    assert "Calibrated by 3 measured points" in said(at)
    assert "before" in said(at)


def test_another_subject_is_named_before_anything_is_fitted() -> None:
    at = paste(opened(Scenario()), TEMPLATE)
    html = tables(at)
    assert "KV cache" in html
    assert not at.dataframe
    click(at, "_calibrate_use")
    assert state_of(at) == SUBJECT
    assert len(points(at)) == 3


def test_another_subject_can_be_fitted_all_the_same() -> None:
    at = paste(opened(SUBJECT.with_(kv="fp8")), TEMPLATE)
    at.toggle(key="_calibrate_anyway").set_value(True).run()
    assert len(points(at)) == 3


def test_one_point_at_the_highest_load_asks_for_one_at_mid_load() -> None:
    lines = TEMPLATE.splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("concurrency"))
    page = main(paste(opened(), "\n".join([lines[head], lines[-1]])))
    assert "Add a point at mid load" in page
    assert "One factor fitted to one point always meets it" in page


def test_points_that_cannot_be_used_are_refused_with_a_reason() -> None:
    csv = "concurrency,isl,osl,tpot_ms,ttft_ms\n16,1024,256,12.5,\n100000,1024,256,60,\n,1024,256,20,\n"
    page = main(paste(opened(), csv))
    assert "Point 2 is left out" in page
    assert "Point 3 is left out" in page


def test_points_far_from_the_plan_are_one_sentence() -> None:
    at = paste(opened(), "concurrency,isl,osl,tpot_ms\n16,1024,256,12500\n")
    (box,) = at.warning
    assert "times above the predicted" in box.value
    assert not has(at, "_calibrate_plan")


@pytest.mark.parametrize(
    ("text", "said_of_it"),
    [
        ("concurrency,isl,osl,tpot_ms\n1,1024,256,40\n128,1024,256,11\n", "TPOT does not fall with load"),
        ("concurrency,isl,osl,tpot_ms\n64,1024,256,20\n64,1024,256,38\n", "leaves a median error of"),
        ("concurrency,isl,osl,tpot_ms,spec\n16,1024,256,6,3\n", "Spec (0) does not go with drafted tokens"),
    ],
)
def test_points_that_no_calibration_meets_are_a_warning_without_a_button(text: str, said_of_it: str) -> None:
    at = paste(opened(), text)
    (box,) = at.warning
    assert said_of_it in read(box.value)
    assert not has(at, "_calibrate_plan")


def test_what_was_assumed_and_a_ttft_that_is_not_followed_are_said() -> None:
    page = main(paste(opened(SUBJECT.with_(qps=40.0)), "concurrency,tpot_ms,ttft_ms\n1,9,0.09\n"))
    assert "taken as one replica" in page
    assert "1,024 are assumed" in page
    assert "TTFT is left as it was: point 1 states" in page


def test_the_example_is_of_public_measurements() -> None:
    at = click(opened(Scenario()), "_calibrate_example")
    assert at.text_area(key=trust_calibrate.TEXT).value == example_csv()
    assert "github:" in example_csv().splitlines()[0]
    assert example_csv().count("\n") == 2 + 5
    at = click(click(at, "_calibrate_use"), "_calibrate_plan")
    assert correction_in(str(state_of(at).x)).points == 5
    assert not at.exception
    assert not click(at, "_calibrate_clear").text_area(key=trust_calibrate.TEXT).value


def test_a_file_is_read_instead_of_the_text() -> None:
    at = opened()
    at.file_uploader(key=trust_calibrate.FILE).upload("results.csv", TEMPLATE.encode("utf-16"), "text/csv").run()
    assert not at.exception
    assert len(points(at)) == 3


def test_a_binary_file_is_one_sentence() -> None:
    at = opened()
    at.file_uploader(key=trust_calibrate.FILE).upload("results.log", b"\x7fELF\x00\x00\xff", "text/plain").run()
    assert not at.exception
    assert "No text" in at.warning[0].value


def test_back_to_measured_keeps_a_model_of_ones_own() -> None:
    assert measured(SUBJECT.with_(x=None)) == SUBJECT


# --- a start-up log -----------------------------------------------------------------------------------


def test_a_contradicting_log_says_which_term_differs() -> None:
    scenario = Scenario(model="qwen2.5-72b")
    at = paste(opened(scenario), log("vllm-0.19-qwen2.5-72b-tp4"))
    html = tables(at)
    assert f"{plan_of(scenario).weights_bytes / 2**30:,.2f} GiB" in html
    assert "33.98 GiB" in html
    assert "Differs. " in html
    assert "The log states tp = 4, the plan has tp = 1" in html
    assert "memory terms differ from the plan: Weights" in main(at)
    at = click(at, "_calibrate_as_log")
    assert state_of(at) == scenario.with_(tp=4, max_len=8192, util=0.9)
    assert "The log states no input otherwise" in main(at)


def test_what_the_plan_cannot_take_from_a_log_is_kept_with_its_reason() -> None:
    at = paste(opened(Scenario(model="qwen2.5-72b", isl=16_384)), log("vllm-0.19-qwen2.5-72b-tp4"))
    assert "Longest sequence stays as it is: " in main(at)
    at = click(at, "_calibrate_as_log")
    assert (state_of(at).tp, state_of(at).max_len) == (4, None)


def test_a_start_that_failed_says_how() -> None:
    assert "The start ended with: out of memory" in main(paste(opened(), log("vllm-v0-out-of-memory")))


def test_a_text_that_stops_before_readiness_says_so() -> None:
    whole = log("vllm-0.19-qwen2.5-72b-tp4")
    unready = "Readiness is not reached in this text"
    assert unready in main(paste(opened(), whole[: whole.index("Capturing")]))
    assert unready not in main(paste(opened(), whole))


def test_two_starts_in_one_text_are_refused() -> None:
    both = log("vllm-0.19-qwen2.5-72b-tp4") + log("sglang-qwq-32b-tp4")
    (box,) = paste(opened(), both).warning
    assert "two engines or models" in box.value


def test_every_memory_term_has_a_name() -> None:
    assert name_of("weights_bytes") == "Weights"
    assert name_of("tp") == "Tensor parallel"
    assert name_of("time of a request") == "Time of a request"


# --- browser ------------------------------------------------------------------------------------------


def show_section(page) -> None:
    show_trust(page)
    page.get_by_role("radio", name="Calibrate", exact=True).click()
    harness.settle(page)


def fill(page, text: str, charts: int = 0) -> None:
    page.get_by_role("textbox", name="Result or log").fill(text)
    page.get_by_role("textbox", name="Result or log").press("Control+Enter")
    page.get_by_text("What was understood").first.wait_for()
    harness.settle(page, charts=charts)


LOOKS = {
    "light": {"theme": "light"}, "dark": {"theme": "dark"}, "390px": {"width": 390, "height": 844},
    "390px-dark": {"width": 390, "height": 844, "theme": "dark"},
}  # fmt: skip


@pytest.mark.browser
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_the_section_in_a_browser(open_page, look) -> None:
    page = open_page("?weights=fp8&tp=4", **look)
    show_section(page)
    assert harness.overflow(page) == 0
    assert harness.axe_violations(page, ignore=QUIET) == []
    fill(page, TEMPLATE, charts=1)
    assert harness.overflow(page) == 0
    assert harness.axe_violations(page, ignore=QUIET) == []
    page.get_by_role("button", name="Plan with this").click()
    page.get_by_text("The plan uses this calibration").wait_for()
    harness.settle(page, charts=1)
    assert "profile=custom" in page.url
    fill(page, log("vllm-0.19-qwen2.5-72b-tp4"))
    assert harness.overflow(page) == 0
    assert harness.axe_violations(page, ignore=QUIET) == []
