"""Words that all chart specifications are made of: axes, legends, labels, tooltips, the frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
import streamlit as st

from planner.ui.theme import Palette

Spec: TypeAlias = dict[str, Any]
Datasets: TypeAlias = Mapping[str, pa.Table]

DIGITS: Final = ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9))
"""Leading digits of ticks: few where an axis spans decades, more the less it spans, so that three at least are shown."""

SPANS: Final = (20, 4)
"""Largest over smallest value from which on the first digits do, and the second."""

SVG: Final = {"embedOptions": {"renderer": "svg", "actions": False}}


def draw(spec: Spec, data: Datasets, alt: str) -> None:
    """Put a chart on the page."""
    st.vega_lite_chart({**spec, "datasets": dict(data)}, alt=alt)


def pick(spec: Spec, data: Datasets, alt: str, key: str, field: str) -> str | None:
    """Put a chart on the page in which a reader may choose a mark; the `field` of the chosen one.

    The specification names its selection `key`, and lets it project on `field`.
    """
    chosen: Any = st.vega_lite_chart(
        {**spec, "datasets": dict(data)}, alt=alt, key=key, on_select="rerun", selection_mode=[key]
    )
    found = chosen["selection"].get(key) if chosen else None
    return str(found[0][field]) if found and field in found[0] else None


def chart(ink: Palette, height: int, layers: list[Spec], **more: object) -> Spec:
    """A chart of layers with a fixed height and the container's width."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 2, "right": 8, "top": 2, "bottom": 2},
        "layer": [_silent(layer) for layer in layers],
        "usermeta": SVG,
        "background": "transparent",
        "config": {"view": {"stroke": None}, "axis": {"gridColor": ink.grid, "domainColor": ink.grid}},
        **more,
    }


def _silent(layer: Spec) -> Spec:
    """A layer whose marks a screen reader skips: the chart's `alt` and the table behind it say it better."""
    return {**layer, "mark": {**layer["mark"], "aria": False}}


def axis(ink: Palette, title: str, **more: object) -> Spec:
    """An axis in the inks of the theme."""
    text = {
        "labelColor": ink.muted,
        "titleColor": ink.muted,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 400,
    }
    return {"title": title, "gridColor": ink.grid, "tickColor": ink.grid, "domainColor": ink.grid, **text, **more}


def legend(ink: Palette, columns: int) -> Spec:
    """A legend below the chart."""
    return {
        "title": None,
        "orient": "bottom",
        "columns": columns,
        "labelColor": ink.ink,
        "labelFontSize": 12,
        "symbolType": "square",
        "symbolSize": 110,
        "symbolStrokeWidth": 0,
    }


def log_ticks(scale: str) -> str:
    """Ticks of a log axis by its span, worked out where the chart is drawn: the specification stays the same."""
    few, some, many = (
        [float(f"{digit * 10**power:.6g}") for power in range(-3, 7) for digit in digits] for digits in DIGITS
    )
    span = f"domain('{scale}')[1] / domain('{scale}')[0]"
    return f"{span} > {SPANS[0]} ? {few} : {span} > {SPANS[1]} ? {some} : {many}"


def text(colour: str) -> Spec:
    """A label of a mark."""
    return {"type": "text", "fontSize": 12, "fontWeight": 600, "color": colour}


def tip(field: str, title: str) -> Spec:
    """One line of a tooltip; its text is finished in the data."""
    return {"field": field, "type": "nominal", "title": title}
