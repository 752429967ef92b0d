"""The simulator against queueing theory: cases with exact answers, each within a 95 % confidence interval of its own runs.

A replica becomes a queue when a step takes what we say: with c seats and a step of constant length it serves c at a time,
a request for its output tokens times the step; with a step that takes as long as there are requests in it, it shares
itself among all of them. A step is 1/400 to 1/2000 of a mean service, so that waiting for its boundary weighs little.

Intervals are Student's t over ten independent runs, whose first tenth is left out. A right simulator falls outside of one
such interval with a chance of 5 %, and of one of the 18 below with 1 − 0.95^18 = 60 %: every case has seeds of its own, and
they are fixed, so that what passes once does so always, and a change that fails many of them at once is a bias. That an
interval is not so wide that it holds anything is asserted too. On the paths of one server there is no chance at all: every
wait is Lindley's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import t as student

from planner.setting import resolve
from planner.simulate.outcome import Outcome
from planner.simulate.requests import Requests
from planner.simulate.run import ready, simulate
from planner.simulate.summary import summarised
from planner.simulate.traffic import Traffic
from planner.simulate.workload import arrivals
from planner.single import plan_of
from planner.specs.scenario import Scenario
from tests.simulating import Steps, asked, simulated, wide

RUNS, COUNT = 10, 6_000
"""Independent runs of each case, and requests of each."""

MEAN = 1000
"""Mean output tokens; the unit of time is the mean service, a token is a thousandth of it."""

STEP = Steps(decodes=lambda *_: 1 / MEAN, reads=lambda batch, *_: 0.0 if batch else 1 / MEAN)
"""Every step has one length, and the step that reads a prompt gives the first token: a service is tokens times step."""


@dataclass(frozen=True)
class Interval:
    """A mean and half of its 95 % confidence interval."""

    mean: float
    half: float

    def holds(self, exact: float, width: float) -> bool:
        """Whether the exact value is in it, and the interval is narrower than a share of that value."""
        return abs(self.mean - exact) <= self.half and self.half < width * exact


def interval(values: list[float]) -> Interval:
    found = np.array(values)
    half = float(student.ppf(0.975, len(found) - 1)) * float(found.std(ddof=1)) / len(found) ** 0.5
    return Interval(float(found.mean()), half)


def geometric(chance: np.random.Generator, count: int) -> np.ndarray:
    return chance.geometric(1 / MEAN, count)


def constant(chance: np.random.Generator, count: int) -> np.ndarray:
    return np.full(count, MEAN)


def two_points(chance: np.random.Generator, count: int) -> np.ndarray:
    """One in ten is 5.5 times as long as the mean, the others half."""
    return np.where(chance.random(count) < 0.1, 11 * MEAN // 2, MEAN // 2)


SECOND = {geometric: 2 - 1 / MEAN, constant: 1.0, two_points: 0.1 * 5.5**2 + 0.9 * 0.5**2}
"""Second moments of those lengths, in squares of the mean."""

Lengths = Callable[[np.random.Generator, int], np.ndarray]


def poisson(seed: list[int], rate: float, lengths: Lengths) -> Requests:
    chance = np.random.default_rng(seed)
    return asked(np.cumsum(chance.exponential(1 / rate, COUNT)), 1, lengths(chance, COUNT))


def settled(values: np.ndarray) -> np.ndarray:
    return values[len(values) // 10 :]


def waits(found: Outcome) -> np.ndarray:
    """Time until a request is let in; the step that reads its prompt is a part of its service."""
    return settled(found.ttft - 1 / MEAN)


def kept(found: Outcome) -> Outcome:
    """Little's law, by the requests' own times: the number in the system is the integral that was counted."""
    marks = np.concatenate([found.requests.arrival, found.end])
    order = np.argsort(marks, kind="stable")
    inside = np.cumsum(np.repeat([1.0, -1.0], len(found.end))[order])
    assert found.area == pytest.approx(float((inside[:-1] * np.diff(marks[order])).sum()), rel=1e-9)
    assert summarised(found, Scenario(model="llama-3.1-8b", gpu="h100-sxm")).little == pytest.approx(1.0, rel=1e-9)
    return found


def runs(case: Callable[[int], Outcome]) -> Iterator[Outcome]:
    for seed in range(RUNS):
        yield kept(case(seed))


# --- one at a time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "load", "lengths"),
    [(1, 0.5, geometric), (2, 0.5, constant), (3, 0.5, two_points), (4, 0.7, geometric), (5, 0.7, constant)],
)
def test_one_server(case: int, load: float, lengths: Lengths) -> None:
    """Pollaczek–Khinchine: the mean wait is ρ/(1 − ρ) · E[S²] / (2 E[S]); M/M/1 and M/D/1 among them."""
    found = runs(lambda run: simulated(poisson([case, run], load, lengths), wide(STEP, seats=1)))
    exact = load / (1 - load) * SECOND[lengths] / 2
    assert interval([float(waits(each).mean()) for each in found]).holds(exact, 0.15)


@pytest.mark.parametrize("lengths", [geometric, constant, two_points])
def test_every_wait_before_one_server_is_lindleys(lengths: Lengths) -> None:
    """The wait of the next is the wait and service of this one less the time between them, or nothing."""
    found = simulated(poisson([0, 0], 0.8, lengths), wide(STEP, seats=1))
    wait, waited = 0.0, []
    for service, apart in zip(found.requests.osl / MEAN, np.diff(found.requests.arrival, append=np.inf), strict=True):
        waited.append(wait)
        wait = max(0.0, wait + service - apart)
    assert np.allclose(found.ttft - 1 / MEAN, waited, rtol=1e-9, atol=1e-8)


def test_one_server_is_busy_for_what_is_served() -> None:
    """Utilisation: the time integral of requests in service is the sum of services, whatever waits."""
    found = simulated(poisson([0, 1], 0.7, geometric), wide(STEP, seats=1))
    assert found.busy == pytest.approx(float(found.requests.osl.sum()) / MEAN, rel=1e-9)


def test_bursts_before_one_server() -> None:
    """GI/M/1 with gamma arrivals of cv 2: σ = A*(μ(1 − σ)), the mean wait is σ/(1 − σ), and σ of all wait.

    Runs are twice as long, since bursts make neighbours alike.
    """
    load, shape = 0.6, 0.25
    root = brentq(lambda s: (1 + (1 - s) / (load * shape)) ** -shape - s, 1e-6, 1 - 1e-6)
    mean, waited = [], []
    for seed in range(RUNS):
        at = arrivals(Traffic(arrival="gamma", cv=2.0, seed=600 + seed), load, 2 * COUNT)
        lengths = geometric(np.random.default_rng([6, seed]), 2 * COUNT)
        found = kept(simulated(asked(at, 1, lengths), wide(STEP, seats=1)))
        mean.append(float(waits(found).mean()))
        waited.append(float((waits(found) > 1e-9).mean()))
    assert interval(mean).holds(root / (1 - root), 0.15)
    assert interval(waited).holds(root, 0.05)


# --- several at a time -----------------------------------------------------------------------------------------------


def erlang_c(servers: int, offered: float) -> float:
    """Share of arrivals that wait."""
    full = offered**servers / factorial(servers) * servers / (servers - offered)
    return full / (sum(offered**k / factorial(k) for k in range(servers)) + full)


@pytest.mark.parametrize(("servers", "load"), [(2, 0.7), (8, 0.8)])
def test_several_servers(servers: int, load: float) -> None:
    """Erlang C: how many wait, and the mean wait C/(c − a). Whoever waits for less than a step waits for its boundary."""
    mean, waited = [], []
    for found in runs(
        lambda run: simulated(poisson([7, servers, run], servers * load, geometric), wide(STEP, seats=servers))
    ):
        mean.append(float(waits(found).mean()))
        waited.append(float((waits(found) > 1.001 / MEAN).mean()))
        assert found.busy == pytest.approx(float(found.requests.osl.sum()) / MEAN, rel=1e-9)
    share = erlang_c(servers, servers * load)
    assert interval(waited).holds(share, 0.1)
    assert interval(mean).holds(share / (servers - servers * load), 0.2)


# --- all at a time ---------------------------------------------------------------------------------------------------

SHARED = Steps(decodes=lambda batch, _: batch / MEAN, reads=lambda _batch, _tokens, prompts: prompts / MEAN)
"""A step takes as long as there are requests in it: each is served at a rate of one over their number."""


@pytest.mark.parametrize(("case", "lengths"), [(8, geometric), (9, constant), (10, two_points)])
def test_processor_sharing_forgets_the_spread_of_lengths(case: int, lengths: Lengths) -> None:
    """M/G/1–PS: the mean response is E[S]/(1 − ρ) whatever the lengths, and that of a length x is x/(1 − ρ)."""
    load, short, long = 0.6, [], []
    for found in runs(lambda run: simulated(poisson([case, run], load, lengths), wide(SHARED, seats=4000))):
        osl, response = settled(found.requests.osl), settled(found.end - found.requests.arrival)
        first = osl <= MEAN
        short.append(float(response[first].sum() / osl[first].sum()) * MEAN)
        long.append(float(response[~first].sum() / osl[~first].sum()) * MEAN if (~first).any() else short[-1])
    assert interval(short).holds(1 / (1 - load), 0.05)
    assert interval(long).holds(1 / (1 - load), 0.08)


# --- one client ------------------------------------------------------------------------------------------------------


def test_one_client_is_arithmetic() -> None:
    """Reading, then a step for each further token, whose context grows by one: no queue, so no chance."""
    steps = Steps(
        decodes=lambda batch, context: 0.01 * batch + 1e-5 * context,
        reads=lambda _batch, tokens, _prompts: 1e-4 * tokens,
        attends=lambda tokens, _cached: 1e-8 * tokens**2,
    )
    chance = np.random.default_rng(1)
    isl, osl = chance.integers(1, 3000, 200), chance.integers(1, 400, 200)
    found = simulated(asked(np.zeros(200), isl, osl), wide(steps), clients=1)
    taken = [
        1e-4 * n + 1e-8 * n**2 + sum(0.01 + 1e-5 * (n + k) for k in range(1, more))
        for n, more in zip(isl.tolist(), osl.tolist(), strict=True)
    ]
    assert np.allclose(found.end, np.cumsum(taken), rtol=1e-12)
    assert np.allclose(found.ttft, 1e-4 * isl + 1e-8 * isl**2, rtol=1e-9)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-next-80b-a3b"])
def test_one_client_on_a_real_plan_is_the_sum_of_its_steps(model: str) -> None:
    """Steps of the plan's clock, one by one; a jump takes its middle step, which is off by the clock's bends."""
    asks = Scenario(model=model, gpu="h200-sxm", weights="fp8", tp=2, isl=1500, osl=300)
    traffic = Traffic(arrival="closed", clients=1, requests=20)
    run = simulate(asks, traffic)
    steps = ready(resolve(asks), plan_of(asks), traffic, run.outcome.requests).replica.steps
    one = steps.prompt(1500, 0, 1e9) + sum(steps.decode(1, 1500 + k) for k in range(1, 300))
    assert run.outcome.end[-1] == pytest.approx(20 * one, rel=1e-3)


# --- real plans ------------------------------------------------------------------------------------------------------

PLANS: list[dict[str, Any]] = [
    {"model": "llama-3.1-8b", "gpu": "h100-sxm"},
    {"model": "llama-3.1-8b", "gpu": "h100-sxm", "spec": 3, "accept": 0.7},
    {"model": "llama-3.1-70b", "gpu": "h100-sxm", "tp": 8, "engine": "sglang"},
    {"model": "llama-3.1-70b", "gpu": "h100-sxm", "tp": 8, "engine": "trtllm"},
    {"model": "llama-3.1-70b", "gpu": "h100-sxm", "tp": 8, "prefill": "disaggregated"},
    {"model": "llama-3.1-70b", "gpu": "h100-sxm", "tp": 8, "prefill": "excluded"},
    {"model": "deepseek-v3", "gpu": "h200-sxm", "tp": 1, "dp": 8, "ep": 8, "weights": "fp8"},
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: "-".join(str(value) for value in plan.values()))
@pytest.mark.parametrize("traffic", [{}, {"arrival": "gamma", "cv": 3.0, "osl_cv": 1.0}, {"arrival": "closed"}])
def test_littles_law_on_real_plans(plan: dict[str, Any], traffic: dict[str, Any]) -> None:
    """L = λW by the requests' own times, and every request has its first token and its end."""
    found = kept(simulate(Scenario(**plan), Traffic(requests=1500, **traffic)).outcome)
    assert found.served.all()
    assert np.isfinite(found.first).all()
