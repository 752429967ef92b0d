"""The section of docs/VALIDATION.md on simulated load tests, made of presets/measurements/simulated.csv."""

from __future__ import annotations

from collections import Counter

from planner.simulate.loaded import ENGINES, loaded_errors, loaded_points, steady_shares
from planner.simulate.simulated_points import simulated_points
from planner.simulate.validation import KINDS
from planner.validate import Errors

TEXT = """\
## Loaded time to first token, simulated

The load tests of {tests:,} of these points were simulated request by request as they were run: so many requests at once at
the start, each replaced by the next as it ends, ten or so a client, lengths spread as the source says, and the engine told
what the source's launch scripts tell it (`presets/measurements/load_tests.toml`). Nothing was fitted to them beyond the
constants that the closed formulas share; the closed formulas have a fitted wait in a closed loop and a fitted share of
prefill beside that, and a simulation has neither. The settings matter: on every engine's own defaults loaded TTFT was within
37% when tried (2026-12), TensorRT-LLM within 41%; the settings were looked up where residuals asked for them.
Below are the {loaded:,} load tests with more than one request in flight,
each row on the same points for both. `make simulated` makes the figures again.
"""

STEADY = """\
These are figures of a load test that starts with all requests at once; a steady service does not show this. Simulated with
as many requests a second that come at random instead, mean TTFT is lower, the more so the more requests were in flight. What
is left after the first two rounds of a load test lies between: requests of equal length keep marching in step, most of all
where waiting prompts are read before decoding goes on (SGLang).
"""

WHY = """\
Where simulations are far off: DeepSeek on B200 under SGLang compiled kernels during the first round (its means hold 70 s of
waiting, its medians are met); vLLM of November 2025 read long prompts of gpt-oss about half as fast as its kernels
allow, and on MI300X and MI355X its first round took seconds; sources that no steady service explains are odd here too.
"""


def section() -> str:
    """The section."""
    parts = [
        TEXT.format(tests=sum(not each.reason for each in simulated_points()), loaded=len(loaded_points())),
        _errors(),
        STEADY,
        _steady(),
        WHY,
        _reasons(),
    ]
    return "\n".join(parts)


def _errors() -> str:
    lines = [
        "| what | engine | configurations | points | closed formulas | 90th % | bias | simulated | 90th % | bias |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for engine in ("", *ENGINES):
        found = loaded_errors(engine)
        for metric in dict.fromkeys(each.metric for each in found):
            closed, simulated = (_one(found, metric, kind) for kind in KINDS)
            told = " | ".join(f"{e.median:.1%} | {e.p90:.1%} | ×{e.bias:.2f}" for e in (closed, simulated))
            lines.append(f"| {metric} | {engine or 'all'} | {closed.configurations:,} | {closed.rows:,} | {told} |")
    return "\n".join([*lines, ""])


def _one(found: tuple[Errors, ...], metric: str, kind: str) -> Errors:
    return next(each for each in found if (each.metric, each.group) == (metric, kind))


def _steady() -> str:
    lines = [
        "| requests in flight | load tests | after two rounds / mean of the test | steady / mean of the test |",
        "|---|--:|--:|--:|",
    ]
    for each in steady_shares():
        most = "or more" if each.most == float("inf") else f"to {each.most:.0f}"
        lines.append(f"| {each.least:.0f} {most} | {each.points:,} | {each.later:.2f} | {each.steady:.2f} |")
    return "\n".join([*lines, ""])


def _reasons() -> str:
    counts = Counter(each.reason for each in simulated_points() if each.reason)
    said = "; ".join(f"{count} ({reason})" for reason, count in counts.most_common() if count > 2)
    return f"Not simulated: {said}.\n"
