"""What is not modelled and by how much it matters; and how a document of the repository is drawn on a page."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final

import streamlit as st

from planner.ui import show
from planner.ui.theme import mode, palette
from planner.ui.trust_words import word

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
"""A link to another file of the repository: from the page it would lead nowhere."""

CELLS: Final = re.compile(r"(?<!\\)\|")
INLINE: Final = (
    (re.compile(r"`([^`]+)`"), r'<code style="font-size:.85em">\1</code>'),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\*([^*]+)\*"), r"<em>\1</em>"),
    (re.compile(r"\[([^\]]+)\]\((https://[^)\s]+)\)"), r'<a href="\2">\1</a>'),
)
"""Markup inside a line of our own documents."""


def section() -> None:
    """The limits, as the document of the repository."""
    st.header(word("limits"), anchor=False)
    draw(without_title(document("LIMITS.md")) or word("no_limits"))


def draw(text: str) -> None:
    """A document of ours: its text as Markdown, its tables so that they fit a phone."""
    for is_table, part in parts(text):
        if is_table:
            st.html(table(part))
        else:
            st.markdown(show.typeset(part), anchors=False)


def parts(text: str) -> list[tuple[bool, str]]:
    """A document cut where tables begin and end; whether each piece is a table."""
    grouped = groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    return [(is_table, "\n".join(lines).strip()) for is_table, lines in grouped]


def table(text: str) -> str:
    """HTML of a table: of words it is a list whose rows stack where the page is narrow, of figures it scrolls by itself."""
    head, rule, *body = [[cell.strip() for cell in CELLS.split(line.strip().strip("|"))] for line in text.splitlines()]
    return _figures(head, body) if any(cell.endswith(":") for cell in rule) else _words(head, body)


def _words(head: list[str], rows: list[list[str]]) -> str:
    """What is said of each first cell, side by side where there is room, below each other where there is none."""
    grid = palette(mode()).grid
    row = f"display:flex;flex-wrap:wrap;column-gap:1.5rem;padding:.45rem 0;border-bottom:1px solid {grid}"
    said = "".join(
        f'<div style="{row}"><dt style="flex:3 1 270px;font-weight:600">{inline(first)}</dt>'
        + "".join(_said(name, cell) for name, cell in zip(head[1:], rest, strict=True))
        + "</div>"
        for first, *rest in rows
    )
    return f'<dl style="margin:0;padding:0;font-size:.93rem;overflow-wrap:anywhere">{said}</dl>'


def _said(name: str, cell: str) -> str:
    """One cell after the first, with the title of its column."""
    muted = palette(mode()).muted
    title = f'<span style="color:{muted}">{inline(name)}:</span> ' if name else ""
    return f'<dd style="flex:2 1 200px;margin:0">{title}{inline(cell)}</dd>'


def _figures(head: list[str], rows: list[list[str]]) -> str:
    """Figures in columns, in a frame that scrolls sideways."""
    grid, muted = palette(mode()).grid, palette(mode()).muted
    look = f"padding:.3rem .6rem;border-bottom:1px solid {grid};font-weight:400;white-space:nowrap;text-align:"
    titles = "".join(
        f'<th scope="col" style="{look}{"right" if at else "left"};color:{muted}">{inline(cell)}</th>'
        for at, cell in enumerate(head)
    )
    body = "".join(
        f'<tr><th scope="row" style="{look}left">{inline(first)}</th>'
        + "".join(f'<td style="{look}right">{inline(cell)}</td>' for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    name = escape(word("accuracy"))
    styled = "border-collapse:collapse;font-size:.93rem;font-variant-numeric:tabular-nums;margin:0"
    return (
        f'<div tabindex="0" role="region" aria-label="{name}" style="overflow-x:auto">'
        f'<table aria-label="{name}" style="{styled}"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def inline(text: str) -> str:
    """HTML of a line of Markdown as our documents write it: code, bold, links to the web; all else is escaped."""
    said = escape(show.typeset(text).replace("\\|", "|"))
    for pattern, made in INLINE:
        said = pattern.sub(made, said)
    return said


@cache
def document(name: str) -> str:
    """A document of the repository; empty when this copy does not have it."""
    path = DOCS / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def without_title(text: str) -> str:
    """A document without the heading that the page already has, and without links that lead nowhere from here."""
    lines = [line for line in text.splitlines() if not line.startswith(("# ", "<!--"))]
    return LINK.sub(r"\1", "\n".join(lines)).strip()


def headline(text: str) -> str:
    """The first chapter of a document: what stands between its title and its second heading."""
    return without_title(text).partition("\n## ")[0].strip()


def chapter(text: str, title: str) -> str:
    """What stands under a second heading of a document; empty when it has none of this title."""
    return without_title(text).partition(f"\n## {title}\n")[2].partition("\n## ")[0].strip()
