"""A request inside an engine."""

from __future__ import annotations

from collections.abc import Sequence


class Job:
    """One request of the table, from its arrival to its end.

    Attributes:
        request: its place in the table.
        order: when it was last admitted, as a running number.
        prompt: tokens that must be in the cache before it decodes: its prompt, and after a preemption what it made too.
        done: of these, tokens read or found; cached: those found; found: those found when it was first admitted.
        left: output tokens still to come when it next joins the running ones.
        attention: attention over the whole prompt [s].
        begun: whether its first token is out; ready: whether its prompt was read elsewhere.
        aside: blocks swapped out (0 = none); preempted: how often it had to leave.
        base: tokens of cache that it has or may need, less the engine's step count.
        pace: tokens a step; joined, ends: steps at which it joined and has all its tokens.
        names: named blocks that it holds; nameless: other blocks taken at admission; shareable: names that its prompt may get.
    """

    __slots__ = (
        "aside", "attention", "base", "begun", "cached", "done", "ends", "found", "joined", "left", "nameless", "names",
        "order", "pace", "preempted", "prompt", "ready", "request", "shareable",
    )  # fmt: skip

    def __init__(self, request: int, prompt: int, left: int, *, ready: bool = False) -> None:
        """A request as it arrives."""
        self.request, self.prompt, self.left, self.ready = request, prompt, left, ready
        self.order = self.done = self.cached = self.joined = self.ends = self.nameless = self.aside = self.preempted = 0
        self.found = -1
        self.base: float = 0
        self.pace: float = 1
        self.attention = 0.0
        self.begun = False
        self.names: list[int] = []
        self.shareable: Sequence[int] = ()

    def part(self, size: int) -> float:
        """Attention of the next so many prompt tokens [s]: each attends to all before it."""
        start = self.done
        if start == self.cached and start + size == self.prompt:
            return self.attention
        whole = self.prompt * self.prompt - self.cached * self.cached
        return self.attention * ((start + size) ** 2 - start * start) / whole
