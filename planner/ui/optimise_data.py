"""Rows behind the charts and tables of the Optimise page: numbers for the scales, finished text for cells and tooltips."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from planner.optimise.answer import Answer, Choice, FrontPoint
from planner.optimise.question import Objective
from planner.optimise.worth import worth
from planner.plan import Plans
from planner.promised import row_of
from planner.share import to_link
from planner.specs.scenario import Scenario
from planner.tabulate import table
from planner.ui.data import asked
from planner.ui.marks import Datasets
from planner.ui.optimise_chart import SERIES, View
from planner.ui.optimise_words import word
from planner.units import DASH, show, significant, whole
from planner.variants import known

HOLLOW: Final = 0.0
"""Opacity of the inside of a point that breaks the SLA."""

SAME: Final = 5e-6
"""Relative difference that is none."""

PROMISE_WORDS: Final = re.compile(r"\bpromise\b")

APART: Final = " · "
"""What stands between the words of a kind; its layout is the first of them."""

MIDDLE: Final = 0.5
"""Share of the chart's width from which on a label stands to the left of its mark."""

POINTS: Final = pa.schema(
    [
        *((name, pa.float64()) for name in ("x", "y", "look")),
        *((name, pa.string()) for name in ("series", "plan", "kind", "speed", "rate", "cost", "at", "kept")),
    ]
)
LINE: Final = pa.schema([("x", pa.float64()), ("y", pa.float64())])
PROMISE: Final = pa.schema([("x", pa.float64()), ("label", pa.string()), ("side", pa.string())])
MARKS: Final = pa.schema(
    [*((name, pa.float64()) for name in ("x", "y")), *((n, pa.string()) for n in ("label", "side", "shape"))]
)


@lru_cache(maxsize=256)
def row(scenario: Scenario) -> Plans:
    """The plan of a scenario as a table of one row, at its percentile: what `plan_of` says."""
    found = known(scenario)
    return row_of(found.setting, found.bounds)


@lru_cache(maxsize=256)
def means(scenario: Scenario) -> Plans:
    """The same on means, as the front is."""
    found = known(scenario)
    batch = None if scenario.at_batch is None else np.full((1, 1), float(scenario.at_batch))
    return table(found.setting, found.bounds, batch)


def cell(scenario: Scenario, name: str) -> float | None:
    """One number of a scenario's plan; None for what is unknown or not applicable."""
    return _finite(row(scenario), name)


def _finite(plans: Plans, name: str) -> float | None:
    """One number of a table of one row; None for what is unknown or not applicable."""
    value = float(getattr(plans, name)[0])
    return value if math.isfinite(value) else None


def value_of(scenario: Scenario, objective: Objective) -> float | None:
    """The objective of a scenario's plan, in its own unit; None where the plan does not stand."""
    value = float(worth(row(scenario), objective, scenario)[0])
    return value if math.isfinite(value) else None


def reason_of(scenario: Scenario) -> str:
    """Why a scenario's plan does not stand; empty when it does."""
    plans = row(scenario)
    return plans.reasons[int(plans.reason[0])]


# --- the front --------------------------------------------------------------------------------------


def upright(point: FrontPoint, view: View) -> float | None:
    """What stands upright in a view."""
    return point.tok_s_gpu if view == "gpu" else point.usd_per_m_output


def drawn(points: Sequence[FrontPoint], view: View) -> tuple[FrontPoint, ...]:
    """Points that a view has a place for, slowest first."""
    kept = [point for point in points if point.tok_s_user > 0 and (upright(point, view) or 0) > 0]
    return tuple(sorted(kept, key=lambda point: point.tok_s_user))


def on_line(points: Sequence[FrontPoint], view: View) -> tuple[FrontPoint, ...]:
    """Of them, those that nothing is both faster and better than."""
    return tuple(point for point in drawn(points, view) if (point.by_gpu if view == "gpu" else point.by_cost))


def groups(points: Sequence[FrontPoint]) -> tuple[str, ...]:
    """What each point is coloured by: precision, accelerator and place of prefill, or its layout where these are one."""
    apart = [point.kind.partition(APART)[2] for point in points]
    return tuple(apart) if len(set(apart)) > 1 else tuple(point.kind for point in points)


def kinds(points: Sequence[FrontPoint]) -> tuple[str, ...]:
    """Groups with a series of their own: the most frequent ones, in the order of their first point."""
    found = groups(points)
    often = {name for name, _ in Counter(found).most_common(len(SERIES) - 1)}
    return tuple(dict.fromkeys(name for name in found if name in often))


def front(answer: Answer, mine: Scenario, view: View) -> Datasets:
    """Datasets of the front's chart."""
    points = drawn(answer.front, view)
    series = dict(zip(kinds(points), SERIES, strict=False))
    line = [{"x": point.tok_s_user, "y": upright(point, view)} for point in on_line(answer.front, view)]
    marks = [mark for mark in (_winner(answer, view), _mine(mine, view)) if mark]
    promised = 1e3 / answer.question.scenario.sla_tpot_ms
    speeds = [*(point.tok_s_user for point in points), promised, *(float(mark["x"]) for mark in marks)]
    side = _Side(min(speeds), max(speeds))
    tpot = asked(answer.question.scenario.sla_tpot_ms)
    promise = [{"x": promised, "label": word("promise", tpot=tpot), "side": side.of(promised)}]
    shown = [_point(*each, view, series) for each in zip(points, groups(points), strict=True)]
    return {
        "points": pa.Table.from_pylist(shown, schema=POINTS),
        "line": pa.Table.from_pylist(line, schema=LINE),
        "promise": pa.Table.from_pylist(promise, schema=PROMISE),
        "marks": pa.Table.from_pylist([{**mark, "side": side.of(float(mark["x"]))} for mark in marks], schema=MARKS),
    }


class _Side:
    """On which side of a mark its label stands, by where the mark is on a log axis."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._span = math.log(low), max(math.log(high / low), 1e-9)

    def of(self, x: float) -> str:
        """How the label is aligned."""
        return "right" if (math.log(x) - self._low) / self._span > MIDDLE else "left"


def _point(point: FrontPoint, group: str, view: View, series: dict[str, str]) -> dict[str, str | float | None]:
    """One point with its tooltip."""
    return {
        "x": point.tok_s_user,
        "y": upright(point, view),
        "look": 1.0 if point.keeps else HOLLOW,
        "series": series.get(group, SERIES[-1]),
        "plan": to_link(point.scenario),
        "kind": point.kind,
        "speed": f"{show(point.tok_s_user, 'tok/s')}, TPOT {show(1e3 / point.tok_s_user, 'ms')}",
        "rate": show(point.tok_s_gpu, "tok/s"),
        "cost": show(point.usd_per_m_output, "$/M output tokens"),
        "at": f"{whole(point.batch)}, {whole(point.gpus)}",
        "kept": "kept" if point.keeps else "broken",
    }


def _winner(answer: Answer, view: View) -> dict[str, str | float]:
    """Where the winner is; nothing when there is none."""
    return {} if answer.winner is None else _mark(answer.winner.scenario, view, word("winner"), "circle")


def _mine(mine: Scenario, view: View) -> dict[str, str | float]:
    """Where the plan of the sidebar is; nothing when it has no speed."""
    return _mark(mine, view, word("yours"), "square")


def _mark(scenario: Scenario, view: View, label: str, shape: str) -> dict[str, str | float]:
    """One plan on the chart."""
    place = where(scenario, view)
    return {} if place is None else {"x": place[0], "y": place[1], "label": label, "shape": shape}


def where(scenario: Scenario, view: View) -> tuple[float, float] | None:
    """Tok/s for a user of a plan, and what stands upright, on means; None where it has no place on the chart."""
    plans = means(scenario)
    tpot = _finite(plans, "tpot_ms")
    y = rate(scenario) if view == "gpu" else _finite(plans, "usd_per_m_output")
    return (1e3 / tpot, y) if tpot and y and bool(plans.fits[0]) else None


def rate(scenario: Scenario) -> float | None:
    """Output tokens a second of one device on means, prefill pool counted."""
    plans = means(scenario)
    output, good, each = (_finite(plans, name) for name in ("output_tok_s", "goodput_tok_s", "goodput_tok_s_gpu"))
    if output is None:
        return None
    devices = good / each if good and each else _finite(plans, "gpus_per_replica")
    return output / devices if devices else None


FRONT_HEADER: Final = (
    "Kind", "Tok/s for a user", "TPOT, ms", "Tok/s of a GPU", "$/M output", "Batch", "GPUs", "Keeps TPOT", "On which front",
)  # fmt: skip


def front_table(points: Sequence[FrontPoint]) -> pa.Table:
    """The front as a table."""
    columns = (
        [p.kind for p in points], [p.tok_s_user for p in points], [1e3 / p.tok_s_user for p in points],
        [p.tok_s_gpu for p in points], [p.usd_per_m_output for p in points], [p.batch for p in points],
        [p.gpus for p in points], ["yes" if p.keeps else "no" for p in points],
        [" and ".join(n for n, is_on in (("GPU", p.by_gpu), ("dollar", p.by_cost)) if is_on) for p in points],
    )  # fmt: skip
    return pa.table(dict(zip(FRONT_HEADER, columns, strict=True)))


def picked(answer: Answer, plan: str | None) -> FrontPoint | None:
    """The point that a reader chose; a choice made in another answer is none."""
    return next((point for point in answer.front if plan is not None and to_link(point.scenario) == plan), None)


# --- tables -----------------------------------------------------------------------------------------


VALUES: Final = {
    "usd_per_m_goodput": "col_usd", "usd_per_hour": "col_hour", "gpus": "col_gpus", "tpot_ms": "col_tpot",
    "ttft_ms": "col_ttft", "goodput_tok_s": "col_good",
}  # fmt: skip
"""Title of the objective's own column, which stands first."""

OTHERS: Final = ("col_usd", "col_gpus", "col_batch", "col_tpot", "col_ttft", "col_rate", "col_hour")


def best_header(objective: Objective) -> tuple[str, ...]:
    """Titles of the table of best choices: what is made best first, everything once."""
    own = VALUES[objective]
    return ("kind", own, "col_behind", *(title for title in OTHERS if title != own))


def choices(answer: Answer) -> tuple[Choice, ...]:
    """What an answer lists: the best, or what comes nearest where nothing holds at the percentile."""
    return answer.best or answer.beyond


def best_row(rank: int, answer: Answer) -> tuple[str, ...]:
    """One of the best choices as cells, in the order of `best_header`."""
    listed = choices(answer)
    choice = listed[rank - 1]
    cells = {
        "kind": choice.kind,
        "col_behind": DASH if rank == 1 else _behind(choice.value, listed[0].value),
        **_cells(choice),
    }
    return tuple(cells[title] for title in best_header(answer.question.objective))


def _cells(choice: Choice) -> dict[str, str]:
    """Figures of a choice by the titles of their columns."""
    found = choice.outcome
    return {
        "col_usd": show(found.usd_per_m_goodput, "$"),
        "col_good": _figure(choice.value),
        "col_gpus": whole(found.gpus),
        "col_batch": whole(found.batch),
        "col_tpot": _figure(found.tpot_ms),
        "col_ttft": _figure(found.ttft_ms),
        "col_rate": _figure(found.goodput_tok_s_gpu),
        "col_hour": show(cell(choice.scenario, "usd_per_hour"), "$"),
    }


def _behind(value: float, best: float) -> str:
    """How far a value is from the best, in percent with its sign."""
    return _signed(value / best - 1.0) if best and math.isfinite(value / best) else DASH


def _figure(value: float | None) -> str:
    return DASH if value is None or math.isnan(value) else significant(value)


def _signed(share: float) -> str:
    """A difference in percent with its sign."""
    return "0 %" if abs(share) < SAME else f"{'+' if share >= 0 else '−'}{percent(share)}"


def percent(share: float) -> str:
    """The size of a difference in percent."""
    return f"{significant(abs(share) * 100, 2)} %"


def in_words(reason: str) -> str:
    """A reason of the planner's in the words of the page."""
    return PROMISE_WORDS.sub("SLA", reason)


def refusals(answer: Answer) -> list[tuple[str, str]]:
    """Why candidates fell, most first."""
    return [(in_words(each.reason), whole(each.count)) for each in answer.refused]
