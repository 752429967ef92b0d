"""What a gateway decides by: requests in flight, and the share of them that wait."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, pdtr

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


def probability_of_waiting(slots: float, running: float) -> float:
    """Erlang C: how likely all slots are taken when a request arrives; 1 from a load of one on.

    Args:
        slots: requests that may run at a time, whole.
        running: offered load, the mean of those that would run were there always a slot [requests].

    Poisson arrivals and exponential times of service are assumed. Erlang B by the Poisson law, so that a hundred
    thousand slots cost no more than ten.
    """
    if running <= 0.0:
        return 0.0
    if running >= slots:
        return 1.0
    all_taken = float(np.exp(slots * np.log(running) - running - gammaln(slots + 1.0)))
    blocked = all_taken / float(pdtr(slots, running))
    return blocked / (1.0 - running / slots * (1.0 - blocked))
