"""Parts of the Fleet page's answer; each draws one of them from a fleet."""

from __future__ import annotations

from html import escape

import streamlit as st

from planner.catalog.accelerators import accelerator
from planner.fleet import sentence
from planner.fleet.answer import Fleet
from planner.fleet.names import plan_name
from planner.fleet.question import FleetQuestion
from planner.share import pinned
from planner.ui import fleet_charts, fleet_data, show
from planner.ui.fleet_words import word
from planner.ui.link import anchor
from planner.ui.marks import draw
from planner.ui.theme import mode
from planner.units import DASH, dollars, significant, whole
from planner.units import show as shown


def headline(fleet: Fleet) -> None:
    """The answer, what stands in its way, and what was asked."""
    show.answer(sentence.answer(fleet))
    if obstacles := sentence.obstacles(fleet):
        show.lines(obstacles)
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


def tiles(fleet: Fleet) -> None:
    """The four figures."""
    budget = fleet.question.budget
    month = word("tile_bill_month", month=f"{fleet.usd_per_month:,.0f}")
    owned = sum(each.billed for each in fleet.taken if each.stock.owned)
    asked = sum(each.demand * each.traffic.scenario.osl for each in fleet.served)
    carried = sum(each.capacity * each.traffic.scenario.osl for each in fleet.served)
    used = sum(each.qps * each.traffic.scenario.osl for each in fleet.served)
    good = word("tile_good_part", share=shown(fleet.goodput_tok_s / asked, "%"))
    with st.grid(4, min_column_width=150, gap="small", key="fleet_tiles"):
        bill = month if budget is None else word("tile_bill_budget", budget=dollars(budget))
        show.tile(word("tile_bill"), dollars(fleet.usd_per_hour), bill, source=word("why_bill"))
        split = word("tile_gpus_owned", owned=whole(owned), rented=whole(fleet.gpus - owned)) if owned else DASH
        show.tile(word("tile_gpus"), whole(fleet.gpus), split, source=word("why_gpus"))
        all_ = word("tile_good_all") if fleet.all_served else good
        tone: show.Tone = "off" if fleet.all_served else "inverse"
        show.tile(word("tile_good"), significant(fleet.goodput_tok_s), all_, tone, source=word("why_good"))
        share = shown(used / carried, "%") if carried else DASH
        show.tile(word("tile_used"), share, word("tile_used_why"), source=word("why_used"))


def mix(fleet: Fleet) -> None:
    """Every plan of the mix, each with a link that opens it."""
    with show.card(word("mix"), "card_mix"):
        show.finding(sentence.proof(fleet))
        if not fleet.groups:
            st.caption(word("no_mix"))
            return
        formats: dict[str, str | int] = {
            "Replicas": "%d", "GPUs": "%d", "Requests/s": "%,.2f", "Each carries": "%,.2f", "$/h": "%,.2f",
        }  # fmt: skip
        show.table(fleet_data.mix(fleet), word("mix_alt"), formats, "content")
        st.html(f'<p style="margin:0">{escape(word("open_plan"))} {" · ".join(_plans(fleet))}</p>')


def _plans(fleet: Fleet) -> list[str]:
    """Links to the plans of the mix; their texts are validated names, and escaped."""
    return [
        show.anchor(
            anchor(pinned(group.scenario)),
            f"{group.traffic.name}, {plan_name(group)} on {accelerator(group.stock.accelerator).name}",
        )
        for group in fleet.groups
    ]


def bill(fleet: Fleet) -> None:
    """Where the dollars go."""
    with show.card(word("bill"), "card_bill"):
        show.finding(sentence.bill(fleet))
        if fleet.usd_per_hour > 0:
            draw(fleet_charts.bill(mode()), fleet_data.bill(fleet), word("bill_alt"))
        else:
            st.caption(word("no_bill" if fleet.groups else "no_mix"))


def served(fleet: Fleet) -> None:
    """Each class of traffic."""
    with show.card(word("served"), "card_served"):
        formats: dict[str, str | int] = {
            "Asked, req/s": "%,.2f", "Served, req/s": "%,.2f", "Capacity, req/s": "%,.2f", "Used, %": "%.1f",
            "Replicas": "%d", "May fail": "%d", "GPUs": "%d",
        }  # fmt: skip
        show.table(fleet_data.served(fleet), word("served_alt"), formats, "content")


def idle(fleet: Fleet) -> None:
    """GPUs that are not taken, and capacity that is not used."""
    with show.card(word("idle"), "card_idle"):
        show.finding(sentence.idle(fleet))
        formats: dict[str, str | int] = {
            "There are": "%,d", "Used": "%,d", "Billed": "%,d", "Idle": "%,d", "$/GPU-hour": "%.2f", "$/h": "%,.2f",
        }  # fmt: skip
        show.table(fleet_data.idle(fleet), word("idle_alt"), formats, "content")


def failure(fleet: Fleet) -> None:
    """What the loss of one replica does."""
    with show.card(word("failure"), "card_failure"):
        show.finding(sentence.failure(fleet))
        if fleet.groups:
            formats: dict[str, str | int] = {
                "Left, req/s": "%,.2f", "Asked, req/s": "%,.2f", "Load of the rest, %": "%.1f",
            }  # fmt: skip
            show.table(fleet_data.failure(fleet), word("failure_alt"), formats, "content")


def grounds(fleet: Fleet) -> None:
    """What the answer rests on."""
    spares = "ground_availability" if fleet.question.availability is not None else "ground_spares"
    with show.card(word("grounds"), "card_fleet_grounds"):
        show.lines([word(key) for key in ("ground_capacity", "ground_traffic", spares, "ground_ties")])
