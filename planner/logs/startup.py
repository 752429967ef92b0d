"""Start-up logs of vLLM (with its plug-in for Ascend), SGLang and TensorRT-LLM: what they say of memory and configuration.

Only numbers, known keywords and a model's public id leave here; hosts, paths, addresses, users and tokens never do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, cast

from planner.errors import Fault, InputError
from planner.logs import startup_sglang, startup_trtllm, startup_vllm
from planner.logs.arguments import settings, unclosed
from planner.logs.endings import NO_ROOM, OK, UNREADY, outcome_of
from planner.logs.facts import Fact, Found, Rule, search
from planner.logs.lines import Line, Log, log_of
from planner.logs.readings import MemoryTerm, StartUp, Understood
from planner.logs.starts import last_start, refuse_two
from planner.logs.stated import Configuration, configuration, model_name
from planner.specs.spelling import spell
from planner.units import GIB

VERSION: Final = re.compile(r"v?([0-9]{1,3}(?:\.[0-9]{1,10}){1,3}(?:[.\-]?(?:rc|post|dev|a|b)[0-9]{1,10}){0,2})")

OWN: Final = ("weights_bytes", "kv_pool_bytes", "kv_capacity_tokens")
"""Memory facts whose phrases only one engine prints; an allocator's are everybody's."""

CUT: Final = "The last line may be cut: it is not used."

WIDE_RANKS: Final = 1.2
"""Ratio of the largest to the smallest pool above which a reader is told that they differ."""


@dataclass(frozen=True)
class Reader:
    """How one engine's log is read."""

    engine: str
    name: str
    rules: tuple[Rule, ...]
    signs: tuple[str, ...]
    memory: Callable[[Found], tuple[Fact, ...]]


READERS: Final = (
    Reader("vllm", "vLLM", startup_vllm.RULES, startup_vllm.SIGNS, startup_vllm.memory),
    Reader("sglang", "SGLang", startup_sglang.RULES, startup_sglang.SIGNS, startup_sglang.memory),
    Reader("trtllm", "TensorRT-LLM", startup_trtllm.RULES, startup_trtllm.SIGNS, startup_trtllm.memory),
)


@dataclass(frozen=True)
class Heard:
    """What one reader made of a text: everything found, the memory facts, and whether its engine's own lines are there."""

    reader: Reader
    found: Found
    memory: tuple[Fact, ...]
    signed: bool


def looks_like_start_up(text: str) -> bool:
    """Whether a text holds an engine's statement about memory, or its failure to start; never raises."""
    try:
        log, _ = _whole(text)
    except InputError:
        return False
    return _best(log, _all(log)) is not None


def read_start_up(text: str) -> StartUp:
    """What an engine printed while it started.

    Raises:
        InputError: when the text is too long, holds two starts that are not alike, or says nothing about memory that is
            understood.
    """
    whole, cut = _whole(text)
    log, again = last_start(whole)
    heard = _all(log)
    refuse_two(log, sum(any(fact.name in OWN for fact in each.memory) for each in heard))
    best = _best(log, heard)
    if best is None:
        allowed = "must hold the lines of vLLM, SGLang or TensorRT-LLM about weights and cache; none was found"
        raise InputError((Fault("log", f"{len(log.lines):,} lines", allowed),))
    return _start_up(best, log, tuple(filter(None, (cut, again))))


def _whole(text: str) -> tuple[Log, str]:
    """The lines of a text without a last one that may be cut within what it states, and the sentence that says so.

    Such a line has no end, and would state something else with one more digit, or its configuration is not closed.
    """
    log = log_of(text)
    if not log.lines or text.endswith(("\n", "\r")) or log.lines[-1].number <= text.count("\n"):
        return log, ""
    last = log.lines[-1]
    more = replace(last, text=f"{last.text.rstrip(' ')}0")
    if not unclosed(last) and _told(last) == _told(more):
        return log, ""
    lines = log.lines[:-1]
    return Log(lines, "\n".join(line.text for line in lines)), CUT


def _told(line: Line) -> tuple[object, ...]:
    """Everything that any reader finds in one line."""
    log = Log((line,), line.text)
    found = tuple(search(reader.rules, log) for reader in READERS)
    known = settings(log)
    return (*found, known, model_name(log, known))


def _all(log: Log) -> tuple[Heard, ...]:
    """What every reader makes of a text."""
    return tuple(_heard(reader, log) for reader in READERS)


def _best(log: Log, heard: tuple[Heard, ...]) -> Heard | None:
    """The reader that understands most memory facts; a failure alone counts for the engine whose lines are there."""
    best = max(heard, key=lambda each: (len(each.memory), each.signed))
    failed = best.signed and outcome_of(log)[0] not in (OK, UNREADY)
    return best if best.memory or failed else None


def _heard(reader: Reader, log: Log) -> Heard:
    found = search(reader.rules, log)
    signed = bool(log.holding(reader.signs))
    return Heard(reader, found, reader.memory(found), signed)


def _start_up(best: Heard, log: Log, said: tuple[str, ...]) -> StartUp:
    engine = "vllm-ascend" if best.reader.engine == "vllm" and startup_vllm.ascend(best.found) else best.reader.engine
    told = configuration(engine, log, best.found, settings(log))
    outcome, at = _ended(best, log)
    return StartUp(
        engine=engine,
        version=_version(best.found),
        model=told.model,
        stated=tuple((each.field, each.value) for each in told.fields),
        memory=tuple((cast(MemoryTerm, fact.name), fact.value) for fact in best.memory),
        outcome=outcome,
        understood=_understood(best, told, outcome, at),
        ignored=(*said, *told.ignored, *_unused(best, log)),
    )


def _ended(best: Heard, log: Log) -> tuple[str, int]:
    """As `outcome_of`; a pool below zero ends a start, whether or not the text goes on to say so."""
    outcome, at = outcome_of(log)
    pool = next((fact for fact in best.memory if fact.name == "kv_pool_bytes" and fact.value <= 0.0), None)
    return (NO_ROOM, pool.line) if pool is not None and outcome in (OK, UNREADY) else (outcome, at)


def _version(found: Found) -> str:
    """The engine's version without build names; empty when none is printed."""
    word = found.word("version")
    hit = VERSION.match(word.text) if word is not None else None
    return hit[1] if hit else ""


def _understood(best: Heard, told: Configuration, outcome: str, at: int) -> tuple[Understood, ...]:
    """Every statement that is used, under its scenario or plan name."""
    version = best.found.word("version")
    named = [
        Understood("engine", best.reader.name),
        *([Understood("version", _version(best.found), version.line)] if version and _version(best.found) else []),
        *([Understood("model", told.model)] if told.model else []),
    ]
    fields = [Understood(each.field, spell(each.value), each.line) for each in told.fields]
    memory = [Understood(fact.name, shown(fact.name, fact.value), fact.line) for fact in best.memory]
    return (*named, *fields, *memory, Understood("outcome", outcome, at))


def shown(name: str, value: float) -> str:
    """A memory fact as the engines print it: GiB, tokens or sequences."""
    if name.endswith("_bytes"):
        return f"{value / GIB:,.2f} GiB"
    return f"{value:,.2f} sequences" if name == "max_concurrency" else f"{value:,.0f} tokens"


def _unused(best: Heard, log: Log) -> tuple[str, ...]:
    """What is there and is not used."""
    others = [each.name for each in READERS if each is not best.reader and _heard(each, log).memory]
    pools = [fact.value for fact in best.found.of("kv_pool_bytes") if fact.value > 0.0]
    apart = best.reader.engine != "trtllm" and pools and max(pools) > WIDE_RANKS * min(pools)
    spread = f"Pools from {shown('_bytes', min(pools))} to {shown('_bytes', max(pools))} are printed; " if apart else ""
    return (
        *(f"Lines of {name} are there too; they are not used." for name in others),
        *([f"{spread}the smallest is used."] if apart else []),
    )
