"""Names of cache blocks: equal names are equal tokens behind equal beginnings, so a second request may read the first's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from planner.simulate.requests import NONE, Requests

Named: TypeAlias = Callable[[int, int, int], Sequence[int]]
"""Names of the full blocks of a request: (request, block size, tokens)."""

BLOCK_BITS = 24
"""Room for a block's place behind the name of the text that it belongs to."""


def naming(table: Requests) -> Named:
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
        if not block:
            return ()
        common = min(shared[request], tokens) // block if group[request] != NONE else 0
        if session[request] == NONE or tokens // block <= common:
            return _run(2 * group[request], 0, common) if common else ()
        own = _run(2 * session[request] + 1, common, tokens // block)
        return (*_run(2 * group[request], 0, common), *own) if common else own

    return named


def _nameless(request: int, block: int, tokens: int) -> Sequence[int]:
    """Nobody shares anything."""
    del request, block, tokens
    return ()


def _run(text: int, start: int, stop: int) -> range:
    """Names of a run of blocks of one text."""
    first = text << BLOCK_BITS
    return range(first + start, first + stop)


def _hashed(table: Requests) -> Named:
    """Names cut from the trace's own; a block is named by what its last token is in."""
    known = table.hashes
    if known is None:
        return _nameless
    start, ids, size, isl = known.start.tolist(), known.ids.tolist(), known.tokens, table.isl.tolist()

    def named(request: int, block: int, tokens: int) -> Sequence[int]:
        if not block:
            return ()
        mine = ids[start[request] : start[request + 1]]
        full = min(tokens, isl[request], len(mine) * size) // block
        return [(mine[((at + 1) * block - 1) // size] << BLOCK_BITS) + at for at in range(full)]

    return named
