"""What the repository may hold and how its code may look: no prints, no giants, no traces of the machine it was made on."""

from __future__ import annotations

import ast
import importlib.util
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[2]
PLANNER = ROOT / "planner"

TOP_LEVEL = {
    "app.py", "planner", "presets", "tests", "docs", "deploy", ".streamlit", ".ci", "requirements.txt", "requirements-dev.txt",
    "README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".importlinter", ".gitignore", ".git",
}  # fmt: skip
MODULE_LINES = 400
FUNCTION_LINES = 60
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".csv",
    ".json",
    ".yaml",
    ".yml",
    ".txt",
    ".cfg",
    ".conf",
    ".sh",
    ".html",
    ".service",
    "",
}

MACHINE_PATH = re.compile(r"(?<![\w.:~/-])/(?:work|root|home)/\w+")
REGISTRY = re.compile(
    r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|deb[.]debian[.]org|proxy[.]golang"
    r"|--(?:extra-)?index-url|--find-links|--trusted-host",
    re.IGNORECASE,
)
MAKING = re.compile(
    r"\bissues? #?\d{1,2}\b|\b(?:this|last|next|previous|earlier|another) session\b|\bsub-?agents?\b|\bco-authored-by\b",
    re.IGNORECASE,
)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def ignored(path: Path) -> bool:
    """Whether .gitignore keeps this path out of the repository."""
    rules = [
        rule.strip("/") for rule in (ROOT / ".gitignore").read_text().split("\n") if rule and not rule.startswith("#")
    ]
    return any(fnmatch(part, rule) for part in path.relative_to(ROOT).parts for rule in rules)


def files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if ignored(path) or path.name == ".git":
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path


@cache
def modules() -> dict[str, ast.Module]:
    """Syntax trees of the planner by path from the root."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in files(PLANNER) if path.suffix == ".py"}


@cache
def texts() -> dict[str, str]:
    """Every text file of the repository, this one aside, by path from the root."""
    found = [path for path in files(ROOT) if path.suffix in TEXT and path != Path(__file__)]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def body_lines(function: Function) -> int:
    """Lines from the first statement to the last, the docstring aside; 0 when there is only a docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def public_functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Functions of a module, and methods of its public classes, whose names do not begin with an underscore."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, Function) and not node.name.startswith("_") and not is_overload(node):
            yield prefix + node.name, node


def is_overload(function: Function) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in function.decorator_list)


def unhinted(function: Function) -> list[str]:
    """Names of arguments without annotation; `return` when the result has none."""
    arguments = function.args
    named = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    starred = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    bare = [a.arg for a in named + starred if a.annotation is None and a.arg not in {"self", "cls"}]
    return bare + (["return"] if function.returns is None else [])


def matches(pattern: re.Pattern[str], skip: tuple[str, ...] = ()) -> list[str]:
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for name, text in texts().items()
        if not name.startswith(skip)
        for match in pattern.finditer(text)
    ]


# --- the tree ---------------------------------------------------------------------------------------


def test_top_level_holds_only_what_has_a_place_there() -> None:
    assert {path.name for path in ROOT.iterdir() if not ignored(path)} - TOP_LEVEL == set()


def test_no_path_of_the_machine_it_was_written_on() -> None:
    assert matches(MACHINE_PATH) == []


def test_no_package_index_is_named() -> None:
    """Where packages come from is the machine's business. Presets may cite a page of an index as their source."""
    assert matches(REGISTRY, skip=("presets",)) == []


def test_nothing_tells_how_it_was_made() -> None:
    """Text says what is and why; numbers of issues and talk of sessions belong to the history, not to the files."""
    assert matches(MAKING, skip=("presets", "tests/golden")) == []


def test_requirements_are_pinned() -> None:
    lines = [
        line.split("#")[0].strip()
        for name in ("requirements.txt", "requirements-dev.txt")
        for line in texts()[name].splitlines()
    ]
    assert [
        line for line in lines if line and line != "-r requirements.txt" and not re.fullmatch(r"[\w-]+==[\w.]+", line)
    ] == []


def test_links_between_documents_lead_somewhere() -> None:
    links = [
        (name, target)
        for name, text in texts().items()
        if name.endswith(".md")
        for target in re.findall(r"\]\(([^)#\s]+)", text)
        if "://" not in target
    ]
    assert [f"{name} -> {target}" for name, target in links if not (ROOT / name).parent.joinpath(target).exists()] == []


def test_documents_from_the_code_are_fresh(document: Callable[[str, str], None]) -> None:
    spec = importlib.util.spec_from_file_location("documents", ROOT / ".ci" / "docs.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    for name, text in generator.DOCUMENTS.items():
        document(name, text())


# --- the code ---------------------------------------------------------------------------------------


def test_planner_never_prints() -> None:
    calls = [
        f"{name}:{node.lineno}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"print", "breakpoint"}
    ]
    assert calls == []


def test_planner_asserts_nothing() -> None:
    """`python -O` drops assertions: wrong input is an exception of planner.errors, wrong code is found by tests."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]
    assert found == []


def test_what_is_imported_is_pinned() -> None:
    """A package that merely comes along with another one may leave with its next version."""
    trees = [*modules().values(), *(ast.parse(text) for name, text in texts().items() if name == "app.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    pinned = {line.split("==")[0].replace("-", "_") for line in texts()["requirements.txt"].splitlines()}
    assert {name.split(".")[0] for name in names} - pinned - set(sys.stdlib_module_names) - {"planner"} == set()


def test_modules_have_a_docstring_and_a_size_that_can_be_read() -> None:
    assert [name for name, tree in modules().items() if tree.body and not ast.get_docstring(tree)] == []
    assert {name: n for name in modules() if (n := len((ROOT / name).read_text().splitlines())) > MODULE_LINES} == {}


def test_functions_have_a_size_that_can_be_read(remark: Callable[[str], None]) -> None:
    lengths = {
        f"{name}:{function.lineno} {function.name}": body_lines(function)
        for name, tree in modules().items()
        for function in functions(tree)
    }
    if not lengths:
        pytest.fail("planner/ has no functions")
    ordered = sorted(lengths.values())
    longest = max(lengths, key=lambda where: lengths[where])
    remark(
        f"planner: {len(modules())} modules, {len(ordered)} functions; lines of a function body: "
        f"median {statistics.median(ordered):.0f}, 90th percentile {ordered[int(0.9 * (len(ordered) - 1))]}, "
        f"longest {lengths[longest]} ({longest})"
    )
    assert {where: n for where, n in lengths.items() if n > FUNCTION_LINES} == {}


def test_public_functions_are_documented_and_hinted() -> None:
    public = [
        (f"{name}: {path}", function)
        for name, tree in modules().items()
        for path, function in public_functions(tree.body)
    ]
    assert [where for where, function in public if not ast.get_docstring(function)] == []
    assert {where: missing for where, function in public if (missing := unhinted(function))} == {}
