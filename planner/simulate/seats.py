"""The running requests of an engine: who ends when, how much context they have, how many blocks they take.

All of them gain a token a step, so their sums follow from the step count and nothing is touched while they run.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from planner.simulate.job import Job


class Seats:
    """Requests that decode, one token a step each.

    Attributes:
        step: decode steps since the start; count: running requests; jobs: the same by order of admission.
    """

    def __init__(self, block: int, slots: int, *, grows: bool) -> None:
        """Nobody runs.

        Args:
            block: tokens of a cache block.
            slots: tokens that each keeps room for beyond what it has (drafts).
            grows: whether blocks are taken as tokens come; otherwise all were taken at admission.
        """
        self.block, self.slots, self.grows = block, slots, grows
        self.step = 0
        self.clear()

    def clear(self) -> None:
        """Nobody runs."""
        self.count = 0
        self.jobs: dict[int, Job] = {}
        self._base: float = 0
        self._phases = [0] * self.block
        self._ends: list[tuple[int, int]] = []

    # --- sums ------------------------------------------------------------------------------------------------------

    def context(self, ahead: float) -> float:
        """Mean tokens behind a running request so many steps from now."""
        return self._base / self.count + self.step + ahead + 1.0 - self.slots

    def growth(self, steps: int) -> int:
        """Blocks that all of them take in so many steps."""
        if not self.grows or not self.count:
            return 0
        # A block is taken in the step at which all blocks are full, which each request comes by once in a block.
        block, phases = self.block, self._phases
        if steps == 1:
            return phases[-self.step % block]
        rest = steps % block
        return self.count * (steps // block) + sum([phases[-at % block] for at in range(self.step, self.step + rest)])

    def lacks(self, steps: int, free: int) -> bool:
        """Whether so many free blocks are too few for so many steps."""
        return self._bound(steps) > free and self.growth(steps) > free

    def jump(self, free: int) -> int:
        """Steps in which nobody ends before the last, and that the free blocks last for; at least one."""
        most = self._ends[0][0] - self.step
        if not self.lacks(most, free):
            return most
        low, high = 1, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.growth(middle) <= free else (low, middle)
        return low

    def _bound(self, steps: int) -> int:
        """Blocks that they cannot take more of in so many steps."""
        return self.count * (steps // self.block + 1)

    # --- who runs --------------------------------------------------------------------------------------------------

    def join(self, job: Job) -> None:
        """A request with `prompt` tokens in the cache and `left` to come runs."""
        job.joined = self.step
        job.ends = self.step + self._steps(job)
        job.base = job.prompt + self.slots - self.step
        self._sum(job, 1)
        self.jobs[job.order] = job
        heappush(self._ends, (job.ends, job.order))

    def _steps(self, job: Job) -> int:
        """Steps that its tokens take."""
        return job.left

    def _sum(self, job: Job, sign: int) -> None:
        """Add it to the sums, or take it out."""
        self.count += sign
        self._base += sign * job.base
        self._phases[int(job.base) % self.block] += sign

    def _size(self, job: Job) -> int:
        """Blocks that its tokens take now."""
        return -(-int(self.stored(job) + self.slots) // self.block)

    def stored(self, job: Job) -> int:
        """Tokens that it has in the cache now; of one that left, what it had then."""
        return int(job.base + job.pace * min(self.step, job.ends)) - self.slots

    def left(self, job: Job) -> int:
        """Tokens still to come of one that leaves early."""
        return job.ends - self.step

    def newest(self) -> Job:
        """The one that was admitted last; others may have joined after it, whose prompts were longer."""
        return self.jobs[max(self.jobs)]

    def leave(self, job: Job) -> int:
        """It no longer runs; returns the blocks that it took since it was admitted."""
        del self.jobs[job.order]
        self._sum(job, -1)
        while self._ends and self._ends[0][1] not in self.jobs:
            heappop(self._ends)
        return self._size(job) - -(-(job.prompt + self.slots) // self.block) if self.grows else 0

    def advance(self, steps: int) -> tuple[int, list[tuple[Job, int]]]:
        """Take steps; returns blocks taken, and those who end with the blocks that each took since its admission."""
        grown = self.growth(steps)
        self.step += steps
        return grown, self._done()

    def _done(self) -> list[tuple[Job, int]]:
        """Those who have all their tokens leave."""
        done = []
        while self._ends and self._ends[0][0] <= self.step:
            job = self.jobs[self._ends[0][1]]
            done.append((job, self.leave(job)))
        return done


class DraftSeats(Seats):
    """Requests that gain a varying number of tokens a step, because a draft proposes several and some are accepted."""

    def __init__(self, block: int, slots: int, *, grows: bool, steps: Callable[[int], int]) -> None:
        """Nobody runs; `steps`: draws how many steps so many tokens take."""
        super().__init__(block, slots, grows=grows)
        self._draw = steps

    def clear(self) -> None:
        """Nobody runs."""
        super().clear()
        self._pace = 0.0
        self._held = 0

    def context(self, ahead: float) -> float:
        """Mean tokens behind a running request so many steps from now."""
        return (self._base + self._pace * (self.step + ahead)) / self.count + 1.0 - self.slots

    def growth(self, steps: int) -> int:
        """Blocks that all of them take in so many steps."""
        if not self.grows or not self.count:
            return 0
        step = self.step + steps
        return sum([self._blocks_of(job, step) for job in self.jobs.values()]) - self._held

    def advance(self, steps: int) -> tuple[int, list[tuple[Job, int]]]:
        """Take steps; returns blocks taken, and those who end with the blocks that each took since its admission."""
        grown = self.growth(steps)
        self.step += steps
        self._held += grown
        return grown, self._done()

    def _blocks_of(self, job: Job, step: int) -> int:
        """Blocks of one at a step."""
        return -(-int(job.base + job.pace * step + 1e-6) // self.block)

    def _bound(self, steps: int) -> int:
        """Blocks that they cannot take more of in so many steps."""
        return self.count + int(self._pace * steps) // self.block + 1

    def _steps(self, job: Job) -> int:
        """Steps that its tokens take, drawn at random."""
        steps = self._draw(job.left)
        job.pace = job.left / steps
        return steps

    def join(self, job: Job) -> None:
        """A request with `prompt` tokens in the cache and `left` to come runs."""
        job.joined = self.step
        job.ends = self.step + self._steps(job)
        job.base = job.prompt + self.slots - job.pace * self.step
        self._sum(job, 1)
        self.jobs[job.order] = job
        heappush(self._ends, (job.ends, job.order))

    def _sum(self, job: Job, sign: int) -> None:
        """Add it to the sums, or take it out."""
        self.count += sign
        self._base += sign * job.base
        self._pace += sign * job.pace
        self._held += sign * self._blocks_of(job, self.step)

    def _size(self, job: Job) -> int:
        """Blocks that its tokens take now."""
        return self._blocks_of(job, min(self.step, job.ends))

    def stored(self, job: Job) -> int:
        """Tokens that it has in the cache now; of one that left, what it had then."""
        return int(job.base + job.pace * min(self.step, job.ends) + 1e-6) - self.slots

    def left(self, job: Job) -> int:
        """Tokens still to come of one that leaves early."""
        return max(1, job.left - int(job.pace * (self.step - job.joined) + 1e-6))
