"""What a simulation measured: every request's times, and their percentiles, goodput and queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.simulate.requests import Requests, Seconds, Whole

DONE, REJECTED, TOO_LONG, LOST = range(4)
STATES: Final = ("done", "rejected", "too long", "not served")
"""What became of a request: served, turned away by the gateway, longer than the cache, or left when nothing served."""

WARM_UP: Final = 0.1
"""Share of an open run's requests, the first to arrive, that summaries leave out: they found an empty system."""

Small = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Line:
    """The state of all replicas over time, columns of the same length.

    Attributes:
        time: [s]; running, waiting: requests that decode or are read, and those in any line; used: share of the cache blocks
            that requests hold.
    """

    time: Seconds
    running: Seconds
    waiting: Seconds
    used: Seconds


@dataclass(frozen=True)
class Outcome:
    """A finished run; columns of one number a request, in the order of arrival.

    Attributes:
        requests: what arrived (under a closed loop `arrival` is when each was sent).
        state: what became of it, an index into `STATES`.
        first, end: when it had its first and its last token [s]; NaN where it had none.
        ttft: time to first token, front end included [s].
        cached: prompt tokens that the prefix cache served; preempted: how often it had to leave.
        replica: which one served it (−1: none).
        line: state of the replicas over time.
        warm: requests from this one on are counted in summaries.
        span: time from the first arrival to the last end [s].
        area: time integral of the requests in the system, those left out that were turned away, counted event by event [s].
        replicas: how many there were; steps: engine steps taken; blocks: cache blocks of one replica.
        read, hit: prompt tokens computed, and served by the prefix cache.
        restarted: requests that a failed replica held, and that began again.
        busy, elsewhere: time integrals of the requests that run or are read, and of those read away from the replicas [s].
        filled: time integral of the cache blocks that requests hold [s]; fullest: most that a replica ever held.
    """

    requests: Requests
    state: Small
    first: Seconds
    end: Seconds
    ttft: Seconds
    cached: Whole
    preempted: Whole
    replica: Whole
    line: Line
    warm: int
    span: float
    area: float
    replicas: int
    steps: int
    blocks: int
    read: int
    hit: int
    restarted: int = 0
    busy: float = 0.0
    elsewhere: float = 0.0
    filled: float = 0.0
    fullest: int = 0

    @property
    def served(self) -> npt.NDArray[np.bool_]:
        """Which requests had all their tokens."""
        return np.asarray(self.state == DONE)

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """Which requests summaries count: served, and not of the warm-up."""
        return np.asarray(self.served & (np.arange(len(self.state)) >= self.warm))

    @property
    def tpot(self) -> Seconds:
        """Time per output token after the first [s]; NaN for requests of one token."""
        more = self.requests.osl - 1
        return np.where(more > 0, (self.end - self.first) / np.maximum(more, 1), np.nan)

    @property
    def e2e(self) -> Seconds:
        """Time from arrival to the last token, front end included [s]."""
        return self.ttft + (self.end - self.first)
