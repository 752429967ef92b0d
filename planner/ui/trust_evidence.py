"""Lists of evidence: where predictions are bad and why, and what other tools are off by; our own files, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import streamlit as st

from planner.accuracy import Trouble, compared, errors
from planner.catalog.evidence import Peer, peers
from planner.predicted import served_points
from planner.ui import show
from planner.ui.theme import mode, palette
from planner.ui.trust_words import as_error, counted, word
from planner.units import whole

AT_ONCE: Final = 5
"""Troubles shown before the rest is opened."""

SAME_SOURCES: Final = ("S05_aic_inferencex_dump", "S06_aic_internal_gap")
"""Sources of the points that other tools were run on."""


@dataclass(frozen=True)
class Entry:
    """One row of a list: what it is about, its figures, what is said of it, and who says so.

    Attributes:
        source: an address; empty for none. `says` stands before it.
    """

    title: str
    figures: str
    texts: tuple[str, ...]
    source: str = ""
    date: str = ""
    says: str = ""


def entries(name: str, rows: Sequence[Entry]) -> None:
    """A list of evidence whose two columns stack where the page is narrow."""
    st.html(
        f'<dl aria-label="{escape(name)}" style="margin:0;padding:0;font-size:.93rem;overflow-wrap:anywhere">'
        + "".join(map(_entry, rows))
        + "</dl>"
    )


def _entry(row: Entry) -> str:
    """HTML of one row."""
    ink = palette(mode())
    look = f"display:flex;flex-wrap:wrap;column-gap:1.5rem;padding:.55rem 0;border-bottom:1px solid {ink.grid}"
    figures = f'<div style="font-weight:400;font-variant-numeric:tabular-nums">{_text(row.figures)}</div>'
    said = "".join(
        f'<div style="margin-top:.15rem;color:{ink.muted if at else ink.ink}">{_text(each)}</div>'
        for at, each in enumerate(row.texts)
    )
    title = f'<dt style="flex:2 1 240px;font-weight:600">{_text(row.title)}{figures}</dt>'
    return f'<div style="{look}">{title}<dd style="flex:5 1 300px;margin:0">{said}{_source(row)}</dd></div>'


def _text(text: str) -> str:
    return escape(show.typeset(text))


def _source(row: Entry) -> str:
    """Who says so, as a link that opens beside the page."""
    if not row.source:
        return ""
    ink = palette(mode())
    name, address = escape(row.source.removeprefix("https://")), escape(row.source)
    link = f'<a href="{address}" target="_blank" rel="noopener noreferrer" style="color:{ink.link}">{name}</a>'
    date = f'<span style="white-space:nowrap">{escape(row.date)}</span>'
    says = f"{_text(row.says)} " if row.says else ""
    return f'<div style="margin-top:.15rem;color:{ink.muted};font-size:.87rem">{says}{link}, {date}</div>'


def bad_groups(groups: Sequence[Trouble]) -> None:
    """Groups that are predicted badly, worst first: the worst at once, the rest when opened."""
    found = [_trouble(each) for each in groups]
    if not found:
        st.markdown(show.plain(word("troubles_none")))
        return
    st.markdown(show.plain(word("troubles_said")))
    entries(word("troubles"), found[:AT_ONCE])
    rest = found[AT_ONCE:]
    if rest:
        title = word("troubles_one_more") if len(rest) == 1 else word("troubles_more", count=whole(len(rest)))
        show.behind(title, "_trust_troubles", lambda: entries(title, rest))


def _trouble(each: Trouble) -> Entry:
    """A group with today's error."""
    found, known = each.errors, each.known
    figures = word(
        "trouble_figures",
        median=as_error(found.median),
        bias=f"{found.bias:.2f}",
        configurations=counted("configuration", found.configurations),
        points=counted("point", found.rows),
    )
    if known is None:
        return Entry(each.title, figures, (word("unexplained"),))
    return Entry(each.title, figures, (known.cause, known.evidence), known.source, known.date)


def other_tools() -> None:
    """What other tools are off by, ours first."""
    st.markdown(show.plain(word("peers_said")))
    entries(word("peers"), [*_ours(), *map(_peer, peers())])


def _ours() -> list[Entry]:
    """Our own error on the points that other tools were run on; nothing when this copy has none of them."""
    same = compared([point for point in served_points() if point.source_id in SAME_SOURCES], "TPOT")
    if not same:
        return []
    found = errors(same, "TPOT", "same sources")
    claim = f"{as_error(found.median)} · {word('peer_ours_metric')}"
    return [Entry(word("peer_ours"), claim, (word("peer_ours_conditions", points=whole(found.rows)),))]


def _peer(peer: Peer) -> Entry:
    """Another tool's figure, and whose it is."""
    figures, says = f"{peer.claim} · {peer.metric}", word(f"peer_{peer.kind}")
    return Entry(peer.tool, figures, (peer.conditions,), peer.source, peer.date, says)
