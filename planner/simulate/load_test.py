"""The load test behind a measured row: who sends what when, and what the engine was told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Literal, TypeAlias

import numpy as np

from planner.case_words import CaseError, Row, number, positive
from planner.catalog.load_tests import Harness, Launch, harness, launches
from planner.simulate.patient import Patience
from planner.simulate.requests import Requests, requests
from planner.specs.scenario import Scenario

Arrivals: TypeAlias = Literal["closed", "burst", "poisson", "constant"]
"""How requests arrive: the client's modes, and open ones by the table's `load_mode`."""

MODES: dict[str, Arrivals] = {
    "closed_loop_concurrency": "closed", "serial_single_stream": "closed", "saturated_max_num_seqs": "closed",
    "burst_all_at_once": "burst", "static_batch": "burst",
    "open_loop_poisson": "poisson", "open_loop_constant_rate": "constant",
}  # fmt: skip
"""How requests arrive, by the words of tables that say so."""

OPEN_REQUESTS = 2000
"""Requests of an open run."""

SEED = 1
"""Of lengths and arrivals."""


@dataclass(frozen=True)
class LoadTest:
    """A load test.

    Attributes:
        arrivals: how requests arrive.
        clients: requests in flight at most (closed and burst).
        requests: how many are sent.
        spread: lengths are uniform within this share of their mean.
        rate: requests a second (open runs).
        budget: tokens of a step on one rank; None = the engine's own.
        patience: how long new prompts are left waiting; None = not at all.
    """

    arrivals: Arrivals
    clients: int
    requests: int
    spread: float
    rate: float = 0.0
    budget: int | None = None
    patience: Patience | None = None

    @property
    def open(self) -> bool:
        """Whether requests come by themselves."""
        return self.arrivals in ("poisson", "constant")

    def longest(self, mean: int) -> int:
        """Longest of the lengths around a mean [tokens]."""
        return max(1, round(mean * (1.0 + self.spread)))

    def shortest(self, mean: int) -> int:
        """Shortest of the lengths around a mean [tokens]."""
        return max(1, round(mean * (1.0 - self.spread)))

    def table(self, isl: int, osl: int, seed: int = SEED) -> Requests:
        """The requests, around mean lengths [tokens]."""
        random = np.random.default_rng(seed)
        count = self.requests
        lengths = [self._lengths(random, mean) for mean in (isl, osl)]
        apart = np.zeros(count)
        if self.arrivals == "poisson":
            apart = random.exponential(1.0 / self.rate, count)
        elif self.arrivals == "constant":
            apart = np.full(count, 1.0 / self.rate)
        return requests(np.cumsum(apart), lengths[0], lengths[1])

    def _lengths(self, random: np.random.Generator, mean: int) -> np.ndarray:
        """Whole lengths, uniform around a mean."""
        return random.integers(self.shortest(mean), self.longest(mean) + 1, self.requests)


def load_test(row: Row, scenario: Scenario) -> LoadTest:
    """How a row was measured, as far as its table and its source say.

    Args:
        row: of a table of served points; `load_mode` and `request_rate` count where it has them.
        scenario: what the row means to the planner.

    Raises:
        CaseError: where the load is not known, or not one that is simulated.
    """
    client = harness(row.get("source_id", ""))
    word = row.get("load_mode", "")
    if word and word not in MODES:
        raise CaseError(f"load mode {word} is not simulated")
    arrivals: Arrivals = MODES[word] if word else client.mode
    if arrivals in ("poisson", "constant"):
        return _open(row, arrivals, client)
    stated = positive(row, "concurrency", "concurrency_eff")
    if stated is None:
        raise CaseError("concurrency is not stated")
    clients = max(1, round(stated))
    count = client.requests or max(client.per_client * clients, client.least)
    test = LoadTest(arrivals, clients, count if arrivals == "closed" else clients, client.spread)
    return _told(test, row, scenario)


def _open(row: Row, arrivals: Arrivals, client: Harness) -> LoadTest:
    """An open run at the row's rate."""
    rate = number(row, "request_rate")
    if not rate:
        raise CaseError("request_rate is not stated")
    return LoadTest(arrivals, 1, client.requests or OPEN_REQUESTS, client.spread, rate)


def _told(test: LoadTest, row: Row, scenario: Scenario) -> LoadTest:
    """A load test with what the engine was told."""
    prompt, output = test.longest(scenario.isl), test.longest(scenario.osl)
    for launch in launches(row.get("source_id", "")):
        if not _fits(launch, row, scenario, test, max(prompt, output)):
            continue
        budget = ceil(launch.tokens + launch.isl * prompt + launch.osl * output + launch.clients * test.clients)
        return replace(
            test, budget=budget or None, patience=_patience(launch, budget, test.shortest(scenario.isl * scenario.dp))
        )
    return test


def _patience(launch: Launch, budget: int, each: int) -> Patience | None:
    """How long new prompts are left waiting; `each`: tokens of the shortest prompts on every attention rank."""
    if not launch.wait_steps:
        return None
    if launch.wait_each:
        return Patience(launch.wait_steps, each)
    return Patience(launch.wait_steps, ceil(launch.wait_share * budget) if launch.wait_share else None)


def _fits(launch: Launch, row: Row, scenario: Scenario, test: LoadTest, longest: int) -> bool:
    """Whether a launch is the row's."""
    named = not launch.engine or row.get("engine", "") == launch.engine
    begins = row.get("model_family", "").startswith(launch.family) and row.get("gpu", "").startswith(launch.accelerator)
    within = (
        launch.dp_from <= scenario.dp
        and scenario.tp < launch.tp_below
        and longest <= launch.longest
        and test.clients >= launch.clients_from
    )
    return named and begins and within
