"""Engines that do not look at new requests before every step.

SGLang can be told to look for new requests only every so many decode steps (`--scheduler-recv-interval`); TensorRT-LLM can
be told to hold prompts back until enough of them share a step, for so many steps at most (`batch_wait_max_tokens_ratio`,
`batch_wait_timeout_iters`). Both spare running requests an interruption and make new ones wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.simulate.blocks import Blocks
from planner.simulate.engine import Engine
from planner.simulate.job import Job
from planner.simulate.named import Named
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
        first = not self._late
        self._late.append(job)
        changed = not self._chunks and self._cut(at)
        if first and self._patience.tokens is not None:
            self._since = -self._jump
        return changed

    def drain(self, at: float) -> list[Job]:
        """The engine fails: every request that it held."""
        lost = [*super().drain(at), *self._late]
        self._late.clear()
        return lost

    def plan(self) -> None:
        """Let new requests in where it is time, and decide what the next steps hold."""
        due = self._since >= self._patience.steps
        if self._late and (due or self._enough()):
            self.waiting.extend(self._late)
            self._late.clear()
            due = True
        self._since = 0 if due else self._since
        super().plan()
        steps = self._patience.steps - self._since
        if self._late and self._jump > steps and not self._chunks:
            self._jump = steps
            self.end = self.now + self._extra + self._taken(steps)

    def _enough(self) -> bool:
        """Whether new requests need not wait any longer: nobody decodes, or they have the tokens that end the wait."""
        enough = self._patience.tokens
        full = enough is not None and sum(job.prompt for job in self._late) + self.running.count >= enough
        return full or not self.running.count

    def commit(self) -> None:
        """Take the planned steps, and count them: from the last look on, or while somebody waits."""
        steps, read = self._jump, bool(self._chunks)
        super().commit()
        if self._patience.tokens is not None:
            self._since = self._since + steps if self._late else 0
        elif read:
            self._since = self._patience.steps
        elif steps:
            self._since = (self._since + steps - 1) % self._patience.steps + 1
