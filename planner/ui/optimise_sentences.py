"""Sentences of the Optimise page: short, with numbers from the answer and the plan, and nothing else."""

from __future__ import annotations

from typing import Final

from planner.optimise.answer import Answer, Choice, Progress
from planner.optimise.question import LARGEST, Objective, Question
from planner.specs.scenario import Scenario
from planner.ui.optimise_chart import View
from planner.ui.optimise_data import on_line, reason_of, upright, value_of
from planner.ui.optimise_words import word
from planner.units import dollars, show, significant, unit_of, whole

SAME: Final = 0.005
"""Relative difference that is not worth a figure."""


NEAR: Final = ("promise", "limit", "budget", "price")
"""Reasons of the question's own: what fell for one of them is a layout that could be had."""


def figure(objective: Objective, value: float) -> str:
    """A value of the objective with its unit, as a sentence takes it."""
    if objective in ("usd_per_m_goodput", "usd_per_hour"):
        return dollars(value)
    return significant(value) if objective == "goodput_tok_s" else show(value, unit_of(objective))


def headline(answer: Answer, mine: Scenario) -> str:
    """The winner, and by how much it beats the plan of the sidebar and the next of another kind."""
    winner, objective = answer.winner, answer.question.objective
    if winner is None:
        return word("infeasible", gpus=show(answer.question.max_gpus, "GPUs"))
    first = word(f"{objective}_is", kind=winner.kind, value=figure(objective, winner.value))
    own = value_of(mine, objective)
    beside = [*_than_plan(winner, own, objective), *_than_next(answer, winner)]
    said = word("both", first=beside[0], second=beside[1]) if len(beside) > 1 else "".join(beside)
    end = "" if own is not None else f" {_no_plan(mine)}"
    return f"{first}, {said}.{end}" if said else f"{first}.{end}"


def _than_plan(winner: Choice, own: float | None, objective: Objective) -> list[str]:
    """How the winner compares with the plan of the sidebar."""
    if own is None:
        return []
    said = _difference(winner.value, own, objective)
    return [word("as_plan") if said is None else word("than_plan", share=said[0], word=said[1])]


def _than_next(answer: Answer, winner: Choice) -> list[str]:
    """How the winner compares with the best of another kind."""
    other = next((choice for choice in answer.best if choice.kind != winner.kind), None)
    if other is None:
        return []
    said = _difference(winner.value, other.value, answer.question.objective)
    if said is None:
        return [word("as_next", kind=other.kind)]
    return [word("than_next", share=said[0], word=said[1], kind=other.kind)]


def _difference(value: float, other: float, objective: Objective) -> tuple[str, str] | None:
    """By which share a value is smaller or larger than another, and the word for it; None where they are the same."""
    share = value / other - 1.0 if other else 0.0
    if abs(share) < SAME:
        return None
    less = word("fewer" if objective == "gpus" else "less")
    return f"{significant(abs(share) * 100, 2)} %", less if share < 0 else word("more_than")


def _no_plan(mine: Scenario) -> str:
    """Why the plan of the sidebar has no value."""
    reason = reason_of(mine)
    return word("plan_fails", reason=reason) if reason else word("plan_unpriced")


def infeasible(answer: Answer) -> str:
    """Why nothing stands: what felled those that came nearest, the two most frequent reasons of them."""
    if not answer.refused:
        return word("infeasible_none")
    near = [each for each in answer.refused if each.rule in NEAR] or list(answer.refused)
    said = "; ".join(word("infeasible_each", reason=each.reason, count=whole(each.count)) for each in near[:2])
    return word("infeasible_main", total=whole(answer.candidates), said=said)


def progress(now: Progress, asked: Question) -> str:
    """How far a search is."""
    best = "" if now.best is None else word("best_so_far", value=figure(asked.objective, now.best))
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
    """What speed for a user costs."""
    line = on_line(answer.front, view)
    if not line:
        return word("front_empty")
    slow, fast = line[0], line[-1]
    if len(line) == 1:
        return word("front_one", kind=slow.kind)
    unit = "tok/s" if view == "gpu" else "$"
    return word(
        f"front_finding_{view}", first=show(upright(slow, view), unit), last=show(upright(fast, view), unit),
        slow=show(slow.tok_s_user, "tok/s"), fast=show(fast.tok_s_user, "tok/s"),
    )  # fmt: skip


def worse(objective: Objective, now: float, then: float) -> float:
    """How much worse the objective is now than it would be then: positive = the constraint costs something."""
    share = now / then - 1.0 if then else 0.0
    return -share if objective in LARGEST else share
