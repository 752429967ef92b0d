"""How far off simulated times may be: the load tests that were simulated and measured, and what they do not show."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.setting import resolve
from planner.simulate.loaded import ENGINES, loaded_errors
from planner.simulate.traffic import Traffic
from planner.simulate.validation import KINDS
from planner.specs.scenario import Scenario
from planner.ui import show
from planner.ui.text import language
from planner.units import show as shown
from planner.units import whole

EN: Final = {
    "of": "How far off: {configurations} public load-test configurations of {engine} ({points} points) were simulated as they "
    "ran; half of them are within {ttft} of the measured mean TTFT and {tpot} of TPOT (docs/VALIDATION.md).",
    "of_none": "How far off: no public load test of {engine} was simulated beside its measurement. Over the engines that were, "
    "half are within {ttft} of the measured mean TTFT and {tpot} of TPOT.",
    "open": "Public figures of open traffic are too few to say how far off tails are.",
    "burst": "All clients start at once, so early requests wait for each other's prompts: a load test shows that, a steady "
    "service does not.",
}
"""English text by key."""

ZH: Final = {
    "burst": "所有客户端同时开始，最初的请求互相等待对方的提示：负载测试会如此，稳定服务不会。",
}
"""Chinese text by key; what is missing is shown in English."""


def word(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text


def caption(scenario: Scenario, traffic: Traffic, *, trace: bool) -> None:
    """What a reader of simulated times must be told."""
    burst = [word("burst")] if traffic.arrival == "closed" and not trace else []
    st.caption(show.plain(" ".join((*burst, doubt(scenario)))))


def doubt(scenario: Scenario) -> str:
    """How far simulated load tests of the scenario's engine were from their measurements."""
    engine = resolve(scenario).engine.name
    known = engine if engine in ENGINES else ""
    found = {each.metric: each for each in loaded_errors(known) if each.group == KINDS[1]}
    said = {name: f"{shown(100.0 * found[metric].median)} %" for name, metric in (("ttft", "TTFT"), ("tpot", "TPOT"))}
    if not known:
        return f"{word('of_none', engine=engine, **said)} {word('open')}"
    ttft = found["TTFT"]
    counts = {"configurations": whole(float(ttft.configurations)), "points": whole(float(ttft.rows))}
    return f"{word('of', engine=engine, **counts, **said)} {word('open')}"
