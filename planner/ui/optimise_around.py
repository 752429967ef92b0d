"""What stands around an answer: the price of each constraint, what would make it feasible, and what moves it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any, Final

import streamlit as st

from planner.optimise.answer import Answer
from planner.optimise.tails import is_on_means
from planner.ui import optimise_inputs, optimise_tasks, optimise_tornado, show
from planner.ui import optimise_sentences as sentences
from planner.ui import optimise_worth as worth
from planner.ui.marks import draw
from planner.ui.optimise_run import Desk, View
from planner.ui.optimise_tasks import Moved, Weighed
from planner.ui.optimise_words import word
from planner.ui.theme import mode
from planner.ui.worker import Task

PRICED, MOVED = Desk("priced"), Desk("moved")
POLL_SECONDS: Final = 0.4


def known(desk: Desk, answer: Answer) -> Any:
    """What was worked out around an answer before; None where nothing was. Nothing begins with it."""
    return desk.known(answer.question)


def _known(desk: Desk, task: Task, answer: Answer) -> View:
    """What is known around an answer; working it out begins with the answer itself."""
    view = desk.view(answer.question)
    if view.state != "idle":
        return view
    desk.start(task, answer.question, answer)
    return desk.view(answer.question)


def _when_known(desk: Desk, task: Task, answer: Answer, body: Callable[[Any], None], live: bool = True) -> None:
    """A card's content once it is worked out; until then, that it is being worked out. An old answer has what it had."""
    if not live:
        found = known(desk, answer)
        st.caption(word("weighing_old")) if found is None else body(found)
        return
    view = _known(desk, task, answer)
    if view.state == "done":
        body(view.value)
    elif view.state == "running":
        st.fragment(_look, run_every=POLL_SECONDS)(view)
    else:
        st.caption(show.plain(word("weighing_failed", reason=view.reason or word(f"title_{view.state}", limit=""))))


def _look(view: View) -> None:
    """Whether it is worked out by now."""
    if view.job is not None and view.job.running:
        view.job.progress()
        st.caption(word("weighing"))
        return
    st.rerun()


def prices(answer: Answer, live: bool = True) -> None:
    """What each constraint costs, a sentence each."""

    def body(found: Weighed) -> None:
        _lines([worth.price(answer, each) for each in found.prices])

    with show.card(sentences.on_means("prices", answer), "card_prices", stretch=True):
        _when_known(PRICED, optimise_tasks.weigh, answer, body, live)


def _lines(said: list[str]) -> None:
    """Sentences; that there are none."""
    show.lines(said) if said else show.finding(word("prices_none"))


def headline(answer: Answer, live: bool = True) -> str:
    """That nothing is feasible, by the constraints that could be relaxed, once they are known."""
    view = _known(PRICED, optimise_tasks.weigh, answer) if live else View("done", known(PRICED, answer))
    found = view.value.relaxations if view.state == "done" and view.value is not None else ()
    return worth.infeasible(found) if found else sentences.headline(answer)


def relaxations(answer: Answer, live: bool = True) -> None:
    """The smallest relaxation of each constraint that makes the question feasible, as links."""
    _when_known(PRICED, optimise_tasks.weigh, answer, lambda found: _relaxed(answer, found), live)


def _relaxed(answer: Answer, found: Weighed) -> None:
    """A sentence and a link each."""
    items = []
    for each in found.relaxations:
        asked = worth.relaxed(answer.question, each)
        way = f" {show.anchor(optimise_inputs.address(asked), word('ask'))}" if asked is not None else ""
        items.append(f"<li>{escape(show.typeset(worth.relaxation(each)))}{way}</li>")
    if not items:
        show.finding(f"{word('relax_unlimited')} {sentences.infeasible(answer)}")
        return
    if not is_on_means(answer.question) and not answer.beyond:
        st.caption(word("relax_means"))
    st.html(f'<ul style="margin:0;padding:0;list-style:none">{"".join(items)}</ul>')


def sensitivity(answer: Answer, live: bool = True) -> None:
    """What moves the answer, and the price at which the second choice wins."""
    with show.card(sentences.on_means("sensitivity", answer), "card_sensitivity"):
        _when_known(MOVED, optimise_tasks.move, answer, lambda found: _moved(answer, found), live)


def _moved(answer: Answer, found: Moved) -> None:
    """The tornado of the winner, with its table."""
    show.finding(worth.moves(found.swings))
    if optimise_tornado.moving(found.swings):
        spec = optimise_tornado.tornado(mode(), answer.question.objective)
        draw(spec, optimise_tornado.bars(answer, found.swings), word("tornado_alt"))
        st.caption(show.plain(word("tornado_hint")))
    for sentence in worth.turns(answer, found.turn):
        show.finding(sentences.at_percentile(sentence, answer))
    formats: dict[str, str | int] = {"Input": 260, "Range from": 220}
    show.behind(
        word("tornado_table"), "_tornado_table",
        lambda: show.table(optimise_tornado.table(answer, found.swings), word("sensitivity"), formats, 300),
    )  # fmt: skip
