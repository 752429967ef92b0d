"""The share row of the Optimise page: link, CSV and JSON of an answer."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import streamlit as st

from planner.export import Json
from planner.optimise.answer import Answer
from planner.optimise.document import answer_csv, answer_json, plain, question_link, verified_json
from planner.optimise.question import Question
from planner.optimise.sensitivity import COLUMNS
from planner.optimise.sensitivity import rows as swing_rows
from planner.optimise.shadow import ConstraintPrice
from planner.optimise.spelling import question_texts
from planner.share import pinned, to_link
from planner.ui import optimise_verify, show
from planner.ui.link import page_address
from planner.ui.optimise_around import MOVED, PRICED, known
from planner.ui.optimise_tasks import Moved, Weighed
from planner.ui.optimise_words import word
from planner.ui.sharing import POPOVER_PIXELS
from planner.ui.text import say


def row(answer: Answer) -> None:
    """Everything that carries the results elsewhere."""
    here = page_address()
    start = here.removesuffix("optimise")
    with show.card(word("share"), "card_share"):
        show.finding(word("share_hint"))
        with st.container(horizontal=True, gap="small", key="share_buttons"):
            with st.popover(say("link"), icon=":material/link:", key="link_menu"):
                st.code(question_link(answer.question, here), language=None, wrap_lines=True, width=POPOVER_PIXELS)
            with st.popover(say("command"), icon=":material/terminal:", key="command_menu"):
                st.code(command(answer.question), language=None, wrap_lines=True, width=POPOVER_PIXELS)
            st.download_button(
                say("csv"), lambda: answer_csv(answer, start).encode(), "optimise.csv", "text/csv", key="_csv",
                on_click="ignore", icon=":material/download:",
            )  # fmt: skip
            st.download_button(
                say("json"), lambda: answer_json(answer, start, here, around(answer)).encode(), "optimise.json",
                "application/json", key="_json", on_click="ignore", icon=":material/download:",
            )  # fmt: skip


def around(answer: Answer) -> Mapping[str, Json]:
    """What is known around an answer, for its document: prices of constraints, what moves it, simulations."""
    weighed: Weighed | None = known(PRICED, answer)
    moved: Moved | None = known(MOVED, answer)
    found: dict[str, Json] = {}
    if weighed is not None:
        found["prices_on"] = "means"
        found["prices"] = [_priced(each) for each in weighed.prices]
    if moved is not None:
        found["swings_on"] = "means"
        found["swings"] = [dict(zip(COLUMNS, map(plain, cells), strict=True)) for cells in swing_rows(moved.swings)]
    if (tried := optimise_verify.known(answer)) is not None:
        found.update(verified_json(tried))
    return found


def _priced(each: ConstraintPrice) -> Mapping[str, Json]:
    """The price of one constraint, the new best as a link."""
    numbers = {
        name: plain(getattr(each, name)) for name in ("field", "now", "then", "value_now", "value_then", "change")
    }
    return {**numbers, "link": None if each.scenario is None else to_link(pinned(each.scenario))}


def command(question: Question) -> str:
    """The command line that asks the same."""
    scenario = to_link(question.scenario).removeprefix("?") or f"model={question.scenario.model}"
    options = (f"--{name.replace('_', '-')} {shlex.quote(text)}" for name, text in question_texts(question).items())
    return " ".join(("python -m planner optimise", shlex.quote(scenario), *options))
