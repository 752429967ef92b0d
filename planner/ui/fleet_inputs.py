"""The inputs of the Fleet page: two tables, what is made best, what must hold."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import streamlit as st

from planner.catalog.accelerators import accelerator_ids
from planner.catalog.models import model_ids
from planner.errors import InputError
from planner.fleet.question import FleetQuestion, Objective, TrafficClass
from planner.specs.scenario import Scenario, describe
from planner.ui import fleet_state, fleet_tables, show, state
from planner.ui.fleet_tables import Goals
from planner.ui.fleet_words import word

NOT_ADDED: Final = "_fleet_not_added"
CHOICES: Final[tuple[Objective, ...]] = ("usd_per_hour", "goodput_tok_s")
NEW_RATE: Final = 1.0
"""Requests a second of a class that is added from a plan which has none."""

USUAL_UP, USUAL_TARGET = 99.0, 99.9
"""Availabilities that are proposed, in percent."""


def draw() -> FleetQuestion:
    """All inputs; the question that they ask.

    Raises:
        InputError: when some of them is refused.
    """
    base = fleet_state.base()
    with show.card(word("traffic"), "card_traffic"):
        show.finding(word("traffic_hint"))
        classes = _editor("classes", fleet_tables.classes(base), _class_columns(), disabled=["also"])
        _buttons()
    with show.card(word("stock"), "card_stock"):
        show.finding(word("stock_hint"))
        shelves = _editor("stock", fleet_tables.stock(base), _stock_columns())
        places = _places(base)
    with show.card(word("goals"), "card_goals"):
        goals = _goals(base)
    return fleet_tables.question_of(base, classes, shelves, places, goals)


def _editor(
    name: str, frame: pd.DataFrame, columns: dict[str, Any], disabled: list[str | int] | bool = False
) -> pd.DataFrame:
    """One editable table; rows can be added and removed; the column of what is also set stands where something is."""
    shown = [str(column) for column in frame.columns if column != "also" or frame[column].any()]
    return st.data_editor(
        frame, num_rows="dynamic", hide_index=True, column_config=columns, column_order=shown, disabled=disabled,
        placeholder="–", alt=word({"classes": "traffic"}.get(name, name)), key=fleet_state.key(name),
    )  # fmt: skip


def _number(field: str, width: int, step: float, high: float | None = None) -> Any:
    """A column of a scenario's numbers, with its limits."""
    text = describe(field)
    return st.column_config.NumberColumn(
        word(f"col_{field}"), width=width, required=True, min_value=text.low, max_value=high or text.high, step=step,
        default=_default(field), format="%,d" if text.kind == "whole" else "%g", help=text.meaning,
    )  # fmt: skip


def _default(field: str) -> Any:
    """What a new class has."""
    return NEW_RATE if field == "qps" else describe(field).default


def _class_columns() -> dict[str, Any]:
    """Columns of the table of classes."""
    column = st.column_config
    return {
        "name": column.TextColumn(word("col_name"), width=100, required=True, max_chars=40),
        "model": column.SelectboxColumn(
            word("col_model"), width=118, required=True, options=_models(), default=describe("model").default
        ),
        "qps": _number("qps", 76, 0.001),
        "isl": _number("isl", 76, 1),
        "osl": _number("osl", 82, 1),
        "prefix": _number("prefix", 96, 0.1, high=100.0),
        "sla_ttft_ms": _number("sla_ttft_ms", 94, 0.001),
        "sla_tpot_ms": _number("sla_tpot_ms", 94, 0.001),
        "precisions": column.MultiselectColumn(
            word("col_precisions"), width=104, options=describe("weights").options, default=["bf16"],
            help=word("help_precisions"),
        ),
        "kv": column.SelectboxColumn(
            word("col_kv"), width=66, required=True, options=describe("kv").options, default=describe("kv").default
        ),
        "engine": column.SelectboxColumn(
            word("col_engine"), width=90, required=True, options=describe("engine").options, default="vllm"
        ),
        "also": column.TextColumn(word("col_also"), width=120, help=word("help_also")),
    }  # fmt: skip


def _models() -> list[str]:
    """Models of the catalogue, and a class's own where it has one."""
    own = {each.scenario.model for each in fleet_state.base().classes}
    return [*model_ids(), *sorted(own - set(model_ids()))]


def _stock_columns() -> dict[str, Any]:
    """Columns of the table of GPUs."""
    column = st.column_config
    return {
        "accelerator": column.SelectboxColumn(
            word("col_accelerator"), width=170, required=True, options=accelerator_ids()
        ),
        "gpus": column.NumberColumn(
            word("col_gpus"), width=100, min_value=0, max_value=100_000, step=1, format="%d", help=word("help_gpus")
        ),
        "place": column.TextColumn(word("col_place"), width=160, max_chars=40, help=word("help_place")),
        "price": column.NumberColumn(
            word("col_price"), width=110, min_value=0.0, max_value=100_000.0, step=0.0001, format="%g", help=word("help_price")
        ),
        "price_kind": column.SelectboxColumn(
            word("col_price_kind"), width=120, required=True, options=describe("price_kind").options, default="on-demand"
        ),
        "owned": column.CheckboxColumn(word("col_owned"), width=80, default=False, help=word("help_owned")),
        "instance": column.NumberColumn(
            word("col_instance"), width=140, min_value=1, max_value=1_024, step=1, format="%d", help=word("help_instance")
        ),
    }  # fmt: skip


def _places(base: FleetQuestion) -> pd.DataFrame:
    """Limits of providers and regions, drawn once they are asked for or there are some."""
    holder = st.expander(
        word("places"),
        type="compact",
        key=fleet_state.key("places_open"),
        on_change="rerun",
        expanded=bool(base.limits),
    )
    drawn = fleet_state.key("places") in st.session_state
    if not (holder.open or drawn):
        return fleet_tables.limits(base)
    column = st.column_config
    with holder:
        st.caption(word("places_hint"))
        return _editor(
            "places",
            fleet_tables.limits(base),
            {
                "place": column.TextColumn(word("col_place"), width=200, required=True, max_chars=40),
                "gpus": column.NumberColumn(
                    word("col_gpus"), width=120, required=True, min_value=0, max_value=100_000, step=1, format="%d"
                ),
            },
        )


def _goals(base: FleetQuestion) -> Goals:
    """What is made best, and what must hold."""
    with st.grid(4, min_column_width=200, gap="small", key="fleet_goals"):
        objective: Objective | None = st.segmented_control(
            word("objective"), CHOICES, format_func=word, default=base.objective, required=True, wrap=True,
            key=fleet_state.key("objective"),
        )  # fmt: skip
        budget = st.number_input(
            word("budget"), min_value=0.0, max_value=10_000_000.0, value=base.budget, step=10.0, format="%g",
            placeholder=word("no_budget"), key=fleet_state.key("budget"),
        )  # fmt: skip
        way = st.segmented_control(
            word("failures"), ("none", "spare", "availability"), format_func=word, default=_way(base), required=True,
            wrap=True, key=fleet_state.key("failures"),
        )  # fmt: skip
        spare = _spare(base) if way == "spare" else 0
        up, target = _chances(base) if way == "availability" else (None, None)
    return Goals(objective or base.objective, budget, spare, up, target)


def _way(base: FleetQuestion) -> str:
    """How failures are stated."""
    return "spare" if base.spare else "none" if base.availability is None else "availability"


def _spare(base: FleetQuestion) -> int:
    """Replicas that may fail."""
    value = base.spare or 1
    return int(
        st.number_input(word("spare_count"), min_value=1, max_value=10, value=value, key=fleet_state.key("spare")) or 1
    )


def _chances(base: FleetQuestion) -> tuple[float, float]:
    """Availability of a replica, and of the service of a class, as shares."""
    shares = (
        ("replica_up", base.availability, USUAL_UP),
        ("target", base.target, USUAL_TARGET),
    )
    up, target = (
        st.number_input(
            word(name), min_value=50.0, max_value=99.9999, value=round((share or usual / 100) * 100, 6), step=0.1,
            format="%g", key=fleet_state.key(name),
        )
        for name, share, usual in shares
    )  # fmt: skip
    return round((up or USUAL_UP) / 100, 8), round((target or USUAL_TARGET) / 100, 8)


def _buttons() -> None:
    """Ways to fill the table of classes."""
    with st.container(horizontal=True, gap="small", key="fleet_buttons"):
        st.button(word("add_plan"), icon=":material/add:", key="_fleet_add", on_click=_add, help=word("add_plan_help"))
        st.button(
            word("reset"), icon=":material/restart_alt:", key="_fleet_reset", on_click=fleet_state.reset,
            help=word("reset_help"),
        )  # fmt: skip
    if why := st.session_state.pop(NOT_ADDED, ""):
        st.caption(show.plain(word("not_added", why=why)))


def _add() -> None:
    """Add the sidebar's plan as a class; say why not where it cannot be one."""
    question = fleet_state.last()
    try:
        found = added(question, state.current())
    except InputError as error:
        st.session_state[NOT_ADDED] = "; ".join(str(fault) for fault in error.faults)
        return
    fleet_state.begin(found)


def added(question: FleetQuestion, scenario: Scenario) -> FleetQuestion:
    """A fleet with one more class, made of a plan's scenario.

    Raises:
        InputError: when the plan cannot be a class, or there are classes enough.
    """
    names = {each.name for each in question.classes}
    name = next(name for at in range(1, len(names) + 2) if (name := f"Plan {at}") not in names)
    plain = scenario.with_(**dict.fromkeys(("tp", "pp", "dp", "ep", "cp", "dcp"), 1), qps=scenario.qps or NEW_RATE)
    made = TrafficClass(name=name, scenario=_unpriced(plain))
    fields = {field: getattr(question, field) for field in FleetQuestion.model_fields}
    return FleetQuestion(**{**fields, "classes": (*question.classes, made)})


def _unpriced(scenario: Scenario) -> Scenario:
    """A scenario without what a fleet chooses or states elsewhere."""
    fields = ("gpu", "price", "price_kind", "provider", "fix_replicas", "spare", "c", "lang")
    return scenario.with_(**{field: describe(field).default for field in fields})
