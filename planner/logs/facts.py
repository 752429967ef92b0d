"""Numbers and words that known phrases of a log state: rules that find them, and what of several ranks' counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from planner.logs.lines import Line, Log
from planner.units import GIB

NUMBER: Final = r"-?[0-9][0-9,]{0,17}(?:\.[0-9]{1,9})?(?![0-9])"
"""A decimal with optional thousands separators: no exponent, and too short to overflow."""

WORD: Final = r"[A-Za-z0-9][A-Za-z0-9_.+\-]{0,59}"
"""A keyword or a version: nothing that could be a path, an address or a sentence."""

LARGEST_BYTES: Final = 2.0**50
LARGEST_COUNT: Final = 1e12
"""Above these no device is meant; such a number is passed over."""

RANK: Final = re.compile(r"\b(?:DP[0-9]{1,4} )?(?:PP[0-9]{1,4} )?TP[0-9]{1,4}\b|\[RANK [0-9]{1,4}\]")
"""Which rank printed a line, where the engine says so in its first characters."""


@dataclass(frozen=True)
class Fact:
    """One number that a line states, in SI, and the rank that printed it (empty = not said)."""

    name: str
    value: float
    line: int
    rank: str = ""


def renamed(fact: Fact | None, name: str) -> Fact | None:
    """The same number under another name; None stays None."""
    return None if fact is None else replace(fact, name=name)


@dataclass(frozen=True)
class Word:
    """One keyword that a line states."""

    name: str
    text: str
    line: int


@dataclass(frozen=True)
class Rule:
    """A phrase: `needle` must be in the line before `pattern` is tried; groups are named after what they state."""

    needle: str
    pattern: re.Pattern[str]
    scale: float


@dataclass(frozen=True)
class Found:
    """Everything that an engine's rules found, in the order of the text."""

    facts: tuple[Fact, ...]
    words: tuple[Word, ...]

    def of(self, name: str) -> tuple[Fact, ...]:
        """All numbers of one name."""
        return tuple(fact for fact in self.facts if fact.name == name)

    def smallest(self, *names: str) -> Fact | None:
        """The tightest rank's number under the first of several names that was found."""
        return next((min(known, key=lambda f: f.value) for name in names if (known := self.of(name))), None)

    def largest(self, *names: str) -> Fact | None:
        """The fullest rank's number under the first of several names that was found."""
        return next((max(known, key=lambda f: f.value) for name in names if (known := self.of(name))), None)

    def first(self, *names: str) -> Fact | None:
        """The earliest number under the first of several names that was found."""
        return next((known[0] for name in names if (known := self.of(name))), None)

    def word(self, *names: str) -> Word | None:
        """The last word under the first of several names that was found: engines correct themselves as they start."""
        return next(
            (known[-1] for name in names if (known := [word for word in self.words if word.name == name])), None
        )


def says(needle: str, phrase: str, scale: float = GIB) -> Rule:
    """A rule from a phrase: a regular expression in which `{name}` stands for a number and `{name:w}` for a word.

    Args:
        needle: plain text that every such line holds.
        phrase: what to look for.
        scale: bytes per printed unit, for names that end in `_bytes`; engines print GiB, also where they write GB.
    """
    words = re.sub(r"\{([a-z_]+):w\}", lambda name: f"(?P<{name[1]}>{WORD})", phrase)
    return Rule(needle, re.compile(re.sub(r"\{([a-z_]+)\}", lambda name: f"(?P<{name[1]}>{NUMBER})", words)), scale)


def marks(needle: str, name: str) -> Rule:
    """A rule for plain text that tells something by being there; its word is the text itself."""
    return Rule(needle, re.compile(f"(?P<{name}>{re.escape(needle)})"), 1.0)


def search(rules: tuple[Rule, ...], log: Log) -> Found:
    """What a set of rules finds in a text."""
    present = set(log.holding(tuple(rule.needle for rule in rules)))
    tried = tuple(rule for rule in rules if rule.needle in present)
    hits = [(line, rule, hit) for line in log.lines for rule, hit in _hits(tried, line)] if tried else []
    facts = tuple(fact for line, rule, hit in hits for fact in _facts(line, rule, hit))
    return Found(facts, tuple(word for line, rule, hit in hits for word in _words(line, hit)))


def number(text: str) -> float:
    """A printed number; thousands separators are dropped."""
    return float(text.replace(",", ""))


def _hits(rules: tuple[Rule, ...], line: Line) -> Iterator[tuple[Rule, re.Match[str]]]:
    for rule in rules:
        if rule.needle in line.text:
            yield from ((rule, hit) for hit in rule.pattern.finditer(line.text))


def _facts(line: Line, rule: Rule, hit: re.Match[str]) -> Iterable[Fact]:
    rank = RANK.search(line.text[:100])
    for name, text in hit.groupdict().items():
        if text is None or not re.fullmatch(NUMBER, text):
            continue
        value = number(text) * (rule.scale if name.endswith("_bytes") else 1.0)
        if abs(value) <= (LARGEST_BYTES if name.endswith("_bytes") else LARGEST_COUNT):
            yield Fact(name, value, line.number, rank[0] if rank else "")


def _words(line: Line, hit: re.Match[str]) -> Iterable[Word]:
    named = hit.groupdict().items()
    return [Word(name, text, line.number) for name, text in named if text is not None]
