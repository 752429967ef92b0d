"""Sentences on what a constraint costs, what would have to give, what moves an answer and where it turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planner.catalog.accelerators import accelerator
from planner.errors import InputError
from planner.optimise.answer import Answer
from planner.optimise.break_even import BreakEven, Turn
from planner.optimise.question import LARGEST, Question
from planner.optimise.sensitivity import End, Swing
from planner.optimise.shadow import ConstraintPrice, Relaxation, moved
from planner.optimise.words import kind_words
from planner.ui.data import asked
from planner.ui.optimise_sentences import worse
from planner.ui.optimise_tornado import amount, change, moving, name
from planner.ui.optimise_words import word
from planner.units import dollars, significant, unit_of

SAME: Final = 0.0005


def label(field: str) -> str:
    """What a constraint is called at the beginning of a sentence."""
    return word(f"constraint_{field}")


def _amount(field: str, value: float) -> str:
    """A value of a constraint as somebody asked for it."""
    unit = unit_of("gpus" if field == "max_gpus" else field)
    return asked(round(value, 3)) if unit == "ms" else amount(value, unit)


def price(answer: Answer, found: ConstraintPrice) -> str:
    """What one constraint costs, or would cost."""
    now, then = _amount(found.field, found.now), _amount(found.field, found.then)
    said = {"label": label(found.field), "now": now, "then": then}
    if found.value_then is None:
        return word("price_never", **said)
    share = worse(answer.question.objective, found.value_now, found.value_then)
    if abs(share) < SAME:
        return word("price_free", **said)
    kinds = {"price": ("price_costs", "price_saves"), "yield": ("price_loses", "price_spares")}
    keys = kinds["yield" if answer.question.objective in LARGEST else "price"]
    return word(keys[share < 0], share=_share(found, share), winner=_winner(answer, found), **said)


def _share(found: ConstraintPrice, share: float) -> str:
    """By how much the objective is worse under the tighter of two values, as a share of what it is under the looser."""
    loose, tight = (found.value_then, found.value_now) if share > 0 else (found.value_now, found.value_then)
    return f"{significant(abs((tight or 0.0) / (loose or 1.0) - 1.0) * 100, 2)} %"


def _winner(answer: Answer, found: ConstraintPrice) -> str:
    """Who wins then, when it is another."""
    winner = answer.winner
    kind = "" if found.scenario is None else kind_words(found.scenario)
    return word("price_winner", kind=kind) if winner is not None and kind and kind != winner.kind else ""


def relaxation(found: Relaxation) -> str:
    """One thing that would make a question feasible."""
    now, needed = _amount(found.field, found.now), _amount(found.field, found.needed)
    return word("relax_each", label=label(found.field), now=now, needed=needed, kind=found.choice.kind)


def relaxed(question: Question, found: Relaxation) -> Question | None:
    """The question with one constraint relaxed so far; None where that contradicts the rest of it."""
    try:
        return moved(question, found.field, found.needed)
    except InputError:
        return None


def moves(swings: Sequence[Swing]) -> str:
    """What moves the answer most, and what it does at both ends of its range."""
    found = moving(swings)
    if not found:
        return word("moves_nothing")
    first = found[0]
    return word("moves_most", name=name(first), low=_end(first, first.low), high=_end(first, first.high))


def _end(swing: Swing, end: End) -> str:
    """What happens at one end of an input's range."""
    at, share = amount(end.input, swing.unit), change(swing, end)
    if end.value is None:
        return word("moves_falls", at=at)
    if share is None:
        return word("moves_same", at=at)
    return word("moves_by", share=f"{'+' if share > 0 else '−'}{significant(abs(share) * 100, 2)} %", at=at)


def turns(answer: Answer, found: BreakEven | None) -> Iterator[str]:
    """The price at which the second choice wins."""
    if found is None or len(answer.best) < 2:
        return
    first = answer.best[0]
    second = next((each for each in answer.best if each.kind != first.kind), answer.best[1])
    if found.first.price is not None:
        yield _turn("turn_up", found.first, second.kind)
    if found.second.price is not None and found.second.gpu != found.first.gpu:
        yield _turn("turn_down", found.second, second.kind)
    if found.first.price is None and found.second.price is None:
        yield word("turn_never", first=first.kind, second=second.kind, reason=found.first.reason)


def _turn(key: str, at: Turn, kind: str) -> str:
    """One price that turns the choice."""
    now = "" if at.now is None else word("turn_now", now=dollars(at.now))
    return word(key, kind=kind, gpu=accelerator(at.gpu).name, price=dollars(at.price or 0.0), now=now)
