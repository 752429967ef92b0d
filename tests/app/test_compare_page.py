"""The Compare page without a browser: what it says for which address, how plans come and go, and what it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import vl_convert
from streamlit.testing.v1 import AppTest

from planner.calibrate.correction import calibrate
from planner.catalog.scenarios import load_preset
from planner.compare import comparison, comparison_link
from planner.compare.link import LETTERS, spelled
from planner.compare.quantities import DOLLARS
from planner.confidence import BAND_FIELDS
from planner.logs.readings import Point
from planner.plan import PLAN_FIELDS
from planner.share import PAGE_PARAMETERS, pinned
from planner.specs.scenario import SCENARIO_FIELDS, Scenario
from planner.ui import compare_charts, compare_data, compare_state, compare_words, text
from planner.ui.compare_blocks import PER_GPU
from tests.app.test_plan_page import MAIN, heading, read, said

ARTICLE = tuple(pinned(load_preset(name)) for name in compare_state.OPENING)
PAIR = (pinned(Scenario(tp=4, weights="fp8")), pinned(Scenario(tp=8)))
BROKEN = (pinned(Scenario()), pinned(Scenario(tp=4)), pinned(Scenario(tp=3)))


def opened(own: dict[str, Any] | None = None, **state: object) -> AppTest:
    """The Compare page with its own parameters in the address."""
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    for key, value in state.items():
        at.session_state[key] = value
    at.run()
    for name, value in (own or {}).items():
        at.query_params[name] = value
    at.switch_page("app_pages/compare.py").run()
    assert not at.exception
    return at


def plans_of(at: AppTest) -> tuple[Scenario, ...]:
    return at.session_state[compare_state.HELD].plans


def own(at: AppTest) -> dict[str, str]:
    """The page's own parameters in the address."""
    found = {name: at.query_params[name] for name in PAGE_PARAMETERS["compare"] if name in at.query_params}
    return {name: value if isinstance(value, str) else value[0] for name, value in found.items()}


def html(at: AppTest) -> str:
    return "".join(block.proto.body for block in at.main.get("html"))


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    assert not at.exception
    return at


# --- what it says -----------------------------------------------------------------------------------


def test_it_opens_with_the_articles_plans_and_their_baseline() -> None:
    at = opened()
    assert plans_of(at) == ARTICLE
    assert own(at) == {}
    assert at.main.children[0].type == "title"
    assert heading(at) == read(comparison(ARTICLE).headline)
    assert "C serves 22.1× the requests of A for 82 % less a good token." in said(at)
    for words in (
        "fp8 weights on 1 × H100",
        "fp8 weights on 2 × H100",
        "fp8 weights on 4 × H100",
        "bf16 weights on 4 × H100",
    ):
        assert words in said(at)


def test_an_address_holds_all_plans_and_the_reference() -> None:
    at = opened({"plans": spelled(PAIR), "against": "B"})
    assert plans_of(at) == PAIR
    assert own(at) == {"plans": spelled(PAIR), "against": "B"}
    assert heading(at) == read(comparison(PAIR, 1).headline)
    assert read(comparison(PAIR, 1).sentences[0]) in said(at)


def test_the_table_shows_differences_only_until_all_fields_are_asked_for() -> None:
    at = opened({"plans": spelled(PAIR)})
    assert all(f">{label}<" in html(at) for label in ("Weights", "Tensor parallel", "TPOT"))
    assert ">Input tokens<" not in html(at)
    assert "≠ 8" in html(at)
    assert "★ " in html(at)
    at.toggle(key="_compare_all").set_value(True).run()
    assert ">Input tokens<" in html(at)
    assert ">TPOT, low end of band<" in html(at)


def test_equal_plans_are_said_to_be_the_same() -> None:
    at = opened({"plans": spelled(PAIR[:1] * 2)})
    assert compare_words.EN["nothing"] in said(at)


def test_a_plan_that_does_not_stand_has_its_reason_and_no_ratio() -> None:
    at = opened({"plans": spelled(BROKEN)})
    page = said(at)
    assert "A does not stand, so no ratio is taken of it. Does not fit." in page
    assert "C does not stand, so no ratio is taken of it. Cannot be laid out" in page
    assert "×" not in page.split("Requests: what")[0].split("Does not fit")[0]
    assert badges(at) == [
        ["red close: Does not fit in memory", "gray help: SLA not judged", "green check: vLLM serves it"],
        ["green check: Fits in memory", "green check: Meets the SLA", "green check: vLLM serves it"],
        ["gray help: No such layout", "gray help: SLA not judged", "gray help: Engine not judged"],
    ]


def badges(at: AppTest) -> list[list[str]]:
    """Verdicts of each plan: colour, icon and words."""
    found = [badge.value for badge in at.markdown if "-badge[" in badge.value]
    said = [re.sub(r"^:(\w+)-badge\[:material/(.*)\]$", r"\1 \2", text) for text in found]
    return [said[at : at + 3] for at in range(0, len(said), 3)]


def test_a_plan_that_breaks_its_sla_still_fits() -> None:
    assert badges(opened({"plans": spelled((PAIR[0], PAIR[1].with_(sla_tpot_ms=1.0)))}))[1] == [
        "green check: Fits in memory", "red close: Breaks the SLA", "green check: vLLM serves it",
    ]  # fmt: skip


def test_the_page_says_sla_where_a_reason_says_promise() -> None:
    at = opened({"plans": spelled((PAIR[0], PAIR[1].with_(sla_tpot_ms=1.0)))})
    assert cells(at, "Why not") == ["–", "TPOT is above the SLA even at batch 1"]
    assert "promise" not in said(at)


def cells(at: AppTest, label: str) -> list[str]:
    """Figures of a row of the table."""
    row = html(at).partition(f">{label}</th>")[2].partition("</tr>")[0]
    return [read(text) for text in re.findall(r"<td[^>]*>([^<]*)</td>", row)]


def test_what_depends_on_a_plan_that_does_not_fit_is_not_said() -> None:
    at = opened({"plans": spelled(BROKEN)})
    at.toggle(key="_compare_all").set_value(True).run()
    assert cells(at, "Meets the SLA") == ["not judged", "yes", "not judged"]
    assert cells(at, "Engine serves it") == ["yes", "yes", "not judged"]
    for label in ("Batch", "Batch by SLA", "KV tokens per replica", "KV pool per GPU", "GPUs", "TPOT", "$/h"):
        assert [text == "–" for text in cells(at, label)] == [True, False, True], label


def test_all_fields_are_in_words_with_separators_and_units() -> None:
    at = opened({"plans": spelled((PAIR[0], PAIR[0].with_(max_len=131072, qps=2000.0, price=5.0725)))})
    at.toggle(key="_compare_all").set_value(True).run()
    assert cells(at, "Input tokens") == ["1,024", "1,024"]
    assert cells(at, "Longest sequence") == ["–", "≠ 131,072 tokens"]
    assert cells(at, "Requests/s") == ["0", "≠ 2,000"]
    assert cells(at, "$ per GPU-hour")[1].endswith("$5.07")
    assert cells(at, "Bound by") == ["TPOT", "TPOT"]


def test_every_value_that_reads_as_the_best_has_a_star() -> None:
    assert cells(opened(), "TPOT") == ["23.4 ms", "★ 22.0 ms", "27.6 ms", "★ 22.0 ms"]


def test_the_sidebar_is_said_to_be_apart() -> None:
    assert compare_words.EN["apart"] in said(opened())


def test_plans_that_do_not_stand_all_of_them_have_no_chart() -> None:
    at = opened({"plans": spelled(BROKEN[::2])})
    assert heading(at) == "None of these plans stands."
    assert not at.get("vega_lite_chart")
    assert compare_words.EN["curves_none"] in said(at)


def test_different_questions_are_said() -> None:
    at = opened({"plans": spelled((PAIR[0], PAIR[1].with_(isl=2048, sla_tpot_ms=30.0)))})
    assert "they differ in Input tokens and TPOT SLA, ms" in read(at.warning[0].value)
    assert not opened().warning


def test_another_catalogue_is_said() -> None:
    at = opened({"plans": spelled((PAIR[0].with_(c="2020-01-01-aaaa"), PAIR[1]))})
    assert read(at.info[0].value).startswith("A: made with another catalogue than today's")


def test_every_plan_has_a_way_to_its_own_page() -> None:
    page = html(opened({"plans": spelled(PAIR)}))
    assert all(f">Open {name} as plan<" in page for name in "AB")
    assert 'href="./?c=' in page


def test_the_page_speaks_chinese_headings() -> None:
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    at.query_params["lang"] = "zh"
    at.run()
    at.switch_page("app_pages/compare.py").run()
    assert compare_words.ZH["differences"] in [header.value for header in at.header]


def test_bars_have_the_bands_of_their_plans_and_the_textbook_has_none() -> None:
    """A rate of a GPU has the band of its replica's, a fourth of both ends."""
    found = comparison((PAIR[0], ARTICLE[2]))
    plan = found.plans[0]
    assert plan.output_low_tok_s is not None
    assert plan.output_high_tok_s is not None
    real, book = sorted(compare_data.bars(found, PER_GPU)["bars"].to_pylist(), key=lambda row: row["plan"])
    assert (real["low"], real["high"]) == pytest.approx((plan.output_low_tok_s / 4, plan.output_high_tok_s / 4))
    assert real["low"] < real["value"] < real["high"]
    assert (book["low"], book["high"], book["band"]) == (None, None, "–")
    dollars = next(r for r in compare_data.bars(found, DOLLARS)["bars"].to_pylist() if r["plan"] == "A")
    assert (dollars["low"], dollars["high"]) == (plan.usd_low_per_m_goodput, plan.usd_high_per_m_goodput)


def test_a_figure_without_a_band_has_a_dash_in_the_table() -> None:
    """The article's plans are the textbook's: of their estimates no band is known."""
    at = opened()
    at.toggle(key="_compare_all").set_value(True).run()
    for field in BAND_FIELDS:
        assert set(cells(at, compare_words.label(field))) == {"–"}
    assert set(cells(at, compare_words.label("b_max_sure"))) != {"–"}


def test_every_row_has_a_name_and_every_chinese_text_an_english_one() -> None:
    assert all(compare_words.label(field) for field in (*SCENARIO_FIELDS, *PLAN_FIELDS, "requests_s"))
    assert set(compare_words.ZH) <= set(compare_words.EN)


# --- plans come and go ------------------------------------------------------------------------------


def test_removing_a_plan_leaves_two_at_least_and_is_in_the_address() -> None:
    at = press(opened(), "_compare_remove_A")
    assert plans_of(at) == ARTICLE[1:]
    assert own(at) == {"plans": spelled(ARTICLE[1:])}
    press(at, "_compare_remove_C")
    assert plans_of(at) == ARTICLE[1:3]
    assert at.button(key="_compare_remove_A").disabled
    assert not press(at, "_compare_again").query_params.get("plans")
    assert plans_of(at) == ARTICLE


@pytest.mark.parametrize(("removed", "left"), [("A", "C"), ("B", "C"), ("D", None)])
def test_the_reference_stays_when_another_plan_goes(removed: str, left: str | None) -> None:
    at = press(opened({"against": "D"}), f"_compare_remove_{removed}")
    assert own(at).get("against") == left


def test_the_sidebars_plan_is_added_and_replaces() -> None:
    at = opened({"plans": spelled(PAIR)})
    at.number_input(key="isl").set_value(512).run()
    press(at, "_compare_sidebar")
    asked = pinned(Scenario(isl=512))
    assert plans_of(at) == (*PAIR, asked)
    at.selectbox(key="_compare_place_3").set_value("A").run()
    press(at, "_compare_sidebar")
    assert plans_of(at) == (asked, PAIR[1], asked)
    assert own(at) == {"plans": spelled(plans_of(at))}


def test_four_are_the_most() -> None:
    at = opened()
    assert at.selectbox(key="_compare_place_4").options == [f"replace {name}" for name in LETTERS]
    assert plans_of(press(at, "_compare_sidebar")) == (pinned(Scenario()), *ARTICLE[1:])


def test_a_preset_is_taken() -> None:
    at = opened({"plans": spelled(PAIR)})
    at.selectbox(key=compare_state.PRESET).set_value("qwen3-32b-fp8-h100").run()
    assert plans_of(press(at, "_compare_preset_take"))[2] == pinned(load_preset("qwen3-32b-fp8-h100"))


@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        ("https://host/?tp=4&lang=zh", (*PAIR, pinned(Scenario(tp=4)))),
        ("llama70b-fp8-c", (*PAIR, ARTICLE[2])),
        (comparison_link(ARTICLE[:3], "https://host/compare"), ARTICLE[:3]),
    ],
)
def test_a_link_is_pasted(pasted: str, expected: tuple[Scenario, ...]) -> None:
    at = opened({"plans": spelled(PAIR)})
    at.text_input(key=compare_state.PASTED).set_value(pasted).run()
    assert plans_of(press(at, "_compare_paste_take")) == expected


@pytest.mark.parametrize(
    "pasted", ["", "banana", "https://host/?tp=banana", "plans=tp%3D4", "<script>alert(1)</script>", "=1+1"]
)
def test_what_is_no_plan_is_refused_and_changes_nothing(pasted: str) -> None:
    at = opened({"plans": spelled(PAIR)})
    at.text_input(key=compare_state.PASTED).set_value(pasted).run()
    press(at, "_compare_paste_take")
    assert plans_of(at) == PAIR
    assert len(at.dataframe[0].value) >= 1
    assert compare_words.EN["paste_refused"] in said(at)


def test_the_real_models_stand_in_for_the_textbook() -> None:
    at = press(opened(), "_compare_real")
    assert plans_of(at) == tuple(pinned(load_preset(f"{name}-real")) for name in compare_state.OPENING)
    assert "_compare_real" not in [button.key for button in at.button]


def test_another_reference_is_chosen() -> None:
    at = opened()
    at.segmented_control(key=compare_state.AGAINST).set_value("D").run()
    assert own(at) == {"against": "D"}
    assert "C serves 1.1× the requests of D for 10 % less a good token." in said(at)


def test_coming_back_from_another_page_finds_the_same_plans() -> None:
    at = opened({"plans": spelled(PAIR), "against": "B"})
    for name in PAGE_PARAMETERS["compare"]:
        del at.query_params[name]
    at.switch_page("app_pages/trust.py").run()
    at.switch_page("app_pages/compare.py").run()
    assert plans_of(at) == PAIR
    assert own(at) == {"plans": spelled(PAIR), "against": "B"}


def test_stepping_back_to_an_address_without_plans_shows_what_the_page_opens_with() -> None:
    at = press(opened(), "_compare_remove_A")
    del at.query_params["plans"]
    at.run()
    assert plans_of(at) == ARTICLE
    assert own(at) == {}


# --- what it refuses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ({"plans": "tp=4"}, "plans"),
        ({"plans": ""}, "plans"),
        ({"plans": "tp=4;tp=banana"}, "plan B: tp"),
        ({"plans": "tp=4;<img src=x>"}, "plan B: &lt;img"),
        ({"plans": ["tp=4;tp=2", "tp=4;tp=8"]}, "plans"),
        ({"against": "E"}, "against"),
        ({"plans": spelled(PAIR), "against": "C"}, "against"),
        ({"against": ""}, "against"),
    ],
)
def test_a_refused_comparison_shows_no_numbers_until_the_reader_goes_on(address: dict[str, Any], field: str) -> None:
    at = opened(address)
    assert heading(at) == compare_words.EN["refused"]
    assert field.split(": &")[0] in str(list(at.dataframe[0].value["Parameter"]))
    assert not at.get("vega_lite_chart")
    press(at, "_compare_continue")
    assert plans_of(at) == ARTICLE
    assert own(at) == {}


def test_a_scenario_beside_the_plans_is_judged_as_on_every_page() -> None:
    at = opened({"plans": spelled(PAIR), "tp": "banana"})
    assert heading(at) == text.EN["link_refused"]
    press(at, "_continue")
    assert plans_of(at) == PAIR


def test_another_pages_parameter_refuses_a_link_and_no_session() -> None:
    at = opened({"fleet": "x"})
    assert plans_of(at) == ARTICLE
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    at.query_params["plans"] = spelled(PAIR)
    at.run()
    assert heading(at) == text.EN["link_refused"]


# --- charts -----------------------------------------------------------------------------------------


CHARTS = {
    "curves": (lambda mode, count: compare_charts.curves(mode, count), compare_data.curves),
    "cost": (lambda mode, count: compare_charts.bars(mode, count, "$", "$,f"), lambda c: compare_data.bars(c, DOLLARS)),
    "rate": (
        lambda mode, count: compare_charts.bars(mode, count, "tok/s", ",f"),
        lambda c: compare_data.bars(c, PER_GPU),
    ),
}


@pytest.mark.parametrize("shown", ["light", "dark"])
@pytest.mark.parametrize("chosen", [ARTICLE, PAIR, BROKEN], ids=["article", "pair", "broken"])
@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_compiles_and_draws(name: str, chosen: tuple[Scenario, ...], shown: str) -> None:
    spec, rows = CHARTS[name]
    found = comparison(chosen)
    made = {**spec(shown, len(chosen)), "datasets": {key: table.to_pylist() for key, table in rows(found).items()}}
    svg = vl_convert.vegalite_to_svg({**made, "width": 480})
    assert svg.startswith("<svg")
    assert "NaN" not in svg
    assert "undefined" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_every_dataset_of_a_specification_is_delivered_with_its_fields(name: str) -> None:
    spec, rows = CHARTS[name]
    before = json.dumps(spec("light", 4))
    tables = rows(comparison(ARTICLE))
    for layer in spec("light", 4)["layer"]:
        columns = tables[layer["data"]["name"]].column_names
        channels = [channel for channel in layer["encoding"].values() if isinstance(channel, dict)]
        channels += layer["encoding"].get("tooltip", [])
        assert {channel["field"] for channel in channels if "field" in channel} <= set(columns)
    assert json.dumps(spec("light", 4)) == before


def test_specifications_stay_when_a_plan_is_replaced() -> None:
    at = opened()
    before = [chart.proto.spec for chart in at.get("vega_lite_chart")]
    press(at, "_compare_real")
    assert [chart.proto.spec for chart in at.get("vega_lite_chart")] == before
    assert len(before) == 3
    assert all(chart.proto.alt for chart in at.get("vega_lite_chart"))


def test_lines_are_the_plans_curves_up_to_what_the_cache_holds() -> None:
    found = comparison(ARTICLE)
    rows = compare_data.curves(found)
    for name, plan in zip(LETTERS, found.plans, strict=True):
        line = [(row["x"], row["y"]) for row in rows["lines"].to_pylist() if row["series"] == name]
        assert line == [(point.batch, point.tpot_ms) for point in plan.curve if point.batch <= plan.b_max_kv]
        assert line[-1][0] == plan.b_max_kv
        times = compare_data.times(plan, [float(plan.b_max_kv), float(plan.b_max_kv + 1)])
        assert times == [pytest.approx(line[-1][1]), None]
    assert [row["label"] for row in rows["levels"].to_pylist()] == ["SLA 50 ms"]
    last = rows["stops"].to_pylist()[-1]
    assert (last["at"], last["A"], last["C"]) == ("572", "–", "27.6 ms")


def test_slas_that_differ_have_a_line_each() -> None:
    rows = compare_data.curves(comparison((PAIR[0], PAIR[1].with_(sla_tpot_ms=30.0))))
    assert [row["label"] for row in rows["levels"].to_pylist()] == ["SLA 30 ms, B", "SLA 50 ms, A"]


def test_a_bar_of_a_plan_that_does_not_stand_says_so() -> None:
    bars = compare_data.bars(comparison(BROKEN), DOLLARS)["bars"].to_pylist()
    assert [row["value"] > 0 for row in bars] == [True, False, False]
    assert [row["label"] for row in bars[1:]] == ["● A  Does not fit in memory", "▲ C  No such layout"]
    assert [row["plan"] for row in compare_data.bars(comparison(ARTICLE), DOLLARS)["bars"].to_pylist()] == list("CBDA")


def test_only_the_plan_that_a_calibration_holds_for_has_custom_speeds() -> None:
    made = calibrate(PAIR[0], [Point(concurrency=16, tpot_ms=12.0)])
    at = opened({"plans": spelled((made, made.with_(gpu="h200-sxm"), PAIR[1]))})
    captions = [read(each.value) for each in at.caption]
    assert [text.rpartition("· ")[2] for text in captions if text.endswith("speeds")] == [
        "custom speeds", "measured speeds", "measured speeds",
    ]  # fmt: skip
    assert "A is calibrated by 1 measured point, B and C are not" in said(at)
