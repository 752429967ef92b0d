"""The trace of a session: uploaded or a sample, read once, kept until the reader goes back to generated requests."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import streamlit as st

from planner.errors import Fault, InputError
from planner.simulate.trace_samples import read_sample, samples
from planner.simulate.trace_text import CellFault
from planner.simulate.traces import TEMPLATE_CSV, Trace, read_trace
from planner.specs.fields import shown as shown_name
from planner.ui import show
from planner.ui.traffic_words import word
from planner.units import DASH, significant, whole
from planner.units import show as shown

FILE, HELD, REFUSED, SAMPLE = "_traffic_file", "_traffic_trace", "_traffic_refused", "_traffic_sample"
LIMIT_MB: Final = 16
"""Largest trace of the page: some 400,000 requests, which are read in a few seconds; the command line takes more."""

NAME_LETTERS: Final = 60
LOOKS: Final = ["csv", "jsonl", "json", "txt"]


@dataclass(frozen=True)
class Held:
    """A trace with a digest of it, by which an answer is found again."""

    trace: Trace
    digest: str


def held() -> Held | None:
    """The session's trace."""
    found: Held | None = st.session_state.get(HELD)
    return found


def draw() -> None:
    """A menu to choose a trace, and the way back to generated requests."""
    with st.popover(word("trace"), icon=":material/upload_file:", key="trace_menu"):
        _menu()
    if held() is not None:
        st.button(word("trace_drop"), key="_traffic_drop", icon=":material/close:", on_click=_drop)


def understood(rate: float | None) -> None:
    """What is replayed."""
    found = held()
    if found is None:
        return
    trace = found.trace
    pace = word("trace_at_once") if trace.mean_rate is None else word("trace_rate", rate=significant(trace.mean_rate))
    said = word(
        "trace_is", name=trace.name, requests=whole(len(trace.requests)), span=shown(trace.span_s, "s"), rate=pace,
        isl=whole(trace.mean_isl), osl=whole(trace.mean_osl),
    )  # fmt: skip
    faster = "" if rate is None else " " + word("trace_faster", rate=significant(rate))
    with st.container(key="trace_understood", gap="xxsmall"):
        show.finding(f"{said}{faster} {word('trace_others')}")
        st.caption(show.plain(" ".join(trace.notes) or DASH))


def _menu() -> None:
    """Upload, samples, template."""
    st.caption(show.plain(word("trace_hint", limit=str(LIMIT_MB))))
    st.file_uploader(
        word("trace_upload"), type=LOOKS, key=FILE, on_change=_uploaded, max_upload_size=LIMIT_MB,
        label_visibility="collapsed",
    )  # fmt: skip
    if refused := st.session_state.get(REFUSED):
        st.warning(show.plain(refused), icon=":material/warning:")
    titles = {sample.id: sample.title for sample in samples()}
    st.selectbox(
        word("trace_samples"), list(titles), format_func=titles.__getitem__, key=SAMPLE, persist_state="session"
    )
    with st.container(horizontal=True, gap="small", key="trace_buttons"):
        st.button(word("trace_sample"), key="_traffic_use", icon=":material/science:", on_click=_sampled)
        st.download_button(
            word("trace_template"), lambda: TEMPLATE_CSV.encode(), "trace.csv", "text/csv", key="_traffic_template",
            on_click="ignore", icon=":material/download:",
        )  # fmt: skip


def _uploaded() -> None:
    """Read the file, or keep what there was and say what is wrong with the file."""
    upload = st.session_state.get(FILE)
    if upload is None:
        return
    data = upload.getvalue()
    try:
        _hold(read_trace(data, upload.name, LIMIT_MB << 20), blake2b(data, digest_size=16).hexdigest())
    except InputError as error:
        said = _fault(error.faults[0])
        st.session_state[REFUSED] = word("trace_refused", name=shown_name(upload.name, NAME_LETTERS), said=said)


def _fault(fault: Fault) -> str:
    """What is wrong with a file, and where."""
    if isinstance(fault, CellFault):
        return f"line {fault.line:,}: {fault.column} is '{fault.cell}', {fault.allowed}"
    return f"{fault.value}: {fault.allowed}"


def _sampled() -> None:
    """Take the chosen sample."""
    chosen = st.session_state[SAMPLE]
    _hold(read_sample(chosen), f"sample-{chosen}")


def _hold(trace: Trace, digest: str) -> None:
    """Replay a trace from now on."""
    st.session_state[REFUSED] = ""
    st.session_state[HELD] = Held(trace, digest)


def _drop() -> None:
    """Go back to made requests."""
    st.session_state.pop(HELD, None)
    st.session_state[REFUSED] = ""
