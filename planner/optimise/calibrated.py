"""Which candidates of a search a calibration holds for: others are ranked beside them by predictions alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from planner.catalog.accelerators import accelerator
from planner.optimise.question import Question
from planner.optimise.words import PRECISIONS
from planner.setting import correction_of, subject_of
from planner.specs.correction import CALIBRATED, Subject
from planner.specs.scenario import Scenario

LISTED: Final = 4
"""Most kinds that are named."""


def calibration_words(question: Question) -> str:
    """Which accelerators (and weights, where several are tried) are calibrated; empty where all are, or nothing is.

    Raises:
        InputError: when the question's scenario carries a token without a calibration.
    """
    if question.scenario.profile != CALIBRATED:
        return ""
    own, plain = _split(question)
    if not plain:
        return ""
    if not own:
        return "The calibration holds for nothing that is tried: every plan has the uncalibrated constants."
    made = correction_of(question.scenario, own[0][0])
    by = "" if made is None else f" by {made.count}"
    verbs = ["is" if len(each) == 1 else "are" for each in (own, plain)]
    return (
        f"{_named([name for _, name in own])} {verbs[0]} calibrated{by}, {_named([name for _, name in plain])} {verbs[1]} "
        "not: their order holds a measurement against a prediction."
    )


def calibration_mark(question: Question, scenario: Scenario) -> str:
    """What is added to the name of a choice where calibrated and other ones are ranked together; else nothing."""
    if question.scenario.profile != CALIBRATED or not all(_split(question)):
        return ""
    return " (not calibrated)" if correction_of(scenario) is None else " (calibrated)"


def _split(question: Question) -> tuple[list[tuple[Subject, str]], list[tuple[Subject, str]]]:
    """What is tried, with its name: what the calibration holds for, and what it does not."""
    kinds = _kinds(question)
    used = [correction_of(question.scenario, subject) is not None for subject, _ in kinds]
    own, plain = ([kind for kind, is_ in zip(kinds, used, strict=True) if is_ is wanted] for wanted in (True, False))
    return own, plain


def _kinds(question: Question) -> list[tuple[Subject, str]]:
    """Every accelerator and weight precision that is tried, prefill's accelerators too, with its name."""
    asked = question.scenario
    apart = "disaggregated" in (question.modes or (asked.prefill,))
    pools = question.prefill_accelerators or ((asked.prefill_gpu,) if asked.prefill_gpu else ())
    gpus = dict.fromkeys((*(question.accelerators or (asked.gpu,)), *(pools if apart else ())))
    weights = question.precisions or (asked.weights,)
    return [
        (
            replace(subject_of(asked), gpu=gpu, weights=each),
            accelerator(gpu).name + (f" with {PRECISIONS[each]} weights" if len(weights) > 1 else ""),
        )
        for gpu, each in product(gpus, weights)
    ]


def _named(names: Sequence[str]) -> str:
    """Names in a list of words, the first few of many."""
    shown = [*names] if len(names) <= LISTED else [*names[: LISTED - 1], f"{len(names) - LISTED + 1} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
