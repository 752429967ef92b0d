"""Sentences of the Optimise page: short, with numbers from the answer and the plan, and nothing else."""

from __future__ import annotations

from math import isnan
from typing import Final

from planner.catalog.accelerators import accelerator
from planner.optimise.answer import Answer, Choice, Progress
from planner.optimise.calibrated import calibration_mark
from planner.optimise.question import Objective, Question
from planner.optimise.tails import is_on_means
from planner.optimise.verdict import percentile_words
from planner.optimise.words import PRECISIONS, layout_words
from planner.specs.scenario import Scenario
from planner.ui.data import asked as asked_for
from planner.ui.optimise_chart import View
from planner.ui.optimise_data import SAME, cell, in_words, on_line, percent, reason_of, upright, value_of, where
from planner.ui.optimise_words import word
from planner.units import dollars, show, significant, unit_of, whole

UNITS: Final = {"gpu": "tok/s", "usd": "$"}
"""Units of the upright axis, by view."""

NEAR: Final = ("promise", "limit", "budget", "price")
"""Reasons of the question's own: what fell for one of them is a layout that could be had."""


def figure(objective: Objective, value: float) -> str:
    """A value of the objective with its unit, as a sentence takes it."""
    if objective in ("usd_per_m_goodput", "usd_per_hour"):
        return dollars(value)
    return significant(value) if objective == "goodput_tok_s" else show(value, unit_of(objective))


def headline(answer: Answer) -> str:
    """The winner: on which machines, at what value, and how far the next kind is behind."""
    winner, objective = answer.winner or answer.nearest, answer.question.objective
    if winner is None:
        return word("infeasible", gpus=show(answer.question.max_gpus, "GPUs"))
    runs = machine(winner) + calibration_mark(answer.question, winner.scenario)
    lead = f"lead_{objective}" if answer.winner is not None else "lead_nearest"
    said = {"lead": word(lead), "machine": runs, "value": _value(winner, objective)}
    return word("headline", next=_next(answer, winner), **said)


def on_means(key: str, answer: Answer) -> str:
    """The heading of what is on means whatever the percentile: said so where the answer is not."""
    return word(key) if is_on_means(answer.question) else word("on_means", title=word(key))


def at_percentile(sentence: str, answer: Answer) -> str:
    """A sentence on plans at their percentile, beside what is on means."""
    if is_on_means(answer.question):
        return sentence
    return word("turn_at", at=percentile_words(answer.question.scenario.sla_pct), said=sentence)


def machine(choice: Choice) -> str:
    """What a choice runs on: how many of which accelerator, its precision, and that prefill is apart."""
    asked, (decode, prefill) = choice.scenario, devices(choice)
    counts = {accelerator(asked.gpu).name: decode}
    if prefill:
        other = accelerator(asked.prefill_gpu or asked.gpu).name
        counts[other] = counts.get(other, 0.0) + prefill
    said = " + ".join(word("machine", count=whole(count), gpu=name) for name, count in counts.items())
    return ", ".join((said, PRECISIONS[asked.weights], *([word("machine_apart")] if prefill else [])))


def devices(choice: Choice) -> tuple[float, float]:
    """GPUs that decode (or do both), and GPUs of a prefill pool."""
    found = choice.outcome
    every = found.gpus or found.gpus_per_replica
    if choice.scenario.prefill != "disaggregated":
        return every, 0.0
    decode = found.gpus_per_replica * (cell(choice.scenario, "replicas") or 1.0)
    return decode, every - decode


def _value(choice: Choice, objective: Objective) -> str:
    """The objective of a choice, and what an hour of it costs where that is known."""
    hour = cell(choice.scenario, "usd_per_hour")
    own = (
        []
        if objective in ("gpus", "usd_per_hour") or isnan(choice.value)
        else [word(f"{objective}_is", value=figure(objective, choice.value))]
    )
    own += [] if hour is None else [word("hour_is", value=dollars(hour))]
    if not own and isnan(choice.value):
        return show(choice.outcome.gpus, "GPUs")
    return ", ".join(own) or figure(objective, choice.value)


def _next(answer: Answer, winner: Choice) -> str:
    """How far the best of another kind is from the winner."""
    other = answer.second
    return "" if other is None else _compared("next_is", other.value, winner.value, answer.question.objective)


def _compared(key: str, value: float, best: float, objective: Objective) -> str:
    """How a value differs from the winner's, which all differences on the page are shares of."""
    share = value / best - 1.0 if best else 0.0
    by = word("by_none") if abs(share) < SAME else word("by_more" if share > 0 else "by_less", share=percent(share))
    return word(key, verb=word(f"verb_{objective}"), by=by)


def layout(choice: Choice) -> str:
    """How the winner is laid out: which GPUs decode, and which prefill."""
    (decode, prefill), found = devices(choice), choice.outcome
    named, many = layout_words(choice.scenario), round(cell(choice.scenario, "replicas") or 1.0)
    if prefill:
        own = named if many == 1 else word("replicas_of", count=whole(many), layout=named)
        return word("layout_apart", layout=own, decode=show(decode, "GPUs"), prefill=show(prefill, "GPUs"))
    said = {"layout": named, "batch": whole(found.batch)}
    if many == 1:
        return word("layout_one", **said)
    return word("layout_many", replicas=show(many, "replicas"), gpus=show(found.gpus_per_replica, "GPUs"), **said)


def own_plan(answer: Answer, mine: Scenario) -> str:
    """How the plan of the sidebar compares with the winner; why it cannot."""
    winner, objective = answer.winner, answer.question.objective
    own = value_of(mine, objective)
    if own is not None and winner is not None:
        return _compared("plan_is", own, winner.value, objective)
    reason = in_words(reason_of(mine))
    return word("plan_fails", reason=reason) if reason else word("plan_unpriced")


def best(answer: Answer) -> str:
    """What the table of best choices holds, and which of its rows is the next kind."""
    second, at = answer.second, percentile_words(answer.question.scenario.sla_pct)
    if answer.nearest is not None:
        return word("nearest_finding", at=at)
    said = word("best_finding") if is_on_means(answer.question) else word("best_finding_at", at=at)
    return said + ("" if second is None else word("best_second", kind=second.kind))


def infeasible(answer: Answer) -> str:
    """Why nothing stands: what felled those that came nearest, the two most frequent reasons of them."""
    if not answer.refused:
        return word("infeasible_none")
    near = [each for each in answer.refused if each.rule in NEAR] or list(answer.refused)
    said = "; ".join(
        word("infeasible_each", reason=in_words(each.reason), count=whole(each.count)) for each in near[:2]
    )
    return word("infeasible_main", total=whole(answer.candidates), said=said)


def progress(now: Progress, asked: Question) -> str:
    """How far a search is."""
    best = (
        ""
        if now.best is None
        else word("best_so_far" if is_on_means(asked) else "best_so_far_means", value=figure(asked.objective, now.best))
    )
    if not now.total:
        return word("starting")
    return word("running", done=whole(now.done), total=whole(now.total), considered=whole(now.considered), best=best)


def counts(answer: Answer) -> str:
    """How much was looked at."""
    return word(
        "counts_finding", candidates=whole(answer.candidates), considered=whole(answer.considered),
        seconds=show(answer.seconds, "s"),
    )  # fmt: skip


def front(answer: Answer, view: View) -> str:
    """What the winner gives at the SLA, and from where to where the front runs."""
    line = on_line(answer.front, view)
    if not line:
        return word("front_empty")
    slow, fast = line[0], line[-1]
    if len(line) == 1:
        return _at_sla(answer, view) + word("front_one", kind=slow.kind)
    ends = {"slow": show(slow.tok_s_user, "tok/s"), "fast": show(fast.tok_s_user, "tok/s")}
    return _at_sla(answer, view) + word(
        "front_finding", first=_upright(upright(slow, view), view), last=show(upright(fast, view), UNITS[view]), **ends
    )


def _at_sla(answer: Answer, view: View) -> str:
    """What the winner gives a user, and for what; nothing where there is no winner or no such figure."""
    winner = answer.winner
    place = None if winner is None else where(winner.scenario, view)
    if place is None:
        return ""
    tpot = asked_for(answer.question.scenario.sla_tpot_ms)
    return word("front_winner", tpot=tpot, speed=show(place[0], "tok/s"), value=_upright(place[1], view))


def _upright(value: float | None, view: View) -> str:
    """A value of the upright axis."""
    return word(f"front_per_{view}", value=show(value, UNITS[view]))
