"""One input per scenario field: key, link parameter and limits are the field's own, and every value is in the address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st

from planner.specs.scenario import describe
from planner.ui.text import help_of, label_of, say

BIND: Final = "query-params"
STEPS: Final = {
    "isl": 256, "osl": 64, "chunk": 512, "max_len": 1024, "token_budget": 1024, "max_seqs": 64, "at_batch": 8,
}  # fmt: skip
FINE: Final = {
    "qps": 1.0, "sla_tpot_ms": 5.0, "sla_ttft_ms": 50.0, "sla_pct": 5.0, "price": 0.25, "imbalance": 0.1,
    "util": 0.01, "kv_link_eff": 0.05, "accept": 0.05, "draft": 0.05,
}  # fmt: skip


def number(field: str, placeholder: str | None = None, on_change: Callable[[], None] | None = None) -> None:
    """A whole or decimal number within the field's limits; a field that may be left out may be empty."""
    text = describe(field)
    kind: Callable[[float], Any] = int if text.kind == "whole" else float
    st.number_input(
        label_of(field),
        min_value=kind(text.low or 0.0),
        max_value=kind(text.high or 0.0),
        value=None if text.default is None else kind(float(text.default)),
        step=kind(STEPS.get(field, 1) if text.kind == "whole" else FINE.get(field, 0.1)),
        format="%d" if text.kind == "whole" else "%g",
        key=field,
        help=help_of(field),
        placeholder=placeholder if placeholder is not None else say("empty"),
        on_change=on_change or "rerun",
        bind=BIND,
    )


def share(field: str) -> None:
    """A share between two limits, as a slider."""
    text = describe(field)
    st.slider(
        label_of(field),
        min_value=float(text.low or 0.0),
        max_value=float(text.high or 1.0),
        value=float(text.default or 0.0),
        step=0.01,
        format="%.2f",
        key=field,
        help=help_of(field),
        bind=BIND,
    )


def menu(
    field: str,
    options: Sequence[str] | None = None,
    placeholder: str | None = None,
    on_change: Callable[[], None] | None = None,
) -> None:
    """One of a list; the list shows ids, since what is shown is what the address holds."""
    text = describe(field)
    listed = list(options if options is not None else text.options)
    st.selectbox(
        label_of(field),
        listed,
        index=None if text.default is None else listed.index(str(text.default)),
        key=field,
        help=help_of(field),
        placeholder=placeholder or say("empty"),
        on_change=on_change or "rerun",
        bind=BIND,
    )


def choice(field: str, options: Sequence[Any], on_change: Callable[[], None] | None = None) -> None:
    """One of a few, all of them visible."""
    text = describe(field)
    default = "off" if text.kind == "switch" else text.default
    st.segmented_control(
        label_of(field),
        list(options),
        default=default,
        required=True,
        key=field,
        help=help_of(field),
        on_change=on_change or "rerun",
        width="stretch",
        bind=BIND,
    )
