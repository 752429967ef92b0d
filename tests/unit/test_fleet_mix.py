"""The best mix of a fleet equals enumeration in plain Python, with spares, availability, budgets, instances and ties."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from math import ceil, comb, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.fleet.solve import solve
from planner.fleet.spares import Redundancy, surviving
from planner.fleet.task import Cap, Demand, Offer, Shelf, Task, worth

# --- enumeration, which shares no code with the planner ---------------------------------------------


def must_bear(redundancy: Redundancy, replicas: int) -> int:
    """Failures that a class must bear, from the binomial sum itself."""
    if redundancy.availability is None:
        return redundancy.spare
    up, total = redundancy.availability, 0.0
    for failed in range(replicas + 1):
        total += comb(replicas, failed) * (1 - up) ** failed * up ** (replicas - failed)
        if total >= redundancy.target - 1e-12:
            return failed
    return replicas


def left(task: Task, counts: tuple[int, ...], traffic: int) -> float:
    """Capacity of a class without its largest replicas."""
    held = sorted(
        o.capacity for n, o in zip(counts, task.offers, strict=True) if o.traffic == traffic for _ in range(n)
    )
    return sum(held[: max(len(held) - must_bear(task.redundancy, len(held)), 0)])


def billed(task: Task, counts: tuple[int, ...], at: int) -> int:
    used, each = (
        sum(n * o.gpus for n, o in zip(counts, task.offers, strict=True) if o.stock == at),
        task.shelves[at].instance,
    )
    return ceil(used / each) * each


def bill(task: Task, counts: tuple[int, ...]) -> float:
    return sum(billed(task, counts, at) * shelf.price for at, shelf in enumerate(task.shelves))


def allowed(task: Task, counts: tuple[int, ...]) -> bool:
    within = all(billed(task, counts, at) <= shelf.gpus for at, shelf in enumerate(task.shelves))
    capped = all(sum(billed(task, counts, at) for at in cap.shelves) <= cap.gpus for cap in task.caps)
    served = all(left(task, counts, at) >= demand.qps * (1 - 1e-6) for at, demand in enumerate(task.demands))
    return within and capped and bill(task, counts) <= task.budget + 1e-9 and (served or not task.whole)


def rank(task: Task, counts: tuple[int, ...]) -> tuple[float, ...]:
    """What is made best, in turn."""
    gpus = sum(billed(task, counts, at) for at in range(len(task.shelves)))
    places = sum(at * n for at, n in enumerate(counts))
    key = (round(bill(task, counts), 6), gpus, sum(counts), places)
    good = sum(min(left(task, counts, at), d.qps) * d.tokens for at, d in enumerate(task.demands))
    return key if task.whole else (-round(good, 4), *key)


def enumerated(task: Task) -> tuple[int, ...] | None:
    """The best mix among all that could be; of equal ones the first by `rank`."""
    tops = []
    for offer in task.offers:
        need = task.demands[offer.traffic].qps
        alone = next(n for n in range(1, 60) if (n - must_bear(task.redundancy, n)) * offer.capacity >= need)
        tops.append(min(alone, task.shelves[offer.stock].gpus // offer.gpus))
    mixes = product(*(range(int(top) + 1) for top in tops))
    return min((counts for counts in mixes if allowed(task, counts)), key=lambda c: rank(task, c), default=None)


# --- random small fleets ------------------------------------------------------------------------------

REDUNDANCIES = (Redundancy(), Redundancy(1), Redundancy(2), Redundancy(0, 0.9, 0.99), Redundancy(0, 0.95, 0.999))


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    classes, shelves = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    offer = st.builds(
        Offer,
        st.integers(0, classes - 1),
        st.integers(0, shelves - 1),
        st.sampled_from((1, 2, 4, 8)),
        st.sampled_from((1.0, 2.5, 3.0, 4.7, 7.0, 11.3)),
    )
    return Task(
        tuple(draw(st.lists(offer, min_size=1, max_size=4))),
        tuple(Demand(draw(st.sampled_from((2.0, 3.3, 6.0, 9.1))), draw(st.sampled_from((100.0, 256.0)))) for _ in range(classes)),
        tuple(
            Shelf(
                draw(st.sampled_from((inf, 4.0, 8.0, 12.0, 24.0))),
                draw(st.sampled_from((0.0, 2.0, 3.1))),
                draw(st.sampled_from((1, 1, 4, 8))),
            )
            for _ in range(shelves)
        ),
        draw(st.sampled_from(((), (Cap((0,), 8.0),)))),
        draw(st.sampled_from((inf, 10.0, 30.0, 60.0))),
        draw(st.sampled_from(REDUNDANCIES)),
        draw(st.booleans()),
    )  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(tasks())
def test_the_mix_is_that_of_enumeration_ties_and_impossible_ones_included(task: Task) -> None:
    found = solve(task)
    assert (None if found is None else found.counts) == enumerated(task)


@settings(max_examples=60, deadline=None)
@given(tasks().filter(lambda task: task.redundancy.availability is None))
def test_what_several_smaller_replicas_replace_is_not_missed(task: Task) -> None:
    kept = replace(task, offers=tuple(worth(task.offers)))
    every, few = solve(task), solve(kept)
    assert (every is None) == (few is None)
    if every is not None and few is not None:
        assert rank(task, every.counts)[: 2 - task.whole] == pytest.approx(rank(kept, few.counts)[: 2 - task.whole])


@given(st.lists(st.floats(0.1, 50.0), max_size=6), st.integers(0, 7))
def test_the_largest_replicas_fail_first(capacities: list[float], failures: int) -> None:
    kept = [sum(capacities) - sum(chosen) for chosen in _subsets(capacities, min(failures, len(capacities)))]
    assert surviving(capacities, failures) == pytest.approx(min(kept), abs=1e-9)


def _subsets(values: list[float], size: int) -> list[list[float]]:
    masks = (mask for mask in product((0, 1), repeat=len(values)) if sum(mask) == size)
    return [[value for value, taken in zip(values, mask, strict=True) if taken] for mask in masks]


# --- by hand ------------------------------------------------------------------------------------------

SMALL, LARGE = Offer(0, 0, 2, 4.0), Offer(0, 1, 8, 18.0)


def by_hand(**more: object) -> Task:
    """10 requests/s from replicas of 2 GPUs (4 requests/s, $3 a GPU) or of 8 GPUs (18 requests/s, $2 a GPU)."""
    return Task((SMALL, LARGE), (Demand(10.0, 100.0),), (Shelf(inf, 3.0), Shelf(inf, 2.0)), **more)


def test_one_large_replica_is_cheaper_than_three_small_ones() -> None:
    mix = solve(by_hand())  # 1 · 8 · $2 = $16 against 3 · 2 · $3 = $18
    assert mix is not None
    assert mix.counts == (0, 1)
    assert by_hand().dollars(mix.counts) == 16.0


def test_with_a_spare_four_small_ones_are_cheaper_than_two_large_ones() -> None:
    task = by_hand(redundancy=Redundancy(1))  # 4 · 2 · $3 = $24, of which 12 requests/s are left; 2 · 8 · $2 = $32
    mix = solve(task)
    assert mix is not None
    assert (mix.counts, task.dollars(mix.counts), task.kept(mix.counts, 0)) == ((4, 0), 24.0, 12.0)


def test_a_budget_below_that_is_impossible_and_one_at_it_is_not() -> None:
    assert solve(by_hand(redundancy=Redundancy(1), budget=23.99)) is None
    assert solve(by_hand(redundancy=Redundancy(1), budget=24.0)) is not None


def test_a_fixed_budget_buys_the_most_tokens() -> None:
    task = by_hand(budget=15.0, whole=False)  # two small ones: $12, 8 requests/s; the large one costs $16
    mix = solve(task)
    assert mix is not None
    assert (mix.counts, task.good_tokens(mix.counts), task.dollars(mix.counts)) == ((2, 0), 800.0, 12.0)


def test_whole_instances_round_up() -> None:
    task = Task((SMALL,), (Demand(10.0, 1.0),), (Shelf(inf, 3.0, 4),))
    mix = solve(task)  # 3 replicas are 6 GPUs: two instances of 4 at $3 a GPU
    assert mix is not None
    assert (mix.counts, task.billed(mix.counts, 0), task.dollars(mix.counts)) == ((3,), 8, 24.0)
    assert solve(Task((SMALL,), (Demand(10.0, 1.0),), (Shelf(7.0, 3.0, 4),))) is None


def test_the_fewest_missing_gpus_are_told() -> None:
    task = Task((SMALL,), (Demand(10.0, 1.0),), (Shelf(2.0, 3.0),))
    mix = solve(task, frozenset({"stock"}))
    assert mix is not None
    assert (mix.counts, mix.beyond) == ((3,), (4,))


@pytest.mark.parametrize(
    ("replicas", "failures"),
    # 0.9 up: two, P[at most 1 fails] = 0.99; three, 0.972; four, P[at most 2 fail] = 0.9963; five, 0.99144; six, 0.98415
    [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (6, 3), (7, 3)],
)
def test_failures_to_bear_follow_from_the_binomial_sum(replicas: int, failures: int) -> None:
    assert Redundancy(0, 0.9, 0.99).failures(replicas) == failures


@pytest.mark.parametrize(("needed", "replicas"), [(1, 2), (2, 4), (3, 5), (4, 7)])
def test_replicas_that_deliver_what_is_needed_often_enough(needed: int, replicas: int) -> None:
    redundancy = Redundancy(0, 0.9, 0.99)
    assert redundancy.alone(1.0, float(needed)) == replicas
    mix = solve(Task((Offer(0, 0, 1, 1.0),), (Demand(float(needed), 1.0),), (Shelf(inf, 1.0),), redundancy=redundancy))
    assert mix is not None
    assert mix.counts == (replicas,)


def test_failures_to_bear_never_fall_with_more_replicas() -> None:
    for redundancy in REDUNDANCIES:
        borne = [redundancy.failures(n) for n in range(1, 400)]
        assert borne == sorted(borne)
        assert all(after - before in (0, 1) for before, after in pairwise(borne))


def test_equal_bills_take_the_fewest_gpus_then_replicas_then_the_first_offers() -> None:
    twins = (Offer(0, 0, 4, 5.0), Offer(0, 0, 4, 5.0), Offer(0, 0, 2, 2.5), Offer(0, 1, 8, 10.0))
    mix = solve(Task(twins, (Demand(10.0, 1.0),), (Shelf(inf, 0.0), Shelf(inf, 0.0))))
    assert mix is not None
    assert mix.counts == (0, 0, 0, 1)  # 8 GPUs each way: one replica before two
    mix = solve(Task(twins[:3], (Demand(10.0, 1.0),), (Shelf(inf, 0.0), Shelf(inf, 0.0))))
    assert mix is not None
    assert mix.counts == (2, 0, 0)


def test_how_the_solver_stopped_is_told() -> None:
    mix = solve(by_hand())
    assert mix is not None
    assert (mix.stop.proven, mix.stop.settled, mix.stop.gap) == (True, True, 0.0)
