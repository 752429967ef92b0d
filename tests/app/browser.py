"""Drive the dashboard in a real Chromium: serve, open, settle, look.

The pieces are plain functions, so that tests (through the fixtures of conftest.py) and the script that takes the
README's screenshots use the same ones.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from axe_playwright_python.sync_playwright import Axe
from PIL import Image, ImageChops
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Request

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --font-render-hinting=none --force-color-profile=srgb"
).split()
LOCAL = {"", "127.0.0.1", "localhost"}
PROBE = re.compile(r"/[a-z]+/_stcore/(?:health|host-config)$")
"""Where Streamlit's own start looks for its server first, when the address has a page's path."""

LOG_ALARMS = ("Traceback", "Uncaught app ", "deprecat", "Warning:", "not a valid config option")
START_SECONDS = 60
ACTION_MS = 20_000

# The app's script has run, nothing is marked stale, and no chart is a skeleton.
IDLE = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    return app !== null
        && app.dataset.testScriptState === 'notRunning'
        && (app.dataset.testConnectionState ?? 'CONNECTED') === 'CONNECTED'
        && document.querySelector('[data-stale="true"], [data-testid="stSkeleton"]') === null
        && document.fonts.status === 'loaded';
}"""
CONTENT_HEIGHT = """() => Math.max(
    document.documentElement.scrollHeight,
    ...Array.from(document.querySelectorAll('[data-testid="stMain"], [data-testid="stSidebarContent"]'),
        (box) => box.getBoundingClientRect().right > 0 ? box.scrollHeight + box.getBoundingClientRect().top : 0))"""


class BrowserMissingError(Exception):
    """No Chromium on this machine."""


def chromium() -> str:
    """Path of the installed Chromium; a missing one is an error, never a skipped test."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise BrowserMissingError(
        "Browser tests need Chromium, and none is on PATH: run `apt-get install chromium`, or `bash .ci/run`, which does."
    )


# --- server ---------------------------------------------------------------------------------------


@dataclass
class Server:
    """A dashboard that answers at `url`; `new_alarms` are the log lines since last asked that should not be there."""

    url: str
    log: Path
    _read: int = 0

    def new_alarms(self) -> list[str]:
        """Log lines that tell of a traceback, a warning or a deprecation."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        fresh, self._read = lines[self._read :], len(lines)
        return [line for line in fresh if any(alarm.lower() in line.lower() for alarm in LOG_ALARMS)]


@contextmanager
def serve(script: Path, home: Path) -> Iterator[Server]:
    """Run `streamlit run script` on a free port with `home` as its home folder until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Server(f"http://127.0.0.1:{port}", home / "streamlit.log")
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true"]
    command += [f"--server.port={port}", "--server.address=127.0.0.1", "--browser.gatherUsageStats=false"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    with server.log.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment | {"HOME": str(home)}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _wait_until_healthy(server, process)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_healthy(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(f"{server.url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.05)
    tail = "\n".join(server.log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:])
    raise RuntimeError(f"The dashboard did not become healthy within {START_SECONDS} s. Its log ends:\n{tail}")


# --- page -----------------------------------------------------------------------------------------


def launch(playwright: Playwright) -> Browser:
    """The installed Chromium, headless, with flags that make it silent and its pictures repeatable."""
    return playwright.chromium.launch(executable_path=chromium(), args=FLAGS)


@dataclass
class Faults:
    """What a page must not do: report an error, or ask another host for anything."""

    console: list[str] = field(default_factory=list)
    external: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Write down the page's faults from now on."""
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        probes = PROBE.search(str(message.location.get("url", "")))
        if message.type == "error" and not probes:
            self.console.append(f"{message.text} ({message.location.get('url', '')})")

    def _see(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in {"data", "blob"} and (parts.hostname or "") not in LOCAL:
            self.external.append(request.url)

    def __bool__(self) -> bool:
        return bool(self.console or self.external)


def new_page(
    browser: Browser,
    width: int = 1440,
    height: int = 1240,
    theme: Literal["light", "dark"] = "light",
    locale: str = "en-US",
) -> tuple[Page, Faults]:
    """A blank page in a context of its own (no cookies or storage from other tests), and the list of its faults."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        reduced_motion="reduce",
        locale=locale,
        timezone_id="UTC",
        device_scale_factor=1,
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(ACTION_MS)
    page, faults = context.new_page(), Faults()
    faults.watch(page)
    return page, faults


def go(page: Page, url: str) -> Page:
    """Load an address and wait until the dashboard has drawn it."""
    page.goto(url)
    return settle(page)


def settle(page: Page, charts: int = 0, quiet: float = 0.3, timeout: float = ACTION_MS / 1000) -> Page:
    """Wait until the dashboard has been idle for `quiet` seconds, with at least `charts` Vega charts drawn.

    A single idle look is not enough: for some milliseconds after a click the run that it causes has not begun.
    """
    deadline, idle_since = time.monotonic() + timeout, None
    while time.monotonic() < deadline:
        drawn = page.locator('[data-testid="stVegaLiteChart"] :is(svg, canvas)').count()
        if drawn < charts or not page.evaluate(IDLE):
            idle_since = None
        elif idle_since is None:
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since >= quiet:
            return page
        page.wait_for_timeout(30)
    raise TimeoutError(
        f"The dashboard did not come to rest within {timeout:.0f} s, with {charts} charts, at {page.url}"
    )


# --- looking --------------------------------------------------------------------------------------


def screenshot(page: Page, path: Path | None = None, whole: bool = True) -> Image.Image:
    """A picture of the page once two frames in a row agree; `whole` makes the window as tall as the content."""
    if whole and page.viewport_size:
        height = max(page.viewport_size["height"], int(page.evaluate(CONTENT_HEIGHT)))
        page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
        settle(page)
    frame = _frame(page)
    for _ in range(20):
        page.wait_for_timeout(100)
        previous, frame = frame, _frame(page)
        if same_picture(previous, frame):
            break
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.save(path, optimize=True)
    return frame


def _frame(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide"))).convert("RGB")


def same_picture(one: Image.Image, other: Image.Image, tolerance: int = 8) -> bool:
    """Whether no channel of any pixel differs by more than `tolerance` of 255, which is above the raster's noise."""
    if one.size != other.size:
        return False
    extrema: Any = ImageChops.difference(one, other).getextrema()
    return all(high <= tolerance for _, high in extrema)


def axe_violations(page: Page, ignore: frozenset[str] = frozenset()) -> list[str]:
    """Accessibility faults that axe finds on the page as it stands, one line each; `ignore` holds axe's rule names."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['html'][:160]}"
        for rule in found
        if rule["id"] not in ignore
        for node in rule["nodes"]
    ]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window; 0 when nothing needs sideways scrolling."""
    return int(page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth"))
