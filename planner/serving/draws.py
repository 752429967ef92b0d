"""Equally likely requests: a fixed low-discrepancy sample, and the counts and lengths that it draws."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtri
from scipy.stats import qmc

Grid = npt.NDArray[np.float64]

LOG_DRAWS, NUMBERS = 12, 13
"""Requests of the sample (as a power of two), and independent numbers of each."""

SMALL = 12.0
"""Means up to which counts are drawn exactly; beyond, from the normal law with its skew."""


@functools.cache
def draws() -> Grid:
    """The sample: uniform numbers between 0 and 1, shape (numbers, requests); always the same."""
    drawn = qmc.Sobol(NUMBERS, scramble=True, rng=np.random.default_rng(7)).random_base2(LOG_DRAWS)
    return np.ascontiguousarray(np.clip(drawn, 1e-9, 1.0 - 1e-9).T)


@functools.cache
def normal(number: int) -> Grid:
    """One number of every request as a standard normal one."""
    return np.asarray(ndtri(draws()[number]))


def counts(mean: Grid, number: int) -> Grid:
    """Poisson numbers with given means."""
    z = normal(number)
    drawn = np.maximum(np.round(mean + np.sqrt(mean) * z + (z * z - 1.0) / 6.0), 0.0)
    small = np.flatnonzero(mean < SMALL)
    if len(small):
        drawn[small] = _exact(mean[small], draws()[number][small])
    return drawn


def _exact(mean: Grid, u: Grid) -> Grid:
    """Poisson numbers with small means, by going through the terms."""
    term = np.exp(-mean)
    passed = term.copy()
    drawn = np.zeros(len(mean))
    for k in range(1, int(4.0 * SMALL)):
        above = u > passed
        if not above.any():
            break
        drawn += above
        term *= mean / k
        passed += term
    return drawn


def lengths(cv: float, number: int) -> Grid:
    """Lengths over their mean: all alike, or lognormal with a standard deviation of so many means."""
    if cv == 0.0:
        return np.ones(draws().shape[1])
    spread = np.sqrt(np.log1p(cv * cv))
    return np.asarray(np.exp(normal(number) * spread - spread**2 / 2.0))


@functools.lru_cache(maxsize=16)
def gamma(shape: float, number: int) -> Grid:
    """Gamma numbers of a shape and of mean 1."""
    return np.asarray(gammaincinv(shape, draws()[number]) / shape)
