"""The Trust page: the plan's own arithmetic, a catalogue without invented numbers, limits, in every state of the sidebar."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from planner.arithmetic import GROUPS, arithmetic, group_of
from planner.catalog.fitted_constants import served, serving
from planner.catalog.profile_records import kernels
from planner.catalog.scenarios import preset, preset_ids
from planner.formula import number
from planner.share import to_link
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import trust_fit, trust_limits, trust_speeds, trust_tables
from planner.ui.trust_limits import chapter, headline, without_title
from tests.app import browser as harness

TOO_LARGE = Scenario(model="llama-3.1-405b")
REFUSED = Scenario(tp=3)
SECTION_MS = 50
LOOKS = {"light": {"theme": "light"}, "dark": {"theme": "dark"}, "390px": {"width": 390, "height": 844}}


@pytest.fixture
def trust(root):
    """`trust(scenario, section)`: the page in one of its sections."""

    def opened(scenario=Scenario(), section="arithmetic"):  # noqa: B008 - frozen
        at = AppTest.from_file(str(root / "planner" / "ui" / "main.py"), default_timeout=20)
        for name, value in parse_qsl(to_link(scenario).removeprefix("?")):
            at.query_params[name] = value
        at.run()
        at.switch_page("app_pages/trust.py").run()
        if section != "accuracy":
            control(at, "_trust_section").set_value(section).run()
        assert not at.exception
        return at

    return opened


def control(at, key):
    """A segmented control of the page; AppTest calls it a button group."""
    return next(group for group in at.get("button_group") if group.key == key)


def choose(at, key, value):
    control(at, key).set_value(value).run()
    assert not at.exception
    return at


def code(at):
    return "\n".join(block.value for block in at.code)


def main(at):
    """What the page says, its literal characters as a reader sees them."""
    return "\n".join(each.value for each in [*at.main.markdown, *at.main.caption, *at.main.info]).replace("\\", "")


def tables(at):
    """Tables of the page's documents, as HTML."""
    return "".join(block.proto.body for block in at.main.get("html"))


@pytest.mark.parametrize("id", preset_ids())
def test_every_preset_shows_its_arithmetic(trust, id):
    scenario = preset(id).scenario
    at = trust(scenario)
    assert [title.value for title in at.title] == ["Why believe this?"]
    assert number(plan_of(scenario).usable_bytes) in code(at)
    assert not at.warning


@pytest.mark.parametrize("group", GROUPS)
def test_each_kind_shows_all_of_its_formulas_and_no_other(trust, group):
    scenario = Scenario(tp=4, qps=20)
    at = choose(trust(scenario), "_trust_group", group)
    wanted = [each.formula for part in arithmetic(scenario) for each in part.worked if group_of(each.formula) == group]
    assert {title.value.replace("\\", "") for title in at.subheader} == {
        f"{entry.name} [{entry.unit}]" for entry in wanted
    }
    assert all(entry.source in main(at) for entry in wanted)


def test_a_line_is_the_code_with_the_plans_numbers(trust):
    scenario = Scenario(tp=4)
    at = choose(trust(scenario), "_trust_group", "serving")
    plan = plan_of(scenario)
    assert f"output_rate = batch / tpot = {plan.batch} / {number(plan.tpot_ms / 1e3)} = " in code(at)


def test_finding_narrows_the_formulas(trust):
    at = trust()
    at.text_input(key="_trust_find").set_value("O_PROJ").run()
    assert {title.value for title in at.subheader} == {"matrix\\_bytes \\[B\\]", "weight\\_bytes \\[B\\]"}
    at.text_input(key="_trust_find").set_value("*nothing* <b>").run()
    assert not at.subheader
    assert "No formula of this kind" in main(at)


@pytest.mark.parametrize("scenario", [TOO_LARGE, REFUSED])
def test_a_plan_without_speed_says_why(trust, scenario):
    at = trust(scenario)
    assert "usable_bytes = " in code(at)
    at = choose(at, "_trust_group", "serving")
    assert not at.code
    assert "Speed and cost are not worked out: " in main(at)


def test_headings_step_down_by_one(trust):
    for section in ("accuracy", "arithmetic", "catalogue", "limits"):
        at = trust(section=section)
        assert len(at.title) == 1
        assert at.header or "## " in main(at)


@pytest.mark.parametrize("kind", ["models", "accelerators", "prices", "engines", "presets", "speeds"])
@pytest.mark.parametrize("id", ["llama70b-bf16-910c-tp4", "dsv3-fp8-b200-ep8"])
def test_the_catalogue_shows_every_part(trust, kind, id):
    at = choose(trust(preset(id).scenario, "catalogue"), "_trust_kind", kind)
    assert at.dataframe
    assert all(len(table.value) for table in at.dataframe)


def test_the_catalogue_counts_what_it_has(trust):
    text = main(trust(section="catalogue"))
    assert f"{len(trust_tables.model_table())} models, {len(trust_tables.accelerator_table())} accelerators" in text


def test_limits_show_their_document(trust):
    at = trust(section="limits")
    assert "Judged on means, and where queues come in" in main(at)
    assert "<dt" in tables(at)


def test_only_the_chosen_section_is_drawn(trust):
    assert not trust(section="catalogue").code
    assert not trust(section="limits").dataframe


def test_the_choice_of_a_section_is_no_scenario_field(trust):
    """The address is the plan: a parameter of the page would be refused by whoever opens the link."""
    at = trust(section="limits")
    assert not [name for name in at.query_params if name.startswith("_")]


@pytest.mark.parametrize("section", ["accuracy", "arithmetic", "catalogue", "limits"])
def test_a_section_is_drawn_fast(trust, best_of, section):
    at = trust(Scenario(tp=4), section)
    assert best_of(at.run) * 1e3 < 3 * SECTION_MS, "three times the budget: AppTest and the sidebar are in it"


# --- tables -----------------------------------------------------------------------------------------


def facts():
    return (
        trust_tables.model_table(), trust_tables.accelerator_table(), trust_tables.accelerator_numbers(),
        trust_tables.price_table(), trust_tables.engine_table(), trust_tables.preset_table(),
        trust_speeds.law_table(), trust_speeds.collective_table(), trust_speeds.serving_table(),
        trust_speeds.exchange_table(), trust_fit.value_table(), trust_fit.factor_table(), trust_fit.band_table(),
    )  # fmt: skip


def test_every_table_of_facts_has_source_and_date():
    for table in facts():
        assert (table["Date"] != "").all()
        if "Source" in table:
            assert (table["Source"] != "").all(), table.columns[0]


def test_no_text_cell_is_empty_or_says_none():
    for table in facts():
        texts = table.drop(columns=["Notes", "Note", "Published as"], errors="ignore").select_dtypes("str")
        for name in texts:
            assert not texts[name].isin(["", "None", "nan"]).any(), name


def test_unknown_is_not_zero():
    parts = trust_tables.accelerator_table().set_index("Accelerator")
    assert parts.loc["a100-80g-sxm", "FP8, dense TFLOPS"] != parts.loc["a100-80g-sxm", "FP8, dense TFLOPS"]
    assert not (parts.select_dtypes("number") == 0).any().any()
    missing = trust_tables.assumed_price_table().set_index("Accelerator")["Median on-demand, $/h"]
    assert missing.isna().any()
    assert not (missing == 0).any()


def test_laws_say_whether_they_are_fitted_or_borrowed():
    assert set(trust_speeds.law_table()["Tag"]) <= {"published", "fitted", "borrowed", "assumed"}
    assert set(trust_speeds.in_use(Scenario(gpu="mi300x", tp=4))["Tag"]) <= {"borrowed", "assumed"}
    assert "fitted" in set(trust_speeds.in_use(Scenario())["Tag"])


def test_what_the_last_fit_found_is_shown_with_its_start_and_its_range():
    found = served()
    values = trust_fit.value_table().set_index("Constant")
    assert list(values.index) == [each.name for each in found.fitted]
    for each in found.fitted:
        low, high = each.range
        row = values.loc[each.name]
        assert (row["Value"], row["Start"]) == (each.value, each.start)
        assert row["Range over folds"] == f"{low:g} to {high:g}"
        assert row["Source"] == found.source
    factors = trust_fit.factor_table()
    assert factors["Factor on its time"].tolist() == [each.factor for each in found.law_factor]


def test_every_band_of_the_presets_is_in_the_table():
    shown = {(row["Where"], row["Low, ×"], row["High, ×"]) for row in trust_fit.band_table().to_dict("records")}
    band = serving().band
    assert {(own.words, own.low, own.high) for own in band.own} <= shown
    assert {(span.group, span.low, span.high) for span in band.span} <= shown
    assert ("borrowed kernels", band.borrowed_low, band.borrowed_high) in shown
    assert len(trust_fit.band_table()) == 3 + len(band.own) + len(band.span) + 2


def test_laws_in_use_are_those_of_the_plans_own_kernels():
    used = trust_speeds.in_use(Scenario(weights="fp8", kv="fp8"))
    assert set(zip(used["Kernel"], used["Precision"], strict=True)) == {
        ("gemm", "fp8"), ("gemm", "bf16"), ("elementwise", "bf16"), ("attn_decode", "fp8"), ("attn_prefill", "fp8"),
    }  # fmt: skip
    assert trust_speeds.all_reduce_text(Scenario()) == ""
    # the kernel preset's four-rank row, its latency times the serving constant and that of the engine
    timed = next(r for r in kernels("h100-sxm").collective if (r.engine, r.op) == ("vllm", "all_reduce"))
    factor = serving().constant["all_reduce_floor_factor"]
    served_us, bus = timed.alpha_us[1] * factor.value * factor.engine_factor["vllm"], timed.bus_gb_per_s[1]
    said = f"All-reduce over 4 ranks: {served_us:.2f} µs and {bus:.0f} GB/s"
    assert trust_speeds.all_reduce_text(Scenario(tp=4)).startswith(said)


def test_a_document_is_shown_without_its_title_and_without_links_into_the_repository():
    text = "# Title\n\n<!-- made -->\nSee [this](OTHER.md) and [that](https://example.org).\n\n## Next\n\nMore."
    assert headline(text) == "See this and [that](https://example.org)."
    assert without_title(text).endswith("More.")
    assert chapter(text, "Next") == "More."
    assert chapter(text, "Other") == ""


def test_tables_of_words_stack_and_tables_of_figures_scroll(monkeypatch):
    monkeypatch.setattr(trust_limits, "mode", lambda: "light")
    words = trust_limits.table("| what | errs towards |\n|---|---|\n| a `b` | <i> 5% |")
    assert words.startswith("<dl")
    assert "flex-wrap:wrap" in words
    assert ">b</code>" in words
    assert "&lt;i&gt; 5\u00a0%" in words
    figures = trust_limits.table("| what | points |\n|---|--:|\n| TPOT | 2,002 |")
    assert "overflow-x:auto" in figures
    assert 'tabindex="0"' in figures
    assert '<th scope="row"' in figures
    assert "2,002" in figures


def test_no_cell_of_a_document_is_lost():
    for name in ("LIMITS.md", "VALIDATION.md"):
        text = trust_limits.document(name)
        pieces = trust_limits.parts(text)
        assert sum(part.count("|") for is_table, part in pieces if is_table) >= text.count("\n|")
        kept = [line for _, part in pieces for line in part.splitlines() if line.strip()]
        assert kept == [line for line in text.splitlines() if line.strip()]


# --- browser ----------------------------------------------------------------------------------------


def show_trust(page):
    """By the navigation: opened by its own address, Streamlit first asks for its files beside the page, a 404 each."""
    expand = page.locator('[data-testid="stExpandSidebarButton"]')
    narrow = expand.is_visible()
    if narrow:
        expand.click()
    page.get_by_role("link", name="Trust").first.click()
    harness.settle(page)
    collapse = page.locator('[data-testid="stSidebarCollapseButton"] button')
    if narrow and collapse.is_visible():
        collapse.click()
        harness.settle(page)


@pytest.mark.browser
@pytest.mark.parametrize(
    "look", [{"theme": "light"}, {"theme": "dark"}, {"width": 390, "height": 844}], ids=["light", "dark", "390px"]
)
def test_the_page_in_a_browser(open_page, look):
    page = open_page("?tp=4", **look)
    show_trust(page)
    for section in ("This plan's arithmetic", "Catalogue", "Limits", "Accuracy"):
        page.get_by_role("radio", name=section, exact=True).click()
        harness.settle(page)
        assert page.get_by_role("heading", level=1).inner_text() == "Why believe this?"
        assert harness.overflow(page) == 0
        assert harness.axe_violations(page, ignore=frozenset({"empty-table-header"})) == []
    assert "tp=4" in page.url
