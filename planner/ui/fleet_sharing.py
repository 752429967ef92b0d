"""The share row of the Fleet page: link, CSV and JSON."""

from __future__ import annotations

from urllib.parse import urljoin

import streamlit as st

from planner.fleet import export
from planner.fleet.answer import Fleet
from planner.ui import show
from planner.ui.fleet_words import word
from planner.ui.link import page_address
from planner.ui.sharing import POPOVER_PIXELS


def row(fleet: Fleet) -> None:
    """Everything that carries the fleet elsewhere."""
    base = page_address()
    plans = urljoin(base, "./") if base else ""
    with show.card(word("share"), "card_fleet_share"):
        show.finding(word("share_hint"))
        with st.container(horizontal=True, gap="small", key="fleet_share_buttons"):
            with st.popover(word("link"), icon=":material/link:", key="fleet_link_menu"):
                st.code(export.link(fleet, base), language=None, wrap_lines=True, width=POPOVER_PIXELS)
            st.download_button(
                word("csv"), lambda: export.to_csv(fleet, plans).encode(), "fleet.csv", "text/csv", key="_fleet_csv",
                on_click="ignore", icon=":material/download:",
            )  # fmt: skip
            st.download_button(
                word("json"), lambda: export.to_json(fleet, base, plans).encode(), "fleet.json", "application/json",
                key="_fleet_json", on_click="ignore", icon=":material/download:",
            )  # fmt: skip
