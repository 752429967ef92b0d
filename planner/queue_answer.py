"""What queue theory says of a plan, as figures under the names that JSON, the terminal and the page use."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Final

from planner.plan import Plan
from planner.promised import Queue, queue_of
from planner.spares import spares_for
from planner.specs.scenario import Scenario

FAILURE_HOURS: Final = 50_700.0
"""GPU-hours between two failures: 16,384 H100 for 54 days had 419 unexpected interruptions (Llama 3, arXiv:2407.21783, 2024)."""

REPAIR_SECONDS: Final = 300.0
"""Time until a failed replica serves again, where nobody says another: a restart, not a repair; assumed [s]."""

AVAILABILITY: Final = 0.999
"""Share of time in which as many replicas as are needed must be up, where nobody says another."""

Figure = bool | int | float | str | None


def queue_figures(scenario: Scenario, plan: Plan) -> Mapping[str, Figure] | None:
    """The queue of a plan; None where it has no speed. Times in ms, rates in requests/s of one replica.

    Keys: `sla_pct`; `carried_qps` at the percentile, `saturation_qps` beyond which queues grow; `replicas_needed` for the
    asked rate, and `replicas_mean` that it takes on means; at the plan's own rate `rate_qps`, `batch_mean`, `batch_pct`,
    `wait_share`, `ttft_mean_ms`, `ttft_pct_ms`, `tpot_mean_ms`, `tpot_pct_ms`, `share_good`, `holds`; `in_flight` of the
    gateway; `spares` for `availability`; whether theory is `sure`, and `why` not.
    """
    found = queue_of(scenario)
    if found is None:
        return None
    now = found.now
    return {
        "sla_pct": found.pct,
        "carried_qps": found.carries,
        "saturation_qps": now.saturation,
        "replicas_needed": found.replicas,
        "replicas_mean": found.mean_replicas,
        "rate_qps": now.rate,
        "batch_mean": now.batch_mean,
        "batch_pct": now.batch_at,
        "wait_share": now.waits,
        "ttft_mean_ms": _milliseconds(now.ttft_mean),
        "ttft_pct_ms": _milliseconds(now.ttft),
        "tpot_mean_ms": _milliseconds(now.tpot_mean),
        "tpot_pct_ms": _milliseconds(now.tpot),
        "share_good": now.share,
        "holds": now.holds,
        "in_flight": int(found.batch),
        "spares": spares(found, plan),
        "availability": AVAILABILITY,
        "sure": now.sure,
        "why": now.why,
    }


def spares(found: Queue, plan: Plan) -> int | None:
    """Spare replicas for the availability, when one failure in so many GPU-hours takes a replica away until it restarts."""
    needed = found.replicas or found.mean_replicas
    return spares_for(needed, AVAILABILITY, plan.gpus_per_replica / FAILURE_HOURS, REPAIR_SECONDS / 3600.0)


def _milliseconds(seconds: float) -> float | None:
    """Seconds as milliseconds; None where nobody is ever served."""
    return seconds * 1e3 if isfinite(seconds) else None
