"""The arithmetic of one plan, from the code itself: every formula that the plan used, with its numbers, part by part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from planner.candidates import candidates
from planner.evaluate import evaluate_setting
from planner.formula import Call, Formula, Line, Recording, Worked, explain, number, recording
from planner.physics.roofline import launch_seconds, pass_seconds, terms
from planner.physics.stages import fullest_mix
from planner.physics.weights import end_bytes, layer_bytes, stored_bytes, weight_bytes
from planner.pools import prefill_pool
from planner.rows import room, speed_at, unloaded_ttft
from planner.serving import decode
from planner.setting import Setting, resolve
from planner.specs.layout import Layout, layout
from planner.specs.scenario import Scenario
from planner.subjects import CLOCK, EXPERTS, Timed, held_names, pass_subjects, room_subjects, timed, vector_params
from planner.work import Column

GROUPS: Final = ("memory", "attention", "matrices", "law", "serving", "cost")
"""Kinds of formulas, in the order of the planner's own reasoning."""

UNLISTED: Final = "not listed above"
"""What a sum says of a difference that its summands do not explain."""

_GROUP_OF: Final = {
    "physics.memory": "memory",
    "physics.profiling": "memory",
    "physics.weights": "memory",
    "physics.kv": "memory",
    "physics.attention": "attention",
    "physics.ffn": "matrices",
    "physics.comms": "law",
    "physics.roofline": "law",
    "serving.cost": "cost",
}


@dataclass(frozen=True)
class Part:
    """One part of a plan's arithmetic.

    Attributes:
        title: what is worked out.
        note: what the reader should know about the numbers in it.
        worked: its formulas in the order in which they ran; sums over layers and operators stand among them.
    """

    title: str
    note: str
    worked: tuple[Worked, ...]


def group_of(formula: Formula) -> str:
    """The group that a formula belongs to."""
    return _GROUP_OF.get(formula.module.removeprefix("planner."), "serving")


@lru_cache(maxsize=32)
def arithmetic(scenario: Scenario) -> tuple[Part, ...]:
    """The formulas of a plan with its numbers; the parts that a plan does not reach are left out.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    setting = resolve(scenario)
    asked = setting.scenario
    at = candidates(layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp)).layout
    row = evaluate_setting(
        setting, candidates(at, None if asked.at_batch is None else np.full((1, 1), float(asked.at_batch)))
    )
    parts = [_memory(setting, at)]
    if np.isfinite(row.ttft_unloaded_ms[0]):
        parts += _timed_parts(setting, at, np.maximum(row.batch[None, :], 1.0))
    return _without_repeats(parts)


def _memory(setting: Setting, at: Layout) -> Part:
    """What one device holds."""
    taken, space = _recorded(lambda: room(setting, at))
    about = room_subjects(
        taken, setting.model, setting.cache, ("every sequence at full length", "sequences of mean length")
    )
    worked = explain(taken.calls, about)
    if setting.model.nominal_params is None:
        worked = _after(
            worked, ("matrix_bytes", "expert_bytes"), _weights_sum(setting, at, taken, _first(space.weights))
        )
    return Part("Memory of one device", "", worked)


def _timed_parts(setting: Setting, at: Layout, batch: Column) -> list[Part]:
    """TTFT of a lone prompt, the decode step at the operating point, and what follows from them."""
    clock = decode.clock(setting.decoding, at, together=False)
    lone, unloaded = _recorded(lambda: _first_token(setting, clock))
    alone = decode.clock(replace(setting.decoding, prompt=None, draft=None, overlap=False), at, together=False)
    step, _ = _recorded(lambda: decode.tpot(alone, batch))
    bill, _ = _recorded(lambda: evaluate_setting(setting, candidates(at, batch)))
    chunk, size = f"{number(setting.prompt.chunk)} prompt tokens a step", f"{number(batch)} sequences per replica"
    context = f"{size}, mean context {number(setting.decoding.context)} tokens"
    return [
        Part("A lone prompt", chunk, _pass(setting, lone, timed(lone))),
        Part("The decode step", context, _pass(setting, step, timed(step))),
        *_verified(setting, clock, batch),
        _with_prefill(setting, at, batch, unloaded, len(timed(step))),
        Part("Cost", size, explain(call for call in bill.calls if group_of(call.formula) == "cost")),
    ]


def _first_token(setting: Setting, clock: decode.Clock) -> Column:
    """TTFT of a lone request; a prefill pool's own prompt is worked out again, so that it is seen."""
    if setting.pool is not None:
        prefill_pool(setting, together=False)
    return unloaded_ttft(setting, clock)


def _verified(setting: Setting, clock: decode.Clock, batch: Column) -> list[Part]:
    """The pass that verifies a draft, operator by operator; nothing without one."""
    draft = setting.decoding.draft
    if draft is None or setting.decoding.overlap:
        return []
    held = decode.held_batch(clock, batch)
    taken, _ = _recorded(lambda: decode.verification(clock, batch, draft))
    note = f"{number(held)} sequences a rank, {number(draft.tokens + 1.0)} tokens each"
    return [Part("The verification", note, _pass(setting, taken, timed(taken)))]


def _with_prefill(setting: Setting, at: Layout, batch: Column, unloaded: Column, known: int) -> Part:
    """What other requests' prompts add to the step, whose `known` operators are clocked again on the way.

    Operators of a verification, or of two micro-batches, have parts of their own or are not added up.
    """
    with recording() as taken:
        clock = decode.clock(setting.decoding, at, together=False)
        before = len(timed(taken))
        speed_at(setting, clock, batch, unloaded)
    again = known if setting.decoding.draft is not None else 0
    found = timed(taken)
    added = () if setting.decoding.overlap else found[before + known : len(found) - again]
    notes = (_ADDED if added else "", _ONE_TOKEN if setting.scenario.osl == 1 else "")
    return Part("TPOT, TTFT and throughput", "; ".join(filter(None, notes)), _pass(setting, taken, added))


_ADDED: Final = "mixed: the sum below; own: a chunk's attention, as under a lone prompt"
_ONE_TOKEN: Final = "requests of one output token have no TPOT: the plan leaves it empty"


def _recorded(run: Callable[[], Any]) -> tuple[Recording, Any]:
    """What a computation called, and what it gave."""
    with recording() as taken:
        result = run()
    return taken, result


def _pass(setting: Setting, taken: Recording, operators: Sequence[Timed]) -> tuple[Worked, ...]:
    """The formulas of a pass, and how these operators add up."""
    worked = explain(taken.calls, pass_subjects(taken))
    if not operators:
        return worked
    total = _seconds_sum(operators, setting) if setting.profile.per_operator else _textbook_sum(operators, setting)
    clocked = {each.formula.name for each in worked if each.formula.module == CLOCK}
    return _after(
        worked,
        clocked if setting.profile.per_operator else clocked - {"law_seconds", "corner_seconds", "summed_law_seconds"},
        total,
    )


def _after(worked: tuple[Worked, ...], names: Collection[str], total: Worked) -> tuple[Worked, ...]:
    """Formulas with a sum put behind the last one that has one of these names."""
    last = max((at for at, each in enumerate(worked) if each.formula.name in names), default=-1) + 1
    return (*worked[:last], total, *worked[last:])


def _seconds_sum(operators: Sequence[Timed], setting: Setting) -> Worked:
    """Operators clocked one by one: launches times seconds of each, as calibrated, added up."""
    seconds = [_first(launch_seconds(operator.entry.work, setting.profile)) for operator in operators]
    lines, total = _products(operators, seconds, setting.profile.scale)
    return _sum(pass_seconds, "s", lines, total)


def _textbook_sum(operators: Sequence[Timed], setting: Setting) -> Worked:
    """The textbook clocks once: compute and memory times of all operators add up, the law is applied to the sums."""
    both = [terms(operator.entry.work, setting.profile) for operator in operators]
    compute, computed = _products(operators, [_first(each[0]) for each in both])
    memory, moved = _products(operators, [_first(each[1]) for each in both])
    ends = (("compute", computed), ("memory", moved))
    first, second = (Line(name, "the sum of these", "", number(total), "s") for name, total in ends)
    return Worked(_formula_of(pass_seconds, "s"), (*compute, first, *memory, second))


def _products(operators: Sequence[Timed], seconds: Sequence[float], scale: float = 1.0) -> tuple[list[Line], float]:
    """Launches times seconds of each operator, times the calibration's factor where there is one, and their sum."""
    lines, total = [], 0.0
    expression = "launches * seconds" if scale == 1.0 else "launches * seconds * calibration"
    factor = "" if scale == 1.0 else f" * {number(scale)}"
    for operator, each in zip(operators, seconds, strict=True):
        launches = _first(operator.entry.work.launches)
        numbers, taken = f"{number(launches)} * {number(each)}{factor}", launches * scale * each
        lines.append(Line(operator.entry.name, expression, numbers, number(taken), "s"))
        total += taken
    return lines, total


def _sum(function: Callable[..., Any], unit: str, lines: Iterable[Line], total: float) -> Worked:
    """A sum that stands between formulas: its summands and their total."""
    entry = _formula_of(function, unit)
    return Worked(entry, (*lines, Line(entry.name, "the sum of these", "", number(total), unit)))


def _formula_of(function: Callable[..., Any], unit: str) -> Formula:
    """A function of the planner as the formula that a sum is shown as."""
    doc = (function.__doc__ or "").split("\n\n")[0].strip()
    return Formula(
        function.__name__, function.__module__, "definition: a sum over what was worked out above", unit, doc, function
    )


def _weights_sum(setting: Setting, at: Layout, taken: Recording, total: float) -> Worked:
    """How the matrices of all layers, the two ends of the model and its vectors make up a device's weights."""
    plain = stored_bytes(setting.machine.formats.plain, setting.convention)
    matrices = tuple(_held(setting, at, taken.calls))
    ends, vectors = _first(end_bytes(setting.model, plain, at)), plain * _vectors(setting, at)
    lines = [_held_line(name, factors) for name, factors in matrices]
    lines.append(Line("embedding and head", "split over the vocabulary", "", number(ends), "B"))
    lines.append(Line("norms, biases, vision", "held whole, some towers split", "", number(vectors), "B"))
    rest = total - ends - vectors - sum(prod(factors) for _, factors in matrices)
    if abs(rest) > 1e-9 * total:
        lines.append(Line(UNLISTED, "the total less all of these", "", number(rest), "B"))
    return _sum(weight_bytes, "B", lines, total)


def _held_line(name: str, factors: Sequence[float]) -> Line:
    """One matrix's line of the sum; only experts are padded."""
    padded = len(factors) > 2 and factors[2] != 1.0
    shown = factors if padded else factors[:2]
    expression = "layers * bytes * padding" if padded else "layers * bytes"
    return Line(name, expression, " * ".join(number(factor) for factor in shown), number(prod(factors)), "B")


def _held(setting: Setting, at: Layout, calls: Sequence[Call]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Name, layers, bytes a layer and padding of each matrix and of the experts, group by group of equal layers."""
    names = ("matrix_bytes", "expert_bytes", "tile_padding")
    stored = (_first(call.result) for call in calls if call.formula.name in names)
    for group, layers in zip(setting.model.groups, _stage(setting, at), strict=True):
        for name in held_names(group):
            padding = (next(stored),) if name == EXPERTS else ()
            yield name, (layers, next(stored), *padding)


def _stage(setting: Setting, at: Layout) -> tuple[float, ...]:
    """Layers of each group on the fullest pipeline stage."""
    model, kinds, convention = setting.model, setting.machine.formats, setting.convention
    copies = float(setting.scenario.redundant)
    layers = [_first(layer_bytes(group, kinds, at, copies, convention)) for group in model.groups]
    return fullest_mix(model, layers, int(_first(at.pp)))


def _vectors(setting: Setting, at: Layout) -> float:
    """Parameters outside matrices on a rank: norms, biases, vision towers (split or whole by their family)."""
    model = setting.model
    mix = zip(_stage(setting, at), model.groups, strict=True)
    layers = sum(count * vector_params(group) for count, group in mix)
    tables = 0 if setting.convention.nominal_bytes else model.table_params
    vision = (model.vision_params or 0) / min(_first(at.tp), model.vision_shards)
    return float(layers) + model.final_params + tables + vision


def _first(column: object) -> float:
    """The first number of a column."""
    return float(np.asarray(column).reshape(-1)[0])


def _without_repeats(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Parts with what an earlier part has shown left out; parts that then hold nothing are left out too."""
    seen: set[tuple[str, tuple[Line, ...]]] = set()
    found = []
    for part in parts:
        fresh = tuple(each for each in part.worked if (each.formula.name, each.lines) not in seen)
        seen |= {(each.formula.name, each.lines) for each in fresh}
        found.append(replace(part, worked=fresh))
    return tuple(part for part in found if part.worked)
