"""Replicas that a class of traffic could be served with: good layouts of its model on one kind of GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from planner.candidates import candidates, refusals
from planner.evaluate import evaluate_setting
from planner.fleet.question import TrafficClass
from planner.layouts import every_layout, search_rules
from planner.plan import BINDS, Plans
from planner.rows import rules_of
from planner.setting import Setting, resolve
from planner.specs.fields import WeightPrecision
from planner.specs.layout import Layout
from planner.specs.scenario import Scenario

LARGEST_REPLICA: Final = 128
"""Most GPUs of one replica that is looked at."""

LAYOUT_FIELDS: Final = ("tp", "pp", "dp", "ep", "cp", "dcp")

NEARNESS: Final = {name: at for at, name in enumerate(("layout", "engine", "weights", "kv", "none", "ttft", "tpot"))}
"""How near to standing a refused row is, by what binds it: the reason of the nearest is told."""


@dataclass(frozen=True)
class Replica:
    """One replica of a plan that keeps the promise.

    Attributes:
        scenario: the class's scenario with accelerator, precision and layout; no rate and no number of replicas.
        gpus: devices of the replica.
        capacity: requests a second that it may carry, at the share `load` of its mean throughput.
    """

    scenario: Scenario
    gpus: int
    capacity: float


@dataclass(frozen=True)
class Found:
    """Replicas of a class on one kind of GPU, smallest first; without any, the reason why the nearest one falls."""

    replicas: tuple[Replica, ...]
    reason: str


def offers(traffic: TrafficClass, accelerator: str) -> Found:
    """Replicas that no other one dominates in GPUs and capacity; equal ones in the order of precisions and layouts.

    A replica with no more GPUs and no less capacity does whatever the other one does, also when some fail, so what is
    left out is not missed by any fleet.

    Raises:
        CatalogueError, ModelConfigError: when the class names what does not exist or cannot be sized.
    """
    return _found(bare(traffic.scenario), traffic.weights, accelerator)


@lru_cache(maxsize=1024)
def _found(scenario: Scenario, precisions: tuple[WeightPrecision, ...], accelerator: str) -> Found:
    """As `offers`; neither a class's name nor its rate matters."""
    found: list[Replica] = []
    refused: list[tuple[int, str]] = []
    for weights in precisions:
        asked = scenario.with_(gpu=accelerator, weights=weights)
        table = table_of(resolve(asked))
        found.extend(_standing(asked, table))
        refused.append(_nearest(table))
    return Found(tuple(_undominated(found)), "" if found else max(refused)[1])


def bare(scenario: Scenario) -> Scenario:
    """The scenario without what a fleet chooses: layout, accelerator's price, replicas, rate."""
    plain = dict.fromkeys(LAYOUT_FIELDS, 1)
    return scenario.with_(
        **plain,
        qps=0.0,
        fix_replicas=None,
        spare=0,
        price=None,
        price_kind="on-demand",
        provider=None,
        c=None,
        lang=None,
    )


def table_of(setting: Setting) -> Plans:
    """Plans of the layouts that a search looks at, each at its largest batch or at the one that is asked for.

    Where the rules leave none, the smallest layout is there, with the reason.
    """
    found = (*rules_of(setting), *search_rules(setting.model, setting.profile.links.domain))
    every = every_layout(setting.model, LARGEST_REPLICA)
    legal = np.flatnonzero(refusals(found, every) < 0)
    kept = legal if legal.size else np.zeros(1, dtype=np.int64)
    some = Layout(*(getattr(every, name)[kept] for name in LAYOUT_FIELDS))
    batch = setting.scenario.at_batch
    return evaluate_setting(setting, candidates(some, None if batch is None else np.full((1, 1), float(batch))))


def _standing(asked: Scenario, table: Plans) -> Iterator[Replica]:
    """Replicas that fit, are served and keep the promise."""
    stands = table.fits & table.engine_ok & table.meets_sla & (np.nan_to_num(table.goodput_tok_s) > 0.0)
    for at in np.flatnonzero(stands):
        degrees = {name: int(getattr(table, name)[at]) for name in LAYOUT_FIELDS}
        capacity = float(table.goodput_tok_s[at]) * asked.load / asked.osl
        yield Replica(asked.with_(**degrees), int(table.gpus_per_replica[at]), capacity)


def _undominated(found: list[Replica]) -> Iterator[Replica]:
    """Replicas of which none has no more GPUs and no less capacity."""
    most = 0.0
    for each in sorted(found, key=lambda each: (each.gpus, -each.capacity)):
        if each.capacity > most:
            most = each.capacity
            yield each


def _nearest(table: Plans) -> tuple[int, str]:
    """How near the best refused row comes to standing, and why it falls."""
    near = np.array([NEARNESS[name] for name in BINDS])[table.binds]
    at = int(np.argmax(near))
    return int(near[at]), table.reasons[int(table.reason[at])]
