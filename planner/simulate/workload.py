"""PLACEHOLDER replaced at merge."""

import numpy as np

from planner.simulate.requests import requests


def made(s, t, rate):
    rng = np.random.default_rng(t.seed)
    n = t.requests
    a = np.zeros(n) if t.arrival == "closed" else np.cumsum(rng.exponential(1 / rate, n))
    return requests(a, np.full(n, s.isl), np.full(n, s.osl))
