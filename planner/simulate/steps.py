"""How long engine steps take: tables made once from the clock of the plan, read thousands of times a second.

A simulation asks for millions of steps that differ by a sequence or a few tokens of context. The clock works on columns,
so it fills tables over batch, context and prompt tokens in one go; between their lines steps are interpolated.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.serving import decode, mixed, prefill
from planner.serving.decode import Clock
from planner.serving.speculative import expected_tokens
from planner.setting import Setting
from planner.work import ONE

EXACT_BATCHES = 1024
"""Batches up to which the table has every one; larger ones are spread geometrically."""

CONTEXTS = 17
"""Contexts of the table, evenly spread: a step is nearly linear in its context."""

MIXED_BATCHES, PROMPT_SIZES, CACHED_SIZES = 24, 40, 12
"""Lines of the tables of what prompts add."""

Grid = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A function of two numbers, interpolated between its lines; beyond them it is held.

    Attributes:
        rows, columns: where the lines are, rising; values: rows × columns.
    """

    rows: list[float]
    columns: list[float]
    values: list[list[float]]

    def at(self, x: float, y: float) -> float:
        """The value at a point."""
        i, u = _between(self.rows, x)
        j, v = _between(self.columns, y)
        near, far = self.values[i], self.values[i + 1]
        low = near[j] + (near[j + 1] - near[j]) * v
        high = far[j] + (far[j + 1] - far[j]) * v
        return low + (high - low) * u


def _between(lines: list[float], x: float) -> tuple[int, float]:
    """The line before a number, and how far it is to the next."""
    i = bisect_right(lines, x) - 1
    if i < 0:
        return 0, 0.0
    if i >= len(lines) - 1:
        return len(lines) - 2, 1.0
    return i, (x - lines[i]) / (lines[i + 1] - lines[i])


class StepTimes:
    """Times of the engine steps of one replica.

    Attributes:
        tokens: tokens that a decode step yields a sequence, on average (more than 1 with a draft).
        ways: places that read prompts at the same time: attention ranks times pipeline stages.
    """

    def __init__(
        self, setting: Setting, clock: Clock, most: int, longest: int, budget: int = 0, prompts: bool = True
    ) -> None:
        """Fill the tables.

        Args:
            setting: resolved.
            clock: of one layout, shape (1, 1).
            most: largest batch of the replica.
            longest: most tokens of a sequence.
            budget: most prompt tokens of a step on one rank, of several prompts together; 0 = `longest`.
            prompts: whether prompts are read here.
        """
        layout = clock.placed.layout
        draft = clock.decoding.draft
        self.tokens = 1.0 if draft is None else float(expected_tokens(draft.accept * ONE, draft.tokens * ONE)[0])
        self.ways = max(1, int(layout.dp[0, 0] * layout.pp[0, 0]))
        self._clock, self._setting = clock, setting
        batches = _batches(most)
        self._index = _nearest(batches, most)
        self._scale = CONTEXTS / float(longest + 1)
        contexts = np.arange(CONTEXTS + 1) / self._scale
        self._rows = _decode_rows(clock, batches, contexts, self.tokens)
        if prompts:
            self._fill(most, longest, budget)

    def _fill(self, most: int, longest: int, budget: int) -> None:
        """Tables of what prompt tokens add.

        Several prompts share a step, so a step may hold more tokens than any sequence has; on the fullest of several ranks
        up to twice its share.
        """
        largest = float(max(longest, 2))
        together = max(largest, float(budget if self.ways == 1 else 2 * budget))
        reads = _spread(1.0, together, PROMPT_SIZES)
        batches = _spread(1.0, float(max(most, 2)), MIXED_BATCHES)
        self._everywhere = self._added(batches, reads, everywhere=True)
        self._somewhere = self._added(batches, reads, everywhere=False) if self.ways > 1 else self._everywhere
        sizes = _spread(1.0, largest, PROMPT_SIZES)
        cached = np.concatenate([np.zeros(1), _spread(1.0, largest, CACHED_SIZES)])
        parts = [mixed.attention_seconds(self._clock, sizes[None, :], np.full((1, 1), each))[0] for each in cached]
        grid = np.array([np.broadcast_to(part, sizes.shape) for part in parts]).T
        self._attention = Table(sizes.tolist(), cached.tolist(), grid.tolist())

    def _added(self, batches: Grid, sizes: Grid, *, everywhere: bool) -> Table:
        """What prompt tokens add to a step; the first row is a step without decoding."""
        whole = max(self._setting.prompt.tokens, 1.0)
        rows = [
            mixed.reading_seconds(self._clock, sizes[None, :], _ending(sizes, whole), everywhere=everywhere)[0],
            *(
                mixed.mixed_seconds(
                    self._clock, np.full((1, 1), each), sizes[None, :], _ending(sizes, whole), everywhere=everywhere
                )[0]
                for each in batches
            ),
        ]
        return Table([0.0, *batches.tolist()], sizes.tolist(), [row.tolist() for row in rows])

    def decode(self, batch: int, context: float) -> float:
        """A step that decodes, at a mean context [s]."""
        row = self._rows[self._index[batch]]
        x = context * self._scale
        i = int(x)
        if i >= CONTEXTS:
            return row[CONTEXTS]
        return row[i] + (row[i + 1] - row[i]) * (x - i)

    def reading(self, batch: int, tokens: int, prompts: int) -> float:
        """What a step takes longer for reading tokens of so many prompts beside a batch, attention left out [s].

        With nothing to decode it is the whole step. Prompts are spread over the ranks that can read; the fullest counts.
        """
        ways = self.ways
        if ways == 1:
            return self._everywhere.at(batch, tokens)
        fullest = tokens * -(-prompts // ways) / prompts
        everywhere = self._everywhere.at(batch, fullest)
        if prompts >= ways:
            return everywhere
        somewhere = self._somewhere.at(batch, fullest)
        return somewhere + (everywhere - somewhere) * (prompts - 1) / (ways - 1)

    def attention(self, tokens: int, cached: int) -> float:
        """Attention of a whole prompt over itself and what the cache holds of it [s]."""
        return self._attention.at(tokens, cached)

    def prompt(self, tokens: int, cached: int, largest: float) -> float:
        """A lone prompt on an idle replica, in steps of at most so many tokens [s]."""
        whole, rest = divmod(tokens, largest)
        taken = whole * self.reading(0, int(largest), 1) if whole else 0.0
        if rest:
            taken += self.reading(0, int(rest), 1)
        return taken + self.attention(tokens, cached)

    def fronts(self, largest: float) -> Table:
        """Time to first token that no step accounts for, over tokens to read and tokens found in the cache [s].

        The front end, and what first steps take beyond their kernels: `unloaded_ttft` less the steps of a lone prompt.
        """
        served, known = self._setting.profile, self._attention
        prompts = np.array([[self.prompt(int(n), int(c), largest) for c in known.columns] for n in known.rows])
        whole = prefill.unloaded_ttft(prompts, served.ttft_fixed, served.ttft_factor, served.ttft_ceiling)
        return Table(known.rows, known.columns, (whole - prompts).tolist())


def _ending(sizes: Grid, whole: float) -> Grid:
    """Prompts that end among so many tokens."""
    return np.maximum(sizes / whole, 1.0)[None, :]


def _spread(low: float, high: float, count: int) -> Grid:
    """Whole numbers from low to high, geometrically."""
    return np.unique(np.round(np.geomspace(low, max(high, low + 1.0), count)))


def _batches(most: int) -> Grid:
    """Batches of the table: every one up to a size, then some."""
    exact = np.arange(1.0, min(most, EXACT_BATCHES) + 1.0)
    if most <= EXACT_BATCHES:
        return exact
    return np.unique(np.concatenate([exact, np.round(np.geomspace(EXACT_BATCHES, most, 256))]))


def _nearest(batches: Grid, most: int) -> list[int]:
    """Row of the table for every batch from 0 on: its own, or the next larger one that has one."""
    return [0, *np.searchsorted(batches, np.arange(1.0, most + 1.0)).tolist()]


def _decode_rows(clock: Clock, batches: Grid, contexts: Grid, tokens: float) -> list[list[float]]:
    """Decode steps of every batch at every context [s]."""
    columns = []
    for context in contexts.tolist():
        decoding = replace(clock.decoding, context=max(context, 1.0), prompt=None)
        alone, _ = decode.tpot(replace(clock, decoding=decoding), batches[None, :])
        columns.append(np.broadcast_to(alone, (1, len(batches)))[0] * tokens)
    return [[float(value) for value in row] for row in np.array(columns).T]
