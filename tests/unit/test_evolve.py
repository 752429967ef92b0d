"""Differential evolution against every candidate of spaces small enough to list, and how it says that it stopped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.candidates import candidates
from planner.errors import InputError
from planner.evaluate import evaluate
from planner.optimise.answer import Cancelled, Progress
from planner.optimise.evolve import AGREED, Budget, Evolved, evolve
from planner.optimise.fitness import REFUSED, fitness
from planner.optimise.question import Limit, Question
from planner.optimise.ranges import CHUNK_STEP, DEGREES, Space
from planner.optimise.worth import value_of
from planner.plan import Plans
from planner.setting import resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario
from planner.variants import outcome

CLOSE = 0.01
"""By how much evolution may miss the exact optimum."""

POWERS = (1, 2, 4, 8)


def llama(**changes: Any) -> Scenario:
    return Scenario(**{"sla_ttft_ms": 600.0, **changes})


def mixture(**changes: Any) -> Scenario:
    return Scenario(
        **{"model": "deepseek-v3", "gpu": "h200-sxm", "weights": "fp8-block", "sla_ttft_ms": 3000.0, **changes}
    )


SPACES: dict[str, tuple[Question, Space]] = {
    "dense": (
        Question(scenario=llama(), max_gpus=16),
        Space(tp=POWERS, pp=(1, 2, 4), chunk=(256, 1024), batch=(1, 400)),
    ),
    "dense, a rate and spares": (
        Question(scenario=llama(qps=25.0, spare=1), max_gpus=64, objective="usd_per_hour"),
        Space(tp=POWERS, pp=(1, 2), chunk=(128, 640), util=(0.88, 0.92), batch=(1, 300)),
    ),
    "dense, fewest GPUs": (
        Question(scenario=llama(gpu="a100-80g-sxm", qps=12.0, sla_ttft_ms=1500.0), max_gpus=128, objective="gpus"),
        Space(tp=POWERS, pp=(1, 2), util=(0.80, 0.95), batch=(1, 300)),
    ),
    "dense, lowest TPOT": (
        Question(scenario=llama(weights="fp8"), max_gpus=8, objective="tpot_ms"),
        Space(tp=POWERS, pp=(1, 2, 4), chunk=(128, 2048), batch=(4, 200)),
    ),
    "dense, most good tokens": (
        Question(scenario=llama(isl=4000, osl=500, sla_ttft_ms=1500.0), max_gpus=24, objective="goodput_tok_s"),
        Space(tp=POWERS, pp=(1, 2, 3, 4), util=(0.85, 0.95), batch=(1, 256)),
    ),
    "mixture": (
        Question(scenario=mixture(), max_gpus=32),
        Space(tp=(1, 2, 4, 8), dp=(1, 2, 4, 8, 16, 32), ep=(1, 4, 8, 16, 32), chunk=(1024, 1408), batch=(1, 600)),
    ),
    "mixture, a further limit": (
        Question(scenario=mixture(), max_gpus=64, limits=(Limit("tpot_ms", True, 30.0),)),
        Space(tp=(1, 2, 4, 8), pp=(1, 2), dp=(1, 8, 16, 32, 64), ep=(1, 8, 16, 32, 64), batch=(1, 1500)),
    ),
    "drafts": (
        Question(scenario=llama(spec=3, accept=0.7), max_gpus=16),
        Space(tp=POWERS, chunk=(128, 2048), util=(0.80, 0.92), batch=(1, 256)),
    ),
    "two pools": (
        Question(scenario=llama(prefill="disaggregated", sla_ttft_ms=1500.0), max_gpus=40),
        Space(tp=POWERS, batch=(1, 320), prefill_workers=(1, 6), decode_workers=(1, 6)),
    ),
    "two pools of two accelerators": (
        Question(
            scenario=llama(prefill="disaggregated", prefill_gpu="h200-sxm", sla_ttft_ms=2500.0, isl=6000, osl=300),
            max_gpus=48,
            objective="usd_per_m_goodput",
        ),
        Space(tp=(2, 4, 8), util=(0.88, 0.92), batch=(1, 200), prefill_workers=(1, 6), decode_workers=(1, 4)),
    ),
}


# --- every candidate, one after the other ---------------------------------------------------------------------------


def variants(question: Question, space: Space) -> Iterator[Scenario]:
    """The scenario with every value of what is not a column of `evaluate`."""
    low, high = space.chunk or (0, 0)
    chunks = range(low, high + 1, CHUNK_STEP) if space.chunk else [question.scenario.chunk]
    shares = np.round(np.arange(space.util[0], space.util[1] + 0.005, 0.01), 2).tolist() if space.util else [None]
    pools = [range(span[0], span[1] + 1) if span else [None] for span in (space.prefill_workers, space.decode_workers)]
    for chunk, util, prefill, decode in itertools.product(chunks, shares, *pools):
        yield question.scenario.with_(chunk=chunk, util=util, prefill_workers=prefill, decode_workers=decode)


def values(question: Question, plans: Plans) -> np.ndarray:
    """The objective of plans that stand, GPUs and further limits kept; infinite elsewhere, and to be made small."""
    stands = plans.fits & plans.meets_sla & plans.engine_ok & (plans.gpus <= question.max_gpus)
    for limit in question.limits:
        stands &= getattr(plans, limit.field) <= limit.value
    value = getattr(plans, question.objective)
    if question.objective == "goodput_tok_s":
        value = -value * np.floor(question.max_gpus / plans.gpus_per_replica)
    return np.where(stands, value, np.inf)


def exact(question: Question, space: Space) -> float:
    """The best of all candidates."""
    menu = list(itertools.product(*(getattr(space, name) for name in DEGREES)))
    where = layout(*(np.array(degrees) for degrees in zip(*menu, strict=True)))
    batches = np.arange(space.batch[0], space.batch[1] + 1.0)
    best = min(
        float(np.min(values(question, evaluate(asked, candidates(where, batches)))))
        for asked in variants(question, space)
    )
    return -best if question.objective == "goodput_tok_s" else best


# --- against them ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
def test_within_one_percent_of_the_best_of_all_candidates(name: str, remark: Callable[[str], None]) -> None:
    question, space = SPACES[name]
    found, best = evolve(question, space, seed=7), exact(question, space)
    gap = abs(found.best.value / best - 1)
    remark(f"evolution, {name}: {gap:.2%} from the best, {found.rows:,} candidates, {found.stopped}")
    better = found.best.value > best if question.objective == "goodput_tok_s" else found.best.value < best
    assert gap <= CLOSE
    assert not better or gap < 1e-9


@pytest.mark.parametrize("name", SPACES)
def test_columns_are_plans(name: str) -> None:
    """What a population is worth is what each of its candidates is worth as a scenario of its own."""
    question, space = SPACES[name]
    judge = fitness(question, space)
    random = np.random.default_rng(3)
    low, high = (np.array([getattr(axis, end) for axis in judge.axes])[:, None] for end in ("low", "high"))
    numbers = low + (high - low) * random.random((len(judge.axes), 400))
    whole = np.array([axis.whole for axis in judge.axes])[:, None]
    numbers = np.where(whole, np.rint(numbers), numbers)
    energies = judge.energies(numbers)
    standing = np.flatnonzero(energies < REFUSED)[:12]
    assert len(standing) > 2
    for at in standing:
        value, _ = value_of(resolve(judge.scenario(numbers[:, at])), question.objective)
        assert judge.sign * energies[at] == pytest.approx(value, rel=1e-12)


def test_the_best_is_a_plan_like_any_other() -> None:
    found = evolve(*SPACES["two pools"], budget=Budget(40, 1))
    assert found.best.outcome == outcome(found.best.scenario)
    assert found.best.value == found.best.outcome.usd_per_m_goodput
    assert found.best.outcome.stands
    assert found.best.outcome.gpus <= 40
    assert "BF16 · H100 SXM 80 GB" in found.best.kind


def test_replicas_fill_the_gpus_that_there_are() -> None:
    question, space = SPACES["dense, most good tokens"]
    best = evolve(question, space, budget=Budget(40, 1)).best
    devices = best.outcome.gpus_per_replica
    assert best.scenario.fix_replicas == 24 // devices
    assert best.value == pytest.approx(best.outcome.goodput_tok_s * (24 // devices))


def test_without_batches_each_layout_has_its_own_largest() -> None:
    question = SPACES["dense"][0]
    space = Space(tp=POWERS, pp=(1, 2))
    found = evolve(question, space, budget=Budget(20, 1))
    costs = [
        outcome(llama(tp=tp, pp=pp)).usd_per_m_goodput
        for tp in POWERS
        for pp in (1, 2)
        if outcome(llama(tp=tp, pp=pp)).stands
    ]
    assert found.best.value == pytest.approx(min(costs))
    assert found.best.scenario.at_batch is None


def test_further_limits_hold_both_ways() -> None:
    question, space = SPACES["dense"]
    limits = (Limit("goodput_tok_s_gpu", False, 400.0), Limit("tpot_ms", True, 35.0), Limit("batch", True, 70.0))
    free = evolve(question, space, budget=Budget(30, 2)).best
    bound = evolve(question.model_copy(update={"limits": limits}), space, budget=Budget(30, 2)).best
    assert bound.outcome.tpot_ms <= 35.0
    assert bound.outcome.batch <= 70
    assert bound.outcome.goodput_tok_s_gpu >= 400.0
    assert free.value < bound.value
    none = question.model_copy(update={"limits": (Limit("goodput_tok_s_gpu", False, 1e6),)})
    assert evolve(none, space, budget=Budget(5, 1)).best is None


def test_the_batch_of_the_scenario_is_the_only_one_where_it_has_one() -> None:
    question = Question(scenario=llama(at_batch=24), max_gpus=8)
    found = evolve(question, Space(tp=POWERS, pp=(1, 2)), budget=Budget(10, 1))
    assert found.best.scenario.at_batch == 24
    costs = [outcome(llama(tp=tp, pp=pp, at_batch=24)) for tp in POWERS for pp in (1, 2) if tp * pp <= 8]
    assert found.best.value == pytest.approx(min(each.usd_per_m_goodput for each in costs if each.stands))


# --- how it stops ---------------------------------------------------------------------------------------------------


def small(**budget: int) -> Evolved:
    return evolve(*SPACES["dense"], seed=1, budget=Budget(**{"generations": 5, "runs": 1, **budget}))


def test_equal_seeds_give_equal_answers() -> None:
    assert small() == small()


def test_it_says_how_it_stopped_and_claims_no_proof() -> None:
    assert (small().stopped, small().generations) == ("generations", 5)
    assert small(rows=100).stopped == "rows"
    assert not small().proven


def test_it_stops_when_runs_from_different_starts_agree() -> None:
    found = small(runs=40)
    assert (found.stopped, found.agreed) == ("agreed", AGREED)
    assert AGREED <= found.runs < 40
    assert f"{AGREED} runs" in found.reason


def test_nothing_varies() -> None:
    found = evolve(Question(scenario=llama(tp=8)), Space(tp=(4,)))
    assert (found.stopped, found.rows) == ("nothing varies", 1)
    assert found.best.value == outcome(llama(tp=4)).usd_per_m_goodput


def test_nothing_stands() -> None:
    found = evolve(Question(scenario=llama(sla_ttft_ms=1.0)), Space(tp=POWERS), budget=Budget(5, 1))
    assert found.best is None


def test_progress_and_cancel() -> None:
    seen: list[Progress] = []
    question, space = SPACES["dense"]
    with pytest.raises(Cancelled):
        evolve(question, space, on_progress=seen.append, cancelled=lambda: len(seen) >= 3)
    assert [each.done for each in seen] == [1, 2, 3]
    assert {each.total for each in seen} == {240}
    assert seen[-1].considered > seen[0].considered > 0
    assert seen[-1].best <= seen[0].best


def test_progress_of_a_large_objective_is_in_its_own_sign() -> None:
    seen: list[Progress] = []
    question, space = SPACES["dense, most good tokens"]
    evolve(question, space, budget=Budget(10, 1), on_progress=seen.append)
    assert seen[-1].best > 0


# --- what cannot be searched ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "field"),
    [
        (Space(tp=()), "tp"),
        (Space(ep=(0, 2)), "ep"),
        (Space(batch=(8, 4)), "batch"),
        (Space(util=(0.0, 0.9)), "util"),
        (Space(chunk=(1, 50)), "chunk"),
        (Space(decode_workers=(1, 4)), "prefill"),
        (Space(util=(0.5, 1.5)), "util"),
    ],
)
def test_a_space_that_is_none_is_refused(space: Space, field: str) -> None:
    with pytest.raises(InputError) as refused:
        evolve(Question(scenario=llama()), space)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_several_categories_are_refused() -> None:
    question = Question(scenario=llama(), accelerators=("h100-sxm", "h200-sxm"), precisions=("fp8",))
    with pytest.raises(InputError, match="accelerators = h100-sxm, h200-sxm: must name one value"):
        evolve(question, Space(tp=POWERS))


def test_one_value_of_a_list_is_taken() -> None:
    question = Question(scenario=llama(), accelerators=("h200-sxm",), precisions=("fp8",), max_gpus=8)
    best = evolve(question, replace(SPACES["dense"][1], chunk=None), budget=Budget(10, 1)).best
    assert (best.scenario.gpu, best.scenario.weights) == ("h200-sxm", "fp8")
