"""A fleet as CSV (a plan of the mix a row, which reads back as scenarios), as JSON and as a link."""

from __future__ import annotations

import json

from planner import export
from planner.export import Json
from planner.fleet import sentence
from planner.fleet.answer import Fleet, Group, Relief, Served, Taken
from planner.fleet.names import stock_names
from planner.fleet.spelling import PARAMETER, spelled, to_token
from planner.plan import PLAN_FIELDS
from planner.share import pinned, to_link
from planner.single import plan_of


def link(fleet: Fleet, base: str = "") -> str:
    """The link to a fleet: what was asked, as one token.

    Raises:
        InputError: when it is longer than a token may hold.
    """
    return f"{base}?{PARAMETER}={to_token(fleet.question)}"


def to_csv(fleet: Fleet, base: str = "") -> str:
    """One row per plan of the mix, with its class and stock in front.

    Args:
        fleet: the answer.
        base: what stands before `?` in the `link` column: the address of the Plan page.
    """
    names = stock_names(fleet.question)
    plans = [plan_of(group.scenario) for group in fleet.groups]
    return export.to_csv(plans, base, [(group.traffic.name, names[group.row]) for group in fleet.groups])


def to_json(fleet: Fleet, base: str = "", plan_base: str = "") -> str:
    """Question and answer as a JSON object; `base` and `plan_base`: addresses of the Fleet and of the Plan page."""
    return json.dumps(document(fleet, base, plan_base), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(fleet: Fleet, base: str = "", plan_base: str = "") -> dict[str, Json]:
    """Question and answer as the JSON object that `to_json` writes."""
    names = stock_names(fleet.question)
    stop = fleet.stop
    return {
        "question": spelled(fleet.question),
        "answer": sentence.answer(fleet),
        "obstacles": sentence.obstacles(fleet),
        "outcome": fleet.outcome,
        "usd_per_hour": fleet.usd_per_hour,
        "usd_per_month": fleet.usd_per_month,
        "spares_usd_per_hour": fleet.spares_usd_per_hour,
        "gpus": fleet.gpus,
        "goodput_tok_s": fleet.goodput_tok_s,
        "mix": [_group(group, names, plan_base) for group in fleet.groups],
        "classes": [_served(each) for each in fleet.served],
        "stock": [_taken(name, each) for name, each in zip(names, fleet.taken, strict=True)],
        "reliefs": [_relief(each) for each in fleet.reliefs],
        "solver": {"proven": stop.proven, "ties_settled": stop.settled, "gap": stop.gap, "seconds": stop.seconds},
        "link": link(fleet, base),
    }


def _group(group: Group, names: tuple[str, ...], base: str) -> dict[str, Json]:
    """One plan of the mix, with its plan fields and its own link."""
    plan, found = plan_of(group.scenario), group.failure
    return {
        "traffic": group.traffic.name,
        "stock": names[group.row],
        "served_qps": group.qps,
        "capacity_qps": group.capacity,
        "one_failed_replica": {"after": found.after, "capacity_qps": found.capacity, "lost_qps": found.lost},
        "scenario": group.scenario.model_dump(mode="json", exclude_defaults=True),
        **{field: getattr(plan, field) for field in PLAN_FIELDS},
        "link": to_link(pinned(group.scenario), base),
    }


def _served(each: Served) -> dict[str, Json]:
    """One class of traffic."""
    return {
        "name": each.traffic.name,
        "qps": each.demand,
        "served_qps": each.qps,
        "capacity_qps": each.capacity,
        "kept_qps": each.kept,
        "utilisation": each.utilisation,
        "replicas": each.replicas,
        "gpus": each.gpus,
        "failures_borne": each.failures,
        "reason": each.reason,
        "sla_that_would_do": None if each.needed is None else dict(vars(each.needed)),
    }


def _taken(name: str, each: Taken) -> dict[str, Json]:
    """One row of stock."""
    return {
        "name": name,
        "price": each.rate.price,
        "price_source": each.rate.source,
        "instance": each.rate.instance,
        "used_gpus": each.used,
        "billed_gpus": each.billed,
        "idle_gpus": each.idle,
        "usd_per_hour": each.usd_per_hour,
    }


def _relief(each: Relief) -> dict[str, Json]:
    """What one limit would have to give."""
    return {"limit": each.limit, "usd_per_hour": each.usd_per_hour, "missing_gpus": dict(each.missing)}
