"""Tables of the Fleet page's answer: plain HTML that scrolls sideways by itself where the page is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import streamlit as st

from planner.ui import show
from planner.ui.theme import mode, palette

SIDE: Final = "clamp(.2rem,.9vw,.5rem)"
"""Space beside a cell: little of it where the page is narrow."""

SIZE: Final = "font-size:clamp(.8rem,2.6vw,.9rem)"
NARROWEST: Final = 5.4
"""Least width of a column of words beyond the second [rem]: what is longer wraps."""


TITLE: Final = 5
LONG: Final = 15
"""Least width of a title [rem] of more letters than these, so that it takes two lines rather than three."""


@dataclass(frozen=True)
class Way:
    """A cell that leads somewhere: its text, where to, and what a screen reader says."""

    text: str
    href: str
    name: str


Cells = Sequence[str | Way]


def table(name: str, header: Sequence[str], rows: Sequence[Cells], words: frozenset[int]) -> None:
    """A table of finished figures.

    Args:
        name: what a screen reader calls it.
        header: titles of the columns.
        rows: cells; the first of each row names it.
        words: columns that hold words and so stand to the left and wrap; figures stand to the right.
    """
    head = "".join(_title(at, text, words) for at, text in enumerate(header))
    body = "".join(f"<tr>{''.join(_cell(at, each, words) for at, each in enumerate(row))}</tr>" for row in rows)
    look = f"width:100%;border-collapse:separate;border-spacing:0;{SIZE};font-variant-numeric:tabular-nums;margin:0"
    said = escape(name)
    inside = f'<table aria-label="{said}" style="{look}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    st.html(f'<div tabindex="0" role="region" aria-label="{said}" style="overflow-x:auto">{inside}</div>')


def _look(at: int, words: frozenset[int]) -> str:
    """Where a cell's text stands; the first column stays while the others scroll."""
    ink = palette(mode())
    side = "left" if at in words or at == 0 else "right;white-space:nowrap"
    width = f";min-width:{NARROWEST}rem" if at in words and at > 1 else ""
    stuck = f";position:sticky;left:0;z-index:1;background:{ink.paper}" if at == 0 else ""
    edge = f"border-bottom:1px solid {ink.grid};padding:.3rem {SIDE};vertical-align:top;font-weight:400"
    return f"{edge};text-align:{side}{width}{stuck}"


def _title(at: int, text: str, words: frozenset[int]) -> str:
    """Title of a column, in the muted ink."""
    width = f";min-width:{TITLE}rem" if len(text) > LONG else ""
    look = _look(at, words).replace("white-space:nowrap", "white-space:normal") + width
    return f'<th scope="col" style="{look};color:{palette(mode()).muted}">{escape(text)}</th>'


def _cell(at: int, each: str | Way, words: frozenset[int]) -> str:
    """One cell; texts are escaped."""
    tag, look = ("th" if at == 0 else "td"), _look(at, words)
    scope = ' scope="row"' if at == 0 else ""
    return f'<{tag}{scope} style="{look}">{_text(each)}</{tag}>'


def _text(each: str | Way) -> str:
    """What stands in a cell."""
    if isinstance(each, str):
        return escape(show.typeset(each))
    colour = palette(mode()).link
    said = f'aria-label="{escape(each.name)}" style="color:{colour};white-space:nowrap"'
    return f'<a href="{escape(each.href)}" target="_self" {said}>{escape(each.text)}</a>'
