"""Queue theory against the simulator on the same step times: wherever theory calls itself sure it must be right.

Each scenario is simulated once with a few thousand requests, so a P99 rests on some forty of them: 25 % covers the chance in
it. Goodput is held against several promises at a time, each as theory judges it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from planner.queueing import Tails, at_rate
from planner.rows import bounds
from planner.setting import resolve
from planner.simulate import workload
from planner.simulate.run import ready
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.station import station

COUNT = 4000
"""Requests of a run."""

LLAMA, LARGE = {"model": "llama-3.1-8b"}, {"model": "llama-3.1-70b", "tp": 4}
QWEN = {"model": "qwen3-235b-a22b", "tp": 8}
DEEPSEEK = {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8", "tp": 8, "ep": 8}
APART = {"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8", "dp": 8, "ep": 8}

CASES = (
    (LLAMA, 128, 128, 0.6, 256, 0.0, 0.0), (LLAMA, 1024, 256, 0.8, 256, 0.0, 0.0), (LLAMA, 8192, 512, 0.45, 64, 0.0, 0.0),
    (LLAMA, 512, 64, 0.7, 64, 0.0, 0.5), (LLAMA, 128, 16, 0.89, 256, 0.0, 0.0), (LLAMA, 512, 256, 0.6, 256, 0.5, 0.5),
    ({**LLAMA, "gpu": "l40s"}, 2048, 256, 0.5, 64, 0.0, 0.0), ({**LLAMA, "prefill": "excluded"}, 1024, 256, 0.6, 64, 0.0, 0.0),
    (LARGE, 1024, 256, 0.6, 64, 0.0, 0.0), (LARGE, 4096, 128, 0.3, 64, 0.0, 0.0), (LARGE, 2048, 512, 0.7, 256, 0.0, 0.0),
    ({**LARGE, "prefill": "disaggregated"}, 1024, 256, 0.5, 64, 0.0, 0.0), (QWEN, 512, 256, 0.8, 256, 0.0, 0.0),
    (QWEN, 1024, 512, 0.45, 64, 0.0, 0.0), (DEEPSEEK, 512, 256, 0.7, 256, 0.0, 0.0), (DEEPSEEK, 2048, 512, 0.45, 256, 0.0, 0.0),
    (APART, 512, 256, 0.7, 64, 0.0, 0.0), (LARGE, 128, 128, 0.45, 16, 0.0, 0.0), (LARGE, 2048, 16, 0.45, 256, 0.0, 0.0),
)  # fmt: skip
"""(fields, isl, osl, load over saturation, batch, spread of input lengths, of output lengths)."""

PROMISES = tuple((ttft, tpot) for ttft in (0.2, 0.5, 1.0, 3.0) for tpot in (0.02, 0.035, 0.05, 0.1))
"""TTFT and TPOT [s]."""


@dataclass(frozen=True)
class Pair:
    """A scenario worked out and simulated; `promised`: the same by theory under each of `PROMISES`."""

    theory: Tails
    promised: tuple[Tails, ...]
    ttft: np.ndarray
    tpot: np.ndarray


@cache
def pair(at: int) -> Pair:
    fields, isl, osl, load, batch, isl_cv, osl_cv = CASES[at]
    far = {"sla_ttft_ms": 60_000.0, "sla_tpot_ms": 10_000.0, "sla_pct": 99.0, "fix_replicas": 1}
    asked = Scenario(**fields, isl=isl, osl=osl, **far)
    known = bounds(resolve(asked), of_layout(asked))
    asked = asked.with_(at_batch=int(min(batch, known.space.held[0, 0], known.limits.seats[0, 0])))
    setting = resolve(asked)
    one = station(setting, known, float(asked.at_batch or 1), isl_cv, osl_cv)
    rate = load * one.saturation
    promised = (replace(setting, scenario=asked.with_(sla_ttft_ms=a * 1e3, sla_tpot_ms=b * 1e3)) for a, b in PROMISES)
    traffic = Traffic(rate=rate, requests=COUNT, isl_cv=isl_cv, osl_cv=osl_cv, in_flight=asked.at_batch, seed=7 + at)
    run = ready(setting, plan_of(asked), traffic, workload.made(asked, traffic, rate))
    run.loop.run(None, None)
    found = run.outcome()
    ttft, tpot = found.ttft[found.counted], found.tpot[found.counted]
    theories = tuple(at_rate(replace(one, setting=each), rate, 99.0) for each in promised)
    return Pair(at_rate(one, rate, 99.0), theories, ttft, tpot)


def of_layout(asked: Scenario) -> Any:
    return layout(asked.tp, asked.pp, asked.dp, asked.ep, asked.cp, asked.dcp).tall


EACH = pytest.mark.parametrize("at", range(len(CASES)))


@EACH
def test_first_tokens_at_the_percentile(at):
    found = pair(at)
    if found.theory.sure:
        assert found.theory.ttft == pytest.approx(np.quantile(found.ttft, 0.99), rel=0.25)
        assert found.theory.ttft_mean == pytest.approx(found.ttft.mean(), rel=0.12)


@EACH
def test_tokens_at_the_mean(at):
    found = pair(at)
    if found.theory.sure:
        assert found.theory.tpot_mean == pytest.approx(found.tpot.mean(), rel=0.05)


@EACH
def test_goodput_of_every_promise(at):
    """The share of requests that keep it, within five of a hundred requests."""
    found = pair(at)
    for (ttft, tpot), theory in zip(PROMISES, found.promised, strict=True):
        if theory.sure:
            share = float(np.mean((found.ttft <= ttft) & (found.tpot <= tpot)))
            assert theory.share == pytest.approx(share, abs=0.05), (ttft, tpot)


def test_theory_is_sure_of_most():
    sure = [pair(at).theory.sure for at in range(len(CASES))]
    assert sum(sure) >= 0.7 * len(sure)
    assert np.mean([each.sure for at in range(len(CASES)) for each in pair(at).promised]) > 0.6
