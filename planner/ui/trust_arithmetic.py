"""The arithmetic of the session's plan: every formula that it used, as code, with its numbers, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import streamlit as st

from planner.arithmetic import GROUPS, Part, arithmetic, group_of
from planner.explain import worked_text
from planner.formula import Formula, Worked
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import show
from planner.ui.trust_words import word

LONGEST_SEARCH: Final = 60


def section(scenario: Scenario) -> None:
    """Choose a kind of formulas, find among them, read them."""
    plan = plan_of(scenario)
    parts = arithmetic(scenario)
    st.markdown(show.plain(_summary(parts)))
    group, wanted = _controls()
    chosen = [(part, _matching(part, group, wanted)) for part in parts]
    for part, worked in chosen:
        if worked:
            _part(part, worked)
    if plan.ttft_unloaded_ms is None and group != "memory":
        st.info(show.plain(word("untimed", reason=plan.reason)), icon=":material/info:")
    elif not any(worked for _, worked in chosen):
        st.info(word("nothing_found") if wanted else word("not_used"), icon=":material/info:")


def _controls() -> tuple[str, str]:
    """The kind of formulas, and what to look for in them."""
    group = st.segmented_control(
        word("group"), GROUPS, format_func=word, default=GROUPS[0], required=True, wrap=True, key="_trust_group",
        persist_state="session",
    )  # fmt: skip
    wanted = st.text_input(
        word("find"), placeholder=word("find_hint"), max_chars=LONGEST_SEARCH, key="_trust_find", type="search",
        persist_state="session",
    )  # fmt: skip
    return str(group or GROUPS[0]), (wanted or "").strip().casefold()


def _summary(parts: Iterable[Part]) -> str:
    """How much arithmetic there is."""
    worked = [each for part in parts for each in part.worked]
    formulas = len({each.formula.name for each in worked})
    lines = sum(len(each.lines) for each in worked)
    return word("shown", formulas=f"{formulas} formulas", lines=f"{lines:,} lines")


def _matching(part: Part, group: str, wanted: str) -> tuple[Worked, ...]:
    """Formulas of a part that are of a kind and name what is looked for."""
    return tuple(each for each in part.worked if group_of(each.formula) == group and _names(each, wanted))


def _names(worked: Worked, wanted: str) -> bool:
    """Whether a formula, what it is about or one of its lines contains the text looked for."""
    said = (worked.formula.name, worked.formula.sentence, *worked.subjects, *(line.name for line in worked.lines))
    return any(wanted in text.casefold() for text in said)


def _part(part: Part, worked: tuple[Worked, ...]) -> None:
    """One part of the plan under its heading."""
    st.header(show.plain(part.title), anchor=False)
    if part.note:
        st.caption(show.plain(part.note))
    for entry in dict.fromkeys(each.formula for each in worked):
        _formula(entry, [each for each in worked if each.formula == entry])


def _formula(entry: Formula, worked: list[Worked]) -> None:
    """One formula: its name, what it says, who says so, and its lines."""
    st.subheader(show.plain(f"{entry.name} [{entry.unit}]"), anchor=False)
    said = f"{show.plain(word('source'))}: {show.plain(entry.source)}"
    st.markdown(f"{show.plain(entry.sentence)}  \n:gray[{said}]")
    st.code("\n\n".join(worked_text(each) for each in worked), language=None, wrap_lines=True)
