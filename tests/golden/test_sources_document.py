"""docs/SOURCES.md is what the code and the cases say today."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.sources.cases import CASES
from tests.sources.document import document as written


def test_the_document_is_fresh(document: Callable[[str, str], None]) -> None:
    document("docs/SOURCES.md", written())


def test_every_case_is_in_it(root: Path) -> None:
    text = (root / "docs" / "SOURCES.md").read_text(encoding="utf-8")
    assert [case["id"] for case in CASES if f"| {case['id']} |" not in text] == []


def test_every_error_is_marked_with_its_reason(root: Path) -> None:
    rows = (root / "docs" / "SOURCES.md").read_text(encoding="utf-8").splitlines()
    errors = [case for case in CASES if case["verdict"] == "seed_error" and "rule" not in case]
    marked = [row for row in rows if "| **error** |" in row and not row.startswith("| **error**")]
    assert len(marked) == len(errors)
    assert all(any(row.startswith(f"| {case['id']} |") and case["why"] in row for row in marked) for case in errors)
