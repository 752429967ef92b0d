"""Sentences of the Traffic page's studies: short, with numbers from the study and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planner.simulate.expected import Expected
from planner.simulate.outage import Course, Outage
from planner.simulate.studies import Knee, Routing
from planner.specs.scenario import Scenario
from planner.ui.traffic_sentences import bound, broken, pct_of, promised, reason, share
from planner.ui.traffic_words import word
from planner.units import DASH, show, significant, whole

JUST: Final = 1.005
"""A time so many times its SLA is shown with the same three digits."""


def knee(found: Knee, scenario: Scenario) -> str:
    """Up to which rate it holds, and how the rate asked stands to that."""
    bad = found.at_broken
    what = "" if bad is None else broken(bad.summary, scenario)
    if found.knee is None:
        return word("knee_none", broken=significant(found.broken or 0.0), bound=what)
    now = _now(found)
    if bad is None:
        return word("knee_all", knee=significant(found.knee), now=now)
    return word("knee_finding", knee=significant(found.knee), bound=what, broken=significant(bad.rate), now=now)


def _now(found: Knee) -> str:
    """How the rate asked stands to the knee."""
    ratio = found.now / (found.knee or found.now)
    asked = significant(found.now)
    if ratio <= 1.0:
        return word("knee_now", now=asked, share=show(ratio, "%"))
    return word("knee_now_over", now=asked, share=show(ratio - 1.0, "%"))


def theory(expected: Sequence[Expected], found: Knee) -> str:
    """How to read the charts, and what the dashed line is; where it is not drawn, and why."""
    unsure = [each for each in expected if not each.sure]
    said = [word("knee_each", requests=whole(found.requests)), word("ratio_finding")]
    if drawn(expected):
        said.append(word("knee_theory_many" if found.replicas > 1 else "knee_theory"))
    if unsure:
        why = reason(unsure[0].why) or DASH
        said.append(word("knee_unsure" if drawn(expected) else "knee_none_sure", why=why))
    return " ".join(said)


def drawn(expected: Sequence[Expected]) -> bool:
    """Whether theory has a line: it begins at the smallest rate, and needs two."""
    return len(expected) > 1 and all(each.sure for each in expected[:2])


def knee_header(scenario: Scenario) -> tuple[str, ...]:
    """Titles of the table of rates."""
    pct = pct_of(scenario)
    times = (f"{word('col_ttft', pct=pct)}, ms", f"{word('col_tpot', pct=pct)}, ms")
    return (word("col_rate"), word("col_goodput"), word("col_good"), *times, word("col_holds"))


def routing(found: Routing, scenario: Scenario) -> str:
    """Which way serves best, and where the one set stands."""
    best, pct = found.best, pct_of(scenario)
    least = "" if any(way.summary.meets_sla for way in found.ways) else "_least"
    texts = {"share": share(best.summary.share_good), "pct": pct, "ttft": show(best.summary.ttft.at_pct, "ms")}
    if found.one_limit and best.router != found.router:
        was = show(found.as_set.summary.ttft.at_pct, "ms")
        return word(f"routing_limit{least}", best=word(best.router), pct=pct, ttft=texts["ttft"], set=was)
    limit, now = whole(best.limit), _as_set(found, scenario)
    first = f"{word('routing_no_limit')} " if found.one_limit else ""
    if found.replicas > 1:
        return first + word(f"routing{least or '_finding'}", best=word(best.router), limit=limit, now=now, **texts)
    return first + word(f"routing_one{least or '_finding'}", limit=limit, now=now, **texts)


def worth(found: Routing) -> bool:
    """Whether the best way is better than the one set."""
    return found.best != found.as_set


def _as_set(found: Routing, scenario: Scenario) -> str:
    """Where the way that is set stands."""
    if not worth(found):
        return word("routing_here")
    way = found.as_set
    texts = {"share": share(way.summary.share_good), "ttft": show(way.summary.ttft.at_pct, "ms")}
    name = f"{word(way.router)}, " if found.replicas > 1 else ""
    return word("routing_set", router=name, limit=whole(way.limit), pct=pct_of(scenario), **texts)


def use(found: Routing) -> str:
    """Label of the button that takes the best way."""
    best = found.best
    name = f"{word(best.router)}, {whole(best.limit)}" if found.replicas > 1 else whole(best.limit)
    return f"{word('use')}: {name}"


def routing_header(scenario: Scenario) -> tuple[str, ...]:
    """Titles of the table of ways."""
    pct = pct_of(scenario)
    times = (word("col_ttft", pct=pct), word("col_tpot", pct=pct))
    return (word("col_router"), word("col_limit"), word("col_good"), *times, word("col_goodput"))


def routing_rows(found: Routing) -> list[tuple[str, ...]]:
    """Every way as finished figures."""
    return [
        (
            word(way.router), whole(way.limit), share(way.summary.share_good), show(way.summary.ttft.at_pct, "ms"),
            show(way.summary.tpot.at_pct, "ms"), significant(way.summary.good_tok_s * found.replicas),
        )
        for way in found.ways
    ]  # fmt: skip


def hurts(found: Outage, scenario: Scenario) -> bool:
    """Whether the failure breaks the promise on TTFT somewhere."""
    worst = found.failed.worst_ms
    return worst is None or worst > scenario.sla_ttft_ms


def broken_anyway(found: Outage) -> bool:
    """Whether the promise is broken without any failure, so that a failure tells nothing of it."""
    return not found.healthy.summary.meets_sla


def width(found: Outage) -> str:
    """Width of a window."""
    return f"{found.width_s:g} s"


def windows(found: Outage, scenario: Scenario) -> str:
    """What a step of the chart stands for."""
    return bound(word("outage_windows", pct=pct_of(scenario), width=width(found)))


def outage(found: Outage, scenario: Scenario) -> str:
    """What one failed replica does."""
    course = found.failed
    texts = {
        "which": word("outage_only") if course.replicas == 1 else word("outage_of", replicas=whole(course.replicas)),
        "width": width(found), "pct": pct_of(scenario),
        "worst": _worst(course, scenario), "calm": _worst(found.healthy, scenario), "sla": promised("ttft", scenario),
        "restarted": _restarted(course),
    }  # fmt: skip
    if broken_anyway(found):
        return word("outage_broken")
    if not hurts(found, scenario):
        return word("outage_calm", **texts)
    if course.recovered_s is None:
        return word("outage_lost", **texts)
    return word("outage_hurt", recovered=show(course.recovered_s, "s"), **texts)


def _worst(course: Course, scenario: Scenario) -> str:
    """The longest TTFT of a window; that nothing is served. One that is broken by less than its digits show is told so."""
    worst, sla = course.worst_ms, scenario.sla_ttft_ms
    if worst is None:
        return word("outage_nobody")
    return word("outage_just", sla=promised("ttft", scenario)) if sla < worst < JUST * sla else show(worst, "ms")


def _restarted(course: Course) -> str:
    """How many requests begin again, and how late the last of them has its first token."""
    if not course.restarted:
        return word("outage_none_restarted")
    key = "outage_one_restarted" if course.restarted == 1 else "outage_restarted"
    late = "" if course.caught_ms is None else word("outage_caught", time=show(course.caught_ms, "ms"))
    return word(key, count=whole(course.restarted), late=late)


def spare(found: Outage, scenario: Scenario) -> str:
    """What one replica more makes of it."""
    course = found.spared
    if not hurts(found, scenario):
        return word("outage_spare_needless", worst=_worst(course, scenario))
    if course.worst_ms is not None and course.worst_ms <= scenario.sla_ttft_ms:
        after = word("outage_spare_calm")
    elif course.recovered_s is None:
        after = word("outage_spare_lost")
    elif course.recovered_s == 0.0:
        after = word("outage_spare_same")
    else:
        after = word("outage_spare_back", recovered=show(course.recovered_s, "s"))
    texts = {"pct": pct_of(scenario), "width": width(found), "worst": _worst(course, scenario)}
    return word("outage_spare_helps", spared=after, **texts)
