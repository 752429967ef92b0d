"""From columns to choices: scenarios with everything named, the best of every kind, and the front."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from planner.optimise.answer import Choice, FrontPoint
from planner.optimise.found import Found, best_of_layouts, front_rows, kinds, order, undominated, worth_keeping
from planner.optimise.offers import named_pool
from planner.optimise.question import Question
from planner.optimise.space import PROMISES
from planner.optimise.words import kind_words
from planner.specs.scenario import Scenario
from planner.variants import outcome


def scenario_of(question: Question, space: Sequence[Scenario | None], found: Found, at: int) -> Scenario:
    """The scenario of a row, with layout, batch, replicas and pools named.

    Replicas are named where the search chose them; where a request rate asks for them the planner sizes them.
    """
    base = space[int(found.source[at])]
    asked = question.scenario if base is None else base
    chosen = asked.with_(
        **{name: int(getattr(found, name)[at]) for name in ("tp", "pp", "dp", "ep", "cp", "dcp")},
        at_batch=int(found.batch[at]),
        **{name: getattr(question.scenario, name) for name in PROMISES},
    )
    if question.objective == "goodput_tok_s" and found.pool[at] < 0 and chosen.fix_replicas is None:
        return chosen.with_(fix_replicas=int(found.serving[at]))
    return chosen if found.pool[at] < 0 else _with_pool(question, chosen, found, at)


def _with_pool(question: Question, chosen: Scenario, found: Found, at: int) -> Scenario:
    """The scenario with its prefill pool named, and the size of both pools where no rate asks for it."""
    gpu, tp = named_pool(question, int(found.pool[at]))
    chosen = chosen.with_(prefill_gpu=gpu, prefill_tp=tp)
    if chosen.qps > 0:
        return chosen
    return chosen.with_(decode_workers=int(found.serving[at]), prefill_workers=int(found.workers[at]))


def choices(question: Question, space: Sequence[Scenario | None], found: Found, top: int) -> tuple[Choice, ...]:
    """The best of every kind, then further layouts until there are `top`; best first."""
    ranked = best_of_layouts(found.at(worth_keeping(found, top)))
    shown = _shown(kinds(ranked), top)
    return tuple(_choice(question, space, ranked, int(at)) for at in shown)


def _shown(kind: npt.NDArray[np.int64], top: int) -> npt.NDArray[np.int64]:
    """Rows of a ranked table that are shown: the first of every kind, then the next ones, in the order of the table."""
    _, first = np.unique(kind, return_index=True)
    first = np.sort(first)[:top]
    others = np.setdiff1d(np.arange(len(kind)), first)[: top - len(first)]
    return np.sort(np.concatenate([first, others]))


def _choice(question: Question, space: Sequence[Scenario | None], found: Found, at: int) -> Choice:
    """One row as a choice; its numbers are those of the plan, worked out alone."""
    scenario = scenario_of(question, space, found, at)
    return Choice(scenario, kind_words(scenario), question.shown(float(found.value[at])), outcome(scenario))


def front(question: Question, space: Sequence[Scenario | None], found: Found) -> tuple[FrontPoint, ...]:
    """Plans that nothing beats in speed for a user and in tokens a GPU, or in tokens a dollar; slow ones first."""
    steps = front_rows(found)
    steps = steps.at(order(steps))
    speed = 1.0 / steps.tpot
    by_gpu, by_dollar = undominated(speed, steps.by_gpu), undominated(speed, steps.by_dollar)
    on = np.flatnonzero(by_gpu | by_dollar)
    on = on[np.argsort(speed[on], kind="stable")]
    return tuple(_point(question, space, steps, int(at), bool(by_gpu[at]), bool(by_dollar[at])) for at in on)


def _point(
    question: Question, space: Sequence[Scenario | None], found: Found, at: int, by_gpu: bool, by_cost: bool
) -> FrontPoint:
    """One row as a point of the front."""
    scenario = scenario_of(question, space, found, at)
    dollars = float(found.by_dollar[at])
    return FrontPoint(
        scenario=scenario,
        kind=kind_words(scenario),
        tok_s_user=1.0 / float(found.tpot[at]),
        tok_s_gpu=float(found.by_gpu[at]),
        usd_per_m_output=1.0 / dollars if dollars > 0.0 else None,
        batch=float(found.batch[at]),
        gpus=float(found.gpus[at]),
        keeps=bool(found.keeps[at]),
        by_gpu=by_gpu,
        by_cost=by_cost,
    )
