"""Plans at a percentile: what a replica carries there sizes, judges and bills them."""

from __future__ import annotations

import json
import math

import pytest

from planner.export import to_json
from planner.promised import queue_of
from planner.queue_answer import queue_figures
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.variants import outcome

BUSY = Scenario(tp=4, sla_ttft_ms=300.0, qps=20.0)
LONE = Scenario(model="llama-3.1-8b", isl=512, sla_tpot_ms=30.0, sla_ttft_ms=500.0)
RANKS = Scenario(model="deepseek-v3", gpu="h200-sxm", weights="fp8-block", dp=8, ep=8, sla_ttft_ms=1000.0, qps=60.0)


def at(scenario: Scenario, pct: float, **more: object) -> Scenario:
    return scenario.with_(sla_pct=pct, **more)


def test_at_the_median_a_plan_is_that_of_means() -> None:
    plan = plan_of(BUSY)
    # cost of means: 20 requests/s · 256 tokens over what a replica makes, at a load of 0.8
    assert plan.replicas == math.ceil(20 * 256 / (0.8 * plan.output_tok_s))
    assert plan.goodput_tok_s == plan.output_tok_s
    assert not [note for note in plan.notes if note.code == "percentile"]


@pytest.mark.parametrize("pct", [90.0, 99.0])
def test_replicas_are_those_that_carry_the_rate(pct: float) -> None:
    plan, queue = plan_of(at(BUSY, pct)), queue_of(at(BUSY, pct))
    assert plan.replicas == max(math.ceil(20 / queue.carries), plan_of(BUSY).replicas)
    assert plan.gpus == 4 * plan.replicas
    assert plan.meets_sla
    assert plan.goodput_tok_s == pytest.approx(min(queue.carries * 256, plan.output_tok_s))
    # every token of the rate is good, so they share the whole bill
    assert plan.usd_per_m_goodput == pytest.approx(plan.usd_per_hour / (20 * 256 * 3600 / 1e6))


def test_a_higher_percentile_never_takes_fewer_replicas() -> None:
    counts = [plan_of(at(BUSY, pct)).replicas for pct in (50.0, 75.0, 90.0, 95.0, 99.0)]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_a_replica_that_holds_at_its_rate_is_one_that_the_plan_relies_on() -> None:
    queue = queue_of(at(BUSY, 99.0))
    assert queue.now.rate == pytest.approx(20 / plan_of(at(BUSY, 99.0)).replicas)
    assert queue.now.holds
    assert queue.now.ttft <= 0.3


def test_without_a_rate_good_tokens_are_what_a_replica_carries() -> None:
    plan, means, queue = plan_of(at(LONE, 99.0)), plan_of(LONE), queue_of(at(LONE, 99.0))
    assert queue.carries * 256 < means.output_tok_s
    assert plan.goodput_tok_s == pytest.approx(queue.carries * 256)
    assert plan.usd_per_m_goodput == pytest.approx(plan.usd_per_hour / (queue.carries * 256 * 3600 / 1e6))
    assert plan.output_tok_s == means.output_tok_s


def test_fixed_replicas_are_judged_not_changed() -> None:
    needed = plan_of(at(BUSY, 99.0)).replicas
    few, enough = (plan_of(at(BUSY, 99.0, fix_replicas=count)) for count in (needed - 1, needed))
    assert (few.replicas, few.meets_sla, few.goodput_tok_s, few.usd_per_m_goodput) == (needed - 1, False, 0.0, None)
    assert few.reason.startswith("queues break the promise")
    assert (enough.replicas, enough.meets_sla) == (needed, True)


def test_a_promise_that_only_means_keep_is_broken() -> None:
    unloaded = plan_of(BUSY).ttft_unloaded_ms
    tight = at(BUSY, 99.0, sla_ttft_ms=round(unloaded) + 11.0)
    assert plan_of(tight.with_(sla_pct=50.0)).meets_sla
    assert plan_of(tight).replicas is None or plan_of(tight).replicas > 100


def test_spares_come_on_top() -> None:
    assert plan_of(at(BUSY, 99.0, spare=2)).replicas == plan_of(at(BUSY, 99.0)).replicas + 2


def test_a_row_and_a_plan_say_the_same() -> None:
    plan, row = plan_of(at(BUSY, 99.0)), outcome(at(BUSY, 99.0))
    assert (row.replicas, row.gpus, row.goodput_tok_s, row.usd_per_m_goodput) == (
        plan.replicas, plan.gpus, plan.goodput_tok_s, plan.usd_per_m_goodput,
    )  # fmt: skip


def test_ranks_that_do_not_read_in_step_are_told_of() -> None:
    (note,) = (each for each in plan_of(RANKS).notes if each.code == "ranks_apart")
    assert "requests/s" in note.text
    assert not [each for each in plan_of(BUSY).notes if each.code == "ranks_apart"]


def test_the_queue_is_part_of_the_document() -> None:
    told = json.loads(to_json(plan_of(at(BUSY, 99.0))))["queue"]
    assert told["sla_pct"] == 99.0
    assert told["carried_qps"] <= told["saturation_qps"]
    assert told["replicas_needed"] == plan_of(at(BUSY, 99.0)).replicas
    assert told["holds"] is True
    assert json.loads(to_json(plan_of(Scenario(tp=1, gpu="rtx-4090"))))["queue"] is None


def test_spares_are_the_binomials() -> None:
    found = queue_figures(at(BUSY, 99.0), plan_of(at(BUSY, 99.0)))
    needed = found["replicas_needed"]
    # four GPUs fail once in 50,700 / 4 hours and are back after 1/12 h: down for 6.57e-6 of the time
    down = (4 / 50_700 / 12) / (1 + 4 / 50_700 / 12)
    spares = found["spares"]

    def up(count: int) -> float:
        return sum(math.comb(count, k) * down**k * (1 - down) ** (count - k) for k in range(count - needed + 1))

    assert up(needed + spares) >= 0.999
    assert spares == 0 or up(needed + spares - 1) < 0.999
