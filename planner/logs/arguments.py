"""Settings that engines print as one configuration (`non-default args`, `with config`, `ServerArgs`) or are called with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.logs.lines import Line, Log

MARKS: Final = (
    "with config:", "non-default args:", "ServerArgs(", "Namespace(", "LLM Args:", "TorchLlmArgs(", "LlmArgs(",
    "engine args:",
)  # fmt: skip
"""What comes before a printed configuration."""

LAUNCHERS: Final = (
    "vllm serve",
    "vllm.entrypoints",
    "sglang.launch_server",
    "sglang serve",
    "trtllm-serve",
    "trtllm-llmapi",
)

VALUE: Final = r"'[^'\n]{0,300}'|\"[^\"\n]{0,300}\"|[^\s,'\"(){}\[\]]{1,120}"

PAIR: Final = re.compile(rf"(?<![A-Za-z0-9_])['\"]?([a-z][a-z_]{{1,40}})['\"]?\s{{0,2}}[=:]\s{{0,2}}({VALUE})")

OPTION: Final = re.compile(rf"(?<![A-Za-z0-9_-])--([a-z][a-z-]{{1,40}})(?:=|\s{{1,4}})({VALUE})")

SWITCH: Final = re.compile(r"(?<![A-Za-z0-9_-])--(enable-expert-parallel|enable-dp-attention)\b")


@dataclass(frozen=True)
class Setting:
    """One setting as the text spells it, quotes removed; `rank` is 0 for a resolved configuration, 1 for a command."""

    name: str
    text: str
    line: int
    rank: int


@dataclass(frozen=True)
class Settings:
    """Settings of a text; where one is stated several times, the resolved configuration goes before the command."""

    known: tuple[Setting, ...]

    def get(self, *names: str) -> Setting | None:
        """The setting of the first of several names that is stated and not None."""
        for name in names:
            told = [each for each in self.known if each.name == name and each.text not in ("None", "null", "")]
            if told:
                return min(told, key=lambda each: each.rank)
        return None

    def says(self, name: str, *texts: str) -> bool:
        """Whether a setting is stated to be one of some texts."""
        return any(each.name == name and each.text in texts for each in self.known)


def settings(log: Log) -> Settings:
    """All settings of a text."""
    marks, launchers = log.holding(MARKS), log.holding(LAUNCHERS)
    return Settings(tuple(each for line in log.lines for each in _settings(line, marks, launchers)))


def _settings(line: Line, marks: tuple[str, ...], launchers: tuple[str, ...]) -> Iterator[Setting]:
    mark = next((mark for mark in marks if mark in line.text), None)
    if mark is not None:
        inner = top_level(line.text.partition(mark)[2])
        yield from (Setting(name, value.strip("'\""), line.number, 0) for name, value in PAIR.findall(inner))
    elif line.text.lstrip().startswith("--") or any(word in line.text for word in launchers):
        told = OPTION.findall(line.text)
        yield from (Setting(_under(name), value.strip("'\""), line.number, 1) for name, value in told)
        yield from (Setting(_under(name), "True", line.number, 1) for name in SWITCH.findall(line.text))


def _under(name: str) -> str:
    return name.replace("-", "_")


def unclosed(line: Line) -> bool:
    """Whether a line begins a configuration in brackets and ends within it."""
    mark = next((mark for mark in MARKS if mark in line.text), None)
    if mark is None:
        return False
    inner = line.text[line.text.index(mark) :]
    return any(inner.count(opening) > inner.count(closing) for opening, closing in ("()", "{}", "[]"))


def top_level(text: str) -> str:
    """A configuration without what its values hold in brackets, up to the bracket that closes it.

    A draft model's own settings are such a value: they must not be taken for those of the model that is served.
    """
    depth, kept = 0, []
    start = text.lstrip()
    for char in start[1:] if start[:1] in ("{", "(") else start:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif depth == 0:
            kept.append(char)
    return "".join(kept)
