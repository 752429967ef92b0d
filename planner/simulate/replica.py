"""What one replica of a plan is to a simulation: seats, blocks, budget, and how long its steps take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from planner.errors import Fault, InputError
from planner.physics import memory
from planner.rows import Bounds, seats_of, sequence, state_bytes_of
from planner.setting import Setting
from planner.simulate.steps import StepTimes
from planner.simulate.traffic import Policy, Preempt

Order: TypeAlias = Literal["decode-first", "prefill-first", "static"]

ORDERS: Final[dict[str, Order]] = {"sglang": "prefill-first"}
"""Engines that read waiting prompts before they go on decoding, chunked prefill or not; the others decode first.

SGLang's scheduler takes a prefill batch whenever one is ready (mixed chunks are off by default); vLLM's V1 scheduler, its
Ascend plug-in and TensorRT-LLM's in-flight batching keep running requests in every step.
"""

RESERVING: Final = ("trtllm",)
"""Engines that admit a request only when all blocks that it may ever need are free (TensorRT-LLM: GUARANTEED_NO_EVICT)."""

SWAP_BANDWIDTH: Final = 25e9
"""Bytes a second between a device and the host's memory: a PCIe 4.0 x16 link's usual share; assumed, not measured here."""

MOST_SEATS: Final = 65_536
"""Largest batch of a table; engines without a limit (the textbook's) are held to it."""


@dataclass(frozen=True)
class Replica:
    """One replica, as a simulation needs it.

    Attributes:
        steps: step times.
        seats: most requests that run or are read.
        budget: most tokens of one step, all attention ranks together; chunk: most prompt tokens of one request in it.
        step_tokens: tokens of that budget that a running request takes.
        block: tokens of a cache block; blocks: how many there are; fixed: blocks of a request whatever its length (states,
            windows); slots: tokens of room a request keeps for drafts.
        grows: whether a request's cache grows with its tokens, a block at a time.
        reserves: whether all blocks are taken at admission.
        policy: what a step is filled with first; preempt: what becomes of a request that has to leave.
        swap_seconds: time to move one block to the host or back [s].
        rereads: whether a preempted request reads its prompt again here although it was first read elsewhere.
        accept: acceptance of each draft token, and how many are drafted; None without drafts.
        ranks: attention ranks that share the blocks evenly; a request lives on one of them.
    """

    steps: StepTimes
    seats: int
    budget: int
    chunk: int
    step_tokens: int
    block: int
    blocks: int
    fixed: int
    slots: int
    grows: bool
    reserves: bool
    policy: Order
    preempt: Preempt
    swap_seconds: float
    rereads: bool
    accept: tuple[float, int] | None
    ranks: int = 1

    def blocks_of(self, prompt: int, left: int) -> int:
        """Blocks that a request takes at admission."""
        if not self.grows:
            return max(self.fixed, 1)
        tokens = prompt + self.slots + (max(left - 1, 0) if self.reserves else 0)
        return -(-tokens // self.block) + self.fixed

    def longest(self, prompt: int, output: int) -> int:
        """Blocks that a request takes at its end."""
        if not self.grows:
            return max(self.fixed, 1)
        return -(-(prompt + output - 1 + self.slots) // self.block) + self.fixed

    def fits(self, prompt: int, output: int) -> bool:
        """Whether one rank has the blocks that a request takes at its end."""
        return self.longest(prompt, output) <= self.blocks // self.ranks

    @property
    def lazy(self) -> bool:
        """Whether blocks are taken as tokens come."""
        return self.grows and not self.reserves


def replica_of(
    setting: Setting, known: Bounds, longest: int, policy: Policy, preempt: Preempt, most: int | None = None
) -> Replica:
    """The replica of a plan.

    Args:
        setting, known: the plan's setting, and the bounds of its one layout.
        longest: most tokens of any sequence.
        policy, preempt: as the traffic asks.
        most: requests that it is given at a time; None = as many as the engine takes.

    Raises:
        InputError: where the layout holds no request.
    """
    layout, asked = known.clock.placed.layout, setting.scenario
    ranks = int(layout.dp[0, 0])
    if _one(known.space.held) < 1.0:
        raise InputError(
            (Fault("tp", str(asked.tp), "must give a layout that holds one request: there is nothing to run"),)
        )
    block_bytes, fixed, block = _blocks(setting, known, longest)
    paged = _one(known.space.pool) * setting.convention.cache_utilisation
    seats = min(seats_of(setting) * ranks, _states(setting, known), MOST_SEATS, np.inf if most is None else most)
    stages = int(layout.pp[0, 0])
    budget = setting.token_budget if setting.convention.overheads else max(setting.token_budget, longest)
    chunk = min(asked.chunk or budget, budget)
    blocks = int(paged // block_bytes) * ranks
    steps = StepTimes(setting, known.clock, int(seats), longest, budget, prompts=asked.prefill != "excluded")
    return Replica(
        steps=steps,
        seats=int(seats),
        budget=budget * ranks * stages,
        chunk=chunk,
        step_tokens=asked.spec + 1,
        block=block,
        blocks=blocks,
        fixed=fixed,
        slots=asked.spec,
        grows=block > 0,
        reserves=setting.engine.id in RESERVING,
        policy=ORDERS.get(setting.engine.id, "decode-first") if policy == "engine" else policy,
        preempt=preempt,
        swap_seconds=block_bytes / SWAP_BANDWIDTH,
        rereads=asked.prefill == "disaggregated",
        accept=(asked.accept, asked.spec) if asked.spec else None,
        ranks=ranks,
    )


def _blocks(setting: Setting, known: Bounds, longest: int) -> tuple[float, int, int]:
    """Bytes of a block on one rank, blocks of a request whatever its length, and tokens of a block (0: nothing grows).

    Cache that grows with every token is counted in blocks; states, and windows that are full, are a request's fixed part.
    A request shorter than a window is charged the whole of it.
    """
    layout = known.clock.placed.layout
    block = setting.allocation.block
    middle = -(-longest // (2 * block)) * block
    whole, half = (float(np.asarray(sequence(setting, layout, float(n))).reshape(-1)[0]) for n in (2 * middle, middle))
    slope, longest = max(whole - half, 0.0) / middle, 2 * middle
    if slope * longest < 1e-6 * whole:
        return whole, 1, 0
    fixed = max(whole - slope * longest, 0.0)
    return slope * block, int(np.ceil(fixed / (slope * block) - 1e-6)), block


def _states(setting: Setting, known: Bounds) -> float:
    """Requests whose recurrent states have room, where they have a part of the pool of their own."""
    layout, pool = known.clock.placed.layout, known.space.pool
    state = state_bytes_of(setting, layout)
    if state is None:
        return float("inf")
    growing = memory.growing_pool(pool, setting.engine.state_ratio)
    return _one(memory.states_held(pool, growing, state, layout.dp))


def _one(column: object) -> float:
    """The first number of a column."""
    return float(np.asarray(column).reshape(-1)[0])
