"""The Traffic page in a real Chromium: from a link to an answer, its studies, a trace, and who can use it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.app import browser as harness
from tests.app.test_plan_browser import answer, query

pytestmark = [pytest.mark.browser, pytest.mark.alone]

LINK = "traffic?weights=fp8&tp=4&fix_replicas=2&osl=64&sla_pct=99&sla_ttft_ms=500&rate=10&requests=800&in_flight=24"
LONG = LINK.replace("requests=800", "requests=400000")
BROKEN = b"time_s,input_tokens,output_tokens\n0,1200,150\nnoon,950,210\n"
SOUND = b"time_s,input_tokens,output_tokens\n" + b"".join(b"%.1f,900,40\n" % (each / 10) for each in range(300))
ANSWERED = re.compile("^(Holds|Does not hold) at P99: ")
OpenPage = Callable[..., Page]


def run(page: Page) -> Page:
    """Press the button, unless the answer is remembered, and wait for it."""
    button = page.locator(".st-key-_traffic_run button")
    if button.is_enabled():
        button.click()
    expect(page.locator("h1").first).to_have_text(ANSWERED, timeout=30_000)
    return harness.settle(page, charts=5)


def study(page: Page, name: str, says: str) -> None:
    """Press the button of a study, and wait for what it says."""
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_text(re.compile(says)).first).to_be_visible(timeout=60_000)


def test_from_a_link_to_an_answer_and_its_studies(open_page: OpenPage, remark: Callable[[str], None]) -> None:
    page = open_page(f"{LINK}&repair_s=60", theme="dark")
    assert answer(page) == "Does it hold at P99? Press Run to simulate it."
    began = time.monotonic()
    said = answer(run(page))
    remark(f"traffic page: 800 requests from press to rest in {1e3 * (time.monotonic() - began):.0f} ms")
    expect(page.get_by_text("requests have their first token within")).to_be_visible()
    assert query(page)["rate"] == ["10"]

    study(page, "Find the knee", r"Keeps the SLA (up to|at every rate tried)")
    study(page, "Compare them", r"Best: |least bad: |has the lowest TTFT")
    study(page, "Fail one", r"One of 2 replicas fails")
    harness.settle(page, charts=9)
    assert harness.axe_violations(page) == []
    assert harness.overflow(page) == 0

    page.get_by_role("link", name="Model").click()
    harness.settle(page)
    assert "requests" not in query(page)
    page.get_by_role("link", name="Traffic").click()
    harness.settle(page, charts=9)
    assert answer(page) == said, "inputs and answers are kept while another page is shown"
    assert query(page)["requests"] == ["800"]


def test_progress_and_cancel(open_page: OpenPage) -> None:
    page = open_page(LONG)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("h1").first).to_have_text("Simulating.")
    expect(page.get_by_test_id("stProgress").first).to_contain_text(re.compile(r"of 400,000 requests served"))
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("h1").first).to_have_text("The run was cancelled.")
    harness.settle(page)


def test_a_trace_is_replayed_and_a_broken_one_refused(open_page: OpenPage) -> None:
    page = open_page(LINK.replace("&rate=10", ""))
    page.get_by_role("button", name="Replay a trace").click()
    page.locator('input[type="file"]').set_input_files({"name": "mine.csv", "mimeType": "text/csv", "buffer": SOUND})
    told = re.compile(r"^Replays mine\.csv: 300 requests in 29\.9 s, 10\.0 requests/s, 900 tokens in")
    expect(page.get_by_text(told)).to_be_visible()
    page.keyboard.press("Escape")
    harness.settle(page)
    said = answer(run(page))
    assert said.endswith("at 10.0 requests/s on 2\u00a0replicas.")

    page.get_by_role("button", name="Replay a trace").click()
    page.locator('input[type="file"]').set_input_files({"name": "broken.csv", "mimeType": "text/csv", "buffer": BROKEN})
    expect(page.get_by_text("broken.csv was not used: line 3: time_s is 'noon', must be a number.")).to_be_visible()
    page.keyboard.press("Escape")
    harness.settle(page)
    assert answer(page) == said, "what there was is kept"
    page.get_by_role("button", name="Back to generated requests").click()
    harness.settle(page)
    assert answer(page) == f"Old answer. {said}"


def test_it_can_be_used_by_keyboard_on_a_phone(open_page: OpenPage) -> None:
    page = open_page(LINK, width=390)
    page.get_by_role("button", name="Run", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1").first).to_have_text(ANSWERED, timeout=30_000)
    harness.settle(page, charts=5)
    assert harness.axe_violations(page) == []
    assert harness.overflow(page) == 0
