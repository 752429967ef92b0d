"""How full the tiles of matrix instructions are when tokens reach experts at random.

Padding costs operations, not time, while an expert's padded tile computes faster than its weights are read.
"""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column

TINY = 1e-300
"""Keeps the logarithm of an impossible number of tokens finite."""

NEARLY_ALL = 1.0 - 1e-9
"""Largest share of the tokens that one expert is taken to draw: odds stay finite when every expert is chosen."""


@formula("definition: B tokens with k choices each, spread over E experts", "tokens")
def tokens_per_expert(batch: Column, top_k: Column, count: Column) -> Column:
    """Mean tokens on one routed expert."""
    return batch * top_k / count  # [tokens]


@formula(
    "binomial distribution: n of B tokens choose an expert with probability k/E; n tokens take ⌈n/m⌉ tiles", "tiles"
)
def expected_tiles(batch: Column, share: Column, tile: Column) -> Column:
    """Tiles of `tile` tokens that one expert is expected to compute when tokens choose at random.

    Args:
        batch: tokens of the step, at least one.
        share: probability that a token chooses the expert, k/E.
        tile: tokens a tile.

    Tails beyond 12 standard deviations are left out.
    """
    tokens = np.expand_dims(batch, -1)  # [tokens]
    chance = np.expand_dims(np.minimum(share, NEARLY_ALL), -1)  # [1]
    mean = np.max(tokens * chance)  # [tokens]
    counts = np.arange(1.0, np.minimum(np.max(tokens), np.ceil(mean + 12.0 * np.sqrt(mean) + 16.0)) + 1.0)  # [tokens]
    odds = chance / (1.0 - chance)  # [1]
    growth = np.maximum(tokens - counts + 1.0, TINY) / counts * odds  # [1]
    chances = np.exp(tokens * np.log1p(-chance) + np.cumsum(np.log(growth), axis=-1))  # [1]
    tiles = np.ceil(counts / np.expand_dims(tile, -1))  # [tiles]
    return np.asarray(np.sum(chances * tiles, axis=-1))  # [tiles]


@formula("definition: the mean number of tokens over the rows of the tiles that they take", "1")
def tile_fill(mean_tokens: Column, rows: Column, tiles: Column) -> Column:
    """Share of the rows of an expert's tiles that holds a token."""
    padded = tiles * rows  # [tokens]
    return mean_tokens / padded  # [1]


@formula("definition: a tile of m rows does 2·m operations with each weight, which is read once", "FLOP/B")
def tile_intensity(tile: Column, bytes_per_weight: Column) -> Column:
    """Operations a weight byte of one whole tile, padding included: below the ridge, padding costs no time."""
    return 2.0 * tile / bytes_per_weight  # [FLOP/B]


@formula(
    "definition: an expert's matrices compute as long as they are read at ridge · bytes / 2 tokens each", "sequences"
)
def expert_ridge_batch(corner: Column, bytes_per_weight: Column, top_k: Column, count: Column) -> Column:
    """Batch at which the routed experts' matrices reach the ridge, once every expert is hit."""
    needed = corner * bytes_per_weight / 2.0  # [tokens]
    return needed * count / top_k  # [sequences]
