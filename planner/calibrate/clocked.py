"""Many cases under one set of serving constants: equal operators are gathered into columns and clocked together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.cases import Case, Clockwork
from planner.catalog.profile_records import Serving
from planner.catalog.profiles import measured
from planner.physics.roofline import launch_seconds
from planner.serving.decode import shared_prefill, tpot_seconds
from planner.specs.profile import Profile
from planner.work import Entry, Work

Floats = NDArray[np.float64]

PARTS: Final = ("alone", "core", "mixed", "share", "prompt")
NUMBERS: Final = tuple(field.name for field in fields(Work) if field.name not in ("kind", "precision"))


@dataclass(frozen=True)
class Gathered:
    """Operators of one kind and precision under one profile, as one column; `place` = part · cases + case."""

    clockwork: int
    work: Work
    place: NDArray[np.int64]


@dataclass(frozen=True)
class Stack:
    """Cases gathered for clocking; `columns` are numbers of the cases, in their order."""

    cases: tuple[Case, ...]
    clockworks: tuple[Clockwork, ...]
    gathered: tuple[Gathered, ...]
    which: NDArray[np.int64]
    held: Floats
    osl: Floats
    chunks: Floats
    together: Floats
    stretch: Floats
    passes: Floats


@dataclass(frozen=True)
class Seconds:
    """What cases take under some constants: TPOT, the bare step, and the prompt of a lone request [s]."""

    tpot: Floats
    step: Floats
    prompt: Floats
    profiles: tuple[Profile, ...]


def stack(cases: Sequence[Case]) -> Stack:
    """Gather the operators of all cases."""
    clockworks = tuple(dict.fromkeys(case.clockwork for case in cases))
    index = {clockwork: at for at, clockwork in enumerate(clockworks)}
    groups: dict[tuple[int, str, str], list[tuple[int, Work]]] = {}
    for at, case in enumerate(cases):
        for place, entry in _placed(at, case, len(cases)):
            key = (index[case.clockwork], entry.work.kind, entry.work.precision)
            groups.setdefault(key, []).append((place, entry.work))
    return Stack(
        cases=tuple(cases),
        clockworks=clockworks,
        gathered=tuple(_gather(key, members) for key, members in groups.items()),
        which=np.array([index[case.clockwork] for case in cases], dtype=np.int64),
        held=np.array([case.held for case in cases]),
        osl=np.array([case.osl for case in cases]),
        chunks=np.array([case.chunks for case in cases]),
        together=np.array([case.together for case in cases]),
        stretch=np.array([case.stretch for case in cases]),
        passes=np.array([case.passes for case in cases]),
    )


def _placed(at: int, case: Case, count: int) -> Iterator[tuple[int, Entry]]:
    """The operators of a case with the cell that their time is added to."""
    for part, name in enumerate(PARTS):
        for entry in getattr(case, name):
            yield part * count + at, entry


def _gather(key: tuple[int, str, str], members: Sequence[tuple[int, Work]]) -> Gathered:
    """Equal operators as one column."""
    columns = {name: np.array([_one(getattr(work, name)) for _, work in members]) for name in NUMBERS}
    place = np.array([place for place, _ in members], dtype=np.int64)
    return Gathered(key[0], Work(key[1], key[2], **columns), place)


def _one(column: object) -> float:
    """The one number of a column."""
    return float(np.asarray(column, dtype=float).reshape(-1)[0])


def clock(found: Stack, served: Serving) -> Seconds:
    """Clock all cases under serving constants, by the law and formulas of every plan."""
    profiles = tuple(measured(each.accelerator, each.engine, each.version, served) for each in found.clockworks)
    count = len(found.cases)
    total = np.zeros(len(PARTS) * count)
    for group in found.gathered:
        seconds = group.work.launches * launch_seconds(group.work, profiles[group.clockwork])
        total += np.bincount(group.place, seconds, total.size)
    alone, core, mixed, share, prompt = total.reshape(len(PARTS), count)
    phi = np.array([profile.phi for profile in profiles])[found.which]
    added = shared_prefill(mixed, alone, share, found.chunks, found.together)
    step = alone + core
    tpot = tpot_seconds(step, found.held, found.osl, added, phi)
    return Seconds(tpot * found.stretch, step * found.stretch, prompt * found.passes, profiles)
