"""Trust, how far off predictions are: what the page says is what the shipped points give, in every selection and state."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from planner.accuracy import METRICS, compared, errors, selected, share_within, troubles
from planner.catalog.evidence import Where, peers
from planner.catalog.fitted_constants import served
from planner.errors import CatalogueError
from planner.predicted import served_points
from planner.ui import trust_accuracy
from planner.ui.trust_words import as_error, counted
from tests.app import browser as harness
from tests.app.test_trust_page import choose, main, show_trust, tables

SGLANG = Where(engine="SGLang")
QUIET = frozenset({"empty-table-header"})


@pytest.fixture
def page(root):
    """The section, as it is first seen."""
    at = AppTest.from_file(str(root / "planner" / "ui" / "main.py"), default_timeout=20).run()
    at.switch_page("app_pages/trust.py").run()
    assert not at.exception
    return at


def only(at, **values):
    for name, value in values.items():
        at.selectbox(key=f"_trust_only_{name}").set_value(value).run()
    assert not at.exception
    return at


def plot(at):
    """Datasets of the plot by name; none when there is no plot."""
    found = at.get("vega_lite_chart")
    return {data.name for data in found[0].proto.datasets} if found else set()


def group_table(at):
    return next(table.value for table in at.dataframe if "Configurations" in table.value)


def test_the_finding_is_computed_from_the_shipped_points(page):
    found = compared(served_points(), "TPOT")
    said = f"Half of {len(found):,} predictions are within"
    assert said in main(page)
    assert f"{share_within(found, 0.2):.0%} within 20".replace("%", "\u00a0%") in main(page)
    assert plot(page) == {"points", "lines", "names"}


def test_the_table_has_the_errors_of_validation(page):
    total = errors(compared(served_points(), "TPOT"), "TPOT", "all")
    first = group_table(page).iloc[0]
    assert first["Engine"] == "All shown"
    assert (first["Configurations"], first["Points"]) == (total.configurations, total.rows)
    assert first["Median, %"] == pytest.approx(100 * total.median)
    assert first["Bias, ×"] == pytest.approx(total.bias)
    assert f"{total.configurations:,}" in str(trust_accuracy.trust_limits.document("VALIDATION.md"))


@pytest.mark.parametrize("by", ["engine", "accelerator", "family"])
def test_grouping_names_every_value(page, by):
    table = group_table(choose(page, "_trust_by", by))
    values = {getattr(each.point, by) for each in compared(served_points(), "TPOT")}
    assert set(table.iloc[1:, 0]) == values
    assert table["Points"].iloc[1:].sum() == table["Points"].iloc[0]


@pytest.mark.parametrize("metric", METRICS)
def test_each_figure_says_what_it_means(page, metric):
    at = choose(page, "_trust_metric", metric)
    assert f"{len(compared(served_points(), metric)):,} predictions" in main(at)
    assert ("80\u00a0% band" in main(at)) == (metric == "TPOT")
    assert ("lower bound" in main(at)) == (metric == "TTFT")
    assert ("In 80 % band, %" in group_table(at)) == (metric == "TPOT")


def test_errors_out_of_fold_are_those_of_the_last_fit(page):
    table = next(table.value for table in page.dataframe if "Median out of fold, %" in table.value)
    found = served().error
    assert table["Median out of fold, %"].tolist() == pytest.approx([100 * each.out_of_fold for each in found])
    assert table["Median within the fit, %"].tolist() == pytest.approx([100 * each.within for each in found])
    assert table["Configurations"].tolist() == [each.configurations for each in found]
    names = dict(zip([each.group for each in found], table["Group"], strict=True))
    assert (names["all"], names["engine vllm"]) == ("All", "Engine: vllm")


def test_a_filter_narrows_everything(page):
    at = only(page, engine="SGLang")
    found = compared(selected(served_points(), SGLANG), "TPOT")
    assert f"Half of {len(found):,} predictions" in main(at)
    assert group_table(at)["Points"].iloc[0] == len(found)
    assert "TensorRT-LLM of May 2025" not in tables(at)
    at.button(key="_trust_clear").click().run()
    assert f"Half of {len(compared(served_points(), 'TPOT')):,}" in main(at)


def test_no_match_says_what_to_do_and_shows_no_number(page):
    at = only(page, engine="vllm-ascend", accelerator="B200")
    assert not plot(at)
    assert "No measured point" in main(at)
    assert at.button(key="_trust_clear")
    assert not [table for table in at.dataframe if "Median, %" in table.value]


def test_one_point_is_no_half(page):
    at = only(page, accelerator="L4")
    (found,) = compared(selected(served_points(), Where(accelerator="L4")), "TPOT")
    said = f"One measured point: the prediction is {as_error(abs(found.ratio - 1))} off it."
    assert said.replace("%", "\u00a0%") in main(at)


def test_the_worst_groups_stand_first_with_todays_error(page):
    worst = troubles(served_points(), "TPOT")[0]
    text = tables(page)
    assert worst.title in text
    assert f"{as_error(worst.errors.median)} median".replace("%", "\u00a0%") in text
    assert text.index(worst.title) < text.index(troubles(served_points(), "TPOT")[1].title)


def test_other_tools_stand_with_their_source_and_the_caveat(page):
    text = tables(page)
    for peer in peers():
        assert f'href="{peer.source}"' in text
    assert "Conditions differ" in main(page)
    assert text.index("Headroom") < text.index(peers()[0].tool)


def test_memory_is_there_too(page):
    assert "start-up logs" in main(page)
    assert "largest concurrency" in tables(page)


def test_predictions_of_another_catalogue_are_marked_as_old(page, monkeypatch):
    monkeypatch.setattr(trust_accuracy, "predicted_with", lambda: "2020-01-01-00000000")
    page.run()
    assert any("catalogue 2020-01-01-00000000" in box.value for box in page.warning)


def test_a_copy_without_predictions_says_so(page, monkeypatch):
    def missing():
        raise CatalogueError("predicted.csv cannot be read: No such file")

    monkeypatch.setattr(trust_accuracy, "served_points", missing)
    page.run()
    assert not page.exception
    assert any("make docs" in box.value for box in page.warning)
    assert not plot(page)


def test_counts_and_errors_are_spoken_of_alike():
    assert counted("point", 1) == "1 point"
    assert counted("point", 2002) == "2,002 points"
    assert as_error(0.0811) == "8.1%"
    assert as_error(0.0999) == "10%"
    assert as_error(0.619) == "62%"


def test_words_of_our_files_are_never_markup(page):
    assert not re.search(r"<(script|img|iframe)", tables(page))


# --- browser ----------------------------------------------------------------------------------------


def canvas(page):
    return page.locator('[data-testid="stVegaLiteChart"] canvas').first


@pytest.mark.browser
@pytest.mark.parametrize(
    "look", [{"theme": "light"}, {"theme": "dark"}, {"width": 390, "height": 844}], ids=["light", "dark", "390px"]
)
def test_the_section_in_a_browser(open_page, look):
    page = open_page("", **look)
    show_trust(page)
    harness.settle(page, charts=1)
    assert harness.overflow(page) == 0
    assert harness.axe_violations(page, ignore=QUIET) == []
    page.get_by_text("more groups").click()
    harness.settle(page)
    page.get_by_text("Every point as a table").click()
    harness.settle(page)
    assert harness.overflow(page) == 0
    assert harness.axe_violations(page, ignore=QUIET) == []


@pytest.mark.browser
def test_the_nearest_point_answers_the_pointer(open_page):
    page = open_page("")
    show_trust(page)
    harness.settle(page, charts=1)
    box = canvas(page).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(300)
    said = page.locator("#vg-tooltip-element").inner_text()
    for title in ("Model", "Accelerator", "Engine", "Measured", "Predicted", "Error", "Says who", "Date"):
        assert title in said


@pytest.mark.browser
def test_filters_work_by_keyboard(open_page):
    page = open_page("")
    show_trust(page)
    harness.settle(page, charts=1)
    page.get_by_role("radio", name="TPOT", exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    harness.settle(page, charts=1)
    assert page.get_by_text("read the prediction as a lower bound", exact=False).is_visible()
