"""The arithmetic of a plan as text: every formula that it used, its source, and its lines with the numbers in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.answer import answer
from planner.arithmetic import Part, arithmetic
from planner.formula import Line, Worked
from planner.single import plan_of
from planner.specs.scenario import Scenario


def explain(scenario: Scenario) -> str:
    """Why a plan says what it says: the answer, then part by part each formula with its numbers.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    plan, parts = plan_of(scenario), arithmetic(scenario)
    untimed = () if plan.ttft_unloaded_ms is not None else (f"Speed and cost are not worked out: {plan.reason}.",)
    return "\n\n".join((answer(plan), *(_part(part) for part in parts), *untimed)) + "\n"


def _part(part: Part) -> str:
    """One part under its title."""
    title = f"{part.title} ({part.note})" if part.note else part.title
    return "\n\n".join((f"{title}\n{'=' * len(title)}", *_formulas(part.worked)))


def _formulas(worked: Sequence[Worked]) -> Iterator[str]:
    """Each formula once, with what it says, its source and every set of numbers."""
    for entry in dict.fromkeys(each.formula for each in worked):
        about = f"{entry.name}: {entry.sentence}\n  source: {entry.source}"
        yield "\n".join((about, *(worked_text(each, "  ") for each in worked if each.formula == entry)))


def worked_text(worked: Worked, indent: str = "") -> str:
    """The lines of a formula with one set of numbers, under what they are about."""
    heading = [f"{indent}# {'; '.join(worked.subjects)}"] if worked.subjects else []
    return "\n".join((*heading, *(f"{indent}{line_text(line)}" for line in worked.lines)))


def line_text(line: Line) -> str:
    """`name = expression = expression with numbers = result [unit]`; what would stand twice stands once."""
    shown = dict.fromkeys((line.name, line.expression, line.numbers, line.result))
    return f"{' = '.join(text for text in shown if text)} [{line.unit}]"
