"""The best technique that is not used, and the best two together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Final

from planner.advise.degrees import NOTICEABLE
from planner.specs.scenario import Scenario
from planner.techniques.table import techniques
from planner.variants import Change, Gain, Outcome, changed, gain, outcome

TRAFFIC: Final = ("prefix",)
"""Groups that the requests decide on and not who serves them."""

PHRASES: Final = {"weights": "{} weights", "kv": "{} KV cache", "chunk": "chunked prefill, {}", "prefill": "prefill {}"}
"""How a row is called outside its group."""


@dataclass(frozen=True)
class Finding:
    """The best change, or pair of changes, among the techniques.

    Attributes:
        name: what is changed. change: the fields that apply it.
        gain: what it gains on the scenario; None where the scenario as it is does not stand.
        outcome: the plan that it leads to. cost: what it costs besides, in words.
    """

    name: str
    change: Change = field(hash=False)
    gain: Gain | None
    outcome: Outcome
    cost: str

    @property
    def rank(self) -> float:
        """What findings are compared by, more is better: cheap good tokens, or many of them where there is no price."""
        dollars = self.outcome.usd_per_m_goodput
        return -dollars if dollars else self.outcome.goodput_tok_s_gpu or 0.0


@lru_cache(maxsize=128)
def best_changes(scenario: Scenario) -> tuple[Finding, ...]:
    """The best single technique that is not used, and the best pair of the three best where it is better still.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    singles = _singles(scenario)
    pairs = (_pair(scenario, one, two) for one, two in combinations(singles[:3], 2))
    pair = max((each for each in pairs if each is not None), key=lambda each: each.rank, default=None)
    if not singles:
        return ()
    return (
        (singles[0], pair)
        if pair is not None and pair.rank > singles[0].rank + _noticeable(singles[0])
        else singles[:1]
    )


def _noticeable(found: Finding) -> float:
    """How much two ranks must differ to be told apart."""
    return abs(found.rank) * NOTICEABLE


def _singles(s: Scenario) -> tuple[Finding, ...]:
    """The best row of each group that stands and gains something, best first."""
    found: dict[str, Finding] = {}
    for each in techniques(s):
        if each.change is None or each.current or not each.stands or not each.whole or each.group in TRAFFIC:
            continue
        made = _finding(s, PHRASES.get(each.group, "{}").format(each.name), each.change, each.cost)
        if made is not None and (each.group not in found or made.rank > found[each.group].rank):
            found[each.group] = made
    return tuple(sorted(found.values(), key=lambda each: -each.rank))


def _finding(s: Scenario, name: str, change: Change, cost: str) -> Finding | None:
    """A change that leads to a plan which stands and gains something; None for any other."""
    variant = changed(s, change)
    if variant is None or not (then := outcome(variant)).stands:
        return None
    now = outcome(s)
    gained = gain(now, then) if now.stands else None
    if now.stands and (gained is None or gained.share < NOTICEABLE):
        return None
    return Finding(name, {key: value for key, value in change.items() if value != getattr(s, key)}, gained, then, cost)


def _pair(s: Scenario, one: Finding, two: Finding) -> Finding | None:
    """Two changes at once; None where they set one field to two values."""
    if any(one.change[key] != two.change[key] for key in one.change.keys() & two.change.keys()):
        return None
    return _finding(s, f"{one.name} and {two.name}", {**one.change, **two.change}, f"{one.cost}; {two.cost}")
