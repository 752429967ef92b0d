"""Small pieces of a page: text that cannot turn into markup, verdicts, tiles, cards and lazily drawn tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Final, Literal

import pyarrow as pa
import streamlit as st

from planner.ui.text import say
from planner.ui.theme import mode, palette
from planner.units import DASH

Tone = Literal["off", "normal", "inverse"]
ROW_PIXELS: Final = 29
MARKUP: Final = re.compile(r"[\\`*_\[\]<>$~:^|&@]|^[#+=-]|(?<=www)\.", re.IGNORECASE)
PERCENT: Final = re.compile(r"(?<=\d) ?%(?![0-9A-Fa-f])")
NUMBERED: Final = re.compile(r"^(\s*\d+)([.)])(?=\s|$)")


def typeset(text: str) -> str:
    """Text in which every percentage is written alike: with a space that does not break."""
    return PERCENT.sub("\u00a0%", text)


def plain(text: str) -> str:
    """Text as it is typeset, with every character that Markdown could take for markup made literal."""
    return NUMBERED.sub(r"\1\\\2", MARKUP.sub(r"\\\g<0>", typeset(text)))


def answer(text: str) -> None:
    """The page's first words: the answer, as its one top heading."""
    st.title(plain(text), anchor=False)


def finding(text: str) -> None:
    """What a chart shows, in a sentence above it."""
    st.markdown(plain(text))


def verdict(holds: bool | None, yes: str, no: str, unknown: str = "") -> None:
    """One verdict in words, with an icon: never by colour alone."""
    if holds is None:
        st.badge(plain(unknown), icon=":material/help:", color="gray")
    elif holds:
        st.badge(plain(yes), icon=":material/check:", color="green")
    else:
        st.badge(plain(no), icon=":material/close:", color="red")


def hint(text: str) -> None:
    """That there is more to read further down."""
    st.badge(plain(text), icon=":material/info:", color="gray")


def tile(
    label: str, value: str, remark: str, tone: Tone = "off", source: str | None = None, below: str | None = None
) -> None:
    """One figure with what it means below it, how sure it is below that, and where it comes from behind its question mark."""
    with st.container(border=True, height="stretch", gap=None):
        _figure(label, value, remark, tone, source)
        if below:
            st.caption(plain(below))


def _figure(label: str, value: str, remark: str, tone: Tone, source: str | None) -> None:
    """The figure of a tile."""
    st.metric(
        label,
        plain(value),
        None if remark == DASH else plain(remark),
        delta_color=tone,
        delta_arrow="off",
        help=source and plain(source),
    )


@contextmanager
def card(title: str, key: str, *, stretch: bool = False) -> Iterator[None]:
    """A bordered part of the page with its heading; it ends where it ends, or stretches to its neighbour's height."""
    with st.container(border=True, height="stretch" if stretch else "content", key=key):
        st.header(title, anchor=False)
        yield


def table(
    frame: pa.Table,
    alt: str,
    formats: Mapping[str, str | int] | None = None,
    height: int | Literal["auto", "content"] = "auto",
) -> None:
    """A table whose cells are shown as they are; `formats` holds a number's format, or the pixels of a column of words."""
    columns = {
        name: st.column_config.NumberColumn(format=form)
        if isinstance(form, str)
        else st.column_config.TextColumn(width=form)
        for name, form in (formats or {}).items()
    }
    st.dataframe(
        frame, hide_index=True, alt=alt, column_config=columns, height=height, row_height=ROW_PIXELS, placeholder=DASH
    )


def figures(
    name: str, header: Sequence[str], rows: Sequence[Sequence[str]], words: frozenset[int] = frozenset()
) -> None:
    """A small table of finished figures: plain HTML, a megabyte lighter than a data grid.

    Args:
        name: what a screen reader calls the table.
        header: titles of the columns; empty for none.
        rows: cells; the first of each row names it.
        words: columns that hold words and so stand to the left; figures stand to the right.
    """
    head = f"<thead><tr>{_cells(header, words, title=True)}</tr></thead>" if header else ""
    body = "".join(f"<tr>{_cells(row, words)}</tr>" for row in rows)
    look = "width:100%;border-collapse:collapse;font-size:.93rem;font-variant-numeric:tabular-nums;margin:0"
    st.html(f'<table aria-label="{escape(name)}" style="{look}">{head}<tbody>{body}</tbody></table>')


def terms(rows: Sequence[tuple[str, str]]) -> None:
    """Terms and what is said of each, below it: for texts too long to stand side by side."""
    said = "".join(
        f'<dt style="font-weight:600">{escape(term)}</dt><dd style="margin:0 0 .6rem">{escape(typeset(text))}</dd>'
        for term, text in rows
    )
    st.html(f'<dl style="margin:0;padding:0;font-size:.93rem;overflow-wrap:anywhere">{said}</dl>')


def _cells(texts: Sequence[str], words: frozenset[int], title: bool = False) -> str:
    """Cells of one row of `figures`; titles of columns in the muted ink."""
    ink = palette(mode())
    look = f"border-bottom:1px solid {ink.grid};padding:.3rem .5rem;font-weight:400;vertical-align:top"
    look += f";color:{ink.muted}" if title else ""
    sides = [
        "left;overflow-wrap:anywhere" if at in words else "right;white-space:nowrap" if at else "left"
        for at in range(len(texts))
    ]
    names = ['th scope="col"' if title else 'th scope="row"' if at == 0 else "td" for at in range(len(texts))]
    return "".join(
        f'<{tag} style="{look};text-align:{side}">{escape(typeset(text))}</{tag[:2]}>'
        for tag, side, text in zip(names, sides, texts, strict=True)
    )


def behind(title: str, key: str, body: Callable[[], None]) -> None:
    """Something drawn only once the reader opens it."""
    holder = st.expander(title, type="compact", key=key, on_change="rerun")
    if holder.open:
        with holder:
            body()


def anchor(href: str, label: str) -> str:
    """HTML of a same-tab link, a page load of its own; both texts are escaped."""
    return f'<a href="{escape(href)}" target="_self" style="color:{palette(mode()).link}">{escape(label)}</a>'


def lines(texts: Sequence[str]) -> None:
    """A list of sentences."""
    st.markdown("\n".join(f"- {plain(text)}" for text in texts))


def refused(title: str, why: str, rows: Mapping[str, Sequence[str]]) -> None:
    """A designed state without numbers: what is refused, and why, as plain cells."""
    st.title(plain(title), anchor=False)
    st.markdown(plain(why))
    st.dataframe(pa.table(dict(rows)), hide_index=True, alt=say("link_refused"), height="content")
