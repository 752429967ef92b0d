"""What each constraint costs, and the smallest relaxation of one that makes an infeasible question feasible.

Both are answers to the same search under a changed constraint: nothing is extrapolated. At a percentile other than P50 both sides
of a price are searched on means, as at P50; so is a relaxation, unless something stands on means: then queues are in the way,
and more GPUs are what is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from planner.optimise.answer import Answer, Choice
from planner.optimise.question import LARGEST, MOST_GPUS, OBJECTIVES, Limit, Question
from planner.optimise.search import OnProgress, optimise
from planner.optimise.space import PROMISES
from planner.optimise.tails import allowed
from planner.promised import MEDIAN
from planner.specs.scenario import Scenario, describe

TIGHTER: Final = 0.6
LOOSER: Final = 2.0
"""By how much a constraint is moved to see what it costs: TPOT 50 ms to 30 ms, 16 GPUs to 32."""

NOTHING: Final = 5e-4
"""Change of the objective, as a share, that is none to three digits."""

DIGITS: Final = 3
"""Significant digits of a relaxed constraint, rounded to the side on which it holds."""


@dataclass(frozen=True)
class ConstraintPrice:
    """What the best comes to when one constraint is moved and everything is chosen anew.

    Attributes:
        field: `sla_tpot_ms`, `sla_ttft_ms`, `max_gpus`, or the field of a limit.
        now, then: the constraint as asked and as moved, in the field's unit.
        value_now, value_then: of the objective; None = nothing is feasible.
        scenario: of the new best; None = nothing is feasible.
        before: of the best as asked, by the same search: on means. None = that of the answer.
    """

    field: str
    now: float
    then: float
    value_now: float
    value_then: float | None
    scenario: Scenario | None
    before: Scenario | None = None

    @property
    def change(self) -> float | None:
        """By which share of itself the objective changes: 0.38 = 38 % more."""
        return None if self.value_then is None or self.value_now == 0 else self.value_then / self.value_now - 1.0


@dataclass(frozen=True)
class Relaxation:
    """A constraint moved as little as makes something feasible; `choice` is what then stands."""

    field: str
    now: float
    needed: float
    choice: Choice


def moved(question: Question, field: str, value: float) -> Question:
    """The question with one constraint at another value.

    Raises:
        InputError: for a field that is no constraint of the question, or a value that the field does not allow.
    """
    if field == "max_gpus":
        return _changed(question, max_gpus=int(value))
    if field in PROMISES:
        return _changed(question, scenario=question.scenario.with_(**{field: value}))
    limits = tuple(Limit(each.field, each.at_most, value) if each.field == field else each for each in question.limits)
    return _changed(question, limits=limits)


def _changed(question: Question, **changes: object) -> Question:
    """The question with some fields changed, validated again."""
    values = {name: getattr(question, name) for name in Question.model_fields}
    return Question.model_validate({**values, **changes})


def constraints(question: Question) -> dict[str, float]:
    """Every constraint of a question with its value."""
    asked = question.scenario
    promises = {field: float(getattr(asked, field)) for field in PROMISES if asked.osl > 1 or field != "sla_tpot_ms"}
    return {**promises, "max_gpus": float(question.max_gpus), **{each.field: each.value for each in question.limits}}


def prices(
    answer: Answer, cancelled: Callable[[], bool] | None = None, executor: Executor | None = None
) -> tuple[ConstraintPrice, ...]:
    """What every constraint costs when it is made tighter, and what it would save to loosen it; those that change nothing
    are left out. Each is a search of its own.

    Raises:
        Cancelled: when `cancelled` said so.
    """
    base = _as_asked(answer, cancelled, executor)
    if base is None:
        return ()
    question, value = on_means(answer.question), base.value
    found = [
        _priced(question, base, field, then, cancelled, executor)
        for field, now in constraints(question).items()
        for then in _steps(question, field, now)
    ]
    return tuple(
        each for each in found if each.value_then is None or abs(each.value_then - value) > NOTHING * abs(value)
    )


def price_of(
    answer: Answer,
    field: str,
    then: float,
    cancelled: Callable[[], bool] | None = None,
    executor: Executor | None = None,
) -> ConstraintPrice:
    """What the best comes to on means with one constraint at another value.

    Raises:
        InputError: when the answer has no winner to compare with, or the field does not allow the value.
    """
    return _priced(on_means(answer.question), _as_asked(answer, cancelled, executor), field, then, cancelled, executor)


def on_means(question: Question) -> Question:
    """The question as a search ranks it: on means, which is what P50 says."""
    if question.scenario.sla_pct == MEDIAN:
        return question
    return _changed(question, scenario=question.scenario.with_(sla_pct=MEDIAN))


def _as_asked(answer: Answer, cancelled: Callable[[], bool] | None, executor: Executor | None) -> Choice | None:
    """The best of the question as asked, on means; None where there is no answer."""
    question = on_means(answer.question)
    if answer.winner is None or question == answer.question:
        return answer.winner
    return optimise(question, None, cancelled, 1, executor).winner


def _priced(
    question: Question,
    base: Choice | None,
    field: str,
    then: float,
    cancelled: Callable[[], bool] | None,
    executor: Executor | None,
) -> ConstraintPrice:
    """One constraint moved, beside the best as asked; both on means."""
    now = constraints(question)[field]
    new = optimise(moved(question, field, then), None, cancelled, 1, executor).winner
    value, before = (float("nan"), None) if base is None else (base.value, base.scenario)
    value_then, scenario = (None, None) if new is None else (new.value, new.scenario)
    return ConstraintPrice(field, now, then, value, value_then, scenario, before)


def _steps(question: Question, field: str, now: float) -> Iterator[float]:
    """The tighter and the looser value at which a constraint is priced, as far as its field allows them."""
    if field == "max_gpus":
        yield from (float(each) for each in (now // 2, now * 2) if 1 <= each <= MOST_GPUS)
        return
    limit = next((each for each in question.limits if each.field == field), None)
    lower = limit is not None and not limit.at_most
    for factor in (TIGHTER, LOOSER):
        value = _tidy(now / factor if lower else now * factor)
        if field not in PROMISES or _allowed(field, value):
            yield value


def _allowed(field: str, value: float) -> bool:
    """Whether a scenario field admits a value."""
    text = describe(field)
    return (text.low or 0.0) <= value <= (text.high or float("inf"))


def _tidy(value: float) -> float:
    """A value to three significant digits."""
    return float(f"{value:.3g}")


def relaxations(
    question: Question,
    cancelled: Callable[[], bool] | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress | None = None,
    beyond: tuple[Choice, ...] = (),
) -> tuple[Relaxation, ...]:
    """The smallest relaxation of each single constraint that makes something feasible; none where one alone does not.

    Args:
        question: to which nothing stands.
        cancelled, executor, on_progress: as of a search.
        beyond: of the answer: what stands on means and not at the percentile.

    Raises:
        Cancelled: when `cancelled` said so.
    """
    if beyond:
        return _more_gpus(question, beyond, cancelled, executor)
    asked = on_means(question)
    found = (_relaxed(asked, field, now, cancelled, executor, on_progress) for field, now in constraints(asked).items())
    return tuple(each for each in found if each is not None)


def _more_gpus(
    question: Question,
    beyond: tuple[Choice, ...],
    cancelled: Callable[[], bool] | None,
    executor: Executor | None,
) -> tuple[Relaxation, ...]:
    """The GPUs on which something holds at the percentile that stands on means; nothing where limits or queues forbid it."""
    needs = sorted(each.outcome.gpus for each in beyond if each.outcome.stands and each.outcome.gpus is not None)
    possible = (each for each in needs if question.max_gpus < each <= MOST_GPUS)
    needed = next((each for each in possible if _some_allowed(moved(question, "max_gpus", each), beyond)), None)
    found = None
    while needed is not None:
        again = optimise(moved(question, "max_gpus", needed), None, cancelled, executor=executor)
        if again.winner is not None:
            found = Relaxation("max_gpus", float(question.max_gpus), needed, again.winner)
        fewest = min((each.outcome.gpus or needed for each in again.best), default=needed)
        needed = fewest if question.max_gpus < fewest < needed else None
    return () if found is None else (found,)


def _some_allowed(question: Question, choices: tuple[Choice, ...]) -> bool:
    """Whether some of these plans hold within a question."""
    return any(each.outcome.stands and allowed(question, each) for each in choices)


def _relaxed(
    question: Question,
    field: str,
    now: float,
    cancelled: Callable[[], bool] | None,
    executor: Executor | None,
    on_progress: OnProgress | None,
) -> Relaxation | None:
    """One constraint lifted and its own field made as small (or large) as can be; then the question again with that."""
    for lifted in _lifted(question, field):
        best = optimise(lifted, on_progress, cancelled, 1, executor).winner
        if best is None:
            continue
        needed = best.value if field == "max_gpus" else _rounded(best.value, _upward(question, field))
        again = optimise(moved(question, field, needed), None, cancelled, 1, executor).winner
        return None if again is None else Relaxation(field, now, needed, again)
    return None


def _rounded(value: float, upward: bool) -> float:
    """A value to three significant digits, to the side on which it still holds."""
    scale = 10.0 ** (DIGITS - 1 - floor(log10(abs(value)))) if value else 1.0
    return (ceil if upward else floor)(value * scale * (1 - 1e-12 if upward else 1 + 1e-12)) / scale


def _lifted(question: Question, field: str) -> Iterator[Question]:
    """The question without a constraint, aimed at that constraint's own field."""
    if field == "max_gpus":
        budget = question.max_gpus
        while budget < ENOUGH_GPUS:
            budget = min(budget * 4, ENOUGH_GPUS)
            yield _changed(question, max_gpus=budget, objective="gpus")
    elif field in PROMISES:
        scenario = question.scenario.with_(**{field: describe(field).high})
        yield _changed(question, scenario=scenario, objective=PROMISES[field])
    else:
        limits = tuple(each for each in question.limits if each.field != field)
        yield from (_aimed(question, limits, each) for each in question.limits if each.field == field)


ENOUGH_GPUS: Final = 1024
"""Most GPUs among which the fewest that would do are looked for."""


def _aimed(question: Question, limits: tuple[Limit, ...], lifted: Limit) -> Question:
    """The question with fewer limits, whose objective is the field of the one lifted: bounds are known of objectives."""
    bounded = lifted.at_most and lifted.field in OBJECTIVES and lifted.field not in LARGEST
    if bounded and (lifted.field != "usd_per_hour" or question.scenario.qps > 0):
        return _changed(question, limits=limits, objective=lifted.field)
    return _changed(question, limits=limits, aim=lifted)


def _upward(question: Question, field: str) -> bool:
    """Whether a constraint bounds its field from above."""
    return all(each.at_most for each in question.limits if each.field == field)
