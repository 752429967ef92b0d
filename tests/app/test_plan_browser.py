"""The Plan page in a real Chromium: journeys that only a browser can take, and how long they take."""

from __future__ import annotations

import csv
import json
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from planner.ui.headers import HEADERS
from tests.app import browser as harness
from tests.app.test_plan_page import CONFIG

pytestmark = [pytest.mark.browser, pytest.mark.alone]

HALF = "?weights=fp8&tp=4"
OpenPage = Callable[..., Page]

WATCH = """() => {
    window.drawn = 0;
    window.pressed = 0;
    const look = {subtree: true, childList: true, attributes: true, characterData: true};
    look.attributeFilter = ['d', 'transform', 'x', 'width'];
    const main = document.querySelector('[data-testid="stMain"]');
    new MutationObserver(() => { window.drawn = performance.now(); }).observe(main, look);
    document.addEventListener('keydown', () => { window.pressed = performance.now(); }, true);
}"""
RESTED = "() => window.drawn > window.pressed && performance.now() - window.drawn > 150"
CHARTS = """() => Array.from(document.querySelectorAll('[data-testid="stVegaLiteChart"] svg'))"""
PLACES = """() => Array.from(document.querySelectorAll('h1, h2, [data-testid="stMetric"], [data-testid="stVegaLiteChart"]'))
    .map((element) => Math.round(element.getBoundingClientRect().top))"""
FOCUS = """() => {
    const element = document.activeElement;
    return element.getAttribute('aria-label') || element.innerText || element.id;
}"""
CURVE = '[data-testid="stVegaLiteChart"] >> nth=1'


def answer(page: Page) -> str:
    """The page's first heading."""
    return page.locator("h1").first.inner_text()


def query(page: Page) -> dict[str, list[str]]:
    """The address's parameters."""
    return parse_qs(urlsplit(page.url).query, keep_blank_values=True)


def line(page: Page) -> str:
    """Where the TPOT line of the second chart runs."""
    return page.locator(f"{CURVE} >> svg g.mark-line path").first.get_attribute("d") or ""


def spin(page: Page, label: str) -> object:
    """The number input with a label."""
    return page.get_by_role("spinbutton", name=label, exact=True)


def test_a_link_opens_on_its_answer(open_page: OpenPage) -> None:
    page = open_page(HALF, charts=3)
    assert answer(page).startswith("Fits. ")
    assert page.locator("h1").first.bounding_box()["y"] < page.get_by_test_id("stMetric").first.bounding_box()["y"]
    for name, value in HEADERS.items():
        with urlopen(page.url) as reply:
            assert reply.headers[name] == value


def test_a_change_redraws_the_same_chart_and_lives_in_the_address(open_page: OpenPage) -> None:
    page = open_page(HALF, charts=3)
    before, said = line(page), answer(page)
    page.evaluate(f"() => ({CHARTS})().forEach((svg) => {{ svg.mine = true; }})")
    page.get_by_role("radio", name="8", exact=True).click(force=True)
    harness.settle(page, charts=3)
    assert query(page) == {"weights": ["fp8"], "tp": ["8"]}
    assert answer(page) != said
    assert line(page) != before
    assert page.evaluate(f"() => ({CHARTS})().every((svg) => svg.mine)"), "a change of numbers drew a chart anew"
    said = answer(page)
    page.reload()
    harness.settle(page, charts=3)
    assert answer(page) == said
    assert query(page) == {"weights": ["fp8"], "tp": ["8"]}


def test_a_slider_in_a_section_is_in_the_address_and_undo_takes_it_back(open_page: OpenPage) -> None:
    page = open_page(HALF, charts=3)
    said = answer(page)
    page.get_by_text("Workload and techniques").click()
    slider = page.get_by_role("slider", name="Prefix cache hits")
    slider.focus()
    page.keyboard.press("End")
    harness.settle(page)
    assert query(page)["prefix"] == ["1"]
    assert page.get_by_text("Also set: Prefix cache hits 1.").is_visible()
    assert page.evaluate(FOCUS) == "Prefix cache hits", "a change took the focus"
    assert answer(page) != said
    page.get_by_role("button", name="Undo").click()
    harness.settle(page)
    assert "prefix" not in query(page)
    assert answer(page) == said


def test_an_optional_number_can_be_given_and_taken_back(open_page: OpenPage) -> None:
    page = open_page(HALF, charts=3)
    page.get_by_text("Engine and its limits").click()
    box = spin(page, "Batch per replica")
    box.fill("32")
    box.press("Enter")
    harness.settle(page)
    assert query(page)["at_batch"] == ["32"]
    assert answer(page).startswith("Fits. 32 of at most")
    box.fill("")
    box.press("Enter")
    harness.settle(page)
    assert "at_batch" not in query(page)


def test_a_refused_link_shows_no_numbers_until_the_reader_goes_on(open_page: OpenPage) -> None:
    page = open_page("?weights=fp8&tp=banana&foo=%3Cscript%3Ealert(1)%3C/script%3E&isl=99999999999&osl=512")
    assert answer(page) == "This link cannot be planned as it is."
    assert page.get_by_test_id("stMetric").count() == 0
    assert harness.axe_violations(page) == []
    page.get_by_role("button", name="Continue with defaults").click()
    harness.settle(page)
    assert query(page) == {"weights": ["fp8"], "osl": ["512"]}
    assert answer(page).startswith("Fits") or answer(page).startswith("Does not fit")


def test_a_preset_of_the_menu_is_one_step_of_history(open_page: OpenPage) -> None:
    page = open_page(HALF, charts=3)
    said = answer(page)
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("link", name="A small model on one cheap GPU", exact=False).click()
    page.wait_for_url("**gpu=l40s**")
    harness.settle(page, charts=3)
    assert query(page)["model"] == ["llama-3.1-8b"]
    assert "L40S" in answer(page)
    page.go_back()
    harness.settle(page, charts=3)
    assert answer(page) == said
    assert query(page) == {"weights": ["fp8"], "tp": ["4"]}


def test_preset_in_a_link_is_spelled_out(open_page: OpenPage) -> None:
    page = open_page("?preset=llama70b-fp8-c-real", charts=3)
    assert query(page) == {"weights": ["fp8"], "tp": ["4"]}


def test_the_nearest_plan_that_fits_is_a_click_away(open_page: OpenPage) -> None:
    page = open_page("", charts=1)
    assert answer(page).startswith("Does not fit.")
    page.get_by_role("link", name="Open this plan").click()
    page.wait_for_url("**tp=**")
    harness.settle(page, charts=3)
    assert not answer(page).startswith("Does not fit")


def test_the_link_to_share_opens_the_same_plan(open_page: OpenPage) -> None:
    page = open_page(HALF, charts=3)
    said = answer(page)
    page.get_by_role("button", name="Link", exact=True).click()
    code = page.get_by_test_id("stCode").locator("code")
    code.wait_for()
    link = code.inner_text()
    assert "price=" in link
    assert harness.axe_violations(page) == []
    harness.go(page, link)
    assert answer(page) == said


def test_csv_and_json_carry_the_plan_out_and_back(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(HALF + "&isl=3000&spare=1", charts=3)
    said = answer(page)
    for name, button in (("plan.csv", "CSV"), ("plan.json", "JSON")):
        with page.expect_download() as download:
            page.get_by_role("button", name=button, exact=True).click()
        download.value.save_as(tmp_path / name)
    with (tmp_path / "plan.csv").open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["isl"], row["tp"], row["spare"]) == ("3000", "4", "1")
    other = page.url.partition("?")[0] + "?model=qwen3-8b"
    for name in ("plan.csv", "plan.json"):
        harness.go(page, other)
        page.get_by_role("button", name="Open a saved plan").click()
        page.locator('input[type="file"]').last.set_input_files(tmp_path / name)
        harness.settle(page, charts=3)
        assert answer(page) == said
        assert query(page)["isl"] == ["3000"]


def test_a_file_that_is_no_plan_is_refused_and_the_plan_stays(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(HALF, charts=3)
    said = answer(page)
    (tmp_path / "bad.csv").write_text("model,tp\nllama-3.1-70b,banana\n", encoding="utf-8")
    page.get_by_role("button", name="Open a saved plan").click()
    page.locator('input[type="file"]').last.set_input_files(tmp_path / "bad.csv")
    harness.settle(page, charts=3)
    expect(page.get_by_text("Not opened: the plan stays as it was.")).to_be_visible()
    assert answer(page) == said


def test_a_model_of_ones_own_lives_in_the_address(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("", charts=1)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (tmp_path / "broken.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": -1}), encoding="utf-8")
    page.get_by_role("button", name="Your own model").click()
    page.locator('input[type="file"]').first.set_input_files(tmp_path / "broken.json")
    expect(page.get_by_text("num_hidden_layers", exact=False)).to_be_visible()
    assert "model" not in query(page)
    page.locator('input[type="file"]').first.set_input_files(tmp_path / "config.json")
    page.wait_for_url("**model=custom**")
    harness.settle(page, charts=3)
    said = answer(page)
    assert said.startswith("Fits")
    page.reload()
    harness.settle(page, charts=3)
    assert answer(page) == said


TAMPERED = (
    "?x=1AAAA&model=custom",
    "?model=%00",
    "?tp=%F0%9F%98%80",
    "?isl=9999999999999999999999999999",
    "?provider=%3Cimg%20src=http://evil.example/x%3E",
    "?lang=%5Bx%5D(javascript:alert(1))",
    "?preset=../../etc/passwd",
    "?" + "&".join(f"a{n}=1" for n in range(300)),
)


def test_tampered_links_are_refused_politely(open_page: OpenPage) -> None:
    page = open_page(TAMPERED[0])
    base = page.url.partition("?")[0]
    for tampered in TAMPERED:
        harness.go(page, base + tampered)
        assert answer(page) == "This link cannot be planned as it is."
        assert page.get_by_text("Traceback").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_everybody_can_use_it(open_page: OpenPage, theme: str, width: int) -> None:
    page = open_page(HALF, charts=3, theme=theme, width=width)
    if width > 640:
        for section in ("TTFT and percentile", "Layout beyond TP", "Workload and techniques", "Engine and its limits"):
            page.get_by_text(section, exact=True).click()
        harness.settle(page)
    assert harness.axe_violations(page) == []
    assert harness.overflow(page) == 0


def test_every_outcome_can_be_read_by_everybody(open_page: OpenPage) -> None:
    page = open_page("", charts=1, theme="dark")
    base = page.url.partition("?")[0]
    for outcome in ("", "?preset=llama70b-fp8-c", "?weights=fp8&tp=4&sla_tpot_ms=5", "?weights=fp8&tp=4&pp=2"):
        assert harness.axe_violations(harness.go(page, base + outcome)) == []


def test_inputs_are_reached_by_keyboard_in_reading_order(open_page: OpenPage) -> None:
    page = open_page(HALF, charts=3)
    page.get_by_role("button", name="Presets").focus()
    names = []
    for _ in range(14):
        page.keyboard.press("Tab")
        names.append(page.evaluate(FOCUS))
    joined = " | ".join(names)
    assert all(label in joined for label in ("Model", "Weights", "GPU", "Input tokens", "Output tokens"))


def test_nothing_moves_when_a_number_changes(open_page: OpenPage) -> None:
    page = open_page(HALF, charts=3)
    before = page.evaluate(PLACES)
    box = spin(page, "TPOT SLA, ms")
    box.focus()
    box.press("ArrowDown")
    harness.settle(page)
    assert page.evaluate(PLACES) == before


# --- time -------------------------------------------------------------------------------------------

FIRST_PAINT_SECONDS = 3.0
REDRAW_MS = 250.0
SLOWER_MACHINE = 2.0
"""Budgets are those of an idle machine and are printed with what was measured; a test fails at twice a budget, so that a
slow or busy machine fails nothing."""


def test_a_new_server_shows_its_first_plan_within_three_seconds(
    browser: Browser, root: Path, tmp_path: Path, remark: Callable[[str], None]
) -> None:
    with harness.serve(root / "app.py", tmp_path) as server:
        page, _ = harness.new_page(browser)
        start = time.monotonic()
        page.goto(f"{server.url}/{HALF}", wait_until="commit")
        page.locator(f"{CURVE} >> svg").wait_for()
        took = time.monotonic() - start
        page.context.close()
    remark(f"plan page: first chart {took:.2f} s after the first visit of a new server")
    assert took <= FIRST_PAINT_SECONDS * SLOWER_MACHINE


def redraws(page: Page, changes: int = 30) -> list[float]:
    """Milliseconds from a key to the last change that it makes on the page, sorted; the first three do not count."""
    times = []
    for turn in range(changes + 3):
        page.keyboard.press("ArrowUp" if turn <= changes // 2 else "ArrowDown")
        page.wait_for_function(RESTED)
        times.append(page.evaluate("() => window.drawn - window.pressed"))
    return sorted(times[3:])


def test_a_change_is_on_the_charts_within_a_quarter_of_a_second(
    open_page: OpenPage, remark: Callable[[str], None]
) -> None:
    """A machine that is busy with something else may spoil one round, not two."""
    page = open_page(HALF, charts=3)
    page.evaluate(WATCH)
    spin(page, "TPOT SLA, ms").focus()
    for _ in range(2):
        times = redraws(page)
        middle, p95 = statistics.median(times), times[int(0.95 * len(times)) - 1]
        remark(f"plan page: change to last redraw, {len(times)} changes: p50 {middle:.0f} ms, p95 {p95:.0f} ms")
        if p95 <= REDRAW_MS:
            return
    assert p95 <= REDRAW_MS * SLOWER_MACHINE


def test_an_opened_plan_is_in_the_address_also_what_closed_sections_hide(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("?tp=4&isl=2048", charts=3)
    plan = {"scenario": {"tp": 8, "spec": 4, "accept": 0.5, "prefix": 0.5}}
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    page.get_by_role("button", name="Open a saved plan").click()
    page.locator('input[type="file"]').last.set_input_files(tmp_path / "plan.json")
    page.wait_for_url("**spec=4**")
    harness.settle(page, charts=3)
    said = answer(page)
    assert {name: query(page).get(name) for name in ("tp", "spec", "accept", "prefix")} == {
        "tp": ["8"], "spec": ["4"], "accept": ["0.5"], "prefix": ["0.5"],
    }  # fmt: skip
    page.reload()
    harness.settle(page, charts=3)
    assert answer(page) == said


def test_a_refused_link_stays_refused_through_the_top_bar(open_page: OpenPage) -> None:
    page = open_page("?tp=0&model=qwen3-8b", charts=0)
    go_on = page.get_by_role("button", name=re.compile("^Continue"))
    expect(go_on).to_be_visible()
    page.get_by_role("link", name="Model").first.click()
    page.wait_for_url("**/model**")
    expect(go_on).to_be_visible()
    assert page.get_by_test_id("stMetric").count() == 0
    go_on.click()
    page.wait_for_url("**model=qwen3-8b**")
