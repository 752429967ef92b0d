"""The categories of a space: scenarios that differ in what columns cannot hold, each to be crossed with all layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from planner.catalog.ids import unknown_id
from planner.errors import InputError
from planner.optimise.question import Question
from planner.specs.contradictions import POOL_FIELDS
from planner.specs.scenario import Scenario


@dataclass(frozen=True)
class Category:
    """One accelerator, precision and technique: a scenario whose layout and batch are left open.

    Attributes:
        scenario: everything else; None where the values contradict each other.
        fault: why they do.
    """

    scenario: Scenario | None
    fault: str = ""


def categories(question: Question) -> tuple[Category, ...]:
    """Every category of a question, in the order in which ties are broken: the order of its lists.

    Raises:
        InputError: for an accelerator that the catalogue does not hold.
    """
    asked = question.scenario
    faults = [unknown_id("gpu", name) for name in (*question.accelerators, *question.prefill_accelerators)]
    if found := tuple(fault for fault in faults if fault is not None):
        raise InputError(found)
    axes = (
        question.accelerators or (asked.gpu,),
        question.precisions or (asked.weights,),
        question.caches or (asked.kv,),
        question.chunks or (asked.chunk,),
        question.drafts or (asked.spec,),
        question.modes or (asked.prefill,),
    )
    return tuple(_category(question, *values) for values in product(*axes))


def _category(question: Question, gpu: str, weights: str, kv: str, chunk: int, spec: int, prefill: str) -> Category:
    """The scenario of one combination; a price is that of the scenario's own accelerator and no other's."""
    asked = question.scenario
    changes = {**dict(_cleared(prefill, spec, question.objective == "goodput_tok_s")), **dict(_tightened(question))}
    price = asked.price if gpu == asked.gpu else None
    try:
        return Category(
            asked.with_(
                **changes, gpu=gpu, weights=weights, kv=kv, chunk=chunk, spec=spec, prefill=prefill, price=price
            )
        )
    except InputError as error:
        return Category(None, str(error))


PROMISES: Final = {"sla_tpot_ms": "tpot_ms", "sla_ttft_ms": "ttft_ms"}
"""Promises of a scenario, with the plan field that each bounds from above."""


def _tightened(question: Question) -> Iterator[tuple[str, float]]:
    """Promises as tight as the limits of the question: the largest batch is looked for under the tighter of the two."""
    for promise, field in PROMISES.items():
        now = float(getattr(question.scenario, promise))
        least = min([now, *(each.value for each in question.limits if each.field == field and each.at_most)])
        yield promise, max(least, SMALLEST_MS)


SMALLEST_MS: Final = 0.001
"""Smallest promise that a scenario can name [ms]."""


def _cleared(prefill: str, spec: int, filled: bool) -> Iterator[tuple[str, str | int | float | None]]:
    """Fields that the search sets itself, or that mean nothing in this combination."""
    yield from ((name, 1) for name in ("tp", "pp", "dp", "ep", "cp", "dcp"))
    kept = ("kv_link_eff",) if prefill == "disaggregated" else ()
    yield from ((name, None) for name in POOL_FIELDS if name not in kept)
    yield (
        "at_batch",
        None,
    )  # it may fit other layouts than the one that stands here; the grid reads it from the question
    if spec == 0:
        yield from ((name, Scenario.model_fields[name].default) for name in ("accept", "draft"))
    if filled:
        yield "qps", 0.0


def prefill_gpus(question: Question) -> tuple[str, ...]:
    """Accelerators of prefill pools, where prefill has a pool of its own."""
    return question.prefill_accelerators or question.accelerators or (question.scenario.gpu,)
