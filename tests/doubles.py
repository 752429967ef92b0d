"""Stand-ins for a search, importable by a worker process: they last, refuse, fail or vanish as a test needs it."""

from __future__ import annotations

import os
import time

from planner.errors import Fault, InputError
from planner.optimise.answer import Answer, Cancelled, Choice, FrontPoint, Progress, Refusals
from planner.optimise.question import Question
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui.worker import Report, Stop
from planner.variants import outcome


def count_to(parts: int, report: Report, stop: Stop) -> int:
    """Work for `parts` hundredths of a second, telling of each; the answer is the number of parts."""
    for done in range(parts):
        if stop():
            raise Cancelled("stopped")
        report(Progress(done, parts, 1000 * done, None if done < 2 else 1.0 / done))
        time.sleep(0.01)
    return parts


def pid(_: object, report: Report, stop: Stop) -> tuple[int, int]:
    """The process that works, and its niceness."""
    return os.getpid(), os.nice(0)


def refuse(_: object, report: Report, stop: Stop) -> None:
    """Refuse the subject as the planner does, with an error that does not survive the way between processes."""
    raise InputError((Fault("max_gpus", "0", "must be at least 1"),))


def fail(_: object, report: Report, stop: Stop) -> None:
    """A fault of the program."""
    raise ZeroDivisionError("a fault of the program")


def vanish(_: object, report: Report, stop: Stop) -> None:
    """What a machine without memory does to a process."""
    os._exit(9)


def tensor_only(question: Question, report: Report, stop: Stop) -> Answer:
    """A small, true search: tensor parallelism alone, each accelerator and precision, at the largest batch that keeps
    the promise; the front is made of the same plans at four batches each."""
    base = question.scenario
    space = [
        base.with_(gpu=gpu, weights=weights, tp=tp, pp=1, dp=1, ep=1, cp=1, dcp=1, prefill="colocated")
        for gpu in question.accelerators or (base.gpu,)
        for weights in question.precisions or (base.weights,)
        for tp in (1, 2, 4, 8)
    ]
    choices, front, fallen = [], [], 0
    for done, scenario in enumerate(space):
        if stop():
            raise Cancelled("stopped")
        report(Progress(done, len(space), 64 * done, min((each.value for each in choices), default=None)))
        found = outcome(scenario)
        if not found.stands or found.usd_per_m_goodput is None or (found.gpus or 0) > question.max_gpus:
            fallen += 1
            continue
        named = scenario.with_(at_batch=int(found.batch))
        kind = f"TP{scenario.tp} · {scenario.weights} · {scenario.gpu}"
        choices.append(Choice(named, kind, found.usd_per_m_goodput, outcome(named)))
        front += [
            _front_point(scenario.with_(at_batch=max(1, int(found.batch * share))), kind)
            for share in (0.1, 0.3, 1, 1.2)
        ]
    best = tuple(sorted(choices, key=lambda each: each.value))
    refused = (Refusals("memory", "the weights do not fit into the memory", fallen),) if fallen else ()
    return Answer(question, best, tuple(front), len(space), 64 * len(space), refused, 0.05)


def _front_point(scenario: Scenario, kind: str) -> FrontPoint:
    plan = plan_of(scenario)
    each = plan.output_tok_s / plan.gpus_per_replica
    keeps = plan.tpot_ms <= scenario.sla_tpot_ms
    return FrontPoint(
        scenario, kind, 1e3 / plan.tpot_ms, each, plan.usd_per_m_output, plan.batch, plan.gpus, keeps, keeps, True
    )


def slowly(question: Question, report: Report, stop: Stop) -> Answer:
    """The same, after ten seconds."""
    count_to(1000, report, stop)
    return tensor_only(question, report, stop)
