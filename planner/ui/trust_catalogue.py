"""The catalogue as the planner knows it: every number with unit, source and date; what is unknown says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import pandas as pd
import streamlit as st

from planner.catalog.accelerators import accelerator_ids
from planner.catalog.engines import engine_ids
from planner.catalog.models import model_ids
from planner.catalog.prices import prices
from planner.catalog.scenarios import preset_ids
from planner.catalog.version import catalogue_version
from planner.errors import HeadroomError
from planner.specs.scenario import Scenario
from planner.ui import show, trust_fit, trust_speeds, trust_tables
from planner.ui.trust_words import word
from planner.units import whole

HEIGHT: Final = 460
LOWER: Final = 320
ROW_PIXELS: Final = 36
FINISHED: Final = ("Corner p", "Timings", "Median error, %", "Per instance", "Points", "Four in five below, ×")
"""Columns of finished numbers: they stand to the right, as numbers do."""


def section(scenario: Scenario) -> None:
    """Counts, then one part of the catalogue."""
    st.markdown(show.plain(_counts()))
    kind = st.segmented_control(
        word("kind"), tuple(KINDS), format_func=word, default="models", required=True, wrap=True, key="_trust_kind",
        persist_state="session",
    )  # fmt: skip
    chosen = str(kind or "models")
    st.header(word(chosen), anchor=False)
    st.markdown(show.plain(word(f"{chosen}_say")))
    KINDS[chosen](scenario)


def _counts() -> str:
    """How much is known."""
    return word(
        "counts",
        models=whole(len(model_ids())),
        accelerators=whole(len(accelerator_ids())),
        prices=whole(len(prices())),
        engines=whole(len(engine_ids())),
        presets=whole(len(preset_ids())),
        speeds=whole(len(trust_speeds.law_table())),
        version=catalogue_version(),
    )


def table(frame: pd.DataFrame, alt: str, height: int = HEIGHT) -> None:
    """A table of facts; an empty cell of a number says that it is unknown."""
    numbers = (str(name) for name in frame.select_dtypes("number").columns)
    formats: dict[str, Any] = {name: st.column_config.NumberColumn(format=_format(name)) for name in numbers}
    formats |= {name: st.column_config.TextColumn(alignment="right") for name in FINISHED if name not in formats}
    tall: int | Literal["content"] = "content" if len(frame) <= height // ROW_PIXELS else height
    st.dataframe(frame, hide_index=True, alt=alt, column_config=formats, height=tall, placeholder=word("unknown"))


def _format(name: str) -> str:
    """How a column's numbers are written: by its unit."""
    if name.endswith("/h") or name.startswith("Price per"):
        return "%.2f"
    if name.startswith("Released"):
        return "%d"
    return next((form for end, form in FORMATS.items() if name.endswith(end)), "%g")


FORMATS: Final = {
    "10⁹": "%.2f",
    "tokens": "%,.0f",
    "bytes per token": "%,.0f",
    "Vocabulary": "%,.0f",
    "Hidden": "%,.0f",
    "GiB": "%.2f",
    "TB/s": "%.3f",
    "µs": "%.2f",
    "Share of bandwidth": "%.3f",
    "Share of peak": "%.3f",
    "error, %": "%.1f",
    "Timings": "%,.0f",
}
"""Number format by the end of a header; any other number is written as it is."""


def _models(_: Scenario) -> None:
    table(trust_tables.model_table(), word("models"))


def _accelerators(_: Scenario) -> None:
    table(trust_tables.accelerator_table(), word("accelerators"))
    st.header(word("each_number"), anchor=False)
    table(trust_tables.accelerator_numbers(), word("each_number"), LOWER)


def _prices(_: Scenario) -> None:
    table(trust_tables.price_table(), word("prices"))
    st.header(word("assumed_prices"), anchor=False)
    table(trust_tables.assumed_price_table(), word("assumed_prices"), LOWER)


def _engines(_: Scenario) -> None:
    table(trust_tables.engine_table(), word("engines"))


def _presets(_: Scenario) -> None:
    table(trust_tables.preset_table(), word("presets"))


def _speeds(scenario: Scenario) -> None:
    """What this plan uses first, then everything that was fitted."""
    st.header(word("in_use"), anchor=False)
    try:
        table(trust_speeds.in_use(scenario), word("in_use"), LOWER)
        st.markdown(show.plain(trust_speeds.all_reduce_text(scenario)))
    except HeadroomError as error:
        st.warning(show.plain(str(error)), icon=":material/block:")
    for title, frame in (
        ("kernels", trust_speeds.law_table),
        ("collectives", trust_speeds.collective_table),
        ("exchanges", trust_speeds.exchange_table),
        ("serving_constants", trust_speeds.serving_table),
        ("fitted_values", trust_fit.value_table),
        ("kernel_factors", trust_fit.factor_table),
        ("bands", trust_fit.band_table),
    ):
        st.header(word(title), anchor=False)
        table(frame(), word(title), LOWER)


KINDS: Final[dict[str, Callable[[Scenario], None]]] = {
    "models": _models,
    "accelerators": _accelerators,
    "prices": _prices,
    "engines": _engines,
    "presets": _presets,
    "speeds": _speeds,
}
"""Parts of the catalogue and what draws them."""
