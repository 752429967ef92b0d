"""What the Plan page says of each outcome: what breaks, what would keep the promise, what is hidden, who says so."""

from __future__ import annotations

from html import escape

import pytest

from planner.nearest import nearest_fit
from planner.share import from_link, to_link
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import text
from planner.units import show
from tests.app.test_plan_page import HALF, opened, said


def test_a_broken_promise_links_to_the_layout_that_keeps_it() -> None:
    broken = Scenario(weights="fp8", sla_tpot_ms=15.0)
    found = nearest_fit(broken)
    assert not plan_of(broken).meets_sla
    assert plan_of(found).meets_sla
    (link,) = [
        html
        for html in (block.proto.body for block in opened(to_link(broken)[1:]).main.get("html"))
        if "nearest" in html
    ]
    assert "keeps the SLA" in link
    assert escape(to_link(found)) in link
    hopeless = opened("weights=fp8&tp=4&sla_tpot_ms=5")
    assert not [html for html in hopeless.main.get("html") if "nearest" in html.proto.body]


def test_tokens_outside_the_sla_are_shown_and_said_not_to_count() -> None:
    plan, at = plan_of(Scenario(weights="fp8", tp=4, sla_tpot_ms=5)), opened("weights=fp8&tp=4&sla_tpot_ms=5")
    assert at.metric[3].value == show(plan.output_tok_s / plan.gpus_per_replica, "tok/s")
    assert at.metric[3].delta == "none within the SLA"
    assert "good tokens have no price" in said(at)


def test_what_must_be_known_is_announced_beside_the_verdicts() -> None:
    assert "notes below" in said(opened("preset=llama70b-fp8-c"))
    page = said(opened())
    assert not any(words in page for words in ("note below", "notes below"))


def test_a_layout_that_cannot_be_served_says_which_degree_would_do() -> None:
    assert "TP 4, 8, 16 or 32 would keep the SLA" in said(opened())
    assert "Tensor parallelism alone does not help" in said(opened("model=llama-3.1-405b&gpu=a10&tp=4"))


def test_sources_are_grouped_by_who_says_it() -> None:
    plan = plan_of(from_link(HALF))
    at = opened(HALF, open_parts=("_sources",))
    (terms,) = [block.proto.body for block in at.main.get("html") if "<dl" in block.proto.body]
    assert terms.count("<dt") == len({line.partition(": ")[2] for line in plan.sources})
    assert all(escape(line.partition(": ")[2]) in terms for line in plan.sources)


def test_what_closed_sections_hide_is_said_below_them() -> None:
    assert "Also set: KV cache fp8, Pipeline (pp) 2, Usable share of throughput 0.7." in said(
        opened(HALF + "&pp=2&load=0.7&kv=fp8")
    )
    assert "Also set" not in said(opened(HALF))


def test_the_language_of_a_link_holds_from_the_first_run_and_everywhere() -> None:
    at = opened(HALF + "&lang=zh")
    assert text.ZH["section_layout"] in [part.label for part in at.sidebar.expander]
    assert text.ZH["tile_gpus"] in [tile.label for tile in at.metric]


@pytest.mark.parametrize(
    "query",
    [
        "profile=textbook&tp=4&prefill=disaggregated&prefill_tp=4",
        "model=llama-70b-nominal&profile=textbook&tp=4&prefill=disaggregated&prefill_gpu=h200-sxm",
        "model=falcon-180b&gpu=mi300x&profile=textbook&weights=int4&kv=fp8&tp=8&isl=1000000&osl=2&sla_ttft_ms=3600000"
        "&sla_tpot_ms=3600000&max_len=20000000&max_seqs=1000000&token_budget=10000000&price=1",
        "tp=4&prefill=disaggregated&prefill_tp=7",
        "model=llama-3.1-8b&profile=textbook&overlap=on",
    ],
)
def test_a_page_is_drawn_for_every_plan_that_a_link_may_say(query: str) -> None:
    assert not opened(query).exception
