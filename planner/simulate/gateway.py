"""What stands in front of the replicas: which one a request goes to, how many each is given, who waits or is turned away."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from planner.simulate.engine import Engine
from planner.simulate.job import Job
from planner.simulate.requests import NONE, Requests
from planner.simulate.traffic import Router

DRAWS = 4096
"""Random numbers drawn at a time."""


class Gateway:
    """Routes requests to engines under a limit of requests in flight.

    Attributes:
        line: requests that wait because every replica has as many as it may.
    """

    def __init__(self, engines: list[Engine], router: Router, limit: int, table: Requests, seed: int) -> None:
        """An empty gateway.

        Args:
            engines: replicas; one that is down has no place among `up`.
            router: how one is picked.
            limit: most requests that a replica is given at a time.
            table: the requests, whose sessions and groups affinity goes by.
            seed: of its choices.
        """
        self.engines, self.limit = engines, limit
        self.up = list(range(len(engines)))
        self.line: deque[Job] = deque()
        self._next = 0
        self._chance = np.random.default_rng(seed)
        self._draws: list[float] = []
        self._home: Callable[[int], int] = _homes(table)
        self._pick = {
            "round-robin": self._in_turn,
            "least-loaded": self._least,
            "two-choices": self._of_two,
            "affinity": self._home_first,
        }[router]

    def place(self, job: Job) -> int:
        """The replica that a request goes to; −1 when none may take it."""
        if not self.up:
            return -1
        if len(self.up) == 1:
            only = self.up[0]
            return only if self.engines[only].inside < self.limit else -1
        return self._pick(job)

    def _free(self) -> list[int]:
        """Replicas that may take one more."""
        return [at for at in self.up if self.engines[at].inside < self.limit]

    def _least(self, job: Job) -> int:
        """The one with fewest requests, the first of equals."""
        del job
        best, fewest = -1, self.limit
        for at in self.up:
            inside = self.engines[at].inside
            if inside < fewest:
                best, fewest = at, inside
        return best

    def _in_turn(self, job: Job) -> int:
        """The next one in turn that may take it."""
        del job
        count = len(self.engines)
        for ahead in range(count):
            at = (self._next + ahead) % count
            if at in self.up and self.engines[at].inside < self.limit:
                self._next = at + 1
                return at
        return -1

    def _of_two(self, job: Job) -> int:
        """The emptier of two different ones picked at random; any other where both are full."""
        up, first = self.up, self._random(len(self.up))
        second = (first + 1 + self._random(len(up) - 1)) % len(up)
        best = min(up[first], up[second], key=lambda at: self.engines[at].inside)
        return best if self.engines[best].inside < self.limit else self._least(job)

    def _home_first(self, job: Job) -> int:
        """The one that has seen the session or group before, as long as it may take it; else the emptiest."""
        home = self._home(job.request)
        if home == NONE:
            return self._least(job)
        at = self.up[home % len(self.up)]
        return at if self.engines[at].inside < self.limit else self._least(job)

    def _random(self, most: int) -> int:
        """A whole number below another at random."""
        if not self._draws:
            self._draws = self._chance.random(DRAWS).tolist()
        return int(self._draws.pop() * most)


def _homes(table: Requests) -> Callable[[int], int]:
    """What affinity goes by: the session, else the group, else the first name of a prompt; scattered over replicas."""
    if table.hashes is not None:
        first, ids = table.hashes.start.tolist(), table.hashes.ids.tolist()
        return lambda request: _scattered(ids[first[request]]) if first[request] < first[request + 1] else NONE
    session, group = table.session.tolist(), table.group.tolist()

    def home(request: int) -> int:
        if session[request] != NONE:
            return _scattered(2 * session[request] + 1)
        return _scattered(2 * group[request]) if group[request] != NONE else NONE

    return home


def _scattered(number: int) -> int:
    """A number that looks random but is always the same."""
    return (number * 2654435761 + 12345) % (1 << 32) >> 8
