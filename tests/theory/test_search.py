"""The search against brute force in plain Python: every layout, pool, number of replicas and batch, one after another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from planner.candidates import candidates
from planner.catalog.accelerators import accelerator
from planner.errors import HeadroomError
from planner.evaluate import evaluate
from planner.layouts import degrees
from planner.optimise.question import Limit, Question
from planner.optimise.search import optimise
from planner.optimise.space import categories, prefill_gpus
from planner.plan import Plans
from planner.setting import resolve
from planner.specs.layout import layout
from planner.specs.scenario import Scenario

DEGREES = ("tp", "pp", "dp", "ep", "cp", "dcp")


@dataclass(frozen=True)
class Row:
    """One candidate, as brute force finds it."""

    key: tuple[float, ...]
    value: float
    scenario: Scenario


def nine_digits(value: float) -> float:
    return float(f"{value:.8e}")


def whole_layouts(scenario: Scenario, most: int) -> Iterator[tuple[int, ...]]:
    """Degrees under the identity, by loops; what the search leaves out by a rule of its own is left out here."""
    spec = resolve(scenario).model
    domain = resolve(scenario).profile.links.domain
    sizes, powers = degrees(most), [n for n in (1, 2, 4, 8, 16) if n <= most]
    for tp, dp, cp, pp in product(sizes, sizes, powers, [n for n in sizes if n <= min(16, spec.layers)]):
        stage = tp * dp * cp
        if stage * pp > most or (dp > 1 and not spec.has_experts):
            continue
        if domain % stage and stage % domain:
            continue
        for ep, dcp in product(sizes if spec.has_experts else (1,), powers):
            if stage % ep == 0 and tp % dcp == 0:
                yield tp, pp, dp, ep, cp, dcp


def tried(question: Question, scenario: Scenario, at: tuple[int, ...], own: Plans) -> list[int]:
    """Batches of a layout: equal ratios up to what memory and seats admit, its own largest, and that in whole ranks."""
    if question.scenario.at_batch is not None:
        return [question.scenario.at_batch]
    setting = resolve(scenario)
    ways = at[2] * at[1]
    seats = math.inf
    if setting.convention.overheads:
        seats = min(setting.max_seqs, setting.token_budget // (scenario.spec + 1)) * at[2]
    most = max(min(float(own.b_max_kv[0]), seats), 1.0)
    grid = [min(math.ceil(math.floor(most ** (k / 7) + 1e-9) / ways) * ways, most) for k in range(8)]
    largest = max(float(own.b_max[0]), 1.0)
    even = largest // ways * ways if largest >= ways else largest
    return sorted({1, *(int(each) for each in grid[1:]), int(largest), int(even)})


def whole_workers(question: Question, scenario: Scenario, at: tuple[int, ...], own: Plans) -> list[int]:
    """The largest batch with a prefill worker fewer than the largest of all needs, found by trying every batch."""
    pool = resolve(scenario).pool
    assert pool is not None
    largest = max(int(own.b_max[0]), 1)
    plans = evaluate(scenario, candidates(layout(*at), np.arange(1.0, largest + 1.0)[None, :]))
    workers = (plans.gpus - plans.replicas * plans.gpus_per_replica) / pool.devices
    most = (question.max_gpus - plans.replicas[0] * plans.gpus_per_replica[0]) // pool.devices
    found = set[int]()
    for fewer in (1, 2):
        kept = np.flatnonzero(workers <= min(workers[-1] - fewer, most))
        if len(kept):
            best = int(kept[np.argmax(plans.output_tok_s[kept])]) + 1
            found |= {best, best // (at[1] * at[2]) * at[1] * at[2]} - {0}
    return sorted(found)


def variants(question: Question, base: Scenario) -> Iterator[tuple[int, Scenario]]:
    """Pools of a category with their number; for replicas that no rate asks for, every number of them."""
    if base.prefill != "disaggregated":
        yield -1, base
        return
    for place, name in enumerate(prefill_gpus(question)):
        if accelerator(name).vendor != accelerator(base.gpu).vendor:
            continue
        for number, tp in [*((power, 1 << power) for power in range(6)), (None, None)]:
            pool = base.with_(prefill_gpu=name, prefill_tp=tp)
            made = resolve(pool).pool
            if made is None or not (made.fits and made.admitted):
                continue
            apart = float(made.at.dp[0, 0])
            if tp is None and apart == 1.0:
                continue
            yield place * 16 + (8 + int(math.log2(apart)) if number is None else number), pool


def counted(question: Question, scenario: Scenario, devices: int, pool: int) -> Iterator[Scenario]:
    """The scenario with every number of replicas that the search may choose."""
    if question.objective == "goodput_tok_s" and pool < 0:
        for replicas in range(1, max(question.max_gpus // devices - scenario.spare, 1) + 1):
            yield scenario.with_(fix_replicas=replicas)
    elif pool >= 0 and scenario.qps == 0 and scenario.fix_replicas is None:
        for replicas in range(1, question.max_gpus // devices + 1):
            yield scenario.with_(decode_workers=replicas)
    else:
        yield scenario


def value_of(question: Question, plans: Plans, at: int, spare: int) -> float | None:
    """The objective of a row, less is better; None where it does not stand."""
    if not (plans.fits[at] and plans.engine_ok[at] and plans.meets_sla[at] and plans.gpus[at] <= question.max_gpus):
        return None
    for limit in question.limits:
        found = float(getattr(plans, limit.field)[at])
        if not (found <= limit.value if limit.at_most else found >= limit.value):
            return None
    if question.objective == "goodput_tok_s":
        return -float(plans.goodput_tok_s[at]) * (float(plans.replicas[at]) - spare)
    value = float(getattr(plans, question.objective)[at])
    return None if math.isnan(value) or not plans.goodput_tok_s[at] > 0 else value


def brute_force(question: Question) -> list[Row]:
    """Every candidate that stands, best first."""
    found: list[Row] = []
    for source, category in enumerate(categories(question)):
        if category.scenario is None:
            continue
        for pool, variant in variants(question, category.scenario):
            for at in whole_layouts(variant, question.max_gpus):
                tp, pp, dp, _, cp, _ = at
                for scenario in counted(question, variant, tp * pp * dp * cp, pool):
                    found.extend(rows(question, scenario, at, source, pool))
    return sorted(found, key=lambda row: row.key)


def rows(question: Question, scenario: Scenario, at: tuple[int, ...], source: int, pool: int) -> Iterator[Row]:
    tp, pp, dp, ep, cp, dcp = at
    own = evaluate(scenario, candidates(layout(*at)))
    if not own.fits[0]:
        return
    batches = tried(question, scenario, at, own)
    if scenario.decode_workers is not None and question.scenario.at_batch is None:
        batches = sorted({*batches, *whole_workers(question, scenario, at, own)})
    plans = evaluate(scenario, candidates(layout(*at), np.array(batches, float)[None, :]))
    for index, batch in enumerate(batches):
        value = value_of(question, plans, index, scenario.spare)
        if value is None:
            continue
        serving = float(plans.replicas[index]) - scenario.spare
        per_gpu, tpot = (nine_digits(float(c[index])) for c in (plans.goodput_tok_s_gpu, plans.tpot_ms / 1e3))
        key = (
            nine_digits(value), float(plans.gpus[index]), -per_gpu, tpot, source, pool,
            tp * pp * dp * cp, pp, dcp, cp, ep, dp, tp, batch, serving,
        )  # fmt: skip
        yield Row(key, value, scenario.with_(tp=tp, pp=pp, dp=dp, ep=ep, cp=cp, dcp=dcp, at_batch=batch))


def agree(question: Question) -> None:
    """The search finds what brute force finds: the same winner, the same order of kinds, or nothing alike."""
    expected = brute_force(question)
    answer = optimise(question)
    if not expected:
        assert answer.winner is None
        assert answer.refused
        return
    winner = answer.winner
    assert winner is not None
    best = expected[0]
    assert winner.value == pytest.approx(
        question.shown(best.value if "_ms" not in question.objective else best.value / 1e3), rel=1e-9
    )
    same = {
        name: getattr(best.scenario, name)
        for name in (*DEGREES, "gpu", "weights", "kv", "at_batch", "prefill_gpu", "prefill_tp")
    }
    assert {name: getattr(winner.scenario, name) for name in same} == same
    assert_order(question, answer.best, expected)


def assert_order(question: Question, shown: Any, expected: list[Row]) -> None:
    """Best first; every layout shown has the value that brute force finds for it."""
    values = [nine_digits(choice.value) for choice in shown]
    assert values == sorted(values, reverse=question.objective == "goodput_tok_s")
    table: dict[tuple[Any, ...], float] = {}
    for row in expected:
        table.setdefault(name_of(row.scenario), row.value)
    for choice in shown:
        best = table[name_of(choice.scenario)]
        assert choice.value == pytest.approx(
            question.shown(best if "_ms" not in question.objective else best / 1e3), rel=1e-9
        )


def name_of(scenario: Scenario) -> tuple[Any, ...]:
    names = (*DEGREES, "gpu", "weights", "kv", "chunk", "spec", "prefill", "prefill_gpu", "prefill_tp")
    return tuple(getattr(scenario, name) for name in names)


MODELS = {
    "llama-3.1-8b": 4, "llama-3.1-70b": 8, "qwen3-30b-a3b": 4, "gpt-oss-120b": 6, "deepseek-v3": 8, "mixtral-8x7b": 4,
}  # fmt: skip
"""Models with the largest budget of GPUs that is tried on them."""

ACCELERATORS = ["h100-sxm", "h200-sxm", "b200-sxm", "l40s", "mi300x"]

FIELDS = {
    "sla_tpot_ms": st.sampled_from([3.0, 15.0, 30.0, 50.0, 100.0]),
    "sla_ttft_ms": st.sampled_from([30.0, 200.0, 1000.0, 5000.0]),
    "isl": st.sampled_from([128, 1024, 6000]),
    "osl": st.sampled_from([16, 256, 1000]),
    "qps": st.sampled_from([0.0, 0.0, 3.0, 40.0]),
    "load": st.sampled_from([0.8, 1.0]),
    "spare": st.sampled_from([0, 0, 1]),
    "prefix": st.sampled_from([0.0, 0.5]),
}


@st.composite
def questions(draw: Any, mode: str) -> Question:
    apart = mode == "disaggregated"
    model = draw(st.sampled_from(sorted(set(MODELS) - {"deepseek-v3"} if apart else MODELS)))
    asked = {name: draw(values) for name, values in FIELDS.items()}
    profile = draw(st.sampled_from(["measured", "measured", "textbook"]))
    gpus = draw(st.lists(st.sampled_from(ACCELERATORS), min_size=1, max_size=2, unique=True))
    weights, batch = draw(st.sampled_from(["bf16", "fp8"])), draw(st.sampled_from([None, None, None, 8]))
    scenario = Scenario(model=model, gpu=gpus[0], weights=weights, profile=profile, at_batch=batch, **asked)
    chosen = ["usd_per_m_goodput", "usd_per_m_goodput", "gpus", "tpot_ms", "ttft_ms", "goodput_tok_s"]
    most = min(MODELS[model], 4) if apart else MODELS[model]
    return Question(
        scenario=scenario,
        accelerators=tuple(gpus),
        modes=(mode,),
        objective=draw(st.sampled_from([*chosen, "usd_per_hour"] if scenario.qps else chosen)),
        limits=draw(st.sampled_from([(), (), (Limit("tpot_ms", True, 20.0),), (Limit("usd_per_hour", True, 30.0),)])),
        precisions=draw(st.sampled_from([("fp8",), ("bf16", "fp8")])),
        max_gpus=draw(st.sampled_from([most, max(most // 2, 1)])),
    )


COMMON = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.generate,),
}


@settings(max_examples=22, **COMMON)
@given(questions("colocated"))
def test_colocated_spaces_agree_with_brute_force(question: Question) -> None:
    agree(question)


@settings(max_examples=20, **COMMON)
@given(questions("disaggregated"))
def test_disaggregated_spaces_agree_with_brute_force(question: Question) -> None:
    agree(question)


def test_no_other_batch_of_two_pools_is_cheaper() -> None:
    """Whole prefill workers make cost a saw of the batch: every whole batch of the winner's layout and its pool.

    Within 0.1 %: between two batches that fill all ranks alike the rate falls and rises again.
    """
    scenario = Scenario(
        model="llama-3.1-70b", gpu="h200-sxm", weights="fp8", isl=4096, osl=512, sla_ttft_ms=1000.0, sla_tpot_ms=40.0
    )
    before = math.inf
    for promise in (25.0, 30.0, 40.0, 50.0):
        asked = scenario.with_(sla_tpot_ms=promise)
        answer = optimise(Question(scenario=asked, modes=("disaggregated",), max_gpus=16))
        assert answer.winner is not None
        assert answer.winner.value <= before * (1 + 1e-4)
        before = answer.winner.value
        for choice in answer.best[:4]:
            s = choice.scenario.with_(at_batch=None, prefill_workers=None)
            every = np.arange(1.0, 400.0)[None, :]
            plans = evaluate(s, candidates(layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp), every))
            stands = plans.fits & plans.engine_ok & plans.meets_sla & (plans.gpus <= 16)
            least = float(np.nanmin(np.where(stands, plans.usd_per_m_goodput, np.inf)))
            assert choice.value <= least * 1.001


def test_the_same_question_has_the_same_answer_to_the_last_digit() -> None:
    question = Question(scenario=Scenario(model="gpt-oss-120b", weights="mxfp4", gpu="b200-sxm", qps=30.0), max_gpus=32)
    one, two = optimise(question), optimise(question)
    assert one.best == two.best
    assert one.front == two.front
    assert (one.candidates, one.considered, one.refused) == (two.candidates, two.considered, two.refused)


def test_a_tie_goes_to_fewer_gpus_then_to_more_good_tokens() -> None:
    """At 1 request/s every layout of one GPU costs the same an hour; two accelerators at one price tie."""
    scenario = Scenario(model="llama-3.1-8b", gpu="h100-sxm", qps=1.0, price=2.0)
    answer = optimise(Question(scenario=scenario, objective="gpus", max_gpus=4))
    assert answer.winner is not None
    assert answer.winner.value == 1
    alone = [choice.outcome.goodput_tok_s_gpu for choice in answer.best if choice.value == 1]
    assert alone == sorted(alone, reverse=True)
    assert answer.winner.scenario.at_batch == answer.winner.outcome.b_max


def test_what_contradicts_itself_is_refused_with_its_reason() -> None:
    question = Question(
        scenario=Scenario(osl=1, gpu="h200-sxm", weights="fp8"), modes=("colocated", "disaggregated"), max_gpus=4
    )
    answer = optimise(question)
    assert answer.winner is not None or answer.refused
    assert any("prefill" in each.reason for each in answer.refused)


def test_an_unknown_accelerator_is_an_error_that_names_it() -> None:
    with pytest.raises(HeadroomError, match="h9000"):
        optimise(Question(scenario=Scenario(), accelerators=("h9000",)))
