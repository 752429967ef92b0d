"""Fitness: what a population of candidates is worth, as one column; candidates that do not stand come after all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, cast

import numpy as np

from planner.errors import Fault, InputError
from planner.optimise.question import LARGEST, Limit, Question
from planner.optimise.ranges import DEGREES, Axis, Population, Space, population
from planner.optimise.worth import worth
from planner.plan import Column, Plans
from planner.rows import bounds
from planner.setting import Setting, resolve
from planner.specs.layout import Layout
from planner.specs.scenario import Scenario
from planner.tabulate import table
from planner.work import ONE

REFUSED: Final = 1e9
"""Where candidates that do not stand begin; above, it grows with what they miss, so that a search finds its way back."""

WORST: Final = 100.0
"""Most that one missed limit adds."""

STAYS: Final = -1.0
"""Stands for a category that does not vary."""

LISTS: Final = {
    "gpu": "accelerators", "weights": "precisions", "kv": "caches", "prefill": "modes", "chunk": "chunks", "spec": "drafts",
    "prefill_gpu": "prefill_accelerators",
}  # fmt: skip
"""Scenario fields and the lists of a question that name values for them."""


@dataclass(frozen=True)
class Fitness:
    """How candidates of a space are judged.

    Attributes:
        question: objective, GPUs that there are, further limits.
        space: what varies; asked: the scenario that everything is a variation of.
    """

    question: Question
    space: Space
    asked: Scenario

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """What varies."""
        return self.space.axes

    @property
    def sign(self) -> float:
        """−1 where the objective is made large: a search makes small."""
        return -1.0 if self.question.objective in LARGEST else 1.0

    @property
    def fills(self) -> bool:
        """Whether replicas fill the GPUs that there are: most good tokens, no rate, no number of replicas, one pool."""
        asked = self.asked
        free = asked.qps == 0 and asked.fix_replicas is None and asked.prefill != "disaggregated"
        return self.question.objective in LARGEST and free

    def energies(self, numbers: Column) -> Column:
        """What is made small, for candidates of shape (axes, n).

        Chunk and memory share are columns like the others, except where a prefill pool is made for them: then there is one
        evaluation for each pair of their values.
        """
        tried = population(self.axes, numbers)
        if self.asked.prefill != "disaggregated":
            return self._group(self._columns(tried), tried)
        pairs = np.hstack([tried.of("chunk", STAYS), tried.of("util", STAYS)])
        distinct, group = np.unique(pairs, axis=0, return_inverse=True)
        energy = np.empty(tried.shape[0])
        for index, (chunk, util) in enumerate(distinct):
            at = np.flatnonzero(group.reshape(-1) == index)
            energy[at] = self._group(resolve(self._named(chunk, util)), tried.rows(at))
        return energy

    def _columns(self, tried: Population) -> Setting:
        """One setting for all candidates: formulas broadcast, so a column stands where a scenario has one number."""
        setting = resolve(self._named(STAYS, STAYS))
        chunk, util = tried.columns.get("chunk"), tried.columns.get("util")
        if util is not None:
            setting = replace(setting, utilisation=cast(Any, util))
        if chunk is None:
            return setting
        work, budget = setting.prompt, setting.token_budget if setting.convention.overheads else np.inf
        size: Any = np.minimum(work.tokens, np.minimum(chunk, budget))
        cut = replace(work, chunk=size, chunks=work.tokens / size)
        here = None if setting.decoding.prompt is None else cut
        return replace(setting, prompt=cut, decoding=replace(setting.decoding, prompt=here))

    def scenario(self, numbers: Column) -> Scenario:
        """The plan that one candidate is, everything named; numbers of shape (axes,)."""
        values = {axis.name: float(axis.values(numbers[at : at + 1])[0]) for at, axis in enumerate(self.axes)}
        named: dict[str, Any] = {name: getattr(self.space, name)[0] for name in DEGREES}
        named |= {name: round(value) for name, value in values.items() if name not in ("util", "batch")}
        if "util" in values:
            named["util"] = round(values["util"], 2)
        if "batch" in values:
            named["at_batch"] = round(values["batch"])
        if self.fills:
            at = Layout(*(np.full((1, 1), float(named[name])) for name in DEGREES))
            named["fix_replicas"] = int(self._filling(at)[0, 0])
        return self.asked.with_(**named)

    def _named(self, chunk: float, util: float) -> Scenario:
        """The scenario of one pair of categories, in which fixed sizes are named: columns take their place."""
        named: dict[str, Any] = {name: 1 for name in ("prefill_workers", "decode_workers") if getattr(self.space, name)}
        if self.fills:
            named["fix_replicas"] = 1
        if chunk != STAYS:
            named["chunk"] = round(chunk)
        if util != STAYS:
            named["util"] = round(util, 2)
        return self.asked.with_(**named)

    def _filling(self, at: Layout) -> Column:
        """Replicas that fill the GPUs that there are, spares left out."""
        return np.asarray(np.maximum(np.floor(self.question.max_gpus / at.devices) - self.asked.spare, 1.0))

    def _group(self, setting: Setting, tried: Population) -> Column:
        """Energies of candidates of one setting."""
        at, batch = tried.layout(self.space), tried.columns.get("batch")
        if batch is None and self.asked.at_batch is not None:
            batch = np.full(tried.shape, float(self.asked.at_batch))
        serving, workers = tried.columns.get("decode_workers"), tried.columns.get("prefill_workers")
        known = bounds(setting, at, None if batch is None else ONE)
        plans = table(setting, known, batch, self._filling(at) if self.fills else serving, workers)
        value = self.sign * worth(plans, self.question.objective, self.asked)
        missing = self._missing(plans)
        return np.where(np.isfinite(value) & (missing == 0.0), value, REFUSED * (1.0 + missing))

    def _missing(self, plans: Plans) -> Column:
        """By how much candidates miss what must hold; 0 where everything does."""
        budget = float(self.question.max_gpus)
        parts = [
            _over(plans.gpus_per_replica, budget),
            np.where(np.isnan(plans.gpus), 0.0, _over(plans.gpus, budget)),
            _over(plans.tpot_ms, self.asked.sla_tpot_ms),
            _over(plans.ttft_ms, self.asked.sla_ttft_ms),
            _over(plans.batch, np.maximum(plans.b_max_kv, 0.5)),
            np.where(plans.kv_pool_bytes > 0.0, 0.0, plans.weights_bytes / plans.usable_bytes),
            np.where(plans.engine_ok & plans.fits & plans.meets_sla, 0.0, 1.0),
            *(_broken(limit, plans) for limit in self.question.limits),
        ]
        return np.asarray(np.sum(parts, axis=0))


def _over(column: Column, limit: Column | float) -> Column:
    """By what share a column exceeds a limit, at most `WORST`; that where it has no number."""
    share = np.clip(column / limit - 1.0, 0.0, WORST)
    return np.where(np.isnan(share), WORST, share)


def _broken(limit: Limit, plans: Plans) -> Column:
    """By what share a further limit is missed."""
    column: Column = getattr(plans, limit.field)
    if limit.at_most:
        return (
            _over(column, max(limit.value, 1e-12)) if limit.value > 0 else np.where(column <= limit.value, 0.0, WORST)
        )
    short = np.clip(1.0 - column / limit.value, 0.0, WORST) if limit.value > 0 else np.zeros(column.shape)
    return np.where(np.isnan(short), WORST, short)


def fitness(question: Question, space: Space) -> Fitness:
    """How a question judges candidates of a space.

    Raises:
        InputError: where the question lists several accelerators, precisions or other categories, or the space is none.
    """
    several = [name for name in LISTS.values() if len(getattr(question, name)) > 1]
    if several:
        text = "must name one value at most: evolution searches numbers"
        raise InputError(tuple(Fault(name, ", ".join(map(str, getattr(question, name))), text) for name in several))
    named: dict[str, Any] = {
        field: getattr(question, name)[0] for field, name in LISTS.items() if getattr(question, name)
    }
    if space.batch is not None:
        named["at_batch"] = None
    if space.decode_workers is not None:
        named["fix_replicas"] = None
    asked = question.scenario.with_(**named)
    space.check(asked)
    if space.chunk is not None:
        asked.with_(chunk=space.chunk[1])
    return Fitness(question, space, asked)
