"""What each recorded formula call of a plan is about: which matrix, which cached tensor, which operator of the pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.formula import Call, Recording, number
from planner.physics.kv import CacheComponent
from planner.specs.model import DenseFFN, ExpertFFN, LayerGroup, Linear, ModelSpec
from planner.work import ONE, ZERO, Entry

WORK = ("planner.physics.attention", "planner.physics.ffn", "planner.physics.comms", "planner.physics.context")
"""Modules whose formulas say how much work an operator is."""

CLOCK = "planner.physics.roofline"
"""Module whose formulas say how long it takes."""

EXPERTS = "routed experts"
"""What the sum of weights calls the experts that tokens choose."""

STARTS = ("compute_seconds", "collective_seconds", "message_seconds", "exchange_seconds", "host_seconds")
"""Formulas that begin the clocking of an operator."""

_SHARED = frozenset((id(ZERO), id(ONE)))


@dataclass(frozen=True)
class Timed:
    """One operator that a pass clocked: the calls it took, by position, and the work that was clocked."""

    entry: Entry
    calls: tuple[int, ...]

    @property
    def subject(self) -> str:
        """The operator and how often the pass launches it."""
        launches = number(self.entry.work.launches)
        return self.entry.name if launches == "1" else f"{self.entry.name}, {launches} launches"


def pass_subjects(taken: Recording) -> list[str]:
    """What each call of a recorded pass is about; empty where it is about all of it."""
    subjects = [""] * len(taken.calls)
    for begin, (end, entry) in zip([0, *(at for at, _ in taken.marks)], taken.marks, strict=False):
        for at in range(begin, end):
            if taken.calls[at].formula.module in WORK:
                subjects[at] = entry.name
    for operator in timed(taken):
        for at in operator.calls:
            subjects[at] = operator.subject
    return subjects


def timed(taken: Recording) -> tuple[Timed, ...]:
    """Operators in the order in which a recorded pass clocked them."""
    entries = [entry for _, entry in taken.marks]
    known = dict(_by_work(entries))
    starts = [at for at, call in enumerate(taken.calls) if call.formula.name in STARTS]
    found = []
    for start, end in pairwise([*starts, len(taken.calls)]):
        calls = tuple(_clocked(taken.calls, start, end))
        entry = _entry_of([taken.calls[at] for at in calls], known, entries)
        if entry is not None:
            found.append(Timed(entry, calls))
    return tuple(found)


def _by_work(entries: Sequence[Entry]) -> Iterator[tuple[int, Entry]]:
    """Entries by the identity of their columns; a column that several share tells nothing."""
    for entry in entries:
        columns = (entry.work.flops, entry.work.hbm_bytes, entry.work.link_bytes)
        yield from ((id(column), entry) for column in columns if id(column) not in _SHARED)


def _entry_of(calls: Sequence[Call], known: Mapping[int, Entry], entries: Sequence[Entry]) -> Entry | None:
    """The operator that some calls clock."""
    if calls[0].formula.name == "host_seconds":
        return next((entry for entry in entries if entry.work.kind == "host"), None)
    return next((known[id(x)] for call in calls for x in call.arguments.values() if id(x) in known), None)


def _clocked(calls: Sequence[Call], start: int, end: int) -> Iterator[int]:
    """Positions of the clock's calls that belong to the operator begun at `start`: each uses what one before it gave."""
    known = {id(calls[start].result)}
    yield start
    for at in range(start + 1, end):
        name, given = calls[at].formula.name, calls[at].arguments.values()
        if calls[at].formula.module == CLOCK and (name == "memory_seconds" or any(id(x) in known for x in given)):
            known.add(id(calls[at].result))
            yield at


def room_subjects(
    taken: Recording, model: ModelSpec, cache: Sequence[CacheComponent], lengths: tuple[str, str]
) -> list[str]:
    """What each call of a recorded memory budget is about.

    Args:
        taken: the recording.
        model: whose matrices they are.
        cache: what it caches.
        lengths: what the first and the second sequence length are called.
    """
    matrices = _matrix_names(model)
    found = [_memory_subject(call, matrices, cache) for call in taken.calls]
    names = [call.formula.name for call in taken.calls]
    for at, name in enumerate(names[:-1]):
        if name == "kept_tokens":
            found[at] = found[at + 1]
    held = (at for at, name in enumerate(names) if name == "sequences_held")
    for at, text in zip(held, lengths, strict=False):
        found[at] = text
    return found


def _memory_subject(call: Call, matrices: Mapping[tuple[int, int], str], cache: Sequence[CacheComponent]) -> str:
    """The tensor that one call of the memory budget is about."""
    given = call.arguments
    match call.formula.name:
        case "matrix_bytes":
            return matrices.get((given["params"], given["shards"]), "")
        case "component_bytes":
            return next((part.name for part in cache if part.token_bytes == given["token_bytes"]), "")
        case _:
            return ""


def _matrix_names(model: ModelSpec) -> dict[tuple[int, int], str]:
    """Matrices of a model by parameters and shards; equal ones together."""
    names: dict[tuple[int, int], dict[str, None]] = {}
    for group in model.groups:
        for linear in split_linears(group):
            names.setdefault((linear.params, linear.shards), {})[linear.name] = None
    return {key: ", ".join(found) for key, found in names.items()}


def split_linears(group: LayerGroup) -> tuple[Linear, ...]:
    """Matrices of one layer that divide by tensor parallelism."""
    attention = group.attention.linears if group.attention else ()
    match group.ffn:
        case DenseFFN():
            return attention + group.ffn.linears
        case ExpertFFN():
            return attention + group.ffn.shared + group.ffn.outer
        case _:
            return attention


def held_names(group: LayerGroup) -> tuple[str, ...]:
    """What the weights of one layer are added up from, in the order in which they are."""
    names = tuple(linear.name for linear in split_linears(group))
    if not isinstance(group.ffn, ExpertFFN):
        return names
    before = len(group.attention.linears) if group.attention else 0
    return (*names[:before], EXPERTS, f"{EXPERTS}' vectors", *names[before:])


def vector_params(group: LayerGroup) -> int:
    """Parameters of one layer that every rank holds whole."""
    return sum(block.extra_params for block in (group.attention, group.ffn) if block) + group.norm_params
