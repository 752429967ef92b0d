"""Time per output token over the life of one request: the batch varies while it runs, and so do the prompts that hit it.

Whoever runs when a request starts leaves while it runs, those that come stay; with equal lengths the batch, averaged over
a residence, varies by two thirds of its mean. Steps that grow with the batch make a large batch last: what arrives is more.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from planner.serving.draws import counts, normal

Grid = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Stay:
    """How long others run beside a request, as shares of its own residence, for requests of the sample.

    Attributes:
        present, spread: mean and variance of the share of those that run when it starts.
        coming, coming_spread: of those that come while it runs.
        turnover: requests that can take one seat meanwhile.
    """

    present: Grid
    spread: Grid
    coming: Grid
    coming_spread: Grid
    turnover: Grid


@functools.lru_cache(maxsize=16)
def _stays(cv: float) -> tuple[Grid, Grid]:
    """Own lengths over the mean, rising, and the four shares of `Stay` for each; lognormal lengths."""
    spread = np.sqrt(np.log1p(cv * cv))
    times = np.linspace(0.0, 1.0, 65)
    own = np.exp(np.linspace(-4.0, 4.0, 41) * spread - spread**2 / 2.0)
    at = own[:, None] * times[None, :]
    longer = ndtr(-(np.log(np.maximum(at, 1e-12)) + spread**2 / 2.0) / spread)
    partly = at * longer + ndtr((np.log(np.maximum(at, 1e-12)) - spread**2 / 2.0) / spread)
    rest = np.maximum(1.0 - partly, 0.0)
    present = np.trapezoid(rest, at, axis=1) / own
    squared = np.trapezoid(2.0 * at * rest, at, axis=1) / own**2
    coming = np.trapezoid(partly, at, axis=1) / own**2
    within = (
        np.concatenate(
            [np.zeros((len(own), 1)), np.cumsum((at * longer)[:, 1:] + (at * longer)[:, :-1], axis=1)], axis=1
        )
        * (at[:, 1:2])
    )
    coming_squared = np.trapezoid(within, at, axis=1) / own**3
    return own, np.stack([present, squared - present**2, coming, np.maximum(coming_squared - coming**2, 0.0)])


def stay(cv: float, lengths: Grid) -> Stay:
    """Shares for requests of given lengths over the mean, when lengths vary by so much."""
    if cv == 0.0:
        half, twelfth = np.full(1, 0.5), np.full(1, 1.0 / 12.0)
        return Stay(half, twelfth, half, twelfth, np.ones(1))
    own, shares = _stays(cv)
    present, spread, coming, later = (np.interp(lengths, own, each) for each in shares)
    return Stay(present, spread, coming, later, np.maximum(1.0, lengths + cv**2 / 2.0))


@dataclass(frozen=True)
class Pace:
    """What a step takes near one batch, for every request of the sample.

    Attributes:
        bare: a step of the mean batch that reads nothing [s]; slope: what one more sequence adds [s].
        mean: the batch that `bare` is of [sequences].
        prompt: what one prompt adds to the steps that it shares [s].
        reads, adds: prompts a step, rising, and what they add to each, over what `prompt` says (several share a step).
    """

    bare: Grid
    slope: Grid
    mean: Grid
    prompt: Grid
    reads: Grid
    adds: Grid


def token_seconds(
    pace: Pace,
    present: Grid,
    steps: Grid,
    rate: float,
    beside: Stay,
    most: float,
    longer: Grid,
    along: Grid,
    uneven: float,
) -> Grid:
    """Mean seconds of the decode steps of every request of the sample [s].

    Args:
        pace: what a step takes.
        present: others that run when the request starts.
        steps: decode steps of the request.
        rate: requests a second.
        beside: how long others run beside it.
        most: seats of the replica.
        longer: by how much the step that read its own prompt was longer than others: what arrives in it comes next [s].
        along: other prompts that this step read; these requests run beside it from its first token on.
        uneven: standard deviation over mean of prompt lengths.
    """
    at_first = pace.bare + pace.slope * (1.0 + along + present * beside.present - pace.mean)
    begun = rate * np.maximum(steps * np.maximum(at_first, 0.2 * pace.bare) + longer, 0.0)
    growth = np.clip(rate * (steps * pace.slope * beside.coming + pace.prompt), 0.0, 0.9)
    first = counts(begun, 6)
    come = first / (1.0 - growth) + np.sqrt(first * growth / (1.0 - growth) ** 3) * normal(7)
    come = np.clip(come, 0.0, np.maximum(most - 1.0, 0.0) * beside.turnover)
    noise = np.sqrt(present * beside.spread + come * beside.coming_spread) * normal(8)
    batch = np.clip(1.0 + along + present * beside.present + come * beside.coming + noise, 1.0, most)
    work = np.maximum(come + np.sqrt(come) * uneven * normal(12), 0.0) if uneven > 0.0 else come
    each = work / np.maximum(steps, 1.0)
    return np.asarray(
        pace.bare + pace.slope * (batch - pace.mean) + pace.prompt * each * np.interp(each, pace.reads, pace.adds)
    )
