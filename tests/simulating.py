"""Replicas with step times of one's own, so that a simulation can be worked out by hand or by queueing theory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from planner.simulate import run as running
from planner.simulate.blocks import Blocks, CachedBlocks
from planner.simulate.engine import Engine
from planner.simulate.gateway import Gateway
from planner.simulate.loop import Failure, Loop
from planner.simulate.named import naming
from planner.simulate.outcome import Outcome
from planner.simulate.readers import Readers
from planner.simulate.replica import Replica
from planner.simulate.requests import NONE, Requests, requests
from planner.simulate.seats import DraftSeats, Seats


@dataclass(frozen=True)
class Steps:
    """Step times by functions [s].

    Attributes:
        decodes: of (batch, mean context); reads: what prompts add, of (batch, tokens, prompts); attends: attention of
            (tokens, cached); ways: as in `StepTimes`.
    """

    decodes: Callable[[int, float], float] = lambda *_: 1.0
    reads: Callable[[int, int, int], float] = lambda batch, *_: 0.0 if batch else 1.0
    attends: Callable[[int, int], float] = lambda *_: 0.0
    ways: int = 1

    def decode(self, batch: int, context: float) -> float:
        return self.decodes(batch, context)

    def reading(self, batch: int, tokens: int, prompts: int) -> float:
        return self.reads(batch, tokens, prompts)

    def attention(self, tokens: int, cached: int) -> float:
        return self.attends(tokens, cached)


WIDE = Replica(
    steps=Steps(),  # type: ignore[arg-type]
    seats=8,
    budget=1 << 20,
    chunk=1 << 20,
    step_tokens=1,
    block=16,
    blocks=1 << 20,
    fixed=0,
    slots=0,
    grows=True,
    reserves=False,
    policy="decode-first",
    preempt="recompute",
    swap_seconds=0.0,
    rereads=False,
    accept=None,
)
"""A replica on which every step takes a second and nothing is short."""


def wide(steps: Steps | None = None, **changes: Any) -> Replica:
    """`WIDE` with other step times and fields."""
    return replace(WIDE, steps=WIDE.steps if steps is None else steps, **changes)


def asked(arrival: Any, isl: Any, osl: Any, **columns: Any) -> Requests:
    """A table; one number stands for a whole column, and `group`, `shared`, `session`, `hashes` may be given."""
    arrival = np.asarray(arrival, dtype=float)
    whole = {
        name: np.broadcast_to(np.asarray(value, dtype=np.int64), arrival.shape).copy()
        for name, value in {"isl": isl, "osl": osl, **columns}.items()
        if name != "hashes"
    }
    table = requests(arrival, whole.pop("isl"), whole.pop("osl"))
    return replace(table, **whole, hashes=columns.get("hashes"))


def engine(replica: Replica, table: Requests, seed: int) -> Engine:
    """An idle engine."""
    blocks = CachedBlocks(replica.blocks) if table.sharing else Blocks(replica.blocks)
    block, slots, grows = max(replica.block, 1), replica.slots, replica.lazy
    if replica.accept is None:
        return Engine(replica, blocks, Seats(block, slots, grows=grows), naming(table))
    steps = partial(running._steps_of, np.random.default_rng(seed), *replica.accept)
    return Engine(replica, blocks, DraftSeats(block, slots, grows=grows, steps=steps), naming(table))


def looped(
    table: Requests,
    replica: Replica | Sequence[Replica],
    *,
    replicas: int = 1,
    limit: int = 1 << 30,
    router: Any = "least-loaded",
    over: Any = "queue",
    readers: Readers | None = None,
    clients: int | None = None,
    failure: Failure | None = None,
    watcher: Callable[[Engine], None] | None = None,
    seed: int = 1,
) -> Loop:
    """A run of equal replicas, or of those that are named one by one, that has not begun."""
    each = [replica] * replicas if isinstance(replica, Replica) else replica
    engines = [engine(one, table, seed + at) for at, one in enumerate(each)]
    gateway = Gateway(engines, router, limit, table, seed)
    return Loop(table, engines, gateway, readers, over, clients, failure, watcher)


def simulated(table: Requests, replica: Replica | Sequence[Replica], warm: int = 0, **how: Any) -> Outcome:
    """A run of replicas; `warm` requests count in no summary."""
    loop = looped(table, replica, **how)
    loop.run(None, None)
    return loop.outcome(warm)


__all__ = ["NONE", "WIDE", "Steps", "asked", "looped", "simulated", "wide"]
