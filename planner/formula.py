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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType
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

    @property
    def sentence(self) -> str:
        """The first sentence of its documentation."""
        return self.doc.split("\n\n")[0].replace("\n", " ")


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
    """One formula with one set of numbers in it, and the operators or tensors that have these numbers."""

    formula: Formula
    lines: tuple[Line, ...]
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """One recorded call of a formula."""

    formula: Formula
    arguments: Mapping[str, Any]
    result: Any


@dataclass(frozen=True)
class Recording:
    """Formula calls in order, and things that were made on the way: (number of calls before it, thing)."""

    calls: list[Call] = field(default_factory=list)
    marks: list[tuple[int, Any]] = field(default_factory=list)


REGISTRY: dict[str, Formula] = {}
_recording: ContextVar[Recording | None] = ContextVar("formula_recording", default=None)


def formula(source: str, unit: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a straight-line function.

    Args:
        source: where the equation comes from (paper, vendor document, article section, or `definition`).
        unit: unit of what it returns; several results are separated by commas.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        doc = inspect.getdoc(function) or ""
        entry = Formula(function.__name__, function.__module__, source, unit, doc, function)
        REGISTRY[entry.name] = entry

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            result = function(*args, **kwargs)
            taken = _recording.get()
            if taken is not None:
                bound = inspect.signature(function).bind(*args, **kwargs)
                bound.apply_defaults()
                taken.calls.append(Call(entry, bound.arguments, result))
            return result

        return recorded

    return register


@contextmanager
def recording() -> Iterator[Recording]:
    """Collect the formula calls made inside the block, in order."""
    taken = Recording()
    token = _recording.set(taken)
    try:
        yield taken
    finally:
        _recording.reset(token)


def mark(thing: object) -> None:
    """Note, while recording, that a thing has been made from the calls before it."""
    taken = _recording.get()
    if taken is not None:
        taken.marks.append((len(taken.calls), thing))


def explain(calls: Iterable[Call], subjects: Iterable[str] | None = None) -> tuple[Worked, ...]:
    """Work each distinct call line by line; calls with equal numbers are shown once, with all their subjects.

    Args:
        calls: recorded calls.
        subjects: what each call is about, in the order of the calls; empty texts are left out.
    """
    calls = tuple(calls)
    about = ("",) * len(calls) if subjects is None else tuple(subjects)
    found: dict[tuple[Formula, tuple[Line, ...]], dict[str, None]] = {}
    for call, subject in zip(calls, about, strict=True):
        named = found.setdefault((call.formula, _work(call)), {})
        named.update({subject: None} if subject else {})
    return tuple(Worked(entry, lines, tuple(named)) for (entry, lines), named in found.items())


def number(value: object) -> str:
    """A value as the worked lines print it: six significant digits, whole numbers in full; a column from first to last."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.size == 0:
        return str(value)
    flat = array.reshape(-1)
    if np.all(flat == flat[0]) or (flat != flat).all():
        return _one(flat[0])
    return f"{_one(flat[0])} … {_one(flat[-1])} ({flat.size:,} values)"


def _one(value: Any) -> str:
    """One number, or a truth."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    size = abs(float(value))
    if not np.isfinite(size):
        return str(float(value))
    whole = size == round(size) or size >= 1e6
    return f"{value:,.0f}" if whole and size < 1e13 else f"{value:.6g}"


@dataclass(frozen=True)
class _Slot:
    """A name in an expression: its text and the code that looks it up."""

    text: str
    code: CodeType


@dataclass(frozen=True)
class _Statement:
    """One statement of a formula, ready to run: `pieces` is the expression cut where its `slots` stand."""

    name: str
    expression: str
    code: CodeType
    pieces: tuple[str, ...]
    slots: tuple[_Slot, ...]
    unit: str


def _work(call: Call) -> tuple[Line, ...]:
    """Run a formula one statement at a time and write each with its numbers."""
    names, space = call.formula.function.__globals__, dict(call.arguments)
    lines = []
    for statement in _statements(call.formula):
        with np.errstate(all="ignore"):
            value = eval(statement.code, names, space)  # noqa: S307 - our own source
        shown = _with_numbers(statement, names, space)
        space[statement.name] = value
        lines.append(Line(statement.name, statement.expression, shown, _shown(value), statement.unit))
    return tuple(lines)


def _shown(value: Any) -> str:
    """A result, or several of them."""
    return ", ".join(number(part) for part in value) if isinstance(value, tuple) else number(value)


def _with_numbers(statement: _Statement, names: dict[str, Any], space: dict[str, Any]) -> str:
    """The expression with each name and attribute replaced by its number."""
    filled = [_fill(slot, names, space) for slot in statement.slots]
    return "".join(piece + text for piece, text in zip(statement.pieces, [*filled, ""], strict=True))


def _fill(slot: _Slot, names: dict[str, Any], space: dict[str, Any]) -> str:
    """The number that a name stands for, in parentheses when it is negative; the name itself when it is no number."""
    value = eval(slot.code, names, space)  # noqa: S307 - our own source
    if not isinstance(value, bool | int | float | np.ndarray | np.generic):
        return slot.text
    text = number(value)
    return f"({text})" if text.startswith("-") else text


@functools.cache
def _statements(entry: Formula) -> tuple[_Statement, ...]:
    """Statements of a formula after its docstring, each with the unit in its trailing comment.

    A return that only hands back a name is left out: the line above has shown it.
    """
    text = textwrap.dedent(inspect.getsource(entry.function))
    found = (_statement(entry, node, text.splitlines()) for node in _body(ast.parse(text)))
    return tuple(statement for statement in found if statement.expression != statement.name)


def _body(tree: ast.Module) -> list[ast.stmt]:
    """The statements of the one function in a parsed source, its docstring left out."""
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    return function.body[1:] if ast.get_docstring(function) else function.body


def _statement(entry: Formula, node: ast.stmt, rows: list[str]) -> _Statement:
    """One statement, compiled."""
    name, expression = _named(entry, _Bare().visit(node))
    unit = re.search(r"#\s*\[([^\]]*)\]", rows[(node.end_lineno or node.lineno) - 1])
    pieces, slots = _pieces(expression)
    code = _compiled(expression)
    return _Statement(name, ast.unparse(expression), code, pieces, slots, unit.group(1) if unit else entry.unit)


class _Bare(ast.NodeTransformer):
    """Takes `np.asarray(x)` off an expression: it tells the type checker something and changes no number."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The argument of `np.asarray`, any other call as it is."""
        self.generic_visit(node)
        return node.args[0] if ast.unparse(node.func) == "np.asarray" else node


def _named(entry: Formula, node: ast.stmt) -> tuple[str, ast.expr]:
    """Name and expression of a statement; what a formula returns has the formula's name."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.Return(value=ast.Name(id=name) as value):
            return name, value
        case ast.Return(value=ast.expr() as value):
            return entry.name, value
        case _:
            raise TypeError(f"formula {entry.name} is not a straight line: {ast.unparse(node)}")


def _pieces(expression: ast.expr) -> tuple[tuple[str, ...], tuple[_Slot, ...]]:
    """An expression's text cut at every name that stands for a value, and these names; functions stay in the text."""
    slots: list[_Slot] = []

    class Cut(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            node.args = [self.visit(argument) for argument in node.args]
            node.keywords = [self.visit(keyword) for keyword in node.keywords]
            return node

        def visit_Name(self, node: ast.Name) -> ast.AST:
            return self._slot(node)

        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            return self._slot(node)

        def _slot(self, node: ast.expr) -> ast.AST:
            slots.append(_Slot(ast.unparse(node), _compiled(node)))
            return ast.Name(f"_{len(slots) - 1}_", ast.Load())

    copied = Cut().visit(ast.parse(ast.unparse(expression), mode="eval").body)
    parts = re.split(r"\b_(\d+)_\b", ast.unparse(copied))
    return tuple(parts[::2]), tuple(slots[int(at)] for at in parts[1::2])


def _compiled(node: ast.expr) -> CodeType:
    """An expression, ready to be evaluated."""
    return compile(ast.unparse(node), "formula", "eval")
