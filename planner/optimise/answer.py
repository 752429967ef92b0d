"""What a search answers: the best of each kind, the front between speed and cost, and what was refused and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import HeadroomError
from planner.optimise.question import Question
from planner.optimise.words import family_of
from planner.specs.scenario import Scenario
from planner.variants import Outcome


class Cancelled(HeadroomError):  # noqa: N818 - it is no error
    """The search was stopped by whoever asked for it."""


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Attributes:
        done, total: parts of the space searched, and parts there are.
        considered: rows evaluated so far.
        best: best value of the objective so far, in the objective's unit; None = nothing feasible yet.
    """

    done: int
    total: int
    considered: int
    best: float | None


@dataclass(frozen=True)
class Choice:
    """One candidate that stands.

    Attributes:
        scenario: the whole of it, batch, replicas and pools named; `plan_of(scenario)` says the same numbers.
        kind: what sets it apart from others, in words: `DP8+EP8 · FP8 · H200 SXM`.
        value: of the objective, in its unit; not a number where the plan does not hold at its percentile.
        outcome: its row of the table of plans.
    """

    scenario: Scenario
    kind: str
    value: float
    outcome: Outcome


@dataclass(frozen=True)
class FrontPoint:
    """One plan on the front, whatever TPOT is promised (TTFT keeps its promise).

    Attributes:
        scenario, kind: as of a choice.
        tok_s_user: 1 / TPOT [tok/s]; tok_s_gpu: output tokens a second of one device, prefill pool counted.
        usd_per_m_output: None where a price is not known.
        batch, gpus: operating point of a replica, devices of the deployment.
        keeps: whether TPOT keeps the promise.
        by_gpu, by_cost: whether nothing is both faster for a user and better by GPU (by dollar).
    """

    scenario: Scenario
    kind: str
    tok_s_user: float
    tok_s_gpu: float
    usd_per_m_output: float | None
    batch: float
    gpus: float
    keeps: bool
    by_gpu: bool
    by_cost: bool


@dataclass(frozen=True)
class Refusals:
    """Candidates refused for one reason: `rule` is its name, `reason` the sentence."""

    rule: str
    reason: str
    count: int


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        question: what was asked.
        best: the best of each kind, best first; empty when nothing is feasible. At a percentile other than P50 every number of
            them is that of the plan at the percentile.
        front: faster for a user to the right; made of all kinds, on means whatever the percentile.
        candidates: layouts (pairs of pools included) that the space holds, over all categories.
        considered: rows (layout × batch) that were evaluated with full laws.
        refused: why candidates fell, most first.
        seconds: how long the search took.
        beyond: what stands on means and not at the percentile, within GPUs and limits; nearest first. Empty at P50.
    """

    question: Question
    best: tuple[Choice, ...]
    front: tuple[FrontPoint, ...]
    candidates: int
    considered: int
    refused: tuple[Refusals, ...]
    seconds: float
    beyond: tuple[Choice, ...] = ()

    @property
    def winner(self) -> Choice | None:
        """The best of all; None when nothing is feasible."""
        return self.best[0] if self.best else None

    @property
    def nearest(self) -> Choice | None:
        """What comes nearest where nothing holds at the percentile; None where something does, or nothing stands on means."""
        return self.beyond[0] if self.beyond and not self.best else None

    @property
    def second(self) -> Choice | None:
        """The best that differs in kind from the winner, not only in size; None when there is none among the best."""
        if not self.best:
            return None
        first = family_of(self.best[0].scenario)
        return next((each for each in self.best if family_of(each.scenario) != first), None)


def first_places(best: Sequence[Choice], top: int) -> list[int]:
    """Places of the choices that come first: the best of every kind, then further layouts; in order."""
    families = [family_of(each.scenario) for each in best]
    heads = [at for at, family in enumerate(families) if families.index(family) == at][:top]
    others = [at for at in range(len(best)) if at not in heads]
    return sorted([*heads, *others[: top - len(heads)]])
