"""The Advice and Techniques cards of the Plan page, without a browser: what they say, and where their links lead."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from planner.advise import advise
from planner.share import from_link, to_link
from planner.single import plan_of
from planner.techniques import techniques
from planner.ui import text
from planner.ui.techniques_block import MEASURES
from tests.app.test_plan_page import opened, said

HALF = "weights=fp8&tp=4"
BAD = "weights=int4&tp=4"
MOE = "model=deepseek-v3&weights=fp8&gpu=h200-sxm&tp=8&ep=8"
TABLE = ("_techniques_table",)


def html(at: AppTest, label: str) -> str:
    """The HTML of one of the two cards."""
    (found,) = [each.proto.body for each in at.main.get("html") if f'aria-label="{label}"' in each.proto.body]
    return found


def links(body: str) -> list[str]:
    """Addresses in a piece of HTML."""
    return [unescape(href) for href in re.findall(r'href="([^"]+)"', body)]


def words(body: str) -> str:
    """HTML without its tags."""
    return unescape(re.sub(r"<[^>]+>", " ", body))


def heads(at: AppTest) -> list[str]:
    """Headings of the cards, in the order of the page."""
    return [header.value for header in at.main.header]


def test_both_cards_stand_below_the_others_and_above_the_share_row():
    assert heads(opened(HALF))[-3:] == ["Advice", "Techniques", "Share this plan"]


def test_every_piece_of_advice_is_on_the_page_warnings_first():
    at, found = opened(BAD), advise(from_link(BAD))
    body = words(html(at, "Advice"))
    assert found[0].kind == "warning"
    places = [body.index(each.text) for each in found]
    assert places == sorted(places)
    assert body.split()[0] == "Warning:"
    count = sum(each.kind == "warning" for each in found)
    assert f"{count} to mend, {len(found) - count} to know." in said(at)


@pytest.mark.parametrize("query", [HALF, BAD, MOE, ""])
def test_a_link_of_advice_opens_the_scenario_with_its_change_made(query: str):
    scenario = from_link(query)
    expected = [to_link(scenario.with_(**each.change)) for each in advise(scenario) if each.change is not None]
    found = links(html(opened(query), "Advice"))
    assert [urlsplit(href).query for href in found] == [urlsplit(href).query for href in expected]
    for href in found:
        assert plan_of(from_link(href)).ttft_ms is not None


def test_a_link_says_what_it_changes():
    body = html(opened(BAD), "Advice")
    assert "Apply weights=fp8</a>" in body


def test_a_plan_that_does_not_fit_has_advice_too():
    assert "first to fit" in words(html(opened(), "Advice"))


def test_techniques_are_worked_out_only_when_asked_for():
    assert not [
        each
        for each in opened(HALF).main.get("html")
        if "<thead>" in each.proto.body and "What it costs" in each.proto.body
    ]


@pytest.mark.parametrize("query", [HALF, MOE, "", "model=llama-70b-nominal&profile=textbook&tp=4&prefill=excluded"])
def test_every_technique_is_a_row(query: str):
    at, found = opened(query, open_parts=TABLE), techniques(from_link(query))
    body = html(at, "Techniques")
    assert body.count('scope="row"') == len(found)
    assert body.count('scope="rowgroup"') == len({each.group for each in found})
    for each in found:
        assert each.name in words(body)
        if each.figures.output_gpu is None:
            assert each.reason in words(body)


def test_the_scenario_as_it_is_has_no_link_and_the_others_do():
    scenario = from_link(HALF)
    body = html(opened(HALF, open_parts=TABLE), "Techniques")
    assert "fp8 (now)" in words(body)
    asked = {urlsplit(href).query for href in links(body)}
    assert urlsplit(to_link(scenario)).query not in asked
    assert urlsplit(to_link(scenario.with_(weights="bf16"))).query in asked
    assert urlsplit(to_link(scenario.with_(spec=4))).query in asked


def test_the_best_of_a_group_has_a_star_and_a_difference():
    body = words(html(opened(HALF, open_parts=TABLE), "Techniques"))
    fp8 = plan_of(from_link(HALF + "&kv=fp8"))
    assert f"★ {fp8.b_max}" in body
    assert "(+100 %)" in body


def test_every_column_and_group_has_its_words():
    assert {each.title for each in MEASURES} <= set(text.EN)
    groups = {f"group_{each.group}" for query in (HALF, MOE) for each in techniques(from_link(query))}
    assert groups <= set(text.EN)
    assert groups <= set(text.ZH)


def test_chinese_headings():
    at = opened(HALF + "&lang=zh", open_parts=TABLE)
    assert heads(at)[-3:-1] == ["建议", "技术对比"]
    assert "权重精度" in words(html(at, "技术对比"))
