"""Headroom: how many requests fit, at what latency, on how many GPUs, for how many dollars a good token."""

from planner import optimise, simulate
from planner.calibrate.correction import calibrate
from planner.catalog.scenarios import load_preset
from planner.evaluate import evaluate
from planner.explain import explain
from planner.export import from_csv, to_csv
from planner.share import from_link, to_link
from planner.single import plan_of
from planner.specs.scenario import Scenario

__all__ = [
    "Scenario",
    "calibrate",
    "evaluate",
    "explain",
    "from_csv",
    "from_link",
    "load_preset",
    "optimise",
    "plan_of",
    "simulate",
    "to_csv",
    "to_link",
]
