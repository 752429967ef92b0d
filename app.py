"""What `streamlit run app.py` starts: the dashboard as an ASGI application, warm before the first visitor."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from planner.ui.headers import SecurityHeaders
from planner.ui.warm import warm


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Import and calculate once, then keep the collector away from what lives as long as the process."""
    warm()
    gc.collect()
    gc.freeze()
    yield


app = st.App(
    Path(__file__).parent / "planner" / "ui" / "main.py",
    lifespan=lifespan,
    middleware=[Middleware(SecurityHeaders)],
)
