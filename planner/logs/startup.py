"""Start-up logs of vLLM (with its plug-in for Ascend), SGLang and TensorRT-LLM: what they say of memory and configuration.

Only numbers, known keywords and a model's public id leave here; hosts, paths, addresses, users and tokens never do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from planner.errors import Fault, InputError
from planner.logs import startup_sglang, startup_trtllm, startup_vllm
from planner.logs.arguments import settings
from planner.logs.facts import Fact, Found, Rule, search
from planner.logs.lines import Log, log_of
from planner.logs.readings import MemoryTerm, StartUp, Understood
from planner.logs.stated import Configuration, configuration
from planner.specs.spelling import spell
from planner.units import GIB

OK: Final = "ok"
OUT_OF_MEMORY: Final = "out of memory"
NO_ROOM: Final = "no room for a cache"
TOO_LONG: Final = "length above the cache"
TAKEN: Final = "memory taken before the start"

EVENTS: Final = (
    (re.compile(r"No available memory|try to increase --mem-fraction-static"), NO_ROOM),
    (re.compile(r"leave no GPU memory for the KV cache"), NO_ROOM),
    (
        re.compile(r"KV cache is needed|that can be stored in KV cache|must be large enough to process at least"),
        TOO_LONG,
    ),
    (re.compile(r"less than desired GPU memory utilization"), TAKEN),
    (re.compile(r"(?<![-A-Za-z])out of memory|OutOfMemoryError"), OUT_OF_MEMORY),
    (re.compile(r"Application startup complete|ready to roll|ready to serve|init engine \(profile"), OK),
)
"""What ends a start, or completes it; the last one in the text counts. Checked in this order within a line."""

VERSION: Final = re.compile(r"v?([0-9]{1,3}(?:\.[0-9]{1,10}){1,3}(?:[.\-]?(?:rc|post|dev|a|b)[0-9]{1,10}){0,2})")

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
        log = log_of(text)
    except InputError:
        return False
    return _best(log) is not None


def read_start_up(text: str) -> StartUp:
    """What an engine printed while it started.

    Raises:
        InputError: when the text is too long, or says nothing about memory that is understood.
    """
    log = log_of(text)
    best = _best(log)
    if best is None:
        allowed = "must hold the lines of vLLM, SGLang or TensorRT-LLM about weights and cache; none was found"
        raise InputError((Fault("log", f"{len(log.lines):,} lines", allowed),))
    return _start_up(best, log)


def _best(log: Log) -> Heard | None:
    """The reader that understands most memory facts; a failure alone counts for the engine whose lines are there."""
    heard = [_heard(reader, log) for reader in READERS]
    best = max(heard, key=lambda each: (len(each.memory), each.signed))
    failed = best.signed and _outcome(log)[0] != OK
    return best if best.memory or failed else None


def _heard(reader: Reader, log: Log) -> Heard:
    found = search(reader.rules, log)
    signed = bool(log.holding(reader.signs))
    return Heard(reader, found, reader.memory(found), signed)


def _start_up(best: Heard, log: Log) -> StartUp:
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
        ignored=(*told.ignored, *_unused(best, log)),
    )


def _ended(best: Heard, log: Log) -> tuple[str, int]:
    """As `_outcome`; a pool below zero ends a start, whether or not the text goes on to say so."""
    outcome, at = _outcome(log)
    pool = next((fact for fact in best.memory if fact.name == "kv_pool_bytes" and fact.value <= 0.0), None)
    return (NO_ROOM, pool.line) if pool is not None and outcome == OK else (outcome, at)


def _outcome(log: Log) -> tuple[str, int]:
    """How the start ended and on which line; `ok` at line 0 when nothing says otherwise."""
    present = [event for event in EVENTS if event[0].search(log.whole)]
    for line in reversed(log.lines) if present else ():
        for pattern, outcome in present:
            if pattern.search(line.text):
                return outcome, line.number
    return OK, 0


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
