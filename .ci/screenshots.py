"""Take the pictures in docs/img from the running dashboard, with the harness that the browser tests use."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.app import browser as harness  # noqa: E402 - the path above comes first

IMAGES = ROOT / "docs" / "img"
PICTURES = {
    "plan-light.png": ("", "light"),
    "plan-dark.png": ("", "dark"),
}
"""File name: query string or path of the page, and theme."""


def main() -> None:
    """Serve the dashboard, visit each page, and save what it shows."""
    with (
        tempfile.TemporaryDirectory() as home,
        harness.serve(ROOT / "app.py", Path(home)) as server,
        sync_playwright() as playwright,
    ):
        chromium = harness.launch(playwright)
        for name, (where, theme) in PICTURES.items():
            page, faults = harness.new_page(chromium, theme=theme)
            harness.go(page, f"{server.url}/{where}")
            harness.screenshot(page, IMAGES / name)
            print(f"wrote docs/img/{name}" + (f", with faults: {faults}" if faults else ""))
            page.context.close()
        chromium.close()


if __name__ == "__main__":
    main()
