"""Whether a text holds one start of one engine: figures of two are never put together into a machine that is neither."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from planner.errors import Fault, InputError
from planner.logs.arguments import MARKS, PAIR, top_level
from planner.logs.endings import ends
from planner.logs.facts import RANK, number
from planner.logs.lines import Line, Log
from planner.logs.stated import COUNTS, LOADED, MENTIONS, MODEL, SHARES

IDENTITY: Final = frozenset(
    (*MODEL, *SHARES, *(name for _, names in COUNTS for name in names), "quantization", "kv_cache_dtype", "dtype")
)
"""Settings that all processes of one start print alike."""

NODE: Final = ("node_rank", "data_parallel_rank")
"""Settings by which processes of one start differ."""

DRAFTED: Final = re.compile(
    r"speculative_(?:algorithm|config|model)['\"]?\s?[=:]\s?(?!None|null)['\"{A-Za-z]|num_spec(?:ulative)?_tokens"
    r"|--speculative|[Ll]oading drafter"
)
"""A draft model is loaded beside the model: two of a kind are then one start's."""

LOADING: Final = re.compile(
    r"(?:model weights|odel loading) took ([0-9]{1,9}(?:\.[0-9]{1,9})?) ?Gi?B"
    r"|oad weight end\..{0,200}?mem usage=([0-9]{1,9}(?:\.[0-9]{1,9})?) GB"
)
"""What a process says once of its weights."""

DRAFT_LINE: Final = re.compile(r"(?i)mtp|nextn|eagle|draft|medusa")

PROCESS: Final = re.compile(r"\(((?:EngineCore|Worker|VllmWorker)[A-Za-z0-9_ =]{0,40}?) ?pid=([0-9]{1,9})")
"""A process of vLLM by its name, which says its rank, and its number."""

REPLICAS: Final = re.compile(r"EngineCore_(?:DP)?[1-9]")
"""Engines of several replicas share the names of their workers in some releases."""

NAMED_APART, UNNAMED_APART = 1.02, 1.2
"""Ratio of two weights above which they are not one rank's; ranks that lines do not name differ by their share."""

TWO: Final = "the text holds the start-ups of two engines or models: give one"


@dataclass(frozen=True)
class Printed:
    """One configuration that a process printed: after which mark, at which place among the lines, what all processes
    share, and which node's it is."""

    mark: str
    at: int
    shared: tuple[tuple[str, str], ...]
    node: tuple[str, ...]


def last_start(log: Log) -> tuple[Log, str]:
    """The last start where an engine was started again with the same configuration, and the sentence that says so.

    A start begins after the line that completed or ended the one before.
    """
    known = _configurations(log)
    ended = [at for at, _ in ends(log)]
    again = [here for before, here in _pairs(known) if before.shared == here.shared and _between(before, here, ended)]
    if not again:
        return log, ""
    last = max(here.at for here in again)
    lines = log.lines[max(at for at in ended if at < last) + 1 :]
    said = "The engine was started again with the same configuration; only the last start is used."
    return Log(lines, "\n".join(line.text for line in lines)), said


def refuse_two(log: Log, engines: int) -> None:
    """Refuse a text of more than one start.

    Args:
        log: its lines.
        engines: how many engines' own statements about weights or cache are in it.

    Raises:
        InputError: when it holds two engines, two models, two configurations, or one rank's weights twice and apart.
    """
    if engines > 1 or _configured_twice(log) or _processes_twice(log) or _loaded_twice(log):
        raise InputError((Fault("log", f"{len(log.lines):,} lines", TWO),))


def _configurations(log: Log) -> tuple[Printed, ...]:
    marks = log.holding(MARKS)
    told = (
        (at, line, next((m for m in marks if m in line.text), "")) for at, line in enumerate(log.lines if marks else ())
    )
    return tuple(_printed(at, line, mark) for at, line, mark in told if mark)


def _printed(at: int, line: Line, mark: str) -> Printed:
    found: dict[str, str] = {}
    for name, value in PAIR.findall(top_level(line.text.partition(mark)[2])):
        found.setdefault(name, value.strip("'\""))
    shared = tuple(sorted((name, value) for name, value in found.items() if name in IDENTITY))
    return Printed(mark, at, shared, tuple(found.get(name, "") for name in NODE))


def _pairs(known: tuple[Printed, ...]) -> Iterator[tuple[Printed, Printed]]:
    """Each two configurations in turn that one kind of process of one node printed; none that states nothing."""
    key = lambda each: (each.mark, each.node)  # noqa: E731 - one expression, used twice
    for _, group in groupby(sorted((each for each in known if each.shared), key=key), key=key):
        same = list(group)
        yield from pairwise(same)


def _between(before: Printed, here: Printed, ended: list[int]) -> bool:
    """Whether a start ended between two configurations."""
    return any(before.at <= at < here.at for at in ended)


def _configured_twice(log: Log) -> bool:
    """Whether two configurations or, without a draft, two models are printed."""
    known = _configurations(log)
    if any(len({each.shared for each in known if each.mark == mark and each.shared}) > 1 for mark in MARKS):
        return True
    mentions = log.holding(MENTIONS)
    told = (line.text for line in log.lines if any(each in line.text for each in mentions))
    models = {hit[1].rstrip(".").lower() for text in told for hit in LOADED.finditer(text)}
    return len(models) > 1 and not DRAFTED.search(log.whole)


def _processes_twice(log: Log) -> bool:
    """Whether a process that is there once in a start has two numbers."""
    if REPLICAS.search(log.whole):
        return False
    seen = {hit.groups() for line in log.lines if "pid=" in line.text for hit in PROCESS.finditer(line.text)}
    once = [name for name, _ in seen if name == "EngineCore" or re.search(r"[0-9]", name)]
    return len(once) > len(set(once))


def _loaded_twice(log: Log) -> bool:
    """Whether one rank states two sizes of its weights and nothing is drafted."""
    if DRAFTED.search(log.whole):
        return False
    sizes: dict[str, list[float]] = {}
    for line in log.lines:
        hit = None if DRAFT_LINE.search(line.text) else LOADING.search(line.text)
        if hit is not None:
            sizes.setdefault(_rank(line), []).append(number(hit[1] or hit[2]))
    return any(max(own) > (NAMED_APART if rank else UNNAMED_APART) * min(own) for rank, own in sizes.items())


def _rank(line: Line) -> str:
    """Who printed a line; empty where it does not say."""
    process, rank = PROCESS.search(line.text[:100]), RANK.search(line.text[:100])
    return process[1] if process else rank[0] if rank else ""
