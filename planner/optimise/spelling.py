"""A question as text and back: one spelling for the Optimise page's address and the command line's options.

Lists are written with commas and no spaces (`fp8,bf16`), limits as `tpot_ms<=30,usd_per_hour<=100`; numbers are the plain
decimals of a scenario's link. A list that is left out means the scenario's own value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from planner.catalog.accelerators import accelerator_ids
from planner.catalog.ids import unknown_id
from planner.catalog.prices import default_price
from planner.catalog.profile_records import has_kernels
from planner.errors import Fault, InputError
from planner.optimise.question import LIMITED, MOST_GPUS, OBJECTIVES, Limit, Question
from planner.share import address, from_pairs, page_values, query_pairs, scenario_from_text
from planner.specs.fields import near, shown
from planner.specs.scenario import Scenario
from planner.specs.spelling import Value, decimal, read

LISTS: Final = {
    "accelerators": "gpu",
    "precisions": "weights",
    "caches": "kv",
    "modes": "prefill",
    "prefill_accelerators": "prefill_gpu",
    "chunks": "chunk",
    "drafts": "spec",
}
"""Lists of a question, each with the scenario field whose values it holds."""

IDS: Final = ("gpu", "prefill_gpu")
"""Of these, the ones that name accelerators."""

QUESTION_FIELDS: Final = (*LISTS, "max_gpus", "objective", "limits")
"""Names in the order in which links and options write them."""


@cache
def measured_ids() -> tuple[str, ...]:
    """Accelerators with an on-demand price in dollars and measured kernels of their own."""
    return tuple(each for each in accelerator_ids() if has_kernels(each) and default_price(each) is not None)


NAMED: Final[Mapping[str, Callable[[], tuple[str, ...]]]] = {"all": accelerator_ids, "measured": measured_ids}
"""Words that stand for a list of accelerators: all of the catalogue; those with a price and measured kernels."""

MOST_VALUES: Final = 64
"""Most values of a list of ids or words."""

MOST_NUMBERS: Final = 8
"""Most values of a list of numbers; each multiplies the space."""

_WHOLE: Final = re.compile(r"[1-9][0-9]{0,19}", re.ASCII)
_LIMIT: Final = re.compile(r"([a-z_]{1,40})(<=|>=)((?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,400})?)", re.ASCII)


def question_from_texts(scenario: Scenario, texts: Mapping[str, str]) -> Question:
    """The question that texts ask about a scenario.

    Args:
        scenario: what does not vary.
        texts: field of a question -> what is written; absent = the default.

    Raises:
        InputError: with every fault of every text; contradictions are looked for once each text is sound by itself.
    """
    values: dict[str, Any] = {"scenario": scenario}
    faults: list[Fault] = []
    for name, text in texts.items():
        try:
            values[name] = read_text(name, text)
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(tuple(faults))
    return Question.model_validate(values)


def asked_of(text: str) -> tuple[Scenario, dict[str, str]]:
    """The scenario and the question's texts of a command-line argument: a preset's id, a link of any page, a query string.

    Raises:
        InputError: when it is none of these, or a link with refused values.
    """
    if not ("=" in text or "?" in text or "://" in text):
        return scenario_from_text(text), {}
    pairs = query_pairs(text)
    return from_pairs(address(pairs, "optimise").scenario), page_values(pairs, "optimise")


def question_texts(question: Question) -> dict[str, str]:
    """What differs from the defaults, in the order of `QUESTION_FIELDS`; `question_from_texts` reads it back the same."""
    differing = (name for name in QUESTION_FIELDS if getattr(question, name) != Question.model_fields[name].default)
    return {name: spell_value(getattr(question, name)) for name in differing}


def spell_value(value: object) -> str:
    """A value of a question as it is written."""
    match value:
        case tuple():
            return ",".join(spell_value(item) for item in value)
        case Limit():
            return f"{value.field}{'<=' if value.at_most else '>='}{decimal(float(value.value))}"
        case _:
            return str(value)


def read_text(name: str, text: str) -> object:
    """The value of one field of a question.

    Raises:
        InputError: when there is no such field, or the text is empty, malformed, off the menu, unknown or out of range.
    """
    if name in LISTS:
        return _listed(name, text)
    match name:
        case "max_gpus":
            return _max_gpus(text)
        case "objective":
            return _objective(text)
        case "limits":
            return _limits(text)
    raise InputError((Fault(shown(name), shown(text), f"not part of a question{near(name, QUESTION_FIELDS)}"),))


def _listed(name: str, text: str) -> tuple[Value, ...]:
    """A list of values of a scenario field."""
    field = LISTS[name]
    if field in IDS and text in NAMED:
        return NAMED[text]()
    parts = text.split(",")
    most = MOST_NUMBERS if field in ("chunk", "spec") else MOST_VALUES
    if len(parts) > most:
        raise InputError((Fault(name, f"{len(parts):,} values", f"must have at most {most} values"),))
    if faults := (*_unsound(name, field, parts), *_repeated(name, parts)):
        raise InputError(faults)
    return tuple(read(field, part) for part in parts)


def _unsound(name: str, field: str, parts: list[str]) -> Iterator[Fault]:
    """What is wrong with the items of a list, each by itself."""
    for part in parts:
        try:
            fault = unknown_id(field, read(field, part))
        except InputError as error:
            fault = error.faults[0]
        if fault is not None:
            hint = "" if "(did you" in fault.allowed or field not in IDS else near(part.strip(), accelerator_ids())
            yield Fault(name, shown(part), _of_a_list(fault.allowed) + hint)


def _of_a_list(allowed: str) -> str:
    """What a field allows, said of one item of a list."""
    return allowed.replace(", or left out", "") if allowed.startswith("must") else allowed


def _repeated(name: str, parts: list[str]) -> Iterator[Fault]:
    """Items that stand more than once."""
    for part in dict.fromkeys(parts):
        if (count := parts.count(part)) > 1:
            yield Fault(name, shown(part), f"stands {count} times: must stand once")


def _max_gpus(text: str) -> int:
    """A budget of devices."""
    if _WHOLE.fullmatch(text) and int(text) <= MOST_GPUS:
        return int(text)
    raise InputError((Fault("max_gpus", shown(text), f"must be a whole number from 1 to {MOST_GPUS:,} (GPUs)"),))


def _objective(text: str) -> str:
    """The plan field that is made best."""
    if text in OBJECTIVES:
        return text
    raise InputError(
        (Fault("objective", shown(text), f"must be one of {', '.join(OBJECTIVES)}{near(text, OBJECTIVES)}"),)
    )


def _limits(text: str) -> tuple[Limit, ...]:
    """What must hold beside the SLA."""
    parts, most = text.split(","), 2 * len(LIMITED)
    if len(parts) > most:
        raise InputError((Fault("limits", f"{len(parts):,} limits", f"must have at most {most} limits"),))
    matches = [_LIMIT.fullmatch(part) for part in parts]
    sides = [f"{found[1]}{found[2]}" for found in matches if found]
    faults = [fault for part in parts if (fault := _wrong_limit(part))]
    if faults := [*faults, *_repeated("limits", sides)]:
        raise InputError(tuple(faults))
    return tuple(Limit(found[1], found[2] == "<=", float(found[3])) for found in matches if found)


def _wrong_limit(part: str) -> Fault | None:
    """What is wrong with one limit."""
    found = _LIMIT.fullmatch(part)
    if found is None:
        return Fault("limits", shown(part), "must be a plan field, <= or >=, and a plain number, as in tpot_ms<=30")
    if found[1] not in LIMITED:
        return Fault("limits", shown(part), f"must limit one of {', '.join(LIMITED)}{near(found[1], LIMITED)}")
    return None
