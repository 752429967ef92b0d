"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from planner.plan import PLAN_FIELDS
from planner.specs.scenario import SCENARIO_FIELDS
from planner.units import show, unit_of


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ms", "–"),
        (math.nan, "", "–"),
        (math.inf, "$/h", "–"),
        (0, "ms", "0 ms"),
        (0.0, "", "0"),
        (49.96, "ms", "50.0 ms"),
        (999.4, "ms", "999 ms"),
        (999.9, "ms", "1.00 s"),
        (1234.5, "ms", "1.23 s"),
        (0.0123, "s", "12.3 ms"),
        (99.96, "", "100"),
        (9.996, "", "10.0"),
        (0.0009996, "", "0.00100"),
        (1234567, "", "1,230,000"),
        (468750, "tokens", "468,750 tokens"),
        (1, "replicas", "1 replica"),
        (80e9, "bytes", "80.0 GB"),
        (80e9, "GB", "80.0 GB"),
        (80 * 2**30, "GiB", "80.0 GiB"),
        (81920.0, "bytes/token", "81,920 bytes/token"),
        (48.2, "$/h", "$48.20 per h"),
        (0.41, "$/M good tokens", "$0.410 per M good tokens"),
        (1234.5, "$", "$1,234.50"),
        (0.9996, "$", "$1.00"),
        (0, "$", "$0.00"),
        (0.125, "%", "12.5 %"),
        (20.0, "requests/s", "20.0 requests/s"),
        (-2.5, "ms", "-2.50 ms"),
    ],
)
def test_show(value: float | None, unit: str, text: str) -> None:
    assert show(value, unit) == text


def test_gb_and_gib_are_named_and_not_mixed() -> None:
    assert show(85e9, "bytes") == "85.0 GB"
    assert show(85e9, "GiB") == "79.2 GiB"


def test_every_number_has_the_unit_that_its_name_says() -> None:
    for field in (*SCENARIO_FIELDS, *PLAN_FIELDS):
        unit = unit_of(field)
        if field.endswith("_ms"):
            assert unit == "ms"
        if "_bytes" in field:
            assert "bytes" in unit
        if field.startswith("usd_"):
            assert unit.startswith("$/")
        if field.startswith("b_max"):
            assert unit == "sequences"
    assert unit_of("kv_bytes_per_token") == "bytes/token"
    assert unit_of("goodput_tok_s_gpu") == "tok/s per GPU"
    assert unit_of("tp") == ""
