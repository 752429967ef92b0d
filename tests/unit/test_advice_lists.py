"""Three lists of advice: what to mend, what gains most, and the rest."""

from __future__ import annotations

from planner.advise.advice import Advice
from planner.advise.lists import MOST, lists
from planner.variants import Gain


def piece(code, kind="advice", share=None, change=None):
    """A piece of advice with a gain."""
    return Advice(code, kind, "Text.", (), "–", change, None if share is None else Gain(share, True))


def codes(part):
    """What stands in a list."""
    return [each.code for each in part]


def test_warnings_then_gains_then_facts():
    said = [
        piece("w", "warning"),
        piece("a", share=0.1, change={"tp": 2}),
        piece("b", share=0.3, change={"tp": 4}),
        piece("f"),
    ]
    found = lists(said)
    assert (codes(found.mend), codes(found.worth), codes(found.facts)) == (["w"], ["b", "a"], ["f"])


def test_what_makes_a_plan_stand_comes_first():
    said = [piece("a", share=0.9, change={"tp": 2}), piece("b", change={"tp": 4})]
    assert codes(lists(said).worth) == ["b", "a"]


def test_a_change_is_offered_once():
    change = {"tp": 2}
    found = lists(
        [
            piece("w", "warning", 0.2, change),
            piece("a", share=0.2, change=change),
            piece("b", share=0.2, change={"tp": 4}),
        ]
    )
    assert (codes(found.worth), codes(found.facts)) == (["b"], ["a"])


def test_five_at_most_and_the_rest_are_facts():
    said = [piece(str(n), share=0.1 * n, change={"tp": n}) for n in range(1, 8)]
    found = lists(said)
    assert codes(found.worth) == ["7", "6", "5", "4", "3"]
    assert len(found.worth) == MOST
    assert codes(found.facts) == ["1", "2"]


def test_next_to_no_gain_is_a_fact():
    assert codes(lists([piece("a", share=0.01, change={"tp": 2})]).facts) == ["a"]
