"""From what runs state to operating points: tokens a request, TPOT without the first token, requests in flight."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Final

from planner.logs.benchmark_words import NOTES, Note
from planner.logs.figures import LIMITS, LONGEST_MS, SECONDS, Figures, unit_of
from planner.logs.readings import Benchmark, Point, Understood
from planner.logs.statements import refusal
from planner.specs.spelling import Value

FEWER: Final = 0.8
"""Share of the limit below which Little's law says that it was not reached."""
_SLACK: Final = 1.25
"""Mean TPOT weighs requests alike and the throughput weighs tokens, so that their product may lie a little high."""
POINT_FIELDS: Final = tuple(item.name for item in fields(Point))


@dataclass(frozen=True)
class Run:
    """One run as a format's reader hands it over.

    Attributes:
        tool: as shown. line: where it begins (1-based; 0 = the file).
        notes: rules by which the reader took figures. model: as it may be shown.
        stated: scenario fields that it states. ignored: what is there and not used, a sentence each.
    """

    tool: str
    line: int
    figures: Figures
    notes: tuple[Note, ...] = ()
    model: str = ""
    stated: tuple[tuple[str, Value], ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Concluded:
    figures: Figures
    notes: tuple[Note, ...]


def benchmark_of(runs: tuple[Run, ...]) -> Benchmark:
    """Runs of one tool as a benchmark.

    Raises:
        InputError: for a run in which every request failed, that states no figure, or of another deployment.
    """
    _all_draft_or_none(runs)
    done = [_concluded(run) for run in runs]
    points = tuple(_point(item.figures, run) for run, item in zip(runs, done, strict=True))
    notes = dict.fromkeys(note for run, item in zip(runs, done, strict=True) for note in (*run.notes, *item.notes))
    return Benchmark(
        format=runs[0].tool,
        model=_one(runs, "model", tuple(run.model for run in runs)),
        points=points,
        stated=_stated(runs),
        understood=(*_found(runs, points), *(Understood(NOTES[note].name, NOTES[note].en) for note in notes)),
        ignored=tuple(dict.fromkeys(sentence for run in runs for sentence in run.ignored)),
        drafted="drafted" in notes,
    )


def _all_draft_or_none(runs: tuple[Run, ...]) -> None:
    """Refuses runs of which only some drafted tokens: they are of two deployments."""
    drafted = [run for run in runs if "drafted" in run.notes]
    if 0 < len(drafted) < len(runs):
        raise refusal(
            "runs with drafted tokens and without", "all runs must be of one deployment; read them one by one",
            drafted[0].line,
        )  # fmt: skip


def _concluded(run: Run) -> _Concluded:
    if run.figures.requests == 0:
        raise refusal("no request completed", "a run in which every request failed holds no times", run.line)
    lengths = _with_lengths(run.figures)
    _mostly_completed(lengths, run.line)
    tpot = _with_tpot(lengths)
    flight = _with_concurrency(tpot.figures)
    failed: tuple[Note, ...] = ("failed",) if lengths.failed else ()
    contradict: tuple[Note, ...] = ("contradict",) if _overfull(flight.figures) else ()
    return _Concluded(flight.figures, (*tpot.notes, *flight.notes, *failed, *contradict))


def _mostly_completed(said: Figures, line: int) -> None:
    """Refuses a run most of whose requests failed: the times of the others are not those of the service."""
    done, failed = said.requests, said.failed
    if done is not None and failed is not None and done < failed:
        raise refusal(
            f"{done:,.0f} of {done + failed:,.0f} requests completed", "at least half must have, to be compared", line
        )


def _overfull(said: Figures) -> bool:
    """Whether more requests must have been generating at a time than were in flight, by more than rounding and tails."""
    if said.output_tok_s is None or said.tpot_ms is None or said.concurrency is None:
        return False
    return said.output_tok_s * said.tpot_ms / SECONDS > _SLACK * said.concurrency


def _with_lengths(said: Figures) -> Figures:
    """Tokens a request from the totals, and failed requests from those that were to be sent."""
    failed = said.failed
    if failed is None and said.prompts is not None and said.requests is not None:
        failed = max(0.0, said.prompts - said.requests)
    isl = said.isl or _share(said.input_tokens, said.requests)
    osl = said.osl or _share(said.output_tokens, said.requests)
    return replace(said, isl=isl, osl=osl, failed=failed)


def _share(total: float | None, requests: float | None) -> float | None:
    return total / requests if total and requests else None


def _with_tpot(said: Figures) -> _Concluded:
    """TPOT as stated, else the mean gap between tokens where there is no median either; and which medians stand in."""
    gap = said.tpot_ms is None and said.tpot_median_ms is None and said.itl_ms is not None
    ttft = said.ttft_ms is None and said.ttft_median_ms is not None
    notes: tuple[Note, ...] = ("median_ttft",) if ttft else ()
    if gap:
        return _Concluded(replace(said, tpot_ms=said.itl_ms), ("itl_for_tpot", *notes))
    if said.tpot_ms is None and said.tpot_median_ms is not None:
        return _Concluded(said, ("medians",) if ttft else ("median_tpot",))
    return _Concluded(said, notes)


def _with_concurrency(said: Figures) -> _Concluded:
    """Requests in flight: the mean that is stated, else Little's law where it is clearly below the limit, else the limit."""
    limit = None if said.concurrency is None else min(said.concurrency, said.requests or said.concurrency)
    if said.mean_concurrency is not None:
        mean = said.mean_concurrency
        return _flight(said, mean if limit is None else min(limit, mean), "measured")
    latency, notes = _latency_ms(said)
    rate = _served(said)
    little = None if latency is None or rate is None else rate * latency / SECONDS
    if limit is None:
        return _Concluded(said, ("no_concurrency",)) if little is None else _flight(said, little, "little", *notes)
    if little is not None and little < FEWER * limit:
        return _flight(said, little, "below", *notes)
    return _flight(said, limit, _of_limit(said, limit))


def _flight(said: Figures, flight: float, *notes: Note) -> _Concluded:
    return _Concluded(replace(said, concurrency=flight), notes)


def _of_limit(said: Figures, limit: float) -> Note:
    if said.concurrency is not None and limit < said.concurrency:
        return "few"
    return "capped" if _arrives(said) else "held"


def _arrives(said: Figures) -> bool:
    return said.request_rate is not None and math.isfinite(said.request_rate)


def _latency_ms(said: Figures) -> tuple[float | None, tuple[Note, ...]]:
    if said.e2e_ms is not None:
        return said.e2e_ms, ()
    if said.ttft_ms is None or said.tpot_ms is None or said.osl is None:
        return None, ()
    return said.ttft_ms + said.tpot_ms * max(0.0, said.osl - 1), ("derived_latency",)


def _served(said: Figures) -> float | None:
    """Requests completed a second; of a rounded printed rate the tokens a second tell more digits."""
    if said.output_tok_s is not None and said.osl:
        return said.output_tok_s / said.osl
    return said.served_rate or _share(said.requests, said.duration_s)


def _point(said: Figures, run: Run) -> Point:
    times = (said.tpot_ms, said.tpot_median_ms, said.ttft_ms, said.ttft_median_ms, said.output_tok_s)
    if all(value is None for value in times):
        raise refusal("no figures", "neither TPOT, TTFT nor output tokens a second is stated", run.line)
    for name in POINT_FIELDS:
        _credible(name, getattr(said, name), run.line)
    whole = {name: None if (value := getattr(said, name)) is None else int(value) for name in ("requests", "failed")}
    rest = {name: getattr(said, name) for name in POINT_FIELDS if name not in whole}
    return Point(**rest, **whole)


def _credible(field: str, value: float | None, line: int) -> None:
    """Refuses what follows from figures that are each credible and together are not."""
    limit = LIMITS.get(field, LONGEST_MS)
    if value is not None and value > limit and field != "request_rate":
        raise refusal(
            f"figures that imply {value:.3g} as {field}", f"at most {limit:,.0f} {unit_of(field)} are read", line
        )


def _one(runs: tuple[Run, ...], field: str, values: tuple[Value, ...]) -> str:
    """The one value that several runs state; two different ones are two deployments."""
    said = {str(value): run.line for run, value in zip(runs, values, strict=True) if value not in (None, "")}
    if len(said) > 1:
        first, second = list(said)[:2]
        raise refusal(
            f"{field} {first[:24]} and {second[:24]}", "all runs must be of one deployment; read them one by one",
            said[second],
        )  # fmt: skip
    return next(iter(said), "")


def _stated(runs: tuple[Run, ...]) -> tuple[tuple[str, Value], ...]:
    names = dict.fromkeys(name for run in runs for name, _ in run.stated)
    for name in names:
        _one(runs, name, tuple(dict(run.stated).get(name) for run in runs))
    return tuple({name: value for run in runs for name, value in run.stated}.items())


def _found(runs: tuple[Run, ...], points: tuple[Point, ...]) -> tuple[Understood, ...]:
    """Tool, points, model, loads and lengths, as found."""
    first = runs[0].line
    model = next((run.model for run in runs if run.model), "")
    failed = sum(point.failed or 0 for point in points)
    said = (
        ("tool", runs[0].tool, first),
        ("points", str(len(points)), first),
        ("model", model, first),
        ("concurrency", _range(tuple(point.concurrency for point in points), "requests"), first),
        ("input", _range(tuple(point.isl for point in points), "tokens a request"), first),
        ("output", _range(tuple(point.osl for point in points), "tokens a request"), first),
        ("failed requests", str(failed) if failed else "", first),
        *((name, str(value), first) for name, value in _stated(runs)),
    )
    return tuple(Understood(name, value, line) for name, value, line in said if value)


def _range(values: tuple[float | None, ...], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = f"{min(known):,.4g}", f"{max(known):,.4g}"
    if low == high == "1":
        unit = unit.removesuffix("s") if unit == "requests" else unit.replace("tokens", "token")
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
