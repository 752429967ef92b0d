"""Rows behind the charts and tables of the Traffic page: numbers for the scales, finished text for labels and tooltips."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile
from math import isfinite, log, sqrt
from typing import Final

import numpy as np

from planner.simulate.expected import Expected
from planner.simulate.outage import Course, Outage
from planner.simulate.studies import Knee, Routing
from planner.specs.scenario import Scenario
from planner.ui import traffic_charts as charts
from planner.ui.data import Row, rows
from planner.ui.marks import Datasets
from planner.ui.model_data import datasets, schema
from planner.ui.traffic_sentences import pct_of, promised, share
from planner.ui.traffic_tasks import SHARES, Told
from planner.ui.traffic_words import word
from planner.units import DASH, show, significant, whole

STOPS: Final = 40
"""Points of a curve that answer the pointer, about."""

NEAR: Final = 0.45
"""A level is drawn where curves come within this share of it: further off it would flatten them."""


def stops(x: Sequence[float], texts: Sequence[Row], *, logarithmic: bool = False) -> list[Row]:
    """Points that answer the pointer, each with the stretch of the axis that it answers for, and its texts."""
    every = max(len(x) // STOPS, 1)
    at = list(range(0, len(x), every))
    spots = [float(x[each]) for each in at]
    if not spots:
        return []
    between = (lambda one, other: sqrt(one * other)) if logarithmic else (lambda one, other: (one + other) / 2.0)
    edges = [spots[0], *(between(one, other) for one, other in pairwise(spots)), spots[-1]]
    return [(spot, *edge, *texts[each]) for spot, edge, each in zip(spots, pairwise(edges), at, strict=True)]


def _line(x: Sequence[float], y: Sequence[float | None], name: str) -> list[Row]:
    """Points of one curve; what is not finite is left out."""
    return [(float(a), float(b), name) for a, b in zip(x, y, strict=True) if b is not None and isfinite(b)]


def _toward(at: float, low: float, high: float) -> str:
    """On which side of an upright rule its label has room."""
    return "left" if at - low < 0.5 * (high - low) else "right"


# --- over time --------------------------------------------------------------------------------------


def state(told: Told) -> Datasets:
    """Requests that run and wait, over time; the limit where they come near it."""
    line = told.state
    limit = float(told.limit * told.replicas)
    most = max(float(line.running.max(initial=0.0)), float(line.waiting.max(initial=0.0)))
    levels = [(limit, word("state_limit", limit=whole(limit)), "bottom")] if most > NEAR * limit else []
    said = [
        (show(float(t), "s"), significant(float(r)), whole(float(w)))
        for t, r, w in zip(line.time, line.running, line.waiting, strict=True)
    ]
    time = line.time.tolist()
    curves = _line(time, line.running.tolist(), charts.RUNNING) + _line(time, line.waiting.tolist(), charts.WAITING)
    return datasets(curves, stops(time, said), ("at", "running", "waiting"), levels)


def cache_used(told: Told) -> Datasets:
    """Share of the cache in use, over time."""
    time, used = told.state.time.tolist(), (100.0 * told.state.used).tolist()
    said = [(show(t, "s"), f"{significant(u)} %") for t, u in zip(time, used, strict=True)]
    return datasets(_line(time, used, charts.CACHE), stops(time, said), ("at", "used"))


def state_rows(told: Told) -> list[tuple[str, ...]]:
    """The state over time as finished figures."""
    line = told.state
    columns = zip(line.time, line.running, line.waiting, 100.0 * line.used, strict=True)
    return [tuple(figure(float(value)) for value in row) for row in columns]


# --- distributions ----------------------------------------------------------------------------------


def spread(told: Told, name: str) -> Datasets:
    """How one time is spread, with its SLA and the promised percentile."""
    scenario, times = told.asked.scenario, np.maximum(told.times[name], 1e-3)
    percent = 100.0 * SHARES
    x, y = times.tolist(), percent.tolist()
    at_pct = getattr(told.summary, name).at_pct
    sla = {"ttft": scenario.sla_ttft_ms, "tpot": scenario.sla_tpot_ms}.get(name)
    ends = (log(min(x[0], sla or x[0])), log(max(x[-1], sla or x[-1])))
    limits = (
        [] if sla is None else [(sla, word("sla_label", sla=promised(name, scenario)), _toward(log(sla), *ends), 0)]
    )
    points = [] if at_pct is None else [(at_pct, scenario.sla_pct, charts.TIMES[name])]
    levels = [(scenario.sla_pct, word("percentile_label", pct=pct_of(scenario)), "top")]
    said = [(f"{significant(b)} %", show(a, "ms")) for a, b in zip(x, y, strict=True)]
    return datasets(_line(x, y, charts.TIMES[name]), _spread_stops(x, said), ("share", "time"), levels, limits, points)


def _spread_stops(x: list[float], said: list[Row]) -> list[Row]:
    """Stops at times that differ: many requests may take the same."""
    kept = [at for at in range(len(x)) if at == 0 or x[at] > 1.002 * x[at - 1] or at == len(x) - 1]
    return stops([x[at] for at in kept], [said[at] for at in kept], logarithmic=True)


def spread_rows(told: Told) -> list[Row]:
    """Percentiles of all times as finished figures."""
    found = []
    for name in charts.TIMES:
        each = getattr(told.summary, name)
        values = (each.mean, each.p50, each.p90, each.p95, each.p99)
        sla = promised(name, told.asked.scenario) if name in ("ttft", "tpot") else DASH
        found.append((charts.TIMES[name], *(show(value, "ms") for value in values), sla))
    return found


def share_rows(told: Told) -> list[tuple[str, ...]]:
    """Times by share of requests as finished figures [% and ms]."""
    columns = [told.times[name] for name in charts.TIMES if len(told.times[name])]
    rows_of = zip(100.0 * SHARES, *columns, strict=True)
    return [(figure(float(part)), *(figure(float(time)) for time in times)) for part, *times in rows_of]


# --- rates ------------------------------------------------------------------------------------------


def knee(found: Knee, scenario: Scenario, expected: Sequence[Expected]) -> Datasets:
    """Good tokens over rate, simulated and by theory, with the knee and the rate asked."""
    rate = [each.rate for each in found.points]
    good = [each.summary.good_tok_s * found.replicas for each in found.points]
    sure = list(takewhile(lambda each: each.sure, expected))
    theory = [(each.rate, each.rate * scenario.osl * each.share, charts.THEORY) for each in sure]
    near = {each.rate: each for each in expected}
    said = [
        (
            word("trace_rate", rate=significant(each.rate)), f"{whole(tokens)} tok/s", share(each.summary.share_good),
            _by_theory(near.get(each.rate), scenario),
        )
        for each, tokens in zip(found.points, good, strict=True)
    ]  # fmt: skip
    points = [(each.rate, each.summary.good_tok_s * found.replicas, charts.SIMULATED) for each in found.points]
    return datasets(
        _line(rate, good, charts.SIMULATED) + theory, stops(rate, said), ("at", "good", "share", "theory"),
        limits=_marks(found), points=points,
    )  # fmt: skip


def _by_theory(each: Expected | None, scenario: Scenario) -> str:
    """Good tokens by theory; a dash where it is not sure."""
    return DASH if each is None or not each.sure else f"{whole(each.rate * scenario.osl * each.share)} tok/s"


def _marks(found: Knee) -> list[Row]:
    """The knee, and the rate asked below it."""
    low, high = 0.0, found.points[-1].rate
    marks = [] if found.knee is None else [(found.knee, word("knee_label", rate=significant(found.knee)))]
    marks.append((found.now, word("now_label", rate=significant(found.now))))
    return [(at, label, _toward(at, low, high), row) for row, (at, label) in enumerate(marks)]


def ratio(found: Knee, scenario: Scenario) -> Datasets:
    """Times over their SLA, over rate."""
    rate = [each.rate for each in found.points]
    ttft = [_over(each.summary.ttft.at_pct, scenario.sla_ttft_ms) for each in found.points]
    tpot = [_over(each.summary.tpot.at_pct, scenario.sla_tpot_ms) for each in found.points]
    said = [
        (
            word("trace_rate", rate=significant(each.rate)), show(each.summary.ttft.at_pct, "ms"),
            show(each.summary.tpot.at_pct, "ms"),
        )
        for each in found.points
    ]  # fmt: skip
    curves = _line(rate, ttft, charts.TTFT) + _line(rate, tpot, charts.TPOT)
    levels = [(1.0, "SLA", "bottom")]
    return datasets(curves, stops(rate, said), ("at", "ttft", "tpot"), levels, _marks(found))


def _over(value: float | None, limit: float) -> float | None:
    return None if value is None else value / limit


def knee_rows(found: Knee) -> list[tuple[str, ...]]:
    """Every rate as finished figures."""
    each = [(point.rate, point.summary) for point in found.points]
    return [
        (
            significant(rate), figure(one.good_tok_s * found.replicas), share(one.share_good), figure(one.ttft.at_pct),
            figure(one.tpot.at_pct), word("yes" if one.meets_sla else "no"),
        )
        for rate, one in each
    ]  # fmt: skip


# --- routers ----------------------------------------------------------------------------------------

WAYS: Final = schema(("x",), ("router", "look", "name", "limit", "ttft", "tpot", "share"))
PROMISE: Final = schema(("x",), ("label", "toward"))


def routing(found: Routing, scenario: Scenario) -> Datasets:
    """Dots of every router and limit, and the SLA where they come near it."""
    ways = []
    for way in found.ways:
        time, look = way.summary.ttft.at_pct, charts.LIMITS[look_of(found, way.limit)]
        if time is None:
            continue
        texts = (show(time, "ms"), show(way.summary.tpot.at_pct, "ms"), share(way.summary.share_good))
        ways.append((time, way.router, look, word(way.router), whole(way.limit), *texts))
    times = [row[0] for row in ways]
    sla = scenario.sla_ttft_ms
    ends = (log(min([*times, sla])), log(max([*times, sla])))
    label = word("sla_label", sla=promised("ttft", scenario))
    return {"ways": rows(WAYS, ways), "promise": rows(PROMISE, [(sla, label, _toward(log(sla), *ends))])}


def look_of(found: Routing, limit: int) -> int:
    """Which of the kinds of limit one is."""
    return 0 if limit < found.now else 1 if limit == found.now else 2


# --- failure ----------------------------------------------------------------------------------------


def outage(found: Outage, scenario: Scenario) -> Datasets:
    """TTFT over time without and with a spare, and without a failure, around the failure: a step for every window."""
    courses = courses_of(found)
    curves = [row for name, course in courses.items() for row in _course(course, name, found)]
    since = [start - found.fail_at for start in found.failed.start]
    answers = [
        (at, at, at + found.width_s, _between(at, found.width_s), *(_at(course, start) for course in courses.values()))
        for at, start in zip(since, found.failed.start, strict=True)
    ]
    ends = (since[0], since[-1] + found.width_s) if since else (0.0, 1.0)
    limits = [
        (0.0, word("fails"), "right" if -ends[0] > 0.12 * (ends[1] - ends[0]) else "left", 0),
        (found.repair_s, word("repaired"), _toward(found.repair_s, *ends), 0),
    ]
    levels = [(scenario.sla_ttft_ms, word("sla_label", sla=promised("ttft", scenario)), "right")]
    return datasets(curves, answers, ("at", "planned", "spared", "healthy"), levels, limits)


def courses_of(found: Outage) -> dict[str, Course]:
    """Courses by the names of their lines."""
    return {charts.PLANNED: found.failed, charts.SPARED: found.spared, charts.HEALTHY: found.healthy}


def _course(course: Course, name: str, found: Outage) -> list[Row]:
    """Steps of one course; the last holds to the end of its window."""
    drawn = _line([start - found.fail_at for start in course.start], course.ttft, name)
    return [*drawn, (drawn[-1][0] + found.width_s, drawn[-1][1], name)] if drawn else []


def _between(at: float, width: float) -> str:
    """A window, counted from the failure."""
    return minus(f"{significant(at)} to {significant(at + width)} s")


def _at(course: Course, start: float) -> str:
    """TTFT of the window that begins at a time."""
    return next((show(time, "ms") for at, time in zip(course.start, course.ttft, strict=True) if at == start), DASH)


def outage_rows(found: Outage) -> list[tuple[str, ...]]:
    """Every window as finished figures [s and ms]."""
    known = [dict(zip(each.start, each.ttft, strict=True)) for each in courses_of(found).values()]
    start = sorted({at for by in known for at in by})
    return [(figure(at - found.fail_at), *(figure(by.get(at)) for by in known)) for at in start]


def figure(value: float | None) -> str:
    """A figure of a table: three digits, those before the point in full; a dash where there is none."""
    if value is None or not isfinite(value):
        return DASH
    return minus(whole(value) if abs(value) >= 100 else significant(value))


def minus(text: str) -> str:
    """Text whose numbers below zero have a minus sign, not a hyphen."""
    return text.replace("-", "\u2212")
