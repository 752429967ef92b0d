"""Engines that do not look at new requests before every step.

SGLang can be told to look for new requests only every so many decode steps (`--scheduler-recv-interval`); TensorRT-LLM can
be told to hold prompts back until enough of them share a step, for so many steps at most (`batch_wait_max_tokens_ratio`,
`batch_wait_timeout_iters`). Both spare running requests an interruption and make new ones wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.simulate.blocks import Blocks
from planner.simulate.engine import Engine, Named
from planner.simulate.job import Job
from planner.simulate.replica import Replica
from planner.simulate.seats import Seats


@dataclass(frozen=True)
class Patience:
    """How long new requests may be left waiting while others decode.

    Attributes:
        steps: most decode steps.
        tokens: prompt tokens that end the wait; None = only the steps do, and they are counted whether anybody waits or not.
    """

    steps: int
    tokens: int | None = None


class PatientEngine(Engine):
    """An engine whose new requests wait outside until their turn comes."""

    def __init__(self, replica: Replica, blocks: Blocks, running: Seats, named: Named, patience: Patience) -> None:
        """An idle engine; `patience`: how long new requests are left waiting."""
        self._patience = patience
        self._late: list[Job] = []
        self._since = 0
        super().__init__(replica, blocks, running, named)

    @property
    def inside(self) -> int:
        """Requests that it has been given and not ended."""
        return super().inside + len(self._late)

    def add(self, job: Job, at: float) -> bool:
        """Take a request; returns whether the planned steps changed."""
        if not self.running.count:
            return super().add(job, at)
        self._late.append(job)
        return not self._chunks and self._cut(at)

    def drain(self, at: float) -> list[Job]:
        """The engine fails: every request that it held."""
        lost = [*super().drain(at), *self._late]
        self._late.clear()
        return lost

    def plan(self) -> None:
        """Let new requests in where it is time, and decide what the next steps hold."""
        if self._late and self._lets_in():
            self.waiting.extend(self._late)
            self._late.clear()
            self._since = 0
        super().plan()
        steps = self._patience.steps - self._since
        if self._late and self._jump > steps and not self._chunks:
            self._jump = max(steps, 1)
            self.end = self.now + self._extra + self._taken(self._jump)

    def _lets_in(self) -> bool:
        """Whether new requests have waited long enough."""
        enough = self._patience.tokens
        full = enough is not None and sum(job.prompt for job in self._late) + self.running.count >= enough
        return full or not self.running.count or self._since >= self._patience.steps

    def commit(self) -> None:
        """Take the planned steps, and count them."""
        steps, read = self._jump, bool(self._chunks)
        super().commit()
        if self._patience.tokens is not None:
            self._since = self._since + steps if self._late else 0
        elif read:
            self._since = self._patience.steps
        elif self._late:
            self._since += steps
        else:
            self._since = (self._since + steps) % self._patience.steps
