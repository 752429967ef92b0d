"""All layouts of a model under the identity `tp·dp·cp = expert_tp·ep`, up to a number of devices, as columns."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from planner.candidates import Rule
from planner.specs.layout import Column, Layout
from planner.specs.model import ModelSpec

MULTIPLES: Final = {1: 1, 3: 3, 5: 40, 9: 72}
"""Degrees are powers of two times one of these, the last two from so many devices on: every published expert-parallel
deployment is among them (EP72, EP96, EP128, EP144, EP320)."""

MOST_STAGES: Final = 16
"""Most pipeline stages: beyond, nothing is published that serves."""

MOST_CONTEXT: Final = 16
"""Most ranks that share a context, likewise."""


LARGEST_DEGREE: Final = 1024
"""Largest degree that a scenario can name."""


def degrees(most: int) -> tuple[int, ...]:
    """Degrees of tensor, data and expert parallelism that are tried up to a number of devices, smallest first."""
    most = min(most, LARGEST_DEGREE)
    powers = range(most.bit_length())
    found = {odd << power for odd, least in MULTIPLES.items() for power in powers if least <= odd << power <= most}
    return tuple(sorted(found))


def powers(most: int) -> tuple[int, ...]:
    """Powers of two up to a number."""
    return tuple(1 << power for power in range(most.bit_length()))


def stages(model: ModelSpec, most: int) -> tuple[int, ...]:
    """Numbers of pipeline stages that are tried: at most one a layer."""
    return tuple(degree for degree in degrees(min(most, MOST_STAGES, model.layers)))


@lru_cache(maxsize=64)
def every_layout(model: ModelSpec, most: int) -> Layout:
    """Every layout of one replica on at most `most` devices, columns of shape (n,), in a fixed order: fewer devices first.

    TP, DP and EP take every degree of `degrees`; pipeline stages too, at most one a layer; context parallelism of prefill
    and of the decode cache takes powers of two, the cache's at most TP. Layouts that break a rule of the model or engine
    are among them: `planner.candidates.rules` says which, and why. EP varies only for a mixture of experts.
    """
    ways, sizes = _column(powers(min(most, MOST_CONTEXT))), _column(degrees(most))
    tp, dp, cp = _products(sizes, sizes, ways, most)
    deep, parts = _column(stages(model, most)), _column(degrees(most) if model.has_experts else (1,))
    row, each = np.nonzero((tp * dp * cp)[:, None] * deep <= most)
    tp, dp, cp, pp = tp[row], dp[row], cp[row], deep[each]
    row, each = np.nonzero(np.mod((tp * dp * cp)[:, None], parts) == 0.0)
    tp, dp, cp, pp, ep = tp[row], dp[row], cp[row], pp[row], parts[each]
    row, each = np.nonzero(np.mod(tp[:, None], ways) == 0.0)
    return _ordered(Layout(tp[row], pp[row], dp[row], ep[row], cp[row], ways[each]))


def _column(values: tuple[int, ...]) -> Column:
    """Numbers as a column."""
    return np.array(values, dtype=np.float64)


def _products(tp: Column, dp: Column, cp: Column, most: int) -> tuple[Column, Column, Column]:
    """Combinations whose product is at most `most`."""
    grid = np.meshgrid(tp, dp, cp, indexing="ij")
    flat = [axis.reshape(-1) for axis in grid]
    kept = flat[0] * flat[1] * flat[2] <= most
    return flat[0][kept], flat[1][kept], flat[2][kept]


def _ordered(found: Layout) -> Layout:
    """Fewer devices first, then fewer of each degree, TP last of all: the order in which ties are broken."""
    order = np.lexsort((found.tp, found.dp, found.ep, found.cp, found.dcp, found.pp, found.devices))
    return Layout(*(getattr(found, name)[order] for name in ("tp", "pp", "dp", "ep", "cp", "dcp")))


def search_rules(model: ModelSpec, domain: float) -> tuple[Rule, ...]:
    """Reasons for which a search leaves a layout out although it could be built.

    Args:
        model: what is served.
        domain: devices of one scale-up domain.
    """
    text = f"a stage neither divides a scale-up domain of {domain:,.0f} devices nor fills whole ones"
    placed = Rule("domain", text, lambda at: (np.mod(domain, at.stage) != 0) & (np.mod(at.stage, domain) != 0))
    if model.has_experts:
        return (placed,)
    alone = "attention data parallelism without experts to share is the same as more replicas"
    return (placed, Rule("replicas", alone, lambda at: at.dp > 1.0))
