"""The Advice and Techniques cards of the Plan page, without a browser: what they say, and where their links lead."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from planner.advise import advise
from planner.advise.lists import lists
from planner.share import from_link, to_link
from planner.single import plan_of
from planner.techniques import best_changes, techniques
from planner.ui import text
from planner.ui.advice_block import percent, unbroken
from planner.ui.techniques_block import MEASURES
from planner.units import significant
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


LISTS = ("To mend", "Worth trying", "Facts about this plan")


def parts(at: AppTest) -> list[str]:
    """The HTML of the lists of advice that are there, in the order of the page."""
    bodies = [each.proto.body for each in at.main.get("html")]
    return [body for name in LISTS for body in bodies if f'aria-label="{name}"' in body]


def test_every_piece_of_advice_is_on_the_page_in_its_list():
    at, found = opened(BAD), advise(from_link(BAD))
    sorted_ = lists(found)
    bodies = [words(body) for body in parts(at)]
    for body, part in zip(bodies, filter(None, (sorted_.mend, sorted_.worth, sorted_.facts)), strict=True):
        places = [body.index(unbroken(each.text)) for each in part]
        assert places == sorted(places)
    assert "1 to mend, no change is known that is worth trying." in said(at)
    sorted_ = lists(advise(from_link(MOE)))
    assert f"{len(sorted_.mend)} to mend, {len(sorted_.worth)} worth trying." in said(opened(MOE))


@pytest.mark.parametrize("query", [HALF, BAD, MOE, ""])
def test_a_link_of_advice_opens_the_scenario_with_its_change_made(query: str):
    scenario = from_link(query)
    expected = {to_link(scenario.with_(**each.change)) for each in advise(scenario) if each.change is not None}
    found = [href for body in parts(opened(query)) for href in links(body)]
    assert {urlsplit(href).query for href in found} == {urlsplit(href).query for href in expected}
    for href in found:
        plan = plan_of(from_link(href))
        assert plan.fits
        assert plan.meets_sla
        assert plan.engine_ok


def test_a_gain_leads_the_sentence_and_the_largest_comes_first():
    body = words(html(opened(MOE), "Worth trying"))
    worth = lists(advise(from_link(MOE))).worth
    gains = [each.gain.share for each in worth if each.gain is not None]
    assert len(gains) == len(worth)
    assert gains == sorted(gains, reverse=True)
    assert f"−{percent(gains[0])} per million good tokens. {unbroken(worth[0].text)}" in re.sub(r"\s*\. +", ". ", body)


def test_a_set_batch_is_said_to_be_kept():
    at = opened(HALF + "&at_batch=8", open_parts=TABLE)
    assert "This plan sets its batch to 8: variants keep it, unless the batch is what they change." in said(at)
    assert "Each at the set batch of 8" in words(html(at, "Techniques"))
    assert "Each at its own largest batch" in words(html(opened(HALF, open_parts=TABLE), "Techniques"))


def test_the_best_change_stands_above_the_table_with_its_link():
    scenario = from_link(HALF)
    at = opened(HALF, open_parts=TABLE)
    (body,) = [each.proto.body for each in at.main.get("html") if "Best single change" in each.proto.body]
    single = best_changes(scenario)[0]
    assert (
        f"Best single change: {single.name}, −{percent(single.gain.share)} per million good tokens ({single.cost})."
        in words(body)
    )
    assert urlsplit(links(body)[0]).query == urlsplit(to_link(scenario.with_(**single.change))).query


def rows_of(body: str) -> dict[str, str]:
    """Rows of the table by their first words."""
    found = re.findall(r"<tr>(<th scope=\"row\".*?)</tr>", body)
    return {words(each).split("  ")[0].strip().removesuffix(" (now)"): words(each) for each in found}


def test_what_leaves_work_out_has_no_star_and_takes_none_from_others():
    table = rows_of(html(opened(HALF + "&prefill=excluded", open_parts=TABLE), "Techniques"))
    assert "★" not in table["not counted"]
    found = techniques(from_link(HALF + "&prefill=excluded"))
    rates = [each.figures.output_gpu for each in found if each.group == "prefill" and each.whole]
    assert f"★ {significant(max(rates))}" in table["beside decoding"] + table["in a pool of its own"]
    table = rows_of(html(opened(HALF + "&sla_ttft_ms=20000", open_parts=TABLE), "Techniques"))
    (static,) = [row for name, row in table.items() if name.startswith("static")]
    assert "★" not in static


def test_the_batch_of_tpot_is_in_its_title():
    body = words(html(opened(HALF, open_parts=TABLE), "Techniques"))
    assert f"TPOT at {plan_of(from_link(HALF)).batch}, ms" in body


@pytest.mark.parametrize(
    ("share", "text"), [(0.3, "30"), (0.0949, "9.5"), (0.03, "3.0"), (0.0996, "10"), (1.654, "165")]
)
def test_a_gain_has_no_more_digits_than_it_needs(share: float, text: str):
    assert percent(share) == f"{text}\N{NO-BREAK SPACE}%"


def test_a_link_says_what_it_changes():
    body = "".join(parts(opened(BAD)))
    assert "Apply weights=fp8</a>" in body


def test_a_plan_that_does_not_fit_has_advice_too():
    assert "first to fit" in words("".join(parts(opened())))


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
    assert "(+100\N{NO-BREAK SPACE}%)" in body


def test_every_column_and_group_has_its_words():
    assert {each.title for each in MEASURES} <= set(text.EN)
    groups = {f"group_{each.group}" for query in (HALF, MOE) for each in techniques(from_link(query))}
    assert groups <= set(text.EN)
    assert groups <= set(text.ZH)


def test_chinese_headings():
    at = opened(HALF + "&lang=zh", open_parts=TABLE)
    assert heads(at)[-3:-1] == ["建议", "技术对比"]
    assert "权重精度" in words(html(at, "技术对比"))
