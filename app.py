"""What `streamlit run app.py` starts: the dashboard as an ASGI application, warm before the first visitor."""

from __future__ import annotations

import gc
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from planner.ui.headers import SecurityHeaders
from planner.ui.jobs import workshop
from planner.ui.text import say
from planner.ui.warm import warm


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Import and calculate once, then keep the collector away from what lives as long as the process; workers start beside it."""
    workers = workshop()
    try:
        warm()
        gc.collect()
        gc.freeze()
        yield
    finally:
        workers.close()


def apologise(error: Exception) -> bool:
    """What a reader sees of an error that nobody foresaw; the log has the rest."""
    logging.getLogger("headroom").error("the page failed", exc_info=error)
    st.error(say("failed"), icon=":material/error:")
    return True


app = st.App(
    Path(__file__).parent / "planner" / "ui" / "main.py",
    lifespan=lifespan,
    middleware=[Middleware(SecurityHeaders)],
    on_script_error=apologise,
)
