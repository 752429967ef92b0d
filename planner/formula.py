"""Formulas that explain themselves: the displayed formula is the code.

A function under `@formula` is a straight line: named intermediates, each with its unit in a trailing `# [unit]`
comment, no branch, no loop. The same lines compute one plan, a table of half a million, and, through `explain`, the
worked arithmetic that a reader sees.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Formula:
    """A registered formula: its name, its source in the literature, the unit of its result and the function itself."""

    name: str
    module: str
    source: str
    unit: str
    doc: str
    function: Callable[..., Any]


@dataclass(frozen=True)
class Line:
    """One line of a worked formula: `name = expression = expression with numbers = result [unit]`."""

    name: str
    expression: str
    numbers: str
    result: str
    unit: str


@dataclass(frozen=True)
class Worked:
    """One formula with one set of numbers in it."""

    formula: Formula
    lines: tuple[Line, ...]


REGISTRY: dict[str, Formula] = {}
_calls: ContextVar[list[tuple[Formula, dict[str, Any]]] | None] = ContextVar("formula_calls", default=None)


def formula(source: str, unit: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a straight-line function.

    Args:
        source: where the equation comes from (paper, vendor document, article section, or `definition`).
        unit: unit of what it returns; several results are separated by commas.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        entry = Formula(
            function.__name__, function.__module__, source, unit, inspect.getdoc(function) or "", function
        )
        REGISTRY[entry.name] = entry

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            calls = _calls.get()
            if calls is not None:
                bound = inspect.signature(function).bind(*args, **kwargs)
                calls.append((entry, dict(bound.arguments)))
            return function(*args, **kwargs)

        return recorded

    return register


@contextmanager
def recording() -> Iterator[list[tuple[Formula, dict[str, Any]]]]:
    """Collect the formula calls made inside the block, in order."""
    calls: list[tuple[Formula, dict[str, Any]]] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def explain(calls: list[tuple[Formula, dict[str, Any]]]) -> tuple[Worked, ...]:
    """Work each distinct recorded call line by line; calls with equal numbers are shown once."""
    worked = [Worked(entry, _work(entry, arguments)) for entry, arguments in calls]
    return tuple(dict.fromkeys(worked))


def number(value: object) -> str:
    """A value as the worked lines print it: six significant digits, one element of a column."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.size == 0:
        return str(value)
    first = float(array.reshape(-1)[0])
    if not np.isfinite(first):
        return str(first)
    return f"{first:,.0f}" if first == round(first) and abs(first) < 1e15 else f"{first:.6g}"


@functools.cache
def _source_lines(entry: Formula) -> tuple[tuple[ast.stmt, str], ...]:
    """Statements of a formula after its docstring, each with the unit in its trailing comment."""
    text = textwrap.dedent(inspect.getsource(entry.function))
    rows = text.splitlines()
    body = _body(ast.parse(text))
    units = {i + 1: match.group(1) for i, row in enumerate(rows) if (match := re.search(r"#\s*\[([^\]]*)\]", row))}
    return tuple((statement, units.get(statement.end_lineno or 0, "")) for statement in body)


def _body(tree: ast.Module) -> list[ast.stmt]:
    """The statements of the one function in a parsed source, its docstring left out."""
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    return function.body[1:] if ast.get_docstring(function) else function.body


def _work(entry: Formula, arguments: dict[str, Any]) -> tuple[Line, ...]:
    """Run a formula one statement at a time and write each with its numbers."""
    space = {**entry.function.__globals__, **arguments}
    lines = []
    for statement, unit in _source_lines(entry):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name, expression = statement.targets[0].id, statement.value
        elif isinstance(statement, ast.Return) and statement.value is not None:
            name, expression, unit = "result", statement.value, unit or entry.unit
        else:
            continue
        with np.errstate(all="ignore"):
            value = eval(compile(ast.Expression(expression), entry.name, "eval"), space)  # noqa: S307 - our own source
        space[name] = value
        lines.append(Line(name, ast.unparse(expression), _with_numbers(expression, space), _shown(value), unit))
    return tuple(line for line in lines if line.name != "result" or not _repeats(line, lines))


def _repeats(line: Line, lines: list[Line]) -> bool:
    """Whether a return line only hands back what lines above have shown."""
    names = {other.name for other in lines}
    return all(part.strip() in names for part in line.expression.strip("()").split(","))


def _shown(value: Any) -> str:
    """A result, or several of them."""
    return ", ".join(number(part) for part in value) if isinstance(value, tuple) else number(value)


def _with_numbers(expression: ast.expr, space: dict[str, Any]) -> str:
    """The expression with each name and attribute replaced by its number."""

    class Fill(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            node.args = [self.visit(argument) for argument in node.args]
            return node

        def visit_Name(self, node: ast.Name) -> ast.AST:
            return self._fill(node)

        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            return self._fill(node)

        def _fill(self, node: ast.expr) -> ast.AST:
            try:
                value = eval(compile(ast.Expression(node), "name", "eval"), space)  # noqa: S307 - our own source
            except (NameError, AttributeError):
                return node
            if isinstance(value, bool) or not isinstance(value, int | float | np.ndarray | np.number):
                return node
            return ast.Name(number(value), ast.Load())

    copied = ast.parse(ast.unparse(expression), mode="eval").body
    return ast.unparse(ast.fix_missing_locations(Fill().visit(copied)))
