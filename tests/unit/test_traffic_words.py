"""Words and figures of the Traffic page: what they must say of made-up findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.simulate.run import simulate
from planner.simulate.studies import Routing, Way
from planner.simulate.summary import Spread
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import traffic_data, traffic_findings, traffic_sentences, words

ASKED = Scenario(weights="fp8", tp=4, fix_replicas=2, osl=32, sla_ttft_ms=500.0, sla_pct=99.0)


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.0, "100 %"), (0.9999, "99.9 %"), (0.5, "50.0 %"), (0.022, "2.20 %"), (0.00456, "0.456 %"), (0.0, "0 %")],
)
def test_a_share_has_three_digits_and_is_never_rounded_up_to_all(value: float, said: str) -> None:
    assert traffic_sentences.share(value) == said.replace(" ", "\u00a0")


@pytest.mark.parametrize(
    ("value", "said"),
    [(1096.2, "1,096"), (192.4, "192"), (29.46, "29.5"), (-60.0, "\u221260.0"), (0.0, "0"), (None, "–")],
)
def test_a_figure_of_a_table_has_three_digits_and_a_minus_sign(value: float | None, said: str) -> None:
    assert traffic_data.figure(value) == said


def test_a_reason_of_theory_is_the_second_half_of_a_sentence() -> None:
    assert (
        traffic_sentences.reason("Above 90 % of saturation queues are long. ")
        == "above 90 % of saturation queues are long"
    )
    assert traffic_sentences.reason("TTFT is not known.") == "TTFT is not known"


def test_the_line_of_what_ran_has_its_own_lengths_and_load() -> None:
    plan = plan_of(ASKED)
    assert "one replica" in words.context(plan)
    ran = words.context(plan, (1200.4, 150.6), "10.0 requests/s on 2 replicas")
    assert "1,200 tokens in, 151 out on average · 10.0 requests/s on 2 replicas" in ran
    assert "one replica" not in ran
    assert "1,024 tokens in, 32 out · 10.0" in words.context(plan, (1024.0, 32.0), "10.0 requests/s on 2 replicas")


def routed(*figures: tuple[str, int, float], holds: bool) -> Routing:
    """Ways that most requests find good, with a TTFT [ms] each."""
    summary = simulate(ASKED, Traffic(requests=20)).summary
    ways = tuple(
        Way(router, limit, replace(summary, share_good=0.995, meets_sla=holds, ttft=Spread(*(6 * [ttft]))))
        for router, limit, ttft in figures
    )
    return Routing(ways, (12, 24), "least-loaded", 24, 2, False)


def test_routers_are_told_apart_by_ttft_where_the_limit_does_not_matter() -> None:
    figures = [
        ("round-robin", 12, 192.0),
        ("round-robin", 24, 192.0),
        ("least-loaded", 12, 228.0),
        ("least-loaded", 24, 228.0),
    ]
    said = traffic_findings.routing(routed(*figures, holds=True), ASKED)
    assert said == "The limit does not matter here; round robin has the lowest TTFT P99: 192 ms against 228 ms."
    assert traffic_findings.routing(routed(*figures, holds=False), ASKED).startswith("None holds, and the limit")


def test_where_nothing_holds_the_best_is_the_least_bad() -> None:
    figures = [("round-robin", 24, 900.0), ("least-loaded", 12, 700.0), ("least-loaded", 24, 990.0)]
    assert traffic_findings.routing(routed(*figures, holds=False), ASKED).startswith(
        "None holds; least bad: least loaded with 12"
    )
    assert traffic_findings.routing(routed(*figures, holds=True), ASKED).startswith("Best: least loaded with 12")
