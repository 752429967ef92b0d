"""The page's address: read as strictly as the command line reads it, before any widget gets to see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import streamlit as st

from planner.errors import Fault, InputError
from planner.share import IGNORED, from_pairs, page_values, to_link
from planner.specs.fields import shown
from planner.specs.scenario import SCENARIO_FIELDS, Scenario
from planner.specs.spelling import read

Pairs: TypeAlias = Mapping[str, Sequence[str]]

REWRITTEN: Final = "_rewritten"
DRAWN: Final = "_drawn"
"""Path of the page that was drawn last."""


def raw() -> dict[str, list[str]]:
    """Every parameter of the address with every value it has, as the browser sent them."""
    return {name: st.query_params.get_all(name) for name in st.query_params}


def faults_of(pairs: Pairs) -> tuple[Fault, ...]:
    """What is wrong with an address; empty when it can be planned."""
    try:
        from_pairs(pairs)
    except InputError as error:
        return error.faults
    return ()


@dataclass(frozen=True)
class Judged:
    """What an address says: the sound part of it, and every fault of the rest."""

    scenario: Scenario
    faults: tuple[Fault, ...]


def judge(pairs: Pairs) -> Judged:
    """Read an address; whatever is refused is left out and named, then what contradicts the rest, until it is sound."""
    kept = {name: list(values) for name, values in pairs.items()}
    found: list[Fault] = []
    while faults := faults_of(kept):
        found.extend(faults)
        refused = {fault.field for fault in faults}
        left = {name: values for name, values in kept.items() if not _refused(name, values, refused)}
        if left == kept:
            return Judged(Scenario(), tuple(found))
        kept = left
    return Judged(from_pairs(kept), tuple(found))


def _refused(name: str, values: Sequence[str], refused: set[str]) -> bool:
    """Whether a parameter is to go: it is among the refused, or repeated and hence refused under whatever name."""
    return shown(name) in refused or len(values) != 1


def malformed(pairs: Pairs) -> bool:
    """Whether some value is wrong by itself, which no widget can produce (a contradiction of two values it can)."""
    for name, values in pairs.items():
        if name in IGNORED:
            continue
        if name not in SCENARIO_FIELDS or len(values) != 1:
            return True
        try:
            read(name, values[0])
        except InputError:
            return True
    return False


def own_values(page: str) -> dict[str, str]:
    """The texts of a page's own parameters, as they stand in the address; the page judges what they say.

    Raises:
        LinkError: when one of them is repeated.
    """
    return page_values(raw(), page)


def set_own(name: str, value: str | None) -> None:
    """Write or remove a page's own parameter in the address, when it is not there already."""
    if value is not None and st.query_params.get(name) != value:
        st.query_params[name] = value
    elif value is None and name in st.query_params:
        del st.query_params[name]


def rewrite(scenario: Scenario, own: Pairs | None = None) -> None:
    """Replace the address by a scenario's own link; the caller then reruns, so that the widgets read it afresh.

    Args:
        scenario: what the address is to mean.
        own: pairs of the page's own, which stay.
    """
    query = to_link(scenario).removeprefix("?")
    kept = [(name, value) for name, values in (own or {}).items() for value in values]
    st.query_params.from_dict([*parse_qsl(query, keep_blank_values=True), *kept])
    st.session_state[REWRITTEN] = True


def page_address() -> str:
    """Where the page stands, without query: what an exported link begins with."""
    parts = urlsplit(st.context.url or "")
    return f"{parts.scheme}://{parts.netloc}{parts.path or '/'}" if parts.netloc else ""


def start_address() -> str:
    """Where the Plan page stands, without query, seen from a page beside it."""
    return page_address().rpartition("/")[0] + "/" if page_address() else ""


def anchor(scenario: Scenario) -> str:
    """A same-tab address of a scenario, relative to the start page."""
    return "./" + to_link(scenario)


def query(scenario: Scenario) -> str:
    """A scenario's query string as the command line takes it."""
    return to_link(scenario).removeprefix("?")


def refused_rows(faults: Sequence[Fault]) -> dict[str, list[str]]:
    """Faults as columns of a table: what a stranger wrote is shown there as plain text."""
    return {
        "Parameter": [fault.field for fault in faults],
        "Value": [fault.value for fault in faults],
        "Why it is refused": [fault.allowed for fault in faults],
    }


def encoded(pairs: Pairs) -> str:
    """The address's query string, to tell one address from another."""
    return urlencode({name: list(values) for name, values in pairs.items()}, doseq=True)
