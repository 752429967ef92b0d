"""Time to first token between engine steps: a Markov chain on the prompts that wait when a step begins.

A request that arrives waits for the end of the running step. It is more likely to meet a long step than a short one.
Then its prompt is read together with all others that came meanwhile, in the order in which they came, as far as the
token budget of a step goes; and as reading prompts makes that step long, more arrive during it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtr

from planner.serving.draws import counts, draws
from planner.serving.step_table import Steps

Grid = npt.NDArray[np.float64]

STATES = 96
"""Most numbers of waiting units that the chain tells apart."""

FINE, FEW = 4.0, 8.0
"""Parts that prompts of several sizes are cut into at least; and prompts a step below which parts of them count."""


@dataclass(frozen=True)
class Boundaries:
    """Prompts that wait at the beginnings of steps, for some batches.

    Attributes:
        parts: units of a prompt (below 1: a unit holds several prompts).
        batches: decoding sequences, shape (g,); admits: units that a step of each admits, shape (g,).
        share: stationary probabilities at the beginnings of steps, shape (g, units).
        seconds: of the steps that begin so, shape (g, units) [s].
    """

    parts: float
    batches: Grid
    admits: Grid
    share: Grid
    seconds: Grid

    @property
    def mean_left(self) -> Grid:
        """Mean prompts that a step leaves for the next, shape (g,)."""
        units = np.arange(float(self.share.shape[1]))
        left = np.maximum(units[None, :] - self.admits[:, None], 0.0)
        return np.asarray((self.share * left).sum(axis=1) / self.parts)

    @property
    def mean_step(self) -> Grid:
        """Mean of all steps, shape (g,) [s]."""
        return np.asarray((self.share * self.seconds).sum(axis=1))


def boundaries(steps: Steps, batches: Grid, rate: float, cv: float = 0.0) -> Boundaries:
    """The chain beside given batches, at a rate that their steps can carry.

    Args:
        steps: step table.
        batches: decoding sequences, shape (g,).
        rate: requests a second.
        cv: standard deviation over mean of prompt lengths (lognormal).
    """
    room = steps.room(batches)
    parts = _parts(steps, room, batches, rate, cv > 0.0)
    admits = np.maximum(np.round(room * parts), 1.0)
    units = np.arange(_most(steps, batches, rate, parts, admits) + 1.0)
    read = np.minimum(units[None, :], admits[:, None])
    seconds = steps.at(np.repeat(batches, len(units)), (read / parts).reshape(-1)).reshape(read.shape)
    mean = rate * seconds / steps.stages
    arriving = _arriving(mean, parts, len(units), _units(cv, parts) if cv > 0.0 else None)
    return Boundaries(parts, batches, room * parts, _stationary(arriving, units, admits), seconds)


def _parts(steps: Steps, room: Grid, batches: Grid, rate: float, spread: bool) -> float:
    """Units of a prompt: one, several where a step admits few prompts, less than one where very many arrive."""
    least = float(room.min())
    if spread or least < FEW:
        tried = np.arange(FINE if spread else 1.0, 17.0)
        off = np.abs(np.round(tried * least) / (tried * least) - 1.0)
        return float(tried[np.argmax(off <= max(0.02, float(off.min())))])
    arriving = rate * float(steps.at(batches, np.minimum(room, rate * steps.alone(batches))).max()) / steps.stages
    return float(1.0 / max(np.ceil(arriving / (STATES / 4.0)), 1.0))


def _most(steps: Steps, batches: Grid, rate: float, parts: float, admits: Grid) -> int:
    """Units at which the chain is cut off."""
    full = steps.at(batches, admits / parts)
    alone = steps.alone(batches)
    slope = np.clip(rate * (full - alone) / (admits / parts) / steps.stages, 0.0, 0.97)
    mean = rate * alone / steps.stages / (1.0 - slope)
    spread = np.sqrt(mean / (1.0 - slope**2))
    busy = np.clip(rate * full / steps.stages * parts / admits, 0.0, 0.98)
    behind = 4.0 * max(parts, 1.0) * busy / (1.0 - busy)
    return int(np.clip(np.max(parts * (mean + 8.0 * spread) + behind) + 8.0 * max(parts, 1.0), 8.0, STATES))


def _arriving(mean: Grid, parts: float, states: int, sizes: Grid | None) -> Grid:
    """Probabilities of 0, 1, 2 … units that arrive in a step, shape (g, units, units)."""
    count = np.arange(float(states))
    if sizes is not None:
        return _compound(mean, states, sizes)
    if parts < 1.0:
        ends = (np.arange(states + 1.0) - 0.5) / parts
        below = ndtr((ends - mean[..., None]) / np.sqrt(mean[..., None]))
        below[..., 0] = 0.0
        return np.diff(below, axis=-1)
    whole = count[:: int(parts)] / parts
    logs = whole * np.log(mean[..., None]) - mean[..., None] - gammaln(whole + 1.0)
    arriving = np.zeros((*mean.shape, states))
    arriving[..., :: int(parts)] = np.exp(logs)
    return arriving


def _units(cv: float, parts: float) -> Grid:
    """Probabilities of prompts of 1, 2, 3 … units when lengths are lognormal around so many."""
    spread = np.sqrt(np.log1p(cv * cv))
    ends = np.arange(1.0, np.ceil(parts * (1.0 + 6.0 * cv)) + 1.0) + 0.5
    below = ndtr((np.log(ends / parts) + spread**2 / 2.0) / spread)
    below[-1] = 1.0
    return np.diff(below, prepend=0.0)


def _compound(mean: Grid, states: int, sizes: Grid) -> Grid:
    """The same when prompts are of several sizes: Panjer's recursion."""
    arriving = np.zeros((states, *mean.shape))
    arriving[0] = np.exp(-mean)
    weights = np.arange(1.0, len(sizes) + 1.0) * sizes
    for k in range(1, states):
        reach = min(k, len(sizes))
        arriving[k] = mean / k * np.tensordot(weights[:reach], arriving[k - reach : k][::-1], axes=1)
    return np.moveaxis(arriving, 0, -1)


def _stationary(arriving: Grid, units: Grid, admits: Grid) -> Grid:
    """Stationary probabilities of units that wait when a step begins, shape (g, units)."""
    groups, states = arriving.shape[0], len(units)
    left = np.maximum(units[None, :] - admits[:, None], 0.0).astype(np.int64)
    come = np.arange(states)[None, None, :] - left[..., None]
    moved = np.where(come >= 0, np.take_along_axis(arriving, np.maximum(come, 0), axis=-1), 0.0)
    moved[..., -1] += np.maximum(1.0 - moved.sum(axis=-1), 0.0)
    balance = np.swapaxes(moved, -1, -2) - np.eye(states)
    balance[:, -1, :] = 1.0
    right = np.zeros((groups, states, 1))
    right[:, -1] = 1.0
    share = np.maximum(np.linalg.solve(balance, right)[..., 0], 0.0)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Met:
    """What each request meets before its first token.

    Attributes:
        seconds: from its arrival to the end of the step that reads the last of its prompt [s].
        last: that step [s]; beside: other prompts that it reads; left: prompts that it leaves for the next.
    """

    seconds: Grid
    last: Grid
    beside: Grid
    left: Grid


def first_token(
    steps: Steps,
    found: Boundaries,
    group: npt.NDArray[np.int64],
    rate: float,
    sizes: Grid,
    alone: npt.NDArray[np.bool_],
    cv: float = 0.0,
) -> Met:
    """What every request of the sample meets from its arrival to its first token.

    Args:
        steps, found: step table, and the chain for some batches.
        group: which of those batches each request meets.
        rate: requests a second.
        sizes: prompts over their mean.
        cv: standard deviation over mean of prompt lengths.
        alone: whether a request finds nobody else on the replica: then no step is running.
    """
    u, lump = draws(), 1.0 + cv * cv
    begun, running = _met(found, group, u[1])
    admits, batch = found.admits[group], found.batches[group]
    between = np.where(alone & (begun == 0.0), 0.0, running / steps.stages)
    ahead = np.maximum(begun - admits, 0.0) + found.parts * lump * counts(rate / lump * u[2] * between, 3)
    behind = found.parts * lump * counts(rate / lump * (1.0 - u[2]) * between, 4)
    own = sizes * found.parts
    turns = np.maximum(np.ceil((ahead + own) / admits - 1e-9), np.ceil(sizes / steps.part - 1e-9))
    full = steps.at(batch, admits / found.parts)
    done = (turns - 1.0) * admits
    later = found.parts * lump * counts((turns - 1.0) * rate / lump * full / steps.stages, 11)
    waiting = ahead + own + behind + later - done
    read = np.clip(waiting, np.clip(ahead + own - done, 0.0, admits), admits)
    last = steps.at(batch, read / found.parts)
    beside = np.maximum(read - own, 0.0) / found.parts
    left = np.maximum(waiting - admits, 0.0) / found.parts
    return Met((1.0 - u[2]) * between + (turns - 1.0) * full / steps.stages + last, last, beside, left)


def _met(found: Boundaries, group: npt.NDArray[np.int64], u: Grid) -> tuple[Grid, Grid]:
    """The step that each arrival meets: units that waited when it began, and its length; long steps are met more often."""
    weight = found.share * found.seconds
    ends = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)
    ends[:, -1] = 1.0
    flat = (ends + np.arange(len(ends))[:, None]).reshape(-1)
    at = np.minimum(np.searchsorted(flat, u + group), (group + 1) * ends.shape[1] - 1)
    begun = at - group * ends.shape[1]
    return begun.astype(np.float64), found.seconds[group, begun]
