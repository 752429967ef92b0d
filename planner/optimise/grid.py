"""The layouts of a category that stand, and their rows on a coarse grid of batches."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.allocator import keep_freed_memory
from planner.binding import engine_reason
from planner.candidates import Flags, Rule, refusals
from planner.layouts import every_layout, search_rules
from planner.optimise.bounds import least
from planner.optimise.found import Found, best_rows, front_rows, joined, nothing, worth_keeping
from planner.optimise.offers import UNPRICED, Tally, offers
from planner.optimise.question import Question
from planner.optimise.rooms import some_rooms
from planner.optimise.rows import flat_rows
from planner.rows import (
    NO_ROOM,
    NO_SEQUENCE,
    OK,
    REASONS,
    SLOW_FIRST,
    SLOW_TOKEN,
    Bounds,
    Room,
    Speed,
    open_ended,
    promised_tpot,
    room,
    rules_of,
)
from planner.setting import Setting, resolve
from planner.specs.layout import Column, Layout
from planner.specs.model import ModelSpec
from planner.specs.scenario import Scenario
from planner.tabulate import judged

STEPS: Final = 8
"""Batches of each layout between one sequence and the most that memory and seats admit, in about equal ratios."""

BLOCK_LAYOUTS: Final = 1200
"""Layouts evaluated at a time: few enough for the processor's cache, enough that a block's own cost is small."""

DEGREES: Final = ("tp", "pp", "dp", "ep", "cp", "dcp")


@dataclass(frozen=True)
class Side:
    """The replicas of a category: layouts that stand, and the least that each can add to the objective.

    It is small, because it may come from another process: the best of what was seen, and layouts by index.

    Attributes:
        scenario: of the category, layout and batch left open; source: which category.
        rows: layouts that stand, index into every layout of the model; least: share of the objective at best; shape (n,).
        best, front: rows on the grid that may be shown; none where the pool decides.
        offers: prefill pools that could feed it, each with its number and its share of the objective at best.
        candidates: layouts (with their pools), refused ones included; considered: rows evaluated; refused: of the candidates.
    """

    scenario: Scenario
    source: int
    rows: npt.NDArray[np.int64]
    least: Column
    best: Found
    front: Found
    offers: tuple[tuple[int, float], ...]
    candidates: int
    considered: int
    refused: Tally

    @property
    def apart(self) -> bool:
        """Whether prompts are read in a pool of their own."""
        return self.scenario.prefill == "disaggregated"


@dataclass(frozen=True)
class Block:
    """A piece of a category on the grid, as a side has it."""

    least: Column
    best: Found
    front: Found
    considered: int
    refused: Tally


def rows_of(layout: Layout, rows: npt.NDArray[np.int64] | Flags) -> Layout:
    """Some rows of a table of layouts, as columns of shape (n, 1)."""
    return Layout(*(np.asarray(getattr(layout, name)).reshape(-1)[rows].reshape(-1, 1) for name in DEGREES))


def open_setting(scenario: Scenario) -> Setting:
    """The setting of a category; where prefill is apart its pool is open, and the decode pool is that of decode alone."""
    if scenario.prefill != "disaggregated":
        return resolve(scenario)
    alone = scenario.with_(prefill="excluded", kv_link_eff=None)
    return replace(resolve(alone), scenario=scenario)


def side_of(scenario: Scenario, question: Question, source: int, top: int) -> Side:
    """The replicas of a category on the grid, and the prefill pools that could feed them."""
    keep_freed_memory()
    setting, apart = open_setting(scenario), scenario.prefill == "disaggregated"
    kept, space, count, tally = admitted(setting, question)
    if setting.cost.price is None and question.objective.startswith("usd"):
        tally[UNPRICED] += len(kept)
        kept = kept[:0]
    whole = every_layout(setting.model, question.max_gpus)
    blocks = [
        _block(setting, question, source, rows_of(whole, kept[at]), some_rooms(space, at)) for at in pieces(len(kept))
    ]
    bound = np.concatenate([np.zeros(0), *(block.least for block in blocks)])
    stands = np.isfinite(bound)
    for block in blocks:
        tally.update(block.refused)
    some, late = offers(setting, question, int(stands.sum())) if apart else ((), Tally())
    many = int(stands.sum()) * len(some) + sum(late.values()) - int(stands.sum()) if apart else 0
    best, front = (joined([nothing(), *(getattr(block, name) for block in blocks)]) for name in ("best", "front"))
    return Side(
        scenario, source, kept[stands], bound[stands], best.at(worth_keeping(best, top)), front_rows(front), some,
        count + max(many, 0), sum(block.considered for block in blocks), tally + late,
    )  # fmt: skip


def admitted(setting: Setting, question: Question) -> tuple[npt.NDArray[np.int64], Room, int, Tally]:
    """Layouts that break no rule and whose memory holds a sequence, by index, with that memory; how many there were, and
    why the others fell."""
    whole = every_layout(setting.model, question.max_gpus)
    count, tally = len(whole.tp), Tally()
    engine = int(engine_reason(setting))
    if engine != OK:
        tally["engine", REASONS[engine]] = count
        none = np.zeros(0, dtype=np.int64)
        return none, room(setting, rows_of(whole, none)), count, tally
    legal, broken = _legal(_Rules(setting, question.max_gpus))
    tally.update(broken)
    kept = rows_of(whole, legal)
    space = room(setting, kept)
    holds, empty = (np.broadcast_to(f, kept.tp.shape).reshape(-1) for f in (space.held >= 1.0, space.pool <= 0.0))
    tally["memory", REASONS[NO_ROOM]] += int(empty.sum())
    tally["memory", REASONS[NO_SEQUENCE]] += int((~holds & ~empty).sum())
    return legal[holds], some_rooms(space, holds), count, +tally


@dataclass(frozen=True)
class _Rules:
    """What the rules of layouts look at, hashed by what can differ between categories."""

    setting: Setting
    most: int

    @property
    def key(self) -> Hashable:
        """Everything that a rule may ask for."""
        s, links = self.setting, self.setting.profile.links
        neutral = s.scenario.with_(gpu="h100-sxm", price=None, provider=None, kv="bf16", prefill_gpu=None)
        return s.model, s.engine.id, s.engine.version, neutral, links.domain, self.most

    def __hash__(self) -> int:
        """By the key."""
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        """By the key."""
        return isinstance(other, _Rules) and self.key == other.key

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of model and engine, then the search's own."""
        return (*rules_of(self.setting), *search_rules(self.setting.model, self.setting.profile.links.domain))

    @property
    def model(self) -> ModelSpec:
        """Whose layouts they are."""
        return self.setting.model


@lru_cache(maxsize=256)
def _legal(asked: _Rules) -> tuple[npt.NDArray[np.int64], Tally]:
    """Layouts that break no rule, and how many fell by each."""
    found = asked.rules
    broken = refusals(found, every_layout(asked.model, asked.most))
    counts = np.bincount(broken[broken >= 0], minlength=len(found))
    tally = Tally()
    for rule, count in zip(found, counts.tolist(), strict=True):
        tally[rule.name, rule.reason] += count
    return np.flatnonzero(broken < 0), +tally


def pieces(count: int) -> Iterator[npt.NDArray[np.int64]]:
    """A table of so many layouts in pieces, by index."""
    for start in range(0, count, BLOCK_LAYOUTS):
        yield np.arange(start, min(start + BLOCK_LAYOUTS, count))


def _block(setting: Setting, question: Question, source: int, layout: Layout, space: Room) -> Block:
    """A piece of a category on the grid; where prefill is apart only TPOT is judged, TTFT is the pair's."""
    known = open_ended(setting, layout, space)
    batch = grid(question, known)
    made = judged(setting, known, batch, filled(setting, question, layout))
    asked = setting.scenario
    late = made.speed.ttft > asked.sla_ttft_ms / 1e3 if asked.prefill != "disaggregated" else np.zeros(1, dtype=bool)
    slow = made.speed.tpot > promised_tpot(setting)
    bound = least(setting, question, layout.devices, made.speed, ~(late | slow))
    best, front = nothing(), nothing()
    if asked.prefill != "disaggregated":
        found = flat_rows(setting, question, layout, made, source)
        best, front = best_rows(found, len(layout.tp)), front_rows(found)
    return Block(bound, best, front, distinct(batch), _fallen(bound, made.speed, late))


def _fallen(bound: Column, speed: Speed, late: Flags) -> Tally:
    """Layouts whose smallest batch breaks the promise, by which."""
    first = np.broadcast_to(late, speed.tpot.shape)[:, 0]
    fell = ~np.isfinite(bound)
    found = {SLOW_FIRST: int((fell & first).sum()), SLOW_TOKEN: int((fell & ~first).sum())}
    return +Tally({("promise", REASONS[code]): count for code, count in found.items()})


def most_of(question: Question, known: Bounds) -> Column:
    """The largest batch that memory, seats and the question's limits admit, at least 1."""
    limited = [each.value for each in question.limits if each.field == "batch" and each.at_most]
    most = np.minimum(known.limits.held, known.limits.seats)
    return np.maximum(np.minimum(most, np.floor(min([np.inf, *limited]))), 1.0)


def grid(question: Question, known: Bounds) -> Column:
    """Batches of each layout, sorted, shape (n, m): one sequence, then equal ratios up to what memory and seats admit, each
    filled up so that all ranks hold as many."""
    if question.scenario.at_batch is not None:
        return np.full((len(known.limits.held), 1), float(question.scenario.at_batch))
    most = most_of(question, known)
    steps = np.floor(most ** np.linspace(0.0, 1.0, STEPS)[None, :] + 1e-9)
    ways = known.clock.placed.layout.dp * known.clock.placed.layout.pp
    filled_up = np.minimum(np.ceil(steps / ways) * ways, most)
    filled_up[:, 0] = 1.0
    return filled_up


def distinct(batch: Column) -> int:
    """Rows of a table of sorted batches, equal ones of a layout counted once."""
    return int(len(batch) + np.count_nonzero(np.diff(batch, axis=1)))


def filled(setting: Setting, question: Question, layout: Layout) -> Column | None:
    """Replicas that fill the devices that there are, or as many of them as the limits allow, where most good tokens are
    asked; None = as the scenario says."""
    if question.objective != "goodput_tok_s" or setting.scenario.fix_replicas is not None:
        return None
    devices = float(question.max_gpus)
    for limit in question.limits:
        if limit.at_most and limit.field == "gpus":
            devices = min(devices, limit.value)
        elif limit.at_most and limit.field == "usd_per_hour" and setting.cost.price:
            instance = float(setting.cost.instance)
            devices = min(devices, np.floor(limit.value / (setting.cost.price * instance) + EXACT) * instance)
    replicas = np.floor(devices / layout.devices)
    most = min(
        (limit.value for limit in question.limits if limit.at_most and limit.field == "replicas"), default=np.inf
    )
    return np.asarray(np.maximum(np.minimum(replicas, most) - setting.scenario.spare, 1.0))


EXACT: Final = 1e-9
"""Keeps a quotient that is whole from falling below itself."""
