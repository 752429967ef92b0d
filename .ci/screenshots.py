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
PLAN = "?preset=llama70b-fp8-c-real"
PICTURES = {
    "plan-light.png": (PLAN, "light", 1440),
    "plan-dark.png": (PLAN, "dark", 1440),
    "plan-light-390.png": (PLAN, "light", 390),
    "plan-dark-390.png": (PLAN, "dark", 390),
    "optimise-light.png": ("optimise?gpu=h200-sxm&weights=fp8", "light", 1440),
    "compare-light.png": ("compare", "light", 1440),
    "fleet-light.png": ("fleet", "light", 1440),
    "traffic-light.png": ("traffic?model=llama-3.1-8b&qps=40&sla_ttft_ms=500&sla_tpot_ms=40&sla_pct=99", "light", 1440),
    "trust-light.png": ("trust", "light", 1440),
}
"""File name: query string or path of the page, theme, width in pixels."""

AROUND_MS = 4_000
"""How long a page is left alone before its picture is taken [ms]."""


def main() -> None:
    """Serve the dashboard, visit each page, and save what it shows."""
    with (
        tempfile.TemporaryDirectory() as home,
        harness.serve(ROOT / "app.py", Path(home)) as server,
        sync_playwright() as playwright,
    ):
        chromium = harness.launch(playwright)
        for name, (where, theme, width) in PICTURES.items():
            page, faults = harness.new_page(chromium, theme=theme, width=width)
            harness.go(page, f"{server.url}/{where}")
            if where.startswith("traffic"):
                page.get_by_role("button", name="Run", exact=True).click()
            harness.settle(page, charts=1)
            page.wait_for_timeout(AROUND_MS)  # what is worked out after the answer: prices of constraints, the tornado
            harness.screenshot(page, IMAGES / name)
            print(f"wrote docs/img/{name}" + (f", with faults: {faults}" if faults else ""))
            page.context.close()
        chromium.close()


if __name__ == "__main__":
    main()
