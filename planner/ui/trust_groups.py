"""The table of errors: of all points shown, then by engine, accelerator or model family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from planner.accuracy import Compared, Grouping, errors, share_in_band, split
from planner.catalog.evidence import MetricName
from planner.catalog.fitted_constants import GroupError, served
from planner.ui.trust_words import word

PERCENT: Final = "%.1f"
COLUMNS: Final = {
    "col_configurations": "%,d",
    "col_points": "%,d",
    "col_median": PERCENT,
    "col_mean": PERCENT,
    "col_p90": PERCENT,
    "col_bias": "%.2f",
    "col_band": "%.0f",
}
"""Columns after the first by the key of their title, with the format of their numbers."""


FOLD_COLUMNS: Final = {
    "col_configurations": "%,d",
    "col_points": "%,d",
    "col_within": PERCENT,
    "col_out": PERCENT,
    "col_mean": PERCENT,
    "col_p90": PERCENT,
    "col_bias": "%.2f",
}
"""The same of the table of errors out of fold."""


def fold_formats() -> dict[str, str]:
    """Number formats by title of column of the table of errors out of fold."""
    return {word(key): form for key, form in FOLD_COLUMNS.items()}


def fold_table() -> pa.Table:
    """Errors of TPOT as the last fit left them: within it, and of pairs that it had not seen; all first, then groups."""
    titles = (word("col_group"), *map(word, FOLD_COLUMNS))
    rows = [(_group(each.group), *_fold(each)) for each in served().error]
    return pa.table({title: list(cells) for title, cells in zip(titles, zip(*rows, strict=True), strict=True)})


def _group(name: str) -> str:
    """A group of the preset file as it is read: `engine sglang` is an engine, `all` everything."""
    kind, _, which = name.partition(" ")
    return f"{word(kind)}: {which}" if which else word("everything")


def _fold(found: GroupError) -> tuple[float, ...]:
    """One row's numbers, in the order of `FOLD_COLUMNS`."""
    shares = (100 * share for share in (found.within, found.out_of_fold, found.mean, found.p90))
    return found.configurations, found.points, *shares, found.bias


def formats() -> dict[str, str]:
    """Number formats by title of column."""
    return {word(key): form for key, form in COLUMNS.items()}


def group_table(found: Sequence[Compared], metric: MetricName, by: Grouping) -> pa.Table:
    """Errors of all points, then of each group, most points first; of at least one point."""
    groups = ((word("all_points"), tuple(found)), *split(found, by))
    rows = [(name, *_numbers(pairs, metric)) for name, pairs in groups]
    titles = (word(by), *map(word, COLUMNS))
    columns = dict(zip(titles, zip(*rows, strict=True), strict=True))
    if metric != "TPOT":
        del columns[word("col_band")]
    return pa.table({title: list(cells) for title, cells in columns.items()})


def _numbers(pairs: Sequence[Compared], metric: MetricName) -> tuple[float | None, ...]:
    """One row's numbers, in the order of `COLUMNS`."""
    found, band = errors(pairs, metric, ""), share_in_band(pairs)
    shares = (100 * share for share in (found.median, found.mean, found.p90))
    return found.configurations, found.rows, *shares, found.bias, None if band is None else 100 * band
