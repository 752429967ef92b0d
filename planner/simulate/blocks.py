"""Cache blocks of one replica: free ones, ones that requests hold, ones that are kept because they may be read again.

A prefix cache names full blocks by what is in them and in all before them. A named block that nobody holds any more stays
until its room is needed; the least recently used goes first. Blocks of text that nobody shares have no name, but they
wait in the same line, so they push named ones out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class Blocks:
    """Blocks without a prefix cache: taken and given back.

    Attributes:
        total: blocks there are; free: blocks that can be had.
    """

    def __init__(self, total: int) -> None:
        """All blocks are free."""
        self.total = total
        self.free = total

    def hits(self, names: Sequence[int]) -> int:
        """How many of a prompt's first blocks are in the cache."""
        del names
        return 0

    def missing(self, names: Sequence[int], hits: int) -> int:
        """How many of those hits would have to be taken out of what counts as free."""
        del names, hits
        return 0

    def hold(self, names: Sequence[int]) -> None:
        """Hold named blocks once more."""

    def take(self, count: int) -> None:
        """Take blocks; the caller has seen that so many are free."""
        self.free -= count

    def name(self, names: Sequence[int]) -> list[int]:
        """Give blocks that are held their names; returns the names that they got (others are taken already)."""
        del names
        return []

    def give(self, count: int, names: Sequence[int] = ()) -> None:
        """Give back so many nameless blocks, and named ones."""
        del names
        self.free += count

    def clear(self) -> None:
        """Forget everything: the engine starts anew."""
        self.free = self.total


class CachedBlocks(Blocks):
    """Blocks with a prefix cache: reference counts, least recently used goes first."""

    def __init__(self, total: int) -> None:
        """All blocks are free and nothing is kept."""
        super().__init__(total)
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.free = self.total
        self._blank = self.total
        self._held: dict[int, int] = {}
        self._kept: OrderedDict[int, int] = OrderedDict()
        self._lumps = 0

    @property
    def kept(self) -> int:
        """Blocks that nobody holds but that may be read again, nameless ones of ended requests included."""
        return self.free - self._blank

    @property
    def shared(self) -> int:
        """Named blocks that somebody holds."""
        return sum(1 for holders in self._held.values() if holders)

    def hits(self, names: Sequence[int]) -> int:
        """How many of a prompt's first blocks are in the cache."""
        held = self._held
        for count, name in enumerate(names):
            if name not in held:
                return count
        return len(names)

    def missing(self, names: Sequence[int], hits: int) -> int:
        """How many of those hits nobody holds, so that they count as free until they are held."""
        held = self._held
        return sum(1 for name in names[:hits] if not held[name])

    def hold(self, names: Sequence[int]) -> None:
        """Hold named blocks once more."""
        for name in names:
            holders = self._held[name]
            if not holders:
                del self._kept[name]
                self.free -= 1
            self._held[name] = holders + 1

    def take(self, count: int) -> None:
        """Take blocks, throwing out what was not read for longest where none are blank."""
        self.free -= count
        self._blank -= count
        while self._blank < 0:
            self._evict()

    def _evict(self) -> None:
        """Throw out one named block, or as many nameless ones as are needed of the oldest request."""
        name, count = next(iter(self._kept.items()))
        if name >= 0:
            del self._kept[name], self._held[name]
            self._blank += 1
            return
        gone = min(count, -self._blank)
        self._blank += gone
        if gone == count:
            del self._kept[name]
        else:
            self._kept[name] = count - gone

    def name(self, names: Sequence[int]) -> list[int]:
        """Give blocks that are held their names; a name that another block has stays with that one."""
        held = self._held
        new = [name for name in names if name not in held]
        for name in new:
            held[name] = 1
        return new

    def give(self, count: int, names: Sequence[int] = ()) -> None:
        """Give back nameless blocks, and named ones, whose last is thrown out first."""
        held = self._held
        if count:
            self._lumps -= 1
            self._kept[self._lumps] = count
            self.free += count
        for name in reversed(names):
            held[name] -= 1
            if not held[name]:
                self._kept[name] = 1
                self.free += 1
