"""The arithmetic of one plan, from the code itself: every formula that the plan used, with its numbers, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from planner.candidates import candidates
from planner.evaluate import evaluate_setting
from planner.formula import Call, Formula, Line, Recording, Worked, explain, number, recording
from planner.physics.roofline import pass_seconds
from planner.physics.weights import end_bytes, stored_bytes, weight_bytes
from planner.rows import room, speed_at, unloaded_ttft
from planner.serving import decode
from planner.setting import Setting, resolve
from planner.specs.layout import Layout, layout
from planner.specs.scenario import Scenario
from planner.subjects import CLOCK, Timed, held_names, pass_subjects, room_subjects, timed
from planner.work import Column

GROUPS: Final = ("memory", "attention", "matrices", "law", "serving", "cost")
"""Kinds of formulas, in the order of the planner's own reasoning."""

_GROUP_OF: Final = {
    "physics.memory": "memory",
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
    row = evaluate_setting(setting, candidates(at, None if asked.at_batch is None else np.full((1, 1), float(asked.at_batch))))
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
    alone = decode.clock(replace(setting.decoding, prompt=None), at, together=False)
    lone, unloaded = _recorded(lambda: unloaded_ttft(setting, alone))
    step, _ = _recorded(lambda: decode.tpot(alone, batch))
    whole, _ = _recorded(lambda: speed_at(setting, decode.clock(setting.decoding, at, together=False), batch, unloaded))
    bill, _ = _recorded(lambda: evaluate_setting(setting, candidates(at, batch)))
    operators = len(timed(step))
    size = f"{number(batch)} sequences per replica"
    prompts = f"{size}; prefill_cost is what a prompt adds to the time of the matrices, and its own attention"
    return [
        Part("A lone prompt", f"{number(setting.prompt.chunk)} prompt tokens a step", _pass(setting, lone, 0)),
        Part(
            "The decode step",
            f"{size}, mean context {number(setting.decoding.context)} tokens",
            _pass(setting, step, 0),
        ),
        Part("TPOT, TTFT and throughput", prompts, _pass(setting, whole, operators)),
        Part("Cost", size, explain(call for call in bill.calls if group_of(call.formula) == "cost")),
    ]


def _recorded(run: Callable[[], Any]) -> tuple[Recording, Any]:
    """What a computation called, and what it gave."""
    with recording() as taken:
        result = run()
    return taken, result


def _pass(setting: Setting, taken: Recording, shown: int) -> tuple[Worked, ...]:
    """The formulas of a pass, and how its operators add up, the first `shown` of them left out."""
    operators = timed(taken)[shown:]
    worked = explain(taken.calls, pass_subjects(taken))
    if not operators:
        return worked
    total = (
        _seconds_sum(operators, taken.calls) if setting.profile.per_operator else _textbook_sum(operators, taken.calls)
    )
    return _after(worked, tuple(each.formula.name for each in worked if each.formula.module == CLOCK), total)


def _after(worked: tuple[Worked, ...], names: tuple[str, ...], total: Worked) -> tuple[Worked, ...]:
    """Formulas with a sum put behind the last one that has one of these names."""
    last = max((at for at, each in enumerate(worked) if each.formula.name in names), default=-1) + 1
    return (*worked[:last], total, *worked[last:])


def _seconds_sum(operators: Sequence[Timed], calls: Sequence[Call]) -> Worked:
    """Operators clocked one by one: launches times seconds of each, added up."""
    seconds = [_launch_seconds(operator, calls) for operator in operators]
    lines = [_product(operator, each, "s") for operator, each in zip(operators, seconds, strict=True)]
    total = sum(_first(operator.entry.work.launches) * each for operator, each in zip(operators, seconds, strict=True))
    return _sum(pass_seconds, "s", lines, total)


def _launch_seconds(operator: Timed, calls: Sequence[Call]) -> float:
    """Seconds of one launch: its law, and its extra term where it has one."""
    ends = ("law_seconds", "rise_seconds", "collective_seconds", "host_seconds")
    return sum(_first(calls[at].result) for at in operator.calls if calls[at].formula.name in ends)


def _textbook_sum(operators: Sequence[Timed], calls: Sequence[Call]) -> Worked:
    """The textbook clocks once: compute and memory times of all operators add up, the law is applied to the sums."""
    lines: list[Line] = []
    for name in ("compute_seconds", "memory_seconds"):
        each = [_named_result(operator, calls, name) for operator in operators]
        lines += [_product(operator, value, "s") for operator, value in zip(operators, each, strict=True)]
        total = sum(
            _first(operator.entry.work.launches) * value for operator, value in zip(operators, each, strict=True)
        )
        lines.append(Line(name.removesuffix("_seconds"), "the sum of these", "", number(total), "s"))
    return Worked(_formula_of(pass_seconds, "s"), tuple(lines))


def _named_result(operator: Timed, calls: Sequence[Call], name: str) -> float:
    return sum(_first(calls[at].result) for at in operator.calls if calls[at].formula.name == name)


def _product(operator: Timed, seconds: float, unit: str) -> Line:
    """One operator's line of a sum."""
    launches = _first(operator.entry.work.launches)
    numbers = f"{number(launches)} * {number(seconds)}"
    return Line(operator.entry.name, "launches * seconds", numbers, number(launches * seconds), unit)


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
    """How the matrices of all layers, the two ends of the model and what is left make up a device's weights."""
    plain = stored_bytes(setting.machine.formats.plain, setting.convention)
    matrices = tuple(_held(setting, at, taken.calls))
    ends = _first(end_bytes(setting.model, plain, at))
    rest = total - ends - sum(layers * each for _, layers, each in matrices)
    lines = [
        Line(name, "layers * bytes", f"{number(n)} * {number(each)}", number(n * each), "B")
        for name, n, each in matrices
    ]
    lines.append(Line("embedding and head", "split over the vocabulary", "", number(ends), "B"))
    lines.append(Line("norms, biases, vision", "held whole", "", number(rest), "B"))
    return _sum(weight_bytes, "B", lines, total)


def _held(setting: Setting, at: Layout, calls: Sequence[Call]) -> Iterator[tuple[str, float, float]]:
    """Name, layers and bytes a layer of each matrix and of the experts, group by group of equal layers."""
    stored = (_first(call.result) for call in calls if call.formula.name in ("matrix_bytes", "expert_bytes"))
    for group in setting.model.groups:
        layers = float(np.ceil(group.count / _first(at.pp)))
        for name in held_names(group):
            yield name, layers, next(stored)


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
