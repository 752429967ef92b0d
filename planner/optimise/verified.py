"""Whether the best of a search holds when its traffic is simulated, and the cheapest that does.

A search ranks by means at P50, by queue theory at other percentiles. Here the best kinds are put on trial at the request rate
and the promised percentile; where the winner fails, the others are tried, and the first ones with more replicas. What queue
theory sizes beyond the question's GPUs or limits is tried with as many replicas as these allow, and never taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from planner.errors import Fault, InputError
from planner.optimise.answer import Answer, Cancelled, Choice, Progress, first_places
from planner.optimise.enlarged import Key, fewer, key_of, most, with_more, within
from planner.optimise.question import Question
from planner.optimise.search import OnProgress
from planner.optimise.sharing import shared_out
from planner.optimise.tails import allowed, is_on_means
from planner.optimise.trial import Candidate, Trial, enough, rate_of, tried
from planner.simulate.traffic import Traffic
from planner.specs.fields import shown
from planner.specs.scenario import Scenario

TOP: Final = 3
"""Kinds that are tried, whatever the winner does."""

AT_A_TIME: Final = 2
"""Further choices that are tried together: as many with one process as with two, so that both find the same."""


@dataclass(frozen=True)
class Verified:
    """What simulations said of an answer.

    Attributes:
        question: whose answer was tried.
        trials: every plan that was tried: the choices in the answer's order, what is beyond the question after the best, each
            followed by itself with more replicas.
        chosen: the best of them that holds; None where none does.
        oversized: what comes nearest, where nothing is within the question's GPUs and limits by queue theory; else None.
        by_theory: whether the answer has a winner; otherwise what comes nearest by queue theory is in its place.
    """

    question: Question
    trials: tuple[Trial, ...]
    chosen: Scenario | None
    oversized: Choice | None = None
    by_theory: bool = True

    @property
    def winner(self) -> Trial | None:
        """The trial of the answer's winner; None where the answer had none, or one that is oversized."""
        return next((each for each in self.trials if (each.rank, each.more) == (1, 0)), None)

    @property
    def taken(self) -> Trial | None:
        """The trial of what is chosen."""
        return next((each for each in self.trials if each.scenario == self.chosen), None)

    @property
    def nearest(self) -> Trial | None:
        """The trial whose times come nearest to what is promised."""
        return min(self.trials, key=lambda each: each.over, default=None)

    @property
    def dearer(self) -> float | None:
        """How much more a token costs with what is chosen than with the winner, as a share; None where it is not known."""
        return None if self.winner is None or self.taken is None else beyond(self.taken, self.winner)


def beyond(trial: Trial, winner: Trial) -> float | None:
    """How much more a token of a trial's traffic costs than one of the winner's, as a share: bills, not simulated."""
    return trial.billed / winner.billed - 1 if trial.billed is not None and winner.billed else None


def verify(
    answer: Answer,
    traffic: Traffic | None = None,
    top: int = TOP,
    on_progress: OnProgress | None = None,
    cancelled: Callable[[], bool] | None = None,
    executor: Executor | None = None,
) -> Verified:
    """Simulate the best of an answer, and find the cheapest that keeps TTFT and TPOT at the promised percentile.

    Args:
        answer: of a search.
        traffic: how requests arrive; None = Poisson, at the question's rate or at `load` of what each plan carries. Its
            `requests` are the fewest that are simulated.
        top: kinds that are tried in any case; where the winner fails the rest of the list follows until one holds.
        on_progress: told after every simulation: how many are done and known to come, and requests simulated.
        cancelled: asked during simulations.
        executor: of another process, which then takes part; the result is the same.

    Raises:
        InputError: for a `top` below 1, or traffic that cannot be made.
        Cancelled: when `cancelled` said so.
    """
    if top < 1:
        raise InputError((Fault("top", shown(top), "must be a whole number of 1 or more"),))
    court = Court(answer, Traffic() if traffic is None else traffic, on_progress, cancelled, executor)
    court.sit(top)
    best = court.best()
    oversized = next((each for each in court.ranked[:1] if not court.allows(each)), None)
    chosen = None if best is None else best.scenario
    return Verified(answer.question, tuple(court.heard()), chosen, oversized, answer.nearest is None)


def requests_to_try(answer: Answer, top: int = TOP) -> int:
    """Requests that the first simulations of a verification take, before any is made."""
    ranked = answer.best or answer.beyond
    first = (ranked[at].scenario for at in first_places(ranked, top))
    return sum(sum(enough(scenario, Traffic())) for scenario in first)


@dataclass
class Court:
    """A verification under way."""

    answer: Answer
    traffic: Traffic
    on_progress: OnProgress | None
    cancelled: Callable[[], bool] | None
    executor: Executor | None
    trials: list[Trial] = field(default_factory=list)

    @property
    def ranked(self) -> tuple[Choice, ...]:
        """The best, then what is beyond the question by queue theory: a simulation may say otherwise."""
        return (*self.answer.best, *self.answer.beyond)

    def sit(self, top: int) -> None:
        """Try what has to be tried: some kinds; where the winner fails all that is better than what holds, then more replicas."""
        ranked = self.ranked
        first = [at for at in first_places(self.answer.best or ranked, top) if self.allows(ranked[at])]
        self.hear([self._as_ranked(at) for at in first])
        if not any(each.holds for each in self.trials if each.rank == 1):
            self._go_on([each for at in range(len(ranked)) if at not in first and (each := self._choice(at))])
            for trial in [each for each in self.heard() if each.more < 0 and each.holds]:
                self._fewest(trial, trial.scenario.spare - trial.replicas, 0)
            for trial in self._worth_enlarging(top):
                self._enlarge(trial)
        self._told(0)

    def allows(self, choice: Choice) -> bool:
        """Whether a choice is within the question as it is sized at its percentile; at P50 the search saw to it."""
        return is_on_means(self.answer.question) or allowed(self.answer.question, choice)

    def heard(self) -> list[Trial]:
        """What was tried so far, the choices in the answer's order, each followed by itself with more replicas."""
        return sorted(self.trials, key=lambda each: (each.rank, each.more))

    def _go_on(self, rest: list[Candidate]) -> None:
        """Further choices down the list, those that are better than what holds."""
        while rest := [each for each in rest if self.better(each.scenario)]:
            now, rest = rest[:AT_A_TIME], rest[AT_A_TIME:]
            self.hear(now)

    def _worth_enlarging(self, top: int) -> list[Trial]:
        """Of the choices that fail the winner, and those that came nearest; what is at its most already is not among them."""
        failed = [each for each in self.heard() if each.more == 0 and not each.holds]
        return sorted(failed, key=lambda each: (each.rank > 1, each.over))[:top]

    def _choice(self, at: int) -> Candidate | None:
        """One of the answer's choices, with fewer replicas where the question does not allow as many; None where it cannot."""
        choice = self.ranked[at]
        return self._as_ranked(at) if self.allows(choice) else fewer(self.answer.question, choice, at + 1)

    def _as_ranked(self, at: int) -> Candidate:
        """One of the answer's choices as it is."""
        choice = self.ranked[at]
        return Candidate(choice.scenario, choice.kind, at + 1)

    def hear(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """Try some plans, shared with the other process."""
        if not candidates:
            return []
        alone = self.executor is None or len(candidates) < AT_A_TIME
        work = partial(tried, cancelled=self.cancelled) if alone else tried
        found: dict[int, Trial] = {}
        self._told(len(candidates) + 1)
        for at, trial in shared_out(
            work, [(each, self.traffic) for each in candidates], None if alone else self.executor
        ):
            if self.cancelled is not None and self.cancelled():
                raise Cancelled("the verification was stopped")
            if trial is not None:
                found[at] = trial
                self.trials.append(trial)
                self._told(len(candidates) - len(found) + 1)
        return [found[at] for at in sorted(found)]

    def _told(self, coming: int) -> None:
        """Say how far it is, and how many are known to come; what may follow them counts as one more until the end."""
        if self.on_progress is not None:
            done, simulated = len(self.trials), sum(each.requests for each in self.trials)
            self.on_progress(Progress(done, done + coming, simulated, None))

    def best(self) -> Trial | None:
        """The best that holds, so far: the winner where it does."""
        standing = [each for each in self.trials if each.holds]
        if winner := [each for each in standing if (each.rank, each.more) == (1, 0)]:
            return winner[0]
        return min(standing, key=lambda each: (*self._key(each.scenario), each.rank), default=None)

    def _enlarge(self, trial: Trial) -> None:
        """Find the fewest more replicas with which a choice holds, where that is better than what holds already."""
        room = self._room(trial)
        if room and self.hear([self._more(trial, room)])[0].holds:
            self._fewest(trial, 0, room)

    def _fewest(self, trial: Trial, low: int, high: int) -> None:
        """Try numbers of replicas beside a trial's own, between one that does not hold and one that does."""
        step = 1
        while high - low > 1:
            at = min(low + step, high - 1) if step else (low + high) // 2
            candidate = self._more(trial, at)
            if within(self.answer.question, candidate.scenario) and self.hear([candidate])[0].holds:
                high, step = at, 0
            else:
                low, step = at, 2 * step

    def _more(self, trial: Trial, more: int) -> Candidate:
        """A choice with more replicas, at the same rate."""
        scenario = with_more(trial, more, self.answer.question.scenario.spare)
        return Candidate(trial.scenario if scenario is None else scenario, trial.kind, trial.rank, trial.more + more)

    def _room(self, trial: Trial) -> int:
        """Most replicas that a choice may get beside its own; 0 where the question fixes them."""
        asked = self.answer.question.scenario
        if asked.fix_replicas is not None or asked.decode_workers is not None or self.traffic.arrival == "closed":
            return 0
        return most(lambda more: self._allowed(trial, more), self.answer.question.max_gpus)

    def _allowed(self, trial: Trial, more: int) -> bool:
        """Whether a choice with so many more replicas is within the budget and limits, and better than what holds."""
        scenario = with_more(trial, more, self.answer.question.scenario.spare)
        return scenario is not None and within(self.answer.question, scenario) and self.better(scenario)

    def better(self, scenario: Scenario) -> bool:
        """Whether a plan would be better than the best that holds, if it held; yes where nothing does."""
        best = self.best()
        return best is None or self._key(scenario) < self._key(best.scenario)

    def _key(self, scenario: Scenario) -> Key:
        """By what a plan is ordered, at the rate that it is offered."""
        return key_of(self.answer.question, scenario, rate_of(scenario, self.traffic))
