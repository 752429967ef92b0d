"""The card "Does it hold?" of the Optimise page: the best of an answer simulated at the promised percentile."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import streamlit as st

from planner.optimise.answer import Answer, Progress
from planner.optimise.question import Question
from planner.optimise.tails import allowed, is_on_means
from planner.optimise.trial import Trial
from planner.optimise.verdict import good_words, percentile_words, plan_words, verdict
from planner.optimise.verified import TOP, Verified, requests_to_try
from planner.share import to_link
from planner.specs.scenario import Scenario
from planner.specs.spelling import decimal
from planner.ui import optimise_tasks, show
from planner.ui.advice_block import link
from planner.ui.link import anchor
from planner.ui.optimise_blocks import Row, listing
from planner.ui.optimise_data import choices
from planner.ui.optimise_run import Desk, View
from planner.ui.optimise_verify_words import word
from planner.ui.worker import LONGEST
from planner.units import DASH, percent, significant, whole
from planner.units import show as shown

VERIFIED: Final = Desk("verified")
POLL_SECONDS: Final = 0.4

SMALL: Final = 10_000
"""Requests up to which simulations begin by themselves: a second and a half of work, or less."""

TRAFFIC: Final = Path(__file__).resolve().parent / "app_pages" / "traffic.py"
"""The Traffic page, which is linked once it is there."""


def known(answer: Answer) -> Verified | None:
    """What was simulated of an answer before; nothing begins with it."""
    found: Verified | None = VERIFIED.known(answer.question)
    return found


def ending(answer: Answer, live: bool) -> str:
    """What the headline of an answer ends with: whether the winner holds, once that is known."""
    if live:
        VERIFIED.view(answer.question)
    found = known(answer)
    if answer.nearest is not None and not allowed(answer.question, answer.nearest):
        return " " + word("oversized", at=_at(answer.question))
    if answer.nearest is not None and (found is None or found.winner is None):
        return " " + word("queues", at=_at(answer.question))
    if found is None or found.winner is None:
        return ""
    key = {True: "holds", False: "fails", None: "close"}[found.winner.holds]
    return " " + word(key, at=_at(answer.question))


def warning(answer: Answer) -> None:
    """Under the headline: what to take where the winner does not hold."""
    found = known(answer)
    if found is not None and (found.oversized or (found.winner and not found.winner.holds)):
        st.warning(show.plain(verdict(found)), icon=":material/rule:")


def card(answer: Answer, mine: Scenario, live: bool = True) -> None:
    """The card; of an old answer what was known of it."""
    with show.card(word("title"), "card_verified"):
        if live:
            _live(answer, mine)
            return
        found = known(answer)
        if found is None:
            st.caption(show.plain(_unsimulated(answer.question, "_old")))
        else:
            _found(found, mine)


def _live(answer: Answer, mine: Scenario) -> None:
    """The card for the inputs shown; few requests are simulated without being asked to."""
    view, asked = VERIFIED.view(answer.question), answer.question
    if view.state == "idle" and requests_to_try(answer) <= SMALL:
        VERIFIED.start(optimise_tasks.verify, asked, answer)
        view = VERIFIED.view(asked)
    if view.state == "done":
        _found(view.value, mine)
        return
    running = view.state == "running"
    show.finding(word("simulating", at=_at(asked)) if running else _unsimulated(asked))
    if running:
        st.fragment(_progress, run_every=POLL_SECONDS)(view)
    elif view.state == "idle":
        kinds, size = whole(min(TOP, len(choices(answer)))), shown(requests_to_try(answer), "requests")
        st.caption(show.plain(word("size", kinds=kinds, requests=size)))
    else:
        st.caption(show.plain(_failed(view)))
    _buttons(answer, view)


def _buttons(answer: Answer, view: View) -> None:
    """Verify or cancel; they keep their places."""
    busy = view.state == "running"
    with st.container(horizontal=True, gap="small", key="verify_buttons"):
        st.button(
            word("verify" if view.state in ("idle", "running") else "again"), key="_verify",
            icon=":material/rule:", on_click=VERIFIED.start, args=(optimise_tasks.verify, answer.question, answer),
            disabled=busy,
        )  # fmt: skip
        st.button(
            word("cancel"), key="_verify_cancel", icon=":material/close:", on_click=VERIFIED.cancel, disabled=not busy
        )


def _progress(view: View) -> None:
    """One look at the simulations."""
    if view.job is None or not view.job.running:
        st.rerun()
    now = view.job.progress()
    share = now.done / now.total if now.total else 0.0
    st.progress(min(1.0, share), text=show.plain(word("waiting") if view.job.waiting else said_of(now)))


def said_of(now: Progress) -> str:
    """How far the simulations are."""
    if not now.total:
        return word("starting")
    return word("running", done=whole(now.done), total=whole(now.total), requests=shown(now.considered, "requests"))


def _failed(view: View) -> str:
    """Why there is no verdict."""
    if view.state in ("cancelled", "broken"):
        return word(view.state)
    return word("late", limit=shown(LONGEST, "s")) if view.state == "late" else word("failed", reason=view.reason)


def _found(found: Verified, mine: Scenario) -> None:
    """The verdict, every plan that was simulated, and how."""
    show.finding(verdict(found))
    if found.trials:
        listing(word("title"), header(found), [row(each, found, mine) for each in found.trials])
        st.caption(show.plain(grounds(found)))


def grounds(found: Verified) -> str:
    """What was simulated, and how sure it is."""
    asked, counted = found.question.scenario, min(each.counted for each in found.trials)
    rate = word("at_rate", rate=significant(asked.qps)) if asked.qps else word("at_load", load=percent(asked.load))
    return f"{which(found)} {word('grounds', traffic=rate, counted=shown(counted, 'requests'))}"


def which(found: Verified) -> str:
    """Why these plans were simulated and no others."""
    first = whole(min(TOP, sum(not each.more for each in found.trials)))
    if found.winner is not None and found.winner.holds:
        return word("only_best", count=first)
    if found.taken is None:
        return word("none_left")
    better = "cheaper" if found.question.objective.startswith("usd") else "better"
    return word(f"best_and_{better}", count=first, kind=plan_words(found.taken))


def header(found: Verified) -> tuple[str, ...]:
    """Titles of the table of trials."""
    at = _at(found.question)
    titles = ("kind", "col_verdict", "col_replicas", "col_ttft", "col_tpot", "col_good", "col_simulated", "col_plan")
    return tuple(word(title, at=at) for title in titles)


def row(trial: Trial, found: Verified, mine: Scenario) -> Row:
    """One trial as cells; what is chosen stands out."""
    texts = (
        trial.kind, word(f"verdict_{str(trial.holds).lower()}"), whole(trial.replicas),
        _figure(trial.ttft_at_pct_ms), _figure(trial.tpot_at_pct_ms),
        f"{good_words(trial)} %", shown(trial.usd_per_m_good, "$"), shown(trial.usd_per_m_goodput, "$"),
    )  # fmt: skip
    return texts, ways(trial, mine), trial.scenario == found.chosen


def ways(trial: Trial, mine: Scenario) -> str:
    """HTML of the ways on from a trial: open its plan, or its traffic."""
    plan = trial.scenario.with_(lang=mine.lang)
    opened = link(anchor(plan), word("open"), f"{word('open')}: {trial.kind}, {whole(trial.replicas)}")
    if not TRAFFIC.exists():
        return opened
    name = f"{word('traffic')}: {trial.kind}, {whole(trial.replicas)}"
    rate = "" if plan.qps else f"&rate={decimal(trial.rate)}"
    there = f"./traffic{to_link(plan)}{rate}&requests={trial.requests}&seed={trial.seeds[-1]}"
    return f"{opened} · {link(there, word('traffic'), name)}"


def _at(question: Question) -> str:
    """The promised percentile."""
    return percentile_words(question.scenario.sla_pct)


def _unsimulated(question: Question, ending: str = "") -> str:
    """By what the answer is ranked, and that nothing was simulated of it yet; `_old`: before the inputs changed."""
    ranked = "ranked" if is_on_means(question) else "sized"
    return word(f"{ranked}{ending}", at=_at(question))


def _figure(value: float | None) -> str:
    return DASH if value is None else significant(value)
