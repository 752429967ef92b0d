"""The Optimise page in a real Chromium: a search from button to plan, how soon it speaks, and that others are not slowed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.app import browser as harness
from tests.app.test_plan_browser import answer, query, spin

pytestmark = [pytest.mark.browser, pytest.mark.alone]

WIDE = "optimise?weights=fp8&tp=4&accelerators=h100-sxm,h200-sxm&precisions=bf16,fp8"
LONG = (
    "optimise?model=deepseek-v3&weights=fp8-block&gpu=h200-sxm&tp=8&accelerators=h100-sxm,h200-sxm,b200-sxm,b300-sxm,"
    "gb200-nvl72,gb300-nvl72,h20-sxm&precisions=fp8-block,nvfp4,int4&modes=colocated,disaggregated&max_gpus=1024"
)
PROGRESS_MS = 200.0
BUSY_MACHINE = 4.0
OTHERS_SECONDS = 1.0
WATCH = """() => {
    document.addEventListener('pointerdown', () => { window.pressed = performance.now(); }, true);
    new MutationObserver(() => {
        const said = document.querySelector('[data-testid="stProgress"]')?.innerText ?? '';
        if (!window.told && window.pressed && /parts|Searching|Waits/.test(said)) { window.told = performance.now(); }
    }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""
OpenPage = Callable[..., Page]


def search(page: Page) -> Page:
    """Press the button, unless the answer is remembered, and wait for it and what stands around it."""
    button = page.get_by_role("button", name="Search", exact=True)
    if button.is_enabled():
        button.click()
    expect(page.locator("h1").first).to_have_text(re.compile("^Cheapest: .* per million good tokens"), timeout=60_000)
    expect(page.get_by_text("moves it most")).to_be_visible(timeout=60_000)
    return harness.settle(page, charts=2)


def verified(page: Page) -> str:
    """The answer once its best were simulated: the verdict ends it."""
    expect(page.locator("h1").first).to_contain_text(re.compile("in simulation"), timeout=60_000)
    return answer(page)


def test_from_a_question_to_a_plan_and_back(open_page: OpenPage) -> None:
    page = open_page(WIDE)
    assert answer(page) == "What would be cheapest?"
    said = verified(search(page))
    assert query(page)["accelerators"] == ["h100-sxm,h200-sxm"]

    page.reload()
    harness.settle(page, charts=2)
    assert verified(page) == said, "the address holds the question, and its answer is remembered"

    page.get_by_role("link", name="Model").click()
    harness.settle(page)
    assert "accelerators" not in query(page)
    assert "753" not in answer(page)
    assert answer(page).startswith("70")
    page.get_by_role("link", name="Optimise").click()
    harness.settle(page, charts=2)
    assert verified(page) == said
    assert query(page)["accelerators"] == ["h100-sxm,h200-sxm"]

    first = page.get_by_role("table", name="Best of each kind").get_by_role("row").nth(1)
    first.get_by_role("link", name=re.compile("Compare with mine")).click()
    harness.settle(page)
    assert urlsplit(page.url).path == "/compare"
    assert query(page)["plans"][0].startswith("weights=fp8&tp=4;")
    page.go_back()
    harness.settle(page, charts=2)
    assert verified(page) == said
    row = first.get_by_role("cell").all_inner_texts()
    assert f"{row[0]} per million good tokens, {row[-1]} an hour" in said
    first.get_by_role("link", name=re.compile("Open plan")).click()
    harness.settle(page, charts=3)
    assert answer(page).startswith("Fits. ")
    assert urlsplit(page.url).path == "/"
    assert "at_batch" in query(page)
    assert "accelerators" not in query(page)


def test_a_click_on_the_front_names_its_plan(open_page: OpenPage) -> None:
    page = search(open_page(WIDE))
    chart = page.get_by_test_id("stVegaLiteChart").first
    expect(page.get_by_text("A click on a point names its plan")).to_be_visible()
    mark = chart.locator("svg g.mark-symbol path").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#vg-tooltip-element")).to_contain_text("For a user")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    harness.settle(page, charts=2)
    expect(page.get_by_text(re.compile(r"tok/s for a user, .* of a GPU\.")).last).to_be_visible()
    opened = (
        page.get_by_test_id("stHtml").filter(has_text="of a GPU.").get_by_role("link", name=re.compile("Open plan"))
    )
    pairs = parse_qs(urlsplit(opened.get_attribute("href")).query)
    assert "at_batch" in pairs
    spin(page, "TPOT SLA, ms").fill("40")
    spin(page, "TPOT SLA, ms").press("Enter")
    harness.settle(page)
    assert answer(page).startswith("Old answer. Cheapest: ")
    expect(page.get_by_text("Inputs changed since this run.", exact=False)).to_be_visible()
    assert harness.axe_violations(page) == [], "what is dimmed can be read"


def press_and_cancel(page: Page) -> float:
    """How long after a press there is progress [ms]; the search is cancelled then."""
    page.evaluate("() => { window.pressed = 0; window.told = 0; }")
    page.get_by_role("button", name=re.compile("Search")).click()
    page.wait_for_function("() => window.told")
    waited = float(page.evaluate("() => window.told - window.pressed"))
    expect(page.get_by_test_id("stProgress")).to_contain_text(re.compile(r"of [\d,]+ parts"))
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("h1").first).to_have_text("The search was cancelled.")
    harness.settle(page)
    return waited


def test_progress_is_there_at_once_and_cancel_works(open_page: OpenPage, remark: Callable[[str], None]) -> None:
    """A machine that is busy with something else may spoil three rounds, not four."""
    page = open_page(LONG)
    page.evaluate(WATCH)
    times = []
    while len(times) < 4 and min(times, default=PROGRESS_MS + 1) > PROGRESS_MS:
        times.append(press_and_cancel(page))
    remark(f"optimise page: press to progress {', '.join(f'{each:.0f}' for each in times)} ms")
    assert min(times) <= PROGRESS_MS * BUSY_MACHINE


def test_a_second_reader_is_not_slowed(open_page: OpenPage, remark: Callable[[str], None]) -> None:
    """A machine that is busy with something else may spoil three rounds, not four."""
    other, page = open_page("?weights=fp8&tp=4", charts=3), open_page(LONG)
    times: list[float] = []
    while len(times) < 4 and min(times, default=OTHERS_SECONDS) >= OTHERS_SECONDS:
        page.get_by_role("button", name=re.compile("Search")).click()
        expect(page.get_by_test_id("stProgress")).to_contain_text(re.compile(r"of [\d,]+ parts"))
        times.append(change(other, "8" if len(times) % 2 == 0 else "2"))
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("h1").first).to_have_text("The search was cancelled.")
    said = ", ".join(f"{1e3 * each:.0f}" for each in times)
    remark(f"optimise page: beside a search a second visitor's change is answered in {said} ms")
    assert min(times) < OTHERS_SECONDS * BUSY_MACHINE


def change(page: Page, degree: str) -> float:
    """How long a plan takes to show another degree [s]."""
    before, start = answer(page), time.monotonic()
    page.get_by_role("radio", name=degree, exact=True).click(force=True)
    expect(page.locator("h1").first).not_to_have_text(before)
    return time.monotonic() - start


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_everybody_can_use_it(open_page: OpenPage, width: int, theme: str) -> None:
    page = search(open_page(WIDE, width=width, theme=theme))
    assert harness.axe_violations(page) == []
    assert harness.overflow(page) == 0
    first = page.get_by_role("table", name="Best of each kind").get_by_role("row").nth(1)
    box = first.get_by_role("link", name=re.compile("Open plan")).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width, "the way on from a plan is in sight without scrolling sideways"
