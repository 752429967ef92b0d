"""Parts of the Model page; each draws one of them from an anatomy."""

from __future__ import annotations

import streamlit as st

from planner.anatomy import Anatomy, Experts
from planner.ui import model_bars, model_charts, model_data, model_words, show
from planner.ui.marks import draw
from planner.ui.text import say
from planner.ui.theme import mode

TABLE_PIXELS = 300


def headline(found: Anatomy) -> None:
    """The answer, and what was asked."""
    show.answer(model_words.answer(found))
    show.finding(model_words.step(found))
    st.caption(show.plain(model_words.context(found)))
    st.caption(show.plain(model_words.shape(found)))
    if found.routing is None:
        st.caption(show.plain(model_words.no_experts(found)))


def parameters(found: Anatomy) -> None:
    """Where the parameters are."""
    with show.card(say("parameters"), "card_parameters"):
        show.finding(model_words.parameters(found))
        draw(
            model_charts.parameters(mode(), model_bars.families(found)),
            model_bars.parameters(found),
            say("parameters_alt"),
        )
        show.figures(say("parameters"), model_bars.PARAMETER_HEADER, model_bars.parameter_table(found))
        st.caption(show.plain(model_words.counted(found)))


def growth(found: Anatomy, routing: Experts) -> None:
    """Experts hit and weights read over batch."""
    with show.card(say("growth"), "card_growth"):
        show.finding(model_words.growth(found, routing))
        draw(model_charts.experts(mode()), model_data.experts(found), say("experts_alt"))
        draw(model_charts.weights(mode()), model_data.weights(found), say("weights_alt"))
        st.caption(show.plain(model_words.affine(found, routing)))
        formats = {"Experts hit": "%.1f", "Weights, GB": "%,.1f", "Of all, %": "%.1f", "GB per sequence": "%,.2f"}
        show.behind(
            say("table"), "_growth_table",
            lambda: show.table(model_data.growth_table(found), say("growth"), formats, TABLE_PIXELS),
        )  # fmt: skip


def intensity(found: Anatomy) -> None:
    """Arithmetic intensity over batch, beside the ridge."""
    with show.card(say("intensity"), "card_intensity"):
        show.finding(model_words.intensity(found))
        draw(model_charts.intensity(mode()), model_data.intensity(found), say("intensity_alt"))
        st.caption(show.plain(model_words.per_token(found)))
        names = ("TFLOP", "Weights, GB", "Activations, GB", "Cache, GB", "Index, GB", "FLOP/B, weights", "FLOP/B, all")
        formats = dict.fromkeys(names, "%,.2f")
        show.behind(
            say("table"), "_intensity_table",
            lambda: show.table(model_data.intensity_table(found), say("intensity"), formats, TABLE_PIXELS),
        )  # fmt: skip


def reads(found: Anatomy) -> None:
    """What a sequence reads and stores over context."""
    with show.card(say("reads"), "card_reads"):
        show.finding(model_words.reads(found))
        draw(model_charts.reads(mode(), model_data.kinds(found)), model_data.reads(found), say("reads_alt"))
        formats = {f"{name}, MB": "%,.2f" for name in model_charts.READS}
        show.behind(
            say("table"), "_reads_table",
            lambda: show.table(model_data.reads_table(found), say("reads"), formats, TABLE_PIXELS),
        )  # fmt: skip


def tiles(found: Anatomy, routing: Experts) -> None:
    """Tokens on an expert and the fill of its tiles."""
    with show.card(say("tiles"), "card_tiles"):
        show.finding(model_words.tiles(routing))
        draw(model_charts.tiles(mode()), model_data.tiles(found), say("tiles_alt"))
        st.caption(show.plain(model_words.padding(found, routing)))
        formats = {"Tokens on an expert": "%,.2f", **{f"{name}, %": "%.1f" for name in model_charts.FILLS}}
        show.behind(
            say("table"), "_tiles_table",
            lambda: show.table(model_data.tiles_table(found), say("tiles"), formats, TABLE_PIXELS),
        )  # fmt: skip


def phases(found: Anatomy) -> None:
    """A prompt beside a decode step."""
    with show.card(say("phases"), "card_phases"):
        show.finding(model_words.phases(found))
        draw(model_charts.phases(mode()), model_bars.phases(found), say("phases_alt"))
        show.figures(say("phases"), model_bars.phase_header(found), model_bars.phase_table(found))
        st.caption(say("phases_note"))
