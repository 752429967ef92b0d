"""How far off predictions are: the parity plot, errors by group, where they are worst and why, memory, and other tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from statistics import median
from typing import Final

import pyarrow as pa
import streamlit as st

from planner.accuracy import (
    GROUPINGS,
    METRICS,
    Compared,
    Grouping,
    Trouble,
    compared,
    error_within,
    selected,
    share_in_band,
    share_within,
    split,
    troubles,
)
from planner.catalog.evidence import MetricName, Where
from planner.catalog.version import catalogue_version
from planner.errors import CatalogueError
from planner.predicted import ServedPoint, predicted_with, served_points
from planner.ui import show, trust_evidence, trust_limits, trust_parity, trust_parity_data
from planner.ui.marks import Datasets, draw
from planner.ui.theme import mode
from planner.ui.trust_groups import fold_formats, fold_table, formats, group_table
from planner.ui.trust_words import as_error, word
from planner.units import whole

KEYS: Final[dict[Grouping, str]] = {name: f"_trust_only_{name}" for name in GROUPINGS}
"""Keys of the filters in the session."""

ALL: Final = ""
"""The value of a filter that lets everything through."""

TABLE_PIXELS: Final = 420
LEANING: Final = 0.05
"""How far the median prediction is off its measurement before the finding says so, as a share."""

MEMORY_CHAPTER: Final = "Memory against engine logs"


def section() -> None:
    """Everything that says how right the numbers are."""
    try:
        points, made_with = served_points(), predicted_with()
    except CatalogueError as error:
        st.warning(show.plain(f"{word('no_accuracy')} {error}"), icon=":material/block:")
        return
    if made_with != catalogue_version():
        st.warning(show.plain(word("stale", then=made_with, now=catalogue_version())), icon=":material/history:")
    _compare(points)
    with show.card(word("folds"), "card_trust_folds"):
        st.markdown(show.plain(word("folds_said")))
        show.table(fold_table(), word("folds"), fold_formats(), "content")
    with show.card(word("memory_errors"), "card_trust_memory"):
        trust_limits.draw(
            trust_limits.chapter(trust_limits.document("VALIDATION.md"), MEMORY_CHAPTER) or word("no_memory")
        )
    with show.card(word("peers"), "card_trust_peers"):
        trust_evidence.other_tools()


def _compare(points: tuple[ServedPoint, ...]) -> None:
    """The plot with its controls, and what follows from the points that they let through."""
    with show.card(word("parity"), "card_trust_parity"):
        controls, plot = st.columns([2, 5], gap="medium")
        with controls:
            metric, by = _choices()
            where = _filters()
            st.caption(show.plain(coverage(points)))
        found = found_by(where, metric)
        with plot:
            _plot(where, metric, by)
        if found:
            show.behind(word("every_point"), "_trust_points", lambda: _every_point(where, metric))
    if not found:
        return
    with show.card(word("groups", by=word(by).lower()), "card_trust_groups"):
        st.markdown(show.plain(f"{word('groups_said')} {word('in_sample')}"))
        show.table(group_table(found, metric, by), word("groups", by=word(by).lower()), formats(), "content")
        show.behind(word("counted"), "_trust_counted", _counted)
    with show.card(word("troubles"), "card_trust_troubles"):
        trust_evidence.bad_groups(_troubles(where, metric))


def _counted() -> None:
    """What the document on validation says first: how errors are counted, and what they do not show."""
    trust_limits.draw(trust_limits.headline(trust_limits.document("VALIDATION.md")) or word("no_accuracy"))


def _choices() -> tuple[MetricName, Grouping]:
    """Which figure, and what points are coloured and grouped by."""
    metric = st.segmented_control(
        word("metric"), METRICS, format_func=word, default=METRICS[0], required=True, wrap=True, key="_trust_metric",
        persist_state="session",
    )  # fmt: skip
    by = st.segmented_control(
        word("by"), GROUPINGS, format_func=_short, default=GROUPINGS[0], required=True, wrap=True, key="_trust_by",
        persist_state="session",
    )  # fmt: skip
    return metric, by


def _filters() -> Where:
    """Which points: one value of each grouping, or all; the values with the most points come first."""
    chosen = {
        by: st.selectbox(
            word(by), (ALL, *_values(by)), format_func=_named, key=key, persist_state="session"
        )
        for by, key in KEYS.items()
    }  # fmt: skip
    if any(chosen.values()):
        st.button(word("clear"), icon=":material/filter_alt_off:", on_click=_clear, key="_trust_clear")
    return Where(**{by: value or ALL for by, value in chosen.items()})


@cache
def _values(by: Grouping) -> tuple[str, ...]:
    """Values of one grouping among the points that are predicted."""
    return tuple(value for value, _ in split(compared(served_points(), METRICS[0]), by))


def _short(by: Grouping) -> str:
    """A grouping in one word."""
    return word(f"by_{by}")


def _named(value: str) -> str:
    """A value of a filter, as its menu shows it."""
    return value or word("all_of")


def _clear() -> None:
    """Let every point through again."""
    for key in KEYS.values():
        st.session_state[key] = ALL


@lru_cache(maxsize=64)
def found_by(where: Where, metric: MetricName) -> tuple[Compared, ...]:
    """The shipped points that a selection lets through, with both figures of a metric."""
    return compared(selected(served_points(), where), metric)


@lru_cache(maxsize=64)
def _troubles(where: Where, metric: MetricName) -> tuple[Trouble, ...]:
    """Badly predicted groups of a selection, kept for all sessions."""
    return troubles(selected(served_points(), where), metric)


@lru_cache(maxsize=8)
def _rows(where: Where, metric: MetricName, by: Grouping) -> Datasets:
    """Rows of the plot, kept for all sessions."""
    return trust_parity_data.parity_data(found_by(where, metric), metric, by)


@lru_cache(maxsize=8)
def _table(where: Where, metric: MetricName) -> pa.Table:
    """Rows of the table behind the plot, kept for all sessions."""
    return trust_parity_data.parity_table(found_by(where, metric), metric)


def _plot(where: Where, metric: MetricName, by: Grouping) -> None:
    """The finding, the plot and the table behind it; without points, what to do."""
    found = found_by(where, metric)
    if not found:
        st.info(show.plain(word("no_match")), icon=":material/filter_alt:")
        return
    show.finding(finding(found, metric))
    alt = word("parity_alt", metric=trust_parity.TITLES[metric], points=whole(len(found)))
    draw(trust_parity.parity(mode(), metric, by), _rows(where, metric, by), alt)
    st.caption(show.plain(f"{word('parity_said')} {word(f'{metric}_means')}"))


def _every_point(where: Where, metric: MetricName) -> None:
    """The points of the plot as a table that can be sorted and searched."""
    unit = trust_parity_data.UNITS[metric]
    look = {f"Measured, {unit}": "%.4g", f"Predicted, {unit}": "%.4g", "Error, %": "%+.0f"}
    show.table(_table(where, metric), word("every_point"), look, TABLE_PIXELS)


def finding(found: Sequence[Compared], metric: MetricName) -> str:
    """What the plot shows, in a sentence: of at least one point."""
    error = as_error(error_within(found))
    if len(found) == 1:
        return word("one_point", error=error)
    said = {"points": whole(len(found)), "error": error, "share": f"{share_within(found, trust_parity_data.NEAR):.0%}"}
    band = share_in_band(found) if metric == "TPOT" else None
    first = word("parity_plain", **said) if band is None else word("parity_found", **said, band=f"{band:.0%}")
    bias = median(each.ratio for each in found)
    return first if abs(bias - 1.0) < LEANING else f"{first} {word('leaning', bias=f'{bias:.2f}')}"


def coverage(points: Sequence[ServedPoint]) -> str:
    """How many of the shipped points are predicted, and why others are not."""
    made = sum(not point.reason for point in points)
    return word("coverage", made=whole(made), points=whole(len(points)))
