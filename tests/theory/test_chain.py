"""The queues of one replica against exact theory: Erlang, processor sharing, slotted queues, infinite servers."""

from __future__ import annotations

import numpy as np
import pytest

from planner.serving.chain import chain, seats
from planner.serving.draws import counts, draws, gamma, lengths
from planner.serving.first_token import boundaries, first_token
from planner.serving.queue import probability_of_waiting
from planner.serving.residence import Pace, stay, token_seconds
from planner.serving.step_table import Steps

REQUESTS = draws().shape[1]


def erlang(servers: float, offered: float, cv: float = 1.0):
    """M/M/c with a service rate of 1."""
    running = seats(servers)
    return chain(offered, running, running, cv)


def steps(alone, prompt, admits, *, slope=0.0, part=None, batches=(0.0, 1.0, 100.0)):
    """A step table that is a straight line in prompts and in sequences."""
    rows, columns = np.array(batches), np.unique([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, float(admits)])
    seconds = alone + slope * rows[:, None] + prompt * columns[None, :]
    return Steps(rows, columns, seconds, 1.0, 1.0, np.full(len(rows), float(admits)), admits if part is None else part)


# --- seats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("servers", "offered"), [(1, 0.7), (10, 8.0), (100, 95.0), (4000, 3950.0)])
def test_exponential_times_give_erlang_c(servers, offered):
    found = erlang(servers, offered)
    waits = probability_of_waiting(servers, offered)
    assert found.waits == pytest.approx(waits, rel=1e-9)
    assert found.mean == pytest.approx(offered, rel=1e-9)
    assert found.queue == pytest.approx(waits * offered / (servers - offered), rel=1e-9)


@pytest.mark.parametrize("offered", [90_000.0, 99_900.0, 99_999.9])
def test_a_hundred_thousand_seats_neither_overflow_nor_lose_anyone(offered):
    found = erlang(100_000, offered)
    assert found.mean == pytest.approx(offered, rel=1e-4)
    assert found.waits == pytest.approx(probability_of_waiting(100_000, offered), rel=0.02)


def test_one_server_is_geometric():
    """M/M/1 at load 0.7: P(0) = 0.3; all the rest is behind the first seat."""
    found = erlang(1, 0.7)
    assert found.share == pytest.approx([0.3, 0.7])


def test_processor_sharing_is_geometric_and_does_not_see_the_spread_of_lengths():
    """M/G/1-PS: P(n) = (1 − ρ)·ρ^n for any law of lengths."""
    running = seats(400)
    regular, wild = (chain(0.8, running, np.ones(400), cv) for cv in (0.0, 2.0))
    expected = 0.2 * 0.8 ** np.arange(50)
    assert regular.share[:50] == pytest.approx(expected, rel=1e-9)
    assert wild.share == pytest.approx(regular.share)
    assert wild.queue > regular.queue


def test_without_a_limit_the_batch_is_poisson():
    found = erlang(400, 50.0)
    variance = found.running**2 @ found.share - found.mean**2
    assert variance == pytest.approx(50.0, rel=1e-6)
    assert found.quantile(0.5) == pytest.approx(50.0, abs=1)


def test_bursts_keep_the_mean_and_stretch_the_variance():
    running = seats(1000)
    found = chain(50.0, running, running, 0.0, np.full(1000, 4.0))
    assert found.mean == pytest.approx(50.0, rel=1e-6)
    assert found.running**2 @ found.share - found.mean**2 == pytest.approx(200.0, rel=1e-6)


def test_regular_lengths_wait_less():
    assert erlang(16, 14.0, 0.0).queue < erlang(16, 14.0, 1.0).queue < erlang(16, 14.0, 2.0).queue


# --- prompts between steps -------------------------------------------------------------------------------------------


def test_prompts_that_cost_nothing_are_poisson_in_number():
    found = boundaries(steps(0.5, 0.0, 64), np.array([10.0]), 6.0)
    units = np.arange(found.share.shape[1])
    assert found.share[0] @ units == pytest.approx(3.0, rel=1e-4)
    assert found.share[0, 0] == pytest.approx(np.exp(-3.0), rel=1e-4)


def test_a_step_that_reads_one_prompt_is_a_slotted_queue():
    """q' = max(q − 1, 0) + Poisson(ρ) is M/D/1 at departures: mean ρ + ρ²/(2(1 − ρ)) = 0.6 + 0.36/0.8 = 1.05."""
    found = boundaries(steps(0.1, 0.0, 1.0), np.array([10.0]), 6.0)
    units = np.arange(found.share.shape[1]) / found.parts
    assert found.share[0] @ units == pytest.approx(1.05, rel=2e-3)


def test_reading_makes_room_for_more_arrivals():
    """Steps of 10 ms and 5 ms a prompt at 100 requests/s: mean step 10/(1 − 0.5) = 20 ms."""
    found = boundaries(steps(0.010, 0.005, 64), np.array([10.0]), 100.0)
    assert found.mean_step[0] == pytest.approx(0.020, rel=1e-3)
    assert found.mean_left[0] == pytest.approx(0.0, abs=1e-6)


def test_prompts_of_several_sizes_bring_as_much_work():
    even, uneven = (boundaries(steps(0.010, 0.005, 64), np.array([10.0]), 60.0, cv) for cv in (0.0, 1.0))
    assert uneven.mean_step[0] == pytest.approx(even.mean_step[0], rel=0.03)


def met(table, rate, *, alone=False, batch=10.0):
    found = boundaries(table, np.array([batch]), rate)
    group = np.zeros(REQUESTS, dtype=np.int64)
    return first_token(table, found, group, rate, np.ones(REQUESTS), np.full(REQUESTS, alone))


def test_equal_steps_take_what_is_left_of_one_and_one_more():
    """Uniform between one and two steps."""
    seconds = met(steps(0.1, 0.0, 64), 1.0).seconds
    assert seconds.mean() == pytest.approx(0.150, rel=2e-3)
    assert np.quantile(seconds, 0.99) == pytest.approx(0.199, rel=2e-3)


def test_long_steps_are_met_more_often():
    """One step of ten holds a prompt and takes ten times as long: half the arrivals meet one; by hand E[S²]/2E[S]."""
    table = steps(0.010, 0.090, 64)
    found = boundaries(table, np.array([10.0]), 1.0)
    share, seconds = found.share[0], found.seconds[0]
    left = (share @ seconds**2) / (share @ seconds) / 2.0
    assert met(table, 1e-9 + 1.0).seconds.mean() == pytest.approx(left + (1 + left * 2 * 1.0) * 0.090 + 0.010, rel=0.02)


def test_an_idle_replica_begins_at_once():
    assert met(steps(0.010, 0.090, 64), 1e-6, alone=True).seconds.max() == pytest.approx(0.100, rel=1e-6)


def test_a_prompt_over_the_budget_takes_several_steps():
    """A step admits a quarter of a prompt: four steps of 10 + 5 ms after the rest of an empty one."""
    seconds = met(steps(0.010, 0.020, 0.25, part=0.25), 1e-6).seconds
    assert seconds.mean() == pytest.approx(0.005 + 4 * 0.015, rel=2e-3)


# --- tokens over a stay ----------------------------------------------------------------------------------------------


def poisson(mean, number):
    return counts(np.full(REQUESTS, mean), number)


def test_the_batch_of_a_residence_varies_by_two_thirds_of_its_mean():
    """M/D/∞ averaged over one residence: variance 2/3 of the mean."""
    still = np.full(REQUESTS, 1.0)
    pace = Pace(still, still * 1e-6, still * 0.0, still * 0.0, np.array([0.0, 1.0]), np.ones(2))
    seconds = token_seconds(
        pace, poisson(60.0, 0), still * 60.0, 1.0, stay(0.0, still), 1e9, 0.0 * still, 0.0 * still, 0.0
    )
    batch = (seconds - 1.0) / 1e-6
    assert batch.mean() == pytest.approx(61.0, rel=5e-3)
    assert batch.var() == pytest.approx(40.0, rel=0.05)


def test_prompts_of_others_arrive_at_random():
    """100 steps of 10 ms at 5 requests/s meet 5 prompts of 20 ms; those bring 10 % more: TPOT 10/(1 − 0.1) ms."""
    still = np.ones(REQUESTS)
    pace = Pace(still * 0.010, still * 0.0, still, still * 0.020, np.array([0.0, 1.0]), np.ones(2))
    seconds = token_seconds(pace, still * 5, still * 100, 5.0, stay(0.0, still), 1e9, 0.0 * still, 0.0 * still, 0.0)
    assert seconds.mean() == pytest.approx(0.010 / 0.9, rel=5e-3)
    assert seconds.var() == pytest.approx(5.0 / 0.9**3 * (0.020 / 100) ** 2, rel=0.06)


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.0])
def test_those_present_and_those_coming_make_up_the_mean_batch(cv):
    """Whatever the own length: share of the present + own length · share of the coming = 1."""
    own = np.array([0.3, 0.8, 1.0, 2.0])
    beside = stay(cv, own)
    assert beside.present + own * beside.coming == pytest.approx(np.ones(4), abs=0.02)


def test_equal_lengths_overlap_by_half():
    assert (stay(0.0, np.ones(1)).present, stay(0.0, np.ones(1)).spread) == (0.5, pytest.approx(1 / 12))
    assert stay(0.05, np.ones(1)).present == pytest.approx(0.5, abs=0.03)


# --- the sample ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.05, 0.7, 3.0, 11.0, 40.0, 5000.0])
def test_counts_are_poisson(mean):
    drawn = poisson(mean, 3)
    assert drawn.mean() == pytest.approx(mean, rel=0.01, abs=0.002)
    assert drawn.var() == pytest.approx(mean, rel=0.03, abs=0.002)


def test_lengths_and_waits_have_the_moments_that_they_are_asked_for():
    drawn = lengths(0.5, 9)
    assert (drawn.mean(), drawn.std()) == (pytest.approx(1.0, rel=0.01), pytest.approx(0.5, rel=0.03))
    assert set(lengths(0.0, 9)) == {1.0}
    assert gamma(1.45, 5).var() == pytest.approx(1 / 1.45, rel=0.03)


# --- the step table --------------------------------------------------------------------------------------------------


def test_a_step_between_the_lines_of_its_table():
    table = steps(0.010, 0.005, 64, slope=1e-4)
    assert table.at(np.array([50.0]), np.array([3.0])) == pytest.approx([0.010 + 0.005 + 0.015])
    assert table.alone(np.array([50.0])) == pytest.approx([0.015])
    assert table.averaged(np.array([0.5, 1.0, 2.0]))[2] == pytest.approx(0.010 + 0.01 + 0.010)


def test_what_a_budget_leaves_over_is_still_read():
    """Half a prompt a step where a step admits one: some come together, but each is read."""
    table = steps(0.010, 0.020, 1.0)
    assert table.averaged(np.full(3, 0.5)) == pytest.approx(0.010 + 0.5 * 0.020)
