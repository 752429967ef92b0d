"""The fit of serving constants to served points, and what it predicts of points that it has not seen.

Residuals are log(predicted / measured) under a loss that grows linearly beyond 15 %. Every configuration counts once,
however many points it has; a pair of model and accelerator family counts as the square root of its configurations, so
that no benchmark series decides alone. Logarithms of the constants are held to their starts by a normal belief.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.cases import Case
from planner.calibrate.clocked import Stack, clock, stack
from planner.calibrate.parameters import LawKey, Parameter, parameters, served_with
from planner.catalog.kernel_laws import timed_on
from planner.catalog.profile_records import Serving
from planner.catalog.profiles import lookup

Floats = NDArray[np.float64]

SCALE: Final = 0.15
"""Residual beyond which the loss grows linearly [log]."""
BELIEF: Final = 3.0
"""Weight of the belief around the starts, in units of one configuration alone in its pair."""
FEWEST: Final = 8
"""Configurations that must reach a kernel before it gets a factor of its own."""
STEP: Final = 0.02
LARGEST_MOVE: Final = 0.7
ROUNDS: Final = 6
SETTLED: Final = 0.01
LAW_KINDS: Final = ("gemm", "experts")
LEFT_OUT: Final = ("router", "head")


@dataclass(frozen=True)
class Problem:
    """Cases with their weights, and the numbers to fit."""

    stack: Stack
    start: Serving
    parameters: tuple[Parameter, ...]
    measured: Floats
    weights: Floats
    pairs: NDArray[np.str_]
    configurations: NDArray[np.str_]

    def tpot(self, theta: Floats) -> Floats:
        """Predicted TPOT of every case [s]."""
        return clock(self.stack, served_with(self.start, self.parameters, theta)).tpot


@dataclass(frozen=True)
class Fit:
    """The fitted point, its predictions, their slopes, and predictions of each pair by a fit without it.

    `folds` maps a pair to the point fitted without it; `unseen` is TPOT of each case by the fit without its pair [s].
    """

    problem: Problem
    theta: Floats
    within: Floats
    slopes: Floats
    folds: dict[str, Floats]
    unseen: Floats


def problem(cases: Sequence[Case], start: Serving, excluded: NDArray[np.bool_]) -> Problem:
    """Pose the fit; `excluded` cases are predicted but not fitted to."""
    pairs = np.array([case.pair for case in cases])
    configurations = np.array([case.configuration for case in cases])
    weights = np.where(excluded, 0.0, _weights(pairs, configurations))
    fitted_to = [case for case, out in zip(cases, excluded, strict=True) if not out]
    known = parameters(start, _laws(fitted_to, start))
    measured = np.array([case.tpot for case in cases])
    return Problem(stack(cases), start, known, measured, weights, pairs, configurations)


def _weights(pairs: NDArray[np.str_], configurations: NDArray[np.str_]) -> Floats:
    """One over the points of the configuration and the root of the configurations of the pair."""
    points = Counter(configurations.tolist())
    members = defaultdict(set)
    for pair, configuration in zip(pairs.tolist(), configurations.tolist(), strict=True):
        members[pair].add(configuration)
    both = zip(pairs.tolist(), configurations.tolist(), strict=True)
    return np.array([1.0 / points[c] / np.sqrt(len(members[p])) for p, c in both])


def _laws(cases: Sequence[Case], start: Serving) -> tuple[LawKey, ...]:
    """Kernels that enough configurations reach."""
    reached: dict[tuple[str, str, str, str], list[Case]] = defaultdict(list)
    for case in cases:
        look = lookup(case.clockwork.accelerator, case.clockwork.engine, start)
        entries = {(e.work.kind, e.work.precision) for e in case.alone if e.name not in LEFT_OUT}
        for kind, precision in sorted(each for each in entries if each[0] in LAW_KINDS):
            timed = timed_on(look, kind, precision)
            reached[look.accelerator.id, look.engine, kind, timed].append(case)
    found = (
        LawKey(*key, len({c.configuration for c in members}), len({c.pair for c in members}))
        for key, members in sorted(reached.items())
    )
    return tuple(key for key in found if key.configurations >= FEWEST)


def fit(posed: Problem) -> Fit:
    """Fit all cases, then predict each pair by a fit without it."""
    theta = np.zeros(len(posed.parameters))
    for _ in range(ROUNDS):
        within = posed.tpot(theta)
        move = _solved(posed, theta, within, _slopes(posed, theta, within), posed.weights)
        theta = theta + np.clip(move, -LARGEST_MOVE, LARGEST_MOVE)
        if np.max(np.abs(move)) < SETTLED:
            break
    within = posed.tpot(theta)
    slopes = _slopes(posed, theta, within)
    folds, unseen = {}, within.copy()
    for pair in np.unique(posed.pairs).tolist():
        out = posed.pairs == pair
        folds[pair] = _without(posed, theta, within, slopes, out)
        unseen[out] = posed.tpot(folds[pair])[out]
    return Fit(posed, theta, within, slopes, folds, unseen)


def _without(posed: Problem, theta: Floats, within: Floats, slopes: Floats, out: NDArray[np.bool_]) -> Floats:
    """The point fitted without some cases: from the full fit along its slopes, then once more along slopes of its own."""
    weights = np.where(out, 0.0, posed.weights)
    if not np.any(out & (posed.weights > 0.0)):
        return theta
    near = theta + _solved(posed, theta, within, slopes, weights)
    there = posed.tpot(near)
    return near + _solved(posed, near, there, _slopes(posed, near, there), weights)


def _slopes(posed: Problem, theta: Floats, within: Floats) -> Floats:
    """Slope of log TPOT along every parameter, by differences."""
    columns = []
    for index in range(theta.size):
        moved = theta.copy()
        moved[index] += STEP
        columns.append((np.log(posed.tpot(moved)) - np.log(within)) / STEP)
    return np.stack(columns, axis=1)


def _solved(posed: Problem, theta: Floats, within: Floats, slopes: Floats, weights: Floats) -> Floats:
    """The move that minimises the loss when predictions follow their slopes: reweighted least squares."""
    off = np.log(within / posed.measured)
    width = np.array([each.width for each in posed.parameters])
    belief = BELIEF / width**2
    move: Floats = np.zeros(theta.size)
    for _ in range(50):
        left = (off + slopes @ move) / SCALE
        pull = weights / np.sqrt(1.0 + left**2) / SCALE**2
        bend = (slopes.T * pull) @ slopes + np.diag(belief)
        new = np.asarray(np.linalg.solve(bend, -(slopes.T * pull) @ off - belief * theta), dtype=np.float64)
        if np.max(np.abs(new - move)) < 1e-7:
            return new
        move = new
    return move
