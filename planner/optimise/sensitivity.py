"""Sensitivity: what moves the cost of a good token, input by input; and the price at which the second choice wins.

One input moves at a time, everything else stays. Model, accelerator and layout stay too; the batch is chosen again, and
where a request rate is asked replicas and workers are sized again, so that the promise holds at both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from planner.errors import InputError
from planner.optimise.break_even import BreakEven, break_even
from planner.optimise.constants import Moved, constants
from planner.optimise.question import Objective
from planner.optimise.worth import own_layout, value_of
from planner.pools import Pool
from planner.serving.decode import clock
from planner.setting import Setting, reclocked, resolve
from planner.specs.scenario import Scenario, describe
from planner.units import unit_of

__all__ = ["COLUMNS", "BreakEven", "End", "Swing", "break_even", "resized", "rows", "swings"]

FIFTH: Final = 0.2
"""Share by which prices, promises and lengths are moved."""

STEP: Final = {"prefix": 0.1, "accept": 0.1, "load": 0.1, "util": 0.05}
"""By how much shares are moved."""

LEAST: Final = {"prefix": 0.0, "accept": 0.0, "load": 0.01, "util": 0.01}
"""Smallest value of a share."""

SIZES: Final = ("fix_replicas", "decode_workers", "prefill_workers")
"""Fields that fix how many replicas and workers there are."""


@dataclass(frozen=True)
class End:
    """One end of an input's range.

    Attributes:
        input: value of the input; value: of the objective there, None where there is none.
        reason: why there is none; empty where there is one.
    """

    input: float
    value: float | None
    reason: str = ""


@dataclass(frozen=True)
class Swing:
    """What one input does to the objective of a plan.

    Attributes:
        key: stable name: a scenario field, `price_range`, `prefill_price`, `tpot_band`, or a constant (`law.gemm.fp8`).
        name, unit: what it is, and the unit of its values (empty for a plain ratio).
        now: the input as it is; base: the objective as it is, None where the plan does not stand.
        low, high: ends of the input's range.
        basis: where that range comes from; assumed: whether it is a convention and not a statement about this input.
    """

    key: str
    name: str
    unit: str
    now: float
    base: float | None
    low: End
    high: End
    basis: str
    assumed: bool

    @property
    def turns(self) -> int:
        """Ends at which a plan that stands no longer does, or one that does not would."""
        stands = self.base is not None
        return sum((end.value is not None) != stands for end in (self.low, self.high))

    @property
    def width(self) -> float:
        """Between the largest and the smallest objective of both ends and of the plan itself, in its unit."""
        known = [value for value in (self.base, self.low.value, self.high.value) if value is not None]
        return max(known) - min(known) if known else 0.0


Settings: TypeAlias = Callable[[], Setting]


@dataclass(frozen=True)
class _Input:
    """One input with the settings at both ends of its range."""

    key: str
    name: str
    unit: str
    now: float
    low: float
    high: float
    basis: str
    assumed: bool
    at_low: Settings
    at_high: Settings


def swings(scenario: Scenario, objective: Objective = "usd_per_m_goodput") -> tuple[Swing, ...]:
    """What moves the objective of one plan: inputs by what they do, largest first.

    Inputs at whose end the plan no longer stands (or would stand) come first; then by `width`. Law constants that do
    nothing are left out, inputs of the scenario that do nothing are not: that they do nothing is an answer.

    Args:
        scenario: the plan; `resized(scenario)` is what is compared.
        objective: plan field; good tokens a second are those of all replicas that serve.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    asked = resized(scenario, objective)
    setting = resolve(asked)
    base, _ = value_of(setting, objective)
    found = [_swing(each, base, objective) for each in _asked(setting)]
    laws = (_swing(each, base, objective) for each in _laws(setting))
    found += [swing for swing in laws if swing.turns or swing.width > 0.0]
    return tuple(sorted(found, key=lambda swing: (-swing.turns, -swing.width)))


def resized(scenario: Scenario, objective: Objective = "usd_per_m_goodput") -> Scenario:
    """The scenario whose batch is chosen again and whose replicas are sized again for the rate that it asks.

    Without a rate the decode replicas stay as named and prefill workers are sized to feed them. TPOT and TTFT are
    compared at the batch that the scenario names: at the largest that keeps the promise one would be the promise.
    """
    batch = scenario.at_batch if objective in ("tpot_ms", "ttft_ms") else None
    counts = dict.fromkeys(SIZES if scenario.qps > 0 else ("prefill_workers",))
    return scenario.with_(at_batch=batch, **counts)


def _swing(each: _Input, base: float | None, objective: Objective) -> Swing:
    """Both ends of an input."""
    low, high = _end(each.low, each.at_low, objective), _end(each.high, each.at_high, objective)
    return Swing(each.key, each.name, each.unit, each.now, base, low, high, each.basis, each.assumed)


def _end(value: float, at: Settings, objective: Objective) -> End:
    """One end; a value that contradicts the rest of the scenario is a reason and not an error."""
    try:
        return End(value, *value_of(at(), objective))
    except InputError as error:
        return End(value, None, str(error))


# --- what a person chose -------------------------------------------------------------------------------------------


def _asked(setting: Setting) -> Iterator[_Input]:
    """Inputs of the scenario that mean something in it."""
    asked = setting.scenario
    yield from _prices(setting)
    promised = ("sla_ttft_ms", "sla_tpot_ms") if asked.osl > 1 else ("sla_ttft_ms",)
    for field in promised:
        now = float(getattr(asked, field))
        yield _field(asked, field, now, now * (1 - FIFTH), now * (1 + FIFTH), _fifth("of the promise"))
    for field in ("isl", "osl"):
        yield _length(asked, field)
    for field, now in _shares(setting):
        low, high = max(LEAST[field], round(now - STEP[field], 6)), min(1.0, round(now + STEP[field], 6))
        yield _field(asked, field, now, low, high, f"assumed: ±{STEP[field]:g}, within what is possible")


def _shares(setting: Setting) -> Iterator[tuple[str, float]]:
    """Shares that are moved, with their values."""
    asked = setting.scenario
    yield "prefix", asked.prefix
    yield "util", setting.utilisation
    if asked.spec > 0:
        yield "accept", asked.accept
    if asked.qps > 0 or setting.pool is not None:
        yield "load", asked.load


def _length(asked: Scenario, field: str) -> _Input:
    """Input or output tokens, whole; a request that decodes goes on decoding."""
    now = int(getattr(asked, field))
    least = min(now, 2 if field == "osl" else 1)
    low, high = max(least, round(now * (1 - FIFTH))), round(now * (1 + FIFTH))
    return _field(asked, field, now, low, high, _fifth("of the mean length"))


def _fifth(of: str) -> str:
    """How a range of a fifth is said."""
    return f"assumed: ±{100 * FIFTH:.0f} % {of}"


def _field(
    asked: Scenario, field: str, now: float, low: float, high: float, basis: str, key: str = "", assumed: bool = True
) -> _Input:
    """A scenario field between two values."""
    name, unit = describe(field).meaning.split(";")[0].rstrip("."), unit_of(field)

    def at(value: float) -> Settings:
        return lambda: resolve(asked.with_(**{field: value}))

    return _Input(key or field, name, unit, now, low, high, basis, assumed, at(low), at(high))


def _prices(setting: Setting) -> Iterator[_Input]:
    """Price of the accelerator, its range where it is the catalogue's, and that of a prefill pool elsewhere."""
    asked, cost, pool = setting.scenario, setting.cost, setting.pool
    if cost.price is not None:
        now = cost.price
        yield _field(asked, "price", now, now * (1 - FIFTH), now * (1 + FIFTH), _fifth("of the price"))
    if cost.price is not None and cost.default is not None and cost.default.low < cost.default.high:
        asks = f"{cost.default.count} prices of the catalogue, {cost.default.oldest} to {cost.default.newest}"
        low, high = cost.default.low, cost.default.high
        yield _field(asked, "price", cost.price, low, high, asks, "price_range", assumed=False)
    if pool is not None and pool.gpu.id != setting.gpu.id and pool.price is not None:
        yield _pool_price(setting, pool, pool.price)


def _pool_price(setting: Setting, pool: Pool, now: float) -> _Input:
    """Price of a prefill pool's accelerator, which no field of the scenario holds."""
    low, high = now * (1 - FIFTH), now * (1 + FIFTH)

    def at(price: float) -> Settings:
        return lambda: replace(setting, pool=replace(pool, price=price))

    name, unit = "Price of the prefill pool's accelerator", unit_of("price")
    return _Input("prefill_price", name, unit, now, low, high, _fifth("of the price"), True, at(low), at(high))


# --- what was fitted -----------------------------------------------------------------------------------------------


def _laws(setting: Setting) -> Iterator[_Input]:
    """Law constants at the ends of their bands."""
    for moved in constants(setting, clock(setting.decoding, own_layout(setting.scenario))):
        yield _constant(setting, moved)


def _constant(setting: Setting, moved: Moved) -> _Input:
    """One constant; prompts that are read elsewhere are read by that accelerator's constants, and move with them."""
    there = moved.key.startswith(("law.attn_prefill", "law.mla_prefill")) and setting.pool is not None
    shown = setting.pool.profile if there and setting.pool is not None else setting.profile
    band = moved.band(shown)
    return _Input(
        moved.key, moved.name, moved.unit, moved.now(shown), band.low, band.high, band.basis, band.assumed,
        lambda: reclocked(setting, moved.at_low), lambda: reclocked(setting, moved.at_high),
    )  # fmt: skip


# --- rows ----------------------------------------------------------------------------------------------------------

COLUMNS: Final = (
    "key", "name", "unit", "now", "base", "low_input", "low_value", "low_reason", "high_input", "high_value", "high_reason",
    "width", "basis", "assumed",
)  # fmt: skip
"""What `rows` holds, in its order."""


def rows(found: tuple[Swing, ...]) -> tuple[tuple[str | float | bool | None, ...], ...]:
    """Swings as rows of plain cells, for a CSV or a JSON document: one a swing, cells as `COLUMNS`."""
    return tuple(
        (
            s.key, s.name, s.unit, s.now, s.base, s.low.input, s.low.value, s.low.reason, s.high.input, s.high.value,
            s.high.reason, s.width, s.basis, s.assumed,
        )
        for s in found
    )  # fmt: skip
