"""What simulations said of an answer, in words."""

from __future__ import annotations

import math
from typing import Final

from planner.optimise.answer import Choice
from planner.optimise.trial import Trial
from planner.optimise.verified import Verified, beyond
from planner.units import show, significant

SAME: Final = 0.0005
"""Difference of two bills that is none, as a share."""

VERDICTS: Final = {True: "holds", False: "does not hold", None: "too close to call"}


def percentile_words(pct: float) -> str:
    """A percentile as people write it: `P99`, `P99.9`."""
    return f"P{pct:g}"


def verdict(found: Verified) -> str:
    """Whether the winner holds at the percentile, and what is taken where it does not: a sentence or two."""
    winner, at = found.winner, percentile_words(found.question.scenario.sla_pct)
    the = "The winner" if found.by_theory else "What comes nearest by queue theory"
    if found.oversized is not None:
        return f"{_oversized(found, found.oversized)} {_within(found)}"
    if winner is None:
        return "Nothing keeps all constraints: there is nothing to simulate."
    if winner.holds:
        return f"{the} holds at {at} in simulation: {_kept(winner)}."
    if winner.holds is None:
        said = f"{the} is too close to call at {at} in simulation: {margin(winner)}."
    else:
        said = f"{the} fails at {at} in simulation: {broken(winner)}."
    return f"{said} {_instead(found)}"


def broken(trial: Trial) -> str:
    """What a trial does not keep at the percentile: `TTFT 812 ms against 500 ms`."""
    asked, wanted = trial.scenario, trial.scenario.sla_pct / 100
    parts = (
        ("TTFT", trial.ttft, trial.ttft_at_pct_ms, asked.sla_ttft_ms),
        ("TPOT", trial.tpot, trial.tpot_at_pct_ms, asked.sla_tpot_ms),
    )
    return ", ".join(
        f"{name} {show(value, 'ms')} against {show(limit, 'ms')}"
        for name, share, value, limit in parts
        if share.value < wanted
    )


def margin(trial: Trial) -> str:
    """Between which shares of requests keep what is kept least."""
    least = trial.least
    name = "TTFT" if least is trial.ttft else "TPOT"
    return f"{_percent(least.low)} to {_percent(least.high)} of requests keep {name}"


def plan_words(trial: Trial) -> str:
    """A plan on trial: its kind, and its replicas where they are not the choice's own."""
    return f"{trial.kind} with {show(trial.replicas, 'replicas')}" if trial.more else trial.kind


def dearer_words(trial: Trial, winner: Trial) -> str:
    """By how much the bill of a trial's traffic is above the winner's: `at +8 % cost`; in GPUs where no price is known."""
    share = beyond(trial, winner)
    if share is None:
        return f"on {show(trial.gpus, 'GPUs')} instead of {winner.gpus}"
    if abs(share) < SAME:
        return "at the same cost"
    return f"at {'+' if share > 0 else '−'}{significant(abs(share) * 100, 2)} % cost"


def good_words(trial: Trial) -> str:
    """Share of requests that kept both, in percent to a tenth, rounded down: not all is never written as all."""
    return _tenths(math.floor(trial.good * 1000 + 1e-9) / 10)


def _kept(trial: Trial) -> str:
    """Both times at the percentile, beside what is promised."""
    asked = trial.scenario
    times = [f"TTFT {show(trial.ttft_at_pct_ms, 'ms')} of {show(asked.sla_ttft_ms, 'ms')}"]
    if trial.tpot_at_pct_ms is not None:
        times.append(f"TPOT {show(trial.tpot_at_pct_ms, 'ms')} of {show(asked.sla_tpot_ms, 'ms')}")
    return ", ".join(times)


def _oversized(found: Verified, choice: Choice) -> str:
    """What queue theory asks for at the percentile that the question does not allow."""
    asked, gpus = found.question, choice.outcome.gpus
    at = percentile_words(asked.scenario.sla_pct)
    if gpus is not None and gpus > asked.max_gpus:
        return f"By queue theory what comes nearest takes {show(gpus, 'GPUs')} at {at}, more than {asked.max_gpus:,}."
    return f"By queue theory nothing keeps all limits at {at}: {', '.join(map(str, asked.limits))}."


def _within(found: Verified) -> str:
    """What holds within the question where its winner is oversized; what came nearest where nothing does."""
    taken, nearest = found.taken, found.nearest
    if taken is not None:
        return f"Within that {plan_words(taken)} holds in simulation: {_kept(taken)}."
    if nearest is None:
        return "Nothing within that could be simulated."
    much = broken(nearest) or margin(nearest)
    return f"Nothing within that holds in simulation; nearest comes {plan_words(nearest)}: {much}."


def _instead(found: Verified) -> str:
    """What is taken in the winner's place; what came nearest where nothing holds."""
    taken, winner, nearest = found.taken, found.winner, found.nearest
    if taken is not None and winner is not None:
        own = taken.rank == 1
        said = (
            f"It holds with {show(taken.replicas, 'replicas')}"
            if own
            else f"The next that holds is {plan_words(taken)}"
        )
        return f"{said}, {dearer_words(taken, winner)}."
    if nearest is None or nearest is winner:
        return "Nothing else that was tried holds; it comes nearest."
    return (
        f"Nothing else that was tried holds; nearest comes {plan_words(nearest)}: {broken(nearest) or margin(nearest)}."
    )


def _percent(share: float) -> str:
    """A share in percent, to a tenth."""
    return f"{_tenths(round(100 * share, 1))} %"


def _tenths(percent: float) -> str:
    """A percentage to a tenth; all is `100`."""
    return f"{percent:.1f}" if percent < 100 else "100"
