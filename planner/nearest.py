"""When a plan does not stand: the nearest scenario that fits, by layout first, then by the checkpoint's own precision."""

from __future__ import annotations

import functools

import numpy as np

from planner.candidates import candidates
from planner.catalog.accelerators import accelerators
from planner.catalog.engines import engine, engine_ids
from planner.errors import HeadroomError
from planner.evaluate import evaluate_setting
from planner.plan import Plans
from planner.setting import Setting, resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario

LARGEST_TP = 64
"""Where the search for a tensor-parallel degree stops."""

NARROWER = ("fp8", "int4")
"""Weight precisions that are tried when no layout fits, after the checkpoint's own."""


@functools.lru_cache(maxsize=256)
def nearest_fit(scenario: Scenario) -> Scenario | None:
    """The scenario with as little changed as makes it fit: layout, else weights, else accelerator.

    Of the layouts that fit, one that keeps the promise goes first, then the asked tp, then the smallest.
    Returns None when the engine refuses the scenario whatever the layout, or when nothing tried fits.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    plain = scenario.with_(pp=1, dp=1, ep=1, cp=1, dcp=1, at_batch=None, **_own_worker(scenario))
    setting = resolve(plain)
    return next((found for change in _changes(setting) if (found := _fitting(plain, change)) is not None), None)


@functools.lru_cache(maxsize=256)
def nearest_keeping(scenario: Scenario) -> Scenario | None:
    """The scenario with as little changed as makes it fit and keep its SLA: layout, else weights, else accelerator.

    Tried are the tensor-parallel degrees up to `LARGEST_TP` of every change that `nearest_fit` knows; None when none keeps it.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    plain = scenario.with_(pp=1, dp=1, ep=1, cp=1, dcp=1, at_batch=None, **_own_worker(scenario))
    changes = _changes(resolve(plain))
    return next((found for change in changes if (found := _keeping(plain, change)) is not None), None)


def _keeping(plain: Scenario, change: dict[str, str]) -> Scenario | None:
    """The scenario with one change, at the smallest TP that keeps the SLA; None when none does."""
    try:
        changed = plain.with_(**change)
        tp = keeping_tp(resolve(changed))
        return None if tp is None else changed.with_(tp=tp)
    except HeadroomError:
        return None


def _own_worker(scenario: Scenario) -> dict[str, None]:
    """A named prefill worker that cannot hold the model is left to the planner."""
    pool = resolve(scenario).pool
    return {"prefill_tp": None} if pool is not None and not (pool.fits and pool.admitted) else {}


def _changes(setting: Setting) -> list[dict[str, str]]:
    """What may be changed beside the layout, nearest first; the checkpoint's own precision before any other."""
    asked, gpu = setting.scenario, setting.gpu
    own = {"weights": setting.model.experts_precision or setting.model.precision}
    foreign = gpu.vendor not in setting.engine.vendors
    engines = [{"engine": name} for name in engine_ids() if foreign and gpu.vendor in engine(name).vendors]
    larger = [{"gpu": name} for name in _larger(setting)]
    narrower = [{"weights": word} for word in NARROWER if word != asked.weights]
    return [{}, *engines, own, *({**own, **more} for more in larger), *narrower, *larger]


def keeping_tp(setting: Setting) -> int | None:
    """The smallest tensor-parallel degree that fits and keeps the promise; None when none does."""
    table = _degrees(setting)
    keeping = table.tp[table.fits & table.engine_ok & table.meets_sla]
    return int(keeping[0]) if keeping.size else None


def _degrees(setting: Setting) -> Plans:
    """Plans at every tensor-parallel degree."""
    return evaluate_setting(setting, candidates(layout(tp=np.arange(1.0, LARGEST_TP + 1.0))))


def best_tp(setting: Setting) -> int | None:
    """The tensor-parallel degree to fall back to; None when one full-length sequence fits at none."""
    table = _degrees(setting)
    stands = table.fits & table.engine_ok
    good = stands & table.meets_sla
    fitting = table.tp[good if good.any() else stands]
    if setting.scenario.tp in fitting:
        return setting.scenario.tp
    return int(fitting[0]) if fitting.size else None


def _fitting(plain: Scenario, change: dict[str, str]) -> Scenario | None:
    """The scenario with one change, at its best fitting TP; None when none fits."""
    try:
        changed = plain.with_(**change)
        tp = best_tp(resolve(changed))
        return None if tp is None else changed.with_(tp=tp)
    except HeadroomError:
        return None


def _larger(setting: Setting) -> list[str]:
    """Accelerators of the same maker with measured kernels, a known domain and more memory, smallest first."""
    mine = setting.gpu
    more = [
        gpu
        for gpu in accelerators().values()
        if gpu.vendor == mine.vendor
        and gpu.borrows is None
        and gpu.scale_up_domain is not None
        and gpu.physical_memory > mine.physical_memory
    ]
    return [gpu.id for gpu in sorted(more, key=lambda gpu: gpu.physical_memory)]
