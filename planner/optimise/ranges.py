"""A space too large to list: degrees out of menus and numbers out of ranges, as the columns that a population is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.errors import Fault, InputError
from planner.plan import Column
from planner.specs.layout import Layout
from planner.specs.scenario import Scenario

CHUNK_STEP: Final = 128
"""Grid of chunks [tokens]: engines hand out prompt tokens in blocks, and equal chunks share one evaluation."""

UTIL_STEP: Final = 0.01
"""Grid of the memory share, as engines' options are written."""

DEGREES: Final = ("tp", "pp", "dp", "ep", "cp", "dcp")

Range = tuple[float, float]
"""Smallest and largest value."""


@dataclass(frozen=True)
class Space:
    """What varies around a scenario; None and menus of one value do not.

    Attributes:
        tp, pp, dp, ep, cp, dcp: menus of degrees.
        chunk: prefill tokens a step, on a grid of `CHUNK_STEP`.
        util: share of memory that the engine may use, on a grid of `UTIL_STEP`.
        batch: sequences a replica; None = each layout's own largest batch that keeps the promise.
        prefill_workers, decode_workers: sizes of the two pools.
    """

    tp: tuple[int, ...] = (1,)
    pp: tuple[int, ...] = (1,)
    dp: tuple[int, ...] = (1,)
    ep: tuple[int, ...] = (1,)
    cp: tuple[int, ...] = (1,)
    dcp: tuple[int, ...] = (1,)
    chunk: tuple[int, int] | None = None
    util: tuple[float, float] | None = None
    batch: tuple[int, int] | None = None
    prefill_workers: tuple[int, int] | None = None
    decode_workers: tuple[int, int] | None = None

    def check(self, scenario: Scenario) -> None:
        """Refuse what cannot be searched.

        Raises:
            InputError: for an empty menu, an empty range, or pools in a scenario without any.
        """
        faults = tuple(self._faults(scenario))
        if faults:
            raise InputError(faults)

    def _faults(self, scenario: Scenario) -> Iterator[Fault]:
        """Everything wrong with the space."""
        for name in DEGREES:
            if not getattr(self, name) or min(getattr(self, name)) < 1:
                yield Fault(name, str(getattr(self, name)), "must list one degree of 1 or more at least")
        for name, step, least, most in RANGES:
            span: Range | None = getattr(self, name)
            if span is None:
                continue
            if not least <= span[0] <= span[1] <= most:
                yield Fault(name, f"{span[0]:g} to {span[1]:g}", f"must rise within {least:g} to {most:,g}")
            elif step and round(span[1] / step, 6) < 1:
                yield Fault(name, f"{span[0]:g} to {span[1]:g}", f"must reach {step:g}")
        if scenario.prefill != "disaggregated" and (self.prefill_workers or self.decode_workers):
            yield Fault("prefill", scenario.prefill, "must be disaggregated where pools are sized")

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What varies, in a fixed order."""
        return (*self._menus(), *self._spans())

    def _menus(self) -> Iterator[Axis]:
        """Degrees, as places in their menus."""
        for name in DEGREES:
            menu = tuple(sorted(set(getattr(self, name))))
            if len(menu) > 1:
                yield Axis(name, 0.0, len(menu) - 1.0, True, menu)

    def _spans(self) -> Iterator[Axis]:
        """Numbers: on their grids, batches and workers by their logarithm."""
        for name, step, _, _ in RANGES:
            span: Range | None = getattr(self, name)
            if span is None:
                continue
            if step:
                low = max(1.0, np.ceil(round(span[0] / step, 6)))
                yield Axis(name, low, max(low, np.floor(round(span[1] / step, 6))), True, step=step)
            else:
                yield Axis(name, np.log(span[0] - 0.499), np.log(span[1] + 0.499), False)


RANGES: Final = (
    ("chunk", float(CHUNK_STEP), 1.0, 1e6),
    ("util", UTIL_STEP, UTIL_STEP, 1.0),
    ("batch", 0.0, 1.0, 1e6),
    ("prefill_workers", 0.0, 1.0, 1e6),
    ("decode_workers", 0.0, 1.0, 1e6),
)
"""Ranges by name: the step of their grid (0 = whole numbers, tried by their logarithm), smallest and largest value."""


@dataclass(frozen=True)
class Axis:
    """One thing that varies, between two numbers that a search moves in.

    Attributes:
        name: field; low, high: ends; whole: whether only whole numbers are meant.
        menu: values that these numbers are places in; step: grid that they count on; neither = logarithms of values.
    """

    name: str
    low: float
    high: float
    whole: bool
    menu: tuple[int, ...] = ()
    step: float = 0.0

    def values(self, numbers: Column) -> Column:
        """The field's values."""
        if self.menu:
            return np.asarray(self.menu, dtype=np.float64)[np.rint(numbers).astype(np.int64)]
        if self.step:
            return np.asarray(np.rint(numbers) * self.step)
        return np.asarray(np.rint(np.exp(numbers)))

    def numbers(self, near: float) -> Column:
        """Numbers to try along the axis: all places and steps; of logarithms a spread of values, and those near one."""
        if self.whole:
            return np.arange(self.low, self.high + 0.5)
        low, high, at = np.rint(np.exp(self.low)), np.rint(np.exp(self.high)), np.rint(np.exp(near))
        spread = np.geomspace(max(low, 1.0), max(high, 1.0), SPREAD)
        tried = np.unique(np.rint(np.concatenate([spread, np.arange(at - NEAR, at + NEAR + 1.0)])))
        return np.asarray(np.log(tried[(tried >= low) & (tried <= high)]))


SPREAD: Final = 128
"""Values of a range that are tried over all of it; NEAR: to either side of the best."""

NEAR: Final = 32


@dataclass(frozen=True)
class Population:
    """Candidates as columns of shape (n, 1), by field; what does not vary is not among them."""

    columns: dict[str, Column]

    def of(self, name: str, otherwise: float) -> Column:
        """A column, or one value everywhere."""
        known = self.columns.get(name)
        return np.full(self.shape, otherwise) if known is None else known

    @property
    def shape(self) -> tuple[int, int]:
        """Candidates, one below the other."""
        return next((column.shape[0] for column in self.columns.values()), 1), 1

    def layout(self, fixed: Space) -> Layout:
        """Their layouts."""
        return Layout(*(self.of(name, float(getattr(fixed, name)[0])) for name in DEGREES))

    def rows(self, at: npt.NDArray[np.intp]) -> Population:
        """Some of them."""
        return Population({name: column[at] for name, column in self.columns.items()})


def population(axes: tuple[Axis, ...], numbers: Column) -> Population:
    """What numbers of shape (axes, n) mean."""
    return Population({axis.name: axis.values(row)[:, None] for axis, row in zip(axes, numbers, strict=True)})
