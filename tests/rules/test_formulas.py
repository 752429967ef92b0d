"""A formula is a straight line with units and a source, it is documented, and its displayed form is its code."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

import pytest

from tests.formulas import registered

FORMULAS = registered()
CROOKED = (
    ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.With, ast.comprehension, ast.Lambda, ast.NamedExpr, ast.Starred,
    ast.BoolOp, ast.Subscript, ast.Raise, ast.Assert, ast.Await, ast.Yield, ast.YieldFrom,
)  # fmt: skip
"""What would make the shown line differ from what runs, or differ between one plan and a table of them."""

UNIT = re.compile(r"#\s*\[[^\]]+\]\s*$")

NAMES = pytest.mark.parametrize("name", sorted(FORMULAS))


def source_of(name):
    return textwrap.dedent(inspect.getsource(FORMULAS[name].function))


def function_of(name):
    return ast.parse(source_of(name)).body[0]


@NAMES
def test_a_formula_is_a_docstring_assignments_and_one_return(name):
    first, *assignments, last = function_of(name).body
    assert isinstance(first, ast.Expr)
    assert isinstance(first.value, ast.Constant)
    assert isinstance(last, ast.Return)
    assert last.value is not None
    for line in assignments:
        assert isinstance(line, ast.Assign), ast.unparse(line)
        assert [type(target) for target in line.targets] == [ast.Name], ast.unparse(line)


@NAMES
def test_a_formula_has_no_branch_and_no_loop(name):
    body = function_of(name).body
    assert [ast.unparse(node) for line in body for node in ast.walk(line) if isinstance(node, CROOKED)] == []


@NAMES
def test_a_name_is_given_once(name):
    """A second value under one name would make the worked lines contradict each other."""
    function = function_of(name)
    given = [argument.arg for argument in function.args.args + function.args.kwonlyargs]
    made = [line.targets[0].id for line in function.body if isinstance(line, ast.Assign)]
    assert len({*given, *made}) == len(given) + len(made)


@NAMES
def test_every_line_ends_with_its_unit(name):
    rows = source_of(name).splitlines()
    for line in function_of(name).body[1:]:
        assert UNIT.search(rows[line.end_lineno - 1]), ast.unparse(line)


@NAMES
def test_the_last_line_has_the_unit_of_the_formula(name):
    last = source_of(name).splitlines()[function_of(name).body[-1].end_lineno - 1]
    assert f"[{FORMULAS[name].unit}]" in last


@NAMES
def test_a_formula_has_a_source_a_unit_and_a_sentence(name):
    entry = FORMULAS[name]
    assert entry.source
    assert entry.unit
    assert entry.sentence.endswith("."), entry.sentence


@NAMES
def test_a_formula_only_calls_numpy(name):
    """A call of another function would hide arithmetic from the reader."""
    calls = [node.func for line in function_of(name).body for node in ast.walk(line) if isinstance(node, ast.Call)]
    assert {ast.unparse(call).split(".")[0] for call in calls} <= {"np"}


@NAMES
def test_a_formula_is_in_the_documents(name, root):
    assert f"### {name} [" in (root / "docs" / "FORMULAS.md").read_text(encoding="utf-8")
