"""The calibration on the Trust page: a benchmark or a start-up log of one's own, read, shown, and planned with.

What is pasted is data: it is read by `planner.logs.read`, and only what that understood is shown, as plain text.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.catalog.calibration import correction_in
from planner.catalog.custom import decode_custom, encode_custom
from planner.catalog.ids import CUSTOM
from planner.errors import Fault, HeadroomError, InputError
from planner.logs.benchmark_words import in_chinese
from planner.logs.benchmarks import FORMATS, template_csv
from planner.logs.example import example_csv
from planner.logs.read import ENGINES, decoded, read
from planner.logs.readings import Benchmark, Reading, Understood
from planner.setting import subject_of, traffic_of
from planner.specs.correction import CALIBRATED, not_applied, notes_of
from planner.specs.scenario import Scenario
from planner.ui import show, state, trust_benchmark, trust_start_up
from planner.ui.text import language
from planner.ui.trust_calibrate_words import name_of, word
from planner.units import DASH

TEXT, FILE = "_calibrate_text", "_calibrate_file"
LIMIT_MB: Final = 4
READINGS_KEPT: Final = 64
"""Readings kept for all sessions: figures and public names only, found again by a digest of the text."""

LOOKS: Final = ["txt", "log", "csv", "json", "jsonl", "out"]


def section() -> None:
    """The form, then what its text says of the session's scenario."""
    scenario = state.current()
    _active(scenario)
    reading = _form()
    if isinstance(reading, Benchmark):
        trust_benchmark.draw(reading, scenario)
    elif reading is not None:
        trust_start_up.draw(reading, scenario)


def _form() -> Reading | None:
    """What was pasted or uploaded, read; beside it what was understood, or what can be pasted."""
    with show.card(word("form"), "card_calibrate"):
        inputs, answer = st.columns([3, 2], gap="medium")
        with inputs:
            data = _inputs()
        with answer:
            reading = _reading(data) if data else None
            if reading is None:
                _accepted()
            else:
                _understood(reading)
    return reading


def _inputs() -> str | bytes:
    """The uploaded file, or the text; empty while there is neither."""
    text = st.text_area(
        word("paste"), key=TEXT, height=220, placeholder=word("paste_hint"), persist_state="session"
    )  # fmt: skip
    with st.container(horizontal=True, gap="small", key="calibrate_buttons"):
        with st.popover(word("upload"), icon=":material/upload_file:", key="calibrate_file"):
            st.caption(word("upload_hint"))
            file = st.file_uploader(
                word("upload"), type=LOOKS, key=FILE, max_upload_size=LIMIT_MB, label_visibility="collapsed"
            )
        _buttons(text or "", with_file=file is not None)
    if file is None:
        return text or ""
    st.caption(show.plain(word("file_first")))
    return file.getvalue()


def _buttons(text: str, *, with_file: bool) -> None:
    """The template, an example, and a way to start over."""
    st.download_button(
        word("template"), lambda: template_csv().encode(), "benchmark.csv", "text/csv", key="_calibrate_template",
        on_click="ignore", icon=":material/download:",
    )  # fmt: skip
    st.button(word("example"), key="_calibrate_example", icon=":material/science:", on_click=_fill, disabled=with_file)
    st.button(word("clear"), key="_calibrate_clear", icon=":material/close:", on_click=_clear, disabled=not text)


def _fill() -> None:
    """Put the example into the text area."""
    st.session_state[TEXT] = example_csv()


def _clear() -> None:
    """Forget the text."""
    st.session_state[TEXT] = ""


def _accepted() -> None:
    """What can be pasted, and what happens with it."""
    st.subheader(word("empty"), anchor=False)
    accepted = word("accepted", tools=_joined(FORMATS), engines=_joined(ENGINES))
    st.markdown(show.plain(f"{word('lead')} {accepted} {word('advised')} {word('private')}"))


def _joined(names: tuple[str, ...]) -> str:
    """Names in a sentence."""
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _reading(data: str | bytes) -> Reading | None:
    """What a text or file is; None, with a sentence on the page, when it is not read."""
    found = _read(data)
    if isinstance(found, str):
        st.warning(show.plain(found), icon=":material/help:")
        return None
    return found


@st.cache_data(max_entries=READINGS_KEPT, show_spinner=False)
def _read(data: str | bytes) -> Reading | str:
    """The reading of a text, or the sentence that refuses it; kept by a digest of the text, not with it."""
    try:
        return read(data if isinstance(data, str) else decoded(data))
    except InputError as error:
        return refusal(error.faults[0])


def refusal(fault: Fault) -> str:
    """A refusal of a text in a sentence: where, what, and what is read instead."""
    where = f"{fault.field}: " if fault.field.startswith("line ") else ""
    said = f"{where}{fault.value or 'nothing'}: {fault.allowed}"
    return f"{said[:1].upper()}{said[1:]}" + ("" if said.endswith(".") else ".")


def _understood(reading: Reading) -> None:
    """Every statement that was found, with its line, and what was there and is not used."""
    st.subheader(word("understood"), anchor=False)
    rows = [_row(each) for each in dict.fromkeys(reading.understood)]
    show.figures(word("understood"), (word("what"), word("value"), word("line")), rows, frozenset({1}))
    if reading.ignored:
        show.lines([word("ignored", what=_in_language(each)) for each in reading.ignored])


def _row(each: Understood) -> tuple[str, str, str]:
    """One statement as it is shown."""
    return name_of(each.name), _in_language(each.value), str(each.line or DASH)


def _in_language(said: str) -> str:
    """What a reader of texts says, in the page's language."""
    return in_chinese(said) if language() == "zh" else said


def _active(scenario: Scenario) -> None:
    """What the session's calibration was made from, and the way back from it."""
    if scenario.profile != CALIBRATED or scenario.x is None:
        return
    try:
        made, here = correction_in(scenario.x), subject_of(scenario)
    except HeadroomError:
        return
    with show.card(word("active"), "card_calibrated"):
        used = " ".join(notes_of(made, here, traffic_of(scenario)))
        show.finding(used if made.subject.meets(here) else not_applied(made, here))
        st.button(
            word("back"), key="_calibrate_back", icon=":material/undo:", on_click=state.restore,
            args=(measured(scenario),),
        )  # fmt: skip


def measured(scenario: Scenario) -> Scenario:
    """The scenario under the measured constants, its token without a calibration."""
    own = decode_custom(scenario.x) if scenario.model == CUSTOM and scenario.x else None
    return scenario.with_(profile="measured", x=None if own is None else encode_custom(own))
