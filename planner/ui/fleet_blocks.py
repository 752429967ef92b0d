"""Parts of the Fleet page's answer; each draws one of them from a fleet."""

from __future__ import annotations

import streamlit as st

from planner.fleet import sentence
from planner.fleet.answer import Fleet
from planner.fleet.question import FleetQuestion
from planner.ui import fleet_charts, fleet_data, fleet_state, show
from planner.ui.fleet_figures import table
from planner.ui.fleet_words import word
from planner.ui.marks import draw
from planner.ui.theme import mode
from planner.units import DASH, dollars, significant, whole
from planner.units import show as shown


def headline(fleet: Fleet) -> None:
    """The answer, what stands in its way, and what was asked."""
    show.answer(sentence.answer(fleet))
    if obstacles := sentence.obstacles(fleet):
        show.lines(obstacles)
    ways(fleet)
    st.caption(show.plain(context(fleet.question)))


def context(question: FleetQuestion) -> str:
    """What was asked, in one line."""
    classes, kinds = len(question.classes), len(question.stock)
    limit = "" if question.budget is None else f", {word('tile_bill_budget', budget=dollars(question.budget))}"
    return word(
        "context",
        classes=word("one_class") if classes == 1 else word("many_classes", count=str(classes)),
        requests=significant(sum(each.scenario.qps for each in question.classes)),
        stock=word("one_stock") if kinds == 1 else word("many_stock", count=str(kinds)),
        goal=word(question.objective).lower() + limit,
    )


def ways(fleet: Fleet) -> None:
    """Buttons that set the least SLA which can be kept, where it is the SLA that is in the way."""
    near = [(at, each) for at, each in enumerate(fleet.served) if each.needed]
    if near:
        with st.container(horizontal=True, gap="small", key="fleet_ways"):
            for at, each in near:
                said = word("set_sla", name=each.traffic.name, sla=sentence.least_sla(each))
                st.button(
                    show.plain(said),
                    icon=":material/speed:",
                    key=f"_fleet_set_{at}",
                    on_click=fleet_state.ease,
                    args=(fleet, at),
                )


def tiles(fleet: Fleet) -> None:
    """The four figures; where they leave out a class, each says so instead of its remark."""
    without = word("tile_without", names=sentence.listed(fleet.without)) if fleet.without else ""
    budget = fleet.question.budget
    month = word("tile_bill_month", month=f"{fleet.usd_per_month:,.0f}")
    owned = sum(each.billed for each in fleet.taken if each.stock.owned)
    asked = sum(each.demand * each.traffic.scenario.osl for each in fleet.served)
    carried = sum(each.capacity * each.traffic.scenario.osl for each in fleet.served)
    used = sum(each.qps * each.traffic.scenario.osl for each in fleet.served)
    part = shown(fleet.goodput_tok_s / asked, "%")
    good = f"{without}: {part}" if without else word("tile_good_part", share=part)
    with st.grid(4, min_column_width=150, gap="small", key="fleet_tiles"):
        bill = month if budget is None else word("tile_bill_budget", budget=dollars(budget))
        show.tile(word("tile_bill"), dollars(fleet.usd_per_hour), without or bill, source=word("why_bill"))
        split = word("tile_gpus_owned", owned=whole(owned), rented=whole(fleet.gpus - owned)) if owned else DASH
        show.tile(word("tile_gpus"), whole(fleet.gpus), without or split, source=word("why_gpus"))
        all_ = word("tile_good_all") if fleet.all_served else good
        tone: show.Tone = "off" if fleet.all_served else "inverse"
        show.tile(word("tile_good"), significant(fleet.goodput_tok_s), all_, tone, source=word("why_good"))
        share = shown(used / carried, "%") if carried else DASH
        show.tile(word("tile_used"), share, without or word("tile_used_why"), source=word("why_used"))


def mix(fleet: Fleet) -> None:
    """Every plan of the mix, each with a link that opens it."""
    with show.card(word("mix"), "card_mix"):
        show.finding(sentence.proof(fleet))
        if not fleet.groups:
            st.caption(word("no_mix"))
            return
        table(word("mix_alt"), fleet_data.MIX, fleet_data.mix(fleet), frozenset((0, 1, 2)))


def bill(fleet: Fleet) -> None:
    """Where the dollars go."""
    with show.card(word("bill"), "card_bill"):
        show.finding(sentence.bill(fleet))
        if fleet.groups:
            draw(fleet_charts.bill(mode()), fleet_data.bill(fleet), word("bill_alt"))
        if not fleet.usd_per_hour:
            st.caption(word("no_bill" if fleet.groups else "no_mix"))


def served(fleet: Fleet) -> None:
    """Each class of traffic."""
    with show.card(word("served"), "card_served"):
        table(word("served_alt"), fleet_data.SERVED, fleet_data.served(fleet), frozenset((0,)))


def idle(fleet: Fleet) -> None:
    """GPUs that are not taken, and capacity that is not used."""
    with show.card(word("idle"), "card_idle"):
        show.finding(sentence.idle(fleet))
        table(word("idle_alt"), fleet_data.IDLE, fleet_data.idle(fleet), frozenset((0, 7)))


def failure(fleet: Fleet) -> None:
    """What the loss of one replica does."""
    with show.card(word("failure"), "card_failure"):
        show.finding(sentence.failure(fleet))
        if fleet.groups:
            table(word("failure_alt"), fleet_data.FAILURE, fleet_data.failure(fleet), frozenset((0, 1, 5)))


def grounds(fleet: Fleet) -> None:
    """What the answer rests on."""
    spares = "ground_availability" if fleet.question.availability is not None else "ground_spares"
    with show.card(word("grounds"), "card_fleet_grounds"):
        show.lines([word(key) for key in ("ground_capacity", "ground_traffic", spares, "ground_ties")])
