"""Seconds of an engine step over how many sequences decode and how many prompts it reads, as queues need them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from planner.serving import decode, mixed
from planner.serving.decode import Clock
from planner.serving.prefill import Prompt
from planner.serving.speculative import expected_tokens
from planner.work import ONE

Grid = npt.NDArray[np.float64]

EXACT, SPREAD, SIZES = 32, 40, 14
"""Batches that the table has one by one, those spread geometrically beyond, and sizes of what a step reads."""


EVERY = slice(None)
"""All rows of a table."""


@dataclass(frozen=True)
class Steps:
    """Engine steps of one replica.

    Attributes:
        batches: decoding sequences, rising from 0, shape (n,).
        prompts: prompts read in the step, whole ones or parts, rising from 0, shape (k,).
        seconds: of a step, shape (n, k) [s].
        tokens: tokens that a decode step yields a sequence.
        stages: micro-batches under way at a time: a request can join so many times a step.
        admits: prompts' worth of tokens that a step's budget leaves at each of `batches`, shape (n,); 0 where prompts are
            not read here.
        part: what one step reads of one prompt at most, in prompts of mean length; 0 where prompts are not read here.
    """

    batches: Grid
    prompts: Grid
    seconds: Grid
    tokens: float
    stages: float
    admits: Grid
    part: float

    def at(self, batch: Grid, prompts: Grid) -> Grid:
        """Seconds of steps; the table's ends are held [s]."""
        i, u = _between(self.batches, batch)
        j, v = _between(self.prompts, prompts)
        near = self.seconds[i, j] * (1.0 - v) + self.seconds[i, j + 1] * v
        far = self.seconds[i + 1, j] * (1.0 - v) + self.seconds[i + 1, j + 1] * v
        return np.asarray(near * (1.0 - u) + far * u)

    def alone(self, batch: Grid) -> Grid:
        """Seconds of steps that read nothing [s]."""
        return np.interp(batch, self.batches, self.seconds[:, 0])

    def room(self, batch: Grid) -> Grid:
        """Prompts that the budget of a step admits beside a batch."""
        return np.interp(batch, self.batches, self.admits)

    def averaged(self, mean: Grid, rows: Grid | slice = EVERY) -> Grid:
        """Mean seconds of steps that read a random number of prompts, Poisson around a mean within the budget [s].

        What the budget leaves over is read in other steps. Many are taken to be as many as their mean; where a step admits
        less than one prompt it reads as much as it admits, or nothing.

        Args:
            mean: prompts a step, one for each of the table's rows, or of the given ones.
            rows: rows of the table.
        """
        room, alone = np.maximum(self.admits[rows], 1e-9), self.seconds[rows, 0]
        if float(mean.max(initial=0.0)) > FEW:
            return self.at(self.batches[rows], np.minimum(mean, room))
        weights = np.exp(
            self.counts * np.log(np.maximum(mean, 1e-12))[:, None] - mean[:, None] - gammaln(self.counts + 1.0)
        )
        read = (weights * self.within[rows]).sum(axis=1)
        added = (weights * self.added[rows]).sum(axis=1)
        return np.asarray(alone + added * np.minimum(mean, room) / np.maximum(read, 1e-12))

    @functools.cached_property
    def counts(self) -> Grid:
        """Numbers of prompts that are averaged over."""
        return np.arange(1.0, min(np.ceil(max(self.prompts[-1], 1.0)), MANY) + 1.0)

    @functools.cached_property
    def within(self) -> Grid:
        """Those numbers as far as each batch's budget goes, shape (n, counts)."""
        return np.minimum(self.counts[None, :], np.maximum(self.admits, 1e-9)[:, None])

    @functools.cached_property
    def added(self) -> Grid:
        """What reading them adds to a step, shape (n, counts) [s]."""
        shape = self.within.shape
        taken = self.at(np.repeat(self.batches, shape[1]), self.within.reshape(-1)).reshape(shape)
        return np.asarray(taken - self.seconds[:, :1])


FEW = 12.0
"""Mean prompts a step up to which their number is averaged over."""

MANY = 40.0
"""Prompts in one step that then hardly ever come together."""


def _between(lines: Grid, x: Grid) -> tuple[npt.NDArray[np.int64], Grid]:
    """The line before each number and how far it is to the next one, held at the ends."""
    i = np.minimum(np.maximum(np.searchsorted(lines, x, side="right") - 1, 0), len(lines) - 2)
    return i, np.minimum(np.maximum((x - lines[i]) / (lines[i + 1] - lines[i]), 0.0), 1.0)


def step_table(clock: Clock, prompt: Prompt, most: float, budget: float, chunk: float = 0.0) -> Steps:
    """Steps of one replica, worked out on a grid.

    Args:
        clock: of one layout, shape (1, 1).
        prompt: one prompt as the engine reads it.
        most: largest batch of the replica [sequences].
        budget: most tokens of one step of one attention rank; inf = no limit [tokens].
        chunk: most tokens of one prompt in a step; 0 = as many as the budget has [tokens].
    """
    layout, draft = clock.placed.layout, clock.decoding.draft
    tokens = 1.0 if draft is None else float(expected_tokens(draft.accept * ONE, draft.tokens * ONE)[0])
    taken = 1.0 if draft is None else draft.tokens + 1.0
    batches, dp, pp = _batches(most), float(layout.dp[0, 0]), float(layout.pp[0, 0])
    decoding = replace(clock, decoding=replace(clock.decoding, prompt=None))
    alone = np.broadcast_to(decode.tpot(decoding, batches[None, 1:])[0], (1, len(batches) - 1))[0] * tokens
    bare = np.concatenate([alone[:1], alone])
    if clock.decoding.prompt is None:
        none = np.zeros(len(batches))
        return Steps(batches, np.array([0.0, 1.0]), np.stack([bare, bare], 1), tokens, 1.0, none, 0.0)
    ways = max(dp * pp, 1.0)
    left = np.maximum(budget - np.ceil(batches / ways) * taken, 1.0)
    admits = ways * np.minimum(left, MOST_READ) / prompt.tokens
    prompts = _prompts(float(admits[0]), ways)
    seconds = bare[:, None] + _added(clock, prompt, batches, prompts, ways, float(bare[0]))
    return Steps(
        batches, prompts, seconds, tokens, 1.0, admits, min(chunk or budget, budget, MOST_READ) / prompt.tokens
    )


MOST_READ = 1e6
"""Tokens of prompts that a step without a budget reads at most [tokens]."""


def _added(clock: Clock, prompt: Prompt, batches: Grid, prompts: Grid, ways: float, bare: float) -> Grid:
    """What reading prompts adds to a step, shape (batches, prompts) [s]; the row without decoding is the whole step."""
    fullest = np.where(prompts >= 1.0, np.ceil(prompts / ways - 1e-9), prompts)
    sizes = np.maximum(fullest[1:] * prompt.tokens, 1.0)[None, :]
    ending = np.maximum(fullest[1:], 1.0)[None, :]
    attention = float(
        np.asarray(mixed.attention_seconds(clock, prompt.tokens * ONE, prompt.cached * ONE)).reshape(-1)[0]
    )
    share = np.clip((prompts[1:] - 1.0) / max(ways - 1.0, 1.0), 0.0, 1.0) if ways > 1.0 else np.ones(len(prompts) - 1)
    rows = np.stack([_reading(clock, batches[1:], sizes, ending, everywhere=each) for each in (True, False)])
    matrices = rows[0] * share + rows[1] * (1.0 - share)
    idle = [
        np.broadcast_to(mixed.reading_seconds(clock, sizes, ending, everywhere=each), sizes.shape)[0]
        for each in (True, False)
    ]
    matrices[0] = idle[0] * share + idle[1] * (1.0 - share) - bare
    added = np.zeros((len(batches), len(prompts)))
    added[:, 1:] = matrices + attention * fullest[1:]
    return added


def _reading(clock: Clock, batches: Grid, sizes: Grid, ending: Grid, *, everywhere: bool) -> Grid:
    """What prompt tokens add beside each batch, attention left out; the first row is beside one sequence [s]."""
    shape = (len(batches), sizes.shape[1])
    batch = np.repeat(batches, sizes.shape[1])[None, :]
    wide = (np.tile(sizes[0], len(batches))[None, :], np.tile(ending[0], len(batches))[None, :])
    beside = np.broadcast_to(mixed.mixed_seconds(clock, batch, *wide, everywhere=everywhere), batch.shape)
    grid = np.asarray(beside).reshape(shape)
    return np.concatenate([grid[:1], grid])


def _batches(most: float) -> Grid:
    """Batches of the table: 0, every small one, then geometrically up to the largest."""
    small = np.arange(0.0, min(most, EXACT) + 1.0)
    return small if most <= EXACT else np.unique(np.concatenate([small, np.round(np.geomspace(EXACT, most, SPREAD))]))


def _prompts(most: float, ways: float) -> Grid:
    """Sizes of what a step reads: nothing, parts of a prompt, then whole ones up to what the budget admits."""
    if ways > 1.0:
        whole = np.concatenate([[0.0, 1.0, 2.0], ways * np.arange(1.0, 9.0), 1.0 + ways * np.arange(1.0, 4.0), [most]])
        return np.unique(whole[whole <= most])
    if most <= 4.0:
        return np.unique(np.concatenate([[0.0], np.linspace(0.0, most, 9), [1.0] if most > 1.0 else []]))
    whole = np.round(np.geomspace(1.0, max(most, 2.0), SIZES))
    return np.unique(np.concatenate([[0.0], whole, [2.0, 3.0]]))
