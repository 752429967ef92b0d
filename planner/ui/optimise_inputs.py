"""What a reader asks on the Optimise page: controls, the question that they spell, and its place in the address.

The controls are the truth of a session; the address follows them, and is read once, when a session begins on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import streamlit as st

from planner.catalog.accelerators import accelerator_ids
from planner.errors import Fault, InputError
from planner.optimise.question import LIMITED, MOST_GPUS, OBJECTIVES, Limit, Question
from planner.optimise.spelling import (
    LISTS,
    QUESTION_FIELDS,
    measured_ids,
    question_from_texts,
    question_texts,
    read_text,
    spell_value,
)
from planner.share import address as page_address
from planner.share import page_values, to_link
from planner.specs.scenario import Scenario, describe
from planner.specs.spelling import spell
from planner.ui import link
from planner.ui.optimise_words import word

PAGE: Final = "optimise"
READ: Final = "_ask_read"
PREFIX: Final = "_ask_"
OTHER: Final = "_ask_other_limits"
CHUNKS: Final = (0, 512, 1024, 2048, 4096, 8192, 16384)
DRAFTS: Final = tuple(range(9))
AT_MOST: Final = ("tpot_ms", "ttft_ms", "usd_per_hour", "gpus_per_replica")
"""Fields whose upper limit has an input of its own."""

STEPS: Final = {"tpot_ms": 5.0, "ttft_ms": 50.0, "usd_per_hour": 10.0, "gpus_per_replica": 1.0}
INPUT_PIXELS: Final = 215
"""Narrowest input: one column on a phone, where two would cut what is chosen."""

FEW_GPUS: Final = 64
"""Budget up to which a question about one accelerator and one precision is answered without a button."""


def key(name: str) -> str:
    """Key of the input that holds a part of the question."""
    return PREFIX + name


def read_address() -> tuple[Fault, ...]:
    """Put the address's question into the inputs, once a session; what is refused is left out and handed back."""
    if st.session_state.get(READ):
        return ()
    faults, sound = judged(page_address(link.raw(), PAGE).own)
    for name, values in sound.items():
        _put(name, read_text(name, values[0]))
    if not faults:
        st.session_state[READ] = True
    return faults


def judged(own: link.Pairs) -> tuple[tuple[Fault, ...], link.Pairs]:
    """Every fault of an address's question, and the sound part of it."""
    found = {name: _faults(name, values) for name, values in own.items()}
    sound = {name: values for name, values in own.items() if not found[name]}
    return tuple(fault for each in found.values() for fault in each), sound


def _faults(name: str, values: Sequence[str]) -> tuple[Fault, ...]:
    """What is wrong with one part of an address's question."""
    try:
        read_text(name, page_values({name: values}, PAGE)[name])
    except InputError as error:
        return error.faults
    return ()


def accept() -> None:
    """Go on with the sound part of an address."""
    st.session_state[READ] = True


def _put(name: str, value: Any) -> None:
    """Put one part of a question into its input."""
    if name != "limits":
        st.session_state[key(name)] = list(value) if isinstance(value, tuple) else value
        return
    own = {each.field: each.value for each in value if each.at_most and each.field in AT_MOST}
    for field, most in own.items():
        st.session_state[key(f"limit_{field}")] = most
    others = tuple(each for each in value if not (each.at_most and each.field in own))
    st.session_state[OTHER] = spell_value(others)


def draw(scenario: Scenario) -> None:
    """All inputs: six that decide most, the rest in an expander."""
    with st.grid(3, min_column_width=INPUT_PIXELS, gap="small", key="ask"):
        _several("accelerators", accelerator_ids(), scenario)
        _several("precisions", describe("weights").options, scenario)
        _several("caches", describe("kv").options, scenario)
        _several("modes", describe("prefill").options, scenario)
        st.number_input(
            word("max_gpus"), min_value=1, max_value=MOST_GPUS, step=8, help=word("max_gpus_help"),
            **_start("max_gpus", Question.model_fields["max_gpus"].default),
        )  # fmt: skip
        st.selectbox(
            word("objective"),
            OBJECTIVES,
            format_func=word,
            **_start("objective", Question.model_fields["objective"].default),
        )
    with st.expander(word("more"), type="compact", key="_ask_more"):
        _more(scenario)


def _start(name: str, default: Any) -> dict[str, Any]:
    """Key and first value of an input; state that is kept while another page is shown."""
    st.session_state.setdefault(key(name), default)
    return {"key": key(name), "persist_state": "session"}


def _several(name: str, options: Sequence[Any], scenario: Scenario) -> None:
    """Any number of values; none means the scenario's own."""
    own = getattr(scenario, LISTS[name])
    placeholder = word("own", value=spell(own)) if own is not None else word("none")
    st.multiselect(
        word(name),
        options,
        placeholder=placeholder,
        help=word(f"{name}_help"),
        select_all=False,
        wrap=True,
        **_start(name, []),
    )


def _more(scenario: Scenario) -> None:
    """Inputs that few questions need."""
    with st.grid(3, min_column_width=INPUT_PIXELS, gap="small", key="ask_more"):
        for field in AT_MOST:
            st.number_input(
                word(f"limit_{field}"), min_value=0.0, step=STEPS[field], format="%g", placeholder=word("none"),
                help=word("limit_help"), **_start(f"limit_{field}", None),
            )  # fmt: skip
        st.text_input(
            word("other_limits"), placeholder=word("none"), max_chars=400,
            help=word("other_limits_help", fields=", ".join(LIMITED)), **_start("other_limits", ""),
        )  # fmt: skip
        _several("prefill_accelerators", accelerator_ids(), scenario)
        for name, menu in (("chunks", CHUNKS), ("drafts", DRAFTS)):
            chosen = st.session_state.get(key(name), [])
            _several(name, sorted({*menu, *chosen}), scenario)


def choose_measured() -> None:
    """Ask for every accelerator with a price and measured kernels."""
    st.session_state[key("accelerators")] = list(measured_ids())


def texts() -> dict[str, str]:
    """What the inputs say, as it is written: only what differs from the defaults."""
    said = {name: spell_value(tuple(st.session_state[key(name)])) for name in LISTS if st.session_state[key(name)]}
    for name in ("max_gpus", "objective"):
        if (value := st.session_state[key(name)]) != Question.model_fields[name].default:
            said[name] = spell_value(value)
    if limits := ",".join(_limits()):
        said["limits"] = limits
    return {name: said[name] for name in QUESTION_FIELDS if name in said}


def _limits() -> list[str]:
    """Limits as they are written: those with an input of their own, then what was written."""
    most = {field: st.session_state[key(f"limit_{field}")] for field in AT_MOST}
    own = [spell_value(Limit(field, True, value)) for field, value in most.items() if value is not None]
    return [*own, *filter(None, ["".join(st.session_state[OTHER].split())])]


def question(scenario: Scenario) -> Question:
    """What the inputs and the sidebar ask; language and catalogue version do not belong to it.

    Raises:
        InputError: when inputs are refused or contradict each other.
    """
    return question_from_texts(scenario.with_(lang=None, c=None), texts())


def write_address() -> None:
    """Let the address say what the inputs say."""
    said = texts()
    for name in QUESTION_FIELDS:
        link.set_own(name, said.get(name))


def small(asked: Question) -> bool:
    """Whether a question is answered so soon that nobody need press a button."""
    many = any(len(getattr(asked, name)) > 1 for name in LISTS)
    split = "disaggregated" in (asked.modes or (asked.scenario.prefill,))
    return asked.max_gpus <= FEW_GPUS and not many and not split


def address(asked: Question) -> str:
    """A same-tab address of a question, relative to the start page."""
    own = "&".join(f"{name}={quote(text, safe=',')}" for name, text in question_texts(asked).items())
    parts = [part for part in (to_link(asked.scenario).removeprefix("?"), own) if part]
    return f"./{PAGE}?{'&'.join(parts)}"
