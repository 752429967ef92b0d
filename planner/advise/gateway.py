"""What a gateway in front of the replicas needs: how many requests each may hold, and how many wait."""

from __future__ import annotations

import numpy as np

from planner.advise.advice import Advice, Numbers
from planner.plan import Plan
from planner.serving.baselines import request_seconds
from planner.serving.decode import LARGEST_BATCH
from planner.serving.queue import probability_of_waiting, running_requests, waiting_requests, waiting_share
from planner.specs.scenario import Scenario
from planner.units import show, whole
from planner.variants import applicable


def gateway(s: Scenario, plan: Plan) -> Advice | None:
    """On gateways: balance tasks, not requests. The in-flight limit of an instance is the batch that keeps the promise."""
    if plan.replicas is None or not 1 <= plan.b_max < LARGEST_BATCH or not plan.meets_sla:
        return None
    instances = plan.replicas - s.spare
    slots = instances * plan.b_max
    work = s.isl * (1 - s.prefix) + s.osl
    numbers: Numbers = (
        ("in_flight_limit", float(plan.b_max), "requests"), ("instances", float(instances), "replicas"),
        ("in_flight_total", float(slots), "requests"), ("tokens_a_request", work, "tokens"),
    )  # fmt: skip
    text = (
        f"Gateway: at most {show(plan.b_max, 'requests')} in flight per instance (a replica, as gateways call it), "
        f"{whole(slots)} over "
        f"{show(instances, 'replicas')}; further ones wait in the gateway, where any free replica can take them. A request "
        f"costs {whole(work)} computed tokens and {whole(s.isl + s.osl)} of cache."
    )
    return Advice("gateway", "advice", text, numbers, "gateway")


def queue_share(s: Scenario, plan: Plan) -> Advice | None:
    """On gateways: Little's law at the asked rate. One queue for all instances against a queue at each."""
    if plan.replicas is None or s.qps == 0 or not plan.meets_sla or plan.ttft_ms is None or plan.tpot_ms is None:
        return None
    if plan.b_max < 1:
        return None
    instances = plan.replicas - s.spare
    residence = float(
        request_seconds(np.asarray(plan.ttft_ms / 1e3), np.asarray(plan.tpot_ms / 1e3), np.asarray(float(s.osl)))
    )
    running = float(running_requests(s.qps, np.asarray(residence)))
    slots = float(instances * plan.b_max)
    if running >= slots:
        return _overfull(s, running, slots)
    common, inside = _waiting(slots, running)
    apart, _ = _waiting(float(plan.b_max), running / instances)
    numbers: Numbers = (
        ("running", running, "requests"), ("in_system", inside, "requests"), ("slots", slots, "requests"),
        ("waiting_share", common, ""), ("waiting_share_apart", apart, ""),
    )  # fmt: skip
    text = (
        f"At {show(s.qps)} requests/s and {show(residence, 's')} each, {whole(running)} of {whole(slots)} slots are taken on "
        f"average; of the {show(inside, 'requests')} in the system {_share(common)} wait in one common queue, "
        f"{_share(apart)} if each replica kept its own (Poisson arrivals and exponential service assumed)."
    )
    return Advice("queue_share", "advice", text, numbers, "gateway")


def _waiting(slots: float, running: float) -> tuple[float, float]:
    """Share of the requests in the system that wait, and how many are in the system."""
    waits = np.asarray(probability_of_waiting(slots, running))
    waiting = waiting_requests(waits, np.asarray(running), np.asarray(slots))
    return float(waiting_share(waiting, np.asarray(running))), float(waiting) + running


def _share(value: float) -> str:
    """A share; below a hundredth of a percent there is nothing to tell apart."""
    return "under 0.01 %" if value < 1e-4 else show(value, "%")


def _overfull(s: Scenario, running: float, slots: float) -> Advice:
    """More requests than slots: the queue grows without end."""
    numbers: Numbers = (("running", running, "requests"), ("slots", slots, "requests"))
    text = (
        f"{show(s.qps)} requests/s need {whole(running)} slots at this batch's speed and there are {whole(slots)}: the queue "
        f"grows without end. More replicas, or a load below {show(slots / running, '%')} of this rate."
    )
    return Advice("queue_share", "warning", text, numbers, "gateway", applicable(s, {"fix_replicas": None}))
