"""The figures of one run: what the formats' names mean, in which unit they stand, and how large they may be."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

from planner.logs.statements import Statement, Statements, amount, refusal

SECONDS: Final = 1000.0
"""Milliseconds in a second."""


@dataclass(frozen=True)
class Figures:
    """Figures of one run as stated; None = not stated.

    Attributes:
        concurrency: requests that the load generator holds in flight at most. mean_concurrency: that were, on average.
        request_rate: arrivals asked for [1/s]; inf = all at once. served_rate: requests completed a second [1/s].
        input_tokens, output_tokens: of all completed requests. prompts: requests that were to be sent.
        duration_s: length of the run [s]. The others are those of a Point.
    """

    concurrency: float | None = None
    mean_concurrency: float | None = None
    request_rate: float | None = None
    served_rate: float | None = None
    duration_s: float | None = None
    isl: float | None = None
    osl: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    tpot_ms: float | None = None
    itl_ms: float | None = None
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    tpot_median_ms: float | None = None
    ttft_median_ms: float | None = None
    tpot_p99_ms: float | None = None
    ttft_p99_ms: float | None = None
    output_tok_s: float | None = None
    requests: float | None = None
    failed: float | None = None
    prompts: float | None = None


@dataclass(frozen=True)
class Column:
    """Where a figure stands: names in the order of preference, and what one of its units is in ours."""

    field: str
    names: tuple[str, ...]
    factor: float = 1.0


FIGURES: Final = tuple(item.name for item in fields(Figures))

LONGEST_MS: Final = 1e8
"""Longest time that is believed [ms]: more than a day."""
_TOKENS, _TOTAL, _COUNT, _RATE, _FLOW = 1e8, 1e13, 1e9, 1e6, 1e9
LIMITS: Final = {
    "concurrency": 1e6,
    "mean_concurrency": 1e6,
    "request_rate": _RATE,
    "served_rate": _RATE,
    "duration_s": 1e8,
    "isl": _TOKENS,
    "osl": _TOKENS,
    "input_tokens": _TOTAL,
    "output_tokens": _TOTAL,
    "output_tok_s": _FLOW,
    "requests": _COUNT,
    "failed": _COUNT,
    "prompts": _COUNT,
}
"""Largest values that are believed of figures that are no times."""

WHOLE: Final = frozenset({"requests", "failed", "prompts"})
MAY_BE_ZERO: Final = frozenset({"requests", "failed", "prompts"})
"""Elsewhere the tools print 0 for what they did not measure, so 0 is taken as not stated."""


def figures_of(said: Statements, columns: tuple[Column, ...], *, above_zero: frozenset[str] = frozenset()) -> Figures:
    """The figures of one run, in our units; of those that are `above_zero`, 0 is a mistake and not unstated.

    Raises:
        InputError: for a figure that is no number, not finite, negative or beyond belief.
    """
    found = {column.field: _figure(said, column, column.field in above_zero) for column in columns}
    return Figures(**found)


def _figure(said: Statements, column: Column, above_zero: bool) -> float | None:
    row = said.find(*column.names)
    if row is None:
        return None
    value = checked(column.field, amount(row) * column.factor, row)
    if above_zero and not value:
        raise refusal(f"{row.name} {row.value}", "must be above 0; leave it empty if it is not known", row.line)
    return value if value or column.field in MAY_BE_ZERO else None


def checked(field: str, value: float, row: Statement) -> float:
    """A value of a figure, if it can be believed.

    Raises:
        InputError: when it cannot.
    """
    if field == "request_rate" and value == math.inf:
        return value
    limit = LIMITS.get(field, LONGEST_MS)
    if not 0 <= value <= limit:
        raise refusal(f"{row.name} {row.value}", f"must be from 0 to {limit:,.0f} in {unit_of(field)}", row.line)
    if field in WHOLE and value != int(value):
        raise refusal(f"{row.name} {row.value}", "must be a whole number of requests", row.line)
    return value


def unit_of(field: str) -> str:
    """The unit of a figure, in words."""
    if field.endswith("_ms"):
        return "milliseconds"
    units = {"duration_s": "seconds", "output_tok_s": "tokens a second"}
    if field in units:
        return units[field]
    if field.endswith("_rate"):
        return "requests a second"
    return "tokens" if field in ("isl", "osl") or field.endswith("_tokens") else "requests"
