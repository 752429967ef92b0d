"""A fleet's question as plain values, as JSON and as the token of a link, and back, as strictly as every other link."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel

from planner.catalog.packed import DECODE_LIMIT, packed, refused, unpacked
from planner.errors import Fault, InputError
from planner.export import Json
from planner.fleet.question import ALLOWED, MOST_ROWS, FleetQuestion, PlaceLimit, Stock, TrafficClass
from planner.share import checked
from planner.specs.fields import shown
from planner.specs.scenario import SCENARIO_FIELDS, Scenario, describe, refusal
from planner.specs.spelling import Value, check

PARAMETER: Final = "fleet"
"""Name of the parameter that holds a fleet in a link."""

Row: TypeAlias = Mapping[str, object]
Model = TypeVar("Model", bound=BaseModel)


def spelled(question: FleetQuestion) -> dict[str, Json]:
    """A question as JSON has it; values that are the defaults are left out."""
    classes = [{**_differing(each), "scenario": _differing(each.scenario)} for each in question.classes]
    rows = {name: [_differing(each) for each in getattr(question, name)] for name in ("stock", "limits")}
    rest = _differing(question)
    return {**rest, "classes": classes, **{name: each for name, each in rows.items() if each}}


def _differing(model: BaseModel) -> dict[str, Any]:
    """Fields of a model that differ from their defaults, as JSON has them."""
    plain = model.model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in plain.items() if name not in ("classes", "stock", "limits")}


def to_token(question: FleetQuestion) -> str:
    """The token of a question.

    Raises:
        InputError: when it is longer than a token may hold.
    """
    text = json.dumps(spelled(question), ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > DECODE_LIMIT:
        raise refused(text, PARAMETER, f"the fleet must be at most {DECODE_LIMIT:,} bytes")
    return packed(text)


def from_token(token: str) -> FleetQuestion:
    """The question that a token holds.

    Raises:
        InputError: with one fault per refused value, or that of a damaged token.
    """
    return from_text(unpacked(token, PARAMETER, "fleet"))


def from_text(text: str) -> FleetQuestion:
    """The question of a JSON text.

    Raises:
        InputError: with one fault per refused value.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InputError((Fault(PARAMETER, shown(text), "must hold a JSON object, each key once"),)) from None
    if not isinstance(found, dict):
        raise InputError((Fault(PARAMETER, shown(text), "must hold a JSON object"),))
    lists = {name: _rows(found.pop(name, []), name) for name in ("classes", "stock", "limits")}
    return assembled(lists["classes"], lists["stock"], lists["limits"], found)


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _rows(value: object, name: str) -> list[Row]:
    """A list of objects."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value) or len(value) > MOST_ROWS:
        raise InputError((Fault(name, shown(value), f"{ALLOWED[name]}, each a JSON object"),))
    return value


def assembled(classes: Sequence[Row], stock: Sequence[Row], limits: Sequence[Row], rest: Row) -> FleetQuestion:
    """A question from rows of plain values; a scenario's values stand under `scenario`.

    Raises:
        InputError: with every fault of every row, each naming its row, or those of the whole.
    """
    faults: list[Fault] = []
    named = (("class", classes, _class), ("stock", stock, _plain(Stock)), ("limit", limits, _plain(PlaceLimit)))
    made: list[list[Any]] = []
    for noun, rows, make in named:
        made.append([])
        for at, row in enumerate(rows, start=1):
            try:
                made[-1].append(make(row))
            except InputError as error:
                faults.extend(Fault(f"{noun} {at}, {each.field}", each.value, each.allowed) for each in error.faults)
    if faults:
        raise InputError(tuple(faults))
    whole = {**rest, "classes": tuple(made[0]), "stock": tuple(made[1]), "limits": tuple(made[2])}
    return FleetQuestion.model_validate(whole)


def _plain(model: type[Model]) -> Any:
    """What makes a row of a model."""
    return lambda row: model.model_validate(dict(row))


def _class(row: Row) -> TrafficClass:
    """A class of traffic; faults of its scenario and of its own are told together."""
    values, faults = row.get("scenario", {}), list[Fault]()
    if not isinstance(values, Mapping):
        raise InputError((Fault("scenario", shown(values), "must be a JSON object of scenario fields"),))
    try:
        scenario = _scenario(values)
    except InputError as error:
        scenario, faults = Scenario(qps=1.0), list(error.faults)
    try:
        own = {**row, "scenario": scenario}
        precisions = row.get("precisions", ())
        made = TrafficClass.model_validate(
            {**own, "precisions": tuple(precisions) if isinstance(precisions, list) else precisions}
        )
    except InputError as error:
        faults.extend(error.faults)
    if faults:
        raise InputError(tuple(faults))
    return made


def _scenario(values: Mapping[str, object]) -> Scenario:
    """A scenario from JSON values, each as strict as in a link."""
    return checked(dict(_sound(values)))


def _sound(values: Mapping[str, object]) -> Iterator[tuple[str, Value]]:
    """Values that their fields allow; what is `on` or `off` in words is not true or false here either."""
    faults: list[Fault] = []
    for field, value in values.items():
        try:
            if field not in SCENARIO_FIELDS or (isinstance(value, bool) and describe(field).kind == "switch"):
                raise InputError((refusal(field, value),))
            yield field, check(field, value, value)
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(tuple(faults))
