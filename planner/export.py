"""Plans as CSV and JSON, and both back into scenarios, as strictly as links."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final, TypeAlias

from planner.errors import Fault, InputError
from planner.plan import PLAN_FIELDS, Plan
from planner.queue_answer import queue_figures
from planner.share import checked, parse_scenario, pinned, to_link, written
from planner.specs.fields import near, shown
from planner.specs.scenario import SCENARIO_FIELDS, Scenario, describe, refusal
from planner.specs.spelling import Value, check, decimal

BOM: Final = "\ufeff"

MAX_UPLOAD: Final = 1_000_000
"""Largest file that is read back [bytes]."""

COLUMNS: Final = (*SCENARIO_FIELDS, *PLAN_FIELDS, "notes", "link")
"""Header of the CSV."""

DOCUMENT_KEYS: Final = ("scenario", *PLAN_FIELDS, "notes", "curve", "ledger", "assumptions", "sources", "link")
"""Keys of the JSON document of one plan."""

_ACTIVE: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters that a spreadsheet would run as a formula."""

Json: TypeAlias = "str | int | float | bool | Mapping[str, Json] | Sequence[Json] | None"


MOST_PLANS: Final = 1_000
"""Most plans that a file may hold."""

LABELS: Final = ("traffic", "stock")
"""Columns that stand in front of a fleet's plans, to say what each is for; they are not read back."""

MOST_COLUMNS: Final = len(COLUMNS) + len(LABELS)

MOST_FAULTS: Final = 50
"""Most faults of a file that are told; a file with more is of another kind."""


def to_csv(plans: Sequence[Plan], base: str = "", labels: Sequence[tuple[str, str]] = ()) -> str:
    """One row per plan: RFC 4180 with a byte order mark; encode as UTF-8.

    Args:
        plans: the plans, in the order of the rows.
        base: what stands before `?` in the `link` column.
        labels: of a fleet: class of traffic and stock of each plan.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow((*LABELS, *COLUMNS) if labels else COLUMNS)
    front = [tuple(inert(text) for text in each) for each in labels] or [()] * len(plans)
    writer.writerows((*said, *_row(plan, base)) for said, plan in zip(front, plans, strict=True))
    return BOM + out.getvalue()


def to_json(plan: Plan, base: str = "") -> str:
    """One plan as a JSON object; what is not a number becomes null."""
    return json.dumps(document(plan, base), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(plan: Plan, base: str = "") -> Mapping[str, Json]:
    """One plan as the JSON object that `to_json` writes."""
    return {
        "scenario": plan.scenario.model_dump(mode="json"),
        **{field: _json(getattr(plan, field)) for field in PLAN_FIELDS},
        "queue": _queue(plan),
        "notes": [_json(asdict(note)) for note in plan.notes],
        "curve": [_json(asdict(point)) for point in plan.curve],
        "ledger": [_json(asdict(row)) for row in plan.ledger],
        "assumptions": list(plan.assumptions),
        "sources": list(plan.sources),
        "link": to_link(pinned(plan.scenario), base),
    }


def _queue(plan: Plan) -> Json:
    """What queue theory says of a plan; null where it has no speed."""
    found = queue_figures(plan.scenario, plan)
    return None if found is None else {name: _json(value) for name, value in found.items()}


def from_csv(data: str | bytes) -> tuple[Scenario, ...]:
    """The scenarios of a CSV as `to_csv` writes it, a row each.

    Plan columns are ignored, absent scenario columns keep their defaults, a field that may be left out may be empty.

    Raises:
        InputError: with one fault per refused column or cell.
    """
    rows = _rows(_text(data))
    if not rows:
        raise InputError((Fault("file", "empty", "must begin with a row of column names"),))
    _, header = rows[0]
    if len(rows) > MOST_PLANS + 1:
        allowed = f"must hold at most {MOST_PLANS:,} plans, a row each, below the column names"
        raise InputError((Fault("file", f"{len(rows) - 1:,} rows", allowed),))
    if len(header) > MOST_COLUMNS:
        allowed = f"must have at most the {MOST_COLUMNS} columns that Headroom writes"
        raise InputError((Fault("file", f"{len(header):,} columns", allowed),))
    if faults := (
        *_unknown(header, (*COLUMNS, *LABELS), "column"),
        *_repeated(header),
        *_ragged(rows[1:], len(header)),
    ):
        raise InputError(faults[:MOST_FAULTS])
    return _all(tuple((line, dict(zip(header, cells, strict=True))) for line, cells in rows[1:]))


def from_json(text: str | bytes) -> Scenario:
    """The scenario of a JSON document as `to_json` writes it.

    Raises:
        InputError: with one fault per refused key or value.
    """
    found = _object(_text(text))
    asked = found.get("scenario")
    if not isinstance(asked, dict):
        raise InputError((Fault("scenario", shown(asked), "must be a JSON object of scenario fields"),))
    faults = [*_unknown(tuple(found), DOCUMENT_KEYS, "key")]
    values: dict[str, Value] = {}
    for field, value in asked.items():
        try:
            values[field] = _sound(field, value)
        except InputError as error:
            faults.extend(error.faults)
    return checked(values, faults=faults)


def _sound(field: str, value: object) -> Value:
    """A JSON value if the field allows it; what is `on` or `off` in words is not true or false here either."""
    if field not in SCENARIO_FIELDS or (isinstance(value, bool) and describe(field).kind == "switch"):
        raise InputError((refusal(field, value),))
    return check(field, value, value)


def _row(plan: Plan, base: str) -> tuple[str, ...]:
    scenario = (inert(text) if describe(field).kind == "text" else text for field, text in written(plan.scenario))
    numbers = (csv_cell(getattr(plan, field)) for field in PLAN_FIELDS)
    notes = "; ".join(f"{note.code}: {note.text}" for note in plan.notes)
    return (*scenario, *numbers, inert(notes), inert(to_link(pinned(plan.scenario), base)))


def csv_cell(value: str | float | bool | None) -> str:
    """A value as a cell: plain decimals, `true` and `false`, empty for what is no number; text that no spreadsheet runs."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return inert(value)
        case None:
            return ""
        case _:
            number = float(value)
            return decimal(number) if math.isfinite(number) else ""


def inert(text: str) -> str:
    """Text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_ACTIVE) else text


def _active(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_ACTIVE) else cell


def _json(value: object) -> Json:
    """A value with every number that JSON cannot hold replaced by null."""
    match value:
        case dict():
            return {str(key): _json(item) for key, item in value.items()}
        case str() | bool() | None:
            return value
        case int():
            return int(value)
        case _:
            number = float(value)  # type: ignore[arg-type]
            return number if math.isfinite(number) else None


def _text(data: str | bytes) -> str:
    """An upload as text, its size and encoding checked, the byte order mark removed."""
    size = len(data)
    if size > MAX_UPLOAD:
        raise InputError((Fault("file", f"{size:,} bytes", f"must be at most {MAX_UPLOAD:,} bytes"),))
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise InputError((Fault("file", "not UTF-8", "must be a text file in UTF-8"),)) from None
    return text.removeprefix(BOM)


def _rows(text: str) -> tuple[tuple[int, list[str]], ...]:
    """The file's rows, each with the line it ends at; blank lines left out."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return tuple((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        raise InputError((Fault("file", f"line {reader.line_num}", f"must be a CSV file: {error}"),)) from None


def _all(rows: Sequence[tuple[int, Mapping[str, str]]]) -> tuple[Scenario, ...]:
    """Every row's scenario, or all faults of all rows."""
    faults: list[Fault] = []
    scenarios: list[Scenario] = []
    for line, cells in rows:
        if len(faults) >= MOST_FAULTS:
            break
        try:
            scenarios.append(parse_scenario(dict(_given(cells))))
        except InputError as error:
            faults.extend(Fault(f"line {line}, {fault.field}", fault.value, fault.allowed) for fault in error.faults)
    if faults:
        raise InputError(tuple(faults[:MOST_FAULTS]))
    return tuple(scenarios)


def _given(cells: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Scenario cells that say something: an empty one is left out where the field may be left out."""
    for field, cell in cells.items():
        if field in SCENARIO_FIELDS and not (cell == "" and describe(field).optional):
            yield field, _active(cell) if describe(field).kind == "text" else cell


def _unknown(names: Sequence[str], known: Sequence[str], noun: str) -> Iterator[Fault]:
    for name in names:
        if name not in known:
            yield Fault(noun, shown(name), f"must be a name that Headroom writes{near(name, known)}")


def _repeated(names: Sequence[str]) -> Iterator[Fault]:
    for name in dict.fromkeys(names):
        if (count := names.count(name)) > 1:
            yield Fault("column", shown(name), f"stands {count} times: must stand once, or be left out")


def _ragged(rows: Sequence[tuple[int, list[str]]], width: int) -> Iterator[Fault]:
    for line, cells in rows:
        if len(cells) != width:
            yield Fault(f"line {line}", f"{len(cells)} cells", f"must have {width} cells, as the header does")


def _object(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError((Fault("file", shown(text), "must be a JSON document"),)) from None
    if not isinstance(found, dict):
        raise InputError((Fault("file", shown(text), "must be a JSON object with a scenario"),))
    return found


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError((*_repeated_keys([key for key, _ in pairs]),))
    return found


def _repeated_keys(keys: Sequence[str]) -> Iterator[Fault]:
    for key in dict.fromkeys(keys):
        if keys.count(key) > 1:
            yield Fault("key", shown(key), "stands more than once: must stand once")


def _no_constant(name: str) -> object:
    raise InputError((Fault("file", name, "must hold only numbers that JSON knows"),))
