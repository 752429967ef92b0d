"""Units: which unit every field of a scenario or plan carries, and how a number is shown with it.

GB is 10^9 bytes and GiB is 2^30 bytes; whoever shows bytes says which of the two is meant.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, Final, TypeAlias

Seconds: TypeAlias = Annotated[float, "s"]
Bytes: TypeAlias = Annotated[float, "B"]
Flops: TypeAlias = Annotated[float, "FLOP"]
BytesPerSecond: TypeAlias = Annotated[float, "B/s"]
FlopsPerSecond: TypeAlias = Annotated[float, "FLOP/s"]

DASH: Final = "–"
"""Shown for what is not applicable or not known."""

GB: Final = 1e9
GIB: Final = 2.0**30

_SUFFIX: Final = (
    ("_bytes_per_token", "bytes/token"),
    ("_bytes", "bytes"),
    ("_ms", "ms"),
    ("_tok_s_gpu", "tok/s per GPU"),
    ("_tok_s", "tok/s"),
    ("usd_per_hour", "$/h"),
    ("usd_per_m_output", "$/M tokens"),
    ("_per_m_goodput", "$/M good tokens"),
    ("_tokens_rank", "tokens"),
    ("_tokens", "tokens"),
    ("_s", "s"),
)

_TABLE: Final = {
    "price": "$/GPU-hour",
    "qps": "requests/s",
    "sla_pct": "percentile",
    "isl": "tokens",
    "osl": "tokens",
    "max_len": "tokens",
    "token_budget": "tokens",
    "chunk": "tokens",
    "spec": "tokens",
    "redundant": "experts",
    "at_batch": "sequences",
    "max_seqs": "sequences",
    "b_max": "sequences",
    "b_max_kv": "sequences",
    "b_max_kv_mean": "sequences",
    "b_max_sla": "sequences",
    "b_max_sure": "sequences",
    "batch": "sequences",
    "prefill_workers": "workers",
    "decode_workers": "workers",
    "fix_replicas": "replicas",
    "spare": "replicas",
    "replicas": "replicas",
    "gpus": "GPUs",
    "gpus_per_replica": "GPUs",
    "rate": "requests/s",
    "clients": "requests",
    "requests": "requests",
    "in_flight": "requests",
}


def unit_of(field: str) -> str:
    """Unit of a scenario or plan field; empty for a plain ratio, a degree of parallelism or a word."""
    if field in _TABLE:
        return _TABLE[field]
    return next((unit for suffix, unit in _SUFFIX if field.endswith(suffix)), "")


def show(value: float | None, unit: str = "") -> str:
    """A number as people read it, unit included; an en dash for None, NaN and infinities.

    Args:
        value: the number in `unit`.
        unit: `ms` and `s` switch at one second; `bytes` or `GB` are shown in GB (10^9), `GiB` takes bytes and is
            shown in GiB (2^30); `$…` has two decimals, three below one dollar; counts are shown in full; `%` takes
            a share. Any other unit is appended to three significant digits.
    """
    if value is None or not math.isfinite(value):
        return DASH
    if unit.startswith("$"):
        return f"{dollars(value)}{unit[1:].replace('/', ' per ', 1)}"
    if unit in _SHOWN:
        return _SHOWN[unit](value)
    return _joined(significant(value), unit)


def significant(value: float, digits: int = 3) -> str:
    """Three significant digits with thousands separators, never an exponent; integers of more digits are rounded."""
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded)))) if rounded else 0
    return f"{rounded:,.{decimals}f}"


def whole(value: float | None) -> str:
    """A count in full, with thousands separators; an en dash where there is none."""
    return DASH if value is None else f"{value:,.0f}"


def dollars(value: float) -> str:
    """Dollars: two decimals, three below one dollar; thousands separators."""
    sign = "-" if value < 0 else ""
    return f"{sign}${abs(value):,.{3 if 0 < abs(value) < 0.9995 else 2}f}"


def gigabytes(value: float) -> str:
    """Bytes in decimal gigabytes, named."""
    return f"{significant(value / GB)} GB"


def gibibytes(value: float) -> str:
    """Bytes in binary gibibytes, named."""
    return f"{significant(value / GIB)} GiB"


def _duration(seconds: float) -> str:
    short = abs(seconds) < 0.9995
    return f"{significant(seconds * 1e3)} ms" if short else f"{significant(seconds)} s"


def percent(share: float) -> str:
    """A share as somebody chose it, in percent: no digit more than was written; its space does not break."""
    return f"{round(share * 100, 3):g}\u00a0%"


def _percent(share: float) -> str:
    return f"{significant(share * 100)} %"


def _joined(number: str, unit: str) -> str:
    return f"{number} {unit}" if unit else number


def _counted(unit: str, value: float) -> str:
    """A count with its noun, which loses its plural for one."""
    return f"{whole(value)} {unit.removesuffix('s') if value == 1 else unit}"


_COUNTED: Final = ("tokens", "sequences", "experts", "workers", "replicas", "GPUs", "bytes/token", "requests")

_SHOWN: Final = {
    "s": _duration,
    "ms": lambda value: _duration(value / 1e3),
    "bytes": gigabytes,
    "GB": gigabytes,
    "GiB": gibibytes,
    "%": _percent,
} | {unit: functools.partial(_counted, unit) for unit in _COUNTED}
