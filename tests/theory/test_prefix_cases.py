"""What a prefix cache gains, by kind of traffic: the shares and gains of a source article, in the simulator.

The article says that of four kinds of traffic the cache serves 81, 72, 88 and 0 % of the prompt tokens, and that the same
engine then gives about 30, 25, 40 and 0 % more. An engine that spends a share p of its time on prompts and finds a share h
of them in its cache gives 1/(1 − p·h) of what it gave. Solved for p the three gains are

    (1 − 1/1.30)/0.81 = 0.285    (1 − 1/1.25)/0.72 = 0.278    (1 − 1/1.40)/0.88 = 0.325

so the article's engine spent 0.296 of its time on prompts, on average. The workloads below have one shape: mean prompts of
2,844 tokens, of which the shared document of 2,048 is 72 %, and outputs of 611. That is the ratio at which the fifth turn
of a chat, with four turns of history, makes 81 %: with new input u and output o a turn, prompts of k·u + (k − 1)·o come to
15·u + 10·o, of which 10·(u + o) is history; 81 % gives o = 1.13·u, and a mean prompt of 2,844 gives u = 540 and o = 611.
Outputs are spread evenly from half to one and a half times their mean, or requests that came together would end together.
The one number left is how many requests run at a time: of every eighth, the one at which this engine spends nearest to
0.296 of its time on prompts that share nothing, which is what it gains when they are read elsewhere. Nothing is chosen by
row, and no cached run is looked at.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.setting import resolve
from planner.simulate.requests import Requests, requests
from planner.simulate.run import Ready, ready
from planner.simulate.summary import Summary, summarised
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario

ISL, NEW, OSL, TURNS = 2844, 540, 611, 5
SHARE = 0.296
"""Share of an engine's time that prompts take without a cache, of the article's three gains."""

SESSIONS, ROUNDS = 130, 3
"""Chats that go on side by side, one turn each after another, and how often new ones take their places."""

COUNT = SESSIONS * TURNS * ROUNDS
SCENARIO = Scenario(model="llama-3.1-8b", gpu="h200-sxm", isl=ISL, osl=OSL)

CASES = {"chat": (0.81, 0.30), "documents": (0.72, 0.25), "agent": (0.88, 0.40), "independent": (0.0, 0.0)}
"""Share of the prompt tokens that the cache serves, and what it gains in throughput, as the article has them."""


def outputs() -> np.ndarray:
    return np.random.default_rng(1).integers(OSL // 2, OSL + OSL // 2 + 1, COUNT)


def alike(shared: int) -> Requests:
    """Prompts of one length that begin alike, or share nothing."""
    table = requests(np.zeros(COUNT), np.full(COUNT, ISL), outputs())
    if not shared:
        return table
    return replace(table, group=np.zeros(COUNT, dtype=np.int64), shared=np.full(COUNT, shared))


def chats() -> Requests:
    """All first turns, then all second ones and so on: a turn is sent when the one before it has long been answered."""
    osl = outputs().reshape(ROUNDS, TURNS, SESSIONS)
    isl = NEW * np.arange(1, TURNS + 1)[None, :, None] + np.cumsum(osl, axis=1) - osl
    session = np.broadcast_to(np.arange(ROUNDS * SESSIONS).reshape(ROUNDS, 1, SESSIONS), osl.shape)
    return replace(requests(np.zeros(COUNT), isl.ravel(), osl.ravel()), session=session.ravel().copy())


def workload(kind: str) -> Requests:
    if kind == "chat":
        return chats()
    return alike({"documents": 2048, "agent": round(0.88 * ISL), "independent": 0}[kind])


def made_ready(table: Requests, clients: int) -> Ready:
    traffic = Traffic(arrival="closed", clients=clients, in_flight=clients)
    return ready(resolve(SCENARIO), plan_of(SCENARIO), traffic, table)


class AtOnce:
    """Prompts cost nothing."""

    def read(self, at: float, _tokens: int) -> float:
        return at


def saturated(table: Requests, clients: int, *, prompts: bool = True) -> Summary:
    run = made_ready(table, clients)
    run.loop.readers = run.loop.readers if prompts else AtOnce()
    run.loop.run(None, None)
    return summarised(run.outcome(), SCENARIO)


@cache
def share(clients: int) -> float:
    """Share of its time that the engine spends on prompts without a cache: 1 less what it gives of what it could."""
    table = alike(0)
    return 1 - saturated(table, clients).output_tok_s / saturated(table, clients, prompts=False).output_tok_s


@cache
def clients() -> int:
    """Requests that run at a time; the share grows with them, since decoding is shared and reading is not."""
    return min(range(56, 121, 8), key=lambda count: abs(share(count) - SHARE))


@cache
def measured(kind: str, *, cached: bool) -> Summary:
    """A saturated run, with the cache or as if nothing were alike."""
    table = workload(kind)
    return saturated(table if cached else requests(table.arrival, table.isl, table.osl), clients())


def test_the_shape_is_the_articles() -> None:
    assert np.mean(chats().isl) == pytest.approx(ISL, rel=0.01)
    assert pytest.approx(0.81, abs=0.001) == 10 * (NEW + OSL) / (15 * NEW + 10 * OSL)
    assert pytest.approx(0.72, abs=0.001) == 2048 / ISL
    gains = [(1 - 1 / (1 + gain)) / share for share, gain in CASES.values() if share]
    assert np.mean(gains) == pytest.approx(SHARE, abs=0.001)


def test_the_engine_spends_the_share_of_its_time_on_prompts_that_the_gains_imply() -> None:
    assert share(clients()) == pytest.approx(SHARE, abs=0.01)
    assert share(56) < share(clients()) < share(120)


@pytest.mark.parametrize("kind", CASES)
def test_what_the_cache_serves(kind: str) -> None:
    assert measured(kind, cached=True).hit == pytest.approx(CASES[kind][0], abs=0.01)
    assert measured(kind, cached=False).hit == 0.0


@pytest.mark.parametrize("kind", CASES)
def test_what_the_cache_gains(kind: str) -> None:
    gain = measured(kind, cached=True).output_tok_s / measured(kind, cached=False).output_tok_s - 1
    assert gain == pytest.approx(CASES[kind][1], abs=0.06)


def test_more_in_the_cache_gains_more() -> None:
    rates = {kind: measured(kind, cached=True).output_tok_s for kind in ("independent", "documents", "agent")}
    assert rates["independent"] < rates["documents"] < rates["agent"]
