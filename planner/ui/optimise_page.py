"""The Optimise page: inputs, the search that runs for them, and its answer; never the answer to other inputs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

import streamlit as st

from planner.errors import Fault, InputError
from planner.optimise.answer import Answer
from planner.optimise.question import Question
from planner.specs.scenario import Scenario
from planner.ui import (
    optimise_around,
    optimise_blocks,
    optimise_inputs,
    optimise_refusal,
    optimise_share,
    optimise_tasks,
    optimise_verify,
    show,
    state,
)
from planner.ui import optimise_sentences as sentences
from planner.ui.optimise_run import Desk, View
from planner.ui.optimise_words import known_word, word
from planner.ui.worker import LONGEST
from planner.units import show as shown

SEARCH: Final = Desk("search")
POLL_SECONDS: Final = 0.15
SOON_SECONDS: Final = 0.3
"""How long a page waits for a small search, before it shows progress instead."""


def page() -> None:
    """Draw the page for the sidebar's scenario."""
    if refused := optimise_inputs.read_address():
        optimise_refusal.draw(refused, optimise_inputs.accept)
        return
    head, mine = st.container(key="optimise_head"), state.current()
    with show.card(word("space"), "card_space"):
        optimise_inputs.draw(mine)
        buttons = st.container(horizontal=True, gap="small", vertical_alignment="center", key="search_buttons")
        panel = st.container(key="search_panel")
    optimise_inputs.write_address()
    try:
        asked = optimise_inputs.question(mine)
    except InputError as error:
        _contradict(head, buttons, error.faults)
        return
    view = _started(asked)
    with buttons:
        _buttons(asked, view)
    with panel:
        _panel(asked, view)
    with head:
        _headline(view, mine)
    if view.state == "done":
        _results(view.value, mine)
        if view.value.winner is not None or view.value.nearest is not None:
            optimise_share.row(view.value)
    elif view.old is not None:
        _old(view.old)


def _contradict(head: Any, buttons: Any, faults: Sequence[Fault]) -> None:
    """Inputs that ask nothing that can be answered; the last answer stays, as an old one."""
    SEARCH.cancel()
    missing = [fault.value for fault in faults if known_word(f"title_without_{fault.value}")]
    with head:
        if len(missing) == len(faults) == 1:
            show.answer(word(f"title_without_{missing[0]}"))
            show.finding(word(f"without_{missing[0]}"))
        else:
            show.answer(word("title_contradiction"))
            show.finding(word("contradiction_why"))
            optimise_refusal.listed(faults)
    with buttons:
        st.button(word("search"), key="_search", icon=":material/search:", disabled=True)
        st.button(word("cancel"), key="_cancel", icon=":material/close:", disabled=True)
        _measured()
    if (last := SEARCH.last()) is not None:
        with head:
            _notice(last)
        _old(last)


def _started(asked: Question) -> View:
    """What there is for a question; a small one is searched without being asked to, and given a moment."""
    view = SEARCH.view(asked)
    if view.state != "idle" or not optimise_inputs.small(asked):
        return view
    SEARCH.start(optimise_tasks.search, asked, asked)
    begun = SEARCH.view(asked)
    if begun.job is not None:
        begun.job.wait(SOON_SECONDS)
    return SEARCH.view(asked)


def _buttons(asked: Question, view: View) -> None:
    """Search or cancel, and the shortcut to all measured accelerators; they keep their places."""
    busy = view.state == "running"
    label = word("again") if view.state not in ("idle", "running", "done") else word("search")
    st.button(
        label, key="_search", icon=":material/search:", on_click=SEARCH.start,
        args=(optimise_tasks.search, asked, asked), disabled=busy or view.state == "done",
    )  # fmt: skip
    st.button(word("cancel"), key="_cancel", icon=":material/close:", on_click=SEARCH.cancel, disabled=not busy)
    _measured()


def _measured() -> None:
    """The shortcut to all measured accelerators."""
    st.button(
        word("measured"), key="_measured", icon=":material/speed:", help=word("measured_help"),
        on_click=optimise_inputs.choose_measured,
    )  # fmt: skip


def _panel(asked: Question, view: View) -> None:
    """How far the search is, asked for again and again while it runs.

    The bar is always there, unseen while nothing runs: nothing jumps when a search begins, and the browser need not
    fetch it then.
    """
    st.fragment(_progress, run_every=POLL_SECONDS if view.state == "running" else None)(asked, view)


def _progress(asked: Question, view: View) -> None:
    """One look at the search."""
    if view.state != "running" or view.job is None:
        st.progress(0.0, text=show.plain(_rest(view)))
        return
    if not view.job.running:
        st.rerun()
    now = view.job.progress()
    share = now.done / now.total if now.total else 0.0
    text = word("waiting") if view.job.waiting else sentences.progress(now, asked)
    st.progress(min(1.0, share), text=show.plain(text))


def _rest(view: View) -> str:
    """What stands where progress stood."""
    if view.state == "done":
        return sentences.counts(view.value)
    return view.reason or word(f"{view.state}_why")


def _headline(view: View, mine: Scenario) -> None:
    """The answer as the page's first words, or why there is none."""
    if view.state == "done":
        _answer(view.value, mine)
    elif view.old is None:
        show.answer(word(f"title_{view.state}", limit=shown(LONGEST, "s")))
    elif view.state == "idle":
        _notice(view.old)
        with st.container(key="old_head"):
            show.answer(word("old_headline", said=_said(view.old, False)))
    else:
        show.answer(word(f"title_{view.state}", limit=shown(LONGEST, "s")))
        _notice(view.old)


def _said(answer: Answer, live: bool) -> str:
    """The headline of an answer."""
    if answer.winner is None and answer.nearest is None:
        return optimise_around.headline(answer, live)
    return sentences.headline(answer) + optimise_verify.ending(answer, live)


def _answer(answer: Answer, mine: Scenario) -> None:
    """The headline of an answer to the inputs shown, and the ways on from it."""
    show.answer(_said(answer, True))
    optimise_blocks.under_headline(answer, mine)
    if answer.winner is None:
        optimise_around.relaxations(answer)
    optimise_verify.warning(answer)


def _results(answer: Answer, mine: Scenario, live: bool = True) -> None:
    """Everything that is said of an answer; of an old one, what is known of it."""
    if answer.nearest is not None:
        optimise_blocks.best(answer, mine)
        optimise_verify.card(answer, mine, live)
    if answer.winner is None:
        optimise_blocks.counts(answer)
        if answer.front:
            optimise_blocks.front(answer, mine)
        return
    optimise_blocks.best(answer, mine)
    optimise_verify.card(answer, mine, live)
    optimise_blocks.front(answer, mine)
    grid = st.grid(2, min_column_width=430, gap="small", key="optimise_cards")
    with grid:
        optimise_around.prices(answer, live)
        optimise_blocks.counts(answer)
    optimise_around.sensitivity(answer, live)


def _notice(old: Answer) -> None:
    """That what follows is the answer to other inputs, with the way back to them."""
    with st.container(key="old_notice", gap="small"):
        st.badge(word("old_badge"), icon=":material/history:", color="orange")
        back = show.anchor(optimise_inputs.address(old.question), word("old_back"))
        st.html(f'<p style="margin:0">{escape(word("old"))} {back}.</p>')


def _old(old: Answer) -> None:
    """The answer to other inputs, dimmed, beside the plan of those inputs: the page keeps its shape."""
    with st.container(key="old_answer"):
        _results(old, old.question.scenario, live=False)
