"""What measured points do not state and a comparison with the plan takes from the scenario, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.logs.readings import Point
from planner.specs.scenario import Scenario
from planner.units import show
from planner.variants import outcome


def assumed(scenario: Scenario, points: Sequence[Point]) -> tuple[str, ...]:
    """What was taken from a scenario: to whose replicas the requests in flight belong, and lengths."""
    return (*_replicas(scenario), *_lengths(scenario, points))


def _replicas(scenario: Scenario) -> Iterator[str]:
    """How the requests in flight were divided, where the scenario has several replicas."""
    if scenario.fix_replicas is not None:
        if scenario.fix_replicas > 1:
            yield (
                f"Requests in flight are taken as those of the whole service and divided by fix_replicas = "
                f"{scenario.fix_replicas:,}."
            )
        return
    replicas = outcome(scenario).replicas
    if replicas is not None and replicas > 1:
        yield (
            f"The plan has {show(replicas, 'replicas')}, and the requests in flight are taken as one replica's; "
            "where they were measured on several, state how many as fix_replicas."
        )


def _lengths(scenario: Scenario, points: Sequence[Point]) -> Iterator[str]:
    """Which mean lengths are the scenario's."""
    for field, noun in (("isl", "input"), ("osl", "output")):
        lacking = sum(1 for point in points if getattr(point, field) is None)
        if lacking:
            who = "No point states" if lacking == len(points) else f"{lacking:,} of {len(points):,} points do not state"
            yield f"{who} {noun} tokens a request: the scenario's {getattr(scenario, field):,} are assumed."
