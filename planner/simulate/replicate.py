"""Replications: the same traffic with other seeds, on any `concurrent.futures.Executor`, and what the figures are within.

One run is one draw of its traffic; a percentile of it is a number with a spread. Independent runs show how wide: a figure's
95 % interval is its mean ± t · s / √n, by Student's t with n − 1 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from planner.errors import Fault, HeadroomError, InputError
from planner.optimise.answer import Cancelled, Progress
from planner.simulate.figures import FIGURES, Digest, digest, figures
from planner.simulate.requests import Requests
from planner.simulate.run import simulate
from planner.simulate.traffic import Traffic
from planner.specs.fields import shown
from planner.specs.scenario import Scenario

MOST_RUNS: Final = 10_000
"""Most runs that are asked for at once."""

SURE: Final = 0.95
"""Share of such intervals that hold the true mean."""

_SEEDS: Final = 2**32
"""Seeds there are; the one after the last is 0."""

OnProgress: TypeAlias = Callable[[Progress], None] | None
Cancel: TypeAlias = Callable[[], bool] | None


@dataclass(frozen=True)
class Estimate:
    """One figure over runs, in its own unit.

    Attributes:
        mean: over the runs that have it; None where none has.
        deviation: standard deviation over runs; None for fewer than two.
        low, high: ends of the 95 % interval of the mean; None for fewer than two.
        runs: runs that have the figure.
    """

    mean: float | None
    deviation: float | None
    low: float | None
    high: float | None
    runs: int

    @property
    def half(self) -> float | None:
        """Half the width of the interval: what stands behind ±."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2.0


@dataclass(frozen=True)
class Replicated:
    """Independent runs of the same traffic.

    Attributes:
        runs: what each came to, in the order of seeds.
        estimates: every figure over the runs, by name.
        share_meets: share of runs that meet the SLA.
        lost: seeds of runs that an executor lost twice; they are in nothing else.
    """

    runs: tuple[Digest, ...]
    estimates: dict[str, Estimate]
    share_meets: float
    lost: tuple[int, ...] = ()


class RunsLostError(HeadroomError):
    """An executor lost so many runs that too few are left."""


def replicate(
    scenario: Scenario,
    traffic: Traffic | None = None,
    requests: Requests | None = None,
    runs: int = 10,
    executor: Executor | None = None,
    on_progress: OnProgress = None,
    cancelled: Cancel = None,
) -> Replicated:
    """Simulate the same traffic with several seeds: the traffic's own, and those after it.

    Args:
        scenario, traffic, requests: as `simulate` takes them. Of a trace only the choices inside the run are random.
        runs: how many, 2 or more.
        executor: threads, processes, a cluster: any executor; None = one after the other, here. It is not shut down.
        on_progress: called with runs done and in all; `considered` counts requests simulated.
        cancelled: asked now and then; runs that have not begun are then withdrawn.

    Returns:
        The same whatever the executor.

    Raises:
        InputError: for fewer than two runs, or where a run is refused.
        Cancelled: when `cancelled` says so.
        RunsLostError: when an executor loses so many runs that fewer than two are left.
    """
    if isinstance(runs, bool) or not 2 <= runs <= MOST_RUNS:
        raise InputError((Fault("runs", shown(runs), f"must be a whole number from 2 to {MOST_RUNS:,}"),))
    asked = Traffic() if traffic is None else traffic
    traffics = [Traffic.model_validate({**asked.__dict__, "seed": (asked.seed + at) % _SEEDS}) for at in range(runs)]
    if executor is None:
        done, why = _here(scenario, traffics, requests, on_progress, cancelled), None
    else:
        done, why = _there(scenario, traffics, requests, executor, on_progress, cancelled)
    found = tuple(done[at] for at in sorted(done))
    if len(found) < 2:
        raise RunsLostError(
            f"runs = {runs}: {runs - len(found)} were lost by the workers ({type(why).__name__}: {why})"
        )
    lost = tuple(each.seed for at, each in enumerate(traffics) if at not in done)
    return Replicated(found, estimates(found), float(np.mean([each.summary.meets_sla for each in found])), lost)


def worked(scenario: Scenario, traffic: Traffic, requests: Requests | None) -> Digest:
    """One run without its requests: what a worker does."""
    return digest(simulate(scenario, traffic, requests))


def _here(
    scenario: Scenario, traffics: Sequence[Traffic], requests: Requests | None, told: OnProgress, cancelled: Cancel
) -> dict[int, Digest]:
    """All runs, one after the other."""
    done: dict[int, Digest] = {}
    for at, traffic in enumerate(traffics):
        _check(cancelled, ())
        inner = None if told is None else partial(_inside, told, at, len(traffics))
        done[at] = digest(simulate(scenario, traffic, requests, inner, cancelled))
        _tell(told, done, len(traffics))
    return done


def _inside(told: Callable[[Progress], None], done: int, total: int, inner: Progress) -> None:
    """Progress within a run: requests of the runs before it are counted."""
    told(Progress(done, total, done * inner.total + inner.done, None))


def _tell(told: OnProgress, done: dict[int, Digest], total: int) -> None:
    """Progress by whole runs."""
    if told is not None:
        told(Progress(len(done), total, sum(each.summary.requests for each in done.values()), None))


def _there(
    scenario: Scenario,
    traffics: Sequence[Traffic],
    requests: Requests | None,
    executor: Executor,
    told: OnProgress,
    cancelled: Cancel,
) -> tuple[dict[int, Digest], BaseException | None]:
    """Runs on an executor, and why the last lost one was lost; a lost run is sent once more."""
    done: dict[int, Digest] = {}
    left, why = dict(enumerate(traffics)), None
    for _ in range(2):
        sent = {_send(executor, scenario, traffic, requests): at for at, traffic in left.items()}
        for at, found in _results(sent, cancelled):
            if isinstance(found, Digest):
                done[at] = found
                _tell(told, done, len(traffics))
            else:
                why = found
        left = {at: traffic for at, traffic in left.items() if at not in done}
    return done, why


def _send(executor: Executor, scenario: Scenario, traffic: Traffic, requests: Requests | None) -> Future[Digest]:
    """A run on its way; one that an executor no longer takes is lost from the start."""
    try:
        return executor.submit(worked, scenario, traffic, requests)
    except BrokenExecutor as error:
        future: Future[Digest] = Future()
        future.set_exception(error)
        return future


def _results(sent: dict[Future[Digest], int], cancelled: Cancel) -> Iterator[tuple[int, Digest | BaseException]]:
    """Runs as they come back, each with its place: what it came to, or why it was lost. A refusal is everybody's."""
    for future in as_completed(sent):
        _check(cancelled, sent)
        try:
            error = future.exception()
        except CancelledError as withdrawn:
            error = withdrawn
        if isinstance(error, HeadroomError):
            _withdraw(sent)
            raise error
        yield sent[future], future.result() if error is None else error


def _check(cancelled: Cancel, sent: Iterable[Future[Any]]) -> None:
    """Stop where somebody asks for it."""
    if cancelled is not None and cancelled():
        _withdraw(sent)
        raise Cancelled("the simulation was stopped")


def _withdraw(sent: Iterable[Future[Any]]) -> None:
    """Withdraw what has not begun."""
    for future in sent:
        future.cancel()


# --- what comes out ------------------------------------------------------------------------------------------------


def estimates(runs: Sequence[Digest]) -> dict[str, Estimate]:
    """Every figure over runs, by name."""
    rows = [figures(each.summary) for each in runs]
    return {name: estimate([float(value) for row in rows if (value := row[name]) is not None]) for name in FIGURES}


def estimate(values: Sequence[float]) -> Estimate:
    """Mean, standard deviation and 95 % interval of the mean of independent values, by Student's t."""
    from scipy.special import stdtrit

    count = len(values)
    if not count:
        return Estimate(None, None, None, None, 0)
    mean = float(np.mean(values))
    if count < 2:
        return Estimate(mean, None, None, None, count)
    deviation = float(np.std(values, ddof=1))
    half = float(stdtrit(count - 1, (1.0 + SURE) / 2.0)) * deviation / count**0.5
    return Estimate(mean, deviation, mean - half, mean + half, count)
