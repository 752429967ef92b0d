"""What a first visitor would otherwise wait for: imports, catalogues, specifications, a few plans and one fleet."""

from __future__ import annotations

import importlib
from typing import Final

from planner.anatomy import anatomy_of
from planner.catalog.scenarios import presets
from planner.fleet.example import example
from planner.fleet.mix import fleet_of
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import (
    charts,
    curve_chart,
    fleet_charts,
    model_charts,
    optimise_chart,
    optimise_tornado,
    traffic_charts,
    trust_parity,
)
from planner.ui.theme import Mode

LAZY: Final = ("pandas", "pyarrow", "streamlit.elements.vega_charts", "streamlit.elements.arrow")
MODES: Final[tuple[Mode, ...]] = ("light", "dark")

MODEL_CHARTS: Final = (
    model_charts.parameters, model_charts.experts, model_charts.weights, model_charts.intensity, model_charts.reads,
    model_charts.tiles, model_charts.phases,
)  # fmt: skip


def warm() -> None:
    """Load everything that a run of the script loads, and fill the caches that all sessions share."""
    for name in LAZY:
        importlib.import_module(name)
    importlib.import_module("planner.ui.sidebar")
    importlib.import_module("planner.ui.sharing")
    importlib.import_module("planner.ui.techniques_block")
    importlib.import_module("planner.ui.model_blocks")
    importlib.import_module("planner.ui.optimise_page")
    importlib.import_module("planner.ui.fleet_inputs")
    importlib.import_module("planner.ui.traffic_page")
    for shown in MODES:
        charts.memory(shown), curve_chart.curve(shown), charts.step(shown)
        optimise_chart.front(shown, "gpu"), optimise_tornado.tornado(shown)
        trust_parity.parity(shown, "TPOT", "engine")
        traffic_charts.state(shown), traffic_charts.cache_used(shown)
        for name in traffic_charts.TIMES:
            traffic_charts.spread(shown, name)
        for chart in (*MODEL_CHARTS, fleet_charts.bill):
            chart(shown)
    for scenario in (Scenario(), *(preset.scenario for preset in presets()[:3])):
        plan_of(scenario)
    anatomy_of(Scenario())
    fleet_of(example())
