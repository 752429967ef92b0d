"""Fleets of real scenarios: offers, plans, bills, failures, what stands in the way, and what is refused."""

from __future__ import annotations

from itertools import product
from math import ceil, comb, inf

import pytest

from planner.catalog.prices import default_price
from planner.errors import InputError
from planner.fleet import sentence
from planner.fleet.answer import Fleet
from planner.fleet.example import example
from planner.fleet.mix import fleet_of
from planner.fleet.names import stock_names
from planner.fleet.offers import bare, offers
from planner.fleet.prices import priced
from planner.fleet.question import FleetQuestion, PlaceLimit, Stock, TrafficClass
from planner.single import plan_of
from planner.specs.scenario import Scenario

CHAT = TrafficClass(
    name="Chat", scenario=Scenario(model="llama-3.1-8b", qps=50.0, weights="fp8"), precisions=("fp8", "bf16")
)
LARGE = TrafficClass(name="Large", scenario=Scenario(qps=6.0, weights="fp8", isl=2000, sla_ttft_ms=500.0))
H100, L40S = Stock(accelerator="h100-sxm", price=3.0), Stock(accelerator="l40s", price=1.0)


def asked(*classes: TrafficClass, stock: tuple[Stock, ...] = (H100, L40S), **more: object) -> FleetQuestion:
    return FleetQuestion(classes=classes or (CHAT, LARGE), stock=stock, **more)


def changed(question: FleetQuestion, **more: object) -> FleetQuestion:
    return FleetQuestion(**{**{name: getattr(question, name) for name in FleetQuestion.model_fields}, **more})


# --- offers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("traffic", [CHAT, LARGE], ids=lambda each: each.name)
@pytest.mark.parametrize("gpu", ["h100-sxm", "l40s"])
def test_offers_are_the_plans_that_none_dominates(traffic: TrafficClass, gpu: str) -> None:
    standing: dict[int, float] = {}
    for weights, tp, pp in product(traffic.weights, (1, 2, 4, 8), (1, 2, 3, 4, 6, 8)):
        if tp * pp <= 8:
            plan = plan_of(bare(traffic.scenario).with_(gpu=gpu, weights=weights, tp=tp, pp=pp))
            carried = plan.goodput_tok_s * 0.8 / traffic.scenario.osl if plan.goodput_tok_s else 0.0
            standing[tp * pp] = max(standing.get(tp * pp, 0.0), carried)
    best = {n: c for n, c in standing.items() if c > max((x for m, x in standing.items() if m < n), default=0.0)}
    small = [each for each in offers(traffic, gpu).replicas if each.gpus <= 8]
    assert {each.gpus: each.capacity for each in small} == pytest.approx(best)


def test_an_offer_is_a_plan_of_its_own() -> None:
    for each in offers(LARGE, "h100-sxm").replicas:
        plan = plan_of(each.scenario)
        assert plan.meets_sla
        assert plan.gpus_per_replica == each.gpus
        assert plan.goodput_tok_s == pytest.approx(each.capacity / each.scenario.load * each.scenario.osl)


def test_a_class_that_nothing_can_serve_says_why() -> None:
    hasty = TrafficClass(name="Hasty", scenario=Scenario(qps=1.0, weights="fp8", sla_tpot_ms=1.0))
    found = offers(hasty, "h100-sxm")
    assert found.replicas == ()
    assert "above the promise even at batch 1" in found.reason


# --- the mix ------------------------------------------------------------------------------------------


def cheapest(question: FleetQuestion) -> float:
    """Least dollars an hour by walking through all mixes of one class on replicas of at most 8 GPUs."""
    (traffic,) = question.classes
    kinds = [
        (each.capacity, each.gpus * priced(stock).price)
        for stock in question.stock
        for each in offers(traffic, stock.accelerator).replicas
        if each.gpus <= 8
    ]
    need = traffic.scenario.qps * (1 - 1e-6)
    best = min((ceil(need / capacity) + question.spare) * cost for capacity, cost in kinds)
    mixes: list[tuple[int, float, tuple[float, ...]]] = [(0, 0.0, ())]
    while mixes:
        first, cost, held = mixes.pop()
        if sum(sorted(held)[: max(len(held) - question.spare, 0)]) >= need:
            best = min(best, cost)
        else:
            more = ((at, cost + each, (*held, capacity)) for at, (capacity, each) in enumerate(kinds) if at >= first)
            mixes.extend(mix for mix in more if mix[1] < best)
    return best


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize("prices", [(3.0, 1.0), (2.2, 1.4)])
def test_a_fleet_of_real_scenarios_costs_what_enumeration_finds(spare: int, prices: tuple[float, float]) -> None:
    stock = (Stock(accelerator="h100-sxm", price=prices[0]), Stock(accelerator="h200-sxm", price=prices[1] + 2.0))
    question = asked(LARGE, stock=stock, spare=spare)
    assert fleet_of(question).usd_per_hour == pytest.approx(cheapest(question))


QUESTIONS = {
    "plain": asked(),
    "spare": asked(spare=1),
    "availability": asked(availability=0.99, target=0.999),
    "owned": asked(stock=(Stock(accelerator="h100-sxm", gpus=4, owned=True), L40S)),
    "budget": asked(budget=9.0),
    "instances": asked(stock=(Stock(accelerator="h100-sxm", price=3.0, instance=8),)),
    "tokens": asked(objective="goodput_tok_s", budget=9.0),
    "example": example(),
}


@pytest.fixture(params=QUESTIONS.values(), ids=QUESTIONS)
def fleet(request: pytest.FixtureRequest) -> Fleet:
    return fleet_of(request.param)


def test_every_plan_of_the_mix_says_the_same_numbers(fleet: Fleet) -> None:
    for group in fleet.groups:
        plan = plan_of(group.scenario)
        assert (plan.replicas, plan.gpus) == (group.replicas, group.gpus)
        assert plan.usd_per_hour == pytest.approx(group.usd_per_hour)
        assert plan.meets_sla
        assert plan.goodput_tok_s * plan.scenario.load / plan.scenario.osl == pytest.approx(group.capacity)


def test_the_bill_is_gpus_times_prices(fleet: Fleet) -> None:
    for at, taken in enumerate(fleet.taken):
        own = [group for group in fleet.groups if group.row == at]
        assert taken.used == sum(group.gpus for group in own)
        assert taken.billed == ceil(taken.used / taken.rate.instance) * taken.rate.instance
        assert taken.usd_per_hour == pytest.approx(taken.billed * (0.0 if taken.stock.owned else taken.rate.price))
        if taken.stock.gpus is not None:
            assert taken.idle == taken.stock.gpus - taken.billed >= 0
    assert fleet.usd_per_hour == pytest.approx(sum(each.usd_per_hour for each in fleet.taken))
    assert fleet.usd_per_month == pytest.approx(fleet.usd_per_hour * 730)
    assert fleet.usd_per_hour <= (fleet.question.budget or inf) + 1e-6


def test_traffic_is_divided_by_capacity(fleet: Fleet) -> None:
    for served in fleet.served:
        own = [group for group in fleet.groups if group.traffic == served.traffic]
        assert sum(group.qps for group in own) == pytest.approx(served.qps)
        for group in own:
            assert group.scenario.qps == pytest.approx(group.qps, rel=1e-3)
            assert group.qps / (group.replicas * group.capacity) == pytest.approx(served.utilisation)


def test_one_failure_leaves_what_it_leaves(fleet: Fleet) -> None:
    for group in fleet.groups:
        own = [each for each in fleet.groups if each.traffic == group.traffic]
        left = sum(each.replicas * each.capacity for each in own) - group.capacity
        served = sum(each.qps for each in own)
        load = group.traffic.scenario.load
        assert group.failure.capacity == pytest.approx(left, abs=1e-9)
        assert group.failure.lost == pytest.approx(max(served - left / load, 0.0), abs=1e-9)
        verdict = "holds" if served <= left * (1 + 1e-6) else "strained" if served <= left / load else "short"
        assert group.failure.after == verdict


def test_with_a_spare_any_one_replica_may_fail() -> None:
    fleet = fleet_of(QUESTIONS["spare"])
    assert fleet.feasible
    assert {group.failure.after for group in fleet.groups} == {"holds"}
    assert sentence.answer(fleet).endswith("; keeps serving if any one replica of each class fails.")
    assert sentence.answer(fleet_of(asked(spare=2))).endswith("; keeps serving if any two replicas of each class fail.")


@pytest.mark.parametrize("name", ["spare", "availability"])
def test_what_spares_cost_is_what_the_fleet_without_them_saves(name: str) -> None:
    fleet, bare = fleet_of(QUESTIONS[name]), fleet_of(QUESTIONS["plain"])
    assert fleet.spares_usd_per_hour == pytest.approx(fleet.usd_per_hour - bare.usd_per_hour)
    assert fleet.spares_usd_per_hour > 0
    assert f"Without spares it would be ${bare.usd_per_hour:.2f} an hour." in sentence.bill(fleet)
    assert bare.spares_usd_per_hour is None


def test_owned_gpus_are_used_before_money_is_spent() -> None:
    fleet = fleet_of(QUESTIONS["owned"])
    assert fleet.taken[0].usd_per_hour == 0.0
    assert fleet.usd_per_hour < fleet_of(QUESTIONS["plain"]).usd_per_hour


def test_answers_are_the_same_each_time() -> None:
    fleet_of.cache_clear()
    first = fleet_of(example())
    fleet_of.cache_clear()
    again = fleet_of(example())
    assert [group.scenario for group in first.groups] == [group.scenario for group in again.groups]


# --- what stands in the way -----------------------------------------------------------------------------


def relief(fleet: Fleet, limit: str) -> object:
    (found,) = [each for each in fleet.reliefs if each.limit == limit]
    return found


def test_the_budget_that_would_do_is_the_least_that_does() -> None:
    question = asked(budget=9.0)
    fleet = fleet_of(question)
    assert fleet.outcome == "impossible"
    needed = relief(fleet, "budget").usd_per_hour
    assert needed == pytest.approx(fleet_of(asked()).usd_per_hour)
    assert fleet_of(changed(question, budget=needed)).feasible
    assert not fleet_of(changed(question, budget=needed - 0.01)).feasible
    assert f"Budget: ${needed:.2f} an hour would do" in sentence.obstacles(fleet)[0]


def test_the_gpus_that_are_missing_are_the_fewest() -> None:
    stock = (Stock(accelerator="h100-sxm", gpus=2, price=3.0),)
    fleet = fleet_of(asked(LARGE, stock=stock))
    ((name, missing),) = relief(fleet, "stock").missing
    assert name == "H100 SXM 80 GB"
    for more, feasible in ((missing, True), (missing - 1, False)):
        there = (Stock(accelerator="h100-sxm", gpus=2 + more, price=3.0),)
        assert fleet_of(asked(LARGE, stock=there)).feasible is feasible


def test_a_limit_of_a_place_is_named_with_what_is_missing() -> None:
    stock = (
        Stock(accelerator="h100-sxm", price=3.0, place="eu-west"),
        Stock(accelerator="h200-sxm", price=3.5, place="eu-west"),
    )
    fleet = fleet_of(asked(LARGE, stock=stock, limits=(PlaceLimit(place="eu-west", gpus=1),)))
    ((name, missing),) = relief(fleet, "places").missing
    assert name == "eu-west"
    for more, feasible in ((missing, True), (missing - 1, False)):
        limits = (PlaceLimit(place="eu-west", gpus=1 + more),)
        assert fleet_of(asked(LARGE, stock=stock, limits=limits)).feasible is feasible


def test_what_cannot_be_served_whole_is_served_as_far_as_it_goes() -> None:
    fleet, tokens = fleet_of(QUESTIONS["budget"]), fleet_of(QUESTIONS["tokens"])
    assert fleet.goodput_tok_s == pytest.approx(tokens.goodput_tok_s)
    assert tokens.feasible
    short = [each for each in fleet.served if not each.whole]
    assert short
    for each in short:
        assert f"of {each.demand:g} requests/s of {each.traffic.name}" in sentence.answer(fleet)


def test_limits_that_only_do_together_are_told_together() -> None:
    stock = (Stock(accelerator="h100-sxm", gpus=1, price=3.0),)
    fleet = fleet_of(asked(LARGE, stock=stock, budget=3.0))
    assert [each.limit for each in fleet.reliefs] == ["all"]
    assert sentence.obstacles(fleet)[0].startswith("No single limit is enough. Together: ")


def test_a_class_without_any_offer_does_not_keep_the_others_from_being_served() -> None:
    hasty = TrafficClass(name="Hasty", scenario=Scenario(qps=1.0, weights="fp8", sla_tpot_ms=1.0))
    fleet = fleet_of(asked(CHAT, hasty))
    assert fleet.outcome == "impossible"
    assert [each.whole for each in fleet.served] == [True, False]
    assert fleet.without == ("Hasty",)
    assert sentence.answer(fleet).startswith("Hasty cannot be served: TPOT is at best ")
    assert sentence.answer(fleet).endswith("ms, SLA 1 ms.")
    assert sentence.proof(fleet).startswith("Not what was asked, but all the rest at least cost, ")


def fastest(traffic: TrafficClass, gpus: int, field: str) -> float:
    """Least time [ms] of one request over tensor and pipeline parallel degrees on H100 or L40S, by walking through plans."""
    scenario = bare(traffic.scenario).with_(at_batch=1)
    plans = [
        plan_of(scenario.with_(gpu=gpu, weights=weights, tp=tp, pp=pp))
        for gpu, weights in product(("h100-sxm", "l40s"), traffic.weights)
        for tp, pp in product((1, 2, 4, 8), (1, 2, 3, 4, 6, 8))
        if tp * pp <= gpus
    ]
    return min(getattr(each, field) for each in plans if each.fits and getattr(each, field) is not None)


@pytest.mark.parametrize("field", ["tpot_ms", "ttft_ms"])
def test_the_least_sla_that_can_be_kept_is_that_of_the_fastest_plan(field: str) -> None:
    hasty = TrafficClass(name="Hasty", scenario=LARGE.scenario.with_(**{f"sla_{field}": 0.5}))
    stock = (Stock(accelerator="h100-sxm", price=3.0, gpus=8), Stock(accelerator="l40s", price=1.0, gpus=8))
    found = fleet_of(asked(hasty, stock=stock)).served[0].needed
    best = fastest(hasty, 8, field)
    assert best <= getattr(found, field) <= best * 1.01
    assert getattr(found, "ttft_ms" if field == "tpot_ms" else "tpot_ms") is None
    assert fleet_of(asked(found.applied(hasty), stock=stock)).served[0].reason == ""


def test_both_times_give_way_where_neither_is_enough_and_none_where_nothing_fits() -> None:
    hasty = TrafficClass(name="Hasty", scenario=LARGE.scenario.with_(sla_tpot_ms=0.5, sla_ttft_ms=0.5))
    found = fleet_of(asked(hasty))
    assert found.served[0].needed.tpot_ms
    assert found.served[0].needed.ttft_ms
    assert " ms; TTFT is at best " in sentence.answer(found)
    large = fleet_of(asked(LARGE, stock=(Stock(accelerator="l4", price=1.0, gpus=1),)))
    assert large.served[0].needed is None


def test_what_is_said_of_a_class_that_gets_nothing_beside_another_limit() -> None:
    hasty = TrafficClass(name="Hasty", scenario=Scenario(qps=1.0, weights="fp8", sla_tpot_ms=1.0))
    fleet = fleet_of(asked(CHAT, hasty, budget=1.0))
    assert sentence.answer(fleet).startswith("Cannot serve all of it: at most ")
    tokens = fleet_of(asked(CHAT, hasty, objective="goodput_tok_s"))
    for each in (fleet, tokens):
        assert sentence.obstacles(each)[0].startswith("Hasty cannot be served: TPOT is at best ")


def test_owned_gpus_stay_idle_only_where_no_mix_with_them_costs_less() -> None:
    """Every mix, class by class: the least H200s beside each number of owned H100s, then whole instances of 8."""
    question = changed(example(), spare=0, availability=0.99, target=0.999)
    fleet = fleet_of(question)
    each = [_fewest(traffic, question) for traffic in question.classes]
    mixes = [
        (ceil(sum(pair[1] for pair in chosen) / 8), _owned(chosen))
        for chosen in product(*(one.items() for one in each))
        if _owned(chosen) <= 16
    ]
    fewest = min(instances for instances, _ in mixes)
    assert fleet.usd_per_hour == pytest.approx(fewest * 8 * priced(question.stock[1]).price)
    idle, spare = (taken.idle for taken in fleet.taken)
    assert 16 - idle in {owned for instances, owned in mixes if instances == fewest}
    assert idle > 0
    assert spare == 32
    assert f"{idle} owned GPUs are idle: no mix with more of them costs less, because rented" in sentence.idle(fleet)
    few = Stock(accelerator="h100-sxm", gpus=16 - idle, owned=True)
    busy = fleet_of(changed(question, stock=(few, *question.stock[1:])))
    assert busy.taken[0].idle == 0
    assert "owned" not in sentence.idle(busy)


def _owned(chosen: tuple[tuple[int, int], ...]) -> int:
    return sum(pair[0] for pair in chosen)


def _fewest(traffic: TrafficClass, question: FleetQuestion) -> dict[int, int]:
    """Fewest H200s that serve a class by the number of H100s, at most 16: replicas fail independently, the largest first."""
    kinds = [
        (at, each.gpus, each.capacity)
        for at, stock in enumerate(question.stock)
        for each in offers(traffic, stock.accelerator).replicas
        if each.gpus <= 16
    ]
    found: dict[int, int] = {}
    mixes: list[tuple[int, int, int, tuple[float, ...]]] = [(0, 0, 0, ())]
    while mixes:
        first, own, rented, held = mixes.pop()
        failed = next(k for k in range(len(held) + 1) if _up_to(k, len(held)) >= 0.999)
        if held and sum(sorted(held)[: len(held) - failed]) >= traffic.scenario.qps * (1 - 1e-6):
            found[own] = min(rented, found.get(own, rented))
            continue
        for kind, (at, gpus, capacity) in enumerate(kinds):
            more = (kind, own + gpus * (at == 0), rented + gpus * (at == 1), (*held, capacity))
            if kind >= first and more[1] <= 16 and more[2] < found.get(more[1], 24):
                mixes.append(more)
    return found


def _up_to(failures: int, replicas: int) -> float:
    """Probability that at most so many of the replicas fail, each up for 99 % of the time."""
    return sum(comb(replicas, k) * 0.01**k * 0.99 ** (replicas - k) for k in range(failures + 1))


def test_a_mix_that_was_not_proven_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.fleet.mix.solve", _never)
    fleet_of.cache_clear()
    fleet = fleet_of(asked(CHAT))
    fleet_of.cache_clear()
    assert fleet.outcome == "undecided"
    assert sentence.answer(fleet).startswith("Undecided: the time was over")


def _never(*_: object, **__: object) -> None:
    from planner.fleet.solve import UndecidedError

    raise UndecidedError


# --- prices and refusals ----------------------------------------------------------------------------------


def test_an_empty_price_is_the_catalogues_and_says_where_it_is_from() -> None:
    rate, default = priced(Stock(accelerator="h100-sxm")), default_price("h100-sxm")
    assert rate.price == default.usd_per_hour
    assert f"median of {default.count} on-demand prices" in rate.source
    assert priced(Stock(accelerator="h100-sxm", price=2.5)).source == "as given"
    assert priced(Stock(accelerator="h200-sxm", place="CoreWeave")).instance == 8
    assert priced(Stock(accelerator="h200-sxm", place="CoreWeave", instance=1)).instance == 1


def test_rows_that_would_be_called_the_same_are_numbered() -> None:
    stock = (Stock(accelerator="h100-sxm", price=3.0), Stock(accelerator="h100-sxm", price=2.0))
    assert stock_names(asked(stock=stock)) == ("H100 SXM 80 GB (1)", "H100 SXM 80 GB (2)")


@pytest.mark.parametrize(
    ("make", "field", "allowed"),
    [
        (lambda: Stock(accelerator="h2oo-sxm"), "accelerator", "did you mean"),
        (lambda: Stock(accelerator="h100-sxm", gpus=-1), "gpus", "whole number from 0"),
        (lambda: Stock(accelerator="h100-sxm", owned=True), "gpus", "must be given for GPUs that are owned"),
        (lambda: Stock(accelerator="h200-sxm", place="Lambda"), "price", "no on-demand price of h200-sxm at Lambda"),
        (lambda: Stock(accelerator="h100-sxm", place="=HYPERLINK(1)"), "place", "must be 1 to 40 letters"),
        (lambda: TrafficClass(name="<b>", scenario=Scenario(qps=1.0)), "name", "must be 1 to 40 letters"),
        (lambda: TrafficClass(name="a", scenario=Scenario()), "qps", "must be above 0"),
        (lambda: TrafficClass(name="a", scenario=Scenario(qps=1.0, osl=1)), "osl", "must be 2 or more"),
        (lambda: TrafficClass(name="a", scenario=Scenario(qps=1.0, model="gpt-5")), "model", "no model of the catalogue"),
        (lambda: TrafficClass(name="a", scenario=Scenario(qps=1.0, prefill="disaggregated")), "prefill", "colocated"),
        (lambda: TrafficClass(name="a", scenario=Scenario(qps=1.0), precisions=("fp8", "fp8")), "precisions", "once"),
        (lambda: asked(CHAT, CHAT), "name", "one class only"),
        (lambda: asked(spare=1, availability=0.9, target=0.9), "spare", "must be 0"),
        (lambda: asked(availability=0.9), "target", "must be given"),
        (lambda: asked(target=0.9), "availability", "must be given"),
        (lambda: asked(budget=float("nan")), "budget", "number from 0"),
        (lambda: asked(limits=(PlaceLimit(place="mars", gpus=1),)), "place", "that the stock names"),
        (lambda: asked(stock=()), "stock", "1 to 12 rows"),
        (lambda: asked(stock=(H100,) * 13), "stock", "1 to 12 rows"),
        (lambda: asked(colour="red"), "colour", "not a field of a fleet"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_field_and_what_is_allowed(make: object, field: str, allowed: str) -> None:
    with pytest.raises(InputError) as error:
        make()
    (fault,) = error.value.faults
    assert fault.field == field
    assert allowed in fault.allowed
