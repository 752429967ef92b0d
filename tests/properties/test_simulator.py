"""What no workload may break: blocks, budgets and seats at every step, every request served once, jumps equal to steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.simulate.blocks import CachedBlocks
from planner.simulate.engine import Engine
from planner.simulate.loop import Failure, Loop
from planner.simulate.outcome import DONE, REJECTED, TOO_LONG, Outcome
from planner.simulate.replica import Replica
from planner.simulate.requests import NONE, Hashes, Requests
from tests.simulating import Steps, asked, looped, wide

WORKLOADS = settings(max_examples=500, derandomize=True, deadline=None)
"""Twice: as they are, and step by step."""

MOST_STEPS = 20_000
"""No workload below takes a twentieth of so many steps; one that does goes round in circles."""


@dataclass(frozen=True)
class Case:
    """A workload and who serves it; `pool`: seconds in which a lone worker reads a prompt, None = the replicas read."""

    table: Requests
    replicas: list[Replica]
    how: dict[str, Any]
    pool: float | None


class Worker:
    """Reads one prompt at a time."""

    def __init__(self, taken: float) -> None:
        self.taken, self.free = taken, 0.0

    def read(self, at: float, tokens: int) -> float:
        self.free = max(self.free, at) + self.taken * (1 + tokens / 64)
        return self.free


def linear(pace: float) -> Steps:
    """Steps linear in context, so that a jump takes what its steps take."""
    return Steps(
        decodes=lambda batch, context: pace * (1.0 + 0.0137 * batch + 0.00173 * batch * context),
        reads=lambda batch, tokens, _: pace * (0.0217 * tokens + (0.0 if batch else 0.917)),
        attends=lambda tokens, cached: pace * 0.0011 * tokens * (tokens + 2 * cached),
    )


@st.composite
def replicas(draw: st.DrawFn, table: Requests) -> Replica:
    """Tiny budgets, and pools from too small for the longest request to room for ten of it."""
    drafted = draw(st.sampled_from((0, 0, 1, 3)))
    grows = draw(st.sampled_from((True, True, True, True, True, True, True, False)))
    budget = draw(st.sampled_from((48, 48, 48, 48, 16, 16, 5, 2, 1)))
    fixed = draw(st.integers(0, 2))
    one = wide(
        seats=draw(st.sampled_from((4, 4, 6, 6, 3, 3, 2, 1))),
        budget=budget,
        chunk=draw(st.integers(1, budget)),
        step_tokens=drafted + 1,
        slots=drafted,
        accept=(draw(st.sampled_from((0.0, 0.3, 0.8, 1.0))), drafted) if drafted else None,
        block=draw(st.sampled_from((1, 1, 1, 2, 2, 3, 4, 8, 16, 32))) if grows else 0,
        fixed=fixed if grows else max(fixed, 1),
        grows=grows,
        reserves=draw(st.sampled_from((False, False, False, True))),
        policy=draw(st.sampled_from(("decode-first", "prefill-first", "static"))),
        preempt=draw(st.sampled_from(("recompute", "swap"))),
        swap_seconds=0.0931,
        rereads=draw(st.booleans()),
    )
    longest = max(map(one.longest, table.isl.tolist(), table.osl.tolist()))
    return replace(one, blocks=max(1, int(longest * draw(st.sampled_from((1.0, 1.1, 1.3, 1.6, 2.0, 3.0, 10.0, 0.7))))))


def hashed(chance: np.random.Generator, isl: np.ndarray, tokens: int) -> Hashes:
    """Prompts out of a small tree: at every block of the trace one of two texts goes on."""
    known: dict[tuple[int, ...], int] = {}
    ids, start = [], [0]
    for length in isl.tolist():
        path = tuple(chance.integers(0, 2, -(-length // tokens)).tolist())
        ids += [known.setdefault(path[: n + 1], len(known)) for n in range(len(path))]
        start.append(len(ids))
    return Hashes(np.array(start), np.array(ids, dtype=np.int64), tokens)


@st.composite
def tables(draw: st.DrawFn) -> Requests:
    """Up to 24 requests: a burst, or spread out; alone, in groups, in sessions, or with names of their own."""
    count = draw(st.sampled_from((24, 24, 24, 12, 12, 6, 2, 1)))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrival = np.cumsum(chance.exponential(draw(st.sampled_from((0.4, 0.0, 3.0))), count))
    isl = chance.integers(1, draw(st.sampled_from((9, 9, 41, 2))), count)
    osl = chance.integers(1, draw(st.sampled_from((31, 31, 31, 13, 2))), count)
    kind = draw(st.sampled_from(("alone", "groups", "sessions", "both", "hashes")))
    columns: dict[str, Any] = {}
    if kind in ("groups", "both"):
        group = chance.integers(NONE, 2, count)
        columns |= {"group": group, "shared": np.where(group == NONE, 0, np.minimum(isl, 5 + 8 * group))}
    if kind in ("sessions", "both"):
        columns["session"] = chance.integers(NONE, 4, count)
    if kind == "hashes":
        columns["hashes"] = hashed(chance, isl, draw(st.sampled_from((4, 8))))
    return asked(arrival, isl, osl, **columns)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    table = draw(tables())
    one = draw(replicas(table))
    count = draw(st.sampled_from((1, 1, 2, 3)))
    how: dict[str, Any] = {
        "router": draw(st.sampled_from(("round-robin", "least-loaded", "two-choices", "affinity"))),
        "limit": draw(st.sampled_from((1 << 30, 1 << 30, 1 << 30, 1 << 30, 6, 1))),
        "over": draw(st.sampled_from(("queue", "queue", "reject"))),
        "clients": draw(st.sampled_from((None, None, None, 1, 4))),
        "seed": draw(st.integers(0, 99)),
    }
    if draw(st.integers(0, 3)) == 0:
        how["failure"] = Failure(0, draw(st.floats(0.05, 20.0)), draw(st.floats(0.05, 20.0)))
    pool = draw(st.sampled_from((None, None, None, 0.0, 0.7)))
    # Replicas of one pace would end steps at the same moment, in an order that rounding decides.
    return Case(table, [replace(one, steps=linear(1.0 + 0.0613 * at)) for at in range(count)], how, pool)


# --- an auditor beside the engines ---------------------------------------------------------------------------------------


class Auditor:
    """Recounts everything from the requests themselves."""

    def __init__(self, case: Case, *, single: bool = False) -> None:
        self.case, self.steps = case, 0
        self.tokens: Counter[int] = Counter()
        self.loop: Loop = looped(
            case.table,
            case.replicas,
            readers=None if case.pool is None else Worker(case.pool),
            watcher=self.committed,
            **case.how,
        )
        for engine in self.loop.engines:
            self._listen(engine, single=single)

    def _listen(self, engine: Engine, *, single: bool) -> None:
        """Hear of every plan, every token and every failure."""
        plan, advance, join, drain = engine.plan, engine.running.advance, engine._join, engine.drain

        def planned() -> None:
            plan()
            self.planned(engine)

        def advanced(steps: int) -> Any:
            for job in engine.running.jobs.values():
                self.tokens[job.request] += job.pace * steps
            return advance(steps)

        def joined(job: Any, *, emits: bool) -> None:
            self.tokens[job.request] += emits
            join(job, emits=emits)

        def drained(at: float) -> Any:
            lost = drain(at)
            for job in lost:
                self.tokens[job.request] = 0
            assert engine.blocks.free == engine.blocks.total
            return lost

        parts: dict[str, Any] = {"plan": planned, "_join": joined, "drain": drained}
        for name, part in parts.items():
            setattr(engine, name, part)
        engine.running.advance = advanced  # type: ignore[method-assign]
        if single:
            engine.running.jump = lambda _: 1  # type: ignore[method-assign]

    def planned(self, engine: Engine) -> None:
        """The next steps keep the budget, and have their blocks."""
        replica, running = engine.replica, engine.running
        prompts = sum(size for _, size in engine._chunks)
        decodes = running.count * replica.step_tokens if engine._jump and running.count else 0
        assert prompts + decodes <= max(replica.budget, decodes)
        assert all(0 < size <= replica.chunk for _, size in engine._chunks)
        assert all(job.done + size <= job.prompt for job, size in engine._chunks)
        assert len({id(job) for job, _ in engine._chunks}) == len(engine._chunks)
        assert running.growth(engine._jump) <= engine.blocks.free
        assert engine.inside <= self.case.how["limit"]
        assert (engine.end == np.inf) == (engine.inside == 0), "idle with work, or busy without"
        self.held(engine)

    def committed(self, engine: Engine) -> None:
        """After steps: who is where, and what each holds."""
        self.steps += 1
        assert self.steps < MOST_STEPS
        assert engine.running.count == len(engine.running.jobs)
        assert engine.running.count + len(engine.reading) <= engine.replica.seats
        self.held(engine)
        loop, places = self.loop, []
        for each in loop.engines:
            places += [*each.running.jobs.values(), *each.reading, *each.waiting]
        places += [*loop.gateway.line, *loop._jobs.values()]
        requests = [job.request for job in places]
        assert len(set(requests)) == len(requests)
        assert loop._gone + len(requests) == loop._next

    def held(self, engine: Engine) -> None:
        """Free blocks and those that requests need for what they have are all that there are."""
        replica, blocks = engine.replica, engine.blocks
        jobs = [*engine.running.jobs.values(), *engine.reading]
        needs = [replica.blocks_of(job.prompt, job.left) for job in engine.reading]
        for job in engine.running.jobs.values():
            stored = job.prompt + int(job.pace * (engine.running.step - job.joined) + 1e-6)
            whole = replica.blocks_of(job.prompt, job.left + 1 if not job.preempted else job.left)
            needs.append(replica.blocks_of(stored, 0) if replica.lazy else job.nameless + len(job.names))
            if not replica.lazy and not replica.rereads and replica.grows:
                assert abs(needs[-1] - whole) <= 1
        names = Counter(name for job in jobs for name in job.names)
        shared = sum(names.values()) - len(names)
        assert blocks.free + sum(needs) - shared == blocks.total
        assert 0 <= blocks.free <= blocks.total
        assert all(not job.names and not job.nameless for job in engine.waiting)
        if isinstance(blocks, CachedBlocks):
            self.kept(blocks, names)

    def kept(self, blocks: CachedBlocks, names: Counter[int]) -> None:
        """Every block is blank, kept for another reader, or held; what is kept is what nobody holds."""
        assert blocks._blank >= 0
        assert blocks._blank + sum(blocks._kept.values()) == blocks.free
        assert {name: holders for name, holders in blocks._held.items() if holders} == dict(names)
        assert {name for name, holders in blocks._held.items() if not holders} == {n for n in blocks._kept if n >= 0}

    def run(self) -> Outcome:
        self.loop.run(None, None)
        found = self.loop.outcome(0)
        self.ended(found)
        return found

    def ended(self, found: Outcome) -> None:
        """Every request has one end, and what it asked for."""
        table, how = found.requests, self.case.how
        assert set(found.state.tolist()) <= {DONE, TOO_LONG, REJECTED}
        assert self.loop._gone == len(table)
        fits = [self.case.replicas[0].fits(*pair) for pair in zip(table.isl.tolist(), table.osl.tolist(), strict=True)]
        assert ((found.state == TOO_LONG) == ~np.array(fits)).all()
        assert how["over"] == "reject" or not (found.state == REJECTED).any()
        served = found.served
        assert (found.first[served] >= table.arrival[served]).all()
        assert (found.end[served] >= found.first[served]).all()
        assert np.isnan(found.end[~served]).all()
        assert np.isnan(found.first[~served]).all()
        for request in np.flatnonzero(served).tolist():
            # A draft that is cut short by a preemption has a broken number of tokens, which goes to the next step.
            slack = found.preempted[request] * (self.case.replicas[0].accept is not None) + 1e-6
            assert abs(self.tokens[request] - table.osl[request]) <= slack
        assert (found.cached[served] < table.isl[served]).all() or self.case.pool is not None
        for engine in self.loop.engines:
            assert engine.blocks.free == engine.blocks.total
            assert engine.inside == 0
        assert not self.loop.gateway.line
        self.times(found)

    def times(self, found: Outcome) -> None:
        """Time integrals are those of the requests."""
        inside = float((found.end - found.requests.arrival)[found.served].sum())
        assert abs(found.area - inside) <= 1e-9 * max(inside, 1.0)
        assert found.busy <= inside - found.elsewhere + 1e-6
        assert found.fullest <= found.blocks
        assert all(before <= after for before, after in pairwise(found.line.time.tolist()))


@WORKLOADS
@given(cases())
def test_every_request_is_served_once_and_nothing_is_lost(case: Case) -> None:
    found, again = Auditor(case).run(), Auditor(case).run()
    for column in ("state", "first", "end", "cached", "preempted", "replica"):
        assert np.array_equal(getattr(found, column), getattr(again, column), equal_nan=column in ("first", "end"))


@WORKLOADS
@given(cases())
def test_a_jump_is_its_steps(case: Case) -> None:
    """With step times linear in context: the same requests at the same times on the same replicas."""
    jumped, stepped = Auditor(case).run(), Auditor(case, single=True).run()
    assert stepped.steps >= jumped.steps
    for column in ("state", "cached", "preempted", "replica"):
        assert np.array_equal(getattr(jumped, column), getattr(stepped, column)), column
    for column in ("first", "end"):
        assert np.allclose(getattr(jumped, column), getattr(stepped, column), rtol=1e-9, atol=1e-9, equal_nan=True)
    for total in ("area", "busy"):
        assert np.isclose(getattr(jumped, total), getattr(stepped, total), rtol=1e-9, atol=1e-9)
