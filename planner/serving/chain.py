"""How many requests run on a replica at a rate: a birth-death chain over its seats, with the queue in front of them.

While fewer than all seats are taken every request is served at once, all at a pace that falls with their number. That is
processor sharing: the distribution of the batch depends on the mean of the output lengths alone, not on their spread. Once
all seats are taken requests wait in the order in which they came, and there the spread of lengths counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.formula import formula
from planner.work import Column

Grid = npt.NDArray[np.float64]

CELLS = 4096
"""Most cells that the numbers of running requests are cut into; beyond, neighbours share one."""


@formula("Little's law: a full batch ends a share of itself in every residence", "requests/s")
def departures(running: Column, residence: Column) -> Column:
    """Requests that end a second when so many run and each runs for so long."""
    return running / residence  # [requests/s]


@formula("fit to simulations between Allen-Cunneen, (1 + cv²)/2 of the exponential wait, and all of it", "s")
def mean_wait(rate: Column, saturation: Column, cv: Column | float) -> Column:
    """Mean wait of a request that has to wait for a seat, below saturation.

    Regular residences halve waits that are long beside them; a wait that is far shorter does not see how regular they are.
    """
    exponential = 1.0 / (saturation - rate)  # [s]
    return exponential * (3.0 + 2.0 * cv**2) / 5.0  # [s]


@formula("fit to simulations: a gamma law, exponential from cv = 1 on", "1")
def wait_shape(cv: Column | float) -> Column:
    """Shape of the law of waits for a seat: regular lengths leave out the very long ones."""
    regular = np.maximum(1.0 - np.asarray(cv), 0.0)  # [1]
    return 1.0 + 0.45 * regular  # [1]


@dataclass(frozen=True)
class Chain:
    """The stationary number of running requests and of those that wait, one replica at one rate.

    Attributes:
        running: numbers of running requests, rising, ends of cells where cells hold several, shape (n,).
        share: probability of each, all seats taken included in the last, shape (n,).
        waits: probability that an arriving request finds all seats taken.
        queue: mean number of requests that wait for a seat.
    """

    running: Grid
    share: Grid
    waits: float
    queue: float

    @property
    def mean(self) -> float:
        """Mean number of running requests."""
        return float(self.running @ self.share)

    def quantile(self, u: Grid | float) -> Grid:
        """Running requests below which a share of the time is spent."""
        found = np.searchsorted(np.cumsum(self.share), np.asarray(u), side="left")
        return np.asarray(self.running[np.minimum(found, len(self.running) - 1)])


def seats(most: float) -> Grid:
    """Numbers of running requests that a chain tells apart: 1 to the most, in equal cells when there are very many."""
    width = np.ceil(most / CELLS)
    return np.asarray(most - width * np.arange(np.ceil(most / width))[::-1])


def chain(rate: float, running: Grid, ending: Grid, cv: float = 1.0, bursts: Grid | float = 1.0) -> Chain:
    """The chain with births at the rate of arrivals and deaths at the rates at which requests end.

    Args:
        rate: requests that arrive a second, at random; below the last of `ending`.
        running: as `seats` gives them.
        ending: requests that end a second with so many running, shape (n,).
        cv: standard deviation over mean of output lengths, which counts for the queue alone (1 = exponential).
        bursts: variance of births and deaths over that of independent ones, shape (n,): who arrives slows the others.

    The products of ratios are summed as logarithms: a hundred thousand seats overflow nothing. Bursts make a Poisson law
    a negative binomial one of the same mean.
    """
    width = running[-1] - running[-2] if len(running) > 1 else 1.0
    middle = np.log(ending)
    middle[1:] -= np.diff(middle) * (width - 1.0) / (2.0 * width)
    before = np.maximum(running - (width + 1.0) / 2.0, 0.0)
    follow = (bursts - 1.0) * before / np.maximum(running - (width - 1.0) / 2.0, 1.0)
    logs = np.concatenate([[0.0], np.cumsum(width * np.log((rate / np.exp(middle) + follow) / bursts))])
    states = np.exp(logs - logs.max())
    load = rate / ending[-1]
    behind = load / (1.0 - load)
    total = states.sum() + states[-1] * behind / width
    share = states / total
    share[-1] += states[-1] * behind / width / total
    waits = float((states[-1] / width + states[-1] * behind / width) / total)
    queue = waits * rate * float(mean_wait(np.asarray(rate), np.asarray(ending[-1]), cv))
    return Chain(np.concatenate([[0.0], running]), share, min(waits, 1.0), queue)
