"""A continuous-batching engine, request by request: waiting, reading, running and preempted requests of one replica.

Each step gives every running request a token and fills the rest of the token budget with prompts, first come, first
served. While nothing joins, leaves or runs out of blocks, steps differ only in their context: they are advanced in one
jump. What a step takes comes from `StepTimes`, the clock of the plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil, inf

from planner.simulate.blocks import Blocks
from planner.simulate.job import Job
from planner.simulate.named import Named
from planner.simulate.replica import Replica
from planner.simulate.seats import Seats


class Engine:
    """One replica.

    Attributes:
        now: the last step boundary [s]; end: when the planned steps end [s] (inf = idle).
        waiting, reading: requests that are not admitted, and those whose prompts are being read.
        running: those that decode.
        ended, begun: requests that ended or emitted their first token at `now`: as steps were committed or, of those whose
            prompts were read elsewhere, as the next ones were planned. Whoever puts them down empties both.
        preemptions: times that a request had to leave; hit_tokens, read_tokens: prompt tokens found and computed.
        busy, filled: time integrals of admitted requests and of held blocks [s]; fullest: most blocks ever held.
    """

    def __init__(self, replica: Replica, blocks: Blocks, running: Seats, named: Named) -> None:
        """An idle engine.

        Args:
            replica: seats, budget, step times.
            blocks: its cache.
            running: its running requests, none yet.
            named: names of a request's blocks.
        """
        self.replica, self.blocks, self.running, self._named = replica, blocks, running, named
        self.times = replica.steps
        self.now, self.end = 0.0, inf
        self.waiting: deque[Job] = deque()
        self.reading: deque[Job] = deque()
        self.ended: list[Job] = []
        self.begun: list[int] = []
        self.preemptions = self.hit_tokens = self.read_tokens = self.fullest = 0
        self.busy = self.filled = 0.0
        self._order = 0
        self._first = replica.policy == "decode-first"
        self._whole = replica.policy == "static"
        self._rest()

    def _rest(self) -> None:
        """Nothing is planned."""
        self._jump, self._extra, self._batch = 0, 0.0, 0
        self._chunks: list[tuple[Job, int]] = []

    @property
    def inside(self) -> int:
        """Requests that it has been given and not ended."""
        return self.running.count + len(self.reading) + len(self.waiting)

    # --- what comes in ---------------------------------------------------------------------------------------------

    def add(self, job: Job, at: float) -> bool:
        """Take a request; returns whether the planned steps changed, so that `end` must be read again."""
        blocked = bool(self.waiting) or self.running.count + len(self.reading) >= self.replica.seats
        self.waiting.append(job)
        if self.end == inf:
            self.now = max(self.now, at)
            self.plan()
            return True
        if blocked or self._chunks or self._whole:
            return False
        return self._cut(at)

    def _cut(self, at: float) -> bool:
        """End the jump at the first boundary from `at` on; returns whether that is sooner than planned."""
        if self._jump <= 1:
            return False
        gone, whole = at - self.now - self._extra, self.end - self.now - self._extra
        steps = max(1, min(self._jump, ceil(self._jump * gone / whole)))
        while steps < self._jump and self._taken(steps) < gone:
            steps += 1
        while steps > 1 and self._taken(steps - 1) >= gone:
            steps -= 1
        if steps == self._jump:
            return False
        self._jump = steps
        self.end = self.now + self._extra + self._taken(steps)
        return True

    def drain(self, at: float) -> list[Job]:
        """The engine fails: every request that it held, in order of arrival at it."""
        if self.end < inf:
            self._spend(at - self.now, self.running.count + len(self.reading), 0)
        lost = [*self.running.jobs.values(), *self.reading, *self.waiting]
        self.waiting.clear()
        self.reading.clear()
        self.blocks.clear()
        self.running.clear()
        self._rest()
        self.end = inf
        return lost

    # --- the next steps --------------------------------------------------------------------------------------------

    def plan(self) -> None:
        """Decide what the next steps hold and when they end."""
        running = self.running
        self._extra = 0.0
        self._make_room()
        if self.waiting:
            self._admit()
        self._chunks = chunks = self._share_budget() if self.reading else []
        decodes = running.count > 0 and (self._first or not chunks)
        if chunks:
            self._jump = 1 if decodes else 0
            self.end = self.now + self._mixed(chunks, decodes) + self._extra
        elif decodes:
            self._jump = running.jump(self.blocks.free)
            self.end = self.now + self._taken(self._jump) + self._extra
        else:
            self._jump, self.end = 0, inf

    def _taken(self, steps: int) -> float:
        """Time of so many decode steps from here on [s]; nearly linear in context, so the middle one counts."""
        running = self.running
        batch = self._batch if self._whole else running.count
        return steps * self.times.decode(batch, running.context((steps - 1) / 2))

    def _mixed(self, chunks: list[tuple[Job, int]], decodes: bool) -> float:
        """Time of a step that reads chunks of prompts, beside the running requests or alone [s]."""
        times, count = self.times, len(chunks)
        tokens, attention = sum([size for _, size in chunks]), sum([job.part(size) for job, size in chunks])
        if times.ways > 1:
            attention *= -(-count // times.ways) / count
        if not decodes:
            return times.reading(0, tokens, count) + attention
        return times.reading(self.running.count, tokens, count) + attention + self._taken(1)

    # --- who gets in -----------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Preempt the newest requests until every running one has the blocks of its next step."""
        running = self.running
        while running.count and running.lacks(1, self.blocks.free) and running.count + len(self.reading) > 1:
            self._preempt()

    def _preempt(self) -> None:
        """Put the newest request back to the head of the line."""
        self.preemptions += 1
        newest = self.running.newest()
        if self.reading and self.reading[-1].order > newest.order:
            job = self.reading.pop()
            self._give(job, 0)
        else:
            job = newest
            stored = self.running.stored(job)
            grown = self.running.leave(job)
            job.left = self.running.left(job)
            held = job.nameless + grown
            self._give(job, grown)
            swaps = self.replica.preempt == "swap"
            job.prompt = stored if swaps else stored + 1
            job.aside = held if swaps else 0
            job.ready = job.ready and not self.replica.rereads
            self._extra += job.aside * self.replica.swap_seconds
        job.preempted += 1
        job.done = job.cached = 0
        self.waiting.appendleft(job)

    def _give(self, job: Job, grown: int) -> None:
        """Give back all blocks of a request: those of its admission, and those that it took since."""
        self.blocks.give(job.nameless + grown, job.names)
        job.names, job.nameless = [], 0

    def _admit(self) -> None:
        """Admit waiting requests, first come, first served, while seats, budget and blocks last."""
        replica, waiting, running = self.replica, self.waiting, self.running
        if self._whole and (running.count or self.reading):
            return
        budget = self._budget() - sum(min(job.prompt - job.done, replica.chunk) for job in self.reading)
        ahead = running.growth(1)
        while waiting and running.count + len(self.reading) < replica.seats:
            job = waiting[0]
            joins = job.ready or job.aside > 0
            if budget <= 0 and not (joins or self._whole):
                break
            if not self._place(job, ahead + (self._next_growth(job) if joins else 0)):
                break
            waiting.popleft()
            self._order += 1
            job.order = self._order
            if joins:
                self._extra += job.aside * replica.swap_seconds
                self._join(job, emits=not job.aside)
                job.aside, ahead = 0, running.growth(1)
                budget -= replica.step_tokens if self._first else 0
            else:
                self.reading.append(job)
                budget -= min(job.prompt - job.done, replica.chunk)
        self._batch = running.count + len(self.reading)

    def _budget(self) -> int:
        """Prompt tokens that a step has room for beside the running requests."""
        beside = self.running.count * self.replica.step_tokens if self._first else 0
        return self.replica.budget - beside

    def _place(self, job: Job, ahead: int) -> bool:
        """Take the blocks of a request's prompt if so many are left for the next step; returns whether there were."""
        replica, blocks = self.replica, self.blocks
        need = replica.blocks_of(job.prompt, job.left)
        names = self._named(job.request, replica.block, job.prompt)
        hits = blocks.hits(names if len(names) * replica.block < job.prompt else names[:-1]) if names else 0
        missing = blocks.missing(names, hits) if hits else 0
        if need - hits + missing > blocks.free - ahead:
            return False
        job.shareable, job.names = names, list(names[:hits])
        blocks.hold(job.names)
        job.nameless = need - hits
        blocks.take(job.nameless)
        if job.aside:
            return True
        job.cached = job.done = hits * replica.block
        if job.found < 0:
            job.found = job.cached
        if not job.ready:
            job.attention = self.times.attention(job.prompt - job.cached, job.cached)
        return True

    def _next_growth(self, job: Job) -> int:
        """Blocks that a request which joins the running ones takes at most in its first step there."""
        replica = self.replica
        if not replica.lazy:
            return 0
        gained = min(job.left if job.aside else job.left - 1, replica.step_tokens)
        return replica.blocks_of(job.prompt + gained, 0) - replica.blocks_of(job.prompt, 0)

    def _share_budget(self) -> list[tuple[Job, int]]:
        """Prompt tokens of the next step: (request, tokens)."""
        most, budget = self.replica.chunk, self._budget()
        chunks = []
        for job in self.reading:
            size = min(job.prompt - job.done, most, budget)
            if size <= 0:
                break
            chunks.append((job, size))
            budget -= size
        return chunks

    # --- steps that have been taken --------------------------------------------------------------------------------

    def commit(self) -> None:
        """Take the planned steps: tokens, blocks, first tokens and ends; then the next may be planned."""
        taken, there = self.end - self.now, self.running.count + len(self.reading)
        grown, done = self.running.advance(self._jump) if self._jump else (0, [])
        self._spend(taken, there, grown)
        self.now = self.end
        if grown:
            self.blocks.take(grown)
        for job, more in done:
            job.nameless += more
            if job.shareable:
                self._name(job, self._named(job.request, self.replica.block, self.running.stored(job)))
            self._finish(job)
        self._jump = 0
        if self._chunks:
            self._read()

    def _spend(self, taken: float, there: int, grown: int) -> None:
        """Steps took so long [s] while so many requests were there; so many blocks came to those held, evenly."""
        self.busy += taken * there
        held = self.blocks.total - self.blocks.free
        self.filled += taken * (held + 0.5 * grown)
        self.fullest = max(self.fullest, held + grown)

    def _read(self) -> None:
        """Chunks of prompts have been read; those whose last it was decode from here on."""
        whole = []
        for job, size in self._chunks:
            job.done += size
            self.read_tokens += size
            if job.done >= job.prompt:
                whole.append(job)
        self._chunks = []
        for job in whole:
            self.reading.remove(job)
            self.hit_tokens += job.cached
            self._join(job, emits=True)

    def _join(self, job: Job, *, emits: bool) -> None:
        """A request whose prompt is in the cache decodes from here on; `emits`: its prompt just gave it a token."""
        if job.shareable:
            self._name(job, job.shareable)
        if emits:
            job.left -= 1
            if not job.begun:
                job.begun = True
                self.begun.append(job.request)
        if job.left > 0:
            self.running.join(job)
        else:
            self._finish(job)

    def _name(self, job: Job, names: Sequence[int]) -> None:
        """Give a request's full blocks their names, so that others find them."""
        got = self.blocks.name(names[len(job.names) :])
        job.names.extend(got)
        job.nameless -= len(got)

    def _finish(self, job: Job) -> None:
        """A request ends; its blocks are given back, and kept where they have names."""
        self._give(job, 0)
        self.ended.append(job)
