"""A judged block as rows of candidates: the objective, the limits of the question, and why a layout has no row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from planner.candidates import Flags
from planner.optimise.found import Found
from planner.optimise.question import Question
from planner.rows import OVERLOADED, REASONS, SLOW_FIRST, SLOW_TOKEN, promised_tpot
from planner.setting import Setting
from planner.specs.layout import Column, Layout
from planner.tabulate import Judged


def flat_rows(setting: Setting, question: Question, layout: Layout, made: Judged, source: int, pool: int = -1) -> Found:
    """A block as rows; whatever does not stand has the value inf, whatever is off the front no rate."""
    is_, cash, speed = made.verdicts, made.cash, made.speed
    shape = np.broadcast_shapes(made.batch.shape, cash.devices.shape)
    held = is_.fits & is_.engine_ok & (cash.devices <= question.max_gpus)
    stands = held & is_.flows & within(question, made) & (made.good > 0.0)
    on_time = held & is_.speaks & is_.sized & (speed.ttft <= setting.scenario.sla_ttft_ms / 1e3)
    value = objective(question, made)
    by_gpu = np.where(on_time, made.output / cash.productive, 0.0)
    priced = on_time & (cash.per_output > 0.0)
    by_dollar = np.where(priced, 1.0 / np.where(priced, cash.per_output, 1.0), 0.0)

    def flat(column: object) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(column), shape)).reshape(-1)

    count = int(np.prod(shape))
    good = np.where(made.good > 0.0, made.good / cash.productive, 0.0)
    return Found(
        np.full(count, source), np.full(count, pool),
        flat(layout.tp), flat(layout.pp), flat(layout.dp), flat(layout.ep), flat(layout.cp), flat(layout.dcp),
        flat(made.batch), flat(cash.serving), flat(cash.workers), flat(np.where(stands & ~np.isnan(value), value, np.inf)),
        flat(cash.devices), flat(good), flat(speed.tpot), flat(speed.tpot <= promised_tpot(setting)), flat(by_gpu),
        flat(by_dollar),
    )  # fmt: skip


def objective(question: Question, made: Judged) -> Column:
    """What is made small; the most good tokens with a minus."""
    if question.aim is not None:
        return limited(question.aim.field, made) * (1.0 if question.aim.at_most else -1.0)
    match question.objective:
        case "usd_per_m_goodput":
            return made.cash.per_good
        case "usd_per_hour":
            return made.cash.dollars
        case "gpus":
            return made.cash.devices
        case "tpot_ms":
            return made.speed.tpot
        case "ttft_ms":
            return made.speed.ttft
        case "goodput_tok_s":
            return -made.good * made.cash.serving


def within(question: Question, made: Judged) -> Flags:
    """Where every limit of the question holds; a value that is not known keeps none."""
    held = np.ones(np.broadcast_shapes(made.batch.shape, made.cash.devices.shape), dtype=np.bool_)
    for limit in question.limits:
        value = limited(limit.field, made)
        held &= np.asarray(value <= limit.value if limit.at_most else value >= limit.value)
    return held


def limited(field: str, made: Judged) -> Column:
    """The plan field that a limit speaks of, in its own unit."""
    cash, speed = made.cash, made.speed
    fields: dict[str, Callable[[], Column]] = {
        "tpot_ms": lambda: speed.tpot * 1e3,
        "ttft_ms": lambda: speed.ttft * 1e3,
        "batch": lambda: made.batch,
        "gpus": lambda: cash.devices,
        "gpus_per_replica": lambda: cash.replica,
        "replicas": lambda: cash.replicas,
        "output_tok_s": lambda: made.output,
        "goodput_tok_s": lambda: made.good,
        "goodput_tok_s_gpu": lambda: made.good / cash.productive,
        "usd_per_hour": lambda: cash.dollars,
        "usd_per_m_output": lambda: cash.per_output,
        "usd_per_m_goodput": lambda: cash.per_good,
    }
    return fields[field]()


def why_none(setting: Setting, question: Question, made: Judged, found: Found, count: int) -> Counter[tuple[str, str]]:
    """Why layouts of a block have no row that stands: the first reason that holds at all of their batches."""
    fallen = ~np.isfinite(found.value).reshape(count, -1).any(axis=1)
    first = {
        ("promise", REASONS[SLOW_FIRST]): made.speed.ttft > setting.scenario.sla_ttft_ms / 1e3,
        ("promise", REASONS[SLOW_TOKEN]): made.speed.tpot > promised_tpot(setting),
        ("budget", f"takes more than {question.max_gpus:,} GPUs"): made.cash.devices > question.max_gpus,
        ("promise", REASONS[OVERLOADED]): made.verdicts.overloaded,
        ("limit", "breaks a limit of the question"): ~within(question, made),
        ("price", "no price of the accelerator is known"): np.isnan(made.cash.dollars),
        ("batch", "no batch fits and keeps the promise within the GPUs"): np.ones((count, 1), dtype=np.bool_),
    }
    tally: Counter[tuple[str, str]] = Counter()
    for reason, flags in first.items():
        here = fallen & _everywhere(flags, count)
        tally[reason] += int(here.sum())
        fallen &= ~here
    return +tally


def _everywhere(flags: object, count: int) -> Flags:
    """Where every row of a layout is flagged."""
    table = np.asarray(flags)
    return np.broadcast_to(table.reshape(table.shape[0], -1).all(axis=1), (count,))
