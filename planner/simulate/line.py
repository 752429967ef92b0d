"""The state of the replicas over time, thinned as it grows so that a long run takes no more room than a short one."""

from __future__ import annotations

import numpy as np

from planner.simulate.outcome import Line

MOST_POINTS = 4096
"""Points that are kept at a time; of more, every second goes."""


class Watch:
    """Counts requests in the system over time, and keeps points of it.

    Attributes:
        area: time integral of the requests in the system [s].
        inside: requests in the system now.
    """

    def __init__(self) -> None:
        """Nobody is there."""
        self.area, self.inside = 0.0, 0
        self._last = self._due = self._apart = 0.0
        self._points: list[tuple[float, int, int, float]] = []

    def change(self, at: float, by: int) -> None:
        """So many requests came (or went) at a time, not before the last such time."""
        self.area += self.inside * (at - self._last)
        self._last = at
        self.inside += by

    def due(self, at: float) -> bool:
        """Whether a point is due."""
        return at >= self._due

    def note(self, at: float, running: int, waiting: int, used: float) -> None:
        """Keep a point."""
        points = self._points
        points.append((at, running, waiting, used))
        if len(points) >= MOST_POINTS:
            self._points = points[::2]
            self._apart = 1.5 * (at - points[0][0]) / MOST_POINTS
        self._due = at + self._apart

    def line(self) -> Line:
        """What was kept."""
        columns = np.array(self._points, dtype=np.float64).reshape(-1, 4).T
        return Line(*columns)
