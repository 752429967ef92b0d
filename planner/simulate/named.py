"""Names of cache blocks: equal names are equal tokens behind equal beginnings, so a second request may read the first's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from planner.simulate.requests import NONE, Requests

BLOCK_BITS = 24
"""Room for a block's place behind the name of the text that it belongs to."""


def naming(table: Requests) -> Callable[[int, int, int], Sequence[int]]:
    """What names the full blocks of a request: a function of (request, block size, tokens).

    Tokens that a group shares belong to the group, everything behind them to the session; what belongs to neither has no
    name. Prompts with names of their own (hashes) are cut from those.
    """
    if table.hashes is not None:
        return _hashed(table)
    if not table.sharing:
        return _nameless
    group, shared, session = (column.tolist() for column in (table.group, table.shared, table.session))

    def named(request: int, block: int, tokens: int) -> Sequence[int]:
        common = min(shared[request], tokens) // block if group[request] != NONE else 0
        names: Sequence[int] = _run(2 * group[request], 0, common) if common else ()
        if session[request] != NONE and tokens // block > common:
            names = (*names, *_run(2 * session[request] + 1, common, tokens // block))
        return names

    return named


def _nameless(request: int, block: int, tokens: int) -> Sequence[int]:
    """Nobody shares anything."""
    del request, block, tokens
    return ()


@lru_cache(maxsize=4096)
def _run(text: int, start: int, stop: int) -> tuple[int, ...]:
    """Names of a run of blocks of one text."""
    first = text << BLOCK_BITS
    return tuple(range(first + start, first + stop))


def _hashed(table: Requests) -> Callable[[int, int, int], Sequence[int]]:
    """Names cut from the trace's own, which name larger blocks."""
    known = table.hashes
    if known is None:
        return _nameless
    start, ids, size, isl = known.start.tolist(), known.ids.tolist(), known.tokens, table.isl.tolist()

    def named(request: int, block: int, tokens: int) -> Sequence[int]:
        mine = ids[start[request] : start[request + 1]]
        full = min(tokens, isl[request], len(mine) * size) // block
        return [(mine[at * block // size] << BLOCK_BITS) + at for at in range(full)]

    return named
