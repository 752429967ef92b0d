"""Traffic on a plan, request by request: queues, tails, and goodput at the percentile that was promised.

`simulate(scenario)` runs it once, `simulate.replicate(scenario, executor=…)` with many seeds: the package is what it does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from planner.optimise.answer import Progress
from planner.simulate.replicate import Replicated, replicate
from planner.simulate.requests import Requests
from planner.simulate.run import Run, simulate
from planner.simulate.traffic import Traffic
from planner.specs.scenario import Scenario

if TYPE_CHECKING:
    from planner.simulate.traces import Trace

__all__ = ["Replicated", "Requests", "Run", "Traffic", "read_trace", "replicate", "simulate"]


def read_trace(data: bytes, name: str) -> Trace:
    """As `planner.simulate.traces.read_trace`; what reads tables is loaded when the first one is read."""
    from planner.simulate import traces

    return traces.read_trace(data, name)


class _Simulation(ModuleType):
    """The package, which can be called."""

    def __call__(
        self,
        scenario: Scenario,
        traffic: Traffic | None = None,
        requests: Requests | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Run:
        """As `planner.simulate.run.simulate`."""
        return simulate(scenario, traffic, requests, on_progress, cancelled)


sys.modules[__name__].__class__ = _Simulation
