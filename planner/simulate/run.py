"""Simulate the traffic of a scenario on its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planner.errors import Fault, InputError
from planner.optimise.answer import Progress
from planner.plan import Plan
from planner.promised import MEDIAN
from planner.rows import Bounds, bounds
from planner.setting import Setting, resolve
from planner.simulate import workload
from planner.simulate.blocks import Blocks, CachedBlocks
from planner.simulate.engine import Engine
from planner.simulate.gateway import Gateway
from planner.simulate.loop import Failure, Loop
from planner.simulate.named import naming
from planner.simulate.outcome import WARM_UP, Outcome
from planner.simulate.patient import Patience, PatientEngine
from planner.simulate.readers import Elsewhere, Readers, Workers
from planner.simulate.replica import Replica, replica_of
from planner.simulate.requests import Requests
from planner.simulate.seats import DraftSeats, Seats
from planner.simulate.summary import Summary, summarised
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.specs.layout import layout
from planner.specs.scenario import Scenario


@dataclass(frozen=True)
class Run:
    """A simulation: what was asked, the plan that it ran on, what was measured.

    Attributes:
        scenario, traffic: as asked.
        plan: of the scenario.
        rate: requests a second offered (of a trace or a closed loop: measured).
        limit: requests that each replica was given at a time.
        outcome, summary: every request, and what they come to.
        trace: whether the requests were given, so that scenario and traffic do not say what arrived.
    """

    scenario: Scenario
    traffic: Traffic
    plan: Plan
    rate: float
    limit: int
    outcome: Outcome
    summary: Summary
    trace: bool = False


def simulate(
    scenario: Scenario,
    traffic: Traffic | None = None,
    requests: Requests | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Run:
    """Simulate the traffic of a scenario on its plan, request by request.

    Args:
        scenario: what is planned; its plan gives replicas and the batch that each is given at most.
        traffic: how requests arrive; None = Poisson at the scenario's rate.
        requests: a trace in the place of made requests; lengths and arrivals are then its own.
        on_progress: called now and then.
        cancelled: asked now and then whether to stop.

    Returns:
        The run; the same for the same scenario, traffic and requests.

    Raises:
        InputError: where the plan holds no request, or the traffic cannot be made.
        Cancelled: when `cancelled` says so.
    """
    asked = Traffic() if traffic is None else traffic
    plan, setting = plan_of(scenario), resolve(scenario)
    rate = offered(scenario, asked, plan)
    table = workload.made(scenario, asked, rate) if requests is None else _given(requests, asked)
    run = ready(setting, plan, asked, table, given=requests is not None)
    run.loop.run(on_progress, cancelled)
    outcome = run.outcome()
    if requests is not None or asked.arrival in ("closed", "diurnal") or asked.turns > 1:
        rate = _measured(outcome, rate)
    found = summarised(outcome, scenario)
    return Run(scenario, asked, plan, rate, run.limit, outcome, found, requests is not None)


def _measured(outcome: Outcome, otherwise: float) -> float:
    """Requests a second by their arrivals; where all came at once, by how long they took, or `otherwise`."""
    arrival = outcome.requests.arrival
    span = float(arrival[-1] - arrival[0])
    if span > 0.0:
        return (len(arrival) - 1) / span
    return len(arrival) / outcome.span if outcome.span > 0.0 else otherwise


def offered(scenario: Scenario, traffic: Traffic, plan: Plan) -> float:
    """Requests a second that are offered: as the traffic names, the scenario's, or what its plan carries at `load`.

    Raises:
        InputError: where the plan carries nothing.
    """
    if plan.replicas is None or plan.batch < 1 or not plan.output_tok_s:
        why = plan.reason or "it has no speed"
        raise InputError((Fault("scenario", "this plan", f"must stand before traffic can run on it: {why}"),))
    if traffic.rate is not None:
        return traffic.rate
    if scenario.qps:
        return scenario.qps
    carried = plan.goodput_tok_s if scenario.sla_pct != MEDIAN and plan.goodput_tok_s else plan.output_tok_s
    return scenario.load * carried / scenario.osl * (plan.replicas - scenario.spare)


def _given(requests: Requests, traffic: Traffic) -> Requests:
    """A trace, at the rate that is asked for where one is."""
    if traffic.rate is None or len(requests) < 2:
        return requests
    span = float(requests.arrival[-1] - requests.arrival[0])
    return requests if span <= 0 else requests.at_rate(traffic.rate / ((len(requests) - 1) / span))


@dataclass(frozen=True)
class Ready:
    """A run that can begin.

    Attributes:
        loop: the run; replica: what its engines are; limit: requests that each is given at a time.
        warm: requests that summaries leave out.
    """

    loop: Loop
    replica: Replica
    limit: int
    warm: int
    reads: bool

    def outcome(self) -> Outcome:
        """What the run measured, with the time that the front end takes."""
        found = self.loop.outcome(self.warm)
        if not self.reads:
            return found
        front = self.replica.steps.fronts(float(self.replica.chunk))
        read = np.maximum(found.requests.isl - found.cached, 1).tolist()
        taken = np.array([front.at(new, old) for new, old in zip(read, found.cached.tolist(), strict=True)])
        return replace(found, ttft=found.ttft + taken)


def ready(
    setting: Setting,
    plan: Plan,
    traffic: Traffic,
    table: Requests,
    *,
    given: bool = False,
    watcher: Callable[[Engine], None] | None = None,
) -> Ready:
    """Engines, gateway and workers of a plan, before the first request.

    `given`: the requests are a trace, all of which counts. `watcher` is called with an engine after each committed step.
    """
    asked = setting.scenario
    known = bounds(setting, layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp).tall)
    longest = int((table.isl + table.osl).max())
    limit = traffic.in_flight or max(plan.batch, 1)
    replica = replica_of(setting, known, longest, traffic.policy, traffic.preempt, limit)
    count = 1 if plan.replicas is None else plan.replicas
    seeds = np.random.SeedSequence(traffic.seed).spawn(count)
    engines = [engine_of(replica, table, seed) for seed in seeds]
    gateway = Gateway(engines, traffic.router, limit, table, traffic.seed)
    readers = _readers(setting, plan, known, int(table.isl.max()))
    closed = traffic.arrival == "closed" and not given
    failure = None if traffic.fail_at_s is None else Failure(0, traffic.fail_at_s, traffic.repair_s)
    clients = traffic.clients if closed else None
    loop = Loop(table, engines, gateway, readers, traffic.over, clients, failure, watcher)
    warm = 0 if closed or given else int(WARM_UP * len(table))
    return Ready(loop, replica, limit, warm, readers is None)


def engine_of(
    replica: Replica, table: Requests, seed: np.random.SeedSequence, patience: Patience | None = None
) -> Engine:
    """One idle engine for requests of a table; `patience`: how long it leaves new ones waiting."""
    blocks = CachedBlocks(replica.blocks) if table.sharing else Blocks(replica.blocks)
    block = max(replica.block, 1)
    if replica.accept is None:
        seats = Seats(block, replica.slots, grows=replica.lazy)
    else:
        steps = partial(_steps_of, np.random.default_rng(seed), *replica.accept)
        seats = DraftSeats(block, replica.slots, grows=replica.lazy, steps=steps)
    if patience is not None:
        return PatientEngine(replica, blocks, seats, naming(table), patience)
    return Engine(replica, blocks, seats, naming(table))


def _steps_of(random: np.random.Generator, accept: float, drafted: int, tokens: int) -> int:
    """Steps that so many tokens take, drawn at random: each yields the drafts accepted in a row and one more."""
    steps, made = 0, 0
    while made < tokens:
        count = max(1, -(-(tokens - made) // (drafted + 1)))
        accepted = random.random((count, drafted)) < accept
        gained = 1 + np.cumprod(accepted, axis=1).sum(axis=1)
        totals = made + np.cumsum(gained)
        enough = int(np.searchsorted(totals, tokens))
        steps += min(enough + 1, count)
        made = int(totals[-1])
    return steps


def _readers(setting: Setting, plan: Plan, known: Bounds, longest: int) -> Readers | None:
    """Who reads prompts; None where the engines do."""
    if setting.scenario.prefill == "excluded":
        return Elsewhere(known)
    if setting.pool is None:
        return None
    beside = 0.0 if plan.gpus is None or plan.replicas is None else plan.gpus - plan.replicas * plan.gpus_per_replica
    return Workers(setting, setting.pool, known, max(1, round(beside / setting.pool.devices)), longest)
