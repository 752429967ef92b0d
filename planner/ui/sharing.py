"""The share row: link, command, downloads, and a saved plan read back."""

from __future__ import annotations

import shlex
from typing import Final

import streamlit as st

from planner.errors import Fault, InputError
from planner.export import MAX_UPLOAD, from_csv, from_json, to_csv, to_json
from planner.plan import Plan
from planner.share import pinned, to_link
from planner.specs.scenario import Scenario
from planner.ui import show
from planner.ui.link import page_address, query, refused_rows
from planner.ui.state import restore
from planner.ui.text import say

FILE, REFUSED, MANY = "_plan_file", "_plan_refused", "_plan_many"
LIMIT_MB: Final = 1
POPOVER_PIXELS: Final = 420


def row(plan: Plan) -> None:
    """Everything that carries the plan elsewhere, and back."""
    base, fixed = page_address(), pinned(plan.scenario)
    command = f"python -m planner plan {shlex.quote(query(fixed) or 'model=' + fixed.model)}"
    with show.card(say("share"), "card_share"):
        show.finding(say("share_hint"))
        with st.container(horizontal=True, gap="small", key="share_buttons"):
            with st.popover(say("link"), icon=":material/link:", key="link_menu"):
                st.code(to_link(fixed, base), language=None, wrap_lines=True, width=POPOVER_PIXELS)
            with st.popover(say("command"), icon=":material/terminal:", key="command_menu"):
                st.code(command, language=None, wrap_lines=True, width=POPOVER_PIXELS)
            st.download_button(
                say("csv"),
                lambda: to_csv((plan,), base).encode(),
                "plan.csv",
                "text/csv",
                key="_csv",
                on_click="ignore",
                icon=":material/download:",
            )
            st.download_button(
                say("json"),
                lambda: to_json(plan, base).encode(),
                "plan.json",
                "application/json",
                key="_json",
                on_click="ignore",
                icon=":material/download:",
            )
            with st.popover(say("open_file"), icon=":material/folder_open:", key="open_menu"):
                st.caption(say("open_hint"))
                st.file_uploader(
                    say("open_file"),
                    type=["csv", "json"],
                    key=FILE,
                    on_change=_opened,
                    max_upload_size=LIMIT_MB,
                    label_visibility="collapsed",
                )
        _outcome()


def _outcome() -> None:
    """What became of the last file."""
    faults = st.session_state.get(REFUSED)
    if faults:
        st.badge(say("open_refused"), icon=":material/error:", color="red")
        st.dataframe(refused_rows(faults), hide_index=True, alt=say("open_refused"))
    elif (count := st.session_state.get(MANY, 1)) > 1:
        st.caption(say("open_many", count=str(count)))


def _opened() -> None:
    """Restore the plan of the file, or keep the present one and say what is wrong with the file."""
    upload = st.session_state.get(FILE)
    if upload is None:
        return
    st.session_state[REFUSED] = ()
    try:
        plans = _read(upload.name, upload.getvalue()[: MAX_UPLOAD + 1])
    except InputError as error:
        st.session_state[REFUSED] = error.faults
        return
    st.session_state[MANY] = len(plans)
    restore(plans[0])


def _read(name: str, content: bytes) -> tuple[Scenario, ...]:
    """Scenarios of a saved file, at least one."""
    if name.lower().endswith(".json"):
        return (from_json(content),)
    plans = from_csv(content)
    if not plans:
        raise InputError((Fault("file", "0 rows", "must hold at least one plan, a row below the column names"),))
    return plans
