"""Sentences on what a constraint costs, what would have to give, what moves an answer and where it turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planner.catalog.accelerators import accelerator
from planner.errors import InputError
from planner.optimise.answer import Answer
from planner.optimise.break_even import BreakEven, Turn
from planner.optimise.question import Question
from planner.optimise.sensitivity import End, Swing
from planner.optimise.shadow import ConstraintPrice, Relaxation, moved
from planner.optimise.words import kind_words
from planner.ui.data import asked
from planner.ui.optimise_data import APART, percent
from planner.ui.optimise_tornado import amount, change, moving, name
from planner.ui.optimise_words import word
from planner.units import dollars, unit_of

SAME: Final = 0.0005


def label(field: str) -> str:
    """What a constraint is called at the beginning of a sentence."""
    return word(f"constraint_{field}")


def _amount(field: str, value: float) -> str:
    """A value of a constraint as somebody asked for it."""
    unit = unit_of("gpus" if field == "max_gpus" else field)
    return asked(round(value, 3)) if unit == "ms" else amount(value, unit)


def price(answer: Answer, found: ConstraintPrice) -> str:
    """What moving one constraint would do, always seen from the question as it is."""
    now, then = _amount(found.field, found.now), _amount(found.field, found.then)
    said = {"label": label(found.field), "now": now, "then": then}
    if found.change is None:
        return word("price_never", **said)
    if abs(found.change) < SAME:
        return word("price_free", **said)
    keys = (
        ("price_dearer", "price_cheaper")
        if answer.question.objective.startswith("usd")
        else ("price_more", "price_fewer")
    )
    return word(keys[found.change < 0], share=percent(found.change), winner=_winner(answer, found), **said)


def _winner(answer: Answer, found: ConstraintPrice) -> str:
    """Who wins then, when it is another: its layout, and the rest of its name where that differs too."""
    kind = "" if found.scenario is None else kind_words(found.scenario)
    own = "" if answer.winner is None else answer.winner.kind
    own = own if found.before is None else kind_words(found.before)
    if not own or kind in ("", own):
        return ""
    layout, _, rest = kind.partition(APART)
    return word("price_winner", kind=layout if rest == own.partition(APART)[2] else kind)


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


def infeasible(found: Sequence[Relaxation]) -> str:
    """What nothing keeps: only the constraints that could be relaxed, each with its amount."""
    the = [word("infeasible_the", label=label(each.field), now=_amount(each.field, each.now)) for each in found]
    return word("infeasible_since", said=word("infeasible_and").join(the))


def moves(swings: Sequence[Swing]) -> str:
    """At which end of an input nothing stands, then what moves the answer most, and what it does at both ends."""
    found = moving(swings)
    if not found:
        return word("moves_nothing")
    lost = [
        word(
            "moves_lost_sla" if each.key.startswith("sla") else "moves_lost",
            name=name(each),
            at=amount(end.input, each.unit),
        )
        for each in found
        for end in (each.low, each.high)
        if end.value is None
    ]
    first = next((each for each in found if not each.turns), None)
    most = [] if first is None else [
        word("moves_most", name=name(first), low=_end(first, first.low), high=_end(first, first.high))
    ]  # fmt: skip
    return " ".join((*lost[:1], *most))


def _end(swing: Swing, end: End) -> str:
    """What happens at one end of an input's range."""
    at, share = amount(end.input, swing.unit), change(swing, end)
    if end.value is None:
        return word("moves_falls", at=at)
    if share is None:
        return word("moves_same", at=at)
    return word("moves_by", share=f"{'+' if share > 0 else '−'}{percent(share)}", at=at)


def turns(answer: Answer, found: BreakEven | None) -> Iterator[str]:
    """The price at which the second choice wins."""
    second = answer.second
    if found is None or second is None:
        return
    first = answer.best[0]
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
