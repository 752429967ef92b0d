"""The event loop: arrivals, steps of engines, failures, in the order of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf, nan

import numpy as np

from planner.optimise.answer import Cancelled, Progress
from planner.simulate.engine import Engine
from planner.simulate.gateway import Gateway
from planner.simulate.job import Job
from planner.simulate.line import Watch
from planner.simulate.outcome import DONE, LOST, REJECTED, TOO_LONG, Outcome
from planner.simulate.readers import Readers
from planner.simulate.requests import Requests
from planner.simulate.traffic import Over

STEP, READY, FAIL, REPAIR = range(4)
"""Kinds of events beside arrivals."""

REPORTED = 1000
"""Requests that end between two reports of progress."""


@dataclass(frozen=True)
class Failure:
    """One replica that fails: which, when and for how long [s]."""

    replica: int
    at: float
    repair: float


class Loop:
    """One run."""

    def __init__(
        self,
        table: Requests,
        engines: list[Engine],
        gateway: Gateway,
        readers: Readers | None,
        over: Over,
        clients: int | None = None,
        failure: Failure | None = None,
        watcher: Callable[[Engine], None] | None = None,
    ) -> None:
        """A run that has not begun.

        Args:
            table: what arrives.
            engines, gateway: who serves it.
            readers: who reads prompts elsewhere; None = the engines do.
            over: what becomes of requests that the gateway may give to no replica.
            clients: requests in flight of a closed loop, which ignores arrival times; None = an open run.
            failure: a replica that fails.
            watcher: called with an engine after each of its committed steps.
        """
        self.table, self.engines, self.gateway, self.readers = table, engines, gateway, readers
        self._over, self._clients, self._watcher = over, clients, watcher
        count = len(table)
        self._isl, self._osl = table.isl.tolist(), table.osl.tolist()
        self._arrival = table.arrival.tolist() if clients is None else [0.0] * count
        self._first, self._end = [nan] * count, [nan] * count
        self._state = bytearray([LOST]) * count
        self._cached, self._preempted, self._replica = [0] * count, [0] * count, [-1] * count
        self._events: list[tuple[float, int, int, int]] = []
        self._serial = 0
        self._jobs: dict[int, Job] = {}
        self._watch = Watch()
        self._next = 0
        self._gone = self._steps = self._restarted = 0
        self._elsewhere, self._filling = 0.0, False
        if failure is not None:
            self._push(failure.at, FAIL, failure.replica)
            self._push(failure.at + failure.repair, REPAIR, failure.replica)

    def _push(self, at: float, kind: int, what: int) -> None:
        """Put an event in the line."""
        self._serial += 1
        heappush(self._events, (at, self._serial, kind, what))

    # --- the loop --------------------------------------------------------------------------------------------------

    def run(self, on_progress: Callable[[Progress], None] | None, cancelled: Callable[[], bool] | None) -> None:
        """Serve everything.

        Raises:
            Cancelled: when `cancelled` says so.
        """
        count, arrival, events = len(self.table), self._arrival, self._events
        told = 0
        ahead = count if self._clients is None else min(self._clients, count)
        self._limit = ahead
        while self._gone < count:
            at = arrival[self._next] if self._next < self._limit else inf
            if events and events[0][0] < at:
                self._event()
            elif at < inf:
                self._arrive(self._next, at)
                self._next += 1
            else:
                break
            if self._gone - told >= REPORTED:
                told = self._gone
                if cancelled is not None and cancelled():
                    raise Cancelled("the simulation was stopped")
                if on_progress is not None:
                    on_progress(Progress(self._gone, count, self._steps, None))

    def _event(self) -> None:
        """Handle the next event."""
        at, _, kind, what = heappop(self._events)
        if kind == STEP:
            engine = self.engines[what]
            if engine.end == at:
                self._commit(what, engine)
        elif kind == READY:
            self._dispatch(self._jobs.pop(what), at)
        elif kind == FAIL:
            self._fail(what, at)
        else:
            self.gateway.up = sorted({*self.gateway.up, what})
            self._refill(at)

    def _arrive(self, request: int, at: float) -> None:
        """A request arrives."""
        self._watch.change(at, 1)
        prompt, output = self._isl[request], self._osl[request]
        if not self.engines[0].replica.fits(prompt, output):
            self._leave(request, at, TOO_LONG)
            return
        job = Job(request, prompt, output, ready=self.readers is not None)
        if self.readers is None:
            self._dispatch(job, at)
        else:
            self._have_read(job, at, self.readers)

    def _have_read(self, job: Job, at: float, readers: Readers) -> None:
        """A request's prompt is read elsewhere before a replica is given it."""
        ready = readers.read(at, job.prompt)
        self._elsewhere += ready - at
        self._jobs[job.request] = job
        self._push(ready, READY, job.request)

    def _dispatch(self, job: Job, at: float) -> None:
        """Give a request to a replica, or let it wait, or turn it away."""
        gateway = self.gateway
        if gateway.line and self._over == "queue":
            gateway.line.append(job)
            return
        where = gateway.place(job)
        if where >= 0:
            self._give(job, where, at)
        elif self._over == "queue" or not gateway.up:
            gateway.line.append(job)
        else:
            self._leave(job.request, at, REJECTED)

    def _give(self, job: Job, where: int, at: float) -> None:
        """Give a request to a replica."""
        engine = self.engines[where]
        self._replica[job.request] = where
        if engine.add(job, at):
            self._planned(where, engine)

    def _await(self, where: int, engine: Engine) -> None:
        """Wait for the end of a replica's planned steps; what was waited for before is ignored when it comes."""
        if engine.end < inf:
            self._serial += 1
            heappush(self._events, (engine.end, self._serial, STEP, where))

    def _commit(self, where: int, engine: Engine) -> None:
        """A replica's planned steps are over."""
        engine.commit()
        self._steps += 1
        now = engine.now
        ended = self._told(engine)
        if self._watcher is not None:
            self._watcher(engine)
        if ended and self.gateway.line:
            self._refill(now)
        engine.plan()
        self._planned(where, engine)
        if self._watch.due(now):
            self._note(now)

    def _planned(self, where: int, engine: Engine) -> None:
        """A replica has planned its next steps; requests whose prompts were read elsewhere may have begun or ended."""
        self._await(where, engine)
        if (engine.begun or engine.ended) and self._told(engine) and self.gateway.line:
            self._refill(engine.now)

    def _told(self, engine: Engine) -> bool:
        """Put down whose first token came and who ended; returns whether anybody ended."""
        now, ended = engine.now, engine.ended
        if engine.begun:
            for request in engine.begun:
                self._first[request] = now
            engine.begun = []
        if not ended:
            return False
        engine.ended = []
        for job in ended:
            self._end[job.request] = now
            self._cached[job.request], self._preempted[job.request] = max(job.found, 0), job.preempted
            self._leave(job.request, now, DONE)
        return True

    def _leave(self, request: int, at: float, state: int) -> None:
        """A request is done with; in a closed loop the next is sent."""
        self._state[request] = state
        if state == REJECTED:
            self._forget(at - self._arrival[request])
        self._gone += 1
        self._watch.change(at, -1)
        if self._clients is not None and self._limit < len(self.table):
            self._arrival[self._limit] = at
            self._limit += 1

    def _forget(self, inside: float) -> None:
        """A request is turned away after its prompt was read elsewhere for so long [s]: its time here is not counted."""
        self._watch.area -= inside
        self._elsewhere -= inside

    def _refill(self, at: float) -> None:
        """Give waiting requests to replicas that may take more; one that ends at once makes room for this same loop."""
        line = self.gateway.line
        if self._filling:
            return
        self._filling = True
        while line and (where := self.gateway.place(line[0])) >= 0:
            self._give(line.popleft(), where, at)
        self._filling = False

    def _note(self, now: float) -> None:
        """Keep a point of the state of all replicas."""
        running = waiting = used = total = 0
        for engine in self.engines:
            running += engine.running.count + len(engine.reading)
            waiting += len(engine.waiting)
            used += engine.blocks.total - engine.blocks.free
            total += engine.blocks.total
        self._watch.note(now, running, waiting + len(self.gateway.line), used / total)

    def _fail(self, where: int, at: float) -> None:
        """A replica fails: what it held starts again elsewhere, before all that was not let in yet."""
        gateway = self.gateway
        gateway.up = [each for each in gateway.up if each != where]
        again = [self._anew(lost) for lost in self.engines[where].drain(at)]
        self._restarted += len(again)
        if self.readers is None:
            gateway.line.extendleft(reversed(again))
            self._refill(at)
            return
        for job in again:
            self._have_read(job, at, self.readers)

    def _anew(self, lost: Job) -> Job:
        """A request that has lost its cache and its tokens."""
        request = lost.request
        self._first[request] = nan
        job = Job(request, self._isl[request], self._osl[request], ready=self.readers is not None)
        job.preempted = lost.preempted
        return job

    # --- what comes out --------------------------------------------------------------------------------------------

    def outcome(self, warm: int) -> Outcome:
        """What the run measured."""
        first, end = np.array(self._first), np.array(self._end)
        arrival = np.array(self._arrival)
        ends = end[np.isfinite(end)]
        engines = self.engines
        return Outcome(
            requests=replace(self.table, arrival=arrival),
            state=np.frombuffer(bytes(self._state), dtype=np.int8),
            first=first,
            end=end,
            ttft=first - arrival,
            cached=np.array(self._cached, dtype=np.int64),
            preempted=np.array(self._preempted, dtype=np.int64),
            replica=np.array(self._replica, dtype=np.int64),
            line=self._watch.line(),
            warm=warm,
            span=float(ends.max() - arrival.min()) if len(ends) else 0.0,
            area=self._watch.area,
            replicas=len(engines),
            steps=self._steps,
            blocks=engines[0].blocks.total,
            read=sum(engine.read_tokens for engine in engines),
            hit=sum(engine.hit_tokens for engine in engines),
            restarted=self._restarted,
            busy=sum(engine.busy for engine in engines),
            elsewhere=self._elsewhere,
            filled=sum(engine.filled for engine in engines),
            fullest=max(engine.fullest for engine in engines),
        )
