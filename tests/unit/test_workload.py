"""Requests made by chance: their distributions against theory, and their sharing against arithmetic by hand."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np
import pytest
from scipy import stats

from planner.errors import InputError
from planner.simulate.requests import NONE, requests
from planner.simulate.traffic import Traffic
from planner.simulate.workload import arrivals, lengths, made, new_input, resampled
from planner.specs.scenario import Scenario

MANY = 40_000
SURE = 5.0
"""Standard errors that a mean of a seeded sample may be off."""

KOLMOGOROV = 1.95
"""Distance times root of the sample that is passed with probability 0.001."""

COLUMNS = ("arrival", "isl", "osl", "group", "shared", "session")


def table(scenario=None, rate=20.0, longest=None, **traffic):
    traffic.setdefault("requests", MANY)
    return made(scenario or Scenario(isl=1000, osl=200), Traffic(**traffic), rate, longest)


def equal(one, other, *columns):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns or COLUMNS)


# --- arrivals ---------------------------------------------------------------------------------------


def test_poisson_gaps_are_exponential_and_independent():
    gaps = np.diff(table(rate=20.0).arrival)
    assert stats.kstest(gaps, "expon", args=(0.0, 1 / 20.0)).pvalue > 0.001
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < SURE / math.sqrt(MANY)


def test_poisson_counts_have_the_variance_of_their_mean():
    counts = np.histogram(table(rate=20.0).arrival, bins=np.arange(0.0, 1900.0))[0]
    assert counts.mean() == pytest.approx(20.0, abs=SURE * math.sqrt(20.0 / 1899))
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=SURE * math.sqrt(2.0 / 1899))


@pytest.mark.parametrize("cv", [0.5, 1.0, 3.0])
def test_gamma_gaps_have_the_spread_asked(cv):
    """Gaps below 1 ns vanish in the rounding of times of half an hour, so the distribution is compared above."""
    gaps = np.sort(np.diff(table(rate=20.0, arrival="gamma", cv=cv).arrival))
    off = np.arange(1, len(gaps) + 1) / len(gaps) - stats.gamma.cdf(gaps, cv**-2, 0.0, cv**2 / 20.0)
    assert np.abs(off[gaps > 1e-9]).max() < KOLMOGOROV / math.sqrt(len(gaps))
    assert gaps.mean() == pytest.approx(1 / 20.0, rel=SURE * cv / math.sqrt(MANY))
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.08)


def test_constant_gaps_are_all_the_same():
    assert table(rate=4.0, arrival="constant", requests=5).arrival.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_closed_loop_leaves_the_times_to_the_loop():
    assert not table(arrival="closed", rate=0.0, requests=9).arrival.any()
    assert not table(arrival="closed", rate=0.0, requests=9, turns=3).arrival.any()


@pytest.mark.parametrize("swing", [0.5, 1.0])
def test_a_day_swings_as_its_integrated_rate_says(swing):
    """Arrivals of the first half day over those of the second: (1 + 2·swing/π) / (1 − 2·swing/π)."""
    whole = table(rate=20.0, arrival="diurnal", swing=swing, period_s=500.0).arrival
    phase = whole[whole < 1500.0] % 500.0 / 500.0
    high, low = int((phase < 0.5).sum()), int((phase >= 0.5).sum())
    share = 0.5 + swing / math.pi
    assert high / (high + low) == pytest.approx(share, abs=SURE * math.sqrt(share * (1 - share) / len(phase)))
    assert len(phase) == pytest.approx(30_000, abs=SURE * math.sqrt(30_000))
    cumulated = lambda x: x + swing / (2 * np.pi) * (1 - np.cos(2 * np.pi * x))  # noqa: E731
    assert stats.kstest(phase, cumulated).pvalue > 0.001
    assert np.histogram(phase, bins=20)[0].argmax() in {4, 5}
    assert np.histogram(phase, bins=20)[0].argmin() in {14, 15}


def test_a_day_without_swing_is_poisson():
    traffic = Traffic(arrival="diurnal", swing=0.0, period_s=100.0)
    flat = arrivals(traffic, 10.0, 5000)
    assert flat == pytest.approx(arrivals(Traffic(), 10.0, 5000), rel=1e-9)


@pytest.mark.parametrize("arrival", ["poisson", "gamma", "constant", "diurnal", "closed"])
@pytest.mark.parametrize("turns", [1, 4])
def test_arrivals_never_fall(arrival, turns):
    found = table(arrival=arrival, turns=turns, requests=3001, cv=8.0, swing=1.0, period_s=60.0)
    assert len(found) == 3001
    assert (np.diff(found.arrival) >= 0.0).all()
    assert (found.isl >= 1).all()
    assert (found.osl >= 1).all()
    assert (found.shared < found.isl).all()


# --- reproducibility --------------------------------------------------------------------------------


def test_one_seed_makes_one_table():
    spread = {"isl_cv": 1.0, "osl_cv": 1.0, "turns": 3}
    assert equal(table(seed=7, **spread), table(seed=7, **spread))
    assert not equal(table(seed=7, **spread), table(seed=8, **spread), "isl")
    assert not equal(table(seed=7, **spread), table(seed=8, **spread), "arrival")


def test_another_rate_leaves_lengths_alone_and_brings_the_same_bursts_faster():
    slow, fast = (table(rate=rate, arrival="gamma", isl_cv=1.0, osl_cv=1.0) for rate in (1.0, 4.0))
    assert equal(slow, fast, "isl", "osl")
    assert slow.at_rate(4.0).arrival == pytest.approx(fast.arrival, rel=1e-12)


def test_another_spread_of_outputs_leaves_inputs_and_arrivals_alone():
    plain, spread = table(isl_cv=1.0), table(isl_cv=1.0, osl_cv=2.0)
    assert equal(plain, spread, "isl", "arrival")
    assert not equal(plain, spread, "osl")


def test_streams_of_chance_are_not_one():
    found = table(isl_cv=1.0, osl_cv=1.0)
    gaps = np.diff(found.arrival, prepend=0.0)
    for one, other in ((found.isl, found.osl), (found.isl, gaps), (found.osl, gaps)):
        assert abs(stats.spearmanr(one, other).statistic) < SURE / math.sqrt(MANY)


# --- lengths ----------------------------------------------------------------------------------------


def test_without_spread_all_have_the_mean():
    found = table()
    assert set(found.isl) == {1000}
    assert set(found.osl) == {200}


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.0])
def test_spread_lengths_are_lognormal_with_the_mean_asked(cv):
    found = table(isl_cv=cv, osl_cv=cv)
    for column, mean in ((found.isl, 1000.0), (found.osl, 200.0)):
        assert column.dtype == np.int64
        assert column.mean() == pytest.approx(mean, rel=SURE * cv / math.sqrt(MANY))
    sigma = math.sqrt(math.log1p(cv**2))
    logs = np.log(found.isl)
    assert logs.std() == pytest.approx(sigma, rel=0.03)
    assert logs.mean() == pytest.approx(math.log(1000.0) - sigma**2 / 2, abs=0.03)
    assert abs(stats.skew(logs)) < 0.15


@pytest.mark.parametrize(("mean", "cv"), [(1.0, 2.0), (1.5, 1.0), (2.0, 0.5), (3.0, 2.0), (12.5, 0.0)])
def test_short_lengths_keep_their_mean_above_one_token(mean, cv):
    found = lengths(mean, cv, MANY, np.random.default_rng(5))
    assert found.min() >= 1
    assert found.mean() == pytest.approx(mean, abs=SURE * math.hypot(cv * mean, 0.5) / math.sqrt(MANY))
    assert mean > 1.0 or set(found) == {1}


def test_lengths_are_cut_at_the_limit_that_is_given():
    free, cut = table(isl_cv=2.0, osl_cv=2.0), table(isl_cv=2.0, osl_cv=2.0, longest=2048)
    assert (cut.isl + cut.osl).max() == 2048
    assert np.array_equal(cut.isl, np.minimum(free.isl, 2047))
    within = free.isl + free.osl <= 2048
    assert np.array_equal(cut.osl[within], free.osl[within])
    assert (cut.isl + cut.osl)[~within].min() == 2048
    assert cut.osl.min() == 1


def test_a_limit_without_room_for_two_tokens_is_refused():
    with pytest.raises(InputError, match="longest"):
        table(longest=1)


# --- sharing ----------------------------------------------------------------------------------------


def test_without_a_prefix_nothing_is_shared():
    assert not table().sharing


def test_a_prefix_is_shared_by_all():
    found = table(Scenario(isl=1000, osl=10, prefix=0.3))
    assert found.sharing
    assert set(found.group) == {0}
    assert set(found.shared) == {300}
    assert set(found.session) == {NONE}


@pytest.mark.parametrize(("isl", "prefix", "shared"), [(100, 0.29, 29), (7, 0.5, 3), (8, 1.0, 7), (1, 1.0, 0)])
def test_the_shared_part_is_whole_tokens_and_never_the_whole_prompt(isl, prefix, shared):
    assert set(table(Scenario(isl=isl, osl=10, prefix=prefix), requests=3).shared) == {shared}


def test_prompts_of_any_length_share_the_share_asked():
    found = table(Scenario(isl=1000, osl=10, prefix=0.4), isl_cv=1.0)
    assert found.shared.sum() / found.isl.sum() == pytest.approx(0.4, abs=0.001)


# --- sessions ---------------------------------------------------------------------------------------


def test_a_session_by_hand():
    """isl 1000, osl 100, 3 turns: mean of u, 2u + 100, 3u + 200 is 2u + 100 = 1000, so u = 450."""
    assert new_input(Scenario(isl=1000, osl=100), 3) == 450.0
    found = table(Scenario(isl=1000, osl=100), turns=3, requests=9, think_s=0.0, arrival="constant", rate=1.0)
    assert found.session.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert found.isl.tolist() == [450, 1000, 1550] * 3
    assert found.arrival.tolist() == [0.0] * 3 + [3.0] * 3 + [6.0] * 3
    assert set(found.group) == {NONE}
    assert found.isl.mean() == 1000.0


def test_a_session_with_a_system_prompt_by_hand():
    """s = 200, osl 40, 2 turns: 200 + u and 200 + 2u + 40 have the mean 220 + 1.5u = 1000, so u = 520."""
    found = table(Scenario(isl=1000, osl=40, prefix=0.2), turns=2, requests=4, think_s=0.0, arrival="constant")
    assert found.isl.tolist() == [720, 1280, 720, 1280]
    assert set(found.group) == {0}
    assert set(found.shared) == {200}


def test_new_input_that_is_no_whole_number_keeps_the_mean():
    """osl 4, 4 turns, isl 100: 2.5u + 6 = 100, u = 37.6: floor(k·u + ½) = 38, 75, 113, 150 and 0, 4, 8, 12 of outputs."""
    found = table(Scenario(isl=100, osl=4), turns=4, requests=8, think_s=0.0, arrival="constant")
    assert found.isl.tolist() == [38, 79, 121, 162] * 2
    assert found.isl.mean() == pytest.approx(100.0, abs=0.5)


def test_turns_hold_all_earlier_text_whatever_the_spread():
    found = table(Scenario(isl=4000, osl=300), turns=5, isl_cv=1.0, osl_cv=1.0, requests=MANY)
    order = np.lexsort((found.arrival, found.session))
    isl, osl, session = found.isl[order], found.osl[order], found.session[order]
    same = session[1:] == session[:-1]
    assert (isl[1:] > isl[:-1] + osl[:-1])[same].all()
    assert np.bincount(found.session).max() == 5
    assert found.isl.mean() == pytest.approx(4000.0, rel=0.03)
    assert found.osl.mean() == pytest.approx(300.0, rel=SURE / math.sqrt(MANY))


def test_turns_come_at_the_rate_from_the_first_moment_and_follow_after_thinking():
    found = table(Scenario(isl=4000, osl=300), turns=5, rate=20.0, think_s=7.0, requests=MANY)
    # 28 s of thinking a session: a run that began with none under way would have a quarter of the rate for half a minute
    early = int((found.arrival < 30.0).sum())
    assert abs(early - 600) < 4.0 * math.sqrt(600)
    assert found.arrival[-1] == pytest.approx(MANY / 20.0, rel=0.05)
    order = np.lexsort((found.arrival, found.session))
    arrival, session = found.arrival[order], found.session[order]
    gaps = np.diff(arrival)[session[1:] == session[:-1]]
    inside = gaps[: len(gaps) // 2]  # the last turns of the run are cut off, and long gaps with them
    assert np.mean(inside) == pytest.approx(7.0, rel=0.05)
    counts = np.bincount(found.session)
    assert (counts == 5).sum() > 0.9 * len(counts[counts > 0])


def test_sessions_that_cannot_all_be_under_way_are_refused():
    with pytest.raises(InputError) as caught:
        table(Scenario(isl=4000, osl=300), turns=5, rate=1000.0, think_s=3600.0)
    (fault,) = caught.value.faults
    assert (fault.field, fault.value) == ("think_s", "3600")


def test_the_last_session_is_cut_short():
    found = table(Scenario(isl=1000, osl=100), turns=3, requests=5, think_s=0.0, arrival="constant", rate=1.0)
    assert found.isl.tolist() == [450, 1000, 1550, 450, 1000]


def test_turns_without_room_say_what_would_do():
    """isl 300, osl 100: n turns leave (300 − 50(n − 1)) / ((n + 1)/2) ≥ 1 up to n = 6 (50/3.5 = 14); 7 leave 0."""
    assert new_input(Scenario(isl=300, osl=100), 6) == pytest.approx(50 / 3.5)
    with pytest.raises(InputError, match=r"^turns = 7: .*at most 6 turns would do, or an isl of about 304, or shorter"):
        table(Scenario(isl=300, osl=100), turns=7)
    assert new_input(Scenario(isl=304, osl=100), 7) >= 1.0


def test_a_prompt_that_is_all_system_prompt_has_no_turns():
    with pytest.raises(InputError, match=r"^turns = 2: .*1 turn would do$"):
        table(Scenario(isl=300, osl=100, prefix=1.0), turns=2)


# --- empirical lengths, refusals, speed -------------------------------------------------------------


def test_resampled_draws_pairs_and_new_arrivals():
    source = requests(np.arange(4.0), np.array([10, 20, 30, 40]), np.array([1, 2, 3, 4]))
    found = resampled(source, MANY, 5.0, seed=3)
    assert np.array_equal(found.isl, 10 * found.osl)
    assert np.bincount(found.osl)[1:] == pytest.approx(np.full(4, MANY / 4), abs=SURE * math.sqrt(MANY * 3 / 16))
    assert stats.kstest(np.diff(found.arrival), "expon", args=(0.0, 0.2)).pvalue > 0.001
    assert not found.sharing
    assert equal(found, resampled(source, MANY, 5.0, seed=3))
    assert equal(found, resampled(source, MANY, 9.0, seed=3), "isl", "osl")


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(InputError, match=r"^rate = "):
        table(rate=rate)
    with pytest.raises(InputError, match=r"^rate = "):
        resampled(table(requests=3), 3, rate, seed=1)


@pytest.mark.parametrize("count", [0, 1_000_001])
def test_a_count_that_is_none_is_refused(count):
    with pytest.raises(InputError, match=r"^requests = "):
        resampled(table(requests=3), count, 1.0, seed=1)


@pytest.mark.alone
def test_a_million_requests_take_less_than_two_seconds():
    start = perf_counter()
    table(Scenario(isl=4000, osl=300), requests=1_000_000, turns=4, arrival="diurnal", isl_cv=1.0, osl_cv=1.0)
    assert perf_counter() - start < 2.0
