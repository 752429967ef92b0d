"""The Plan page's content, without a browser: what it says for which link, and that nothing a stranger writes is markup."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from planner.answer import answer
from planner.catalog.custom import encode_custom
from planner.catalog.scenarios import preset, presets
from planner.catalog.version import catalogue_version
from planner.nearest import nearest_fit
from planner.share import from_link, to_link
from planner.single import plan_of
from planner.specs.scenario import SCENARIO_FIELDS, Scenario, describe
from planner.ui import show, sidebar, state, text
from planner.ui.headers import INLINE_SCRIPT, POLICY

MAIN = Path(__file__).parents[2] / "planner" / "ui" / "main.py"
HALF = "weights=fp8&tp=4"
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
}  # fmt: skip


def opened(query: str = "", sections: bool = False, open_parts: tuple[str, ...] = ()) -> AppTest:
    """The page of a link, run once; with `sections`, all expanders of the sidebar are open, with `open_parts` those named."""
    at = AppTest.from_file(str(MAIN), default_timeout=30)
    for section in sidebar.SECTIONS if sections else ():
        at.session_state[f"_{section.title}"] = True
    for part in open_parts:
        at.session_state[part] = True
    pairs: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        pairs.setdefault(name, []).append(value)
    for name, values in pairs.items():
        at.query_params[name] = values if len(values) > 1 else values[0]
    at.run()
    assert not at.exception
    return at


def heading(at: AppTest) -> str:
    """The page's first words, escapes undone."""
    (title,) = at.title
    return read(title.value)


def read(text: str) -> str:
    """Text as a reader sees it: escapes undone; a space that does not break looks like any other."""
    return text.replace("\\", "").replace("\u00a0", " ")


def said(at: AppTest) -> str:
    """All text of the page, escapes undone."""
    blocks = [block.value for kind in (at.title, at.header, at.markdown, at.caption) for block in kind]
    tiles = [f"{tile.label} {tile.value} {tile.delta}" for tile in at.metric]
    return read("\n".join([*blocks, *tiles]))


def test_the_answer_comes_first_and_is_the_planners_own_sentence() -> None:
    at = opened(HALF)
    assert heading(at) == read(answer(plan_of(from_link(HALF))))
    assert at.main.children[0].type == "title"


def test_verdicts_are_words() -> None:
    page = said(opened(HALF))
    for words in ("Fits in memory", "Meets the SLA", "vLLM serves it"):
        assert words in page
    page = said(opened("weights=fp8&tp=4&sla_tpot_ms=5"))
    assert "Fits in memory" in page
    assert "Breaks the SLA" in page


def test_five_tiles_show_the_plan() -> None:
    plan, at = plan_of(from_link(HALF)), opened(HALF)
    assert [tile.label for tile in at.metric] == [
        "GPUs", "Batch per replica", "TPOT", "Throughput per GPU", "Cost / M good tokens",
    ]  # fmt: skip
    values = [tile.value.replace("\\", "") for tile in at.metric]
    assert values[:2] == [str(plan.gpus), str(plan.batch)]
    assert values[2].endswith(" ms")
    assert values[4].startswith("$")


def test_three_charts_with_their_datasets_and_names() -> None:
    charts = opened(HALF).get("vega_lite_chart")
    assert len(charts) == 3
    assert all(chart.proto.alt for chart in charts)
    assert {data.name for data in charts[1].proto.datasets} >= {"curve", "promise", "limits", "point", "measured"}


def test_the_specification_stays_when_an_input_changes() -> None:
    at = opened(HALF)
    before = [chart.proto.spec for chart in at.get("vega_lite_chart")]
    at.number_input(key="sla_tpot_ms").set_value(40.0).run()
    assert [chart.proto.spec for chart in at.get("vega_lite_chart")] == before
    assert heading(at) == read(answer(plan_of(from_link(HALF + "&sla_tpot_ms=40"))))


def test_a_plan_that_does_not_fit_says_what_is_missing_and_links_to_the_nearest_that_does() -> None:
    at = opened()
    assert heading(at).startswith("Does not fit.")
    assert "are missing" in heading(at)
    (link,) = [html for html in (block.proto.body for block in at.main.get("html")) if "nearest" in html]
    assert f'href="./{to_link(nearest_fit(Scenario()))}"' in link
    assert at.metric[2].value == "–"


def test_a_textbook_preset_has_the_real_model_beside_it() -> None:
    at = opened("preset=llama70b-fp8-c")
    link = "".join(block.proto.body for block in at.main.get("html"))
    assert "The real Llama-3.1-70B, measured speeds: TPOT" in link
    assert 'href="./?weights=fp8&amp;tp=4"' in link


@pytest.mark.parametrize("item", presets(), ids=lambda item: item.id)
def test_every_preset_opens_and_is_its_own_scenario(item: object) -> None:
    at = opened(f"preset={item.id}")
    assert state_of(at) == item.scenario
    assert heading(at) == read(answer(plan_of(item.scenario)))
    assert "preset" not in at.query_params


def state_of(at: AppTest) -> Scenario:
    """The scenario that the session holds."""
    return at.session_state[state.CURRENT]


def test_what_a_link_changes_beside_a_preset_wins() -> None:
    assert state_of(opened("preset=llama70b-fp8-c-real&tp=8")) == preset("llama70b-fp8-c-real").scenario.with_(tp=8)


# --- the address ------------------------------------------------------------------------------------


REFUSED = {
    "plans=tp%3D4%3Btp%3D2": "plans",
    "max_gpus=8": "max_gpus",
    "tp=banana": "tp",
    "tp=4&tp=8": "tp",
    "tp=": "tp",
    "isl=1e3": "isl",
    "sla_tpot_ms=nan": "sla_tpot_ms",
    "weights=fp9": "weights",
    "model=gpt-9": "model",
    "foo=1": "foo",
    "preset=nothing": "preset",
    "v=2": "v",
    "max_len=100": "max_len",
    "x=1abc": "x",
    "model=custom": "x",
    "overlap=true": "overlap",
    "profile=custom": "profile",
}


@pytest.mark.parametrize("query", REFUSED)
def test_a_refused_link_shows_the_refusal_and_no_number(query: str) -> None:
    at = opened(query)
    assert heading(at) == "This link cannot be planned as it is."
    assert REFUSED[query] in list(at.dataframe[0].value["Parameter"])
    assert not at.metric
    assert not at.get("vega_lite_chart")
    assert not at.sidebar.selectbox


def test_continue_keeps_what_is_sound_and_drops_the_rest() -> None:
    at = opened("weights=fp8&tp=banana&foo=1&isl=2048&isl=4096&osl=512")
    at.button(key="_continue").click().run()
    assert state_of(at) == Scenario(weights="fp8", osl=512)
    assert at.query_params == {"weights": "fp8", "osl": "512"}


def test_continue_out_of_a_contradiction() -> None:
    at = opened("weights=fp8&tp=4&prefill_tp=4")
    assert list(at.dataframe[0].value["Parameter"]) == ["prefill_tp"]
    at.button(key="_continue").click().run()
    assert state_of(at) == Scenario(weights="fp8", tp=4)


def test_every_fault_of_a_link_is_named_at_once() -> None:
    table = opened("tp=banana&tp=4&foo=1&weights=fp9").dataframe[0].value
    assert set(table["Parameter"]) == {"tp", "foo", "weights"}


def test_what_a_stranger_wrote_is_a_cell_and_never_markup() -> None:
    at = opened("weights=**bold**&foo=%3Cimg%20src%3Dx%3E&bar=%5Bl%5D(http%3A%2F%2Fevil.example)")
    assert "**bold**" in list(at.dataframe[0].value["Value"])
    assert "bold" not in said(at)
    assert "evil" not in said(at)


@pytest.mark.parametrize("field", SCENARIO_FIELDS)
def test_every_field_of_a_link_reaches_the_plan(field: str) -> None:
    """A widget that refused what the link's reader admits would show another plan than the link says."""
    for value in admitted(field):
        scenario = companion(field).with_(**{field: value})
        at = opened(to_link(scenario).removeprefix("?"))
        found = state_of(at)
        assert {name: getattr(found, name) for name in state.WIDGETS} == {
            name: getattr(scenario, name) for name in state.WIDGETS
        }
        assert found.x == scenario.x


def companion(field: str) -> Scenario:
    """A scenario in which the field may have any value."""
    if field in ("prefill_gpu", "prefill_tp", "prefill_workers", "decode_workers", "kv_link_eff"):
        return Scenario(prefill="disaggregated")
    return Scenario(spec=2) if field in ("accept", "draft", "spec") else Scenario()


def admitted(field: str) -> list[object]:
    """Values at the edges of what a field admits."""
    special = {
        "v": [1], "c": [catalogue_version(), "2020-01-01-abc"], "model": ["qwen3-32b", "gpt-oss-120b"],
        "gpu": ["l40s", "mi300x"], "prefill_gpu": ["h200-sxm"], "provider": ["AWS", "DeepSeek (assumed lease)"], "x": [],
        "profile": ["textbook"], "tp": [3, 64, 1024], "max_len": [1280, 20_000_000], "max_seqs": [1, 1_000_000],
    }  # fmt: skip
    if field in special:
        return special[field]
    about = describe(field)
    if about.kind == "menu":
        return list(about.options)
    if about.kind == "switch":
        return [True]
    kind = int if about.kind == "whole" else float
    middle = [0.123456] if about.kind == "number" and about.low < 0.1 else []
    return [kind(about.low), *middle, kind(about.high)]


def test_a_link_of_another_catalogue_is_told() -> None:
    at = opened(HALF + "&c=2020-01-01-abc")
    assert "2020" in at.info[0].value
    assert not opened(HALF + f"&c={catalogue_version()}").info


# --- the sidebar ------------------------------------------------------------------------------------


def inputs(at: AppTest) -> list[str]:
    """Keys of the inputs in the sidebar."""
    widgets = (*at.sidebar.selectbox, *at.sidebar.number_input, *at.sidebar.slider, *at.sidebar.get("button_group"))
    return sorted(widget.key for widget in widgets if not widget.key.startswith("_"))


def test_every_field_has_one_input_under_its_own_name() -> None:
    assert inputs(opened("prefill=disaggregated&spec=2", sections=True)) == sorted(state.WIDGETS)
    assert sorted(f for section in sidebar.SECTIONS for f in section.fields) == sorted(set(state.WIDGETS) - set(EIGHT))


EIGHT = ("model", "weights", "gpu", "tp", "isl", "osl", "qps", "sla_tpot_ms")


def test_eight_inputs_are_visible_and_a_section_is_drawn_once_it_matters() -> None:
    assert inputs(opened(HALF)) == sorted(EIGHT)
    assert set(inputs(opened(HALF + "&pp=2"))) == {*EIGHT, *sidebar.SECTIONS[2].fields}


def test_labels_exist_for_every_input_and_texts_for_every_translation() -> None:
    assert set(text.LABELS) == set(state.WIDGETS)
    assert set(text.ZH) <= set(text.EN)
    assert set(sidebar.DEGREES) <= set(range(1, 1025))


def test_undo_steps_back_over_changes() -> None:
    at = opened(HALF)
    assert at.button(key="_undo").disabled
    at.number_input(key="isl").set_value(4096).run()
    at.selectbox(key="weights").set_value("bf16").run()
    at.button(key="_undo").click().run()
    assert state_of(at) == Scenario(weights="fp8", tp=4, isl=4096)
    at.button(key="_undo").click().run()
    assert state_of(at) == Scenario(weights="fp8", tp=4)
    assert at.button(key="_undo").disabled


def test_a_contradiction_is_a_state_of_the_page_with_a_way_back() -> None:
    at = opened(HALF, sections=True)
    at.number_input(key="max_len").set_value(100).run()
    assert heading(at) == "These inputs contradict each other."
    assert list(at.dataframe[0].value["Parameter"]) == ["max_len"]
    assert not at.metric
    at.button(key="_undo").click().run()
    assert state_of(at) == Scenario(weights="fp8", tp=4)
    assert heading(at).startswith("Fits.")


def test_leaving_a_pool_or_a_draft_leaves_no_contradiction_behind() -> None:
    at = opened("prefill=disaggregated&prefill_tp=4&spec=3&accept=0.5")
    at.selectbox(key="prefill").set_value("colocated").run()
    at.number_input(key="spec").set_value(0).run()
    assert state_of(at) == Scenario()


# --- a model of one's own ---------------------------------------------------------------------------


def test_a_pasted_configuration_becomes_the_model() -> None:
    at = opened("gpu=h100-sxm")
    at.text_area(key="_config_text").set_value(json.dumps(CONFIG)).run()
    at.button(key="_config_use").click().run()
    assert state_of(at) == Scenario(model="custom", x=encode_custom(json.dumps(CONFIG)))
    assert heading(at).startswith("Fits")


BROKEN = {
    "": "config.json",
    "{": "config.json",
    "[]": "config.json",
    '{"hidden_size": "**x**"}': "",
    json.dumps(CONFIG | {"num_hidden_layers": -1}): "num_hidden_layers",
}


@pytest.mark.parametrize(("config", "named"), BROKEN.items(), ids=["empty", "cut", "list", "text", "negative"])
def test_a_refused_configuration_names_the_key_and_the_plan_stays(config: str, named: str) -> None:
    at = opened(HALF)
    at.text_area(key="_config_text").set_value(config).run()
    at.button(key="_config_use").click().run()
    assert state_of(at) == Scenario(weights="fp8", tp=4)
    assert heading(at).startswith("Fits.")
    (error,) = at.sidebar.text
    assert named in error.value


def test_another_model_takes_the_token_out_of_the_address() -> None:
    at = opened(f"model=custom&x={encode_custom(json.dumps(CONFIG))}")
    at.selectbox(key="model").set_value("qwen3-8b").run()
    assert state_of(at) == Scenario(model="qwen3-8b")
    assert "x" not in at.query_params


# --- share ------------------------------------------------------------------------------------------


def test_link_and_command_are_the_plan_with_price_and_catalogue() -> None:
    at = opened(HALF)
    link, command = (block.value for block in at.code)
    assert from_link(link).with_(c=None, price=None) == from_link(HALF)
    assert from_link(link).c == catalogue_version()
    assert from_link(link).price is not None
    assert command.startswith("python -m planner plan '")
    assert from_link(command.split("'")[1]) == from_link(link)


def test_an_unknown_price_is_said_and_never_invented() -> None:
    at = opened("gpu=tpu-v7x&weights=fp8&tp=4")
    assert "no price is known" in said(at)
    assert at.metric[4].value == "–"


def test_plain_text_cannot_become_markup() -> None:
    markup = (
        "# h",
        "**b**",
        "[l](http://x)",
        "![i](http://x)",
        "$x$",
        ":red[x]",
        "<b>",
        "`c`",
        "a_b_",
        "www.x.org",
        "1. a",
        "- a",
    )
    for hostile in markup:
        assert show.plain(hostile).replace("\\", "") == hostile
        assert "\\" in show.plain(hostile)
    assert show.plain("49.9 ms, 8 of 3.5") == "49.9 ms, 8 of 3.5"


def test_every_percentage_is_written_alike() -> None:
    assert show.plain("80 % and 80% and 8.5%") == "80\u00a0% and 80\u00a0% and 8.5\u00a0%"


def test_the_inline_script_of_the_installed_streamlit_is_the_one_allowed() -> None:
    import base64
    import hashlib
    import re

    import streamlit

    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    (script,) = re.findall(r"<script(?![^>]*src)[^>]*>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"sha256-{digest}" == INLINE_SCRIPT
    assert "unsafe-eval" not in POLICY


@pytest.mark.parametrize("pct", ["50", "90", "99"])
def test_a_percentile_is_judged_by_queues(pct: str) -> None:
    at = opened(f"{HALF}&sla_pct={pct}")
    text_of_page = said(at)
    assert (f"Meets the SLA at P{pct}" in text_of_page) is (pct != "50")
    assert "Meets the SLA" in text_of_page
    assert "By queue theory one replica carries" in text_of_page
    notes = plan_of(from_link(f"{HALF}&sla_pct={pct}")).notes
    assert any(note.code == "percentile" for note in notes) is (pct != "50")
