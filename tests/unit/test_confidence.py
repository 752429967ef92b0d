"""How sure a plan's figures are: bands beside them, and the largest batch with 80 % confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.confidence import ENDS, Span, band, band_text, rate_band, sure_text
from planner.plan import Plan
from planner.report import plan_text
from planner.share import from_link
from planner.single import plan_of, plan_setting
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.ui import band_words
from tests.asking import setting, table
from tests.samples import plan

DENSE: dict[str, Any] = {"model": "llama-3.1-70b", "gpu": "h100-sxm", "weights": "fp8", "tp": 4}
EXPERTS: dict[str, Any] = {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "tp": 8, "ep": 8}


def with_sure(sure: float, **asked: Any) -> Plan:
    """The plan of a scenario where measured TPOT stays below so many times the predicted in four cases of five."""
    at = setting(**asked)
    return plan_setting(replace(at, profile=replace(at.profile, band_sure=sure)))


@pytest.mark.parametrize("sure", [1.04, 1.2, 1.6])
@pytest.mark.parametrize(
    "asked",
    [
        DENSE,
        {**DENSE, "sla_tpot_ms": 30.0},
        {**DENSE, "sla_ttft_ms": 400.0},
        EXPERTS,
        {**DENSE, "isl": 8000, "osl": 200, "sla_ttft_ms": 5000.0},
    ],
)
def test_the_surest_batch_is_the_largest_of_all_that_keep_the_promise_at_the_longer_tpot(
    asked: dict[str, Any], sure: float
) -> None:
    found = with_sure(sure, **asked)
    where, promise = layout(tp=asked["tp"], ep=asked.get("ep", 1)), found.scenario
    kept = []
    for batches in np.array_split(np.arange(1.0, found.b_max + 1.0), 1 + found.b_max // 200):
        rows = table(setting(**asked), where, batches)
        kept += batches[(rows.tpot_ms * sure <= promise.sla_tpot_ms) & (rows.ttft_ms <= promise.sla_ttft_ms)].tolist()
    assert found.b_max > 1
    assert found.b_max_sure == max(kept, default=0)


def test_a_promise_that_only_the_estimate_keeps_leaves_no_sure_batch() -> None:
    """Predicted at 1.0 of the promise at batch 1, and measured up to 1.2 times that: not even one request is sure."""
    alone = float(table(setting(**DENSE), layout(tp=4), [1.0]).tpot_ms[0])
    found = with_sure(1.2, **DENSE, sla_tpot_ms=round(1.1 * alone, 3))
    assert (found.b_max_sure, found.b_max > 0) == (0, True)
    assert band_words.batch(found) == "not sure to meet the SLA even at batch 1"
    assert "not sure to meet the SLA even at batch 1" in plan_text(found)


def test_where_the_cache_binds_by_far_confidence_changes_nothing() -> None:
    asked = {**DENSE, "isl": 30_000, "osl": 1000, "sla_tpot_ms": 500.0, "sla_ttft_ms": 60_000.0, "tp": 2}
    found = with_sure(1.6, **asked)
    assert found.binds == "kv"
    assert found.b_max_sure == found.b_max > 0
    assert sure_text(found) == f"{found.b_max:,}"
    assert band_words.batch(found) == ""


def test_ends_are_the_figure_times_the_profile() -> None:
    found, clock = plan_of(Scenario(**DENSE, qps=5)), setting(**DENSE).profile
    for figure, (low, high) in (("ttft_ms", clock.band_ttft), ("output_tok_s", clock.band_rate)):
        value, span = getattr(found, figure), band(found, figure)
        assert span is not None
        assert (span.low, span.high) == (pytest.approx(low * value), pytest.approx(high * value))
    slow, fast = clock.band_rate
    dollars = band(found, "usd_per_m_goodput")
    assert dollars is not None
    assert dollars.low == pytest.approx(found.usd_per_m_goodput / fast)
    assert dollars.high == pytest.approx(found.usd_per_m_goodput / slow)


def test_the_textbook_has_no_band_anywhere() -> None:
    found = plan_of(from_link("preset=llama70b-fp8-c"))
    assert found.scenario.profile == "textbook"
    assert [band(found, figure) for figure in ENDS] == [None] * len(ENDS)
    assert found.b_max_sure == found.b_max
    assert band_words.table(found) == []
    assert (band_words.tpot(found), band_words.rate(found), band_words.cost(found)) == ("", "", "")
    assert "80\u00a0% band" not in plan_text(found)


def test_the_report_has_the_band_beside_its_figure() -> None:
    said = plan_text(plan())
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in said.splitlines() if line.startswith("  ")}
    assert lines["tpot_ms"] == "49.5 ms (80 % band 44.5 to 54.5 ms)"
    assert lines["ttft_ms"] == "180 ms (80 % band 108 to 288 ms)"
    assert lines["output_tok_s"] == "1,860 tok/s (80 % band 1,490 to 2,230 tok/s)"
    assert lines["usd_per_m_goodput"] == "$0.410 per M good tokens (80 % band $0.342 to $0.513 per M good tokens)"
    assert lines["b_max_sure"] == "80 sequences (80 with 80 % confidence, 92 expected)"


def test_words_of_the_tiles() -> None:
    """1,486.87 and 2,230.30 tok/s of four GPUs: 371.7 and 557.6 of one."""
    assert band_words.batch(plan()) == "80 with 80 % confidence, 92 expected"
    assert band_words.tpot(plan()) == "80 % band 44.5 to 54.5 ms"
    assert band_words.rate(plan()) == "80 % band 372 to 558 tok/s"
    assert band_words.cost(plan()) == "80 % band $0.342 to $0.513"
    assert band_words.batch(plan(b_max_sure=92)) == ""


def test_the_table_of_estimates() -> None:
    assert band_words.table(plan()) == [
        ("Largest batch per replica", "92", "80 with 80 % confidence"),
        ("TPOT", "49.5 ms", "44.5 to 54.5 ms"),
        ("TTFT, before queues", "180 ms", "108 to 288 ms"),
        ("Output per replica", "1,860 tok/s", "1,490 to 2,230 tok/s"),
        ("Million good tokens", "$0.410", "$0.342 to $0.513"),
    ]


def test_units_of_both_ends_are_named_where_they_differ() -> None:
    assert Span(800.0, 1600.0).text("ms") == "800 ms to 1.60 s"
    assert Span(80.0, 160.0).text("ms") == "80.0 to 160 ms"


def test_a_figure_without_a_value_has_no_band() -> None:
    none = plan(usd_low_per_m_goodput=None, usd_high_per_m_goodput=None, output_low_tok_s=None, output_high_tok_s=None)
    assert band_text(none, "usd_per_m_goodput") == ""
    assert rate_band(none, 100.0) is None
