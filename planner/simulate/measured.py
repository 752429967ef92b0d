"""Load tests of measured rows, simulated: what a row's client would have seen of the plan's own step times."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.case_engines import Served, served_engine
from planner.case_words import CaseError, Row
from planner.errors import HeadroomError
from planner.optimise.answer import Cancelled, Progress
from planner.predict_serving import placed_at, resolved
from planner.rows import bounds
from planner.setting import Setting
from planner.simulate.gateway import Gateway
from planner.simulate.load_test import SEED, LoadTest, load_test
from planner.simulate.loop import Loop
from planner.simulate.outcome import WARM_UP, Outcome
from planner.simulate.replica import Replica, replica_of
from planner.simulate.requests import Requests
from planner.simulate.run import Ready, engine_of

BURST_ROUNDS = 2
"""Rounds of a closed loop, in requests of each client, that count as its start."""

ROOM, BESIDE = 2, 32
"""Seats of a steady service, in those of the load test and beside them: at random there are now and then many more."""

STEADY_REQUESTS = 500
"""Fewest requests of a steady service; as many as the load test sent, where that is more."""


@dataclass(frozen=True)
class Seen:
    """What a simulated load test measured; None where there is nothing.

    Attributes:
        clients, requests: requests in flight, and sent in all.
        ttft_ms, ttft_median_ms: time to first token of all requests, mean and median [ms].
        later_ms: mean of the requests after the first two rounds of a closed loop [ms].
        steady_ms: mean where as many requests a second come at random instead, once the system has filled [ms].
        tpot_ms: mean time per output token [ms].
        out_tps_per_gpu: output tokens a second of one GPU, from the first request to the last end.
        rate: requests a second.
        preempted: times that a request had to leave.
    """

    clients: int
    requests: int
    ttft_ms: float | None
    ttft_median_ms: float | None
    later_ms: float | None
    steady_ms: float | None
    tpot_ms: float | None
    out_tps_per_gpu: float | None
    rate: float
    preempted: int


@dataclass(frozen=True)
class Case:
    """A row that can be simulated.

    Attributes:
        at: its place in the table; configuration: equal for rows of one setting, whose step times are worked out once.
    """

    at: int
    configuration: Hashable
    setting: Setting
    test: LoadTest


Found = Seen | str
"""What a row's load test measured, or why it is not simulated."""


def simulated(
    rows: Sequence[Row],
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    *,
    steady: bool = False,
) -> tuple[Found, ...]:
    """Simulate the load tests of measured rows; measured columns are never read.

    Args:
        rows: of a table of served points.
        steady: whether a steady service at each closed loop's rate is simulated too.
        on_progress: called after each row.
        cancelled: asked before each row whether to stop.

    Returns:
        Of each row, in order, what its client would have seen, or the reason why it is not simulated.

    Raises:
        Cancelled: when `cancelled` says so.
    """
    groups, refused = cases(rows)
    found: dict[int, Found] = dict(refused)
    for group in groups:
        for at, tested in of_one(group, steady=steady):
            if cancelled is not None and cancelled():
                raise Cancelled("the simulation was stopped")
            found[at] = tested
            if on_progress is not None:
                on_progress(Progress(len(found), len(rows), len(found), None))
    return tuple(found[at] for at in range(len(rows)))


def cases(rows: Sequence[Row]) -> tuple[tuple[tuple[Case, ...], ...], dict[int, str]]:
    """Rows of a table by configuration, and of the others the reason why they are not simulated, by place."""
    groups: dict[Hashable, list[Case]] = {}
    refused = {}
    for at, row in enumerate(rows):
        each = case(at, row)
        if isinstance(each, str):
            refused[at] = each
        else:
            groups.setdefault(each.configuration, []).append(each)
    return tuple(map(tuple, groups.values())), refused


def case(at: int, row: Row) -> Case | str:
    """A row as a case, or why it is none."""
    try:
        served = served_engine(row.get("engine", ""))
        if served.step_floor_ms(1):
            raise CaseError(f"{row.get('engine')}: a host that sets the pace of steps is not simulated")
        setting, _ = resolved(row, served)
        test = load_test(row, setting.scenario)
    except (CaseError, HeadroomError) as error:
        return str(error)
    return Case(at, _configuration(row, served, setting, test), setting, test)


def _configuration(row: Row, served: Served, setting: Setting, test: LoadTest) -> Hashable:
    """What decides the step times of a row."""
    return (served, row.get("engine_version"), row.get("weight_precision"), setting.scenario, test.spread)


def of_one(group: Sequence[Case], *, steady: bool = False) -> Iterator[tuple[int, Found]]:
    """The load tests of one configuration by place in the table, on the same step times; `steady`: see `simulated`."""
    try:
        known = replica(group)
    except HeadroomError as error:
        yield from ((each.at, str(error)) for each in group)
        return
    for each in group:
        yield each.at, load_tested(each, known, steady=steady)


def replica(group: Sequence[Case]) -> Replica:
    """The replica of cases of one configuration, with room for the largest of their tests.

    Raises:
        InputError: where the layout holds no request.
    """
    setting, test = group[0].setting, group[0].test
    scenario = setting.scenario
    budgets = [each.test.budget or setting.token_budget for each in group]
    setting = replace(setting, token_budget=max(budgets))
    clients = max(each.test.clients for each in group)
    most = None if any(each.test.open for each in group) else ROOM * clients + BESIDE
    longest = test.longest(scenario.isl) + test.longest(scenario.osl)
    return replica_of(setting, bounds(setting, placed_at(setting).tall), longest, "engine", "recompute", most)


def load_tested(one: Case, known: Replica, *, steady: bool = False) -> Found:
    """One load test on a replica of its configuration; `steady`: see `simulated`."""
    outcome = _ran(one.test, one.setting, known)
    if not outcome.served.any():
        return "no request fits the cache"
    found = _seen(one, outcome)
    if not steady or one.test.arrivals != "closed" or found.rate <= 0.0:
        return found
    count = max(STEADY_REQUESTS, one.test.requests)
    again = _ran(replace(one.test, arrivals="poisson", rate=found.rate, requests=count), one.setting, known)
    counted = again.ttft[again.counted]
    return replace(found, steady_ms=float(counted.mean()) * 1e3 if len(counted) else None)


def _ran(test: LoadTest, setting: Setting, known: Replica) -> Outcome:
    """What a load test measured."""
    run = ready(test, setting, known, test.table(setting.scenario.isl, setting.scenario.osl))
    run.loop.run(None, None)
    return run.outcome()


def ready(test: LoadTest, setting: Setting, known: Replica, table: Requests) -> Ready:
    """A load test on a replica of its configuration, before the first request."""
    budget = test.budget or setting.token_budget
    seats = known.seats if test.open else min(known.seats, test.clients)
    lanes = known.steps.ways
    its = replace(known, seats=seats, budget=budget * lanes, chunk=min(known.chunk, budget))
    engine = engine_of(its, table, np.random.SeedSequence(SEED), test.patience)
    gateway = Gateway([engine], "least-loaded", len(table), table, SEED)
    loop = Loop(table, [engine], gateway, None, "queue", None if test.open else test.clients)
    return Ready(loop, its, test.clients, int(WARM_UP * len(table)) if test.open else 0, reads=True)


def _seen(one: Case, outcome: Outcome) -> Seen:
    """What a client saw of all its requests."""
    served = outcome.served
    ttft, tpot = outcome.ttft[served] * 1e3, outcome.tpot[served] * 1e3
    later = ttft[BURST_ROUNDS * one.test.clients :] if one.test.arrivals == "closed" else ttft[:0]
    many = tpot[np.isfinite(tpot)]
    span = outcome.span
    gpus = float(np.ravel(placed_at(one.setting).devices)[0])
    return Seen(
        clients=one.test.clients,
        requests=len(outcome.state),
        ttft_ms=float(ttft.mean()),
        ttft_median_ms=float(np.median(ttft)),
        later_ms=float(later.mean()) if len(later) else None,
        steady_ms=None,
        tpot_ms=float(many.mean()) if len(many) else None,
        out_tps_per_gpu=float(outcome.requests.osl[served].sum()) / span / gpus if span > 0 else None,
        rate=len(ttft) / span if span > 0 else 0.0,
        preempted=int(outcome.preempted.sum()),
    )
