"""A benchmark of one's own against the plan: before and after the calibration, and the way to plan with it."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import streamlit as st

from planner.calibrate.benchmarked import benchmarked
from planner.calibrate.correction import Fit
from planner.calibrate.loads import advice, constants
from planner.calibrate.report import first_token_text
from planner.errors import HeadroomError, InputError
from planner.logs.deployed import SUBJECT, Apart, apart, unknown_model
from planner.logs.readings import Benchmark
from planner.specs.scenario import Scenario
from planner.ui import show, state, trust_apart, trust_benchmark_chart
from planner.ui.marks import draw as draw_chart
from planner.ui.theme import mode
from planner.ui.trust_calibrate_words import word
from planner.ui.trust_words import as_error, counted
from planner.units import whole

FAULTS_SHOWN = 3
ERROR, TIME = "%+.1f", "%.2f"


def draw(benchmark: Benchmark, scenario: Scenario) -> None:
    """What the text states otherwise than the page, then the fit, unless it would be of something else."""
    found = apart(benchmark, scenario)
    if not found or _settled(benchmark, scenario, found):
        _fit(benchmark, scenario)


def _settled(benchmark: Benchmark, scenario: Scenario, found: tuple[Apart, ...]) -> bool:
    """Whether the plan may be fitted as it is: only lengths differ, or the reader says so."""
    gravely = any(each.field in SUBJECT for each in found)
    with show.card(word("apart"), "card_apart"):
        show.finding(word("apart_said" if gravely else "apart_lengths"))
        trust_apart.table(found)
        with st.container(horizontal=True, gap="medium", vertical_alignment="center", key="apart_buttons"):
            trust_apart.take_over(benchmark, scenario, found, word("use_stated"), "_calibrate_use")
            return not gravely or st.toggle(word("anyway"), key="_calibrate_anyway")


def _fit(benchmark: Benchmark, scenario: Scenario) -> None:
    """The fit and what it changes, or why there is none."""
    with show.card(word("fitted"), "card_fit"):
        if name := unknown_model(benchmark):
            st.caption(show.plain(word("unknown_model", model=name)))
        with st.spinner(word("reading")):
            fit = fit_of(scenario, benchmark)
        if isinstance(fit, str):
            st.warning(show.plain(fit), icon=":material/block:")
            return
        _before_and_after(fit)
        _use(fit, scenario)


@lru_cache(maxsize=32)
def fit_of(scenario: Scenario, benchmark: Benchmark) -> Fit | str:
    """The fit of a scenario to a benchmark's points, or why there is none; kept for all sessions."""
    try:
        return benchmarked(scenario, benchmark)
    except InputError as error:
        said = [f"{fault.field[:1].upper()}{fault.field[1:]} ({fault.value}) {fault.allowed}" for fault in error.faults]
        more = len(said) - FAULTS_SHOWN
        return ". ".join(said[:FAULTS_SHOWN]) + (f"; {more} more points likewise." if more > 0 else ".")
    except HeadroomError as error:
        return str(error)


def finding(fit: Fit) -> str:
    """How far the plan was off, and is with the calibration."""
    made = fit.correction
    before, after = as_error(made.before), as_error(made.after)
    if len(fit.points) > 1:
        counts = {"constants": counted("constant", constants(fit)), "points": counted("point", len(fit.points))}
        return word("found", before=before, after=after, **counts)
    low, high = (f"×{factor:.2f}" for factor in fit.band)
    return word("found_one", before=before, rest=word("rest", low=low, high=high))


def _before_and_after(fit: Fit) -> None:
    """The finding, the chart, the table, and what is to be known of them."""
    show.finding(finding(fit))
    alt = word("chart_alt", points=whole(len(fit.points)))
    draw_chart(trust_benchmark_chart.chart_of(mode()), trust_benchmark_chart.rows_of(fit), alt)
    st.caption(show.plain(_said(fit)))
    show.table(_table(fit), word("points"), _formats(), "content" if len(fit.points) <= 12 else 380)
    show.lines([
        *(word("left_out", number=str(each.number), reason=each.reason) for each in fit.left_out),
        *fit.assumed,
        *filter(None, (fit.apart, advice(fit), first_token_text(fit))),
    ])  # fmt: skip


def _said(fit: Fit) -> str:
    """What the chart's marks are, and which lengths its curves are for."""
    isl, osl = trust_benchmark_chart.lengths(fit)
    said = word("chart_said", isl=whole(isl), osl=whole(osl))
    mixed = any((point.isl, point.osl) != (isl, osl) for point in fit.points)
    return f"{said} {word('mixed')}" if mixed else said


def _use(fit: Fit, scenario: Scenario) -> None:
    """Plan with it, or that the plan does."""
    if fit.scenario == scenario:
        show.verdict(True, word("in_use"), "")
        return
    st.button(
        word("plan_with"), key="_calibrate_plan", icon=":material/check:", on_click=state.restore, args=(fit.scenario,)
    )


def _formats() -> dict[str, str | int]:
    """Number formats by title of column."""
    forms = {
        "col_batch": "%,d", "col_in": "%,d", "col_out": "%,d", "col_measured": TIME, "col_before": TIME,
        "col_off_before": ERROR, "col_after": TIME, "col_off_after": ERROR,
    }  # fmt: skip
    return {word(key): form for key, form in forms.items()}


def _off(share: float) -> float:
    """An error in percent; one that rounds to none has no sign."""
    return 0.0 if abs(share) < 0.0005 else 100.0 * share


def _table(fit: Fit) -> pa.Table:
    """One row a point, by load."""
    points = fit.points
    return pa.table({
        word("col_point"): [p.number for p in points],
        word("col_batch"): [p.batch for p in points],
        word("col_measured"): [p.measured_ms for p in points],
        word("col_before"): [p.before_ms for p in points],
        word("col_off_before"): [_off(p.before) for p in points],
        word("col_after"): [p.after_ms for p in points],
        word("col_off_after"): [_off(p.after) for p in points],
        word("col_in"): [p.isl for p in points],
        word("col_out"): [p.osl for p in points],
    })  # fmt: skip
