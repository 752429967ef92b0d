"""Requests as a table: when each arrives, how long it is, and what it shares with others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

NONE = -1
"""A request that belongs to no group or session."""


@dataclass(frozen=True)
class Hashes:
    """Prompts named block by block, as some traces do: equal names are equal tokens behind equal beginnings.

    Attributes:
        start: shape (n + 1,), where each request's names begin in `ids`; ids: names; tokens: tokens of one block.
    """

    start: Whole
    ids: Whole
    tokens: int


@dataclass(frozen=True)
class Requests:
    """A table of requests in the order in which they arrive; every field is a column of the same length.

    Attributes:
        arrival: time since the first moment of the run, not falling [s].
        isl, osl: input and output tokens, at least one of each.
        group, shared: requests of one group begin with the same `shared` tokens (a system prompt); NONE and 0 without.
        session: requests of one session continue each other's text: what a turn has in common with the turns before it is
            all of them; NONE without.
        hashes: prompts named block by block; takes the place of groups and sessions. None for most.
    """

    arrival: Seconds
    isl: Whole
    osl: Whole
    group: Whole
    shared: Whole
    session: Whole
    hashes: Hashes | None = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self.arrival)

    @property
    def sharing(self) -> bool:
        """Whether any request may find a part of its prompt in the cache."""
        return self.hashes is not None or bool(np.any(self.group != NONE) or np.any(self.session != NONE))

    def at_rate(self, factor: float) -> Requests:
        """The same requests, arriving so many times as fast."""
        return replace(self, arrival=self.arrival / factor)


def requests(arrival: Seconds, isl: Whole, osl: Whole) -> Requests:
    """Requests that share nothing."""
    count = len(arrival)
    apart = np.full(count, NONE, dtype=np.int64)
    return Requests(
        np.asarray(arrival, dtype=np.float64),
        np.asarray(isl, dtype=np.int64),
        np.asarray(osl, dtype=np.int64),
        apart,
        np.zeros(count, dtype=np.int64),
        apart,
    )
