"""The Traffic page: inputs, the run that is made for them, and its answer; never the answer to other inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape
from typing import Any, Final

import streamlit as st

from planner.errors import Fault, HeadroomError, InputError
from planner.plan import Plan
from planner.simulate.expected import Expected, expected
from planner.simulate.run import offered
from planner.simulate.studies import Knee, rate_of
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import (
    optimise_refusal,
    show,
    state,
    traffic_blocks,
    traffic_doubt,
    traffic_inputs,
    traffic_share,
    traffic_studies,
    traffic_tasks,
    traffic_trace,
    words,
)
from planner.ui import traffic_sentences as sentences
from planner.ui.link import anchor
from planner.ui.optimise_run import Desk, View
from planner.ui.text import say
from planner.ui.traffic_tasks import Asked, Subject, Told
from planner.ui.traffic_words import word
from planner.ui.worker import LONGEST
from planner.units import show as shown
from planner.units import whole

RUN: Final = Desk("traffic")
POLL_SECONDS: Final = 0.15
SOON_SECONDS: Final = 0.4
"""How long a page waits for a short run, before it shows progress instead."""


def page() -> None:
    """Draw the page for the sidebar's scenario."""
    if refused := traffic_inputs.read_address():
        optimise_refusal.draw(refused, traffic_inputs.accept, word("link_refused_why"))
        return
    mine = state.current().with_(lang=None, c=None)
    head = st.container(key="traffic_head")
    try:
        plan = plan_of(mine)
    except HeadroomError as error:
        with head:
            show.refused(say("cannot"), str(error), {})
        return
    with show.card(word("settings"), "card_traffic"):
        buttons = st.container(horizontal=True, gap="small", vertical_alignment="center", key="run_buttons")
        panel = st.container(key="search_panel")
        held = traffic_trace.held()
        traffic_inputs.draw(mine, plan, None if held is None else held.trace)
        below = st.container(key="trace_panel", gap="small")
    try:
        asked = _asked(mine)
    except InputError as error:
        _refused(head, buttons, error.faults)
        return
    with below:
        traffic_trace.understood(asked.asked.traffic.rate)
    if _stands(plan):
        _drawn(asked, plan, head, buttons, panel)
    else:
        _no_plan(head, buttons, plan)


def _asked(mine: Scenario) -> Subject:
    """What the inputs ask; the address follows them.

    Raises:
        InputError: when inputs are refused.
    """
    traffic = traffic_inputs.traffic()
    traffic_inputs.write_address(traffic)
    held = traffic_trace.held()
    if held is None:
        return Subject(Asked(mine, traffic))
    return Subject(Asked(mine, traffic, held.digest), held.trace.requests)


def _stands(plan: Plan) -> bool:
    """Whether requests can run on a plan."""
    return plan.replicas is not None and plan.batch >= 1 and bool(plan.output_tok_s)


def _drawn(asked: Subject, plan: Plan, head: Any, buttons: Any, panel: Any) -> None:
    """The page of a plan that stands."""
    view = RUN.view(asked.asked)
    with buttons:
        _buttons(asked, view)
    with panel:
        st.fragment(_progress, run_every=POLL_SECONDS if view.state == "running" else None)(view)
    with head:
        _headline(view, asked, plan)
    if view.state == "done":
        _results(view.value)
    elif view.old is not None:
        with st.container(key="old_answer"):
            _results(view.old)
    traffic_studies.draw(asked, plan)
    if view.state == "done":
        traffic_share.row(view.value)


def _refused(head: Any, buttons: Any, faults: Sequence[Fault]) -> None:
    """Inputs that are refused; nothing runs."""
    RUN.cancel()
    with head:
        show.answer(word("title_contradiction"))
        show.finding(word("refused_why"))
        optimise_refusal.listed(faults)
    with buttons:
        _dead_buttons()


def _no_plan(head: Any, buttons: Any, plan: Plan) -> None:
    """A plan that holds no request: why, and the way out."""
    RUN.cancel()
    with head:
        show.answer(word("title_no_plan"))
        show.finding(word("no_plan_why", reason=plan.reason.strip().rstrip(".") or "–"))
        near = words.nearest(plan.scenario) if not plan.fits else words.keeping(plan.scenario)
        if near is not None:
            text, scenario = near
            way = "" if scenario is None else traffic_inputs.address(scenario, traffic_inputs.traffic())
            link = f" {show.anchor(way, say('open_nearest'))}" if way else ""
            st.html(f'<p style="margin:0">{escape(show.typeset(text))}{link}</p>')
        st.html(f'<p style="margin:0">{show.anchor(anchor(plan.scenario), word("open_plan"))}</p>')
    with buttons:
        _dead_buttons()


def _dead_buttons() -> None:
    """The buttons where nothing can run; they keep their places."""
    st.button(word("run"), key="_traffic_run", icon=":material/play_arrow:", type="primary", disabled=True)
    st.button(word("cancel"), key="_traffic_cancel", icon=":material/close:", disabled=True)
    traffic_trace.draw()


def _buttons(asked: Subject, view: View) -> None:
    """Run or cancel, and the trace; they keep their places."""
    busy, done = view.state == "running", view.state == "done"
    label, icon = ("up_to_date", ":material/check:") if done else ("run", ":material/play_arrow:")
    st.button(
        word(label), key="_traffic_run", icon=icon, type="primary", on_click=_start, args=(asked,),
        disabled=busy or done,
    )  # fmt: skip
    st.button(word("cancel"), key="_traffic_cancel", icon=":material/close:", on_click=RUN.cancel, disabled=not busy)
    traffic_trace.draw()


def _start(asked: Subject) -> None:
    """Begin a run, and give a short one a moment."""
    RUN.start(traffic_tasks.run, asked.asked, asked)
    begun = RUN.view(asked.asked)
    if begun.job is not None:
        begun.job.wait(SOON_SECONDS)


def _start_longer(asked: Subject, requests: int) -> None:
    """Ask for more requests, and begin."""
    traffic_inputs.choose(requests=requests)
    traffic = asked.asked.traffic.model_copy(update={"requests": requests})
    _start(replace(asked, asked=replace(asked.asked, traffic=traffic)))


def _progress(view: View) -> None:
    """One look at the run. The bar is always there, unseen while nothing runs, so that nothing jumps."""
    if view.state != "running" or view.job is None:
        rest = sentences.done_line(view.value) if view.state == "done" else view.reason or word(f"{view.state}_why")
        st.progress(0.0, text=show.plain(rest))
        return
    if not view.job.running:
        st.rerun()
    now = view.job.progress()
    share = now.done / now.total if now.total else 0.0
    text = word("running", done=whole(now.done), total=whole(now.total)) if now.total else word("starting")
    st.progress(min(1.0, share), text=show.plain(word("waiting") if view.job.waiting else text))


def _headline(view: View, asked: Subject, plan: Plan) -> None:
    """The answer as the page's first words, or why there is none."""
    if view.state == "done":
        _answer(view.value, asked)
        return
    if view.state == "idle" and view.old is not None:
        with st.container(key="old_head"):
            show.answer(word("old_headline", said=sentences.headline(view.old)))
        _notice(view.old)
        return
    pct = sentences.pct_of(asked.asked.scenario)
    show.answer(word(f"title_{view.state}", limit=shown(LONGEST, "s"), pct=pct))
    run_it = "" if view.state == "running" else f" {word('theory_run')}"
    show.finding(_by_theory(asked, plan) + run_it)
    if view.old is not None:
        st.caption(show.plain(word("old_beside")))


def _answer(told: Told, asked: Subject) -> None:
    """Whether it holds, and what to do where it does not."""
    show.answer(sentences.headline(told))
    st.caption(show.plain(sentences.context(told)))
    traffic_blocks.rests(told)
    if wanted := sentences.wanted(told):
        st.button(
            word("run_more", wanted=whole(wanted)), key="_traffic_more_requests", icon=":material/play_arrow:",
            on_click=_start_longer, args=(asked, wanted),
        )  # fmt: skip
    _advice(told, traffic_studies.known_knee(asked.asked))
    if tail := sentences.tail(told):
        promised = traffic_inputs.address(told.asked.scenario.with_(sla_pct=sentences.TAIL), told.asked.traffic)
        way = "" if told.asked.trace else f" {show.anchor(promised, word('p99_promise'))}"
        st.html(f'<p style="margin:0">{escape(show.typeset(tail))}{way}</p>')


def _advice(told: Told, knee: Knee | None) -> None:
    """What to do where it does not hold: a sentence and, where more replicas would do, the way to them."""
    said, plan = sentences.advice(told, knee), plan_of(told.asked.scenario)
    if not said:
        return
    count = sentences.needed(told, plan, knee)
    way = ""
    if count > told.replicas and not told.asked.trace:
        more = told.asked.scenario.with_(fix_replicas=max(count - told.asked.scenario.spare, 1))
        label = word("then_open", replicas=shown(float(count), "replicas"))
        fixed = told.asked.traffic.model_copy(update={"rate": told.rate})
        way = f" {show.anchor(traffic_inputs.address(more, fixed), label)}"
    st.html(f'<p style="margin:0">{escape(show.typeset(said))}{way}</p>')


def _by_theory(asked: Subject, plan: Plan) -> str:
    """What queue theory says at once."""
    rate = offered(asked.asked.scenario, asked.asked.traffic, plan)
    given = asked.requests is not None
    if asked.requests is not None and asked.asked.traffic.rate is None:
        rate = rate_of(asked.requests) or rate
    (found,) = _expected(asked.asked, plan, rate, given=given)
    return sentences.theory(found, asked.asked.scenario, plan, asked.asked.traffic.in_flight or plan.batch)


@lru_cache(maxsize=256)
def _expected(asked: Asked, plan: Plan, rate: float, *, given: bool) -> tuple[Expected, ...]:
    """Theory's answer, remembered."""
    return expected(asked.scenario, asked.traffic, plan, (rate,), given=given)


def _results(told: Told) -> None:
    """Everything that is said of a run."""
    traffic_blocks.tiles(told)
    traffic_blocks.spreads(told)
    traffic_doubt.caption(told.asked.scenario, told.asked.traffic, trace=bool(told.asked.trace))
    traffic_blocks.state(told)


def _notice(old: Told) -> None:
    """Why the answer is an old one, with the way back to its inputs."""
    with st.container(key="old_notice", gap="small"):
        if old.asked.trace:
            show.finding(word("old_trace"))
            return
        back = show.anchor(traffic_inputs.address(old.asked.scenario, old.asked.traffic), word("old_back"))
        st.html(f'<p style="margin:0">{escape(word("old"))} {back}.</p>')
