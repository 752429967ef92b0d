"""`python -m planner simulate`: what it takes, and what it writes."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.errors import Fault, InputError
from planner.export import Json
from planner.optimise.answer import Progress
from planner.optimise.document import plain
from planner.optimise.report import ProgressLine
from planner.simulate.document import replications, requests_csv, run_json, summary_csv
from planner.simulate.replicate import MOST_RUNS, replicate
from planner.simulate.report import progress_text, replicated_text, run_text, runs_text
from planner.simulate.requests import Hashes, Requests
from planner.simulate.run import simulate
from planner.simulate.spelling import asked_of, spelled, traffic_from_texts
from planner.simulate.traffic import TRAFFIC_FIELDS, Traffic, describe
from planner.specs.fields import shown
from planner.specs.scenario import Scenario
from planner.specs.spelling import parsed

if TYPE_CHECKING:
    from planner.simulate.traces import Trace

METAVARS: Final = {"whole": "N", "number": "X", "menu": "WORD"}
"""What stands for a value, by its kind."""

MADE: Final = ("arrival", "cv", "swing", "period_s", "clients", "isl_cv", "osl_cv", "turns", "think_s")
"""Settings of made requests, which a trace takes the place of."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "scenario", metavar="SCENARIO", help="a preset's id, a link (of Traffic too), or its query string"
    )
    parser.add_argument("--trace", metavar="FILE", type=Path, help="requests of a trace in the place of made ones")
    parser.add_argument(
        "--runs",
        metavar="N",
        default="1",
        help="independent runs, of the seed and those after it, for intervals of 95 %% (default 1)",
    )
    for name in TRAFFIC_FIELDS:
        text = help_text(name).replace("%", "%%")
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=METAVARS[describe(name).kind], help=text)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object")
    form.add_argument("--csv", action="store_true", help="a header and one row a run: settings and figures")
    form.add_argument(
        "--requests-csv", action="store_true", help="a header and one row a request; reads back as a trace"
    )


def help_text(name: str) -> str:
    """A setting in words: what it means, what it may be, and its default."""
    text = describe(name)
    default = "" if text.default is None else f" (default {spelled(text.default)})"
    first = " With --trace, its first so many." if name == "requests" else ""
    return f"{text.meaning}{first} {text.allowed[0].upper()}{text.allowed[1:].removesuffix(', or left out')}{default}."


def run(asked: argparse.Namespace) -> str:
    """Simulate what was asked for, and say what it came to.

    Raises:
        InputError: for what is refused, with every fault.
        OSError: when the trace cannot be read.
    """
    scenario, texts = asked_of(asked.scenario)
    given = {name: text for name in TRAFFIC_FIELDS if (text := getattr(asked, name)) is not None}
    texts = {**texts, **given}
    traffic, runs = _read(texts, asked)
    if asked.trace is not None and (idle := [name for name in given if name in MADE]):
        allowed = "says nothing with --trace, whose requests arrive and are as long as they are: must be left out"
        raise InputError(tuple(Fault(name, shown(given[name]), allowed) for name in idle))
    trace = None if asked.trace is None else _trace(asked.trace, traffic.requests if "requests" in texts else None)
    if runs == 1:
        return _once(asked, scenario, traffic, trace)
    return _several(asked, scenario, traffic, trace, runs)


def _read(texts: dict[str, str], asked: argparse.Namespace) -> tuple[Traffic, int]:
    """Traffic and number of runs; what is wrong with either is told together."""
    faults: list[Fault] = []
    traffic, runs = Traffic(), 1
    for read in (lambda: traffic_from_texts(texts), lambda: _runs(asked)):
        try:
            found = read()
        except InputError as error:
            faults.extend(error.faults)
            continue
        if isinstance(found, Traffic):
            traffic = found
        else:
            runs = found
    if faults:
        raise InputError(tuple(faults))
    return traffic, runs


def _runs(asked: argparse.Namespace) -> int:
    """How many runs."""
    count = parsed("whole", asked.runs)
    if not (isinstance(count, int) and 1 <= count <= MOST_RUNS):
        raise InputError((Fault("runs", shown(asked.runs), f"must be a whole number from 1 to {MOST_RUNS:,}"),))
    if count > 1 and asked.requests_csv:
        allowed = "must be 1 with --requests-csv: requests are those of one run"
        raise InputError((Fault("runs", shown(asked.runs), allowed),))
    return count


def _once(asked: argparse.Namespace, scenario: Scenario, traffic: Traffic, trace: Trace | None) -> str:
    """One run."""
    line = ProgressLine(sys.stderr, progress_text)
    found = simulate(scenario, traffic, None if trace is None else trace.requests, line.show)
    count = len(found.outcome.state)
    line.show(Progress(count, count, found.outcome.steps, None))
    if asked.json:
        return run_json(found, more=_traced(trace))
    if asked.csv:
        return summary_csv((found,))
    return requests_csv(found) if asked.requests_csv else run_text(found) + _notes(trace)


def _several(asked: argparse.Namespace, scenario: Scenario, traffic: Traffic, trace: Trace | None, runs: int) -> str:
    """Independent runs."""
    line = ProgressLine(sys.stderr, runs_text)
    found = replicate(scenario, traffic, None if trace is None else trace.requests, runs, on_progress=line.show)
    if asked.json:
        return run_json(found.runs[0], more={**_traced(trace), **replications(found)})
    return summary_csv(found.runs) if asked.csv else replicated_text(found) + _notes(trace)


def _trace(path: Path, most: int | None) -> Trace:
    """A trace, or its first so many requests."""
    from planner.simulate.traces import read_trace_file

    found = read_trace_file(path)
    return (
        found if most is None or most >= len(found.requests) else replace(found, requests=_first(found.requests, most))
    )


def _first(asked: Requests, most: int) -> Requests:
    """The first so many requests."""
    named = asked.hashes
    names = None if named is None else Hashes(named.start[: most + 1], named.ids[: named.start[most]], named.tokens)
    return Requests(
        asked.arrival[:most],
        asked.isl[:most],
        asked.osl[:most],
        asked.group[:most],
        asked.shared[:most],
        asked.session[:most],
        names,
    )


def _traced(trace: Trace | None) -> dict[str, Json]:
    """Where requests came from, for JSON."""
    if trace is None:
        return {"trace": None}
    return {
        "trace": {"name": trace.name, "format": trace.format, "rows": trace.rows, "notes": plain(trace.notes)},
    }


def _notes(trace: Trace | None) -> str:
    """What was understood of a trace."""
    return "" if trace is None else "\n".join(("", f"trace {trace.name}", *(f"  - {note}" for note in trace.notes), ""))
