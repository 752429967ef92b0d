"""The figures of a run, each a number with a name: what its files, its table and its intervals say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.simulate.run import Run
from planner.simulate.summary import Spread, Summary
from planner.simulate.traffic import Traffic
from planner.specs.scenario import Scenario

TIMES: Final = ("ttft", "tpot", "e2e")
"""Times that are spread over requests."""

STATISTICS: Final = {"mean": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "pct": "at_pct"}
"""What is told of each, as in `ttft_p99_ms`, with its name in a `Spread`; `pct` is the promised percentile."""

RENAMED: Final = {"used": "kv_used", "used_peak": "kv_used_peak", "hit": "prefix_hit"}
"""Figures whose name says less inside a summary than beside others."""

COUNTS: Final = ("requests", "served", "rejected", "too_long", "counted")
"""Figures that stand before the times."""

FIGURES: Final = (
    *COUNTS,
    *(f"{time}_{name}_ms" for time in TIMES for name in STATISTICS),
    *(RENAMED.get(name, name) for name in Summary.__dataclass_fields__ if name not in (*COUNTS, *TIMES)),
)
"""Every figure, in the order in which files write them."""


def figures(summary: Summary) -> dict[str, int | float | bool | None]:
    """A summary as one number a name, in the order of `FIGURES`; times in ms, None where there is none."""
    found: dict[str, int | float | bool | None] = {}
    for name, value in vars(summary).items():
        if isinstance(value, Spread):
            found.update({f"{name}_{short}_ms": getattr(value, field) for short, field in STATISTICS.items()})
        else:
            found[RENAMED.get(name, name)] = value
    return found


@dataclass(frozen=True)
class Digest:
    """What a run comes to, without its requests: small enough to be sent between processes.

    Attributes:
        scenario, traffic: as asked.
        rate: requests a second offered; limit: requests that each replica was given at a time.
        replicas: how many there were.
        summary: the figures.
        trace: whether requests were given, so that scenario and traffic do not say what arrived.
        isl_mean, osl_mean: mean lengths of the requests that arrived [tokens].
    """

    scenario: Scenario
    traffic: Traffic
    rate: float
    limit: int
    replicas: int
    summary: Summary
    trace: bool = False
    isl_mean: float = 0.0
    osl_mean: float = 0.0


def digest(run: Run | Digest) -> Digest:
    """A run without its requests."""
    if isinstance(run, Digest):
        return run
    came = run.outcome.requests
    lengths = float(came.isl.mean()), float(came.osl.mean())
    return Digest(
        run.scenario, run.traffic, run.rate, run.limit, run.outcome.replicas, run.summary, run.trace, *lengths
    )
