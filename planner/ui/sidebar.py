"""The sidebar: eight inputs that decide most, the rest in compact sections; it holds no results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import streamlit as st

from planner.catalog.accelerators import accelerator, accelerator_ids
from planner.catalog.engines import engine
from planner.catalog.ids import CUSTOM
from planner.catalog.models import model_ids
from planner.catalog.prices import default_price, providers
from planner.specs.contradictions import POOL_FIELDS
from planner.specs.scenario import Scenario, describe
from planner.specs.spelling import decimal
from planner.ui import custom, presets, show
from planner.ui.data import DEGREES
from planner.ui.inputs import choice, menu, number, share
from planner.ui.state import can_undo, undo, untouched
from planner.ui.text import label_of, say
from planner.units import significant, whole

DRAFT_FIELDS: Final = ("accept", "draft")
PAIR_PIXELS: Final = 100
ODD_DEGREES: Final = "_odd_degrees"
"""Degrees beyond the menu that a link asked for: they stay on it."""


def draw(first: Scenario) -> None:
    """All inputs; `first` is what the link states."""
    with st.sidebar:
        with st.container(horizontal=True, gap="small", key="history"):
            presets.menu()
            st.button(
                say("undo"),
                icon=":material/undo:",
                key="_undo",
                on_click=undo,
                disabled=not can_undo(),
                help=say("undo_help"),
            )
        _main(first)
        _sections()
        custom.popover()


def _main(first: Scenario) -> None:
    """The eight visible inputs."""
    menu("model", (*model_ids(), CUSTOM), on_change=custom.token_needed)
    menu("weights")
    menu("gpu", accelerator_ids())
    choice("tp", _degrees(first.tp))
    with _pairs():
        for field in ("isl", "osl", "qps", "sla_tpot_ms"):
            number(field)


def _pairs() -> AbstractContextManager[object]:
    """Two inputs a row, in reading order, also on a phone, where columns would stand below each other."""
    return st.grid(2, min_column_width=PAIR_PIXELS, gap="small")


def _degrees(asked: int) -> list[int]:
    odd: set[int] = st.session_state.setdefault(ODD_DEGREES, set())
    odd |= {asked, int(st.session_state.get("tp") or 1)}
    return sorted({*DEGREES, *odd})


def _sections() -> None:
    """Everything else, in compact expanders."""
    for section in SECTIONS:
        holder = st.expander(say(section.title), type="compact", key=f"_{section.title}", on_change="rerun")
        if holder.open or _touched(section.fields):
            with holder:
                section.draw()
    with st.container(key="also_set"):
        if said := _also_set():
            st.caption(show.plain(say("also_set", what=said)))


def _touched(fields: tuple[str, ...]) -> bool:
    """Whether some input of a section differs from its default; a section that is closed and untouched is not drawn."""
    return any(
        field in st.query_params or (field in st.session_state and st.session_state[field] != untouched(field))
        for field in fields
    )


def _also_set() -> str:
    """What closed sections hide: inputs that differ from the defaults. In a section's title it would take the focus."""
    fields = [field for section in SECTIONS for field in section.fields if field != "lang"]
    held = {field: st.session_state[field] for field in fields if field in st.session_state}
    changed = {field: value for field, value in held.items() if value != untouched(field)}
    return ", ".join(
        f"{label_of(field)} {decimal(value) if isinstance(value, float) else value}" for field, value in changed.items()
    )


def _promise() -> None:
    number("sla_ttft_ms")
    number("sla_pct")


def _precision() -> None:
    choice("kv", describe("kv").options)
    choice("profile", custom.speeds(), on_change=custom.token_needed)


def _layout() -> None:
    with _pairs():
        for field in ("pp", "dp", "ep", "cp", "dcp", "redundant"):
            number(field)
    number("imbalance", placeholder="expected from routing")
    choice("overlap", ("off", "on"))


def _workload() -> None:
    share("prefix")
    number("chunk")
    menu("prefill", on_change=_prefill_changed)
    if st.session_state["prefill"] == "disaggregated" or _touched(POOL_FIELDS):
        _pool()
    number("spec", on_change=_spec_changed)
    if st.session_state["spec"] > 0 or _touched(DRAFT_FIELDS):
        share("accept")
        share("draft")


def _pool() -> None:
    """The prefill pool, while there is one."""
    menu("prefill_gpu", accelerator_ids(), placeholder="–")
    with _pairs():
        for field in ("prefill_tp", "prefill_workers", "decode_workers", "kv_link_eff"):
            number(field, placeholder="–")


def _engine() -> None:
    menu("engine")
    own = engine(st.session_state["engine"], None, accelerator(st.session_state["gpu"]))
    number("at_batch", placeholder="the largest that keeps the SLA")
    number("util", placeholder=f"{own.memory_utilisation:g}, {own.name}'s own")
    number("max_len", placeholder="the model's own")
    with _pairs():
        number("max_seqs", placeholder=whole(own.max_num_seqs))
        number("token_budget", placeholder=whole(own.token_budget))


def _cost() -> None:
    found = default_price(st.session_state["gpu"], kind=st.session_state.get("price_kind") or "on-demand")
    number("price", placeholder="not known" if found is None else f"{significant(found.usd_per_hour)}, median")
    menu("price_kind")
    menu("provider", providers(), placeholder="all")
    share("load")
    with _pairs():
        number("fix_replicas", placeholder="auto")
        number("spare")


def _page() -> None:
    menu("lang", placeholder="the browser's")


def _prefill_changed() -> None:
    """A prefill pool is described only while there is one."""
    if st.session_state["prefill"] != "disaggregated":
        for field in POOL_FIELDS:
            st.session_state[field] = None


def _spec_changed() -> None:
    """Acceptance and draft cost are described only while something is drafted."""
    if not st.session_state["spec"]:
        for field in DRAFT_FIELDS:
            st.session_state[field] = describe(field).default


@dataclass(frozen=True)
class Section:
    """A compact expander: its title's key, the fields in it, and what draws them."""

    title: str
    fields: tuple[str, ...]
    draw: Callable[[], None]


SECTIONS: Final = (
    Section("section_promise", ("sla_ttft_ms", "sla_pct"), _promise),
    Section("section_precision", ("kv", "profile"), _precision),
    Section("section_layout", ("pp", "dp", "ep", "cp", "dcp", "redundant", "imbalance", "overlap"), _layout),
    Section("section_workload", ("prefix", "chunk", "prefill", *POOL_FIELDS, "spec", *DRAFT_FIELDS), _workload),
    Section("section_engine", ("engine", "at_batch", "util", "max_len", "max_seqs", "token_budget"), _engine),
    Section("section_cost", ("price", "price_kind", "provider", "load", "fix_replicas", "spare"), _cost),
    Section("section_page", ("lang",), _page),
)
