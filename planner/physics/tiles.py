"""How full the tiles of matrix instructions are when tokens reach experts at random.

Padding costs operations, not time, while an expert's padded tile computes faster than its weights are read.
"""

from __future__ import annotations

import math

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("definition: the mean number of tokens over the rows of the tiles that they take", "1")
def tile_fill(mean_tokens: Column, rows: Column, tiles: Column) -> Column:
    """Share of the rows of an expert's tiles that holds a token."""
    padded = tiles * rows  # [tokens]
    return mean_tokens / padded  # [1]


def expected_tiles(tokens: int, share: float, rows: int) -> float:
    """Mean tiles of an expert that each of `tokens` tokens reaches with probability `share` (binomial, whole tiles).

    Args:
        tokens: tokens in the step [tokens].
        share: k/E, strictly between 0 and 1.
        rows: rows of one tile [tokens].
    """
    hits = np.arange(tokens + 1)
    ways = np.array([math.lgamma(tokens + 1) - math.lgamma(n + 1) - math.lgamma(tokens - n + 1) for n in hits])
    chance = np.exp(ways + hits * math.log(share) + (tokens - hits) * math.log1p(-share))
    return float(np.sum(chance * np.ceil(hits / rows)))
