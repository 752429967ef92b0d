"""What is not modelled and by how much it matters, and how far predictions were from measurements."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import streamlit as st

from planner.ui.trust_words import word

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
"""A link to another file of the repository: from the page it would lead nowhere."""


def section() -> None:
    """The accuracy found, then the limits; both are documents of the repository."""
    st.header(word("accuracy"), anchor=False)
    st.markdown(headline(document("VALIDATION.md")) or word("no_accuracy"))
    st.header(word("limits"), anchor=False)
    st.markdown(without_title(document("LIMITS.md")) or word("no_limits"), anchors=False)


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
