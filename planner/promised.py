"""A plan at the percentile that was promised: what a replica carries there, and how many replicas that takes.

At P50 a plan is judged on means, as the field does. At any other percentile queues decide: `queueing` says what a replica's
requests see at a rate, and the plan is sized, judged and billed by the largest rate at which the promise holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from planner.plan import Note, Plans
from planner.queueing import Tails, largest_rate, replicas_at, saturation, tails
from planner.rows import LATE, Bounds, bounds
from planner.setting import Setting, resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.tabulate import is_fixed, table
from planner.units import show

MEDIAN = 50.0
"""The percentile at which plans are judged on means."""

MOST_REPLICAS = 1_000_000
"""Replicas beyond which nobody counts."""


@dataclass(frozen=True)
class Queue:
    """What queue theory says of a plan: Poisson arrivals of equal lengths, one line at the gateway.

    Attributes:
        pct: the percentile.
        batch: requests in flight that a replica is given at most.
        carries: requests/s of one replica up to which the promise holds at the percentile; 0 where it never does.
        replicas: replicas that the asked rate needs so; None without a rate, or where no number does.
        mean_replicas: replicas of the plan on means.
        now: what requests see at the plan's own rate and replicas.
    """

    pct: float
    batch: float
    carries: float
    replicas: int | None
    mean_replicas: int
    now: Tails


def queue(setting: Setting, known: Bounds, row: Plans) -> Queue | None:
    """The queue of a one-row plan; None where it has no speed or no replicas."""
    asked, serving = setting.scenario, float(row.replicas[0]) - setting.scenario.spare
    rate, batch = float(row.output_tok_s[0]) / asked.osl, float(row.batch[0])
    if not (row.fits[0] and row.engine_ok[0] and serving >= 1.0 and rate > 0.0):
        return None
    needed = replicas_at(setting, known, batch=batch, pct=asked.sla_pct, qps=asked.qps) if asked.qps > 0.0 else None
    among = max(int(serving) if is_fixed(asked) else needed or int(serving), 1)
    carried = largest_rate(setting, known, batch=batch, pct=asked.sla_pct, among=among)
    sized = needed if needed is not None and asked.sla_pct != MEDIAN and not is_fixed(asked) else 0
    own = min(rate, carried) if asked.sla_pct != MEDIAN and carried > 0.0 else rate
    offered = asked.qps / max(serving, sized) if asked.qps > 0.0 else asked.load * own
    return Queue(
        pct=asked.sla_pct,
        batch=batch,
        carries=carried,
        replicas=None if needed is None or needed > MOST_REPLICAS else needed,
        mean_replicas=int(serving),
        now=shared(setting, serving, tails(setting, known, offered, batch=batch, pct=asked.sla_pct, among=among)),
    )


def shared(setting: Setting, serving: float, found: Tails) -> Tails:
    """Tails of one of several replicas: those that share a pool of prefill workers are better off than theory knows."""
    if setting.pool is None or serving <= 1.0:
        return found
    return replace(found, sure=False, why="all replicas share one pool of prefill workers, theory gives each its part")


@lru_cache(maxsize=256)
def queue_of(scenario: Scenario) -> Queue | None:
    """The queue of a scenario's plan as it is sized on means; None where it has no speed.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    setting, known = _known(scenario)
    return queue(setting, known, _on_means(setting, known))


def _known(scenario: Scenario) -> tuple[Setting, Bounds]:
    """A scenario's setting and the bounds of its layout."""
    setting, s = resolve(scenario), scenario
    return setting, bounds(setting, layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp).tall)


def _on_means(setting: Setting, known: Bounds, serving: float | None = None) -> Plans:
    """The plan's row on means, with its own replicas or with others."""
    at = setting.scenario.at_batch
    batch = None if at is None else np.full((1, 1), float(at))
    return table(setting, known, batch, None if serving is None else np.full((1, 1), serving))


def row_of(setting: Setting, known: Bounds) -> Plans:
    """The one row of a plan at its own operating point: on means at P50, else at its percentile."""
    row = _on_means(setting, known)
    if setting.scenario.sla_pct == MEDIAN or not row.meets_sla[0]:
        return row
    found = queue(setting, known, row)
    return row if found is None else _at_percentile(setting, known, row, found)


def _at_percentile(setting: Setting, known: Bounds, row: Plans, found: Queue) -> Plans:
    """A row that stands on means, sized and judged at its percentile."""
    asked = setting.scenario
    if found.carries <= 0.0:
        return _late(row)
    if is_fixed(asked) and asked.qps > 0.0 and asked.qps > found.carries * found.mean_replicas:
        return _late(row)
    if found.replicas is not None and found.replicas > found.mean_replicas and not is_fixed(asked):
        row = _on_means(setting, known, float(found.replicas))
    good = np.minimum(row.goodput_tok_s, found.carries * asked.osl)
    less = good / row.goodput_tok_s
    dearer = 1.0 if asked.qps > 0.0 else 1.0 / less
    return replace(
        row,
        goodput_tok_s=good,
        goodput_tok_s_gpu=row.goodput_tok_s_gpu * less,
        usd_per_m_goodput=row.usd_per_m_goodput * dearer,
    )


def _late(row: Plans) -> Plans:
    """A row whose promise is broken at its percentile."""
    none = np.zeros_like(row.goodput_tok_s)
    return replace(
        row,
        meets_sla=np.zeros_like(row.meets_sla),
        reason=np.full_like(row.reason, LATE),
        goodput_tok_s=none,
        goodput_tok_s_gpu=none,
        usd_per_m_goodput=np.full_like(row.usd_per_m_goodput, np.nan),
    )


def clause(sentence: str) -> str:
    """A sentence as a part of another."""
    return f"{sentence[:1].lower()}{sentence[1:].rstrip('.')}"


RANKS_SLOWER = 0.97
"""Share of a replica's throughput on means below which what it carries in open traffic is worth a remark."""


def remarks(setting: Setting, known: Bounds, row: Plans) -> tuple[Note, ...]:
    """What queues have to say about a plan: how it is sized at its percentile, or that its ranks do not read in step."""
    asked = setting.scenario
    if asked.sla_pct != MEDIAN:
        return _sizing(setting, known)
    layout_ = known.clock.placed.layout
    if float(layout_.dp[0, 0] * layout_.pp[0, 0]) <= 1.0 or not row.meets_sla[0] or setting.decoding.prompt is None:
        return ()
    rate = float(row.output_tok_s[0]) / asked.osl
    carried = saturation(setting, known, batch=float(row.batch[0]))
    if carried >= RANKS_SLOWER * rate:
        return ()
    text = (
        f"On means all ranks read prompts in the same steps. Requests that arrive at random do not fall so: a rank that reads "
        f"holds up the others, and a replica carries {show(carried)} requests/s instead of {show(rate)} before queues grow."
    )
    return (Note("ranks_apart", text, "dp"),)


def _sizing(setting: Setting, known: Bounds) -> tuple[Note, ...]:
    """How a plan is sized at a percentile other than P50."""
    asked = setting.scenario
    base = _on_means(setting, known)
    found = queue(setting, known, base) if base.meets_sla[0] else None
    if found is None:
        return ()
    at = f"P{asked.sla_pct:g}"
    if found.carries <= 0.0:
        text = f"On means the promise is kept; at {at} not even rare requests keep it, by queue theory."
        return (Note("percentile", text, "sla_pct"),)
    traffic = "Poisson arrivals, equal lengths, one line at the gateway"
    carried = f"By queue theory ({traffic}) a replica carries {show(found.carries)} requests/s at {at}"
    doubt = "" if found.now.sure else f" Theory is not sure here, so simulate it: {clause(found.now.why)}."
    if found.replicas is None:
        return (Note("percentile", f"{carried}.{doubt}", "sla_pct"),)
    means = f"on means, at a load of {show(asked.load, '%')}, {found.mean_replicas:,} would do"
    text = f"{carried}: the rate takes {show(float(found.replicas), 'replicas')}; {means}.{doubt}"
    return (Note("percentile", text, "sla_pct"),)
