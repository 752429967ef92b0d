"""Sentences of the Traffic page: short, with numbers from the run and nothing else."""

from __future__ import annotations

import re
from math import ceil, floor, isfinite
from typing import Final

from planner.plan import Plan
from planner.simulate.expected import Expected
from planner.simulate.studies import Knee, carried
from planner.simulate.summary import Spread, Summary
from planner.simulate.traffic import MOST_REQUESTS
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.specs.spelling import decimal
from planner.ui import words
from planner.ui.traffic_tasks import Told
from planner.ui.traffic_words import word
from planner.units import percent, show, significant, whole

HIGH: Final = 90.0
"""Percentile from which on few requests decide it."""

WHOLE_DAY: Final = 0.9
"""Part of a day that a run must see to know its peak."""

TAIL: Final = 99.0
"""The percentile that the page asks about where less is promised."""

UNIT: Final = re.compile(r"(?<=\d) (?=(?:ms|s|replicas?)\b)")
"""The space between a number and its unit."""

FEW_SLOW: Final = 10
"""Requests beyond a percentile below which it is a matter of luck."""

FEW_WAIT: Final = 0.02
"""Waiting over running requests below which waiting for a seat is not what takes time."""

STEADY: Final = 10.0
"""A run is long enough where so many times the requests in the system arrive."""


def pct_of(scenario: Scenario) -> str:
    """The promised percentile."""
    return f"{scenario.sla_pct:g}"


def share(value: float) -> str:
    """A share in percent with three digits, never rounded up to all."""
    if value >= 1.0:
        return "100\u00a0%"
    scale = 1000 if value >= 0.1 else 10_000 if value >= 0.01 else 100_000
    kept = min(floor(scale * value + 1e-6) / scale, 0.999)
    return f"{significant(100.0 * kept)}\u00a0%"


def reason(why: str) -> str:
    """What theory does not cover, as the second half of a sentence."""
    text = why.strip().rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def bound(text: str) -> str:
    """A sentence whose numbers are not parted from their units at the end of a line."""
    return UNIT.sub("\u00a0", text)


def headline(told: Told) -> str:
    """Whether it holds, by how much, at what load; where it does not, by how much and what to do."""
    scenario, summary = told.asked.scenario, told.summary
    pct, load = pct_of(scenario), _load(told)
    if not summary.meets_sla:
        return bound(word("holds_not", pct=pct, broken=broken(summary, scenario), load=load))
    times = _times(summary, scenario, pct, "at_pct")
    if wanted(told):
        return bound(word("holds_short", pct=pct, span=show(told.last, "s"), times=times, load=load))
    return bound(word("holds", pct=pct, share=share(summary.share_good), times=times, load=load))


def _times(summary: Summary, scenario: Scenario, pct: str, at: str) -> str:
    """Times that keep their SLA; requests of one token have no TPOT."""
    found = {name: getattr(spread, at) for name, spread, _ in _judged(summary, scenario)}
    return ", ".join(_kept(name, pct, value, scenario) for name, value in found.items() if value is not None)


def context(told: Told) -> str:
    """What ran, in one line: the plan, the requests' own mean lengths, their rate."""
    return words.context(plan_of(told.asked.scenario), (told.isl, told.osl), _load(told))


def _load(told: Told) -> str:
    """What arrives, on what."""
    replicas, rate = show(float(told.replicas), "replicas"), significant(told.rate)
    if told.asked.traffic.arrival == "closed" and not told.asked.trace:
        return word("load_clients", clients=whole(told.asked.traffic.clients), rate=rate, replicas=replicas)
    return word("load_is", rate=rate, replicas=replicas)


def _kept(name: str, pct: str, value: float | None, scenario: Scenario) -> str:
    """A time that keeps its SLA."""
    return word(f"{name}_is", pct=pct, value=show(value, "ms"), sla=promised(name, scenario))


def promised(name: str, scenario: Scenario) -> str:
    """The SLA on a time, as it was asked."""
    value = scenario.sla_ttft_ms if name == "ttft" else scenario.sla_tpot_ms
    return f"{decimal(value)} ms" if value < 1000 else show(value, "ms")


def broken(summary: Summary, scenario: Scenario, at: float | None = None) -> str:
    """Which promise is broken, and by how much; `at`: another percentile than the promised one."""
    pct = pct_of(scenario) if at is None else f"{at:g}"
    said = []
    for name, spread, limit in _judged(summary, scenario):
        value = spread.at_pct if at is None else spread.p99
        if value is not None and value > limit:
            said.append(word(f"{name}_over", pct=pct, value=show(value, "ms"), sla=promised(name, scenario)))
    if summary.rejected:
        said.append(word("turned_away", count=whole(summary.rejected), total=whole(summary.requests)))
    elif summary.served < summary.requests:
        said.append(word("not_served", count=whole(summary.requests - summary.served), total=whole(summary.requests)))
    return ", ".join(said) or word("share_over", share=share(summary.share_good))


def _judged(summary: Summary, scenario: Scenario) -> tuple[tuple[str, Spread, float], ...]:
    """Times that are promised, with their SLA [ms]."""
    return ("ttft", summary.ttft, scenario.sla_ttft_ms), ("tpot", summary.tpot, scenario.sla_tpot_ms)


def over(name: str, told: Told) -> bool:
    """Whether a time is over its SLA at the promised percentile."""
    found = {each: (spread.at_pct, limit) for each, spread, limit in _judged(told.summary, told.asked.scenario)}
    value, limit = found[name]
    return value is not None and value > limit


def advice(told: Told, knee: Knee | None) -> str:
    """What to do about a promise that is broken; empty where it holds."""
    if told.summary.meets_sla:
        return ""
    plan, traffic = plan_of(told.asked.scenario), told.asked.traffic
    if traffic.policy == "static":
        return word("then_static")
    if traffic.arrival == "closed" and not told.asked.trace:
        return word("then_clients")
    if knee is not None:
        return _by_knee(told, plan, knee)
    if told.rate > carried(plan, _output(told)):
        return _too_many(told, plan)
    if over("tpot", told):
        return word("then_tpot")
    if over("ttft", told):
        return word("then_prompt" if _seated(told) else "then_ttft")
    return word("then_rate")


def _by_knee(told: Told, plan: Plan, knee: Knee) -> str:
    """What the knee says of more replicas."""
    if knee.knee is None:
        hopeless = word("then_no_knee", rate=significant(knee.points[0].rate))
        return f"{hopeless} {word('then_prompt' if over('ttft', told) else 'then_tpot')}"
    replicas = show(float(needed(told, plan, knee)), "replicas")
    return word("then_knee", rate=significant(knee.knee), replicas=replicas, now=significant(told.rate))


def _too_many(told: Told, plan: Plan) -> str:
    """That more arrive than full batches serve."""
    return word(
        "then_overload", batch=whole(plan.batch), replicas=show(float(told.replicas), "replicas"), rate=significant(told.rate),
        carried=significant(carried(plan, _output(told))), needed=show(float(needed(told, plan, None)), "replicas"),
    )  # fmt: skip


def _output(told: Told) -> float:
    """Mean output of a request [tokens]."""
    found = told.summary
    return (
        found.output_tok_s * told.replicas / found.qps
        if told.asked.trace and found.qps
        else float(told.asked.scenario.osl)
    )


def needed(told: Told, plan: Plan, knee: Knee | None) -> int:
    """Replicas that carry the rate, each as much as at the knee, or as the plan means to load it; at least those there are."""
    if knee is not None:
        each = (knee.knee or 0.0) / max(knee.replicas, 1)
    else:
        each = carried(plan, _output(told)) / told.replicas * told.asked.scenario.load
        each = each if told.rate > each * told.replicas else 0.0
    return max(ceil(told.rate / each - 1e-9), told.replicas) if each > 0 else told.replicas


def _seated(told: Told) -> bool:
    """Whether hardly any request waits for a seat in an engine: what delays a first token then is prompts being read."""
    return told.summary.waiting < FEW_WAIT * max(told.summary.running, 1.0)


def tail(told: Told) -> str:
    """What P99 says where less is promised; empty where no less is."""
    scenario, summary = told.asked.scenario, told.summary
    if scenario.sla_pct >= TAIL or summary.ttft.p99 is None:
        return ""
    late = [each for each, spread, limit in _judged(summary, scenario) if (spread.p99 or 0.0) > limit]
    if late or summary.served < summary.requests:
        return word("p99_not", broken=broken(summary, scenario, TAIL))
    return word("p99_holds", times=_times(summary, scenario, "99", "p99"))


def rests(told: Told) -> str:
    """How many requests a high percentile rests on, and which are left out; empty for a low one."""
    if told.asked.scenario.sla_pct < HIGH:
        return ""
    counts = {"count": whole(_slow(told)), "counted": whole(told.summary.counted)}
    warm = word("rests_warm", warm=whole(told.warm), all=whole(told.summary.requests)) if told.warm else ""
    said = word("rests", pct=pct_of(told.asked.scenario), warm=warm, **counts)
    return word("rests_few", said=said) if thin(told) else said


def _slow(told: Told) -> int:
    """Requests beyond the promised percentile."""
    return max(round(told.summary.counted * (1.0 - told.asked.scenario.sla_pct / 100.0)), 1)


def thin(told: Told) -> bool:
    """Whether a percentile rests on too few requests to be trusted."""
    return _slow(told) < FEW_SLOW


def part_of_day(told: Told) -> str:
    """That a run sees but a part of a day; empty for other arrivals."""
    traffic = told.asked.traffic
    if traffic.arrival != "diurnal" or told.asked.trace or told.last >= WHOLE_DAY * traffic.period_s:
        return ""
    return word("part_of_day", part=show(told.last / traffic.period_s, "%"), period=show(traffic.period_s, "s"))


def wanted(told: Told) -> int:
    """Requests that a run needs to show a steady state, where it has fewer and yet seems to hold; else 0."""
    summary = told.summary
    needed = STEADY * (summary.running + summary.waiting)
    if (
        told.asked.trace
        or told.asked.traffic.arrival == "closed"
        or not summary.meets_sla
        or summary.requests >= needed
    ):
        return 0
    return min(1000 * -int(-needed // 1000), MOST_REQUESTS)


def few(told: Told) -> str:
    """That a run is too short to show a steady state; empty where it is not."""
    count, summary = wanted(told), told.summary
    if not count:
        return ""
    inside = whole(summary.running + summary.waiting)
    return word("few", requests=whole(summary.requests), span=show(told.last, "s"), inside=inside, wanted=whole(count))


def done_line(told: Told) -> str:
    """What was simulated."""
    span = show(told.summary.duration_s, "s")
    return word("done_line", requests=whole(told.summary.requests), span=span, steps=whole(told.steps))


def percentiles(spread: Spread) -> str:
    """A spread in a line."""
    texts = {name: show(getattr(spread, name), "ms") for name in ("mean", "p50", "p90", "p95", "p99")}
    return word("rows", **texts)


def state(told: Told) -> str:
    """What the queues did."""
    waiting = told.state.waiting
    most, limit = float(waiting.max()) if len(waiting) else 0.0, whole(told.limit * told.replicas)
    running = show(float(told.state.running.max(initial=0.0)), "requests")
    if most < 1:
        return word("state_quiet", running=running, limit=limit)
    if _grows(told):
        return word("state_grows", waiting=show(_at_last(told), "requests"))
    return word("state_waits", waiting=show(most, "requests"), running=running, limit=limit)


def _at_last(told: Told) -> float:
    """Requests that wait when the last one arrives."""
    at = int((told.state.time <= told.last).sum()) - 1
    return float(told.state.waiting[max(at, 0)])


def _grows(told: Told) -> bool:
    """Whether the queue is longest, and long, when the last request arrives."""
    last = _at_last(told)
    open_loop = told.asked.traffic.arrival != "closed" or bool(told.asked.trace)
    return open_loop and last > 0.05 * told.summary.requests and last >= 0.8 * float(told.state.waiting.max())


def theory(found: Expected, scenario: Scenario, plan: Plan, limit: int) -> str:
    """What queue theory says before a run; `limit`: requests that each replica is given at a time."""
    pct, replicas = pct_of(scenario), show(float(plan.replicas or 0), "replicas")
    if not found.sure:
        return bound(word("theory_unsure", why=reason(found.why)))
    if not isfinite(found.ttft_ms):
        figures = {"rate": significant(found.rate), "most": significant(found.most), "limit": whole(limit)}
        return bound(word("theory_over", replicas=replicas, **figures))
    told = {"ttft": found.ttft_ms, **({"tpot": found.tpot_ms} if scenario.osl > 1 else {})}
    said = ", ".join(_kept(name, pct, value, scenario) for name, value in told.items())
    at = word("load_is", rate=significant(found.rate), replicas=replicas)
    verdict = word("theory_holds" if found.holds else "theory_not", pct=pct)
    return word("theory", verdict=verdict, said=f"{said}, at {at}")


def within(told: Told) -> str:
    """Within which times the promised share of requests is."""
    found = told.summary
    times = {"ttft": found.ttft, "tpot": found.tpot, "e2e": found.e2e}
    texts = {name: show(each.at_pct, "ms") for name, each in times.items()}
    return word("spread_finding", pct=percent(told.asked.scenario.sla_pct / 100.0), **texts)
