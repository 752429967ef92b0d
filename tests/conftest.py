"""What all tests share: where the repository is, a stopwatch, browser tests last, and a line of code measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

ALONE = {"best_of", "benchmark", "remark"}
"""Fixtures of tests that take times or report measurements: they run alone (`.ci/tests.py`)."""

REMARKS = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder that holds app.py."""
    return Path(__file__).parent.parent


@pytest.fixture
def best_of() -> Callable[..., float]:
    """`best_of(function, rounds=5)`: shortest of several timings [s], for tests that compare two of them."""

    def shortest(function: Callable[[], Any], rounds: int = 5) -> float:
        times = []
        for _ in range(rounds):
            start = perf_counter()
            function()
            times.append(perf_counter() - start)
        return min(times)

    return shortest


@pytest.fixture
def remark(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`remark(text)`: show a measurement under the test report, where a passing test has no other way to speak."""
    return request.config.stash[REMARKS].append


@pytest.fixture
def document(request: pytest.FixtureRequest, root: Path) -> Callable[[str, str], None]:
    """`document("docs/VALIDATION.md", text)`: fail when that file is stale; under `make docs` write it instead."""

    def compare(name: str, text: str) -> None:
        path = root / name
        if request.config.getoption("--update-docs"):
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            pytest.fail(f"{name} is stale: run `make docs`", pytrace=False)

    return compare


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-docs", action="store_true", help="write the documents that tests generate")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REMARKS] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: they are the slowest, and Playwright keeps an event loop in this thread from then on."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    for item in items:
        if ALONE.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("alone")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for text in config.stash[REMARKS]:
        terminalreporter.write_line(text)
