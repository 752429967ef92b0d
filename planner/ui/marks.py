"""Words that all chart specifications are made of: axes, legends, labels, tooltips, the frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
import streamlit as st

from planner.ui.theme import Palette

Spec: TypeAlias = dict[str, Any]
Datasets: TypeAlias = Mapping[str, pa.Table]

SVG: Final = {"embedOptions": {"renderer": "svg", "actions": False}}


def draw(spec: Spec, data: Datasets, alt: str) -> None:
    """Put a chart on the page."""
    st.vega_lite_chart({**spec, "datasets": dict(data)}, alt=alt)


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


def text(colour: str) -> Spec:
    """A label of a mark."""
    return {"type": "text", "fontSize": 12, "fontWeight": 600, "color": colour}


def tip(field: str, title: str) -> Spec:
    """One line of a tooltip; its text is finished in the data."""
    return {"field": field, "type": "nominal", "title": title}
