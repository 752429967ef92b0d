"""Parts of the Compare page; each draws one of them from a comparison."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from planner.catalog.version import catalogue_version
from planner.compare import Comparison, comparison_csv, comparison_json, comparison_link
from planner.compare.quantities import DOLLARS, Quantity
from planner.compare.sentences import MEANING, listed
from planner.ui import compare_charts, compare_data, show
from planner.ui.compare_state import AGAINST, Held, choose
from planner.ui.compare_table import table
from planner.ui.compare_words import label, ranks, word
from planner.ui.link import page_address, start_address
from planner.ui.marks import draw
from planner.ui.sharing import POPOVER_PIXELS
from planner.ui.text import say
from planner.ui.theme import mode
from planner.units import show as shown

PER_GPU = Quantity("goodput_tok_s_gpu", lambda plan: plan.goodput_tok_s_gpu, False, lambda x: shown(x))


def headline(found: Comparison) -> None:
    """The answer, then each plan against the one that is chosen."""
    show.answer(found.headline)
    names = list(found.names)
    show.lines(found.sentences)
    if fields := found.asked_differently:
        st.warning(
            show.plain(word("questions", fields=listed([label(field) for field in fields]))), icon=":material/help:"
        )
    if then := [name for name, s in zip(names, found.scenarios, strict=True) if s.c not in (None, catalogue_version())]:
        said = word("catalogue_changed", names=listed(then), now=catalogue_version())
        st.info(show.plain(said), icon=":material/history:")
    st.caption(show.plain(MEANING))


def reference(found: Comparison) -> None:
    """Which plan the others are held against."""
    st.session_state[AGAINST] = found.names[found.against]
    st.segmented_control(
        word("against"), list(found.names), key=AGAINST, required=True, on_change=choose, help=word("against_help")
    )  # fmt: skip


def differences(found: Comparison) -> None:
    """What differs; every field on demand."""
    with show.card(word("differences"), "card_differences"):
        with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="compare_choices"):
            reference(found)
            everything = st.toggle(word("all_fields"), key="_compare_all", persist_state="session")
        if not found.differences:
            show.finding(word("nothing"))
        if everything or found.differences:
            table(found, everything)
            rest = "" if everything else f" {word('rest')}"
            st.caption(show.plain(word("marks", name=found.names[found.against]) + rest))


def curves(found: Comparison) -> None:
    """TPOT over batch of every plan."""
    lines = [compare_data.drawn(plan) for plan in found.plans]
    with show.card(word("curves"), "card_curves", stretch=True):
        if not any(lines):
            show.finding(word("curves_none"))
            return
        missing = [name for name, line in zip(found.names, lines, strict=True) if not line]
        more = f" {word('no_curve', names=listed(missing))}" if missing else ""
        show.finding(word("curves_said") + more)
        draw(compare_charts.curves(mode(), len(lines)), compare_data.curves(found), word("curves_alt"))
        formats = {f"{name}, ms": "%.1f" for name in found.names}
        show.behind(
            say("table"),
            "_compare_curves",
            lambda: show.table(compare_data.curve_table(found), word("curves"), formats, 300),
        )


def cost(found: Comparison) -> None:
    """What a good token costs."""
    _bars(found, DOLLARS, "cost", "$,f")


def rate(found: Comparison) -> None:
    """What a GPU gives."""
    _bars(found, PER_GPU, "rate", ",f")


def _bars(found: Comparison, quantity: Quantity, key: str, form: str) -> None:
    """A figure of every plan: best first in words, and a bar each."""
    with show.card(word(key), f"card_compare_{key}", stretch=True):
        said = ranks(found, quantity)
        show.finding(word(f"{key}_said", ranks=said) if said else word("unranked"))
        if said:
            spec = compare_charts.bars(mode(), len(found.plans), word(f"{key}_axis"), form)
            data = compare_data.bars(found, quantity)
            draw(spec, data, word(f"{key}_alt"))
            if data["bars"]["low"].null_count < len(found.plans):
                st.caption(show.plain(word("bands_said")))


def share(found: Comparison, held: Held) -> None:
    """Everything that carries the comparison elsewhere."""
    base, start = page_address(), start_address()
    with show.card(word("share"), "card_compare_share"):
        show.finding(word("share_hint"))
        with st.container(horizontal=True, gap="small", key="compare_share"):
            with st.popover(say("link"), icon=":material/link:", key="compare_link_menu"):
                link = comparison_link(held.plans, base, held.against)
                st.code(link, language=None, wrap_lines=True, width=POPOVER_PIXELS)
            _download("csv", "text/csv", lambda: comparison_csv(found, start).encode())
            _download("json", "application/json", lambda: comparison_json(found, start, base).encode())


def _download(kind: str, mime: str, made: Callable[[], bytes]) -> None:
    """A file that is made once it is asked for."""
    st.download_button(
        say(kind),
        made,
        f"comparison.{kind}",
        mime,
        key=f"_compare_{kind}",
        on_click="ignore",
        icon=":material/download:",
    )
