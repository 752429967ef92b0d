"""What a plan's memory would be, term by term, if one or more of its fields were otherwise, or under another version's rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import numpy as np

from planner.catalog.engines import engine, era_of, numbers_of, records
from planner.errors import HeadroomError, InputError
from planner.physics.memory import runtime_bytes
from planner.rows import bounds
from planner.setting import Setting, assemble, resolve
from planner.specs.fields import CachePrecision, WeightPrecision, options_of
from planner.specs.layout import Layout, layout
from planner.specs.scenario import Scenario
from planner.specs.spelling import Value, spell
from planner.tabulate import table

Term: TypeAlias = Literal[
    "weights_bytes", "activation_bytes", "runtime_bytes", "graph_bytes", "kv_pool_bytes", "kv_bytes_per_token",
    "kv_capacity_tokens", "max_concurrency",
]  # fmt: skip
"""Memory terms that logs and plans share; tokens are those of one attention rank."""

TERMS: Final[tuple[Term, ...]] = (
    "weights_bytes", "activation_bytes", "runtime_bytes", "graph_bytes", "kv_bytes_per_token", "kv_pool_bytes",
    "kv_capacity_tokens", "max_concurrency",
)  # fmt: skip
"""In the order in which each follows from those before it."""

DEGREES: Final = (1, 2, 4, 8, 16)
SHARES: Final = (0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 0.97, 0.98)
SEATS: Final = (16, 32, 64, 128, 256, 512, 1024)

MENUS: Final[dict[str, tuple[Value, ...]]] = {
    "weights": options_of(WeightPrecision),
    "kv": options_of(CachePrecision),
    "tp": DEGREES,
    "pp": DEGREES,
    "spec": (0, 1),
    "util": SHARES,
    "max_seqs": SEATS,
}
"""What is tried for a field that the log does not state."""


@dataclass(frozen=True)
class Held:
    """Memory of one device under some scenario [B, tokens, sequences].

    `runtime_bytes` is what engines print: a plan's also counts what the driver keeps from the framework.
    """

    weights_bytes: float
    activation_bytes: float
    runtime_bytes: float
    graph_bytes: float
    kv_pool_bytes: float
    kv_bytes_per_token: float
    kv_capacity_tokens: float
    max_concurrency: float | None

    def of(self, term: Term) -> float | None:
        """One term; None when the plan knows no longest sequence."""
        value: float | None = getattr(self, term)
        return value


def written(field: str, value: Value) -> str:
    """A field with its value, `none` where the plan knows none."""
    return f"{field} = {spell(value) or 'none'}"


def own(scenario: Scenario, field: str) -> Value:
    """A field's value, or what the engine takes by itself where it is left empty; None = neither.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    value: Value = getattr(scenario, field)
    if value is not None or field not in ("max_len", "util", "max_seqs", "token_budget"):
        return value
    found = resolve(scenario)
    chosen: Value = found.utilisation if field == "util" else getattr(found, field)
    return chosen


@dataclass(frozen=True)
class Supposition:
    """Fields that would be otherwise; `logged` = the log itself says so."""

    change: tuple[tuple[str, Value], ...]
    logged: bool = False

    def __str__(self) -> str:
        """As a reader would set it: `tp = 4, kv = fp8`."""
        return ", ".join(written(field, value) for field, value in self.change)

    def instead_of(self, scenario: Scenario) -> str:
        """How a scenario has the same fields."""
        return ", ".join(written(field, own(scenario, field)) for field, _ in self.change)

    def apply(self, scenario: Scenario) -> Scenario:
        """The scenario with the change; as it is where the fields would contradict each other."""
        changes = dict(self.change)
        try:
            return scenario.with_(**changes, **({"x": None} if "model" in changes else {}))
        except InputError:
            return scenario


def held(scenario: Scenario, version: str = "", length: float | None = None) -> Held | None:
    """Memory terms of a scenario; None when it cannot be planned.

    Args:
        scenario: what is asked.
        version: engine version whose rules hold; empty = the newest.
        length: tokens at which bytes per token and tokens are counted; None = the plan's own longest sequence.
    """
    try:
        own = setting_of(scenario, version)
        longest = own.max_len
        at = _row(scenario, version, length or longest)
        full = at if length in (None, longest) else _row(scenario, version, longest)
    except HeadroomError:
        return None
    return replace(at, max_concurrency=None if longest is None else full.kv_capacity_tokens / longest)


@lru_cache(maxsize=512)
def _row(scenario: Scenario, version: str, length: float | None) -> Held:
    """The terms with sequences of one length, concurrency aside."""
    setting = setting_of(_stretched(scenario, length), version)
    asked = setting.scenario
    row = table(setting, bounds(setting, _place(asked).tall), np.ones((1, 1)))
    framework = float(np.min(runtime_bytes(setting.engine, np.full(1, float(asked.tp)))))
    return Held(
        weights_bytes=float(row.weights_bytes[0]),
        activation_bytes=float(row.activation_bytes[0]),
        runtime_bytes=min(float(row.runtime_bytes[0]), framework),
        graph_bytes=float(row.graph_bytes[0]),
        kv_pool_bytes=float(row.kv_pool_bytes[0]),
        kv_bytes_per_token=float(row.kv_bytes_per_token[0]),
        kv_capacity_tokens=float(row.kv_capacity_tokens_rank[0]),
        max_concurrency=None,
    )


def _place(asked: Scenario) -> Layout:
    return layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp)


def _stretched(scenario: Scenario, length: float | None) -> Scenario:
    """The scenario with sequences of one length; as it is where that cannot be meant."""
    if length is None or not 2 <= length <= 10_000_000:
        return scenario
    osl = min(scenario.osl, int(length) - 1)
    try:
        return scenario.with_(isl=int(length) - osl, osl=osl, max_len=None, at_batch=None)
    except InputError:
        return scenario


def setting_of(scenario: Scenario, version: str) -> Setting:
    """The setting under a version's rules.

    Raises:
        HeadroomError: when something in it is not in the catalogue or cannot be sized.
    """
    newest = resolve(scenario)
    if not numbers_of(version):
        return newest
    return assemble(scenario, newest.model, newest.gpu, engine(scenario.engine, version, newest.gpu), version)


def older(scenario: Scenario, version: str) -> bool:
    """Whether a version follows other rules than the newest, which plans follow."""
    record = records()[scenario.engine]
    return bool(numbers_of(version)) and era_of(record, version) is not record.eras[-1]


def stated(logged: tuple[tuple[str, Value], ...], fields: tuple[str, ...]) -> Iterator[Supposition]:
    """What the log states otherwise than the plan, of the fields that matter to a term: each alone, then all together."""
    told = tuple((field, value) for field, value in logged if field in fields)
    yield from (Supposition((each,), logged=True) for each in told)
    if len(told) > 1:
        yield Supposition(told, logged=True)


def own_drafter(scenario: Scenario) -> bool:
    """Whether the model has layers of its own that draft; the size of any other draft model is the user's guess."""
    return bool(resolve(scenario).model.mtp)


def menus(scenario: Scenario, logged: tuple[tuple[str, Value], ...], fields: tuple[str, ...]) -> Iterator[Supposition]:
    """One field of a menu that the log does not state, alone and with all that it states."""
    told = tuple((field, value) for field, value in logged if field in fields)
    known = {field for field, _ in logged}
    single = [
        (field, value)
        for field in fields
        for value in MENUS.get(field, ())
        if field not in known and value != getattr(scenario, field) and (field != "spec" or own_drafter(scenario))
    ]
    yield from (Supposition((each,)) for each in single)
    if told:
        yield from (Supposition((*told, each)) for each in single)
