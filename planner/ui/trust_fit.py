"""Tables of what the last fit to served points found: constants with their start, factors of kernels, bands."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

import pandas as pd

from planner.catalog.band_records import Bands, OwnBand, Span
from planner.catalog.calibrated import AfterRecord, calibrated
from planner.catalog.fitted_constants import FittedValue, served
from planner.catalog.profile_records import LawFactor
from planner.ui.trust_speeds import unit_text
from planner.ui.trust_tables import frame
from planner.units import DASH


@cache
def value_table() -> pd.DataFrame:
    """Every fitted number, where the fit started, and its range over the fits that each left a pair out."""
    return frame(_value_row(each) for each in served().fitted)


def _value_row(each: FittedValue) -> dict[str, Any]:
    low, high = each.range
    return {
        "Constant": each.name,
        "Value": each.value,
        "Unit": unit_text(each.unit),
        "Start": each.start,
        "Range over folds": f"{low:g} to {high:g}",
        "Tag": "fitted",
        **_grounds(),
    }


@cache
def factor_table() -> pd.DataFrame:
    """What serving says about single kernels beside the constants that all of a kind share."""
    return frame(_factor_row(each) for each in served().law_factor)


def _factor_row(each: LawFactor) -> dict[str, Any]:
    return {
        "Accelerator": each.accelerator,
        "Engine": each.engine,
        "Kernel": each.kind,
        "Precision": each.precision,
        "Factor on its time": each.factor,
        "Configurations": each.configurations,
        "Pairs": each.pairs,
        "Tag": "fitted",
        **_grounds(),
    }


def _grounds() -> dict[str, Any]:
    """Date and source of a fitted number."""
    return {"Date": served().date, "Source": served().source}


@cache
def band_table() -> pd.DataFrame:
    """Bands of measured over predicted: of TPOT by what is known about a case, of TTFT and rate, after a calibration."""
    known, after = served().band, calibrated()
    own = (_own(each, known) for each in known.own)
    spans = (_span(each, known) for each in known.span)
    given = (_given(each, after.date, after.source) for each in (after.after_one, after.after_three))
    return frame(chain(_tpot(known), own, spans, given))


def _tpot(known: Bands) -> Iterator[dict[str, Any]]:
    yield _band("TPOT", "kernels timed on the accelerator", (known.low, known.high, known.sure), known)
    borrowed = known.borrowed_low, known.borrowed_high, known.borrowed_sure
    yield _band("TPOT", "borrowed kernels", borrowed, known)
    yield _band("TPOT", "vendor, link or law not measured", (known.wide_low, known.wide_high, known.wide_sure), known)


def _own(each: OwnBand, known: Bands) -> dict[str, Any]:
    return _band("TPOT", each.words, (each.low, each.high, each.sure), known)


def _span(each: Span, known: Bands) -> dict[str, Any]:
    return _band(each.words, each.group, (each.low, each.high, None), known, f"{each.points:,}")


def _given(each: AfterRecord, date: str, source: str) -> dict[str, Any]:
    ends = each.low, each.high, each.sure
    return _row("TPOT", f"calibrated by {each.given}", ends, f"{each.rows:,}", date, source)


def _band(
    of: str, where: str, ends: tuple[float, float, float | None], known: Bands, points: str = DASH
) -> dict[str, Any]:
    return _row(of, where, ends, points, known.date, known.source)


def _row(
    of: str, where: str, ends: tuple[float, float, float | None], points: str, date: str, source: str
) -> dict[str, Any]:
    low, high, sure = ends
    return {
        "Of": of,
        "Where": where,
        "Low, ×": low,
        "High, ×": high,
        "Four in five below, ×": DASH if sure is None else f"{sure:g}",
        "Points": points,
        "Date": date,
        "Source": source,
    }
