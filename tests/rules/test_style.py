"""Functions and modules of the planner stay as small as their documentation promises."""

from __future__ import annotations

import ast
import statistics

import pytest

MEDIAN_LINES, LONG_LINES = 8, 30
MODULE_LINES = 300


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


@pytest.fixture(scope="module")
def modules(root):
    return {
        path.relative_to(root): path.read_text(encoding="utf-8") for path in sorted((root / "planner").rglob("*.py"))
    }


@pytest.fixture(scope="module")
def lengths(modules):
    """Lines of every function body, its docstring left out."""
    found = (
        node for text in modules.values() for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)
    )
    bodies = ([*node.body[1:]] if ast.get_docstring(node, clean=False) else node.body for node in found)
    return [body[-1].end_lineno - body[0].lineno + 1 if body else 0 for body in bodies]


def test_half_of_the_functions_fit_a_glance(lengths):
    assert statistics.median(lengths) <= MEDIAN_LINES


def test_nine_of_ten_functions_fit_half_a_screen(lengths):
    assert percentile(lengths, 0.9) < LONG_LINES


def test_nine_of_ten_modules_can_be_read_in_one_sitting(modules):
    assert percentile([len(text.splitlines()) for text in modules.values()], 0.9) <= MODULE_LINES
