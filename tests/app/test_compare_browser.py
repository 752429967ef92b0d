"""The Compare page in a real browser: the address is the comparison, there and back, and everybody can read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from planner.catalog.scenarios import load_preset
from planner.compare import comparison, comparison_from, comparison_link
from planner.export import from_csv
from planner.share import pinned
from planner.specs.scenario import Scenario
from planner.ui.compare_state import opening
from tests.app import browser as harness

OpenPage = Callable[..., Page]
PAIR = (pinned(Scenario(tp=4, weights="fp8")), pinned(Scenario(tp=8)))


def own(page: Page) -> dict[str, str]:
    """The page's own parameters in the address."""
    found = parse_qs(urlsplit(page.url).query, keep_blank_values=True)
    return {name: values[0] for name, values in found.items() if name in ("plans", "against")}


def heading(page: Page) -> str:
    return page.locator("h1").first.inner_text().replace("\u00a0", " ")


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    harness.settle(page, charts=3)


@pytest.mark.browser
def test_the_address_is_the_comparison(open_page: OpenPage) -> None:
    page = open_page("compare", charts=3)
    assert heading(page) == "C is cheapest: $0.272 per million good tokens, 10 % less than B and D."
    assert own(page) == {}
    expect(page.get_by_text("C serves 22.1× the requests of A", exact=False)).to_be_visible()

    press(page, "Remove C")
    assert comparison_from(own(page)["plans"]) == (*opening()[:2], opening()[3])
    page.get_by_role("radio", name="B", exact=True).click()
    harness.settle(page, charts=3)
    assert own(page)["against"] == "B"
    after, address = heading(page), page.url
    shown = page.get_by_test_id("stMain").inner_text()

    page.reload()
    harness.settle(page, charts=3)
    assert (heading(page), page.url) == (after, address)
    assert page.get_by_test_id("stMain").inner_text() == shown

    page.get_by_role("link", name="Trust", exact=True).click()
    page.get_by_role("heading", name="Why believe this?").wait_for()
    harness.settle(page)
    assert own(page) == {}
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_role("heading", name="What differs").wait_for()
    harness.settle(page, charts=3)
    assert (heading(page), own(page)) == (after, own_of(address))


def own_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


@pytest.mark.browser
def test_stepping_back_undoes_a_removal(open_page: OpenPage) -> None:
    page = open_page("compare", charts=3)
    press(page, "Remove D")
    press(page, "Remove C")
    assert len(comparison_from(own(page)["plans"])) == 2
    page.go_back()
    harness.settle(page, charts=3)
    assert len(comparison_from(own(page)["plans"])) == 3
    expect(page.get_by_role("heading", name="Plan C")).to_be_visible()
    page.go_back()
    harness.settle(page, charts=3)
    assert own(page) == {}
    expect(page.get_by_role("heading", name="Plan D")).to_be_visible()


@pytest.mark.browser
def test_plans_are_added_from_the_sidebar_and_from_a_link(open_page: OpenPage) -> None:
    page = open_page(comparison_link(PAIR, "compare") + "&preset=llama70b-fp8-c-real&isl=512", charts=3)
    assert "preset" not in page.url
    assert comparison_from(own(page)["plans"]) == PAIR
    page.get_by_role("button", name="Add or replace a plan").click()
    press(page, "Take the plan of the sidebar")
    assert comparison_from(own(page)["plans"]) == (*PAIR, pinned(load_preset("llama70b-fp8-c-real").with_(isl=512)))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add or replace a plan").click()
    page.get_by_role("textbox", name="Link").fill("https://host/?tp=2&weights=fp8")
    page.keyboard.press("Enter")
    harness.settle(page, charts=3)
    press(page, "Take this link")
    assert comparison_from(own(page)["plans"])[3] == pinned(Scenario(tp=2, weights="fp8"))
    page.get_by_role("spinbutton", name="Output tokens").fill("128")
    page.keyboard.press("Enter")
    harness.settle(page, charts=3)
    assert len(comparison_from(own(page)["plans"])) == 4, "an input of the sidebar took the plans out of the address"
    assert parse_qs(urlsplit(page.url).query)["osl"] == ["128"]


@pytest.mark.browser
def test_a_plan_is_opened_and_files_are_saved(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(comparison_link(PAIR, "compare", 1), charts=3)
    for kind in ("csv", "json"):
        with page.expect_download() as saved:
            page.get_by_role("button", name=kind.upper(), exact=True).click()
        saved.value.save_as(tmp_path / f"comparison.{kind}")
    assert from_csv((tmp_path / "comparison.csv").read_bytes()) == PAIR
    found = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    start = page.url.partition("/compare")[0]
    assert found["link"] == comparison_link(PAIR, f"{start}/compare", 1)
    assert found["plans"]["A"]["link"].startswith(f"{start}/?")
    page.get_by_role("button", name="Link", exact=False).last.click()
    expect(page.get_by_text(found["link"], exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Open B as plan").click()
    page.get_by_role("heading", name="Memory per GPU").wait_for()
    harness.settle(page, charts=3)
    assert parse_qs(urlsplit(page.url).query)["tp"] == ["8"]
    assert urlsplit(page.url).path == "/"


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_everybody_can_use_it(open_page: OpenPage, width: int, theme: str) -> None:
    page = open_page("compare", charts=3, width=width, height=844, theme=theme)
    assert harness.axe_violations(page) == []
    assert harness.overflow(page) == 0
    charts = page.get_by_test_id("stVegaLiteChart")
    words = charts.nth(0).text_content() or ""
    assert all(name in words for name in "ABCD")
    assert "SLA 50 ms" in words
    assert "C  $0.272" in (charts.nth(1).text_content() or "")
    charts.nth(0).scroll_into_view_if_needed()
    box = charts.nth(0).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#vg-tooltip-element")).to_contain_text("TPOT of C")


@pytest.mark.browser
def test_a_refused_comparison_names_plan_and_field(open_page: OpenPage) -> None:
    page = open_page("compare?plans=tp%3D4%3Btp%3Dbanana")
    assert heading(page) == "This comparison cannot be made as its link says."
    assert page.get_by_test_id("stVegaLiteChart").count() == 0
    press(page, "Continue with the article's plans")
    assert heading(page) == comparison(opening()).headline.replace("\u00a0", " ")
    assert own(page) == {}
