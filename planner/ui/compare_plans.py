"""The plans of the Compare page: what each is, the way to it, and how plans are added, replaced and removed."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from planner.catalog.scenarios import preset, preset_ids
from planner.compare.comparison import Comparison
from planner.compare.link import FEWEST, LETTERS, MOST
from planner.plan import Plan
from planner.promised import MEDIAN
from planner.setting import resolve
from planner.ui import compare_state as held
from planner.ui import show
from planner.ui.compare_charts import SYMBOLS, hues
from planner.ui.compare_words import described, served, word
from planner.ui.link import anchor, refused_rows
from planner.ui.text import say
from planner.ui.theme import mode, palette


def plans(found: Comparison) -> None:
    """A card a plan, and what changes them."""
    with st.grid(len(found.plans), min_column_width=200, gap="small", key="compare_plans"):
        for at in range(len(found.plans)):
            _card(found, at)
    with st.container(horizontal=True, gap="small", key="compare_changes"):
        _change(found)
        if any(plan.scenario.profile == "textbook" for plan in found.plans):
            st.button(
                word("real"),
                icon=":material/science:",
                key="_compare_real",
                help=word("real_help"),
                on_click=held.take_twins,
            )
        if found.scenarios != held.opening():
            st.button(
                word("again"), icon=":material/restart_alt:", key="_compare_again", help=word("again_help"),
                on_click=held.start_again,
            )  # fmt: skip
    st.caption(show.plain(word("apart")))
    if faults := st.session_state.get(held.FAULTS):
        st.badge(word("paste_refused"), icon=":material/error:", color="red")
        st.dataframe(refused_rows(faults), hide_index=True, alt=word("paste_refused"))


def _card(found: Comparison, at: int) -> None:
    """One plan: its letter, what it is, its verdicts, the way to it, and the way out."""
    plan, name, ink = found.plans[at], LETTERS[at], palette(mode())
    with st.container(border=True, height="stretch", gap="small", key=f"compare_plan_{name}"):
        symbol = f'<span aria-hidden="true" style="color:{hues(ink)[at]}">{SYMBOLS[at]}</span>'
        st.html(f'<h2 style="margin:0;font-size:1.02rem;font-weight:600">{symbol} {word("plan_of", name=name)}</h2>')
        show.finding(described(plan))
        st.caption(show.plain(served(plan)))
        _verdicts(plan, name)
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"compare_ways_{name}"):
            st.html(show.anchor(anchor(plan.scenario), word("open_named", name=name)), width="content")
            st.button(
                word("remove", name=name), icon=":material/close:", key=f"_compare_remove_{name}", type="tertiary",
                on_click=held.remove, args=(at,), disabled=len(found.plans) <= FEWEST,
                help=word("two_at_least") if len(found.plans) <= FEWEST else None,
            )  # fmt: skip


def _verdicts(plan: Plan, name: str) -> None:
    """The three verdicts of the Plan page, each by itself."""
    engine, pct = resolve(plan.scenario).engine.name, plan.scenario.sla_pct
    impossible = plan.binds == "layout" and not plan.fits
    judged = plan.meets_sla if plan.fits and plan.tpot_ms is not None else None
    kept = say("sla") if pct == MEDIAN else say("sla_at", pct=f"{pct:g}")
    runs = None if impossible else plan.engine_ok
    with st.container(horizontal=True, gap="xsmall", key=f"compare_verdicts_{name}"):
        show.verdict(None if impossible else plan.fits, say("fits"), say("fits_not"), say("fits_unknown"))
        show.verdict(judged, kept, say("sla_not"), say("sla_unknown"))
        show.verdict(runs, say("engine_ok", engine=engine), say("engine_not", engine=engine), say("engine_unknown"))


def _change(found: Comparison) -> None:
    """Add a plan, or put another in the place of one."""
    with st.popover(word("change"), icon=":material/add:", key="compare_change"):
        count = len(found.plans)
        places = [*([LETTERS[count]] if count < MOST else []), *found.names]
        names = {each: word("instead" if each in found.names else "new", name=each) for each in places}
        place = st.selectbox(word("place"), places, format_func=lambda each: names[each], key=f"_compare_place_{count}")
        at = place or places[0]
        _take("sidebar", "tune", held.take_sidebar, at)
        titles = {each: preset(each).title for each in preset_ids()}
        st.selectbox(word("preset"), preset_ids(), format_func=lambda each: titles[each], key=held.PRESET)
        _take("preset_take", "bookmark", held.take_preset, at)
        st.text_input(word("paste"), key=held.PASTED, placeholder=word("paste_hint"))
        _take("paste_take", "link", held.take_pasted, at)


def _take(key: str, icon: str, taken: Callable[[str], None], place: str) -> None:
    """A button that puts a plan into a place."""
    st.button(
        word(key), icon=f":material/{icon}:", key=f"_compare_{key}", on_click=taken, args=(place,), width="stretch"
    )
