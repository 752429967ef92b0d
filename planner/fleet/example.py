"""The fleet that the page opens with: two models, three classes of traffic, racks of one's own beside rented GPUs."""

from __future__ import annotations

from functools import cache

from planner.fleet.question import FleetQuestion, Stock, TrafficClass
from planner.specs.scenario import Scenario


@cache
def example() -> FleetQuestion:
    """A sensible fleet to begin with; every figure of it is a choice, not a recommendation."""
    chat = Scenario(weights="fp8", isl=2000, osl=300, qps=20.0, sla_ttft_ms=500.0)
    documents = Scenario(weights="fp8", isl=12_000, osl=400, prefix=0.5, qps=2.0, sla_ttft_ms=2000.0)
    agents = Scenario(model="deepseek-v3", weights="fp8", isl=6000, osl=800, prefix=0.6, qps=3.0, sla_ttft_ms=2000.0)
    return FleetQuestion(
        classes=(
            TrafficClass(name="Chat", scenario=chat, precisions=("fp8", "bf16")),
            TrafficClass(name="Documents", scenario=documents),
            TrafficClass(name="Agents", scenario=agents),
        ),
        stock=(
            Stock(accelerator="h100-sxm", gpus=16, place="Own racks", owned=True),
            Stock(accelerator="h200-sxm", gpus=64, place="CoreWeave"),
        ),
        spare=1,
    )
