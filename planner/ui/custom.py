"""A model of one's own: a config.json, pasted or uploaded, becomes a token in the address."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.catalog.calibration import contents
from planner.catalog.custom import encode_custom
from planner.catalog.hf_config import LARGEST_FILE
from planner.catalog.ids import CUSTOM
from planner.errors import HeadroomError, InputError
from planner.specs.correction import CALIBRATED
from planner.specs.fields import shown
from planner.ui.state import set_token, untouched
from planner.ui.text import say

TEXT, FILE, ERROR = "_config_text", "_config_file", "_config_error"
LIMIT_MB: Final = 1


def popover() -> None:
    """A button that opens the form."""
    with st.popover(say("custom_model"), icon=":material/upload_file:", width="stretch", key="custom_menu"):
        st.caption(say("custom_hint"))
        st.text_area(say("custom_paste"), key=TEXT, height=120, placeholder='{"hidden_size": 8192, …}')
        st.button(say("custom_use"), key="_config_use", on_click=_from_text)
        st.file_uploader(say("custom_upload"), type=["json"], key=FILE, on_change=_from_file, max_upload_size=LIMIT_MB)
        if error := st.session_state.get(ERROR):
            st.badge(say("custom_refused"), icon=":material/error:", color="red")
            st.text(error)


def _from_text() -> None:
    _use(st.session_state.get(TEXT) or "")


def _from_file() -> None:
    upload = st.session_state.get(FILE)
    if upload is None:
        return
    if upload.size > LARGEST_FILE:
        st.session_state[ERROR] = say("too_large", size=f"{upload.size:,}", limit=f"{LARGEST_FILE:,}")
        return
    try:
        _use(upload.getvalue().decode("utf-8"))
    except UnicodeDecodeError:
        st.session_state[ERROR] = say("not_utf8")


def _use(config: str) -> None:
    """Take the configuration, or say in one sentence which key stands in the way; the plan stays as it is then."""
    try:
        token = encode_custom(config)
    except InputError as error:
        st.session_state[ERROR] = shown(error.faults[0].allowed, 300)
        return
    except HeadroomError as error:
        st.session_state[ERROR] = shown(error, 300)
        return
    st.session_state.pop(ERROR, None)
    set_token(token)
    st.session_state["model"] = CUSTOM
    if st.session_state.get("profile") == CALIBRATED:
        st.session_state["profile"] = untouched("profile")


def speeds() -> tuple[str, ...]:
    """Speed profiles that can be chosen; the calibrated one where the address carries a calibration."""
    token = st.query_params.get("x")
    try:
        carried = token is not None and contents(token).correction is not None
    except InputError:
        carried = False
    return ("measured", "textbook", CALIBRATED) if carried else ("measured", "textbook")


def token_needed() -> None:
    """A token describes nothing once neither the model nor the speeds are one's own."""
    if st.session_state["model"] != CUSTOM and st.session_state.get("profile") != CALIBRATED:
        set_token(None)
