"""A fleet's question as editable tables, and the edited tables as a question again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pandas as pd

from planner.fleet.question import FleetQuestion, Objective, TrafficClass
from planner.fleet.spelling import Row, assembled
from planner.specs.scenario import Scenario, describe
from planner.specs.spelling import spell
from planner.ui.text import label_of

FIELDS: Final = ("model", "qps", "isl", "osl", "prefix", "sla_ttft_ms", "sla_tpot_ms", "kv", "engine")
"""Scenario fields that are columns of the table of classes."""

CLASS_COLUMNS: Final = (
    "name", "model", "qps", "isl", "osl", "prefix", "sla_ttft_ms", "sla_tpot_ms", "precisions", "kv", "engine", "also",
)  # fmt: skip
STOCK_COLUMNS: Final = ("accelerator", "gpus", "place", "price", "price_kind", "owned", "instance")
LIMIT_COLUMNS: Final = ("place", "gpus")

TYPES: Final = {
    "name": "object", "model": "object", "qps": "float64", "isl": "Int64", "osl": "Int64", "prefix": "float64",
    "sla_ttft_ms": "float64", "sla_tpot_ms": "float64", "precisions": "object", "kv": "object", "engine": "object",
    "also": "object", "accelerator": "object", "gpus": "Int64", "place": "object", "price": "float64",
    "price_kind": "object", "owned": "bool", "instance": "Int64",
}  # fmt: skip
"""Type of each column, so that an empty one is a column of numbers too."""

HIDDEN: Final = ("weights", "c", "lang", "price", "price_kind", "provider", "gpu", "fix_replicas", "spare")
"""Scenario fields that the table of classes shows otherwise, or that a fleet does not look at."""


@dataclass(frozen=True)
class Goals:
    """What stands beside the tables: what is made best, and what must hold."""

    objective: Objective
    budget: float | None
    spare: int
    availability: float | None
    target: float | None

    @property
    def rest(self) -> Row:
        """Fields of the question."""
        return dict(vars(self))


@lru_cache(maxsize=64)
def classes(question: FleetQuestion) -> pd.DataFrame:
    """One row per class of traffic; the frame is shared, and is only read."""
    return _frame(CLASS_COLUMNS, [_class(each) for each in question.classes])


@lru_cache(maxsize=64)
def stock(question: FleetQuestion) -> pd.DataFrame:
    """One row per kind of GPUs."""
    return _frame(STOCK_COLUMNS, [{name: getattr(each, name) for name in STOCK_COLUMNS} for each in question.stock])


@lru_cache(maxsize=64)
def limits(question: FleetQuestion) -> pd.DataFrame:
    """One row per limited provider or region."""
    return _frame(LIMIT_COLUMNS, [{"place": each.place, "gpus": each.gpus} for each in question.limits])


def _class(traffic: TrafficClass) -> dict[str, object]:
    """Cells of a class."""
    s = traffic.scenario
    cells: dict[str, object] = {field: getattr(s, field) for field in FIELDS}
    cells["prefix"] = round(s.prefix * 100, 6)
    return {**cells, "name": traffic.name, "precisions": list(traffic.weights), "also": also(s)}


def also(scenario: Scenario) -> str:
    """What a class was made with and no column shows."""
    hidden = {*FIELDS, *HIDDEN, "tp", "pp", "dp", "ep", "cp", "dcp", "x"}
    found = {field: value for field, value in scenario if field not in hidden and value != describe(field).default}
    return ", ".join(f"{label_of(field)} {spell(value)}" for field, value in found.items())


def _frame(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Rows as a frame whose columns have their types, also where there is no row."""
    frame = pd.DataFrame([dict(row) for row in rows], columns=list(columns))
    kinds: dict[Hashable, Any] = {name: TYPES[name] for name in columns}
    return frame.astype(kinds)


def question_of(
    base: FleetQuestion, edited: pd.DataFrame, shelves: pd.DataFrame, places: pd.DataFrame, goals: Goals
) -> FleetQuestion:
    """The question that edited tables ask; a row that was there keeps what no column shows.

    Raises:
        InputError: with every fault, each naming its row.
    """
    rows = [_asked(base, at, cells) for at, cells in _rows(edited)]
    return assembled(
        rows, [_given(cells) for _, cells in _rows(shelves)], [_given(c) for _, c in _rows(places)], goals.rest
    )


def _rows(frame: pd.DataFrame) -> list[tuple[int, dict[str, object]]]:
    """Rows with the numbers that they had in the table at first; empty ones left out."""
    found = [
        (int(at), {str(name): _plain(str(name), value) for name, value in row.items()})
        for at, row in zip(frame.index, frame.to_dict("records"), strict=True)
    ]
    return [(at, cells) for at, cells in found if any(value not in (None, False, []) for value in cells.values())]


def _plain(name: str, value: object) -> object:
    """A cell as JSON would have it; None where it is empty."""
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, str):
        return value.strip() or None
    if TYPES[name] == "Int64" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _given(cells: Mapping[str, object]) -> Row:
    """Cells that say something; a box that is not ticked says off."""
    said = {name: value for name, value in cells.items() if value is not None}
    return {**said, **({"owned": "on" if cells["owned"] else "off"} if "owned" in cells else {})}


def _asked(base: FleetQuestion, at: int, cells: Mapping[str, object]) -> Row:
    """A class as plain values."""
    before = base.classes[at].scenario.model_dump(mode="json", exclude_defaults=True) if at < len(base.classes) else {}
    values = {**before, **{field: cells[field] for field in FIELDS if cells.get(field) is not None}}
    if isinstance(share := cells.get("prefix"), float):
        values["prefix"] = round(share / 100, 8)
    weights = cells.get("precisions")
    chosen = weights if isinstance(weights, list) else []
    if chosen:
        values["weights"] = chosen[0]
    row = {"name": cells.get("name"), "scenario": _without_defaults(values)}
    return {**row, **({"precisions": chosen} if len(chosen) > 1 else {})}


def _without_defaults(values: Mapping[str, object]) -> dict[str, object]:
    """Values that are not the defaults, as a question spells itself."""
    return {field: value for field, value in values.items() if value != describe(field).default}
