"""The answer of a fleet in sentences: what it serves and costs, what is idle, what a failure does, what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planner.fleet.answer import Fleet, Group, Relief, Served
from planner.fleet.names import plan_name
from planner.specs.spelling import decimal
from planner.units import dollars, show, significant, whole

NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def answer(fleet: Fleet) -> str:
    """What the fleet serves, with how many GPUs, for how much; or what it cannot serve."""
    if fleet.outcome == "undecided":
        return "Undecided: the time was over before a fleet was found or shown to be impossible."
    if fleet.outcome == "impossible" and _only_unserved(fleet):
        return " ".join(unserved(each) for each in fleet.served if each.reason)
    if fleet.outcome == "impossible":
        return f"Cannot serve all of it: at most {listed([_part(each) for each in fleet.served if not each.whole])}."
    bill = f"{_gpus(fleet)} for {dollars(fleet.usd_per_hour)} an hour"
    if fleet.question.objective == "goodput_tok_s" and not fleet.all_served:
        asked = sum(each.demand * each.traffic.scenario.osl for each in fleet.served)
        share = show(fleet.goodput_tok_s / asked, "%")
        return f"Gives {significant(fleet.goodput_tok_s)} good tokens/s, {share} of what is asked, with {bill}."
    count = len(fleet.served)
    what = "its one class" if count == 1 else f"all {count} classes"
    return f"Serves {what} with {bill}{_borne(fleet)}."


def _gpus(fleet: Fleet) -> str:
    """GPUs that are taken, and how many of them are owned."""
    owned = sum(each.billed for each in fleet.taken if each.stock.owned)
    return show(fleet.gpus, "GPUs") + (f" ({'all' if owned == fleet.gpus else whole(owned)} owned)" if owned else "")


def _borne(fleet: Fleet) -> str:
    """Failures that the fleet bears."""
    question = fleet.question
    if question.spare:
        many = "any one replica" if question.spare == 1 else f"any {NUMBERS[question.spare]} replicas"
        return f"; keeps serving if {many} of each class fail{'s' if question.spare == 1 else ''}"
    if question.availability is not None and question.target is not None:
        return f"; each class is served whole at least {_share(question.target)} of the time"
    return ""


def _share(value: float) -> str:
    """A share as it was chosen."""
    return f"{decimal(round(value * 100, 6))} %"


def _part(served: Served) -> str:
    """How much of a class is served."""
    return f"{significant(served.qps)} of {decimal(served.demand)} requests/s of {served.traffic.name}"


def _only_unserved(fleet: Fleet) -> bool:
    """Whether what is missing are classes that nothing can serve, each of them wholly."""
    return bool(fleet.served) and all(each.whole or each.reason for each in fleet.served)


def unserved(served: Served) -> str:
    """Why a class gets nothing: how near the best replica comes to its SLA, or what else is in the way."""
    name, s, near = served.traffic.name, served.traffic.scenario, served.needed
    if near is None:
        return f"{name} cannot be served: {served.reason.replace('the promise', 'the SLA')}."
    best = ((near.tpot_ms, s.sla_tpot_ms, "TPOT"), (near.ttft_ms, s.sla_ttft_ms, "TTFT"))
    said = [f"{what} is at best {show(ms, 'ms')}, SLA {_ms(sla)}" for ms, sla, what in best if ms is not None]
    return f"{name} cannot be served: {'; '.join(said)}."


def _ms(value: float) -> str:
    """An SLA as it was asked for."""
    return f"{decimal(value)} ms"


def _eased(served: Served) -> str:
    """The least SLA that some replica would keep."""
    batch = whole(served.traffic.scenario.at_batch or 1)
    return (
        f"The least SLA that a replica here keeps for {served.traffic.name} is {least_sla(served)}, at batch {batch}."
    )


def least_sla(served: Served) -> str:
    """The least SLA that some replica would keep, as in `TPOT 3.1 ms`; empty where it is not the SLA that is in the way."""
    near = served.needed
    times = () if near is None else ((near.tpot_ms, "TPOT"), (near.ttft_ms, "TTFT"))
    return listed([f"{what} {_ms(ms)}" for ms, what in times if ms is not None])


def obstacles(fleet: Fleet) -> list[str]:
    """What stands in the way of a question without an answer, and the least that would do."""
    nothing = [each for each in fleet.served if each.reason]
    missing = [] if fleet.outcome == "impossible" and _only_unserved(fleet) else [unserved(each) for each in nothing]
    eased = [_eased(each) for each in nothing if each.needed]
    reliefs = [_relief(fleet, each) for each in fleet.reliefs]
    if fleet.outcome == "impossible" and not nothing and not reliefs:
        return ["No single limit is in the way, and together they are not enough: a class has at most 2,000 replicas."]
    return [*missing, *eased, *reliefs]


def _relief(fleet: Fleet, relief: Relief) -> str:
    """What one limit would have to give."""
    missing = listed([f"{whole(count)} more {name}" for name, count in relief.missing])
    bill = f"{dollars(relief.usd_per_hour)} an hour"
    budget = fleet.question.budget or 0.0
    match relief.limit:
        case "budget":
            return f"Budget: {bill} would do, {dollars(relief.usd_per_hour - budget)} more."
        case "stock":
            return f"GPUs: {missing} would do, for {bill}."
        case "places":
            return f"Providers and regions: {missing} GPUs would do, for {bill}."
        case "spares":
            return f"Spares: without any, all of it is served for {bill}."
        case "all":
            return f"No single limit is enough. Together: {f'{missing}, ' if missing else ''}{bill}."


def bill(fleet: Fleet) -> str:
    """The bill, by the hour and by the month."""
    whole_instances = sum((each.billed - each.used) * each.rate.price for each in fleet.taken)
    rest = f" {dollars(whole_instances)} of it for the unused rest of whole instances." if whole_instances > 0 else ""
    if fleet.spares_usd_per_hour is not None:
        rest += f" Without spares it would be {dollars(fleet.usd_per_hour - fleet.spares_usd_per_hour)} an hour."
    month = f"${fleet.usd_per_month:,.0f} a month of 730 hours"
    return f"{dollars(fleet.usd_per_hour)} an hour, {month}.{rest}"


def idle(fleet: Fleet) -> str:
    """GPUs that are not taken, and capacity that traffic does not use."""
    left = sum(each.idle for each in fleet.taken if each.idle is not None)
    capacity = sum(each.capacity * each.traffic.scenario.osl for each in fleet.served)
    used = sum(each.qps * each.traffic.scenario.osl for each in fleet.served)
    free = f" Traffic uses {show(used / capacity, '%')} of what the replicas may carry." if capacity else ""
    return (
        f"{show(left, 'GPUs')} of the limited stock {'is' if left == 1 else 'are'} not taken.{free}{_owned_idle(fleet)}"
    )


def _owned_idle(fleet: Fleet) -> str:
    """Why GPUs that cost nothing are idle while others are rented; empty where that is not so."""
    owned = sum(each.idle or 0 for each in fleet.taken if each.stock.owned)
    rented = [each for each in fleet.taken if each.billed and each.rate.price > 0]
    if not (owned and rented and fleet.feasible and fleet.stop.proven):
        return ""
    sizes = sorted({each.rate.instance for each in rented if each.rate.instance > 1})
    why = f", because rented GPUs come in instances of {listed([whole(size) for size in sizes])}" if sizes else ""
    idle_ = f"{whole(owned)} owned GPU{' is' if owned == 1 else 's are'} idle"
    return (
        f" {idle_}: no mix with more of them costs less{why}, and of equal bills the one with the fewest GPUs is taken."
    )


def failure(fleet: Fleet) -> str:
    """What the loss of one replica does at worst."""
    if not fleet.groups:
        return "There is no replica that could fail."
    worst = max(
        fleet.groups, key=lambda group: (group.failure.lost / group.qps if group.qps else 0.0, group.failure.load)
    )
    if worst.failure.after == "holds":
        return "Whichever one replica fails, the rest of its class stays within its usable share of throughput."
    if worst.failure.after == "strained":
        load = show(worst.failure.load, "%")
        return f"Whichever one replica fails, nothing is lost; {worst.traffic.name} then runs at up to {load} of its throughput."
    most = significant(worst.failure.lost)
    return f"At worst one {plan_name(worst)} replica fails: {worst.traffic.name} loses {most} requests/s."


def after(group: Group) -> str:
    """What the loss of one replica of a group does to its class, in words."""
    found, pct = group.failure, show(group.failure.load, "%")
    match found.after:
        case "holds":
            return f"Served, at {pct} of throughput"
        case "strained":
            return f"Served, but at {pct} of throughput: queues grow"
        case "short":
            return f"{significant(found.lost)} requests/s are lost" if found.capacity else "All of it is lost"


def proof(fleet: Fleet) -> str:
    """How the solver stopped."""
    stop = fleet.stop
    time = show(stop.seconds, "s")
    if not stop.proven:
        return f"Stopped by its time limit after {time}: something up to {show(stop.gap, '%')} better may exist."
    ties = "" if stop.settled else " Ties were not settled in time: an equal bill may have another mix."
    kinds = f"{whole(fleet.offers)} kind{'' if fleet.offers == 1 else 's'} of replicas"
    if fleet.outcome != "found":
        rest = "all the rest at least cost" if _only_unserved(fleet) else "as many good tokens as the limits allow"
        return f"Not what was asked, but {rest}, out of {kinds} in {time}.{ties}"
    return f"Proven best out of {kinds} in {time}.{ties}"


def listed(names: Sequence[str]) -> str:
    """Names in a list of words."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
