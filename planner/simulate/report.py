"""A run as text for a terminal: the verdict first, then how times are spread, then the plan beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planner.optimise.answer import Progress
from planner.plan import Plan
from planner.promised import MEDIAN
from planner.report import table
from planner.share import pinned
from planner.simulate.figures import STATISTICS, TIMES, Digest, digest, figures
from planner.simulate.replicate import Estimate, Replicated
from planner.simulate.run import Run
from planner.simulate.spelling import traffic_link
from planner.simulate.summary import Summary
from planner.single import plan_of
from planner.spares import spares_for
from planner.specs.scenario import Scenario
from planner.units import DASH, show, significant, whole

UNITS: Final = {
    "share_good": "%", "kv_used": "%", "kv_used_peak": "%", "prefix_hit": "%", "duration_s": "s", "qps": "requests/s",
    "running": "requests", "waiting": "requests",
}  # fmt: skip
"""Units that no name says."""

SHOWN: Final = (
    ("share_good", "requests that kept TTFT and TPOT"),
    ("qps", "served"),
    ("output_tok_s", "output of one replica"),
    ("good_tok_s", "of it, of requests that kept the promise"),
    ("goodput_tok_s", "goodput of one replica"),
    ("running", "running, mean"),
    ("waiting", "waiting, mean"),
    ("kv_used", "cache in use, mean"),
    ("kv_used_peak", "cache in use, peak"),
    ("prefix_hit", "prompt tokens from the prefix cache"),
    ("preemptions", "preemptions"),
    ("duration_s", "simulated time"),
)
"""Figures that stand below the times, and what they are."""

LEFT: Final = (("rejected", "requests turned away"), ("too_long", "requests longer than the cache"))
"""Figures that are told of several runs where they are not 0."""


def percentile_name(value: float) -> str:
    """A percentile as it is said: P99, P99.9."""
    return f"P{value:g}"


def verdict(summary: Summary, scenario: Scenario) -> str:
    """Whether a run holds at the promised percentile, in a sentence, with what breaks where it does not."""
    at = percentile_name(scenario.sla_pct)
    if summary.meets_sla:
        return _sentence(f"Holds at {at}", [*_kept(summary, scenario)])
    broken = [*_broken(summary, scenario)]
    if left := _unserved(summary):
        broken.append(left)
    return _sentence(f"Does not hold at {at}", broken)


def _sentence(verdict: str, reasons: Sequence[str]) -> str:
    """A verdict and its reasons, where there are any."""
    return f"{verdict}{': ' if reasons else ''}{', '.join(reasons)}."


def _promises(summary: Summary, scenario: Scenario) -> Iterator[tuple[str, float, float]]:
    """Times that a run has at the promised percentile, each with its promise [ms]."""
    for name, spread, limit in (
        ("TTFT", summary.ttft, scenario.sla_ttft_ms),
        ("TPOT", summary.tpot, scenario.sla_tpot_ms),
    ):
        if spread.at_pct is not None:
            yield name, spread.at_pct, limit


def _kept(summary: Summary, scenario: Scenario) -> Iterator[str]:
    return (f"{name} {show(value, 'ms')} of {show(limit, 'ms')}" for name, value, limit in _promises(summary, scenario))


def _broken(summary: Summary, scenario: Scenario) -> Iterator[str]:
    for name, value, limit in _promises(summary, scenario):
        if value > limit:
            yield f"{name} {show(value, 'ms')} against {show(limit, 'ms')}"


def _unserved(summary: Summary) -> str:
    """Requests that were not served, and why; empty where all were."""
    left = summary.requests - summary.served
    rest = left - summary.rejected - summary.too_long
    reasons = ((summary.rejected, "turned away"), (summary.too_long, "longer than the cache"), (rest, "never served"))
    said = ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)
    return f"{left:,} of {summary.requests:,} requests were not served ({said})" if left else ""


def run_text(run: Run | Digest) -> str:
    """The verdict, the times, the other figures, the plan, and the link."""
    found = digest(run)
    values = figures(found.summary)
    rows = [f"  {what}: {_shown(name, values[name])}" for name, what in SHOWN]
    blocks = (
        verdict(found.summary, found.scenario),
        _times(found),
        "\n".join((_setup(found, f"seed {found.traffic.seed}"), _counted(found.summary), *rows)),
        _planned(plan_of(found.scenario)),
        _remarks(found),
        f"link: {traffic_link(pinned(found.scenario), found.traffic)}",
    )
    return "\n\n".join(block.rstrip() for block in blocks if block) + "\n"


def few(counted: int, pct: float) -> str:
    """That so many requests are too few for a percentile; empty where it rests on `ENOUGH_BEYOND` or more."""
    beyond, at = counted * (1.0 - pct / 100.0), percentile_name(pct)
    if pct <= MEDIAN or beyond >= ENOUGH_BEYOND:
        return ""
    needed = round(ENOUGH_BEYOND / (1.0 - pct / 100.0))
    return f"{at} of {whole(counted)} requests rests on {significant(beyond)} of them: simulate {whole(needed)} or more"


ENOUGH_BEYOND: Final = 10.0
"""Requests beyond a percentile from which on it tells something."""


def _remarks(found: Digest) -> str:
    """What a reader must know beside the figures: too few requests, traffic that the link does not carry, spares."""
    said = [few(found.summary.counted, found.scenario.sla_pct)]
    plan, traffic = plan_of(found.scenario), found.traffic
    if found.trace:
        said.append("the trace is not part of the link, which opens made traffic")
    if plan.replicas is not None:
        serving = max(plan.replicas - found.scenario.spare, 1)
        failures = plan.gpus_per_replica / traffic.failure_hours
        spares = spares_for(serving, traffic.availability, failures, traffic.repair_s / 3600.0)
        up = f"{100.0 * traffic.availability:g} % of the time"
        count = "no number of spares" if spares is None else f"{spares:,} spare"
        said.append(
            f"{serving:,} replicas are up {up} with {count}: one failure in {traffic.failure_hours:,.0f} GPU-hours, back "
            f"after {traffic.repair_s:g} s"
        )
    return "\n".join(f"note: {each}" for each in said if each)


def _times(found: Digest) -> str:
    """How times are spread, in ms."""
    values, at = figures(found.summary), percentile_name(found.scenario.sla_pct)
    names = {short: "mean" if short == "mean" else short.upper() for short in STATISTICS}
    names["pct"] = at
    kept = [short for short, name in names.items() if short != "pct" or name not in list(names.values())[:-1]]
    rows = [
        (time.upper(), *(_number(values[f"{time}_{short}_ms"]) for short in kept), _promise(time, found.scenario))
        for time in TIMES
    ]
    return table(("ms", *(names[short] for short in kept), f"promised at {at}"), rows)


def _promise(time: str, scenario: Scenario) -> str:
    limits = {"ttft": scenario.sla_ttft_ms, "tpot": scenario.sla_tpot_ms}
    return f"{limits[time]:,g}" if time in limits else DASH


def _number(value: float | None) -> str:
    return DASH if value is None else significant(value)


def _shown(name: str, value: float | None) -> str:
    """A figure with its unit."""
    if name == "preemptions":
        return whole(value)
    unit = UNITS.get(name, "tok/s")
    return show(value, unit) if unit != "requests" else _number(value)


def _setup(found: Digest, seeds: str) -> str:
    """How many requests, at what rate, on what, from which seeds."""
    return (
        f"{found.summary.requests:,} requests at {significant(found.rate)} a second on {show(found.replicas, 'replicas')}, "
        f"at most {found.limit:,} in flight each; {seeds}"
    )


def _counted(summary: Summary) -> str:
    """How many requests the figures are of, and what became of the others."""
    left = _unserved(summary)
    return f"{summary.counted:,} are in the figures{f'; {left}' if left else ''}"


def _planned(plan: Plan) -> str:
    """The plan's own means, to hold the run against."""
    return (
        f"plan: TTFT {show(plan.ttft_ms, 'ms')}, TPOT {show(plan.tpot_ms, 'ms')} on average at batch {plan.batch:,}; "
        f"output {show(plan.output_tok_s, 'tok/s')}, goodput {show(plan.goodput_tok_s, 'tok/s')} of one replica"
    )


# --- several runs --------------------------------------------------------------------------------------------------


def replicated_text(found: Replicated) -> str:
    """In how many runs the promise holds, then every time and figure with its 95 % interval."""
    first = found.runs[0]
    blocks = (
        replicated_verdict(found),
        table(("figure", "mean", "95 % interval", "standard deviation"), [*_intervals(found)]),
        f"each run: {_setup(first, f'seeds {first.traffic.seed} to {found.runs[-1].traffic.seed}')}",
        _planned(plan_of(first.scenario)),
        f"link: {traffic_link(pinned(first.scenario), first.traffic)}",
    )
    return "\n\n".join(block.rstrip() for block in blocks) + "\n"


def replicated_verdict(found: Replicated) -> str:
    """In how many runs the promise holds, and what the promised percentiles are on average."""
    scenario, count = found.runs[0].scenario, len(found.runs)
    held = sum(each.summary.meets_sla for each in found.runs)
    at = percentile_name(scenario.sla_pct)
    verb = "Does not hold" if not held else "Holds"
    where = f"in all {count:,} runs" if held == count else f"in {held:,} of {count:,} runs" if held else "in any run"
    limits = (("TTFT", "ttft_pct_ms", scenario.sla_ttft_ms), ("TPOT", "tpot_pct_ms", scenario.sla_tpot_ms))
    said = [
        f"{name} {_plus_minus(found.estimates[figure])} ms against {limit:,g} ms"
        for name, figure, limit in limits
        if found.estimates[figure].mean is not None
    ]
    said += [
        f"{_number(found.estimates[name].mean)} {what} a run on average"
        for name, what in LEFT
        if found.estimates[name].mean
    ]
    count = len(found.lost)
    lost = f" {count:,} {'run was' if count == 1 else 'runs were'} lost by the workers." if count else ""
    return _sentence(f"{verb} at {at} {where}", said) + lost


def _plus_minus(each: Estimate) -> str:
    """A mean and half its interval."""
    return _number(each.mean) if each.half is None else f"{_number(each.mean)} ± {_number(each.half)}"


def _intervals(found: Replicated) -> Iterator[tuple[str, ...]]:
    """Rows of the table of intervals."""
    at = percentile_name(found.runs[0].scenario.sla_pct)
    for time in TIMES:
        for short in ("mean", "p50", "pct"):
            if short == "pct" and at == "P50":
                continue
            said = {"mean": "mean", "p50": "P50", "pct": at}[short]
            yield _interval(f"{time.upper()} {said} (ms)", found.estimates[f"{time}_{short}_ms"], 1.0)
    left = [(name, what) for name, what in LEFT if found.estimates[name].mean]
    for name, what in (*left, *SHOWN):
        unit = UNITS.get(name, "tok/s" if name.endswith("_tok_s") else "")
        scale = 100.0 if unit == "%" else 1.0
        yield _interval(f"{what}{f' ({unit})' if unit else ''}", found.estimates[name], scale)


def _interval(name: str, each: Estimate, scale: float) -> tuple[str, ...]:
    """One figure's row."""
    mean, low, high, deviation = (
        _number(None if value is None else value * scale) for value in (each.mean, each.low, each.high, each.deviation)
    )
    return name, mean, DASH if each.low is None else f"{low} to {high}", deviation


def progress_text(progress: Progress) -> str:
    """How far a run is."""
    return f"simulated {progress.done:,} of {progress.total:,} requests, {progress.considered:,} steps"


def runs_text(progress: Progress) -> str:
    """How far several runs are."""
    return f"simulated {progress.done:,} of {progress.total:,} runs, {progress.considered:,} requests"
