"""Time to first token and throughput of closed loops: the share of others' prompts that is waited for, by engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from planner.calibrate.clocked import Seconds, Stack
from planner.serving.baselines import request_seconds
from planner.serving.closed_loop import (
    admission_seconds,
    closed_loop_rate,
    first_token_seconds,
)
from planner.serving.prefill import unloaded_ttft

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SCALE = 0.3
"""Residual of log TTFT beyond which the loss grows linearly."""
RANGE = (1e-3, 2.0)
"""Shares that are considered."""


@dataclass(frozen=True)
class Loop:
    """Closed loops as columns over the cases: seconds by the law and what was measured (NaN where not stated)."""

    unloaded: Floats
    step: Floats
    held: Floats
    prompt: Floats
    running: Floats
    in_flight: Floats
    osl: Floats
    gpus: Floats
    tpot: Floats
    ttft_measured: Floats
    rate_measured: Floats

    def first(self, wait: Floats | float) -> Floats:
        """TTFT of admitted requests [s]."""
        return np.asarray(first_token_seconds(self.unloaded, self.step, self.held, self.prompt, wait))

    def ttft(self, wait: Floats | float) -> Floats:
        """TTFT with the wait for a slot [s]."""
        first = self.first(wait)
        residence = request_seconds(first, self.tpot, self.osl)
        return np.asarray(first + admission_seconds(self.in_flight, self.running, residence))

    def rate(self, wait: Floats | float) -> Floats:
        """Output tokens a second a GPU."""
        residence = request_seconds(self.first(wait), self.tpot, self.osl)
        return np.asarray(closed_loop_rate(self.running, self.osl, residence) / self.gpus)


def loop(found: Stack, seconds: Seconds, tpot: Floats) -> Loop:
    """The closed loops of a stack; `tpot` is the prediction that throughput is made of [s]."""
    cases, profiles = found.cases, [seconds.profiles[at] for at in found.which.tolist()]
    each = zip(seconds.prompt.tolist(), profiles, strict=True)
    unloaded = [
        float(unloaded_ttft(np.full(1, prompt), p.ttft_fixed, p.ttft_factor, p.ttft_ceiling)[0]) for prompt, p in each
    ]
    return Loop(
        unloaded=np.array(unloaded),
        step=tpot,
        held=found.held,
        prompt=seconds.prompt,
        running=np.array([case.batch for case in cases]),
        in_flight=np.array([case.in_flight for case in cases]),
        osl=found.osl,
        gpus=np.array([case.gpus for case in cases]),
        tpot=tpot,
        ttft_measured=np.array([case.ttft for case in cases]),
        rate_measured=np.array([case.rate for case in cases]),
    )


def waits(loops: Loop, engines: NDArray[np.str_], weights: Floats) -> dict[str, float]:
    """The share of others' prompts that one waits for, by engine; `weights` as in the fit of TPOT."""
    stated = np.isfinite(loops.ttft_measured) & (loops.ttft_measured > 0.0) & (weights > 0.0)
    return {
        engine: _share(loops, stated & (engines == engine), weights) for engine in sorted(set(engines[stated].tolist()))
    }


def waits_of_folds(
    loops: Loop, engines: NDArray[np.str_], weights: Floats, pairs: NDArray[np.str_]
) -> dict[str, list[float]]:
    """The same by fits that each leave one pair out."""
    found: dict[str, list[float]] = {engine: [] for engine in set(engines.tolist())}
    for pair in np.unique(pairs).tolist():
        for engine, share in waits(loops, engines, np.where(pairs == pair, 0.0, weights)).items():
            found[engine].append(share)
    return found


def _share(loops: Loop, group: Flags, weights: Floats) -> float:
    """The share that fits one group best, by its logarithm."""

    def loss(log_wait: float) -> float:
        off = np.log(loops.ttft(float(np.exp(log_wait)))[group] / loops.ttft_measured[group]) / SCALE
        return float(np.sum(weights[group] * (np.sqrt(1.0 + off**2) - 1.0)))

    found = minimize_scalar(loss, bounds=tuple(np.log(RANGE)), method="bounded")
    return float(np.exp(found.x))
