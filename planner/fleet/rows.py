"""Columns and rows of a mixed-integer programme under construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass
class Programme:
    """Columns and rows under construction; `lower ≤ row ≤ upper`."""

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[Mapping[int, float], float, float]] = field(default_factory=list)

    def variable(self, low: float, high: float, whole: bool = True) -> int:
        """A new variable; its column."""
        self.low.append(low)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.low) - 1

    def require(self, terms: Mapping[int, float], low: float = -inf, high: float = inf) -> None:
        """A new row."""
        self.rows.append((terms, low, high))

    def row(self, terms: Mapping[int, float]) -> Array:
        """Terms as a dense row."""
        dense = np.zeros(len(self.low))
        for column, value in terms.items():
            dense[column] += value
        return dense

    def matrix(self) -> tuple[Array, Array, Array]:
        """Rows with their limits."""
        dense = np.array([self.row(terms) for terms, _, _ in self.rows]).reshape(-1, len(self.low))
        return dense, np.array([low for _, low, _ in self.rows]), np.array([high for *_, high in self.rows])
