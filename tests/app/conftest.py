"""Fixtures of the browser tests: one server and one Chromium for all, fresh pages that must behave.

A test asks for `open_page` and gets a page at rest:

    @pytest.mark.browser
    def test_plan_fits(open_page):
        page = open_page("?model=llama-3.1-70b&tp=4", charts=2)
        assert page.get_by_text("Fits.", exact=False).is_visible()

When the test ends, its pages must have reported no console error, have asked no other host for anything, have drawn
no error box, and have left no traceback or warning in the server's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.app import browser as harness


@pytest.fixture(scope="session")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Server]:
    """The dashboard as `make run` serves it, on a free port, with an empty home folder."""
    with harness.serve(root / "app.py", tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The installed Chromium; fails with a sentence when there is none."""
    try:
        harness.chromium()
    except harness.BrowserMissingError as missing:
        pytest.fail(str(missing), pytrace=False)
    with sync_playwright() as playwright:
        chromium = harness.launch(playwright)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser, server: harness.Server) -> Iterator[Callable[..., Page]]:
    """`open_page(query="", charts=0, width=1440, height=1240, theme="light", locale="en-US")`: a page at rest."""
    opened: list[tuple[Page, harness.Faults]] = []
    server.new_alarms()

    def open_one(query: str = "", charts: int = 0, **look: Any) -> Page:
        page, faults = harness.new_page(browser, **look)
        opened.append((page, faults))
        page.goto(f"{server.url}/{query.lstrip('/')}")
        return harness.settle(page, charts=charts)

    yield open_one

    boxes = [text for page, _ in opened for text in page.locator('[data-testid="stException"]').all_inner_texts()]
    for page, _ in opened:
        page.context.close()
    assert not [line for _, faults in opened for line in faults.console], "the console reported errors"
    assert not [url for _, faults in opened for url in faults.external], "the page asked another host"
    assert not boxes, "the page shows an exception"
    assert not server.new_alarms(), "the server's log holds tracebacks or warnings"
