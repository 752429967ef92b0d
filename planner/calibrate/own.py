"""`python -m planner calibrate SCENARIO --results FILE` and `--log FILE`: a file of one's own against a plan, as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from planner.calibrate.benchmarked import benchmarked, same_model
from planner.calibrate.correction import Fit
from planner.calibrate.report import fit_text, understood_text
from planner.errors import Fault, InputError
from planner.logs.deployed import Apart, apart, as_stated, unknown_model
from planner.logs.endings import UNREADY
from planner.logs.explained import Difference, contradictions
from planner.logs.explained_words import amount
from planner.logs.read import decoded, read
from planner.logs.readings import Benchmark, Reading, StartUp
from planner.logs.supposed import written
from planner.report import table
from planner.share import scenario_from_text, to_link
from planner.single import plan_of
from planner.specs.scenario import Scenario

HEADER = ("term", "planned", "printed", "printed/planned", "verdict")


def results(scenario: str, path: Path, *, as_json: bool = False) -> str:
    """A benchmark's points against the plan, before and after, and the link that plans with it.

    Raises:
        InputError, OSError: the file cannot be read, is of another kind or model, or its points cannot be of the scenario.
    """
    asked, reading = scenario_from_text(scenario), read(decoded(path.read_bytes()))
    if not isinstance(reading, Benchmark):
        raise InputError(
            (Fault("--results", "a start-up log", "must be the result of a load test; --log explains a log"),)
        )
    same_model(asked, reading)
    fit, found = benchmarked(asked, reading), apart(reading, asked)
    if as_json:
        return _dumped({**_stated(reading, (*found, *_unknown(reading, asked))), **_fitted(fit)})
    return "\n\n".join(filter(None, (understood_text(reading), _apart_text(reading, found), fit_text(fit))))


def log(scenario: str, path: Path, *, as_json: bool = False) -> str:
    """A start-up log against the plan, term by term, and the link that plans as the log says.

    Raises:
        InputError, OSError: the file cannot be read or is of another kind.
    """
    asked, reading = scenario_from_text(scenario), read(decoded(path.read_bytes()))
    if isinstance(reading, Benchmark):
        raise InputError((Fault("--log", "a load test", "must be a start-up log; --results reads a load test"),))
    found, differing = contradictions(reading, plan_of(asked)), apart(reading, asked)
    link = to_link(as_stated(reading, asked).scenario)
    if as_json:
        terms = [{**asdict(each), "ratio": each.ratio} for each in found]
        return _dumped({**_stated(reading, differing), "outcome": reading.outcome, "terms": terms, "link": link})
    blocks = (
        understood_text(reading),
        _apart_text(reading, differing),
        _terms(reading, found),
        _unready(reading),
        f"as the log says: {link}",
    )
    return "\n\n".join(filter(None, blocks)) + "\n"


def _unknown(reading: Benchmark, asked: Scenario) -> tuple[Apart, ...]:
    """A model that the catalogue does not know, as a difference that the scenario cannot take."""
    name = unknown_model(reading)
    return (Apart("model", name, asked.model, "it is not in the catalogue"),) if name else ()


def _apart_text(reading: Reading, found: tuple[Apart, ...]) -> str:
    """Fields in which file and scenario differ, a line each."""
    lines = [
        f"  {written(each.field, each.stated)}, the scenario has {written(each.field, each.planned)}"
        + (f" and keeps it: {each.reason}" if each.reason else "")
        for each in found
    ]
    if name := unknown_model(reading):
        lines.append(f"  the file names the model {name}, which is not in the catalogue")
    return "\n".join(("differs: the file says", *lines)) if lines else ""


def _terms(start: StartUp, found: tuple[Difference, ...]) -> str:
    """Every term that both have, then what each difference suggests; what there is to say when there is none."""
    if not found:
        ended = "" if start.outcome == UNREADY else f"; it ended with: {start.outcome}"
        return f"The log prints no memory term that the plan has too{ended}."
    rows = [
        (each.term, amount(each.term, each.planned), amount(each.term, each.printed), _ratio(each), _verdict(each))
        for each in found
    ]
    said = [f"{each.term}: {each.suggestion}" for each in found if each.suggestion]
    return "\n".join((table(HEADER, rows).rstrip(), *(["", *said] if said else [])))


def _unready(start: StartUp) -> str:
    """That the log stops before the engine was ready."""
    return (
        f"{UNREADY[:1].upper()}{UNREADY[1:]}: later lines may state other figures." if start.outcome == UNREADY else ""
    )


def _ratio(each: Difference) -> str:
    return "–" if each.ratio is None else f"{each.ratio:.2f}"


def _verdict(each: Difference) -> str:
    return "agrees" if each.agrees else "differs"


def _stated(reading: Reading, found: tuple[Apart, ...]) -> dict[str, object]:
    """What was read, as JSON."""
    return {
        "understood": [asdict(each) for each in reading.understood],
        "ignored": list(reading.ignored),
        "differs": [asdict(each) for each in found],
    }


def _fitted(fit: Fit) -> dict[str, object]:
    """A fit as JSON; times in ms, errors as shares."""
    points = [{**asdict(point), "before": point.before, "after": point.after} for point in fit.points]
    return {
        "points": points,
        "left_out": [asdict(each) for each in fit.left_out],
        "assumed": list(fit.assumed),
        "first_token": None if fit.first_token is None else asdict(fit.first_token),
        "correction": asdict(fit.correction),
        "link": to_link(fit.scenario),
    }


def _dumped(document: dict[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def scenario_needed(asked: str | None) -> str:
    """The scenario argument, which a file of one's own is held against.

    Raises:
        InputError: when there is none.
    """
    if asked is None:
        allowed = "must stand beside --results and --log: a preset's id, a link or its query string"
        raise InputError((Fault("SCENARIO", "nothing", allowed),))
    return asked
