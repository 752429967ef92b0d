"""What a gateway decides by: requests in flight, and the share of them that wait."""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.work import Column


@formula("Little's law: requests that run = arrivals a second · time that each runs", "requests")
def running_requests(qps: float, residence: Column) -> Column:
    """Requests that run at a time, on average."""
    return qps * residence  # [requests]


@formula("M/M/c: mean queue length from the probability of waiting", "requests")
def waiting_requests(waits: Column, running: Column, slots: Column) -> Column:
    """Requests that wait for a slot, on average; for loads below one."""
    load = running / slots  # [1]
    return waits * load / (1.0 - load)  # [requests]


@formula("definition", "1")
def waiting_share(waiting: Column, running: Column) -> Column:
    """Share of the requests in the system that wait."""
    inside = waiting + running  # [requests]
    return waiting / inside  # [1]


FAR = 40.0
"""Free slots, in square roots of the slots, from which on nobody waits: the chance is below any double."""

TAIL = 12.0
"""Terms of the series behind its largest, in square roots of the slots, that still count."""


def probability_of_waiting(slots: float, running: float) -> float:
    """Erlang C: how likely all slots are taken when a request arrives; 1 from a load of one on.

    Args:
        slots: requests that may run at a time, whole.
        running: offered load, the mean of those that would run were there always a slot [requests].

    Poisson arrivals and exponential times of service are assumed. Erlang B is one over the series 1 + c/a + c(c−1)/a² + …,
    of which only the terms near its largest count, so that a million slots cost little more than ten.
    """
    root = float(np.sqrt(slots))
    if running <= 0.0 or slots - running > FAR * root:
        return 0.0
    if running >= slots:
        return 1.0
    count = int(min(slots, np.ceil(slots - running + TAIL * root)))
    logs = np.cumsum(np.log((slots - np.arange(count)) / running))
    top = max(float(logs.max()), 0.0)
    blocked = float(np.exp(-top) / (np.exp(-top) + np.sum(np.exp(logs - top))))
    return blocked / (1.0 - running / slots * (1.0 - blocked))
