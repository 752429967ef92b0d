"""Parts of the Plan page; each draws one of them from a plan."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

import streamlit as st

from planner.answer import answer
from planner.catalog.version import catalogue_version
from planner.plan import Plan
from planner.promised import MEDIAN
from planner.setting import resolve
from planner.specs.scenario import Scenario
from planner.ui import band_words, charts, curve_chart, data, show, tile_words, words
from planner.ui.link import anchor
from planner.ui.marks import draw
from planner.ui.show import Tone
from planner.ui.text import say
from planner.ui.theme import mode
from planner.units import DASH, whole
from planner.units import show as shown

TRUST: Final = Path(__file__).resolve().parent / "app_pages" / "trust.py"


def headline(plan: Plan) -> None:
    """The answer, what was asked, and the verdicts."""
    show.answer(answer(plan))
    st.caption(show.plain(words.context(plan)))
    with st.container(horizontal=True, gap="small", key="verdicts"):
        engine = resolve(plan.scenario).engine.name
        impossible = plan.binds == "layout" and not plan.fits
        show.verdict(None if impossible else plan.fits, say("fits"), say("fits_not"), say("fits_unknown"))
        judged = plan.meets_sla if plan.fits and plan.tpot_ms is not None else None
        pct = plan.scenario.sla_pct
        kept = say("sla") if pct == MEDIAN else say("sla_at", pct=f"{pct:g}")
        show.verdict(judged, kept, say("sla_not"), say("sla_unknown"))
        runs = None if impossible else plan.engine_ok
        show.verdict(runs, say("engine_ok", engine=engine), say("engine_not", engine=engine), say("engine_unknown"))
        if count := len(_remarks(plan)):
            show.hint(say("one_note") if count == 1 else say("many_notes", count=str(count)))
    catalogue()


def catalogue() -> None:
    """Said when the link was made with another catalogue."""
    then = st.query_params.get("c")
    if then and then != catalogue_version():
        st.info(show.plain(say("catalogue_changed", then=then, now=catalogue_version())), icon=":material/history:")


def beside(plan: Plan) -> None:
    """Links that stand beside the answer: the nearest plan that fits, the real model of a textbook plan."""
    if (nearest := _nearest(plan)) is not None:
        _link(nearest[0], say("open_nearest"), nearest[1])
    if (found := words.twin(plan.scenario)) is not None:
        _link(found[0], say("open_twin"), found[1])


def _nearest(plan: Plan) -> tuple[str, Scenario | None] | None:
    """Where to go when the plan does not fit, or no batch keeps its SLA; a sentence alone where nothing was found."""
    if any(note.code == "nearest_fit" for note in plan.notes):
        return words.nearest(plan.scenario)
    if plan.fits and plan.engine_ok and not plan.meets_sla and plan.b_max_sla == 0:
        return words.keeping(plan.scenario)
    return None


def _link(text: str, label: str, scenario: Scenario | None) -> None:
    """A sentence of ours and, where it leads somewhere, a same-tab link; the address is of validated values and escaped."""
    link = "" if scenario is None else f" {show.anchor(anchor(scenario), label)}"
    st.html(f'<p style="margin:0">{escape(show.typeset(text))}{link}</p>')


def tiles(plan: Plan) -> None:
    """The five figures."""
    served = plan.fits and plan.tpot_ms is not None
    with st.grid(5, min_column_width=150, gap="small", key="tiles"):
        show.tile(say("tile_gpus"), whole(plan.gpus) if served else DASH, tile_words.gpus(plan), source=say("why_gpus"))
        batch, sure = whole(plan.batch) if served else DASH, band_words.batch(plan)
        show.tile(say("tile_batch"), batch, tile_words.batch(plan), source=tile_words.why_batch(plan), below=sure)
        _tpot(plan)
        none: Tone = "off" if plan.meets_sla else "inverse"
        rate, spread = tile_words.rate(plan), band_words.rate(plan)
        show.tile(say("tile_rate"), rate, tile_words.throughput(plan), none, say("why_rate"), spread)
        cost, dollars = shown(plan.usd_per_m_goodput, "$"), band_words.cost(plan)
        show.tile(say("tile_cost"), cost, tile_words.hourly(plan), source=say("why_cost"), below=dollars)


def _tpot(plan: Plan) -> None:
    """The tile of TPOT, in the tone of a warning where it or TTFT breaks the SLA."""
    slow = plan.tpot_ms is not None and plan.tpot_ms > plan.scenario.sla_tpot_ms
    tone: Tone = "inverse" if slow or tile_words.first_token_late(plan) else "off"
    why, band = tile_words.why_tpot(plan), band_words.tpot(plan)
    show.tile(say("tile_tpot"), shown(plan.tpot_ms, "ms"), tile_words.tpot(plan), tone, why, band)


def memory(plan: Plan) -> None:
    """What a GPU's memory holds."""
    with show.card(say("memory"), "card_memory", stretch=True):
        show.finding(words.memory(plan))
        draw(charts.memory(mode()), data.memory(plan), say("memory_alt"))
        show.figures(say("memory"), data.MEMORY_HEADER, data.memory_table(plan))


def curve(plan: Plan) -> None:
    """TPOT over batch."""
    with show.card(say("curve"), "card_curve", stretch=True):
        show.finding(words.curve(plan))
        draw(curve_chart.curve(mode()), data.curve(plan), say("curve_alt"))
        st.caption(show.plain(words.marks(plan)))
        show.behind(say("table"), "_curve_table", lambda: _curve_table(plan))


def _curve_table(plan: Plan) -> None:
    """The curve's points, then the measurements drawn over it, where there are any."""
    formats = {
        "TPOT, ms": "%.1f", "Low": "%.1f", "High": "%.1f", "Output tok/s": "%,.0f", "$/M output": "%.3f",
    }  # fmt: skip
    show.table(data.curve_table(plan), say("curve"), formats, 300)
    measured = data.measured_table(plan)
    if len(measured):
        st.markdown(show.plain(words.measured(plan)))
        show.table(measured, words.measured(plan), {"Batch": "%.4g", "TPOT measured, ms": "%.2f", "Says who": 380}, 300)


def layouts(plan: Plan) -> None:
    """Instead of a speed that there is not: what each tensor-parallel degree would hold."""
    with show.card(say("layouts"), "card_layouts"):
        show.finding(words.layouts(plan))
        show.figures(say("layouts"), data.LAYOUT_HEADER, data.layout_table(plan), words=frozenset({3}))


def step(plan: Plan) -> None:
    """Where the time goes."""
    with show.card(say("step"), "card_step"):
        show.finding(words.step(plan))
        draw(charts.step(mode()), data.step(plan), say("step_alt"))
        formats: dict[str, str | int] = {
            "ms": "%.3f",
            "Share, %": "%.1f",
            "TFLOP": "%.3f",
            "HBM GB": "%.3f",
            "Link GB": "%.3f",
            "Operator": 116,
        }
        show.behind(say("table"), "_step_table", lambda: show.table(data.step_table(plan), say("step"), formats))


def cost(plan: Plan) -> None:
    """What it costs, and what the promise costs."""
    with show.card(say("cost"), "card_cost"):
        show.finding(words.price_of_promise(plan) or words.cost(plan))
        show.figures(say("cost"), (), words.costs(plan))
        notes = [note.text for note in plan.notes if note.field == "price"]
        if notes:
            st.caption(show.plain(" ".join(notes)))


def sure(plan: Plan) -> None:
    """How far off the figures may be."""
    with show.card(band_words.title(), "card_sure"):
        show.figures(band_words.title(), band_words.header(), band_words.table(plan))
        st.caption(show.plain(band_words.grounds(plan)))


def notes(plan: Plan) -> None:
    """Warnings and remarks."""
    with show.card(say("notes"), "card_notes"):
        if said := _remarks(plan):
            show.lines(said)
        else:
            show.finding(say("no_notes"))


def grounds(plan: Plan) -> None:
    """What the plan rests on: assumptions, sources, and the way to its arithmetic."""
    with show.card(say("grounds"), "card_grounds"):
        show.behind(say("assumptions"), "_assumptions", lambda: show.lines(plan.assumptions))
        show.behind(say("sources"), "_sources", lambda: _sources(plan))
        if TRUST.exists():
            st.page_link(TRUST, label=say("worked"), icon=":material/function:")


def _remarks(plan: Plan) -> list[str]:
    """Notes that stand nowhere else on the page: price and queues have their cards, the nearest plan its link."""
    elsewhere = ("nearest_fit", "percentile")
    return [note.text for note in plan.notes if note.field != "price" and note.code not in elsewhere]


def _sources(plan: Plan) -> None:
    """Who says what: one row a source, with all that comes from it."""
    found: dict[str, list[str]] = {}
    for line in plan.sources:
        what, _, who = line.partition(": ")
        found.setdefault(who, []).append(what)
    show.terms([(_joined(what), who) for who, what in found.items()])


def _joined(names: list[str]) -> str:
    """Names in a row; what begins as its forerunner does, as `H100, memory_gb` after `H100, tdp_w`, is cut short."""
    said, before = [], ""
    for name in names:
        owner, comma, rest = name.partition(", ")
        said.append(rest if comma and owner == before else name)
        before = owner
    return ", ".join(said)
