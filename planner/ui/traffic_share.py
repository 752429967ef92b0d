"""The share row of the Traffic page: link, command line, CSV and JSON of a run."""

from __future__ import annotations

import shlex

import streamlit as st

from planner.share import pinned
from planner.simulate.document import requests_csv, run_json, summary_csv
from planner.simulate.run import Run
from planner.simulate.spelling import traffic_link
from planner.ui import show
from planner.ui.link import page_address
from planner.ui.sharing import POPOVER_PIXELS
from planner.ui.text import say
from planner.ui.traffic_tasks import MOST_KEPT, Told
from planner.ui.traffic_words import word
from planner.units import whole


def row(told: Told) -> None:
    """Everything that carries the run elsewhere."""
    here, asked = page_address(), told.asked
    link = traffic_link(pinned(asked.scenario), asked.traffic, here)
    with show.card(word("share"), "card_share"):
        show.finding(" ".join([word("share_hint"), *([word("share_trace")] if asked.trace else [])]))
        with st.container(horizontal=True, gap="small", key="share_buttons"):
            with st.popover(say("link"), icon=":material/link:", key="link_menu"):
                st.code(link, language=None, wrap_lines=True, width=POPOVER_PIXELS)
            with st.popover(say("command"), icon=":material/terminal:", key="command_menu"):
                st.code(command(told), language=None, wrap_lines=True, width=POPOVER_PIXELS)
            _files(told, here)
        if told.run is None:
            st.caption(show.plain(word("csv_large", most=whole(MOST_KEPT))))


def _files(told: Told, here: str) -> None:
    """Downloads, built when they are asked for."""
    st.download_button(
        word("csv_summary"), lambda: summary_csv((told.digest,), here).encode(), "traffic.csv", "text/csv", key="_csv",
        on_click="ignore", icon=":material/download:",
    )  # fmt: skip
    st.download_button(
        say("json"), lambda: run_json(told.digest, here).encode(), "traffic.json", "application/json", key="_json",
        on_click="ignore", icon=":material/download:",
    )  # fmt: skip
    if told.run is not None:
        whole_run: Run = told.run
        st.download_button(
            word("csv_requests"), lambda: requests_csv(whole_run).encode(), "requests.csv", "text/csv",
            key="_csv_requests", on_click="ignore", icon=":material/download:",
        )  # fmt: skip


def command(told: Told) -> str:
    """The command line that makes the same run."""
    asked = told.asked
    query = traffic_link(pinned(asked.scenario), asked.traffic).removeprefix("?")
    trace = " --trace trace.csv" if asked.trace else ""
    return f"python -m planner simulate {shlex.quote(query or 'model=' + asked.scenario.model)}{trace}"
