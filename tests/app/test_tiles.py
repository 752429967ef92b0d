"""The five figures of the Plan page: what stands below each, in both languages, and that it adds up."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from planner.catalog.scenarios import preset, presets
from planner.doubts import running
from planner.plan import CurvePoint, Note
from planner.share import from_link
from planner.single import plan_of
from planner.ui import tile_words
from tests.app import browser as harness
from tests.app.test_plan_page import HALF, opened, read, said
from tests.samples import SCENARIO, plan

LONGEST = 25
"""Characters that a tile of 150 pixels shows."""

LATE = "model=deepseek-v3&gpu=h200-sxm&weights=fp8-block&isl=4000&osl=1000&qps=50&tp=8&sla_ttft_ms=200&sla_tpot_ms=15"
STRAIGHT = (CurvePoint(1, 10.0, 9.0, 11.0, 100.0, 1.0, True), CurvePoint(101, 20.0, 18.0, 22.0, 5100.0, 1.0, True))
"""100 tok/s at batch 1 and 50 more with each request."""


def remarks(query: str) -> list[str]:
    return [read(tile.delta) for tile in opened(query).metric]


def test_the_gpus_of_two_pools_add_up() -> None:
    at = opened("preset=llama70b-pd")
    words = read(at.metric[0].delta).split()
    assert words[1::3] == ["decode", "prefill"]
    assert int(words[0]) + int(words[3]) == int(at.metric[0].value) == plan_of(preset("llama70b-pd").scenario).gpus


def test_a_ttft_that_breaks_the_sla_is_on_a_tile_in_the_tone_of_a_warning() -> None:
    at, found = opened(LATE), plan_of(from_link(LATE))
    assert found.tpot_ms < found.scenario.sla_tpot_ms
    assert read(at.metric[2].delta) == f"TTFT {found.ttft_ms:.0f} ms of 200 ms"
    red, gray = 0, 2
    assert at.metric[2].proto.color == red
    assert opened(HALF).metric[2].proto.color == gray
    (link,) = [block.proto.body for block in at.main.get("html") if "nearest" in block.proto.body]
    assert "keeps the SLA" in link


def test_no_plan_found_is_said() -> None:
    at = opened("weights=fp8&tp=4&sla_tpot_ms=5")
    assert any("No plan was found that keeps the SLA" in block.proto.body for block in at.main.get("html"))


def test_where_replicas_run_is_read_off_the_curve() -> None:
    """20 requests/s of 205 tokens over 2 serving replicas are 2,050 tok/s each: 39 requests beyond the first."""
    asked = SCENARIO.with_(osl=205, spare=1)
    here = running(asked, 3.0, 4100.0, STRAIGHT)
    assert (here.batch, here.tpot_ms, here.share) == (40, pytest.approx(13.9), pytest.approx(0.5))
    assert running(asked.with_(qps=0.0), 3.0, 4100.0, STRAIGHT) is None
    assert running(asked, 1.0, 4100.0, STRAIGHT) is None
    assert running(asked, 3.0, 4100.0, ()) is None


def test_tiles_say_where_replicas_run_when_that_is_far_below_the_limit() -> None:
    query = "preset=glm52-fp8-ep"
    (note,) = [note.text for note in plan_of(preset("glm52-fp8-ep").scenario).notes if note.code == "at_rate"]
    at = opened(query)
    runs, rate = read(at.metric[1].delta), read(at.metric[2].delta)
    here, limit = runs.removeprefix("runs about ").split(" of ")
    assert f"runs about {here} requests at a TPOT of {rate.split()[0]} ms" in note
    assert limit == at.metric[1].value
    assert rate.endswith("at 2 requests/s")


def test_a_plan_without_a_rate_says_what_limits_it() -> None:
    found = remarks(HALF)
    assert found[1] == "limited by TPOT"
    assert found[2] in ("at the SLA",) or found[2].endswith("under SLA")


@pytest.mark.parametrize(
    ("tpot", "said"),
    [(49.999, "at the SLA"), (49.74, "0.260 ms under SLA"), (50.0, "at the SLA"), (50.26, "0.260 ms over SLA")],
)
def test_a_margin_below_half_a_percent_is_none(tpot: float, said: str) -> None:
    assert tile_words.margin(tpot, 50.0) == said


def test_the_share_in_use_is_of_the_serving_replicas() -> None:
    """20 requests/s of 256 tokens are 5,120 of the 9,293 tok/s of five serving replicas: 55 %."""
    assert read(tile_words.throughput(plan(scenario=SCENARIO.with_(spare=1)))) == "55 % of 9,290 used"
    assert tile_words.throughput(plan(meets_sla=False)) == "none within the SLA"


def test_one_replica_is_singular() -> None:
    assert tile_words.gpus(plan(replicas=1)) == "1 replica of 4"
    assert tile_words.gpus(plan()) == "6 replicas of 4"


def test_without_the_note_no_batch_is_said_to_run() -> None:
    asked = plan(curve=STRAIGHT)
    assert tile_words.below(asked) is None
    assert tile_words.below(plan(curve=STRAIGHT, notes=(Note("at_rate", "", "qps"),))).batch < asked.batch


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_remark_is_too_long_for_its_tile(language: str) -> None:
    for item in presets():
        for remark in remarks(f"preset={item.id}&lang={language}"):
            assert len(remark) <= LONGEST, (item.id, remark)


def test_counts_of_one_are_singular() -> None:
    for query in ("weights=fp8&tp=4&at_batch=1", "preset=llama8b-fp8-l40s", "preset=llama70b-spec&qps=0.01"):
        page = said(opened(query))
        assert not re.search(r"(?<![\d,.])1 (requests|GPUs|NICs|replicas|workers)\b", page), query


# --- in a browser -----------------------------------------------------------------------------------

CUT = """() => Array.from(document.querySelectorAll('.st-key-tiles .stMarkdownEllipsis'))
    .filter((element) => element.scrollWidth > element.clientWidth + 1).map((element) => element.innerText)"""
SMALL = """() => Array.from(document.querySelectorAll('button[aria-label^="Help for"], [data-testid="stHtml"] a'))
    .filter((target) => { const box = target.getBoundingClientRect();
        return box.height > 0 && (box.height < 24 || box.width < 24); })
    .map((target) => target.outerHTML.slice(0, 120))"""
BOXES = """() => Array.from(document.querySelectorAll('[data-testid="stMetric"]')).map((tile) => {
    const box = tile.getBoundingClientRect(); return [box.top, box.width]; })"""


@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_tile_is_cut(open_page: Callable[..., Page], language: str) -> None:
    for query in ("preset=llama70b-pd", "preset=glm52-fp8-ep", LATE):
        page = open_page(f"?{query}&lang={language}", charts=3)
        assert page.evaluate(CUT) == [], query


@pytest.mark.browser
def test_a_phone_shows_tiles_above_its_middle_and_fills_its_rows(open_page: Callable[..., Page]) -> None:
    page = open_page("?preset=llama70b-pd", charts=3, width=390, height=844)
    boxes = page.evaluate(BOXES)
    assert boxes[0][0] < 844 / 2
    assert boxes[4][1] > 2 * boxes[0][1]
    assert harness.overflow(page) == 0
    assert page.evaluate(CUT) == []


@pytest.mark.browser
def test_targets_are_as_large_as_a_finger(open_page: Callable[..., Page]) -> None:
    page = open_page("?preset=llama70b-pd", charts=3)
    page.get_by_role("button", name="Presets").click()
    harness.settle(page)
    assert page.locator('[data-testid="stHtml"] a').count() > 20
    assert page.evaluate(SMALL) == []
