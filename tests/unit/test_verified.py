"""The best of a search on trial: verdicts with their margins, the next that holds, more replicas, nothing that holds."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from planner.errors import InputError
from planner.optimise import trial, verified
from planner.optimise.answer import Answer, Cancelled, Progress
from planner.optimise.enlarged import key_of, within
from planner.optimise.margin import Share, dependence, share_of, wilson
from planner.optimise.question import Limit, Question
from planner.optimise.search import optimise
from planner.optimise.trial import Candidate, Trial, enough, tried
from planner.optimise.verdict import good_words, verdict
from planner.optimise.verified import Verified, beyond, first_places, verify
from planner.optimise.words import family_of
from planner.simulate.traffic import Traffic
from planner.single import plan_of
from planner.specs.scenario import Scenario

SMALL = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "weights": "fp8", "osl": 64, "sla_pct": 99.0}
HOLDS = Scenario(**SMALL, qps=10.0, sla_ttft_ms=500.0, sla_tpot_ms=20.0)
LIVELY = HOLDS.with_(qps=30.0)
"""One replica of the smallest layout carries it, as long as requests do not come in bursts."""
TIGHT = Scenario(**SMALL, qps=10.0, sla_ttft_ms=75.0, sla_tpot_ms=8.0)
"""On means the smallest layout keeps the TTFT; its P99 is a tenth above, unless ever so many replicas stand idle."""
BUSY = Scenario(**{**SMALL, "osl": 128}, isl=4096, load=1.0, qps=6.439, sla_ttft_ms=2000.0, sla_tpot_ms=12.0)
"""On means one replica would do, at 97 % of what it carries; at P99 it takes two."""
BURSTS = Traffic(arrival="gamma", cv=4.0)
"""Burstier than queue theory takes arrivals for: the times between them vary four times as much as at random."""
ONE_EACH = (Limit("gpus_per_replica", True, 1.0),)


def asked(scenario: Scenario, gpus: int = 4, **more: Any) -> Answer:
    return optimise(Question(scenario=scenario, max_gpus=gpus, **more))


# --- margins ----------------------------------------------------------------------------------------


def test_the_interval_of_a_share_is_wilsons() -> None:
    # Wilson 1927 by hand for 15 of 20 at z = 1.96: (0.75 + 0.0960) / 1.1921 ± 1.96 / 1.1921 · sqrt(0.009375 + 0.0024)
    low, high = wilson(0.75, 20)
    assert low == pytest.approx(0.5313, abs=5e-4)
    assert high == pytest.approx(0.8881, abs=5e-4)


def test_all_of_n_leaves_z_squared_over_n_plus_z_squared() -> None:
    low, high = wilson(1.0, 2000)
    assert high == pytest.approx(1.0)
    assert low == pytest.approx(2000 / (2000 + 1.959964**2))


def test_requests_that_fail_together_say_less_than_requests_that_fail_alone() -> None:
    together = np.ones(2000, dtype=np.bool_)
    together[1000:1200] = False
    apart = np.random.default_rng(5).permutation(together)
    assert dependence(apart) < 2.5
    # Two of twenty batches of 100 fail whole: means vary by 0.0947, independent ones would by 0.09 / 100.
    assert dependence(together) == pytest.approx(0.18 * 10 / 19 * 100 / 0.09, rel=1e-9)
    assert share_of(together).high - share_of(together).low > 3 * (share_of(apart).high - share_of(apart).low)


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(Share(0.995, 0.991, 0.998), True), (Share(0.98, 0.97, 0.989), False), (Share(0.99, 0.985, 0.994), None)],
)
def test_a_margin_decides(share: Share, verdict: bool | None) -> None:
    assert share.reaches(0.99) is verdict


def test_independent_shares_are_covered_as_often_as_promised() -> None:
    random = np.random.default_rng(7)
    inside = [share.low <= 0.99 <= share.high for share in (share_of(random.random(2000) < 0.99) for _ in range(400))]
    assert np.mean(inside) > 0.93


@pytest.mark.parametrize(
    ("pct", "counted"), [(50.0, 2000), (99.0, 2000), (99.5, 4000), (99.9, 20_000), (99.99, 20_000)]
)
def test_twenty_requests_may_break_the_promise_within_bounds(pct: float, counted: int) -> None:
    assert enough(HOLDS.with_(sla_pct=pct), Traffic())[0] == counted


def test_what_fills_the_system_is_twice_what_is_in_flight() -> None:
    scenario = HOLDS.with_(at_batch=32)
    plan = plan_of(scenario)
    stay = 10.0 * (plan.ttft_ms + 63 * plan.tpot_ms) / 1e3
    assert enough(scenario, Traffic())[1] == math.ceil(2 * stay)


# --- verdicts ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def failing() -> tuple[Answer, Verified]:
    answer = asked(LIVELY, 2)
    return answer, verify(answer, BURSTS)


def test_a_winner_that_holds_is_chosen() -> None:
    answer = asked(HOLDS, 2)
    found = verify(answer)
    assert found.chosen == answer.best[0].scenario
    assert found.dearer == pytest.approx(0.0)
    assert len(found.trials) == 3
    winner = found.winner
    assert winner is not None
    assert winner.holds
    assert winner.good == 1.0
    # All requests are good: the bill over the tokens of the traffic, but for the luck of 2,000 arrivals.
    assert winner.usd_per_m_good == pytest.approx(winner.usd_per_hour / (10.0 * 64 * 3600 / 1e6), rel=0.1)
    assert winner.billed == pytest.approx(winner.usd_per_m_goodput)
    assert verdict(found).startswith("The winner holds at P99 in simulation: TTFT ")


def test_the_winner_that_fails_in_bursts_holds_without_them(failing: tuple[Answer, Verified]) -> None:
    answer, _ = failing
    assert answer.best[0].outcome.stands, "queue theory says so"
    found = verify(answer, top=1)
    assert found.chosen == answer.best[0].scenario
    assert verdict(found).startswith("The winner holds at P99 in simulation: TTFT ")


def test_the_next_that_holds_is_taken_where_the_winner_fails(failing: tuple[Answer, Verified]) -> None:
    answer, found = failing
    winner, taken = found.winner, found.taken
    assert winner is not None
    assert winner.holds is False
    assert winner.ttft_at_pct_ms > 500.0
    assert winner.scenario == answer.best[0].scenario, "plans are tried as they were ranked"
    assert taken is not None
    assert taken.holds
    assert taken.ttft_at_pct_ms <= 500.0
    cheapest = min(each.billed for each in found.trials if each.holds)
    assert taken.billed == cheapest
    assert found.dearer == pytest.approx(taken.usd_per_hour / winner.usd_per_hour - 1), "the same rate: bills compare"
    said = verdict(found)
    assert said.startswith("The winner fails at P99 in simulation: TTFT ")
    assert f"The next that holds is {taken.kind}" in said


def test_everything_better_than_what_is_taken_was_tried(failing: tuple[Answer, Verified]) -> None:
    answer, found = failing
    taken = found.taken
    assert taken is not None
    scenarios = {each.scenario for each in found.trials}
    better = [each for each in answer.best if each.outcome.usd_per_hour < taken.usd_per_hour]
    assert better
    assert all(each.scenario in scenarios for each in better)


def test_a_winner_that_fails_holds_with_more_replicas() -> None:
    answer = asked(BUSY, 4, limits=ONE_EACH)
    found = verify(answer, BURSTS)
    winner, taken = found.winner, found.taken
    assert winner is not None
    assert taken is not None
    assert winner.holds is False
    assert (taken.rank, taken.more, taken.replicas) == (1, 1, 3)
    assert taken.rate == winner.rate == 6.439
    assert found.chosen == winner.scenario.with_(fix_replicas=3)
    assert found.dearer == pytest.approx(0.5), "three replicas cost half as much again as two"
    assert verdict(found).endswith("It holds with 3 replicas, at +50 % cost.")


def test_at_the_median_a_plan_on_means_may_fail() -> None:
    found = verify(asked(BUSY.with_(sla_pct=50.0, sla_ttft_ms=500.0), 2, limits=ONE_EACH))
    assert found.winner is not None
    assert (found.winner.replicas, found.winner.holds) == (1, False)
    assert verdict(found).startswith("The winner fails at P50 in simulation: TTFT ")
    assert verdict(found).endswith("It holds with 2 replicas, at +100 % cost.")


def test_the_money_of_a_trial_is_that_of_the_plan_that_was_simulated() -> None:
    answer = asked(BUSY, 4, limits=ONE_EACH)
    found = verify(answer)
    winner = found.winner
    assert winner is not None
    assert winner.holds
    assert winner.replicas == 2 == answer.best[0].outcome.replicas
    assert winner.usd_per_hour == answer.best[0].outcome.usd_per_hour
    key = key_of(answer.question, winner.scenario, winner.rate)
    assert key == (pytest.approx(winner.billed), 2.0)
    assert winner.billed == pytest.approx(winner.usd_per_hour / (6.439 * 128 * 3600 / 1e6))


@pytest.mark.parametrize("needed", [2, 3, 4, 6, 7, 11, 16, 17])
def test_the_fewest_replicas_that_hold_are_found(monkeypatch: pytest.MonkeyPatch, needed: int) -> None:
    answer = asked(HOLDS, 16, limits=ONE_EACH)
    answer = replace(answer, best=answer.best[:1])
    base = tried(Candidate(answer.best[0].scenario, "TP1", 1), Traffic())
    assert (base.replicas, base.gpus) == (1, 1)

    def holds_from(candidate: Candidate, traffic: Traffic, cancelled: object = None) -> Trial:
        count = 1 + candidate.more
        return made(base, scenario=candidate.scenario, more=candidate.more, replicas=count, holds=count >= needed)

    monkeypatch.setattr(verified, "tried", holds_from)
    found = verify(answer)
    if needed > 16:
        assert found.chosen is None
        assert len(found.trials) == 2, "the most that the budget allows settles it"
        return
    assert found.taken is not None
    assert found.taken.replicas == needed
    assert len(found.trials) <= 2 + 2 * 4
    assert len({each.scenario for each in found.trials}) == len(found.trials), "no plan is tried twice"


def test_fixed_replicas_are_not_added_to() -> None:
    answer = asked(TIGHT.with_(fix_replicas=1), 1)
    assert answer.winner is None
    assert not answer.beyond[0].outcome.stands, "queue theory says so, and the simulation that it is right"
    found = verify(answer)
    assert [(each.more, each.holds) for each in found.trials] == [(0, False)]
    assert found.chosen is None
    assert verdict(found).startswith("What comes nearest by queue theory fails at P99 in simulation: TTFT ")


def test_added_replicas_keep_the_budget_and_the_limits() -> None:
    question = Question(scenario=HOLDS, max_gpus=4, limits=(Limit("usd_per_hour", True, 11.0),))
    best = optimise(question).best[0].scenario
    price = plan_of(best).usd_per_hour / plan_of(best).gpus
    assert within(question, best.with_(fix_replicas=int(11.0 // price)))
    assert not within(question, best.with_(fix_replicas=int(11.0 // price) + 1))
    assert not within(Question(scenario=HOLDS, max_gpus=4), best.with_(fix_replicas=5))


@pytest.mark.parametrize(("needed", "taken"), [(2, 2), (3, 3), (4, 4), (5, None)])
def test_what_theory_sizes_beyond_the_budget_is_tried_within_it(
    monkeypatch: pytest.MonkeyPatch, needed: int, taken: int | None
) -> None:
    answer = asked(TIGHT, 4, limits=ONE_EACH)
    assert answer.winner is None
    (choice,) = answer.beyond
    assert choice == answer.nearest
    assert choice.outcome.gpus > 4
    base = tried(Candidate(choice.scenario.with_(fix_replicas=1), choice.kind, 1), Traffic())

    def holds_from(candidate: Candidate, traffic: Traffic, cancelled: object = None) -> Trial:
        count = candidate.scenario.fix_replicas
        assert count is not None
        assert count <= 4
        assert candidate.more == count - choice.outcome.replicas
        return made(base, scenario=candidate.scenario, more=candidate.more, replicas=count, holds=count >= needed)

    monkeypatch.setattr(verified, "tried", holds_from)
    found = verify(answer)
    assert found.oversized == choice
    assert found.winner is None
    assert (found.taken and found.taken.replicas) == taken
    gpus = f"{choice.outcome.gpus:.0f}"
    assert verdict(found).startswith(f"By queue theory what comes nearest takes {gpus} GPUs at P99, more than 4. ")
    said = (
        f"Within that {choice.kind} with {taken} replicas holds in simulation: "
        if taken
        else "Nothing within that holds"
    )
    assert said in verdict(found)


def test_what_theory_sizes_beyond_the_budget_is_never_taken_as_it_is() -> None:
    answer = asked(TIGHT, 1)
    found = verify(answer)
    (trial_,) = found.trials
    assert (trial_.replicas, trial_.gpus, trial_.holds) == (1, 1, False)
    assert trial_.more == 1 - answer.beyond[0].outcome.replicas
    assert found.chosen is None
    assert "more than 1. Nothing within that holds in simulation; nearest comes TP1" in verdict(found)


def test_a_limit_that_breaks_at_the_percentile_is_said() -> None:
    answer = asked(BUSY, 4, limits=(*ONE_EACH, Limit("usd_per_hour", True, 6.0)))
    assert answer.beyond[0].outcome.usd_per_hour > 6.0
    found = verify(answer)
    assert found.oversized is not None
    assert [each.replicas for each in found.trials] == [1]
    limits = "gpus_per_replica<=1, usd_per_hour<=6"
    assert verdict(found).startswith(f"By queue theory nothing keeps all limits at P99: {limits}.")


def test_nothing_holds_and_what_came_nearest_is_said() -> None:
    found = verify(asked(TIGHT, 2), BURSTS)
    assert found.chosen is None
    assert found.taken is None
    assert found.dearer is None
    assert all(each.holds is not True for each in found.trials)
    nearest = found.nearest
    assert nearest is not None
    assert nearest.over == min(each.over for each in found.trials) > 1
    assert "Nothing else that was tried holds" in verdict(found)


def test_without_an_answer_there_is_nothing_to_simulate() -> None:
    answer = asked(HOLDS.with_(sla_tpot_ms=1.0))
    found = verify(answer)
    assert (found.trials, found.chosen, found.winner, found.nearest) == ((), None, None, None)
    assert verdict(found) == "Nothing keeps all constraints: there is nothing to simulate."


def test_without_a_rate_each_plan_has_what_it_is_sized_for() -> None:
    answer = asked(HOLDS.with_(qps=0.0), 2)
    carried = [each.outcome.goodput_tok_s / each.outcome.output_tok_s for each in answer.best]
    assert min(carried) < 0.8, "at P99 less than `load` of what it makes on means"
    for choice, found in zip(answer.best, verify(answer, top=len(answer.best)).trials, strict=True):
        plan = plan_of(choice.scenario)
        assert found.rate == pytest.approx(0.8 * plan.goodput_tok_s / 64)
        assert found.billed == pytest.approx(plan.usd_per_hour / (found.rate * 64 * 3600 / 1e6))


def test_the_median_can_be_promised_too() -> None:
    found = verify(asked(HOLDS.with_(sla_pct=50.0), 1))
    assert verdict(found).startswith("The winner holds at P50 in simulation: ")


def test_kinds_come_before_further_layouts() -> None:
    best = asked(HOLDS, 8).best
    families = [family_of(each.scenario) for each in best]
    places = first_places(best, 3)
    assert places[0] == 0
    assert places == sorted(places)
    assert len({families[at] for at in places}) == min(3, len(set(families)))
    assert first_places(best, 100) == list(range(len(best)))


def test_the_same_seed_gives_the_same_and_another_one_another(failing: tuple[Answer, Verified]) -> None:
    answer, found = failing
    assert verify(answer, BURSTS) == found
    other = verify(answer, Traffic(arrival="gamma", cv=4.0, seed=2), top=1)
    assert other.trials[0].ttft_at_pct_ms != found.trials[0].ttft_at_pct_ms
    assert other.trials[0].seeds[0] == 2


def test_processes_find_the_same(failing: tuple[Answer, Verified]) -> None:
    answer, found = failing
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert verify(answer, BURSTS, executor=pool) == found


def test_what_is_too_close_to_call_is_simulated_again_with_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "FEWEST", 400)
    monkeypatch.setattr(trial, "BROKEN", 4)
    best = asked(HOLDS.with_(osl=16), 1).best[0]
    fixed = best.scenario.with_(fix_replicas=1)
    once = tried(Candidate(fixed, best.kind, 1), Traffic())
    assert once.seeds == (1,)
    close = fixed.with_(sla_ttft_ms=once.ttft_at_pct_ms)
    again = tried(Candidate(close, best.kind, 1), Traffic())
    assert len(again.seeds) > 1
    assert again.counted >= 3 * once.counted
    assert again.seeds == tuple(range(1, 1 + len(again.seeds)))


def test_progress_ends_with_all_and_cancel_stops() -> None:
    answer, heard = asked(HOLDS, 2), list[Progress]()
    found = verify(answer, on_progress=heard.append)
    assert all(each.done < each.total for each in heard[:-1])
    assert heard[-1].done == heard[-1].total == len(found.trials)
    assert heard[-1].considered == sum(each.requests for each in found.trials)
    with pytest.raises(Cancelled):
        verify(answer, cancelled=lambda: True)


def test_less_than_one_kind_is_refused() -> None:
    with pytest.raises(InputError, match="top"):
        verify(asked(HOLDS, 1), top=0)


# --- words ------------------------------------------------------------------------------------------


def made(found: Trial, **changes: Any) -> Trial:
    return replace(found, **changes)


def test_sentences_of_every_outcome(failing: tuple[Answer, Verified]) -> None:
    answer, found = failing
    winner = made(found.trials[0], ttft_at_pct_ms=812.0, ttft=Share(0.9, 0.88, 0.92), holds=False, billed=1.0)
    winner = made(winner, tpot=Share(1.0, 0.998, 1.0))
    larger = made(winner, holds=True, more=2, replicas=3, billed=1.08, scenario=winner.scenario.with_(fix_replicas=3))
    asked_ = answer.question
    said = verdict(Verified(asked_, (winner, larger), larger.scenario))
    assert said == (
        "The winner fails at P99 in simulation: TTFT 812 ms against 500 ms. It holds with 3 replicas, at +8.0 % cost."
    )
    close = made(winner, holds=None, ttft=Share(0.991, 0.987, 0.994))
    said = verdict(Verified(asked_, (close,), None))
    assert "too close to call at P99 in simulation: 98.7 % to 99.4 % of requests keep TTFT." in said
    unpriced = made(larger, billed=None, gpus=6, rank=2, kind="TP2 · FP8")
    said = verdict(Verified(asked_, (winner, unpriced), unpriced.scenario))
    assert f"with 3 replicas, on 6 GPUs instead of {winner.gpus}." in said
    assert beyond(unpriced, winner) is None


def test_not_all_is_never_written_as_all(failing: tuple[Answer, Verified]) -> None:
    assert good_words(made(failing[1].trials[0], good=0.9996)) == "99.9"
    assert good_words(made(failing[1].trials[0], good=1.0)) == "100"
