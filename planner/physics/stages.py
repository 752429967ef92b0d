"""Which layers a pipeline stage holds: engines cut a model into runs of consecutive layers, as even as they can."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from planner.specs.model import ModelSpec
from planner.work import Column


@lru_cache(maxsize=512)
def stage_mixes(order: tuple[int, ...], kinds: int, pp: int) -> Column:
    """Layers of each kind in every run of ceil(layers / pp) consecutive layers, equal runs once; shape (runs, kinds)."""
    long = -(-len(order) // pp)
    one_hot = np.eye(kinds)[list(order)]
    behind = np.vstack([np.zeros(kinds), np.cumsum(one_hot, axis=0)])
    return np.unique(behind[long:] - behind[:-long], axis=0)


def fullest_stage(model: ModelSpec, layers: Sequence[Column], pp: Column) -> Column:
    """The largest sum of `layers` (one quantity a layer of each group, e.g. bytes) that a pipeline stage holds.

    Args:
        model: groups of equal layers and their order.
        layers: the quantity of one layer of each group, columns that broadcast with `pp`.
        pp: pipeline stages, whole numbers.
    """
    each = np.stack(np.broadcast_arrays(*layers, pp)[:-1])
    total = np.zeros(each.shape[1:])
    for degree in np.unique(pp):
        mixes = stage_mixes(model.layer_order, len(model.groups), int(degree))
        most = np.max(np.tensordot(mixes, each, axes=1), axis=0)
        total = np.where(pp == degree, most, total)
    return total


def fullest_mix(model: ModelSpec, layers: Sequence[float], pp: int) -> tuple[float, ...]:
    """Layers of each group in the stage that holds most of a quantity."""
    mixes = stage_mixes(model.layer_order, len(model.groups), pp)
    return tuple(mixes[int(np.argmax(mixes @ np.asarray(layers)))].tolist())
