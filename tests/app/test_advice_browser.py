"""Advice and techniques in a real browser: links that apply, nothing too wide, nothing that a screen reader trips over."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page

from tests.app import browser as harness

pytestmark = pytest.mark.browser

BAD = "?weights=int4&tp=4"
MOE = "?model=deepseek-v3&weights=fp8&gpu=h200-sxm&tp=8&ep=8"
OpenPage = Callable[..., Page]


def test_a_link_of_advice_applies_in_the_same_tab_and_back_undoes_it(open_page: OpenPage) -> None:
    page = open_page(BAD, charts=3)
    page.get_by_role("link", name="Apply weights=fp8").first.click()
    harness.settle(page, charts=3)
    assert parse_qs(urlsplit(page.url).query) == {"weights": ["fp8"], "tp": ["4"]}
    assert page.locator("h1").first.inner_text().startswith("Fits")
    page.go_back()
    harness.settle(page, charts=3)
    assert parse_qs(urlsplit(page.url).query)["weights"] == ["int4"]


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_the_open_table_is_readable_by_everybody_and_scrolls_by_itself(
    open_page: OpenPage, width: int, theme: str
) -> None:
    page = open_page(MOE, charts=3, width=width, theme=theme)
    page.get_by_text("Compare techniques").click()
    page.get_by_role("table", name="Techniques").wait_for()
    harness.settle(page)
    assert harness.axe_violations(page) == []
    assert harness.overflow(page) == 0


def test_a_technique_applies(open_page: OpenPage) -> None:
    page = open_page("?weights=fp8&tp=4", charts=3)
    page.get_by_text("Compare techniques").click()
    page.get_by_role("link", name="Apply kv=fp8").click()
    harness.settle(page, charts=3)
    assert parse_qs(urlsplit(page.url).query) == {"weights": ["fp8"], "tp": ["4"], "kv": ["fp8"]}


def test_links_are_high_enough_for_a_finger_and_no_text_is_cut(open_page: OpenPage) -> None:
    page = open_page(MOE, charts=3, width=390)
    page.get_by_text("Facts about this plan").first.click()
    page.get_by_text("Compare techniques").click()
    page.get_by_role("table", name="Techniques").wait_for()
    harness.settle(page)
    low = """() => [...document.querySelectorAll('.st-key-card_advice a, .st-key-card_techniques a')]
        .map(link => link.getBoundingClientRect().height).filter(height => height < 24).length"""
    cut = """() => [...document.querySelectorAll('.st-key-card_advice *')]
        .filter(box => box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1).length"""
    inner = """() => [...document.querySelectorAll('.st-key-card_advice *')]
        .filter(box => /auto|scroll/.test(getComputedStyle(box).overflowY) && box.scrollHeight > box.clientHeight + 1).length"""
    assert (page.evaluate(low), page.evaluate(cut), page.evaluate(inner)) == (0, 0, 0)


def test_names_stay_in_sight_while_the_table_scrolls_on_a_phone(open_page: OpenPage) -> None:
    page = open_page(MOE, charts=3, width=390)
    page.get_by_text("Compare techniques").click()
    page.get_by_role("table", name="Techniques").wait_for()
    harness.settle(page)
    left = """() => {
        const box = document.querySelector('.st-key-card_techniques div[role=region]');
        box.scrollLeft = 300;
        const from = box.getBoundingClientRect().left;
        const ends = where => [...box.querySelectorAll(where)].map(cell => cell.getBoundingClientRect().left - from);
        const header = ends('thead th[scope=col]')[0];
        return [box.scrollLeft, header, Math.max(...ends('th[scope=row]')), Math.min(...ends('th[scope=row]')),
                Math.min(...ends('th[scope=rowgroup] span'))];
    }"""
    scrolled, header, last, first, group = page.evaluate(left)
    assert scrolled == 300
    assert (header, last, first) == (0, 0, 0)
    assert 0 <= group < 30
