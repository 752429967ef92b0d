"""A run as one JSON object, its requests as CSV (which reads back as a trace), its figures as a row of CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from planner.export import BOM, Json, csv_cell, inert
from planner.optimise.document import plain
from planner.plan import Plan
from planner.share import pinned, written
from planner.simulate.figures import FIGURES, Digest, digest, figures
from planner.simulate.outcome import STATES, Outcome
from planner.simulate.replicate import Replicated
from planner.simulate.requests import NONE, Requests, Seconds, Whole
from planner.simulate.run import Run
from planner.simulate.spelling import spelled, traffic_link
from planner.simulate.traffic import TRAFFIC_FIELDS
from planner.single import plan_of
from planner.specs.scenario import SCENARIO_FIELDS, describe
from planner.specs.spelling import decimal

GIVEN: Final = ("rate", "in_flight", "replicas", "given_requests", "mean_input_tokens", "mean_output_tokens")
"""What a run ran with, before the figures; `given_requests` is 1 for a trace, of which scenario and traffic say nothing."""

PLANNED: Final = ("tpot_ms", "ttft_ms", "b_max", "batch", "output_tok_s", "goodput_tok_s")
"""Plan fields that a run is held against."""

_OWN: Final = {*SCENARIO_FIELDS, *TRAFFIC_FIELDS}

SUMMARY_COLUMNS: Final = (
    *SCENARIO_FIELDS,
    *TRAFFIC_FIELDS,
    *(f"run_{name}" if name in _OWN else name for name in (*GIVEN, *FIGURES)),
    "link",
)
"""Header of the row of figures; what is called as a setting is says that it is the run's: `run_qps` were served."""

REQUEST_COLUMNS: Final = (
    "time_s", "input_tokens", "output_tokens", "session", "prefix", "prefix_tokens", "state", "ttft_ms", "tpot_ms",
    "e2e_ms", "cached_tokens", "preempted", "replica",
)  # fmt: skip
"""Header of the requests; the first six are those of the trace template."""

ROWS: Final = 50_000
"""Requests that are written at a time."""

Said: TypeAlias = Mapping[str, Json]


def run_json(run: Run | Digest, base: str = "", more: Said | None = None) -> str:
    """A run as one JSON object; what is not a number becomes null.

    Args:
        run: the run, or what it comes to.
        base: address of the Traffic page, without query.
        more: what stands around it (a trace, replications), appended as it is.
    """
    whole = {**run_document(run, base), **(more or {})}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def run_document(run: Run | Digest, base: str = "") -> Said:
    """What `run_json` writes."""
    found = digest(run)
    return {
        "scenario": found.scenario.model_dump(mode="json"),
        "link": traffic_link(pinned(found.scenario), found.traffic, base),
        "traffic": found.traffic.model_dump(mode="json"),
        **{name: plain(value) for name, value in _given(found).items()},
        "sla_pct": found.scenario.sla_pct,
        **{name: plain(value) for name, value in figures(found.summary).items()},
        "plan": _planned(plan_of(found.scenario)),
    }


def replications(found: Replicated) -> Said:
    """Independent runs as JSON has them: each figure's mean, standard deviation and 95 % interval, by name."""
    values = {
        name: {"mean": each.mean, "deviation": each.deviation, "low": each.low, "high": each.high, "runs": each.runs}
        for name, each in found.estimates.items()
    }
    return {
        "replications": {
            "runs": len(found.runs),
            "seeds": [each.traffic.seed for each in found.runs],
            "lost_seeds": list(found.lost),
            "share_meets": found.share_meets,
            "figures": plain(values),
        }
    }


def _given(found: Digest) -> dict[str, float]:
    """What a run ran with."""
    ran = (found.rate, found.limit, found.replicas, int(found.trace), found.isl_mean, found.osl_mean)
    return dict(zip(GIVEN, ran, strict=True))


def _planned(plan: Plan) -> Said:
    """What the plan says of the same."""
    return {name: plain(getattr(plan, name)) for name in PLANNED}


# --- figures as a row ----------------------------------------------------------------------------------------------


def summary_csv(runs: Sequence[Run | Digest], base: str = "") -> str:
    """One row a run: RFC 4180 with a byte order mark; encode as UTF-8. `base`: address of the Traffic page."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(SUMMARY_COLUMNS)
    writer.writerows(_row(digest(run), base) for run in runs)
    return BOM + out.getvalue()


def _row(found: Digest, base: str) -> tuple[str, ...]:
    """The cells of a run."""
    scenario = (inert(text) if describe(field).kind == "text" else text for field, text in written(found.scenario))
    traffic = (spelled(getattr(found.traffic, name)) for name in TRAFFIC_FIELDS)
    numbers = (csv_cell(value) for value in (*_given(found).values(), *figures(found.summary).values()))
    return (*scenario, *traffic, *numbers, inert(traffic_link(pinned(found.scenario), found.traffic, base)))


# --- requests ------------------------------------------------------------------------------------------------------


def requests_csv(run: Run) -> str:
    """Every request, a row each: RFC 4180 with a byte order mark; encode as UTF-8.

    A prefix is named where all requests of its group share equally many tokens, as a trace has it; block names of a trace
    are not written.
    """
    return "".join(request_lines(run))


def request_lines(run: Run) -> Iterator[str]:
    """What `requests_csv` writes, some thousand rows at a time."""
    yield f"{BOM}{','.join(REQUEST_COLUMNS)}\r\n"
    outcome, groups = run.outcome, _even_groups(run.outcome.requests)
    for start in range(0, len(outcome.state), ROWS):
        columns = _columns(outcome, groups, slice(start, start + ROWS))
        yield "\r\n".join((*map(",".join, zip(*columns, strict=True)), ""))


def _columns(outcome: Outcome, groups: Whole, part: slice) -> tuple[list[str], ...]:
    """Cells of some requests, column by column; times from the first arrival."""
    asked = outcome.requests
    named = groups[part] != NONE
    times = (values[part] * 1e3 for values in (outcome.ttft, outcome.tpot, outcome.e2e))
    return (
        [_second(value) for value in asked.arrival[part].tolist()],
        *(list(map(str, values[part].tolist())) for values in (asked.isl, asked.osl)),
        _numbered("s", asked.session[part]),
        _numbered("p", groups[part]),
        [str(value) if kept else "" for value, kept in zip(asked.shared[part].tolist(), named.tolist(), strict=True)],
        [STATES[state] for state in outcome.state[part].tolist()],
        *(_milliseconds(values) for values in times),
        *(list(map(str, values[part].tolist())) for values in (outcome.cached, outcome.preempted)),
        _numbered("", outcome.replica[part]),
    )


def _second(value: float) -> str:
    """A time to the last digit, so that a trace repeats the run; never an exponent."""
    text = repr(value)
    return decimal(value) if "e" in text else text


def _milliseconds(values: Seconds) -> list[str]:
    """Times to the microsecond; empty where there is none."""
    return ["" if value != value else repr(value) for value in np.round(values, 3).tolist()]


def _numbered(letter: str, values: Whole) -> list[str]:
    """Names of groups, sessions or replicas; empty for NONE."""
    if not np.any(values != NONE):
        return [""] * len(values)
    return ["" if value == NONE else f"{letter}{value}" for value in values.tolist()]


def _even_groups(asked: Requests) -> Whole:
    """Groups as a trace can name them: all of a group share equally many tokens, fewer than each has; NONE for others."""
    group = asked.group
    if not np.any(group != NONE):
        return group
    _, at = np.unique(group, return_inverse=True)
    count = int(at.max()) + 1
    low, high = np.full(count, np.iinfo(np.int64).max), np.zeros(count, dtype=np.int64)
    np.minimum.at(low, at, asked.shared)
    np.maximum.at(high, at, asked.shared)
    broken = np.zeros(count, dtype=bool)
    np.logical_or.at(broken, at, asked.shared >= asked.isl)
    return np.where(((low == high) & ~broken)[at] & (asked.shared > 0), group, NONE)
