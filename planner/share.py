"""Scenario ↔ link. The reader refuses what it does not understand; the writer has one spelling and one order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote

from planner.catalog.custom import custom_fault
from planner.catalog.ids import unknown_id
from planner.catalog.scenarios import load_preset, preset_ids
from planner.catalog.version import catalogue_version
from planner.errors import Fault, InputError, LinkError
from planner.setting import cost_of
from planner.specs.fields import near, shown
from planner.specs.scenario import LINK_VERSION, SCENARIO_FIELDS, Scenario
from planner.specs.spelling import Value, read, spell

MAX_QUERY: Final = 131_072 + 4_096
"""Longest link that is read [characters]: the longest custom model's token and all other fields."""

MAX_PARAMETERS: Final = 1_000

IGNORED: Final = frozenset({"embed", "embed_options"})
"""Streamlit's own parameters."""

PRESET: Final = "preset"
"""Input only: expanded into explicit parameters, never written."""

PAGE_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "optimise": (
        "accelerators", "precisions", "caches", "modes", "chunks", "drafts", "prefill_accelerators", "max_gpus",
        "objective", "limits",
    ),
    "compare": ("plans", "against"),
    "fleet": ("fleet",),
    "traffic": (
        "arrival", "rate", "cv", "swing", "period_s", "clients", "isl_cv", "osl_cv", "turns", "think_s", "requests", "seed",
        "policy", "preempt", "router", "in_flight", "over", "fail_at_s", "repair_s", "failure_hours", "availability",
    ),
}  # fmt: skip
"""Parameters of a page's address that are not scenario fields, by the page's path; every other page refuses them."""


def to_link(scenario: Scenario, base: str = "") -> str:
    """A link to a scenario: `base`, `?`, and the values that differ from the defaults, in the contract's order."""
    differing = (field for field, value in scenario if value != Scenario.model_fields[field].default)
    pairs = (f"{field}={quote(spell(getattr(scenario, field)), safe='')}" for field in differing)
    return f"{base}?{'&'.join(pairs)}"


def pinned(scenario: Scenario) -> Scenario:
    """The scenario as an export's link carries it: with the price that was used and today's catalogue version.

    A price that the catalogue does not know stays empty.
    """
    return scenario.with_(price=cost_of(scenario).price, c=catalogue_version())


def from_link(text: str) -> Scenario:
    """The scenario of a full URL, of `?a=b` or of a bare query string.

    Raises:
        LinkError: with one fault per refused parameter.
    """
    return from_pairs(query_pairs(text))


def scenario_from_text(text: str) -> Scenario:
    """The scenario that a command-line argument means: a preset's id, a link, or its query string.

    Raises:
        InputError: when it is none of these, or a link with refused values.
    """
    if "=" in text or "?" in text or "://" in text:
        return from_link(text)
    if text in preset_ids():
        return load_preset(text)
    allowed = f"must be a preset's id, a link or its query string{near(text, preset_ids())}"
    raise InputError((Fault("scenario", shown(text), allowed),))


def query_pairs(text: str) -> dict[str, list[str]]:
    """Every occurrence of every parameter, in the order of the link.

    Raises:
        LinkError: when the text is too long, has too many parameters or is not UTF-8.
    """
    query = _query(text.strip())
    try:
        found = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        allowed = "must be percent-encoded UTF-8" if isinstance(error, UnicodeError) else _TOO_MANY
        raise LinkError((Fault("link", shown(query), allowed),)) from None
    pairs: dict[str, list[str]] = {}
    for name, value in found:
        pairs.setdefault(name, []).append(value)
    return pairs


_TOO_MANY: Final = f"must have at most {MAX_PARAMETERS:,} parameters"


def _query(text: str) -> str:
    if len(text) > MAX_QUERY:
        raise LinkError(
            (Fault("link", shown(text), f"must be at most {MAX_QUERY:,} characters (it has {len(text):,})"),)
        )
    before, mark, after = text.partition("#")[0].partition("?")
    if mark:
        return after
    return "" if "://" in before else before


OF_PAGES: Final = frozenset(name for names in PAGE_PARAMETERS.values() for name in names)
"""Parameters of all pages."""


@dataclass(frozen=True)
class Address:
    """What a page's address says.

    Attributes:
        scenario: pairs that the scenario is read from, unknown names among them.
        own: pairs that the page itself reads.
    """

    scenario: dict[str, list[str]]
    own: dict[str, list[str]]


def address(pairs: Mapping[str, Sequence[str]], page: str) -> Address:
    """Raw query pairs of a page's address, what belongs to the page apart from what belongs to the scenario."""
    own = PAGE_PARAMETERS.get(page, ())
    found = {name: list(values) for name, values in pairs.items()}
    return Address(
        {name: values for name, values in found.items() if name not in own},
        {name: values for name, values in found.items() if name in own},
    )


def page_values(pairs: Mapping[str, Sequence[str]], page: str) -> dict[str, str]:
    """The texts of a page's own parameters; the page judges what they say (a list in several values: `address`).

    Raises:
        LinkError: when one of them is given more than once.
    """
    own = address(pairs, page).own
    if faults := tuple(_repeated(own)):
        raise LinkError(faults)
    return {name: values[0] for name, values in own.items()}


def from_pairs(pairs: Mapping[str, Sequence[str]]) -> Scenario:
    """The scenario of raw query pairs, each name with every value it was given (`st.query_params.get_all`).

    Raises:
        LinkError: with one fault per refused parameter.
    """
    asked = {name: values for name, values in pairs.items() if name not in IGNORED}
    try:
        return _scenario(asked)
    except InputError as error:
        raise LinkError(error.faults) from None


def _scenario(asked: Mapping[str, Sequence[str]]) -> Scenario:
    newer = tuple(_newer(asked))
    if newer:
        raise InputError(newer)
    faults = [*_repeated(asked)]
    texts = {name: values[0] for name, values in asked.items() if len(values) == 1}
    start = _start(texts, faults)
    return parse_scenario(texts, start, faults)


def _newer(asked: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """A link of a later version: what else it says cannot be judged here."""
    for text in asked.get("v", ()):
        if text.isascii() and text.isdigit() and text.lstrip("0") and len(text) < 10 and int(text) > LINK_VERSION:
            yield Fault("v", text, f"must be {LINK_VERSION}: the link was made by a newer planner")


def _repeated(asked: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    for name, values in asked.items():
        if len(values) != 1:
            given = f"given {len(values)} times: must be given once, or left out"
            yield Fault(shown(name), shown(", ".join(values)), given)


def _start(texts: dict[str, str], faults: list[Fault]) -> Scenario:
    """The scenario that explicit parameters change: the preset's, or the defaults."""
    if PRESET not in texts:
        return Scenario()
    try:
        return load_preset(texts.pop(PRESET))
    except InputError as error:
        faults.extend(error.faults)
        return Scenario()


def parse_scenario(texts: Mapping[str, str], start: Scenario | None = None, faults: Sequence[Fault] = ()) -> Scenario:
    """A scenario from written values, ids checked against the catalogue.

    Args:
        texts: field -> written value; a field that is absent keeps the value of `start`.
        start: what the values change; the defaults when None.
        faults: faults found before, to be reported together with these.

    Raises:
        InputError: with every fault; contradictions are looked for only when each value is sound by itself.
    """
    found = list(faults)
    values: dict[str, Value] = {}
    for name, text in texts.items():
        try:
            values[name] = read(name, text)
        except InputError as error:
            found.extend(error.faults)
    return checked(values, start, found)


def checked(values: Mapping[str, Value], start: Scenario | None = None, faults: Sequence[Fault] = ()) -> Scenario:
    """A scenario from values that are each allowed, ids and a custom model's token checked.

    Raises:
        InputError: with every fault.
    """
    unknown = [fault for field, value in values.items() if (fault := unknown_id(field, value))]
    if found := (*faults, *unknown):
        raise InputError(tuple(found))
    scenario = (start or Scenario()).with_(**values)
    if fault := custom_fault(scenario):
        raise InputError((fault,))
    return scenario


def written(scenario: Scenario) -> tuple[tuple[str, str], ...]:
    """Every field with its spelling, in the contract's order; empty for None."""
    return tuple((field, spell(getattr(scenario, field))) for field in SCENARIO_FIELDS)
